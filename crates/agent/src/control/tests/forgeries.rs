//! Agents that hold good certificates of the job and lie, over real connections.
//!
//! What they say is heard before anything else happens, so that it is known to have had no effect.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};

use mizzen_identity::{Authority, Identity, server_name};
use mizzen_proto::membership::{FromRoot, News};
use rustls::{ClientConnection, StreamOwned};

use super::*;

const JOB: [u8; 16] = [7; 16];

/// An agent that listens, and the authority of its job, which everybody who lies to it has a certificate of.
struct Attacked {
    control: Control,
    authority: Authority,
    address: SocketAddr,
    /// What was heard since somebody began to say something.
    heard: Vec<Spoken>,
}

type Liar = StreamOwned<ClientConnection, TcpStream>;

impl Attacked {
    fn new(number: u32) -> Self {
        let authority = Authority::new("local", JOB).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let who = Identity::agent("local", JOB, number, 1).unwrap();
        let place = Place {
            listener,
            locator: format!("local={address}"),
            credentials: authority.credentials(&who).unwrap(),
        };
        let control = Control::new(&start(number, 3), Some(place)).unwrap();
        Self {
            control,
            authority,
            address,
            heard: Vec::new(),
        }
    }

    /// The root, which the agents of the two other hosts have joined.
    fn root() -> (Self, Liar, Liar) {
        let mut root = Self::new(0);
        let [mut one, mut two] = [1, 2].map(|host| root.connect(agent(host, 1)));
        root.say(&mut one, &hello(agent(1, 1)));
        root.say(&mut two, &hello(agent(2, 1)));
        root.until(|control| root_of(control).members().agents().count() == 3);
        assert_eq!(root.running(), 6);
        (root, one, two)
    }

    /// The agent of host 1, which the root has welcomed; with the connection of the root, and one of the agent of host 2.
    fn member() -> (Self, Liar, Liar) {
        let mut member = Self::new(1);
        let mut root = member.connect(agent(0, 1));
        let other = member.connect(agent(2, 1));
        let welcome = welcome();
        member.say(&mut root, &welcome);
        member.until(|control| control.agent.is_member());
        (member, root, other)
    }

    /// A connection that proves to be of this agent.
    fn connect(&self, who: AgentId) -> Liar {
        let who = Identity::agent("local", JOB, who.host.0, who.life).unwrap();
        let credentials = self.authority.credentials(&who).unwrap();
        let tls = ClientConnection::new(credentials.client_config(), server_name()).unwrap();
        let socket = TcpStream::connect(self.address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        StreamOwned::new(tls, socket)
    }

    /// Has an agent say something, until it was heard, whatever that means then.
    fn say(&mut self, liar: &mut Liar, spoken: &Spoken) {
        self.heard.clear();
        self.send(liar, spoken);
        let deadline = Instant::now() + PATIENCE;
        while !self.heard.contains(spoken) {
            assert!(Instant::now() < deadline, "it is not heard");
            self.turn();
        }
    }

    fn send(&mut self, liar: &mut Liar, spoken: &Spoken) {
        let mut bytes = Vec::new();
        spoken.encode(&mut bytes).unwrap();
        let mut rest = &bytes[..];
        let deadline = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < deadline, "it is not taken");
            let wrote = match rest {
                [] => liar.flush().map(|()| 0),
                _ => liar.write(rest),
            };
            match wrote {
                Ok(_) if rest.is_empty() => return,
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.turn(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Takes in what came, once: whatever is heard is noted before it means something.
    fn turn(&mut self) {
        let net = self.control.net.as_mut().unwrap();
        net.poll(&mut self.control.events).unwrap();
        for event in &self.control.events {
            if let Event::Spoken(_, heard) = event {
                self.heard.push(heard.clone());
            }
        }
        self.control.handle_events();
        self.control.tick();
        std::thread::sleep(Duration::from_millis(1));
    }

    fn until(&mut self, holds: impl Fn(&Control) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(&self.control) {
            assert!(Instant::now() < deadline, "it does not come to that");
            self.turn();
        }
    }

    fn running(&self) -> usize {
        root_of(&self.control).members().running() as usize
    }
}

/// A job of three hosts, as their root knows it.
fn members() -> Members {
    root_of(&super::root()).members().clone()
}

fn welcome() -> Spoken {
    let members = Box::new(members());
    down(members.epoch(), Order::Welcome { number: 1, members })
}

/// What a root says to the agent of host 1.
fn down(epoch: Epoch, said: Order) -> Spoken {
    let to = agent(1, 1);
    Spoken::Down(FromRoot { to, epoch, said })
}

/// That a host is lost, so many epochs after the welcome.
fn lost(host: u32, later: u64) -> Spoken {
    let epoch = Epoch(members().epoch().0 + later);
    let how = HostEnd::Silent;
    let entries = vec![Entry::HostEnded {
        agent: agent(host, 1),
        how,
    }];
    down(epoch, Order::News(News { epoch, entries }))
}

/// News that hurt nobody, so many epochs after the welcome.
fn interrupted(later: u64) -> Spoken {
    let epoch = Epoch(members().epoch().0 + later);
    let entries = vec![Entry::Interrupted { signal: 15 }];
    down(epoch, Order::News(News { epoch, entries }))
}

fn epoch_is(later: u64) -> impl Fn(&Control) -> bool {
    let epoch = members().epoch().0 + later;
    move |control| control.members().epoch().0 == epoch
}

#[test]
fn a_report_in_the_name_of_another_agent_has_no_effect() {
    let (mut root, _one, mut two) = Attacked::root();
    root.say(&mut two, &up(agent(1, 1), ended(2)));
    root.say(&mut two, &up(agent(2, 1), ended(4)));
    root.until(|control| root_of(control).members().running() < 6);
    assert_eq!(root.running(), 5);
    let state = root_of(&root.control).members().state(Rank(2)).unwrap();
    assert_eq!(state.standing, mizzen_proto::membership::Standing::Running);
}

#[test]
fn a_report_about_a_process_of_another_host_has_no_effect() {
    let (mut root, mut one, mut two) = Attacked::root();
    root.say(&mut two, &up(agent(2, 1), ended(2)));
    root.say(&mut one, &up(agent(1, 1), ended(3)));
    root.until(|control| root_of(control).members().running() < 6);
    assert_eq!(root.running(), 5);
}

#[test]
fn a_hello_of_another_life_than_was_proved_is_not_heard() {
    let mut root = Attacked::new(0);
    let mut one = root.connect(agent(1, 1));
    root.say(&mut one, &hello(agent(1, 2)));
    root.say(&mut one, &hello(agent(1, 1)));
    root.until(|control| root_of(control).members().agents().count() == 2);
    assert!(root_of(&root.control).members().is_here(agent(1, 1)));
}

#[test]
fn a_life_of_an_agent_that_was_pronounced_is_not_heard_again() {
    let (mut root, one, mut two) = Attacked::root();
    drop(one);
    root.control.handle_nobody(agent(1, 1));
    root.until(|control| root_of(control).members().running() == 4);
    let mut ghost = root.connect(agent(1, 1));
    root.say(&mut ghost, &hello(agent(1, 1)));
    root.say(&mut ghost, &up(agent(1, 1), ended(2)));
    root.say(&mut two, &up(agent(2, 1), ended(4)));
    root.until(|control| root_of(control).members().running() == 3);
    assert!(!root_of(&root.control).members().is_here(agent(1, 1)));
}

#[test]
fn a_verdict_that_an_agent_sends_to_the_root_is_not_heard() {
    let (mut root, mut one, _two) = Attacked::root();
    let over = Order::Over {
        how: HostEnd::Silent,
    };
    let to = agent(0, 1);
    let epoch = root_of(&root.control).members().epoch();
    let said = over;
    root.say(&mut one, &Spoken::Down(FromRoot { to, epoch, said }));
    root.say(&mut one, &up(agent(1, 1), ended(2)));
    root.until(|control| root_of(control).members().running() == 5);
    assert!(root.control.agent.is_member());
}

#[test]
fn a_welcome_of_who_is_not_the_root_makes_no_member() {
    let mut member = Attacked::new(1);
    let mut other = member.connect(agent(2, 1));
    let welcome = welcome();
    member.say(&mut other, &welcome);
    assert!(!member.control.agent.is_member());
    let mut root = member.connect(agent(0, 1));
    member.say(&mut root, &welcome);
    member.until(|control| control.agent.is_member());
    assert!(epoch_is(0)(&member.control));
}

#[test]
fn a_verdict_of_who_is_not_the_root_ends_nobody() {
    let (mut member, mut root, mut other) = Attacked::member();
    let epoch = member.control.members().epoch();
    let over = Order::Over {
        how: HostEnd::Silent,
    };
    member.say(&mut other, &down(epoch, over.clone()));
    member.say(&mut root, &lost(2, 1));
    member.until(epoch_is(1));
    assert!(member.control.agent.is_member());
    // An epoch that is over, then the present one.
    member.say(&mut root, &down(epoch, over.clone()));
    member.say(&mut root, &interrupted(2));
    member.until(epoch_is(2));
    assert!(member.control.agent.is_member());
    member.say(&mut root, &down(Epoch(epoch.0 + 2), over));
    member.until(|control| !control.agent.is_member());
}

#[test]
fn news_of_who_is_not_the_root_are_no_news() {
    let (mut member, mut root, mut other) = Attacked::member();
    member.say(&mut other, &lost(0, 1));
    member.say(&mut root, &lost(2, 1));
    member.until(epoch_is(1));
    assert!(member.control.members().is_here(agent(0, 1)));
}

#[test]
fn news_with_a_gap_wait_for_what_they_follow() {
    let (mut member, mut root, _other) = Attacked::member();
    member.say(&mut root, &lost(2, 2));
    (0..20).for_each(|_| member.turn());
    assert!(epoch_is(0)(&member.control));
    member.say(&mut root, &interrupted(1));
    member.until(epoch_is(2));
    assert!(!member.control.members().is_here(agent(2, 1)));
}

#[test]
fn news_of_an_epoch_that_is_known_are_not_applied_again() {
    let (mut member, mut root, _other) = Attacked::member();
    member.say(&mut root, &lost(2, 1));
    member.until(epoch_is(1));
    // The same number, and something else in it.
    member.say(&mut root, &lost(0, 1));
    member.say(&mut root, &interrupted(2));
    member.until(epoch_is(2));
    assert!(member.control.members().is_here(agent(0, 1)));
}

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(30);
