//! A process of one job does not get into another, though both run on the same hosts.
//!
//! The processes are this test binary again: [`a_process_of_a_job`] is what they run.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;

use common::me::Me;
use common::{Job, PATIENCE, mizzen, text};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned};

const SCENARIO: &str = "MIZZEN_TEST_SCENARIO";
const TARGETS: &str = "MIZZEN_TEST_TARGETS";

fn command(scenario: &str) -> Command {
    let hosts = "h1=127.0.0.1,h2=127.0.0.1";
    let mut command = mizzen(["-n", "2", "--hosts", hosts, "--remote-shell", "env"]);
    command
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "a_process_of_a_job", "--nocapture"])
        .env(SCENARIO, scenario);
    command
}

#[test]
fn a_process_of_another_job_does_not_get_in() {
    let mut victim = Job::start(command("victim"));
    victim.wait_for_lines(2, "has met the other");
    let ports: Vec<u16> = victim.processes().into_iter().flat_map(ports_of).collect();
    assert!(ports.len() >= 2, "both listen: {ports:?}");
    let targets: Vec<String> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    let intruder = command("intruder")
        .env(TARGETS, targets.join(","))
        .output()
        .unwrap();
    let (said, errors) = (text(&intruder.stdout), text(&intruder.stderr));
    assert_eq!(intruder.status.code(), Some(0), "{said}\n{errors}");
    assert_eq!(
        said.matches("was refused").count(),
        2 * ports.len(),
        "{said}"
    );
    // Those who were attacked go on.
    victim.wait_for_lines(2, "is still with the other");
    victim.signal(15);
    victim.wait();
    victim.assert_nothing_is_left();
}

/// Where a process listens for TCP connections.
fn ports_of(pid: u32) -> Vec<u16> {
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    let inodes: Vec<String> = files
        .flatten()
        .filter_map(|file| std::fs::read_link(file.path()).ok())
        .filter_map(|link| {
            let inode = link.to_str()?.strip_prefix("socket:[")?;
            Some(inode.strip_suffix(']')?.to_owned())
        })
        .collect();
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap();
    let listening = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_ours = fields.get(3) == Some(&"0A") && inodes.contains(&(*fields.get(9)?).into());
        let (_, port) = fields.get(1)?.split_once(':')?;
        is_ours.then(|| u16::from_str_radix(port, 16).unwrap())
    };
    table.lines().filter_map(listening).collect()
}

/// A process of a job. Run by the test above.
#[test]
#[ignore = "run by the other, as a process of a job"]
fn a_process_of_a_job() {
    match std::env::var(SCENARIO).as_deref() {
        Ok("victim") => victim(),
        Ok("intruder") => intrude(),
        Ok(other) => panic!("{other}"),
        Err(_) => (),
    }
}

/// Meets the process on the other host, and goes on meeting it.
fn victim() {
    let deck = mizzen::Deck::join().unwrap();
    let (me, other) = if deck.rank().0 == 0 {
        ("a", "b")
    } else {
        ("b", "a")
    };
    let mailbox = deck.mailbox().unwrap();
    deck.bind(me, &mailbox).unwrap();
    let found = deck.fetch_timeout(other, PATIENCE).unwrap();
    for round in 0u64.. {
        found.send(&round).unwrap();
        let got: u64 = mailbox.receive().unwrap();
        assert_eq!(got, round);
        let how = if round == 0 {
            "has met"
        } else {
            "is still with"
        };
        println!("{me} {how} the other");
        // Not more often than somebody reads about it.
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

/// Believes anybody, proves who it is with what its own job gave it, and says that it is a process of the other.
fn intrude() {
    let me = Me::boot();
    let credentials = me.certify().unwrap();
    let mut config = (*credentials.client_config()).clone();
    config
        .dangerous()
        .set_certificate_verifier(Arc::new(Anybody));
    let config = Arc::new(config);
    for target in std::env::var(TARGETS).unwrap().split(',') {
        let tls = ClientConnection::new(Arc::clone(&config), mizzen_identity::server_name());
        let stream = TcpStream::connect(target).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut connection = StreamOwned::new(tls.unwrap(), stream);
        let mut hello = b"mizzen\r\n".to_vec();
        hello.extend([2, 0, 1, 0, 1, 0, 0, 0]);
        let (from, to) = (u64::from(1 - me.boot.rank), u64::from(me.boot.rank));
        for number in [from, to, u64::MAX] {
            hello.extend(number.to_le_bytes());
        }
        // It may be closed meanwhile.
        let _ = connection.write_all(&hello);
        let heard = connection.read(&mut [0; 100]);
        let alert = heard.unwrap_err();
        let alert = alert
            .get_ref()
            .and_then(|error| error.downcast_ref::<Error>());
        assert!(matches!(alert, Some(Error::AlertReceived(_))), "{alert:?}");
        println!("was refused");
    }
}

#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}
