//! What is believed of what other agents say.

use mizzen_proto::boot::{OnDeath, Secret};
use mizzen_proto::membership::{Entry, Epoch, FromRoot, HostEnd, Order, Report, Said};

use super::*;

fn start(number: u32, hosts: u32) -> Start {
    Start {
        job: 1,
        size: 2 * hosts,
        host: format!("h{number}"),
        hosts,
        bind: String::new(),
        ranks: vec![2 * number, 2 * number + 1],
        program: vec![],
        args: vec![],
        env: vec![],
        cwd: vec![],
        on_death: OnDeath::Continue,
        networks: vec![],
        show_paths: false,
        cluster: "local".into(),
        part: Part {
            number,
            pace: Preset::Fast,
            max_restarts: 0,
            placed: if number == 0 {
                vec![2; hosts as usize]
            } else {
                vec![]
            },
        },
        authority: Secret::default(),
    }
}

fn agent(host: u32, life: u32) -> AgentId {
    AgentId::new(HostId(host), life)
}

fn up(agent: AgentId, said: Said) -> Spoken {
    let epoch = Epoch(0);
    Spoken::Up(FromAgentFrame { agent, epoch, said })
}

use mizzen_proto::membership::FromAgent as FromAgentFrame;

fn hello(who: AgentId) -> Spoken {
    let locator = String::new();
    up(who, Said::Hello { number: 1, locator })
}

/// The root of three hosts, of which two others have joined. It has no connections: what comes is put in by hand.
fn root() -> Control {
    let mut control = Control::new(&start(0, 3), None).unwrap();
    for host in [1, 2] {
        control.hear(agent(host, 1), hello(agent(host, 1)));
    }
    control.tick();
    assert_eq!(root_of(&control).members().agents().count(), 3);
    control
}

fn root_of(control: &Control) -> &Root {
    control.root.as_ref().unwrap()
}

fn ended(rank: u32) -> Said {
    let process = ProcessId::new(Rank(rank), mizzen_proto::id::Incarnation(0));
    let how = Death::Signal(9);
    let report = Report::Ended { process, how };
    Said::Report { number: 1, report }
}

#[test]
fn a_job_of_one_host_starts_and_ends_at_once() {
    let mut control = Control::new(&start(0, 1), None).unwrap();
    let mut started = vec![];
    control.tick();
    while let Some(command) = control.poll_command() {
        if let Command::Start(process, _) = command {
            started.push(process);
        }
    }
    assert_eq!(started.len(), 2);
    assert!(
        control.timeout() > Some(Duration::from_secs(1 << 30)),
        "no beats"
    );
    for process in started {
        control.handle_started(process, 1);
        control.handle_ended(process, Death::Exit(0));
    }
    control.tick();
    assert!(control.is_finished());
}

#[test]
fn nobody_speaks_for_another() {
    let mut control = root();
    control.hear(agent(2, 1), up(agent(1, 1), ended(2)));
    control.tick();
    assert_eq!(root_of(&control).members().running(), 6);
    // Nor of the processes of another.
    control.hear(agent(2, 1), up(agent(2, 1), ended(2)));
    control.tick();
    assert_eq!(root_of(&control).members().running(), 6);
    control.hear(agent(1, 1), up(agent(1, 1), ended(2)));
    control.tick();
    assert_eq!(root_of(&control).members().running(), 5);
}

#[test]
fn an_ended_life_of_an_agent_is_not_heard() {
    let mut control = root();
    let news = root_of(&control).members().epoch();
    control.handle_nobody(agent(1, 1));
    control.tick();
    assert_eq!(root_of(&control).members().running(), 4);
    control.hear(agent(1, 1), hello(agent(1, 1)));
    control.hear(agent(1, 1), up(agent(1, 1), ended(3)));
    control.tick();
    let members = root_of(&control).members();
    assert!(!members.is_here(agent(1, 1)));
    assert_eq!(members.epoch().0, news.0 + 1, "its end, and nothing else");
}

#[test]
fn only_the_root_pronounces() {
    let mut control = Control::new(&start(1, 3), None).unwrap();
    let me = agent(1, 1);
    let mut root = root();
    // It joins by the welcome of the real root.
    control.tick();
    root.hear(me, hello(me));
    let welcome = Order::Welcome {
        number: 1,
        members: Box::new(root_of(&root).members().clone()),
    };
    let down = |epoch, said| {
        Spoken::Down(FromRoot {
            to: me,
            epoch,
            said,
        })
    };
    let epoch = root_of(&root).members().epoch();
    control.hear(agent(2, 1), down(epoch, welcome.clone()));
    assert!(!control.agent.is_member(), "from another agent");
    control.hear(agent(0, 1), down(epoch, welcome));
    assert!(control.agent.is_member());
    let over = Order::Over {
        how: HostEnd::Silent,
    };
    control.hear(agent(2, 1), down(epoch, over.clone()));
    assert!(control.agent.is_member(), "a forged verdict");
    control.hear(agent(0, 1), down(Epoch(epoch.0 - 1), over.clone()));
    assert!(control.agent.is_member(), "an old epoch");
    let news = mizzen_proto::membership::News {
        epoch: Epoch(epoch.0 + 1),
        entries: vec![Entry::HostEnded {
            agent: agent(0, 1),
            how: HostEnd::Silent,
        }],
    };
    control.hear(agent(2, 1), down(Epoch(epoch.0 + 1), Order::News(news)));
    assert_eq!(control.members().epoch(), epoch, "forged news");
    control.hear(agent(0, 1), down(epoch, over));
    assert!(!control.agent.is_member());
}
