//! Other credentials than it should have: the driver refuses them as acceptor and as dialler, before it says anything.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mizzen_driver::PeerId;
use mizzen_identity::{Authority, CLOCK_SKEW, Credentials, Identity, Keys, LIFETIME};
use mizzen_tcp::Records::Sealed;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ServerConfig, SignatureScheme};

use crate::bench::{BOTH, Bench, DIALLER, ME, OTHER, hello};
use crate::common::{CLUSTER, Job};

/// What an impostor shows. It believes in the job that it attacks: it would not be the one to end a handshake.
struct Impostor {
    client: ClientConfig,
    server: ServerConfig,
}

#[derive(Debug)]
struct Shows(Option<Arc<CertifiedKey>>);

impl ResolvesClientCert for Shows {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }

    fn has_certs(&self) -> bool {
        self.0.is_some()
    }
}

impl ResolvesServerCert for Shows {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }
}

impl Impostor {
    /// Nobody wrong yet.
    fn of(credentials: &Credentials) -> Self {
        Self {
            client: (*credentials.client_config()).clone(),
            server: (*credentials.server_config()).clone(),
        }
    }

    fn shows(job: &Job, keys: Keys, chain: &[Vec<u8>]) -> Self {
        let mut impostor = Self::of(&job.credentials(OTHER));
        let chain = chain.iter().cloned().map(CertificateDer::from).collect();
        let shown = Arc::new(CertifiedKey::new(chain, Arc::new(keys)));
        impostor.client.client_auth_cert_resolver = Arc::new(Shows(Some(Arc::clone(&shown))));
        impostor.server.cert_resolver = Arc::new(Shows(Some(shown)));
        impostor
    }

    /// Shows one certificate, which `authority` makes at `now`.
    fn certified(job: &Job, by: &Authority, who: &Identity, now: SystemTime) -> Self {
        let keys = Keys::generate().unwrap();
        let certificate = by.certify(&keys.request(), who, now, LIFETIME).unwrap();
        Self::shows(job, keys, &[certificate])
    }

    fn dials(&self, job: &Arc<Job>) {
        for records in BOTH {
            let mut bench = Bench::of(job, ME, records, |options| options);
            let mut other = bench.client(Arc::new(self.client.clone()));
            // It goes out as soon as the handshake is complete at that end.
            other.say(&hello(DIALLER, records, OTHER, ME, 1));
            bench.expect_refused(&mut other);
        }
    }

    fn is_dialled(&self, job: &Arc<Job>) {
        for records in BOTH {
            let mut bench = Bench::of(job, ME, records, |options| options);
            let mut other = bench.dialled(Arc::new(self.server.clone()));
            bench.expect_rejected(&mut other);
        }
    }

    fn is_refused(&self, job: &Arc<Job>) {
        self.dials(job);
        self.is_dialled(job);
    }
}

fn job() -> Arc<Job> {
    Arc::new(Job::new([7; 16]))
}

fn other_of(cluster: &str, job: [u8; 16]) -> Identity {
    Identity::new(cluster, job, OTHER.0 as u32, 0).unwrap()
}

/// The authority of `job` with its secret changed, but for the key.
fn twisted(job: &Job, change: impl FnOnce(&mut Vec<u8>)) -> Authority {
    let mut secret = job.authority.to_secret().as_bytes().to_vec();
    change(&mut secret);
    Authority::from_secret(&secret).unwrap()
}

#[test]
fn the_impostor_of_these_tests_gets_in_with_good_credentials() {
    let job = job();
    let now = SystemTime::now();
    let good = Impostor::certified(&job, &job.authority, &other_of(CLUSTER, job.number), now);
    let mut bench = Bench::of(&job, ME, Sealed, |options| options);
    let mut other = bench.client(Arc::new(good.client));
    other.say(&hello(DIALLER, Sealed, OTHER, ME, 1));
    bench.hear(&mut other, 40);
    bench.expect_connected(OTHER);
    let mut bench = Bench::of(&job, ME, Sealed, |options| options);
    let mut other = bench.dialled(Arc::new(good.server));
    bench.hear(&mut other, 40);
}

#[test]
fn a_certificate_of_another_authority_of_the_same_name_is_refused() {
    let (job, namesake) = (job(), job());
    let who = other_of(CLUSTER, job.number);
    Impostor::certified(&job, &namesake.authority, &who, SystemTime::now()).is_refused(&job);
}

#[test]
fn a_process_of_another_job_is_refused() {
    let (job, another) = (job(), Job::new([8; 16]));
    Impostor::of(&another.credentials(OTHER)).is_refused(&job);
}

#[test]
fn a_certificate_of_another_job_by_the_same_key_is_refused() {
    let job = job();
    let at = 2 + CLUSTER.len();
    let another = twisted(&job, |secret| secret[at..at + 16].fill(8));
    let who = other_of(CLUSTER, [8; 16]);
    Impostor::certified(&job, &another, &who, SystemTime::now()).is_refused(&job);
}

#[test]
fn a_certificate_of_another_cluster_by_the_same_key_is_refused() {
    let job = job();
    let another = twisted(&job, |secret| secret[2] = b'r');
    let who = other_of("rest", job.number);
    Impostor::certified(&job, &another, &who, SystemTime::now()).is_refused(&job);
}

#[test]
fn an_expired_certificate_is_refused() {
    let job = job();
    let then = SystemTime::now() - LIFETIME - Duration::from_secs(60);
    let who = other_of(CLUSTER, job.number);
    Impostor::certified(&job, &job.authority, &who, then).is_refused(&job);
}

#[test]
fn a_certificate_that_is_not_yet_valid_is_refused() {
    let job = job();
    let then = SystemTime::now() + CLOCK_SKEW + Duration::from_secs(60);
    let who = other_of(CLUSTER, job.number);
    Impostor::certified(&job, &job.authority, &who, then).is_refused(&job);
}

#[test]
fn a_stolen_certificate_without_its_key_is_refused() {
    let job = job();
    let victim = Keys::generate().unwrap();
    let who = other_of(CLUSTER, job.number);
    let now = SystemTime::now();
    let stolen = job
        .authority
        .certify(&victim.request(), &who, now, LIFETIME)
        .unwrap();
    Impostor::shows(&job, Keys::generate().unwrap(), &[stolen]).is_refused(&job);
}

#[test]
fn the_certificate_of_the_authority_is_refused() {
    let job = job();
    let shown = job.authority.certificate().to_vec();
    Impostor::shows(&job, Keys::generate().unwrap(), &[shown]).is_refused(&job);
}

#[test]
fn a_chain_of_five_certificates_is_refused() {
    let job = job();
    let keys = Keys::generate().unwrap();
    let who = other_of(CLUSTER, job.number);
    let now = SystemTime::now();
    let leaf = job
        .authority
        .certify(&keys.request(), &who, now, LIFETIME)
        .unwrap();
    let mut chain = vec![leaf];
    chain.resize(5, job.authority.certificate().to_vec());
    Impostor::shows(&job, keys, &chain).is_refused(&job);
}

#[test]
fn chains_longer_than_sixteen_kibibytes_are_refused() {
    let job = job();
    let keys = Keys::generate().unwrap();
    let who = other_of(CLUSTER, job.number);
    let now = SystemTime::now();
    let leaf = job
        .authority
        .certify(&keys.request(), &who, now, LIFETIME)
        .unwrap();
    // Over the bound of a chain by a byte; at the bound of a handshake; and over it, where TLS can still say it.
    for padding in [16 * 1024 + 1 - leaf.len(), 60_000, 65_000, 100_000] {
        let chain = [leaf.clone(), vec![0x30; padding]];
        Impostor::shows(&job, keys.clone(), &chain).is_refused(&job);
    }
}

#[test]
fn a_caller_without_a_certificate_is_refused() {
    let job = job();
    let mut impostor = Impostor::of(&job.credentials(OTHER));
    impostor.client.client_auth_cert_resolver = Arc::new(Shows(None));
    impostor.dials(&job);
}

#[test]
fn a_caller_that_names_no_protocol_or_another_is_refused() {
    let job = job();
    for protocols in [vec![], vec![b"h2".to_vec()], vec![b"mizzen/0".to_vec()]] {
        let mut impostor = Impostor::of(&job.credentials(OTHER));
        impostor.client.alpn_protocols = protocols;
        impostor.dials(&job);
    }
}

#[test]
fn a_dialled_process_that_agrees_to_no_protocol_or_to_another_is_refused() {
    let job = job();
    for protocols in [vec![], vec![b"h2".to_vec()]] {
        let mut impostor = Impostor::of(&job.credentials(OTHER));
        impostor.server.alpn_protocols = protocols;
        impostor.is_dialled(&job);
    }
}

#[test]
fn a_dialled_process_that_is_another_is_refused_before_we_say_hello() {
    let job = job();
    Impostor::of(&job.credentials(PeerId(61))).is_dialled(&job);
    Impostor::of(&job.credentials(ME)).is_dialled(&job);
}

/// The lives of a process are different peers.
const fn life(number: u64, of: PeerId) -> PeerId {
    PeerId(number << 32 | of.0)
}

#[test]
fn a_dialled_process_of_another_life_is_refused_before_we_say_hello() {
    let job = job();
    Impostor::of(&job.credentials(life(1, OTHER))).is_dialled(&job);
    let mut bench = Bench::of(&job, ME, Sealed, |options| options);
    for wrong in [life(1, OTHER), life(3, OTHER)] {
        let server = job.credentials(wrong).server_config();
        let mut other = bench.dialled_as(life(2, OTHER), server);
        bench.expect_rejected_as(life(2, OTHER), &mut other);
    }
}

#[test]
fn a_caller_that_says_it_is_another_life_than_it_proved_is_refused() {
    let mut bench = Bench::new(Sealed);
    for (proved, said) in [(0, 1), (1, 0), (2, 1), (1, 2)] {
        let mut other = bench.caller(life(proved, OTHER));
        other.say(&hello(DIALLER, Sealed, life(said, OTHER), ME, 1));
        bench.expect_refused(&mut other);
    }
}

#[test]
fn a_caller_that_wants_another_life_of_us_is_refused() {
    let job = job();
    let me = life(2, ME);
    let mut bench = Bench::of(&job, me, Sealed, |options| options);
    for wanted in [ME, life(1, ME), life(3, ME)] {
        let mut other = bench.caller(OTHER);
        other.say(&hello(DIALLER, Sealed, OTHER, wanted, 1));
        bench.expect_refused(&mut other);
    }
}

/// Whether it is to be spoken to at all is for those to say who know the members of the job.
#[test]
fn an_older_life_does_not_take_the_link_of_a_newer_one() {
    let mut bench = Bench::new(Sealed);
    let mut new = bench.peer_of(life(1, OTHER), 1);
    let _old = bench.peer_of(OTHER, 2);
    new.say(&crate::bench::frame(b"still here"));
    bench.expect(mizzen_driver::Event::Frame {
        peer: life(1, OTHER),
        bytes: b"still here",
    });
    bench.expect_nothing();
}

#[test]
fn a_caller_that_proves_one_rank_and_says_another_is_refused() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        let mut other = bench.caller(PeerId(61));
        other.say(&hello(DIALLER, records, OTHER, ME, 1));
        bench.expect_refused(&mut other);
    }
}
