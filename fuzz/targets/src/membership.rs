//! Frames of agents and the root: who lives.

use std::time::Duration;

use mizzen_proto::boot::{Death, DecodeError, FRAME_HEADER, TooLarge};
use mizzen_proto::id::{Incarnation, ProcessId, Rank};
use mizzen_proto::membership::{
    Agent, AgentId, Between, Entry, Epoch, FromAgent, FromRoot, HostEnd, HostId, News, Order, Pace,
    Policy, Report, Root, Said,
};
use mizzen_proto::time::Time;

use crate::tape::Tape;

/// Decodes the bytes as each kind of frame, and hands frames of a tape to an agent and to a root.
pub fn run(data: &[u8]) {
    same(data, FromAgent::decode, FromAgent::encode);
    same(data, FromRoot::decode, FromRoot::encode);
    same(data, Between::decode, Between::encode);
    let mut tape = Tape::new(data);
    let me = AgentId::new(HostId(1), 1);
    let mut agent = Agent::new(me, Pace::DEFAULT, String::new(), Time(0));
    let policy = Policy {
        on_death: mizzen_proto::boot::OnDeath::Restart,
        max_restarts: 2,
    };
    let mut root = Root::new(Pace::DEFAULT, policy);
    root.place(HostId(1), Rank(0), 2, Time(0));
    let mut now = Time(0);
    while !tape.is_over() {
        now = now + Duration::from_millis(tape.byte().into());
        let (event, host) = (tape.byte(), HostId(u32::from(tape.byte() & 3)));
        let bytes = tape.bytes();
        match event % 4 {
            0 => {
                if let Ok(frame) = FromRoot::decode(bytes) {
                    agent.handle_root(frame, now);
                }
            }
            1 => {
                if let Ok(frame) = FromAgent::decode(bytes) {
                    root.handle_frame(host, frame, now);
                }
            }
            2 => {
                if let Ok(frame) = Between::decode(bytes) {
                    agent.handle_between(host, frame, now);
                }
            }
            _ => {
                agent.handle_tick(now);
                root.handle_tick(now);
            }
        }
        while agent.poll_action().is_some() || root.poll_action().is_some() {}
    }
}

fn same<T>(
    data: &[u8],
    decode: fn(&[u8]) -> Result<T, DecodeError>,
    encode: fn(&T, &mut Vec<u8>) -> Result<(), TooLarge>,
) {
    let Ok(frame) = decode(data) else { return };
    let mut again = Vec::new();
    encode(&frame, &mut again).expect("what was decoded keeps the limits");
    assert_eq!(&again[FRAME_HEADER..], data);
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let agent = AgentId::new(HostId(1), 1);
    let process = ProcessId::new(Rank(0), Incarnation(0));
    let how = Death::Signal(9);
    let (number, epoch) = (1, Epoch(1));
    let locator = || "10.0.0.1:99".to_owned();
    let said = [
        Said::Hello {
            number,
            locator: locator(),
        },
        Said::Beat {
            number,
            late: Duration::ZERO,
            reports: 0,
        },
        Said::Report {
            number,
            report: Report::Ended { process, how },
        },
        Said::Unreachable { process },
        Said::Refused { agent },
    ];
    let up = said.map(|said| FromAgent { agent, epoch, said });
    let entries = vec![
        Entry::Placed {
            host: HostId(1),
            first: Rank(0),
            count: 2,
        },
        Entry::HostJoined {
            agent,
            locator: locator(),
        },
        Entry::Ended { process, how },
        Entry::HostEnded {
            agent,
            how: HostEnd::Silent,
        },
    ];
    let orders = [
        Order::Grant {
            number,
            age: Duration::ZERO,
            reports: 0,
        },
        Order::News(News { epoch, entries }),
        Order::Look {
            agent,
            locator: locator(),
        },
        Order::Over {
            how: HostEnd::Refused,
        },
    ];
    let down = orders.map(|said| FromRoot {
        to: agent,
        epoch,
        said,
    });
    let mut all: Vec<Vec<u8>> = up
        .iter()
        .map(|one| content(|out| one.encode(out)))
        .collect();
    all.extend(down.iter().map(|one| content(|out| one.encode(out))));
    let between = [
        Between::Look {
            from: agent,
            to: agent,
        },
        Between::Up(up[1].clone()),
        Between::Down(down[0].clone()),
    ];
    all.extend(between.iter().map(|one| content(|out| one.encode(out))));
    all
}

pub(crate) fn content(encode: impl FnOnce(&mut Vec<u8>) -> Result<(), TooLarge>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes).expect("a seed keeps the limits");
    bytes.split_off(FRAME_HEADER)
}
