//! What the user of `mizzen bench` may ask for.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;

use super::layout::MAX_PARTICIPANTS;
use super::plan::{Collective, Path, Place, Plan, Test, Variant};
use super::words::parse_size;
use crate::hosts::{self, check_remote_shell, parse_hosts};

/// Measure how fast messages are on this machine, beside what the bare machine can do.
///
/// Each run measures the floor, which is the bare machine doing the same without any runtime, and then Mizzen, in the same two
/// processes or threads. The ratio is the median of the ratios of all runs, so that what disturbs a run disturbs both.
/// The range is that of one invocation; others differ more, so repeat it before you compare.
///
/// The time of a message comes from a loop that does not look at the clock. The distribution (p50, p99) comes from another
/// loop that reads it once in each round trip, which costs about 40 ns; nothing is subtracted.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// What to measure.
    pub(crate) test: Test,

    /// Between what: two threads, two processes, or two processes over TCP on the loopback interface.
    #[arg(
        long,
        value_name = "PATH,…",
        value_delimiter = ',',
        default_value = "process"
    )]
    pub(crate) path: Vec<Path>,

    /// Bytes of a message, with K or M for KiB or MiB. [default: a few that suit the test]
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = parse_size)]
    pub(crate) sizes: Vec<usize>,

    /// Hand over lent buffers, not read, instead of copying bytes. Those of messages are made before the clock starts; for `rpc`, both
    /// sides make one for each call.
    #[arg(long)]
    pub(crate) lent: bool,

    /// For `collectives`: what members do together. [default: barrier,broadcast,all-reduce]
    #[arg(long, value_name = "OPERATION,…", value_delimiter = ',')]
    pub(crate) op: Vec<Collective>,

    /// For `collectives`: how many processes, or threads of one for the path `thread`. [default: 2,4,8]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = participants)]
    pub(crate) ranks: Vec<u32>,

    /// For `collectives`: measure every way of each operation, by messages, and say whether the one that a group chooses is the fastest.
    #[arg(long)]
    pub(crate) grid: bool,

    /// For `threads`: how many pairs of threads. [default: 1,2,4,8] For `collectives`: how many threads of each process are members. [default: 1]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = participants)]
    pub(crate) threads: Vec<u32>,

    /// For `idle` and `startup`: how many processes. [default: 8 and 64]
    #[arg(long, value_name = "N", value_parser = participants)]
    pub(crate) processes: Option<u32>,

    /// Send through the address of the mailbox instead of a `Sender`.
    #[arg(long)]
    pub(crate) post: bool,

    /// For `latency`: the receiver sleeps when the message comes. The floor is a bare wake-up.
    #[arg(long)]
    pub(crate) asleep: bool,

    /// Pack and unpack each message as one of pieces is, instead of sending and receiving plain values.
    #[arg(long)]
    pub(crate) packed: bool,

    /// Send from one buffer and receive into another, so that what is sent is never rewritten.
    #[arg(long)]
    pub(crate) separate: bool,

    /// Open so many more `Sender`s to each receiving mailbox, and leave them idle.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) idle_lanes: u32,

    /// For `rpc`: have so many calls under way at once, instead of waiting for each.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=256))]
    pub(crate) in_flight: u32,

    /// Pin the two sides to two cores. This is the default but for `threads`; `idle` and `startup` are never pinned.
    #[arg(long, overrides_with = "no_pin")]
    pub(crate) pin: bool,

    /// Let the system choose the cores.
    #[arg(long)]
    pub(crate) no_pin: bool,

    /// How often to measure the floor and Mizzen in turn. [default: 21; threads 5, idle 3, startup 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_RUNS))]
    pub(crate) runs: Option<u32>,

    /// For networks: the two hosts, as `name=address`. By default both are this one, over the loopback interface.
    #[arg(long, value_name = "HOST=ADDRESS,…", value_delimiter = ',')]
    pub(crate) hosts: Vec<String>,

    /// For networks: the command that runs another on a host, as for `mizzen run`.
    #[arg(
        long,
        value_name = "COMMAND",
        default_value = "env MIZZEN_BENCH_HOST={host}"
    )]
    pub(crate) remote_shell: String,

    /// For libfabric: its provider, such as `tcp;ofi_rxm`. [default: libfabric's choice]
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// Print one JSON object per line instead of a table.
    #[arg(long)]
    pub(crate) json: bool,

    /// For `latency` and `bandwidth`: draw the figures over the size into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// More would take hours.
const MAX_RUNS: i64 = 10_000;

impl Bench {
    /// Checks what the types cannot say.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        use Test::{Bandwidth, Collectives, Idle, Latency, Rate, Rpc, Startup, Streams, Threads};
        let test = self.test;
        let carries = matches!(test, Latency | Rate | Bandwidth);
        let goes_with = [
            (
                "--sizes",
                !self.sizes.is_empty(),
                carries || matches!(test, Rpc | Collectives),
                "latency, rate, bandwidth, rpc and collectives",
            ),
            (
                "--op",
                !self.op.is_empty(),
                test == Collectives,
                "collectives",
            ),
            ("--grid", self.grid, test == Collectives, "collectives"),
            (
                "--ranks",
                !self.ranks.is_empty(),
                test == Collectives,
                "collectives",
            ),
            ("--in-flight", self.in_flight > 0, test == Rpc, "rpc"),
            (
                "--lent",
                self.lent,
                matches!(test, Latency | Rate | Rpc),
                "latency, rate and rpc",
            ),
            (
                "--threads",
                !self.threads.is_empty(),
                matches!(test, Threads | Streams | Collectives),
                "threads, streams and collectives",
            ),
            (
                "--processes",
                self.processes.is_some(),
                matches!(test, Idle | Startup),
                "idle and startup",
            ),
            ("--post", self.post, carries, "latency, rate and bandwidth"),
            ("--asleep", self.asleep, test == Latency, "latency"),
            (
                "--packed",
                self.packed,
                carries,
                "latency, rate and bandwidth",
            ),
            (
                "--separate",
                self.separate,
                carries,
                "latency, rate and bandwidth",
            ),
            (
                "--idle-lanes",
                self.idle_lanes > 0,
                carries,
                "latency, rate and bandwidth",
            ),
            (
                "--pin",
                self.pin,
                !matches!(test, Idle | Startup | Collectives),
                "tests of two sides",
            ),
            (
                "--svg",
                self.svg.is_some(),
                matches!(test, Latency | Bandwidth),
                "latency and bandwidth",
            ),
        ];
        for (option, given, suits, tests) in goes_with {
            ensure!(
                !given || suits,
                "{option} goes with {tests} only; leave it out for {}",
                test.name()
            );
        }
        ensure!(
            !(self.asleep && self.separate),
            "--asleep writes the time into what it sends, which --separate forbids; give one of them"
        );
        ensure!(
            !(self.packed && (self.lent || self.asleep)),
            "--packed is about bytes that are copied to who looks for them; leave out --lent and --asleep"
        );
        ensure!(
            !(self.lent && self.separate),
            "--lent has no buffers to keep apart; leave out --separate"
        );
        ensure!(
            !self.asleep || self.sizes.iter().all(|size| *size >= 8),
            "--asleep sends the time in the message, so --sizes must be 8 or more"
        );
        ensure!(
            test == Rpc || !self.sizes.contains(&0),
            "only a call may be empty; give --sizes of 1 or more for {}",
            test.name()
        );
        ensure!(
            self.in_flight == 0 || self.sizes.iter().all(|size| *size == 0),
            "--in-flight goes with empty calls; leave out --sizes"
        );
        ensure!(
            test != Startup || !self.path.contains(&Path::Thread),
            "startup starts processes; give --path process or --path tcp"
        );
        ensure!(
            test != Streams || self.path.iter().all(|path| path.is_network()),
            "streams measures networks; give --path tcp, tls or ofi"
        );
        ensure!(
            test != Collectives || self.threads.len() < 2,
            "the members of a collective operation are of one kind; give one number with --threads"
        );
        let members = self.ranks.iter().max().unwrap_or(&1) * self.threads.first().unwrap_or(&1);
        ensure!(
            test != Collectives || members <= MAX_PARTICIPANTS,
            "{members} members are more than {MAX_PARTICIPANTS}; give fewer --ranks or --threads"
        );
        let places = self.places()?;
        ensure!(
            places.is_empty() || self.path.iter().all(|path| path.is_network()),
            "--hosts goes with networks only; give --path tcp, tls or ofi"
        );
        check_remote_shell(&self.remote_shell)?;
        ensure!(
            test != Rate
                || self.path.iter().all(|path| path.is_network())
                || self.sizes.iter().all(|size| *size <= 56)
                || self.lent,
            "rate is about short messages; give --sizes up to 56, or measure bandwidth"
        );
        Ok(())
    }

    /// Whether the sides shall have a core each.
    pub(crate) fn pins(&self) -> bool {
        match self.test {
            Test::Latency | Test::Rate | Test::Bandwidth | Test::Rpc => !self.no_pin,
            Test::Threads | Test::Streams => self.pin,
            Test::Idle | Test::Startup => false,
            // Only two members have a core each: see `plans`.
            Test::Collectives => !self.no_pin,
        }
    }

    /// One plan for each path; and for each number of ranks, if there are several.
    pub(crate) fn plans(&self, cores: &[usize]) -> Vec<Plan> {
        let mut paths = self.path.clone();
        paths.dedup();
        if self.test != Test::Collectives {
            return paths.iter().map(|path| self.plan(*path, cores)).collect();
        }
        let ranks = match &self.ranks[..] {
            [] => vec![2, 4, 8],
            given => given.to_vec(),
        };
        let each = self.threads.first().copied().unwrap_or(1);
        let group = |path, ranks: u32| {
            let (processes, members_each) = match path {
                Path::Thread => (1, ranks * each),
                _ => (ranks, each),
            };
            let cores = if ranks * each == 2 { cores } else { &[] };
            Plan {
                processes,
                members_each,
                ..self.plan(path, cores)
            }
        };
        let of_path = |path| ranks.iter().map(move |ranks| group(path, *ranks));
        paths.into_iter().flat_map(of_path).collect()
    }

    fn plan(&self, path: Path, cores: &[usize]) -> Plan {
        Plan {
            test: self.test,
            path,
            variant: Variant {
                post: self.post,
                lent: self.lent,
                packed: self.packed,
                separate: self.separate,
                asleep: self.asleep,
                idle_lanes: self.idle_lanes,
                in_flight: self.in_flight,
            },
            sizes: self.sizes(),
            threads: match &self.threads[..] {
                [] => vec![1, 2, 4, 8],
                given => given.to_vec(),
            },
            processes: self.processes(),
            operations: match &self.op[..] {
                [] if self.grid => Collective::WITH_SEVERAL_WAYS.to_vec(),
                [] => vec![
                    Collective::Barrier,
                    Collective::Broadcast,
                    Collective::AllReduce,
                ],
                given => given.to_vec(),
            },
            members_each: 1,
            grid: self.grid,
            runs: self.runs(),
            cores: cores.to_vec(),
            places: match self.places() {
                Ok(given) if !given.is_empty() => given,
                _ => this_host_twice(),
            },
            remote_shell: self.remote_shell.clone(),
            provider: self.provider.clone().unwrap_or_default(),
            authority: String::new(),
            memory: String::new(),
        }
    }

    /// The hosts given, if any.
    fn places(&self) -> anyhow::Result<Vec<Place>> {
        let hosts = parse_hosts(&self.hosts)?;
        ensure!(
            hosts.is_empty() || hosts.len() == 2,
            "--hosts takes two hosts, such as a=10.0.0.1,b=10.0.0.2"
        );
        let place = |host: hosts::Host| {
            let address = host.bind.parse();
            let address = address.with_context(|| {
                format!(
                    "{} needs the address to use, as {}=10.0.0.1",
                    host.name, host.name
                )
            })?;
            let host = host.name;
            Ok(Place { host, address })
        };
        hosts.into_iter().map(place).collect()
    }

    fn sizes(&self) -> Vec<usize> {
        const K: usize = 1 << 10;
        const M: usize = 1 << 20;
        if !self.sizes.is_empty() {
            return self.sizes.clone();
        }
        match self.test {
            Test::Latency if self.asleep => vec![8],
            Test::Latency if self.svg.is_some() => {
                vec![8, 32, 64, 256, K, 4 * K, 16 * K, 64 * K, 256 * K, M, 4 * M]
            }
            Test::Bandwidth if self.svg.is_some() => {
                vec![256, K, 4 * K, 16 * K, 64 * K, 256 * K, M, 4 * M]
            }
            Test::Bandwidth => vec![4 * K, 64 * K, M],
            Test::Rpc if self.in_flight > 0 => vec![0],
            Test::Rpc => vec![0, K, 64 * K, M],
            Test::Latency => vec![8, K, 64 * K, M],
            Test::Collectives if self.grid => vec![8, K, 16 * K, 256 * K],
            Test::Collectives => vec![8, 64 * K, M],
            _ => vec![8],
        }
    }

    fn processes(&self) -> u32 {
        let usual = if self.test == Test::Startup { 64 } else { 8 };
        self.processes.unwrap_or(usual)
    }

    fn runs(&self) -> u32 {
        self.runs.unwrap_or(match self.test {
            Test::Collectives if self.grid => 7,
            Test::Latency | Test::Rate | Test::Bandwidth | Test::Rpc | Test::Collectives => 21,
            Test::Threads | Test::Streams => 5,
            Test::Idle => 3,
            Test::Startup => 7,
        })
    }
}

/// Two hosts that are both this one: processes of different hosts use the network.
fn this_host_twice() -> Vec<Place> {
    let place = |host: &str| Place {
        host: host.into(),
        address: std::net::Ipv4Addr::LOCALHOST.into(),
    };
    vec![place("a"), place("b")]
}

fn participants(text: &str) -> Result<u32, String> {
    let count = text.parse().ok();
    count
        .filter(|count| (1..=MAX_PARTICIPANTS).contains(count))
        .ok_or_else(|| format!("give a whole number from 1 to {MAX_PARTICIPANTS}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::options::{Command, Options};

    fn parse(line: &str) -> Result<Bench, String> {
        let words = ["mizzen", "bench"].into_iter().chain(line.split(' '));
        let options = Options::try_parse_from(words).map_err(|error| error.to_string())?;
        let Command::Bench(bench) = options.command else {
            panic!("{line} is a measurement")
        };
        bench.check().map_err(|error| error.to_string())?;
        Ok(*bench)
    }

    #[test]
    fn a_test_alone_has_sensible_settings() {
        let plans = parse("latency").unwrap().plans(&[0, 1]);
        assert_eq!(plans.len(), 1);
        assert_eq!(plans[0].path, Path::Process);
        assert_eq!(plans[0].sizes, [8, 1024, 65_536, 1 << 20]);
        assert_eq!(plans[0].variant.to_string(), "");
        assert_eq!(plans[0].runs, 21);
        let plans = parse("startup").unwrap().plans(&[]);
        assert_eq!((plans[0].processes, plans[0].runs), (64, 7));
    }

    #[test]
    fn lists_are_separated_by_commas() {
        let plans = parse("latency --path thread,tcp --sizes 8,64K,1M")
            .unwrap()
            .plans(&[]);
        let paths: Vec<Path> = plans.iter().map(|plan| plan.path).collect();
        assert_eq!(paths, [Path::Thread, Path::Tcp]);
        assert_eq!(plans[1].sizes, [8, 65_536, 1 << 20]);
        let plans = parse("threads --threads 1,16").unwrap().plans(&[]);
        assert_eq!(plans[0].threads, [1, 16]);
    }

    #[test]
    fn groups_are_as_large_as_ranks_and_threads_say() {
        let line = "collectives --path process,thread --ranks 2,4 --threads 2";
        let plans = parse(line).unwrap().plans(&[0, 1]);
        let sizes = plans
            .iter()
            .map(|plan| (plan.job_size(), plan.participants()));
        assert_eq!(sizes.collect::<Vec<_>>(), [(2, 4), (4, 8), (1, 4), (1, 8)]);
        assert!(plans.iter().all(|plan| plan.cores.is_empty()));
        let plans = parse("collectives --ranks 2").unwrap().plans(&[0, 1]);
        assert_eq!(plans[0].cores, [0, 1], "two members have a core each");
    }

    #[test]
    fn variants_are_named_in_one_order() {
        let line = "latency --idle-lanes 3 --asleep --post";
        let plans = parse(line).unwrap().plans(&[]);
        assert_eq!(plans[0].variant.to_string(), "post,asleep,idle-lanes=3");
    }

    #[test]
    fn sides_are_pinned_where_each_has_a_core() {
        for (line, pins) in [
            ("latency", true),
            ("latency --no-pin", false),
            ("latency --no-pin --pin", true),
            ("threads", false),
            ("threads --pin", true),
            ("idle", false),
        ] {
            assert_eq!(parse(line).unwrap().pins(), pins, "{line}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_way_out() {
        for (line, words) in [
            ("speed", "invalid value 'speed'"),
            (
                "latency --path air",
                "[possible values: thread, process, tcp, tls, ofi]",
            ),
            (
                "latency --sizes 64Q",
                "write bytes, or a number with K or M",
            ),
            (
                "latency --threads 2",
                "--threads goes with threads, streams and collectives only",
            ),
            (
                "collectives --threads 2,4",
                "give one number with --threads",
            ),
            ("latency --ranks 2", "--ranks goes with collectives only"),
            ("rate --grid", "--grid goes with collectives only"),
            ("collectives --op sing", "invalid value 'sing'"),
            (
                "bandwidth --lent",
                "--lent goes with latency, rate and rpc only",
            ),
            (
                "idle --sizes 8",
                "--sizes goes with latency, rate, bandwidth, rpc and collectives only",
            ),
            ("threads --threads 0", "give a whole number from 1 to 1024"),
            ("latency --runs 0", "0 is not in 1..=10000"),
            ("latency --sizes 0", "only a call may be empty"),
            ("rpc --in-flight 8 --sizes 1K", "goes with empty calls"),
            ("latency --asleep --separate", "give one of them"),
            ("latency --packed --lent", "leave out --lent"),
            ("rpc --packed", "--packed goes with latency, rate and"),
            ("latency --asleep --sizes 4", "must be 8 or more"),
            ("startup --path thread", "give --path process"),
            ("rate --sizes 1M", "measure bandwidth"),
            (
                "rate --svg x.svg",
                "--svg goes with latency and bandwidth only",
            ),
        ] {
            let refusal = parse(line).unwrap_err();
            assert!(refusal.contains(words), "{line}: {refusal}");
        }
    }
}
