//! Who gets which certificate, and where the authority's secret is not.
//!
//! The processes are this test binary again: [`a_process_of_a_job`] is what they run.

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::me::Me;
use common::{Job, Script, mizzen, text};
use mizzen_identity::{Identity, Keys};
use mizzen_proto::boot::{ToAgent, split_frame};

const SCENARIO: &str = "MIZZEN_TEST_SCENARIO";
const TWO_HOSTS: [&str; 4] = [
    "--hosts",
    "h1=127.0.0.1,h2=127.0.0.1",
    "--remote-shell",
    "env",
];

fn command(scenario: &str, options: &[&str]) -> Command {
    let mut command = mizzen(options);
    command
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "a_process_of_a_job", "--nocapture"])
        .env(SCENARIO, scenario);
    command
}

fn run(scenario: &str, hosts: &[&str], options: &[&str]) -> Output {
    let options = [hosts, options].concat();
    command(scenario, &options).output().unwrap()
}

fn assert_ok(run: &Output) {
    let said = || format!("{}\n{}", text(&run.stdout), text(&run.stderr));
    assert_eq!(run.status.code(), Some(0), "{}", said());
}

#[test]
fn each_process_is_certified_as_itself() {
    assert_ok(&run("itself", &TWO_HOSTS, &["-n", "4"]));
}

#[test]
fn a_cluster_has_the_name_that_the_user_gives() {
    let options = ["-n", "2", "--cluster", "rome"];
    assert_ok(&run("rome", &TWO_HOSTS, &options));
    let wrong = run("rome", &TWO_HOSTS, &["-n", "2", "--cluster", "Rome."]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("a cluster's name has 1 to 63 of a-z"));
}

#[test]
fn a_life_is_certified_once() {
    assert_ok(&run("twice", &TWO_HOSTS, &["-n", "2"]));
}

#[test]
fn the_next_life_is_certified_as_such() {
    let options = ["-n", "2", "--on-death", "restart"];
    assert_ok(&run("restart", &TWO_HOSTS, &options));
}

#[test]
fn a_process_that_does_not_prove_possession_loses_its_socket() {
    assert_ok(&run("stolen", &TWO_HOSTS, &["-n", "2"]));
}

#[test]
fn a_job_of_one_host_has_no_authority() {
    assert_ok(&run("alone", &[], &["-n", "2"]));
}

/// What went to the agents is recorded by their remote shell: that is how this test knows the secret.
#[test]
fn the_secret_is_in_no_argument_environment_file_output_or_process() {
    let shell = Script::new(RECORDING_SHELL);
    let remote_shell = format!("sh {} {{host}}", shell.path());
    let hosts = "h1=127.0.0.1,h2=127.0.0.1";
    let options = ["-n", "2", "--hosts", hosts, "--remote-shell", &remote_shell];
    let mut job = Job::start(command("wait", &options));
    job.wait_for_lines(2, "has met the other");

    let secret = recorded_secret(&shell.directory().join("h1"));
    assert_eq!(secret, recorded_secret(&shell.directory().join("h2")));
    let needles = Needles::of(&secret);
    let mut agents = 0;
    for process in job.processes().into_iter().map(Observed::new) {
        // The remote shells know it, since they record it.
        if !process.is_ours() {
            continue;
        }
        for what in ["cmdline", "environ"] {
            let bytes = std::fs::read(process.path(what)).unwrap();
            assert!(!needles.are_in(&bytes), "in {what} of {process:?}");
        }
        for (file, bytes) in process.files() {
            assert!(!needles.are_in(&bytes), "in {file} of {process:?}");
        }
        let is_agent = process.is_agent();
        agents += usize::from(is_agent);
        match process.memory_holds(&needles) {
            // That it is found where it must be shows that it would be found elsewhere.
            Some(found) => assert_eq!(found, is_agent, "in the memory of {process:?}"),
            None => eprintln!("not looked at: the memory of {process:?}"),
        }
    }
    assert_eq!(agents, 2);

    job.signal(15);
    let stderr = job.stderr();
    job.wait();
    let mut stdout = Vec::new();
    std::io::Read::read_to_end(job.child.stdout.as_mut().unwrap(), &mut stdout).unwrap();
    assert!(!needles.are_in(stderr.as_bytes()) && !needles.are_in(&stdout));
    job.assert_nothing_is_left();
}

/// Runs a command here, as if on the host, and records what it reads.
const RECORDING_SHELL: &str = r#"
host=$1
shift
here=$(dirname "$0")
mkfifo "$here/$host.pipe"
exec 3<&0
tee "$here/$host" <&3 >"$here/$host.pipe" 2>/dev/null &
exec "$@" <"$here/$host.pipe" 3<&-
"#;

fn recorded_secret(file: &Path) -> Vec<u8> {
    let stream = std::fs::read(file).unwrap();
    let (frame, _) = split_frame(&stream).unwrap().unwrap();
    let ToAgent::Start(start) = ToAgent::decode(frame).unwrap() else {
        panic!("the first frame is the start");
    };
    start.authority.as_bytes().to_vec()
}

/// The secret's private key, as it might be written.
struct Needles(Vec<Vec<u8>>);

impl Needles {
    /// The private key is what comes before the last 32 bytes, which are the public one.
    fn of(secret: &[u8]) -> Self {
        let seed = &secret[secret.len() - 64..][..32];
        let hex: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
        let halves = [seed[..16].to_vec(), seed[16..].to_vec()];
        let hex = [hex.to_uppercase().into_bytes(), hex.into_bytes()];
        Self([&halves[..], &hex].concat())
    }

    fn are_in(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|needle| {
            let first = needle[0];
            let mut places = bytes.iter().enumerate().filter(|(_, byte)| **byte == first);
            places.any(|(place, _)| bytes[place..].starts_with(needle))
        })
    }
}

/// A process, as `/proc` shows it.
#[derive(Debug)]
struct Observed {
    pid: u32,
    arguments: String,
}

impl Observed {
    fn new(pid: u32) -> Self {
        let cmdline = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        Self {
            pid,
            arguments: text(&cmdline).replace('\0', " "),
        }
    }

    fn path(&self, what: &str) -> String {
        format!("/proc/{}/{what}", self.pid)
    }

    /// Whether it is a launcher, an agent, a guard or a process of the job.
    fn is_ours(&self) -> bool {
        let program = std::fs::read_link(self.path("exe")).unwrap();
        program == Path::new(env!("CARGO_BIN_EXE_mizzen"))
            || program == std::env::current_exe().unwrap()
    }

    fn is_agent(&self) -> bool {
        self.arguments.trim_end().ends_with(" agent")
    }

    /// The content of all files that it has open, those without a name too.
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(self.path("fd")).unwrap().flatten() {
            // Not pipes: reading takes from them, and waits.
            if std::fs::metadata(entry.path()).is_ok_and(|file| file.is_file()) {
                let bytes = std::fs::read(entry.path()).unwrap();
                files.push((entry.path().display().to_string(), bytes));
            }
        }
        files
    }

    /// Whether what it has written to its memory holds the secret; `None` if we may not look.
    fn memory_holds(&self, needles: &Needles) -> Option<bool> {
        use std::os::unix::fs::FileExt;
        let maps = std::fs::read_to_string(self.path("maps")).ok()?;
        let memory = std::fs::File::open(self.path("mem")).ok()?;
        let mut found = false;
        for map in maps.lines().filter(|map| map.contains(" rw-")) {
            let (range, _) = map.split_once(' ').unwrap();
            let (start, end) = range.split_once('-').unwrap();
            let address = |text| u64::from_str_radix(text, 16).unwrap();
            let mut bytes = vec![0; usize::try_from(address(end) - address(start)).unwrap()];
            // Some of what the kernel shows there cannot be read.
            if memory.read_exact_at(&mut bytes, address(start)).is_ok() {
                found |= needles.are_in(&bytes);
            }
        }
        Some(found)
    }
}

/// A process of a job. Run by the tests above.
#[test]
#[ignore = "run by the others, as a process of a job"]
fn a_process_of_a_job() {
    let Ok(scenario) = std::env::var(SCENARIO) else {
        return;
    };
    match scenario.as_str() {
        "itself" => assert_certified(&Me::boot(), "local"),
        "rome" => assert_certified(&Me::boot(), "rome"),
        "twice" => twice(&Me::boot()),
        "restart" => restart(&Me::boot()),
        "stolen" => stolen(&Me::boot()),
        "alone" => alone(&Me::boot()),
        "wait" => wait(),
        other => panic!("{other}"),
    }
}

fn assert_certified(me: &Me, cluster: &str) {
    let boot = &me.boot;
    assert_eq!(boot.cluster, cluster);
    let job = boot.job.to_be_bytes();
    let expected = Identity::new(cluster, job, boot.rank, boot.incarnation).unwrap();
    assert_eq!(*me.certify().unwrap().identity(), expected);
}

fn twice(me: &Me) {
    me.certify().unwrap();
    assert_eq!(me.ask(Keys::generate().unwrap().request()), None);
}

fn restart(me: &Me) {
    assert_certified(me, "local");
    if me.boot.rank == 1 && me.boot.incarnation == 0 {
        std::process::exit(1);
    }
}

fn stolen(me: &Me) {
    let mut request = Keys::generate().unwrap().request();
    let another = Keys::generate().unwrap().request();
    request[1..33].copy_from_slice(&another[1..33]);
    assert_eq!(me.ask(request), None);
}

fn alone(me: &Me) {
    assert_eq!(me.boot.authority, []);
    assert_eq!(me.ask(Keys::generate().unwrap().request()), None);
}

/// Meets the process on the other host, and stays.
fn wait() {
    let deck = mizzen::Deck::join().unwrap();
    let (me, other) = if deck.rank().0 == 0 {
        ("a", "b")
    } else {
        ("b", "a")
    };
    let mailbox = deck.mailbox().unwrap();
    deck.bind(me, &mailbox).unwrap();
    let found = deck.fetch_timeout(other, common::PATIENCE).unwrap();
    found.send(&7u64).unwrap();
    let got: u64 = mailbox.receive().unwrap();
    assert_eq!(got, 7);
    println!("{me} has met the other");
    loop {
        std::thread::park();
    }
}
