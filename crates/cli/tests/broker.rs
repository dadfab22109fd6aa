//! Introductions, seen by processes that speak `mizzen_proto::boot` over the inherited socket.
//!
//! The processes are this test binary again: [`a_process_of_a_job`] is what they run.

#![allow(unsafe_code)]

mod common;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Command, Output};

use common::{mizzen, text};
use mizzen_proto::boot::{AGENT_FD, Boot, Death, FromProcess, MAX_PACKET, ToProcess, Unreachable};
use mizzen_shm::{ProcessError, ProcessFd, ProcessStamp, Socket, SocketError};

const SCENARIO: &str = "MIZZEN_TEST_SCENARIO";

fn run(scenario: &str, options: &[&str]) -> Output {
    let itself = std::env::current_exe().unwrap();
    let mut command: Command = mizzen(options);
    command
        .arg(itself)
        .args(["--ignored", "--exact", "a_process_of_a_job", "--nocapture"]);
    command.env(SCENARIO, scenario).output().unwrap()
}

fn assert_code(run: &Output, code: i32) {
    assert_eq!(
        run.status.code(),
        Some(code),
        "{}\n{}",
        text(&run.stdout),
        text(&run.stderr)
    );
}

#[test]
fn processes_of_a_host_meet_once_each_whoever_asks() {
    assert_code(&run("meet", &["-n", "5"]), 0);
}

#[test]
fn the_agent_answers_for_those_who_cannot_be_met() {
    assert_code(&run("strangers", &["-n", "2"]), 0);
}

#[test]
fn a_restarted_process_is_met_again() {
    assert_code(
        &run(
            "restart",
            &["-n", "3", "--on-death", "restart", "--max-restarts", "50"],
        ),
        0,
    );
}

#[test]
fn a_death_is_told_when_the_job_goes_on() {
    assert_code(&run("death", &["-n", "3", "--on-death", "continue"]), 7);
}

#[test]
fn who_left_is_not_met() {
    assert_code(&run("leave", &["-n", "2"]), 0);
    assert_code(
        &run(
            "leave",
            &["-n", "2", "--hosts", "h1,h2", "--remote-shell", "env"],
        ),
        0,
    );
}

#[test]
fn processes_of_other_hosts_are_found_by_their_locator() {
    let hosts = "h1=127.0.0.1,h2=127.0.0.1";
    assert_code(
        &run(
            "network",
            &["-n", "4", "--hosts", hosts, "--remote-shell", "env"],
        ),
        0,
    );
}

#[test]
fn restarts_are_told_on_other_hosts() {
    let options = [
        "-n",
        "3",
        "--hosts",
        "h1,h2,h3",
        "--remote-shell",
        "env",
        "--on-death",
        "restart",
        "--max-restarts",
        "50",
    ];
    assert_code(&run("elsewhere", &options), 0);
}

#[test]
fn many_restarts_are_survived() {
    assert_code(
        &run(
            "lives",
            &["-n", "2", "--on-death", "restart", "--max-restarts", "50"],
        ),
        0,
    );
}

#[test]
fn who_waits_for_those_who_ended_is_told_to_the_user() {
    let here = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let remote = ["-n", "4", "--hosts", "h1,h2", "--remote-shell", "env"];
    for (options, host) in [(&["-n", "4"][..], here.trim()), (&remote, "h1")] {
        let run = run("waiting", options);
        assert_code(&run, 0);
        let expected = format!(
            "mizzen: rank 0 on {host} has waited 10 s for a message; the other 3 processes have ended.\n"
        );
        assert_eq!(text(&run.stderr), expected, "once, though said twice");
    }
}

#[test]
fn the_first_to_fail_is_named_not_those_who_fail_because_of_it() {
    let run = run("follow", &["-n", "4"]);
    assert_code(&run, 9);
    let stderr = text(&run.stderr);
    assert!(stderr.starts_with("mizzen: rank 2 on "), "{stderr}");
}

#[test]
fn a_process_that_talks_nonsense_loses_its_socket_only() {
    assert_code(&run("nonsense", &["-n", "2"]), 0);
}

#[test]
fn the_environment_holds_a_number_of_a_descriptor_and_no_secret() {
    assert_code(&run("secret", &["-n", "1"]), 0);
}

/// A process of a job. Run by the tests above.
#[test]
#[ignore = "run by the others, as a process of a job"]
fn a_process_of_a_job() {
    let Ok(scenario) = std::env::var(SCENARIO) else {
        return;
    };
    let mut me = Me::boot();
    match scenario.as_str() {
        "meet" => meet(&mut me),
        "strangers" => strangers(&mut me),
        "restart" => restart(&mut me),
        "death" => death(&mut me),
        "leave" => leave(&mut me),
        "network" => network(&mut me),
        "elsewhere" => elsewhere(&mut me),
        "lives" => lives(&mut me),
        "waiting" => waiting(&me),
        "follow" => follow(me),
        "nonsense" => nonsense(&mut me),
        "secret" => secret(&me),
        other => panic!("{other}"),
    }
}

struct Me {
    agent: Socket,
    boot: Boot,
}

struct Peer {
    incarnation: u32,
    socket: Socket,
    process: ProcessStamp,
}

impl Me {
    fn boot() -> Self {
        let number = std::env::var(AGENT_FD).unwrap().parse().unwrap();
        // SAFETY: the agent left the descriptor of that number open for us, and nothing in this process has taken it.
        let fd = unsafe { OwnedFd::from_raw_fd(number) };
        let agent = Socket::from_fd(fd).unwrap();
        let mut buf = [0; MAX_PACKET];
        let received = agent.recv(&mut buf).unwrap();
        let ToProcess::Boot(boot) = ToProcess::decode(&buf[..received.len]).unwrap() else {
            panic!("the first packet says who we are");
        };
        Self { agent, boot: *boot }
    }

    fn say(&self, packet: &FromProcess) {
        let mut bytes = Vec::new();
        packet.encode(&mut bytes).unwrap();
        self.agent.send(&bytes, &[]).unwrap();
    }

    fn hear(&self) -> (ToProcess, Vec<OwnedFd>) {
        let mut buf = [0; MAX_PACKET];
        loop {
            let received = self.agent.recv(&mut buf).unwrap();
            let packet = ToProcess::decode(&buf[..received.len]).unwrap();
            if !is_epoch(&packet) {
                return (packet, received.fds);
            }
        }
    }

    fn assert_nothing_is_heard(&self) {
        let mut buf = [0; MAX_PACKET];
        while let Some(received) = self.agent.try_recv(&mut buf).unwrap() {
            let packet = ToProcess::decode(&buf[..received.len]).unwrap();
            assert!(is_epoch(&packet), "{packet:?}");
        }
    }

    fn hear_peer(&self) -> (u32, Peer) {
        let (packet, fds) = self.hear();
        match packet {
            ToProcess::Peer { rank, .. } => (rank, Peer::new(&packet, fds)),
            _ => panic!("{packet:?}"),
        }
    }

    fn reach(&self, rank: u32) -> Peer {
        self.say(&FromProcess::Reach { rank });
        let (found, peer) = self.hear_peer();
        assert_eq!(found, rank);
        peer
    }

    /// Waits until the agent, or the launcher, knows that a process has ended in order.
    fn wait_until_gone(&self, rank: u32) {
        loop {
            self.say(&FromProcess::Reach { rank });
            match self.hear() {
                (
                    ToProcess::Unreachable {
                        reason: Unreachable::Left,
                        ..
                    },
                    _,
                ) => return,
                // Once it has ended, the agent hears of it soon.
                (packet @ ToProcess::Peer { .. }, fds) => {
                    Peer::new(&packet, fds).wait_for_end();
                }
                (other, _) => panic!("{other:?}"),
            }
        }
    }

    fn reach_in_vain(&self, rank: u32, expected: Unreachable) {
        self.say(&FromProcess::Reach { rank });
        assert_eq!(
            self.hear().0,
            ToProcess::Unreachable {
                rank,
                reason: expected
            }
        );
    }
}

impl Peer {
    fn new(packet: &ToProcess, fds: Vec<OwnedFd>) -> Self {
        let ToProcess::Peer {
            incarnation,
            pid,
            started,
            ..
        } = *packet
        else {
            panic!("{packet:?}")
        };
        let [socket] = <[OwnedFd; 1]>::try_from(fds).unwrap();
        Self {
            incarnation,
            socket: Socket::from_fd(socket).unwrap(),
            process: ProcessStamp { pid, started },
        }
    }

    fn tell(&self, word: u32) {
        self.socket.send(&word.to_le_bytes(), &[]).unwrap();
    }

    fn told(&self) -> u32 {
        let mut word = [0; 4];
        assert_eq!(self.socket.recv(&mut word).unwrap().len, 4);
        u32::from_le_bytes(word)
    }

    /// Exchanges pids, and checks that the stamp is of the one who answers.
    fn greet(&self) {
        self.tell(std::process::id());
        let pid = self.told();
        assert_eq!(self.process, ProcessStamp::of(pid));
        assert!(!self.is_dead());
    }

    fn is_dead(&self) -> bool {
        match self.process.open() {
            Ok(process) => process.is_dead(),
            Err(ProcessError::Gone) => true,
            Err(error) => panic!("{error}"),
        }
    }

    fn wait_for_end(&self) {
        assert!(matches!(
            self.socket.recv(&mut [0; 16]),
            Err(SocketError::Closed)
        ));
        while !self.is_dead() {
            std::thread::yield_now();
        }
    }
}

/// Which epoch it is comes in between, whatever happens.
fn is_epoch(packet: &ToProcess) -> bool {
    matches!(packet, ToProcess::Epoch { .. } | ToProcess::Fenced { .. })
}

fn die() -> ! {
    ProcessFd::open(std::process::id())
        .unwrap()
        .send_signal(9)
        .unwrap();
    unreachable!("killed");
}

fn meet(me: &mut Me) {
    // All ask all at once, so that requests cross.
    let others: Vec<u32> = (0..me.boot.size)
        .filter(|rank| *rank != me.boot.rank)
        .collect();
    for rank in &others {
        me.say(&FromProcess::Reach { rank: *rank });
    }
    let mut peers = BTreeMap::new();
    for _ in &others {
        let (rank, peer) = me.hear_peer();
        assert!(peers.insert(rank, peer).is_none(), "met {rank} twice");
    }
    assert!(peers.keys().eq(&others));
    for peer in peers.values() {
        peer.greet();
    }
    // Everyone has asked everyone before greeting, so a second introduction would be there by now.
    me.assert_nothing_is_heard();
    // Nobody goes before all have looked.
    for peer in peers.values() {
        peer.tell(0);
    }
    for peer in peers.values() {
        assert_eq!(peer.told(), 0);
    }
    me.say(&FromProcess::Leaving);
}

fn strangers(me: &mut Me) {
    for rank in [me.boot.rank, 2, u32::MAX] {
        me.reach_in_vain(rank, Unreachable::NoSuchRank);
    }
}

fn restart(me: &mut Me) {
    if me.boot.rank == 1 {
        let (_, first) = me.hear_peer();
        let (_, second) = me.hear_peer();
        for peer in [&first, &second] {
            peer.greet();
            // They have heard from us what they must before we are gone.
            assert_eq!(peer.told(), 1);
        }
        if me.boot.incarnation == 0 {
            die();
        }
        // They stay until we have looked at them.
        first.tell(2);
        second.tell(2);
        return;
    }
    let peer = me.reach(1);
    assert_eq!(peer.incarnation, 0);
    peer.greet();
    peer.tell(1);
    peer.wait_for_end();
    assert_eq!(
        me.hear().0,
        ToProcess::Died {
            rank: 1,
            incarnation: 0,
            how: Death::Signal(9)
        }
    );
    assert_eq!(
        me.hear().0,
        ToProcess::Joined {
            rank: 1,
            incarnation: 1
        }
    );
    let peer = me.reach(1);
    assert_eq!(peer.incarnation, 1);
    peer.greet();
    peer.tell(1);
    assert_eq!(peer.told(), 2);
}

fn death(me: &mut Me) {
    if me.boot.rank == 1 {
        std::process::exit(7);
    }
    assert_eq!(
        me.hear().0,
        ToProcess::Died {
            rank: 1,
            incarnation: 0,
            how: Death::Exit(7)
        }
    );
    me.reach_in_vain(1, Unreachable::Dead);
}

fn leave(me: &mut Me) {
    me.say(&FromProcess::Ready {
        locator: "somewhere".into(),
    });
    if me.boot.rank == 1 {
        me.say(&FromProcess::Leaving);
        return;
    }
    // Until the agent has heard of it, it is met or found; then no more. Every request has an answer.
    loop {
        me.say(&FromProcess::Reach { rank: 1 });
        match me.hear().0 {
            ToProcess::Unreachable {
                rank: 1,
                reason: Unreachable::Left,
            } => return,
            ToProcess::Address { rank: 1, .. } | ToProcess::Peer { rank: 1, .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

fn network(me: &mut Me) {
    let listener = std::net::TcpListener::bind((me.boot.bind.as_str(), 0)).unwrap();
    me.say(&FromProcess::Ready {
        locator: listener.local_addr().unwrap().to_string(),
    });
    // Ranks 0 and 1 are on one host, 2 and 3 on the other.
    if me.boot.rank < 2 {
        for rank in (0..4).filter(|rank| *rank != me.boot.rank) {
            me.say(&FromProcess::Reach { rank });
        }
        let (mut met, mut neighbour) = (Vec::new(), None);
        for _ in 0..3 {
            match me.hear() {
                (
                    ToProcess::Address {
                        rank,
                        incarnation: 0,
                        locator,
                    },
                    fds,
                ) if fds.is_empty() => {
                    let mut stream = std::net::TcpStream::connect(&locator).unwrap();
                    stream
                        .write_all(&[u8::try_from(me.boot.rank).unwrap()])
                        .unwrap();
                    let mut answer = [0];
                    stream.read_exact(&mut answer).unwrap();
                    assert_eq!(u32::from(answer[0]), rank);
                    met.push(rank);
                }
                (
                    ToProcess::Peer {
                        rank,
                        incarnation: 0,
                        ..
                    },
                    mut fds,
                ) if fds.len() == 1 => {
                    neighbour = Some(Socket::from_fd(fds.remove(0)).unwrap());
                    met.push(rank);
                }
                (other, _) => panic!("{other:?}"),
            }
        }
        met.sort_unstable();
        assert_eq!(met, [1 - me.boot.rank, 2, 3]);
        // Neither goes before the other has asked: who is gone is answered for by the agent.
        let neighbour = neighbour.unwrap();
        neighbour.send(b"done", &[]).unwrap();
        assert_eq!(neighbour.recv(&mut [0; 16]).unwrap().len, 4);
    } else {
        let mut heard = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut word = [0];
            stream.read_exact(&mut word).unwrap();
            stream
                .write_all(&[u8::try_from(me.boot.rank).unwrap()])
                .unwrap();
            heard.push(word[0]);
        }
        heard.sort_unstable();
        assert_eq!(heard, [0, 1]);
    }
}

fn elsewhere(me: &mut Me) {
    let locator = format!("life {}", me.boot.incarnation);
    match (me.boot.rank, me.boot.incarnation) {
        (1, 0) => die(),
        (1, _) => me.say(&FromProcess::Ready { locator }),
        _ => {
            assert_eq!(
                me.hear().0,
                ToProcess::Died {
                    rank: 1,
                    incarnation: 0,
                    how: Death::Signal(9)
                }
            );
            assert_eq!(
                me.hear().0,
                ToProcess::Joined {
                    rank: 1,
                    incarnation: 1
                }
            );
            me.say(&FromProcess::Reach { rank: 1 });
            match me.hear().0 {
                ToProcess::Address {
                    rank,
                    incarnation,
                    locator,
                } => {
                    assert_eq!((rank, incarnation, locator.as_str()), (1, 1, "life 1"));
                }
                // It needs nobody, so it may be gone.
                ToProcess::Unreachable {
                    rank: 1,
                    reason: Unreachable::Left,
                } => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn lives(me: &mut Me) {
    const LIVES: u32 = 40;
    if me.boot.rank == 1 {
        if me.boot.incarnation < LIVES {
            die();
        }
        return;
    }
    for incarnation in 0..LIVES {
        assert_eq!(
            me.hear().0,
            ToProcess::Died {
                rank: 1,
                incarnation,
                how: Death::Signal(9)
            }
        );
        assert_eq!(
            me.hear().0,
            ToProcess::Joined {
                rank: 1,
                incarnation: incarnation + 1
            }
        );
    }
}

fn waiting(me: &Me) {
    if me.boot.rank != 0 {
        return;
    }
    for rank in 1..me.boot.size {
        me.wait_until_gone(rank);
    }
    for text in ["has waited 10 s\nfor a message", "has waited 20 s"] {
        me.say(&FromProcess::Waiting { text: text.into() });
    }
}

fn follow(me: Me) {
    if me.boot.rank != 2 {
        let (_, peer) = me.hear_peer();
        let closed = peer.socket.recv(&mut [0; 16]);
        assert!(matches!(closed, Err(SocketError::Closed)));
        std::process::exit(3);
    }
    // The others say nothing to the agent, so that it sees no event of theirs before our end.
    let peers = [0, 1, 3].map(|rank| me.reach(rank));
    // As the kernel does when a process ends: first its descriptors are closed, then its end is seen.
    drop(me);
    // Their sockets are closed here too, and what is known of each stays.
    let processes = peers.map(|peer| peer.process.open().unwrap());
    while !processes.iter().any(ProcessFd::is_dead) {
        std::thread::yield_now();
    }
    std::process::exit(9);
}

fn nonsense(me: &mut Me) {
    if me.boot.rank == 0 {
        me.agent.send(&[99, 1, 2, 3], &[]).unwrap();
        // What it was told before comes first.
        let closed = loop {
            match me.agent.recv(&mut [0; 16]) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(matches!(closed, SocketError::Closed), "{closed}");
    } else {
        me.reach_in_vain(7, Unreachable::NoSuchRank);
    }
}

fn secret(me: &Me) {
    assert_ne!(me.boot.job, 0);
    let ours: Vec<String> = std::env::vars()
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("MIZZEN"))
        .collect();
    // Who it is is no secret: everybody sees it in the output.
    let open = [
        "MIZZEN_RANK",
        "MIZZEN_SIZE",
        "MIZZEN_HOST",
        "MIZZEN_LOCAL_RANK",
        "MIZZEN_LOCAL_SIZE",
        "MIZZEN_CORES",
    ];
    assert!(
        ours.iter()
            .all(|name| name == AGENT_FD || name == SCENARIO || open.contains(&name.as_str())),
        "{ours:?}"
    );
}
