//! What is believed of what other agents say.

mod forgeries;

use mizzen_proto::boot::Preset;
use mizzen_proto::boot::{OnDeath, Secret};
use mizzen_proto::membership::{Entry, Epoch, FromRoot, HostEnd, Order, Report, Said};

use mizzen_proto::id::{Incarnation, MailboxId};
use mizzen_proto::registry::{Asker, Frame, Outcome, Patience, Said as SaidOfNames};

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
        spans: vec![],
        others: vec![],
        channels: vec![],
        is_gateway: false,
        show_paths: false,
        overdue_ms: 0,
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

/// The answers that processes are to be told.
fn answers(control: &mut Control) -> Vec<(ProcessId, Answer)> {
    control.tick();
    let commands = core::iter::from_fn(|| control.poll_command());
    let answers = commands.filter_map(|command| match command {
        Command::Answer(process, answer) => Some((process, answer)),
        _ => None,
    });
    answers.collect()
}

#[test]
fn the_processes_of_one_host_bind_and_fetch_at_their_agent() {
    let mut control = Control::new(&start(0, 1), None).unwrap();
    control.tick();
    let process = |rank| ProcessId::new(Rank(rank), Incarnation(0));
    (0..2).for_each(|rank| control.handle_started(process(rank), 1));
    let (mut one, mut two) = (Asker::default(), Asker::default());
    let fetch = two.read("sum", Patience::Wait).unwrap();
    control.handle_question(process(1), fetch);
    assert_eq!(answers(&mut control), [], "it waits");
    let bind = one.bind("sum", MailboxId(7)).unwrap();
    control.handle_question(process(0), bind);
    let told = answers(&mut control);
    let bound = |answer: &Answer| match answer {
        Answer::Done { outcome, .. } => matches!(outcome, Outcome::Bound(_)),
        _ => false,
    };
    assert!(
        told.iter()
            .any(|(who, answer)| *who == process(0) && bound(answer))
    );
    let found = |answer: &Answer| match answer {
        Answer::Found { bound, .. } => bound.address.process == process(0),
        _ => false,
    };
    assert!(
        told.iter()
            .any(|(who, answer)| *who == process(1) && found(answer))
    );
    control.handle_ended(process(0), Death::Signal(9));
    control.tick();
    let look = two.read("sum", Patience::Look).unwrap();
    control.handle_question(process(1), look);
    let told = answers(&mut control);
    assert!(
        matches!(told[..], [(_, Answer::Free { .. })]),
        "the dead have no names: {told:?}"
    );
}

#[test]
fn nobody_speaks_about_names_for_another() {
    let mut control = root();
    let to = agent(0, 1);
    let (view, epoch) = {
        let placement = control.names.placement().unwrap();
        (placement.view, placement.epoch)
    };
    let name = (0..).map(|number| format!("name {number}"));
    let mut ours = name.filter(|name| {
        let placement = control.names.placement().unwrap();
        placement.holder(name) == Some(to)
    });
    let name = ours.next().unwrap();
    drop(ours);
    let mut sequence = 0;
    let mut say = |control: &mut Control, who: AgentId, from, said| {
        sequence += 1;
        let frame = Frame {
            from,
            to,
            epoch,
            view,
            sequence,
            said,
        };
        let mut bytes = vec![];
        frame.encode(&mut bytes).unwrap();
        control.hear(who, Spoken::Names(bytes));
    };
    say(&mut control, agent(1, 1), agent(1, 1), SaidOfNames::Ready);
    // Nor is anybody ready for another.
    say(&mut control, agent(1, 1), agent(2, 1), SaidOfNames::Ready);
    assert!(!control.names.is_established());
    say(&mut control, agent(2, 1), agent(2, 1), SaidOfNames::Ready);
    assert!(control.names.is_established());
    let read = || SaidOfNames::Read {
        name: name.as_str().into(),
        patience: Patience::Wait,
        stamp: 1,
    };
    say(&mut control, agent(1, 1), agent(2, 1), read());
    assert_eq!(control.names.sizes().waiting, 0);
    say(&mut control, agent(1, 2), agent(1, 2), read());
    assert_eq!(control.names.sizes().waiting, 0, "a life that is not here");
    control.hear(agent(1, 1), Spoken::Names(vec![0xff; 40]));
    say(&mut control, agent(2, 1), agent(2, 1), read());
    assert_eq!(control.names.sizes().waiting, 1);
}
