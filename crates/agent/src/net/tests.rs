//! Who is let in at the port of an agent, and who is not.

use std::io::{Read, Write};
use std::net::TcpStream;

use mizzen_identity::{Authority, Identity, server_name};
use mizzen_proto::membership::{Epoch, FromAgent, Said};
use rustls::{ClientConnection, StreamOwned};

use super::*;

const JOB: [u8; 16] = [7; 16];

struct Bed {
    authority: Authority,
    net: Net,
    address: SocketAddr,
    events: Vec<Event>,
}

impl Bed {
    /// The net of the agent of host 0.
    fn new() -> Self {
        let authority = Authority::new("local", JOB).unwrap();
        let (net, address) = net(&authority, 0);
        Self {
            authority,
            net,
            address,
            events: vec![],
        }
    }

    /// Lets things happen until one of the events is what is waited for.
    fn until(&mut self, found: impl Fn(&Event) -> bool) -> Event {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(at) = self.events.iter().position(&found) {
                return self.events.remove(at);
            }
            assert!(Instant::now() < deadline, "{:?}", self.events);
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.net.poll(&mut self.events).unwrap();
        self.net.enforce(Instant::now(), &mut self.events);
        self.net.flush(&mut self.events);
        std::thread::sleep(Duration::from_millis(1));
    }

    /// A TLS client with these credentials, whose handshake goes on with the first byte.
    fn stranger(&self, authority: &Authority, who: &Identity) -> Stranger {
        let credentials = authority.credentials(who).unwrap();
        let tls = ClientConnection::new(credentials.client_config(), server_name()).unwrap();
        let socket = TcpStream::connect(self.address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(10)))
            .unwrap();
        StreamOwned::new(tls, socket)
    }

    /// Whether the agent closes this connection, without taking anybody for an agent.
    fn refuses(&mut self, mut stranger: impl Read) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut buffer = [0; 64];
        while Instant::now() < deadline {
            self.turn();
            match stranger.read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        self.net.links.is_empty() && self.events.is_empty()
    }
}

type Stranger = StreamOwned<ClientConnection, TcpStream>;

fn net(authority: &Authority, host: u32) -> (Net, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let credentials = authority.credentials(&agent(host)).unwrap();
    let net = Net::new(listener, credentials, Duration::from_secs(4), false).unwrap();
    (net, address)
}

fn agent(host: u32) -> Identity {
    Identity::agent("local", JOB, host, 1).unwrap()
}

fn hello(host: u32) -> Spoken {
    let locator = String::new();
    Spoken::Up(FromAgent {
        agent: AgentId::new(HostId(host), 1),
        epoch: Epoch(0),
        said: Said::Hello { number: 1, locator },
    })
}

/// Writes as much as the agent takes while it turns.
fn write(bed: &mut Bed, stranger: &mut Stranger, mut bytes: &[u8]) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !bytes.is_empty() && Instant::now() < deadline {
        match stranger.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => bed.turn(),
            Err(_) => return false,
        }
    }
    loop {
        match stranger.flush() {
            Ok(()) => return true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => bed.turn(),
            Err(_) => return false,
        }
    }
}

#[test]
fn agents_of_a_job_speak_with_each_other() {
    let mut bed = Bed::new();
    let (mut other, _) = net(&bed.authority, 1);
    let mut events = vec![];
    other.dial(HostId(0), vec![bed.address], vec![hello(1)], &mut events);
    while !other.is_linked(HostId(0)) {
        other.poll(&mut events).unwrap();
        other.flush(&mut events);
        bed.turn();
    }
    for _ in 0..2 {
        other.flush(&mut events);
        let heard = bed.until(|event| matches!(event, Event::Spoken(..)));
        let Event::Spoken(from, spoken) = heard else {
            panic!("{heard:?}");
        };
        assert_eq!((from, spoken), (AgentId::new(HostId(1), 1), hello(1)));
        other.send(HostId(0), &hello(1), &mut events);
    }
    drop(other);
    bed.until(|event| matches!(event, Event::Lost(peer) if peer.host == HostId(1)));
}

#[test]
fn who_does_not_speak_tls_is_refused() {
    let mut bed = Bed::new();
    let mut socket = TcpStream::connect(bed.address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(10)))
        .unwrap();
    let mut frame = Vec::new();
    hello(1).encode(&mut frame).unwrap();
    socket.write_all(&frame).unwrap();
    assert!(bed.refuses(socket));
}

#[test]
fn a_process_of_the_job_is_no_agent() {
    let mut bed = Bed::new();
    let process = Identity::new("local", JOB, 1, 1).unwrap();
    let stranger = bed.stranger(&bed.authority, &process);
    assert!(bed.refuses(stranger));
}

#[test]
fn an_agent_of_another_job_is_refused() {
    let mut bed = Bed::new();
    let other = Authority::new("local", [8; 16]).unwrap();
    let who = Identity::agent("local", [8; 16], 1, 1).unwrap();
    let stranger = bed.stranger(&other, &who);
    assert!(bed.refuses(stranger));
}

#[test]
fn an_agent_of_another_authority_is_refused_though_it_says_it_is_of_this_job() {
    let mut bed = Bed::new();
    let other = Authority::new("local", JOB).unwrap();
    let stranger = bed.stranger(&other, &agent(1));
    assert!(bed.refuses(stranger));
}

#[test]
fn a_frame_beyond_its_limit_costs_an_agent_its_connection() {
    let mut bed = Bed::new();
    for header in [u32::MAX, (1 << 20) + 1] {
        let mut stranger = bed.stranger(&bed.authority, &agent(1));
        write(&mut bed, &mut stranger, &header.to_le_bytes());
        bed.until(|event| matches!(event, Event::Lost(peer) if peer.host == HostId(1)));
        bed.events.clear();
        assert!(bed.net.connections.is_empty());
    }
}

#[test]
fn what_is_no_frame_costs_an_agent_its_connection() {
    let mut bed = Bed::new();
    let mut stranger = bed.stranger(&bed.authority, &agent(1));
    write(&mut bed, &mut stranger, &[1, 0, 0, 0, 99]);
    bed.until(|event| matches!(event, Event::Lost(_)));
}

#[test]
fn many_who_say_nothing_keep_nobody_out() {
    let mut bed = Bed::new();
    let mut silent = Vec::new();
    for _ in 0..2 * MAX_STRANGERS {
        silent.push(TcpStream::connect(bed.address).unwrap());
        bed.turn();
        assert!(bed.net.connections.len() <= MAX_STRANGERS);
    }
    let mut honest = bed.stranger(&bed.authority, &agent(1));
    let mut frame = Vec::new();
    hello(1).encode(&mut frame).unwrap();
    assert!(write(&mut bed, &mut honest, &frame));
    bed.until(|event| matches!(event, Event::Spoken(..)));
    // And their time is over sometime.
    let later = Instant::now() + 2 * HANDSHAKE;
    bed.net.enforce(later, &mut bed.events);
    assert_eq!(bed.net.connections.len(), 1);
}

#[test]
fn an_agent_that_connects_again_and_again_has_few_connections() {
    let mut bed = Bed::new();
    let mut kept = Vec::new();
    for _ in 0..3 * MAX_WITH_ONE {
        let mut again = bed.stranger(&bed.authority, &agent(1));
        let mut frame = Vec::new();
        hello(1).encode(&mut frame).unwrap();
        write(&mut bed, &mut again, &frame);
        bed.until(|event| matches!(event, Event::Spoken(..)));
        kept.push(again);
        assert!(bed.net.connections.len() <= MAX_WITH_ONE);
    }
    assert!(bed.net.is_linked(HostId(1)));
}

#[test]
fn a_port_that_nobody_listens_at_is_a_refusal_and_silence_is_none() {
    let mut bed = Bed::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let refused = |event: &Event| {
        matches!(
            event,
            Event::Failed {
                is_refused: true,
                ..
            }
        )
    };
    let Bed { net, events, .. } = &mut bed;
    net.dial(HostId(1), vec![address], vec![], events);
    bed.until(refused);
    // One of several addresses where nobody was ever met may be anybody's.
    let both = vec![address, address];
    let Bed { net, events, .. } = &mut bed;
    net.dial(HostId(1), both, vec![], events);
    bed.until(|event| {
        matches!(
            event,
            Event::Failed {
                is_refused: false,
                ..
            }
        )
    });
    // Nobody answers there: that takes its time, and proves nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let Bed { net, events, .. } = &mut bed;
    net.dial(
        HostId(1),
        vec![silent.local_addr().unwrap()],
        vec![],
        events,
    );
    bed.until(|event| {
        matches!(
            event,
            Event::Failed {
                is_refused: false,
                ..
            }
        )
    });
}

#[test]
fn whoever_else_is_there_is_not_taken_for_whom_was_dialled() {
    let mut bed = Bed::new();
    let (mut other, _) = net(&bed.authority, 1);
    let mut events = vec![];
    other.dial(HostId(2), vec![bed.address], vec![hello(1)], &mut events);
    while events.is_empty() {
        other.poll(&mut events).unwrap();
        other.flush(&mut events);
        bed.turn();
    }
    assert!(matches!(
        events[0],
        Event::Failed {
            host: HostId(2),
            is_refused: false
        }
    ));
    assert!(!other.is_linked(HostId(2)) && !other.is_linked(HostId(0)));
}
