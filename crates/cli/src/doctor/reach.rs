//! Whom a host can connect to: listening for others, and trying all their addresses.
//!
//! Whoever connects is told a random word. So an address that leads to another machine, as the addresses of bridges inside
//! hosts do, is not mistaken for one that works.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::probe::interfaces;
use super::report::{Address, MAX_ADDRESSES, MAX_HOSTS, Target, Try};

/// Where a side listens, and the word by which it is known.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) port: u16,
    pub(crate) token: String,
}

impl Listening {
    /// Listens in a thread until the process ends; `bind` none: at all addresses.
    pub(crate) fn start(bind: Option<IpAddr>) -> io::Result<Self> {
        let listener = match bind {
            Some(ip) => TcpListener::bind((ip, 0))?,
            // A socket on the unspecified IPv6 address takes IPv4 as well.
            None => TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0))
                .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?,
        };
        let port = listener.local_addr()?.port();
        let token = random_word()?;
        let word = token.clone();
        std::thread::Builder::new()
            .name("listener".to_owned())
            .spawn(move || answer(&listener, &word))?;
        Ok(Self { port, token })
    }
}

/// Tells each that comes the word, which fits any socket's buffer, and lets it go.
fn answer(listener: &TcpListener, word: &str) {
    for stream in listener.incoming() {
        match stream {
            Ok(mut stream) => {
                let _ = stream.set_nonblocking(true);
                let _ = stream.write_all(word.as_bytes());
            }
            // No descriptors, say: not to be asked again at once.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Tries all addresses of all targets: the targets at once, the addresses of each in turn.
pub(crate) fn reach(mut targets: Vec<Target>) -> Vec<Try> {
    targets.truncate(MAX_HOSTS);
    let deadline = Instant::now() + BUDGET;
    std::thread::scope(|scope| {
        let threads: Vec<_> = targets
            .iter()
            .map(|target| scope.spawn(move || reach_one(target, deadline)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_default())
            .collect()
    })
}

fn reach_one(target: &Target, deadline: Instant) -> Vec<Try> {
    let addresses = target.addresses.iter().take(MAX_ADDRESSES);
    addresses
        .map(|address| attempt(target, address, deadline))
        .collect()
}

fn attempt(target: &Target, address: &Address, deadline: Instant) -> Try {
    let mut result = Try {
        to: target.host.clone(),
        address: address.ip,
        to_interface: address.interface.clone(),
        from_interface: String::new(),
        connect_ns: None,
        why: String::new(),
    };
    // The first connection may have to find its neighbour: the best of a few counts.
    for _ in 0..ATTEMPTS {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            if result.connect_ns.is_none() {
                result.why = "no time was left to try it".to_owned();
            }
            return result;
        }
        match connect(
            SocketAddr::new(address.ip, target.port),
            &target.token,
            left.min(PATIENCE),
        ) {
            Ok((took, from)) => {
                let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
                result.connect_ns = Some(result.connect_ns.map_or(took, |best| best.min(took)));
                result.from_interface = from;
                result.why.clear();
            }
            Err(why) => {
                if result.connect_ns.is_none() {
                    result.why = why;
                }
                return result;
            }
        }
    }
    result
}

/// How long it took, and which interface it went out of.
fn connect(to: SocketAddr, token: &str, patience: Duration) -> Result<(Duration, String), String> {
    let start = Instant::now();
    let mut stream = TcpStream::connect_timeout(&to, patience).map_err(|error| words(&error))?;
    let took = start.elapsed();
    let from = stream
        .local_addr()
        .map(|address| interfaces::name_of(address.ip()));
    let mut said = vec![0; token.len()];
    stream
        .set_read_timeout(Some(patience))
        .and_then(|()| stream.read_exact(&mut said))
        .map_err(|_| "it connects, but to something else".to_owned())?;
    if said != token.as_bytes() {
        return Err("it connects, but to another host".to_owned());
    }
    Ok((took, from.unwrap_or_default()))
}

fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "no answer".to_owned(),
        io::ErrorKind::ConnectionRefused => "refused".to_owned(),
        io::ErrorKind::HostUnreachable => "no such host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "no way there".to_owned(),
        _ => error.to_string(),
    }
}

fn random_word() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

/// How long an address has to answer, as in the TCP driver.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long all of them have together: every address of one host in vain, and a little more.
pub(crate) const BUDGET: Duration = Duration::from_secs(18);

/// Connections to each address.
const ATTEMPTS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn target(listening: &Listening, ips: &[&str]) -> Target {
        let address = |ip: &&str| Address {
            interface: "lo".to_owned(),
            ip: ip.parse().unwrap(),
        };
        Target {
            host: "h".to_owned(),
            addresses: ips.iter().map(address).collect(),
            port: listening.port,
            token: listening.token.clone(),
        }
    }

    #[test]
    fn a_host_that_listens_is_reached() {
        let listening = Listening::start(None).unwrap();
        let tries = reach(vec![target(&listening, &["127.0.0.1"])]);
        assert!(tries[0].connect_ns.is_some(), "{tries:?}");
        assert_eq!(tries[0].from_interface, "lo");
        assert_eq!(tries[0].why, "");
    }

    #[test]
    fn a_host_that_listens_elsewhere_is_not() {
        let listening = Listening::start(Some("127.0.0.1".parse().unwrap())).unwrap();
        let tries = reach(vec![target(&listening, &["127.0.0.2", "127.0.0.1"])]);
        assert_eq!(tries[0].why, "refused");
        assert!(tries[0].connect_ns.is_none() && tries[1].connect_ns.is_some());
    }

    #[test]
    fn another_that_answers_is_not_taken_for_it() {
        let one = Listening::start(None).unwrap();
        let other = Listening::start(None).unwrap();
        assert_ne!(one.token, other.token);
        let mixed = Listening {
            port: other.port,
            token: one.token,
        };
        let tries = reach(vec![target(&mixed, &["127.0.0.1"])]);
        assert_eq!(tries[0].why, "it connects, but to another host");
    }
}
