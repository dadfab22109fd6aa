//! Frames of agents about names, packets of processes about them, and the registry that hears them.

use std::time::Duration;

use mizzen_proto::id::{Address, Incarnation, MailboxId, ProcessId, Rank, RequestId};
use mizzen_proto::membership::{AgentId, Entry, Epoch, HostEnd, HostId, Members, News, Pace};
use mizzen_proto::registry::{
    Answer, Bound, FencingNumber, Frame, MAX_OPEN, Outcome, Patience, Question, Record, Refusal,
    Registry, Said, Seen, View, Wish,
};
use mizzen_proto::time::Time;

use crate::membership::content;
use crate::tape::Tape;

const HOSTS: u32 = 4;

/// Decodes the bytes as each kind of message, and hands those of a tape to a registry among a few hosts.
pub fn run(data: &[u8]) {
    if let Ok(frame) = Frame::decode(data) {
        let mut again = Vec::new();
        frame.encode(&mut again).expect("it was decoded");
        assert_eq!(again, data);
    }
    if let Ok(question) = Question::decode(data) {
        let mut again = Vec::new();
        question.encode(&mut again).expect("it was decoded");
        assert_eq!(again, data);
    }
    if let Ok(answer) = Answer::decode(data) {
        let mut again = Vec::new();
        answer.encode(&mut again).expect("it was decoded");
        assert_eq!(again, data);
    }
    drive(Tape::new(data));
}

fn drive(mut tape: Tape<'_>) {
    let mut members = members();
    let me = AgentId::new(HostId(0), 1);
    let mut registry = Registry::new(me, Pace::DEFAULT);
    let mut now = Time(0);
    while !tape.is_over() {
        now = now + Duration::from_millis(4 * u64::from(tape.byte()));
        let event = tape.byte();
        let rank = Rank(u32::from(event >> 4));
        let process = ProcessId::new(rank, Incarnation(0));
        if event % 8 == 0 {
            let epoch = Epoch(members.epoch().0 + 1);
            let agent = AgentId::new(HostId(1 + rank.0 % (HOSTS - 1)), 1);
            let how = HostEnd::Silent;
            let entries = vec![Entry::HostEnded { agent, how }];
            // A contradiction changes nothing.
            let _ = members.apply_news(&News { epoch, entries });
        }
        let seen = Seen {
            members: &members,
            lease: Time(u64::MAX),
            now,
        };
        match event % 8 {
            0 => registry.handle_members(seen),
            1 => registry.handle_gone(process, seen),
            2 => registry.handle_tick(seen),
            3 | 4 => {
                if let Ok(question) = Question::decode(tape.bytes()) {
                    registry.handle_question(process, question, seen);
                }
            }
            _ => {
                if let Ok(mut frame) = Frame::decode(tape.bytes()) {
                    // Hostile, but a member: what is of another view or late is not even heard.
                    frame.to = me;
                    frame.view = View::of(&members);
                    frame.sequence = now.0.max(1);
                    registry.handle_frame(frame, seen);
                }
            }
        }
        while registry.poll_action().is_some() {}
        let sizes = registry.sizes();
        assert!(sizes.questions <= 16 * MAX_OPEN && sizes.asked <= sizes.questions);
        assert!(
            registry
                .next_wakeup()
                .is_none_or(|due| due > now || event % 8 != 2)
        );
    }
}

fn members() -> Members {
    let mut members = Members::default();
    let placed = (0..HOSTS).map(|host| Entry::Placed {
        host: HostId(host),
        first: Rank(4 * host),
        count: 4,
    });
    let joined = (0..HOSTS).map(|host| Entry::HostJoined {
        agent: AgentId::new(HostId(host), 1),
        locator: String::new(),
    });
    let entries = placed.chain(joined).collect();
    let epoch = Epoch(1);
    members
        .apply_news(&News { epoch, entries })
        .expect("it begins like this");
    members
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut frames: Vec<Vec<u8>> = Vec::new();
    for (number, said) in said().into_iter().enumerate() {
        let frame = Frame {
            from: AgentId::new(HostId(1), 1),
            to: AgentId::new(HostId(0), 1),
            epoch: Epoch(1),
            view: View(4),
            sequence: number as u64 + 1,
            said,
        };
        frames.push(content(|out| frame.encode(out)));
    }
    let questions = questions().map(|question| {
        let mut bytes = Vec::new();
        question
            .encode(&mut bytes)
            .expect("a seed keeps the limits");
        bytes
    });
    let answer = Answer::Done {
        request: RequestId(1),
        outcome: Outcome::Refused(Refusal::OwnerGone),
    };
    let mut answered = Vec::new();
    answer
        .encode(&mut answered)
        .expect("a seed keeps the limits");
    let event = |kind: u8, bytes: &[u8]| {
        let len = bytes.len() as u16;
        [&[1, kind], &len.to_le_bytes()[..], bytes].concat()
    };
    let mut together = vec![0, 0];
    together.extend(questions.iter().flat_map(|one| event(3, one)));
    together.extend(frames.iter().flat_map(|one| event(5, one)));
    together.extend([255, 2, 1, 16]);
    let mut all = frames;
    all.extend(questions);
    all.extend([answered, together]);
    all
}

fn questions() -> [Question; 4] {
    let (request, mailbox) = (RequestId(1), MailboxId(2));
    let name = || "sum".into();
    [
        Question::Bind {
            request,
            name: name(),
            mailbox,
        },
        Question::Unbind {
            request: RequestId(2),
            name: name(),
            mailbox,
        },
        Question::Read {
            request: RequestId(3),
            name: name(),
            patience: Patience::Wait,
        },
        Question::Cancel { request },
    ]
}

fn said() -> Vec<Said> {
    let name = || "sum".into();
    let address = Address {
        process: ProcessId::new(Rank(4), Incarnation(0)),
        mailbox: MailboxId(2),
    };
    let number = FencingNumber {
        epoch: Epoch(1),
        counter: 3,
    };
    let bound = Bound { number, address };
    let (request, stamp, round) = (1, 2, 1);
    let record = Record {
        name: name(),
        bound,
    };
    vec![
        Said::Hand {
            number: 1,
            records: vec![record],
        },
        Said::Handed { number: 1 },
        Said::Ready,
        Said::Established,
        Said::Read {
            name: name(),
            patience: Patience::Look,
            stamp,
        },
        Said::Withdraw { name: name() },
        Said::Change {
            name: name(),
            request,
            oldest: 1,
            wish: Wish::Bind,
            address,
        },
        Said::Found {
            name: name(),
            bound,
            stamp,
            leased: true,
        },
        Said::Free {
            name: name(),
            stamp,
        },
        Said::Full { name: name() },
        Said::Changed {
            name: name(),
            request,
            outcome: Outcome::Bound(number),
        },
        Said::Revoke {
            name: name(),
            round,
        },
        Said::Revoked {
            name: name(),
            round,
        },
        Said::Copy {
            name: name(),
            round,
            bound: Some(bound),
        },
        Said::Copied {
            name: name(),
            round,
        },
    ]
}
