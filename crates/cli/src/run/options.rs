//! What the user of `mizzen run` may ask for.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use mizzen_proto::boot::{MAX_PROCESSES, OnDeath, Preset};
use mizzen_proto::membership::Pace;
use mizzen_site::Meeting;

use crate::hosts::{DEFAULT_REMOTE_SHELL, Host, check_remote_shell, door, parse_hosts};

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// How many processes.
    // Negative numbers are let in to be refused by name, not as unknown options.
    #[arg(
        short = 'n',
        long = "processes",
        value_name = "N",
        default_value_t = 1,
        value_parser = processes,
        allow_negative_numbers = true
    )]
    pub(crate) processes: u32,

    /// The hosts to run on, as `name` or `name=address to listen on`. Processes are dealt in blocks. By default, this one.
    /// A host that is this machine (`localhost`, a loopback address, its own name) needs no remote shell.
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    pub(crate) hosts: Vec<String>,

    /// Hosts that carry no processes and only hand on between the networks of the job's file.
    #[arg(
        long,
        value_name = "HOST,…",
        value_delimiter = ',',
        requires = "hosts",
        requires = "file"
    )]
    pub(crate) gateways: Vec<String>,

    /// The command that runs another on a host, split at spaces; `{host}` is the host's name. It must not ask for anything.
    #[arg(
        long,
        value_name = "COMMAND",
        default_value = DEFAULT_REMOTE_SHELL
    )]
    pub(crate) remote_shell: String,

    /// Where the mizzen command is on the other hosts. By default, where it is here.
    #[arg(long, value_name = "PATH")]
    pub(crate) agent_path: Option<PathBuf>,

    /// The job's file: the networks that processes of different hosts may use (`mizzen.toml`).
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,

    /// Meet another half of this job, which somebody starts at another site: the job's name, and that site, as in render@b.
    /// Ranks are those of the site whose name comes first, then those of the other.
    #[arg(long, value_name = "JOB@SITE", conflicts_with_all = ["file", "gateways"])]
    pub(crate) meet: Option<Meeting>,

    /// With --meet: the file with what only the two halves know. `mizzen site secret` makes one.
    #[arg(long, value_name = "FILE", requires = "meet")]
    pub(crate) secret: Option<PathBuf>,

    /// With --meet: where the gateway of this site is, for its jobs.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4434", value_parser = door)]
    pub(crate) door: SocketAddr,

    /// With --meet: what the cable between the sites carries, in Mbit/s. Then there are as many connections as fill it, and what is short does not wait
    /// behind what is long.
    #[arg(long, value_name = "MBIT", requires = "meet", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) rate: Option<u64>,

    /// Say over which network and addresses processes of different hosts reach each other, and why.
    #[arg(long)]
    pub(crate) show_paths: bool,

    /// The name of this cluster, which is part of what processes prove to other hosts.
    #[arg(long, value_name = "NAME", default_value = "local", value_parser = cluster)]
    pub(crate) cluster: String,

    /// Print the lines of the processes as they are, without `[rank]` in front of them.
    #[arg(long)]
    pub(crate) no_label: bool,

    /// What happens when a process fails.
    #[arg(long, value_name = "WHAT", default_value = "stop")]
    pub(crate) on_death: Policy,

    /// With `--on-death restart`: how many restarts there may be before the job is ended.
    #[arg(long, value_name = "COUNT", default_value_t = DEFAULT_MAX_RESTARTS)]
    pub(crate) max_restarts: u32,

    /// How patient hosts are with each other: how long one may be silent until the others go on without it, or end.
    #[arg(long, value_name = "HOW", default_value = "default")]
    pub(crate) pace: Patience,

    /// Say why nothing happens when something has waited for so many seconds: who waits where, and for whom. `off`: only if asked, by
    /// `mizzen why`.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = why_after)]
    pub(crate) why_after: WhyAfter,

    /// The program, and its arguments: options after it are its own.
    // One list: with the program as an argument of its own, options behind it would be taken for ours. The program is what
    // starts the list, so what looks like an option before it is one of ours, or a misspelt one. After `--` it may.
    #[arg(value_name = "PROGRAM", required = true, num_args = 1.., trailing_var_arg = true)]
    pub(crate) program: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// The others are ended.
    Stop,
    /// The others go on, and are told.
    Continue,
    /// It is restarted, and the others are told.
    Restart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Patience {
    /// A silent host is given up after 4.5 s: for hosts that are never busy for a second.
    Fast,
    /// A silent host is given up after 12 s; one that stands still for 6 s is not.
    Default,
    /// A silent host is given up after 152 s: for networks that are repaired meanwhile.
    Patient,
}

/// After how long the roll is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WhyAfter(pub(crate) Option<Duration>);

impl Run {
    /// Checks what the types cannot say.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        check_remote_shell(&self.remote_shell)
    }

    /// How many hosts carry processes; they come before those that do not.
    pub(crate) fn carriers(&self) -> usize {
        self.hosts.len().clamp(1, self.processes as usize)
    }

    /// The hosts, as far as there are processes for them, and the gateways; none: this one, without a remote shell.
    pub(crate) fn hosts(&self) -> anyhow::Result<Vec<Host>> {
        let carriers = self.carriers();
        let all: Vec<String> = self
            .hosts
            .iter()
            .take(carriers)
            .chain(&self.gateways)
            .cloned()
            .collect();
        parse_hosts(&self.hosts)?;
        parse_hosts(&all)
    }

    pub(crate) fn preset(&self) -> Preset {
        match self.pace {
            Patience::Fast => Preset::Fast,
            Patience::Default => Preset::Default,
            Patience::Patient => Preset::Patient,
        }
    }

    /// All durations of that.
    pub(crate) fn pace(&self) -> Pace {
        Pace::of(self.preset())
    }

    /// After how long a process says that it waits, in milliseconds; 0: never.
    pub(super) fn overdue_ms(&self) -> u64 {
        let millis = self.why_after.0.map_or(0, |after| after.as_millis());
        u64::try_from(millis).unwrap_or(u64::MAX)
    }

    /// What must be the same wherever a job is started: options, and what they are.
    pub(super) fn agreed(&self) -> Vec<(String, String)> {
        let agreed = [
            ("--on-death", format!("{:?}", self.on_death)),
            ("--max-restarts", self.max_restarts.to_string()),
            ("--pace", format!("{:?}", self.pace)),
        ];
        let agreed = agreed.map(|(name, value)| (name.to_owned(), value.to_lowercase()));
        agreed.into()
    }

    pub(crate) fn on_death(&self) -> OnDeath {
        match self.on_death {
            Policy::Stop => OnDeath::Stop,
            Policy::Continue => OnDeath::Continue,
            Policy::Restart => OnDeath::Restart,
        }
    }
}

fn cluster(text: &str) -> Result<String, mizzen_identity::NameError> {
    mizzen_identity::Identity::new(text, [0; 16], 0, 0)
        .map(|identity| identity.cluster().to_owned())
}

/// What `--why-after` takes.
fn why_after(text: &str) -> Result<WhyAfter, String> {
    if text == "off" {
        return Ok(WhyAfter(None));
    }
    let seconds = text
        .parse()
        .ok()
        .filter(|seconds| *seconds >= LEAST_WHY_AFTER);
    let after = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    after
        .map(|after| WhyAfter(Some(after)))
        .ok_or_else(|| "--why-after takes seconds, at least 0.5, or off".to_owned())
}

/// What `-n` takes.
pub(crate) fn processes(text: &str) -> Result<u32, String> {
    let count = text.parse().ok();
    count
        .filter(|count| (1..=MAX_PROCESSES).contains(count))
        .ok_or_else(|| format!("-n must be a whole number from 1 to {MAX_PROCESSES}"))
}

/// What `mizzen run --help` says at its end. `docs/running.md` says more.
pub(crate) const AFTER_RUN: &str = "\
Environment of each process:
  MIZZEN_RANK        Its rank: 0, 1, and so on
  MIZZEN_SIZE        How many processes the job has
  MIZZEN_HOST        The name of its host, as in --hosts
  MIZZEN_LOCAL_RANK  Its rank among the processes of its host
  MIZZEN_LOCAL_SIZE  How many processes its host has
  MIZZEN_CORES       How many of the host's cores are its share: so many workers it has, at least two

Exit code:
  0        All processes exited with code 0. With `--on-death continue`, others may have been killed;
           with `--on-death restart`, they were started again
  code     The code of the first process that exited with another one
  128 + N  The first failure was a process killed by signal N, or the job was ended by signal N;
           with `--on-death continue`, nobody was left
  255      A host was lost; with `--on-death continue`, nobody was left
  141      Nobody reads what the job prints
  1        The job could not be started
  2        The options make no sense";

/// A wait is noted when it has lasted for a quarter of a second, and looked at twice a second.
const LEAST_WHY_AFTER: f64 = 0.5;

/// A process that fails at once, again and again, is started some hundred times a second: this ends it within a minute
/// or so, and is far beyond what a long job loses.
const DEFAULT_MAX_RESTARTS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::options::{Command, Options};

    fn parse(args: &[&str]) -> Run {
        match try_parse(args).unwrap().command {
            Command::Run(run) => *run,
            other => panic!("{other:?}"),
        }
    }

    fn refusal(args: &[&str]) -> String {
        try_parse(args).unwrap_err().to_string()
    }

    fn try_parse(args: &[&str]) -> Result<Options, clap::Error> {
        Options::try_parse_from(["mizzen", "run"].iter().chain(args))
    }

    #[test]
    fn options_of_the_program_are_left_to_it() {
        for args in [
            &["-n", "2", "prog", "-n", "7", "--help"][..],
            &["-n", "2", "--", "prog", "-n", "7", "--help"],
        ] {
            let run = parse(args);
            assert_eq!(run.processes, 2);
            assert_eq!(run.program, ["prog", "-n", "7", "--help"]);
        }
    }

    #[test]
    fn a_misspelt_option_is_not_taken_for_the_program() {
        let text = refusal(&["-n", "4", "--host", "h1", "--", "prog"]);
        assert!(
            text.contains("unexpected argument '--host' found")
                && text.contains("a similar argument exists: '--hosts'"),
            "{text}"
        );
        for option in ["-N", "--numbers=3", "-4"] {
            let text = refusal(&[option, "prog"]);
            assert!(text.contains("unexpected argument '-"), "{text}");
        }
    }

    #[test]
    fn a_program_may_look_like_an_option_after_two_dashes() {
        let run = parse(&["-n", "4", "--", "--weird-program", "--", "-x"]);
        assert_eq!(run.program, ["--weird-program", "--", "-x"]);
    }

    #[test]
    fn a_count_that_is_none_is_refused_by_name() {
        for count in ["four", "0", "-3", "1.5", "", "65537", "99999999999"] {
            let text = refusal(&["-n", count, "prog"]);
            let expected = "-n must be a whole number from 1 to 65536";
            assert!(text.contains(expected), "{text}");
        }
        assert_eq!(parse(&["-n", "65536", "prog"]).processes, 65_536);
        assert_eq!(parse(&["prog"]).processes, 1);
    }

    #[test]
    fn the_roll_is_called_after_seconds_or_never() {
        let after = |text: &str| parse(&["--why-after", text, "prog"]).why_after.0;
        assert_eq!(after("2.5"), Some(Duration::from_millis(2500)));
        assert_eq!(after("off"), None);
        assert_eq!(parse(&["prog"]).why_after.0, Some(Duration::from_secs(10)));
        for text in ["0", "0.1", "NaN", "inf", "1e300", "soon", ""] {
            let text = refusal(&["--why-after", text, "prog"]);
            assert!(text.contains("at least 0.5, or off"), "{text}");
        }
    }

    #[test]
    fn hosts_have_names_and_addresses() {
        let hosts = parse(&["-n", "5", "--hosts", "a,b=10.0.0.2", "prog"])
            .hosts()
            .unwrap();
        assert_eq!(hosts, [Host::new("a", ""), Host::new("b", "10.0.0.2")]);
    }

    #[test]
    fn hosts_without_processes_are_not_used() {
        assert_eq!(
            parse(&["-n", "1", "--hosts", "a,b", "prog"])
                .hosts()
                .unwrap()
                .len(),
            1
        );
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for hosts in [
            "--hosts=-oProxyCommand=x",
            "--hosts=a b",
            "--hosts=a,,b",
            "--hosts=a,a",
            "--hosts==x",
        ] {
            assert!(
                parse(&[hosts, "-n", "3", "prog"]).hosts().is_err(),
                "{hosts}"
            );
        }
    }

    #[test]
    fn a_remote_shell_is_not_empty() {
        assert!(parse(&["--remote-shell", " ", "prog"]).check().is_err());
    }
}
