//! Sites with real gateways, on the loopback interface.
#![allow(dead_code, reason = "each test program uses a part")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use mizzen_config::SiteFile;
use mizzen_identity::{
    GATEWAY_LIFETIME, GatewayKey, GatewayName, SiteCredentials, SiteKey, SiteList, Sites,
};
use mizzen_site::{Door, DoorError, Gateway, Meeting, Pace, Setup};

/// A site: its keys, and what its file says.
pub(crate) struct Site {
    pub(crate) name: String,
    pub(crate) key: SiteKey,
    pub(crate) gateway_key: GatewayKey,
    pub(crate) listens: bool,
    pub(crate) proxy: Option<SocketAddr>,
    pub(crate) revoked: Vec<String>,
    pub(crate) others: Vec<Other>,
    pub(crate) news: Arc<Mutex<Vec<String>>>,
}

/// What a site's file says of another.
#[derive(Clone)]
pub(crate) struct Other {
    pub(crate) name: String,
    pub(crate) pins: Vec<String>,
    pub(crate) reach: Vec<SocketAddr>,
    pub(crate) exports: Vec<String>,
}

impl Site {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            key: SiteKey::generate().unwrap(),
            gateway_key: GatewayKey::generate().unwrap(),
            listens: true,
            proxy: None,
            revoked: vec![],
            others: vec![],
            news: Arc::default(),
        }
    }

    pub(crate) fn dials_only(mut self) -> Self {
        self.listens = false;
        self
    }

    /// Believes another site, and lets all jobs be met with it.
    pub(crate) fn believe(&mut self, other: &Site, reach: Option<SocketAddr>) -> &mut Other {
        self.others.push(Other {
            name: other.name.clone(),
            pins: vec![other.key.pin().to_string()],
            reach: reach.into_iter().collect(),
            exports: vec!["*".into()],
        });
        self.others.last_mut().unwrap()
    }

    pub(crate) fn file(&self) -> SiteFile {
        let quoted = |texts: &[String]| format!("{texts:?}");
        let mut text = format!(
            "name = '{}'\ngateway = 'gw1'\ninside = '127.0.0.1:0'\nrevoked = {}\n",
            self.name,
            quoted(&self.revoked)
        );
        if self.listens {
            text += "listen = '127.0.0.1:0'\n";
        }
        if let Some(proxy) = self.proxy {
            text += &format!("proxy = '{proxy}'\n");
        }
        for other in &self.others {
            let reach: Vec<String> = other.reach.iter().map(ToString::to_string).collect();
            text += &format!(
                "[[site]]\nname = '{}'\nkeys = {}\nreach = {}\nexports = {}\n",
                other.name,
                quoted(&other.pins),
                quoted(&reach),
                quoted(&other.exports)
            );
        }
        SiteFile::parse("site.toml", text).unwrap()
    }

    pub(crate) fn credentials(&self) -> SiteCredentials {
        let name = GatewayName::new(&self.name, "gw1").unwrap();
        let (now, request) = (SystemTime::now(), self.gateway_key.request());
        let certificate = self.key.certify(&request, &name, now, GATEWAY_LIFETIME);
        SiteCredentials::new(
            self.gateway_key.keys(),
            certificate.unwrap(),
            self.key.certificate(&self.name).unwrap(),
            Sites::new(SiteList::new()),
        )
        .unwrap()
    }

    pub(crate) fn open(&self) -> Gateway {
        self.open_with(pace())
    }

    pub(crate) fn open_with(&self, pace: Pace) -> Gateway {
        let news = Arc::clone(&self.news);
        Gateway::open(Setup {
            file: self.file(),
            credentials: self.credentials(),
            pace,
            news: Arc::new(move |text| news.lock().unwrap().push(text.to_owned())),
        })
        .unwrap()
    }

    /// Waits until the gateway has told something.
    pub(crate) fn has_told(&self, what: &str) {
        until(
            &format!("it is told: {what}; told was {:?}", self.news),
            || {
                self.news
                    .lock()
                    .unwrap()
                    .iter()
                    .any(|text| text.contains(what))
            },
        );
    }
}

/// As usual, but in less of a hurry to be patient.
pub(crate) fn pace() -> Pace {
    let mut pace = Pace::default();
    pace.again = (Duration::from_millis(20), Duration::from_millis(200));
    pace.ping = Duration::from_millis(500);
    pace
}

/// Two sites that believe each other; a dials b.
pub(crate) fn two_sites() -> (Site, Site, Gateway, Gateway) {
    let (mut a, mut b) = (Site::new("a"), Site::new("b"));
    b.believe(&a, None);
    let of_b = b.open();
    a.believe(&b, of_b.outside());
    let of_a = a.open();
    (a, b, of_a, of_b)
}

/// A program that sends back what it gets.
pub(crate) struct Echo {
    pub(crate) port: u16,
}

impl Echo {
    pub(crate) fn at(&self) -> SocketAddr {
        local(self.port)
    }

    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for socket in listener.incoming() {
                thread::spawn(move || {
                    let mut socket = socket.unwrap();
                    let mut buffer = vec![0; 64 << 10];
                    while let Ok(len @ 1..) = socket.read(&mut buffer) {
                        if socket.write_all(&buffer[..len]).is_err() {
                            return;
                        }
                    }
                    let _ = socket.shutdown(std::net::Shutdown::Write);
                });
            }
        });
        Self { port }
    }
}

pub(crate) fn local(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

pub(crate) fn meeting(text: &str) -> Meeting {
    text.parse().unwrap()
}

pub(crate) fn door(gateway: &Gateway) -> Door {
    Door::new(gateway.inside())
}

/// Whether what is said comes back.
pub(crate) fn echoes(socket: &mut TcpStream, what: &[u8]) -> bool {
    let mut back = vec![0; what.len()];
    let _ = socket.set_read_timeout(Some(Duration::from_secs(10)));
    socket.write_all(what).is_ok() && socket.read_exact(&mut back).is_ok() && back == what
}

/// Whether the other end is gone, within two seconds; and how long that took.
pub(crate) fn ends(socket: &mut TcpStream) -> Duration {
    let began = Instant::now();
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let end = socket.read(&mut [0; 16]);
    let took = began.elapsed();
    let is_end = match &end {
        Ok(count) => *count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    };
    assert!(
        is_end && took < Duration::from_secs(2),
        "{end:?} after {took:?}"
    );
    took
}

/// The number by which something was refused, and its sentence.
pub(crate) fn refusal<T>(result: Result<T, DoorError>) -> (u16, String) {
    match result {
        Err(DoorError::Refused(refusal)) => (refusal.code, refusal.sentence),
        Err(error) => panic!("not refused, but: {error}"),
        Ok(_) => panic!("not refused"),
    }
}

pub(crate) fn until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "in vain until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// What a gateway sees of us if we want no good.
pub(crate) mod hostile {
    use super::*;
    use mizzen_identity::server_name;
    use rustls::{ClientConnection, StreamOwned};

    pub(crate) type Line = StreamOwned<ClientConnection, TcpStream>;

    /// A connection with a gateway, by these credentials, before anything is said.
    pub(crate) fn dial(credentials: &SiteCredentials, at: SocketAddr) -> Line {
        let socket = TcpStream::connect(at).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let tls = ClientConnection::new(credentials.client_config(), server_name()).unwrap();
        StreamOwned::new(tls, socket)
    }

    /// Says something, and hears a line, or nothing if the other end has had enough.
    pub(crate) fn ask(line: &mut Line, what: &[u8]) -> Option<String> {
        line.write_all(what).ok()?;
        hear(line)
    }

    pub(crate) fn hear(line: &mut Line) -> Option<String> {
        let (mut text, mut byte) = (Vec::new(), [0]);
        while byte[0] != b'\n' {
            line.read_exact(&mut byte).ok()?;
            text.push(byte[0]);
        }
        text.pop();
        Some(String::from_utf8(text).unwrap())
    }

    /// Credentials that believe these sites: those of somebody with a list of its own.
    pub(crate) fn believing(site: &Site, others: &[&Site]) -> SiteCredentials {
        let credentials = site.credentials();
        let mut list = SiteList::new();
        for other in others {
            list.believe(&other.name, other.key.pin()).unwrap();
        }
        credentials.sites().replace(list);
        credentials
    }
}

/// Somebody between a gateway and another, who may change or keep what goes by.
pub(crate) struct Between {
    pub(crate) at: SocketAddr,
    /// What was said by who dialled, connection by connection.
    pub(crate) heard: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Between {
    /// Passes on what goes to `to`, with one byte of it changed, counted from the first in that direction.
    pub(crate) fn new(to: SocketAddr, change: Option<usize>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let heard: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let kept = Arc::clone(&heard);
        thread::spawn(move || {
            for socket in listener.incoming() {
                let mut from = socket.unwrap();
                let Ok(mut there) = TcpStream::connect(to) else {
                    continue;
                };
                let number = {
                    let mut kept = kept.lock().unwrap();
                    kept.push(vec![]);
                    kept.len() - 1
                };
                let (mut back, mut here) = (there.try_clone().unwrap(), from.try_clone().unwrap());
                thread::spawn(move || {
                    std::io::copy(&mut back, &mut here)
                        .map(|_| here.shutdown(std::net::Shutdown::Both))
                });
                let kept = Arc::clone(&kept);
                thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while let Ok(len @ 1..) = from.read(&mut buffer) {
                        let before = {
                            let mut kept = kept.lock().unwrap();
                            let before = kept[number].len();
                            kept[number].extend_from_slice(&buffer[..len]);
                            before
                        };
                        if let Some(at) = change
                            .and_then(|at| at.checked_sub(before))
                            .filter(|at| *at < len)
                        {
                            buffer[at] ^= 1;
                        }
                        if there.write_all(&buffer[..len]).is_err() {
                            break;
                        }
                    }
                    let _ = there.shutdown(std::net::Shutdown::Both);
                });
            }
        });
        Self { at, heard }
    }
}

/// An HTTP proxy that connects to whatever it is asked for, and counts.
pub(crate) struct Proxy {
    pub(crate) at: SocketAddr,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&asked);
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (mut from, kept) = (socket.unwrap(), Arc::clone(&kept));
                thread::spawn(move || {
                    let (mut head, mut byte) = (Vec::new(), [0]);
                    while !head.ends_with(b"\r\n\r\n") {
                        from.read_exact(&mut byte).unwrap();
                        head.push(byte[0]);
                    }
                    let head = String::from_utf8(head).unwrap();
                    let to = head.split(' ').nth(1).unwrap().to_owned();
                    kept.lock().unwrap().push(head);
                    let mut there = TcpStream::connect(&to).unwrap();
                    from.write_all(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n")
                        .unwrap();
                    let (mut back, mut here) =
                        (there.try_clone().unwrap(), from.try_clone().unwrap());
                    thread::spawn(move || {
                        std::io::copy(&mut back, &mut here)
                            .map(|_| here.shutdown(std::net::Shutdown::Both))
                    });
                    let _ = std::io::copy(&mut from, &mut there);
                    let _ = there.shutdown(std::net::Shutdown::Both);
                });
            }
        });
        Self { at, asked }
    }
}
