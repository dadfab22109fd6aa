//! Two halves of a job that meet through gateways of two sites: the real command, real gateways, on one host.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Two sites with a gateway each. b dials a. Gone at the end.
struct Sites {
    folder: PathBuf,
    gateways: Vec<Child>,
    doors: [u16; 2],
}

impl Sites {
    /// Both let `render` be met.
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mizzen-meet-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        let [outside, of_a, of_b] = free_ports();
        let mut sites = Self {
            folder,
            gateways: vec![],
            doors: [of_a, of_b],
        };
        let at = |port: u16| format!("127.0.0.1:{port}");
        sites.site(&[
            "init",
            "a",
            "--listen",
            &at(outside),
            "--inside",
            &at(of_a),
            "--dir",
            &sites.at("a"),
        ]);
        sites.site(&["init", "b", "--inside", &at(of_b), "--dir", &sites.at("b")]);
        let pins = ["a", "b"].map(|site| sites.pin(site));
        sites.site(&[
            "add",
            "b",
            &pins[1],
            "--export",
            "render",
            "--dir",
            &sites.at("a"),
        ]);
        let reach = at(outside);
        sites.site(&[
            "add",
            "a",
            &pins[0],
            "--reach",
            &reach,
            "--export",
            "render",
            "--dir",
            &sites.at("b"),
        ]);
        sites.site(&["secret", &sites.at("secret")]);
        sites.gateways = ["a", "b"].map(|site| sites.gateway(site)).into();
        sites.wait_until_connected();
        sites
    }

    fn at(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    fn site(&self, args: &[&str]) -> String {
        let run = mizzen("site").args(args).output().unwrap();
        assert!(
            run.status.success(),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
        String::from_utf8(run.stdout).unwrap()
    }

    fn pin(&self, site: &str) -> String {
        let shown = self.site(&["show", "--dir", &self.at(site)]);
        let key = shown.lines().find_map(|line| line.strip_prefix("key"));
        key.unwrap().trim().to_owned()
    }

    fn gateway(&self, site: &str) -> Child {
        let log = fs::File::create(self.folder.join(format!("{site}.log"))).unwrap();
        let mut command = mizzen("gateway");
        command.args(["--dir", &self.at(site)]).stderr(log);
        command.spawn().unwrap()
    }

    fn wait_until_connected(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let status = mizzen("site")
                .args(["status", "--dir", &self.at("a")])
                .output()
                .unwrap();
            if String::from_utf8_lossy(&status.stdout).contains("site b: dialled by gw1") {
                return;
            }
            assert!(Instant::now() < deadline, "the gateways did not meet");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A half of `render` at a site, with what it runs; `more` are options.
    fn half(&self, site: usize, more: &[&str], script: &str) -> Half {
        let other = ["b", "a"][site];
        let mut command = mizzen("run");
        command
            .args([
                "--meet",
                &format!("render@{other}"),
                "--secret",
                &self.at("secret"),
            ])
            .args(["--door", &format!("127.0.0.1:{}", self.doors[site])])
            .args(more)
            .args(["--", "sh", "-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Half(command.spawn().unwrap())
    }
}

impl Drop for Sites {
    fn drop(&mut self) {
        for gateway in &mut self.gateways {
            let _ = gateway.kill();
            let _ = gateway.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A launcher that runs. Killed at the end, if it has not ended.
struct Half(Child);

impl Half {
    /// How it ended, what its ranks wrote, in any order, and what it said.
    fn end(mut self) -> (ExitStatus, Vec<String>, String) {
        let deadline = Instant::now() + Duration::from_secs(50);
        while self.0.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        let (mut out, mut err) = (String::new(), String::new());
        self.0
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        self.0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        let mut lines: Vec<String> = out.lines().map(str::to_owned).collect();
        lines.sort();
        (self.0.wait().unwrap(), lines, err)
    }

    /// The next line that its ranks write.
    fn line(&mut self) -> String {
        let mut line = String::new();
        // One byte at a time: what follows is read later.
        let mut out = BufReader::with_capacity(1, self.0.stdout.as_mut().unwrap());
        out.read_line(&mut line).unwrap();
        line
    }

    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(
            Command::new("kill")
                .args([name, &pid])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn mizzen(command: &str) -> Command {
    let mut mizzen = Command::new(env!("CARGO_BIN_EXE_mizzen"));
    mizzen.arg(command);
    mizzen
}

/// Ports at which nobody listens, below those that the system gives to whoever asks for any: nobody gets them in a moment.
fn free_ports<const N: usize>() -> [u16; N] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    [(); N].map(|()| {
        loop {
            let number = std::process::id() * 31 + NEXT.fetch_add(1, Ordering::Relaxed);
            let port = 10_000 + (number % 20_000) as u16;
            if TcpListener::bind(("127.0.0.1", port)).is_ok() {
                return port;
            }
        }
    })
}

const WHO: &str = "echo $MIZZEN_RANK of $MIZZEN_SIZE, $MIZZEN_LOCAL_RANK of $MIZZEN_LOCAL_SIZE on ${MIZZEN_HOST%%:*}, $NAME";

#[test]
fn two_halves_are_one_job_whoever_comes_first() {
    let sites = Sites::new();
    for first in [0, 1] {
        let named = |name: &str| format!("NAME={name}; {WHO}");
        let (a, b);
        if first == 0 {
            a = sites.half(0, &["-n", "2"], &named("ours"));
            std::thread::sleep(Duration::from_millis(300));
            b = sites.half(1, &["-n", "3"], &named("theirs"));
        } else {
            b = sites.half(1, &["-n", "3"], &named("theirs"));
            std::thread::sleep(Duration::from_millis(300));
            a = sites.half(0, &["-n", "2"], &named("ours"));
        }
        let ((code_a, of_a, said_a), (code_b, of_b, said_b)) = (a.end(), b.end());
        assert!(code_a.success() && code_b.success(), "{said_a}{said_b}");
        assert_eq!(
            of_a,
            [
                "[0] 0 of 5, 0 of 2 on a, ours",
                "[1] 1 of 5, 1 of 2 on a, ours"
            ]
        );
        let theirs: Vec<String> = (2..5)
            .map(|rank| format!("[{rank}] {rank} of 5, {} of 3 on b, theirs", rank - 2))
            .collect();
        assert_eq!(of_b, theirs);
        assert!(
            said_b.contains("ranks 2 to 4 of 5 are this site's"),
            "{said_b}"
        );
    }
}

/// More than either launcher holds, and each prints its own.
#[test]
fn all_that_is_written_is_printed_at_its_site() {
    let sites = Sites::new();
    let script = "seq 1 200000";
    let halves = [
        sites.half(0, &["--no-label"], script),
        sites.half(1, &["--no-label"], script),
    ];
    let expected: Vec<String> = (1..=200_000)
        .map(|number: u32| number.to_string())
        .collect();
    // Read while they write: nobody else does.
    let read = halves.map(|mut half| {
        let mut out = half.0.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut text = String::new();
            out.read_to_string(&mut text).unwrap();
            (text, half.0.wait().unwrap())
        })
    });
    for (text, code) in read.map(|read| read.join().unwrap()) {
        assert!(code.success() && text.lines().eq(&expected));
    }
}

/// As with one launcher: nobody reads it, so it ends.
#[test]
fn a_half_whose_output_nobody_reads_ends_the_job() {
    let sites = Sites::new();
    let a = sites.half(0, &[], "exec sleep 60");
    let mut b = sites.half(1, &[], "while :; do echo more; done");
    assert!(b.line().contains("more"));
    drop(b.0.stdout.take());
    let (code, _, said) = a.end();
    assert_eq!(code.code(), Some(141), "{said}");
    assert_eq!(b.0.wait().unwrap().code(), Some(141));
}

/// Each half has the environment and the folder of who started it.
#[test]
fn a_half_has_its_own_surroundings() {
    let sites = Sites::new();
    let script = "echo $SECRET_OF_A $(basename $PWD)";
    let folder = sites.folder.join("b");
    let mut a = mizzen("run");
    a.env("SECRET_OF_A", "x")
        .current_dir(sites.folder.join("a"));
    let mut b = mizzen("run");
    b.current_dir(folder);
    let halves = [a, b].into_iter().zip([0, 1]).map(|(mut command, site)| {
        command
            .args([
                "--meet",
                ["render@b", "render@a"][site],
                "--secret",
                &sites.at("secret"),
            ])
            .args(["--door", &format!("127.0.0.1:{}", sites.doors[site])])
            .args(["--", "sh", "-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Half(command.spawn().unwrap())
    });
    let ended: Vec<_> = halves
        .collect::<Vec<_>>()
        .into_iter()
        .map(Half::end)
        .collect();
    assert_eq!(ended[0].1, ["[0] x a"], "{}", ended[0].2);
    assert_eq!(ended[1].1, ["[1] b"], "{}", ended[1].2);
}

#[test]
fn a_death_at_either_site_ends_the_job_at_both() {
    let sites = Sites::new();
    for dying in [0, 1] {
        let script = |site: usize| {
            if site == dying {
                "exit 7"
            } else {
                "exec sleep 60"
            }
        };
        let halves = [sites.half(0, &[], script(0)), sites.half(1, &[], script(1))];
        for (code, _, said) in halves.map(Half::end) {
            assert_eq!(code.code(), Some(7), "{said}");
            assert!(
                said.contains(&format!("rank {dying} ")) && said.contains("exited with code 7"),
                "{said}"
            );
        }
    }
}

#[test]
fn a_signal_at_either_site_reaches_all() {
    let sites = Sites::new();
    for asked in [0, 1] {
        let script = "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
        let mut halves = [sites.half(0, &[], script), sites.half(1, &[], script)];
        for half in &mut halves {
            assert!(half.line().contains("ready"));
        }
        halves[asked].signal("-TERM");
        for (site, (_, lines, said)) in halves.map(Half::end).into_iter().enumerate() {
            assert_eq!(lines, [format!("[{site}] asked")], "{said}");
        }
    }
}

/// Whichever launcher is killed, nothing is left at the other site, and it is told.
#[test]
fn when_one_launcher_is_killed_the_other_half_ends() {
    let sites = Sites::new();
    for killed in [0, 1] {
        let mut halves = [0, 1].map(|site| sites.half(site, &[], "echo $$; exec sleep 60"));
        let pids = halves.each_mut().map(|half| {
            let line = half.line();
            line.trim().split(' ').nth(1).unwrap().to_owned()
        });
        halves[killed].signal("-KILL");
        let ended = halves.map(Half::end);
        let (code, _, said) = &ended[1 - killed];
        assert!(
            code.code().is_some_and(|code| code != 0) && !said.is_empty(),
            "{code} {said}"
        );
        let deadline = Instant::now() + Duration::from_secs(20);
        for pid in pids {
            while fs::metadata(format!("/proc/{pid}/exe")).is_ok() {
                assert!(Instant::now() < deadline, "process {pid} is left");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

#[test]
fn who_has_another_secret_is_not_the_other_half() {
    let sites = Sites::new();
    let a = sites.half(0, &[], "echo $MIZZEN_SIZE");
    let other = sites.at("other");
    sites.site(&["secret", &other]);
    let mut wrong = mizzen("run");
    wrong.args([
        "--meet",
        "render@a",
        "--secret",
        &other,
        "--door",
        &format!("127.0.0.1:{}", sites.doors[1]),
    ]);
    let wrong = wrong.args(["--", "true"]).output().unwrap();
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(
        !wrong.status.success() && said.contains("both must have the same --secret"),
        "{said}"
    );
    // The right one still may come.
    let b = sites.half(1, &[], "echo $MIZZEN_SIZE");
    let (code, lines, said) = a.end();
    assert!(code.success() && lines == ["[0] 2"], "{said}");
    assert!(
        said.contains("somebody came who is not the other half"),
        "{said}"
    );
    assert_eq!(b.end().1, ["[1] 2"]);
}

#[test]
fn what_cannot_be_met_is_refused_with_a_sentence() {
    let sites = Sites::new();
    let door = format!("127.0.0.1:{}", sites.doors[0]);
    let refused = |args: &[&str], expected: &str| {
        let run = mizzen("run")
            .args(args)
            .args(["--", "true"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(
            !run.status.success() && said.contains(expected),
            "{args:?}: {said}"
        );
    };
    let secret = sites.at("secret");
    let with = |meet: &'static str| vec!["--meet", meet, "--secret", &secret, "--door", &door];
    refused(
        &with("payroll@b"),
        "does not let \"payroll\" be met with site \"b\"",
    );
    refused(&with("render@c"), "does not know a site \"c\"");
    refused(&with("render@a"), "which cannot meet itself");
    refused(
        &["--meet", "render@b", "--door", &door],
        "--meet needs --secret",
    );
    refused(&["--meet", "render"], "JOB@SITE");
    let nowhere = free_ports::<1>()[0].to_string();
    let nowhere = format!("127.0.0.1:{nowhere}");
    refused(
        &[
            "--meet", "render@b", "--secret", &secret, "--door", &nowhere,
        ],
        "does not answer as such at",
    );
    refused(
        &["--meet", "render@b", "--secret", &secret, "--file", "x"],
        "cannot be used with",
    );
    let short = sites.at("short");
    fs::write(&short, "xyzzy\n").unwrap();
    refused(
        &["--meet", "render@b", "--secret", &short, "--door", &door],
        "is open to others",
    );
    fs::set_permissions(&short, fs::Permissions::from_mode(0o600)).unwrap();
    refused(
        &["--meet", "render@b", "--secret", &short, "--door", &door],
        "it takes 32 to",
    );
}

#[test]
fn halves_that_disagree_are_told_about_what() {
    let sites = Sites::new();
    let a = sites.half(0, &[], "true");
    let b = sites.half(1, &["--on-death", "continue"], "true");
    let (code, _, said) = b.end();
    let expected =
        "--on-death is stop at site \"a\" and continue at site \"b\"; give the same at both";
    assert!(!code.success() && said.contains(expected), "{said}");
    // It says so, and goes on waiting.
    std::thread::sleep(Duration::from_millis(500));
    a.signal("-INT");
    let (code, _, said) = a.end();
    assert!(
        said.contains("was sent away, and may come again: --on-death"),
        "{said}"
    );
    assert!(
        code.code() == Some(130) && said.contains("before the other half of the job was there"),
        "{said}"
    );
}

/// The job ends: without the other site it cannot go on.
#[test]
fn a_site_that_is_revoked_ends_what_it_has_met() {
    let sites = Sites::new();
    let mut halves = [0, 1].map(|site| sites.half(site, &[], "echo ready; exec sleep 60"));
    for half in &mut halves {
        assert!(half.line().contains("ready"));
    }
    let began = Instant::now();
    sites.site(&["revoke", "b", "--dir", &sites.at("a")]);
    let status = || sites.site(&["status", "--dir", &sites.at("a")]);
    while !(status().contains("site b: not connected") && status().contains(" 0 streams")) {
        assert!(began.elapsed() < Duration::from_secs(2), "{}", status());
        std::thread::sleep(Duration::from_millis(20));
    }
    for (code, _, said) in halves.map(Half::end) {
        assert!(!code.success() && !said.is_empty(), "{said}");
    }
    let (code, _, said) = sites.half(1, &[], "true").tap_interrupt();
    assert!(
        !code.success() && said.contains("cannot be reached"),
        "{said}"
    );
}

impl Half {
    /// Waits until it has said why it waits, and ends it.
    fn tap_interrupt(self) -> (ExitStatus, Vec<String>, String) {
        std::thread::sleep(Duration::from_secs(2));
        self.signal("-INT");
        self.end()
    }
}
