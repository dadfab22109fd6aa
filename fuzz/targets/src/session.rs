//! Greetings, refusals and stamps of sessions, and the session that gets them.

use std::time::Duration;

use mizzen_proto::credit::WINDOW;
use mizzen_proto::id::{BodyId, Incarnation, ProcessId, Rank};
use mizzen_proto::session::{
    ClusterId, ConnectionId, Greeting, JobId, MemoryForm, Output, Refusal, Session, SessionFrame,
    SessionOptions, Stamp, Turn,
};
use mizzen_proto::time::Time;

use crate::tape::Tape;

const P: ProcessId = ProcessId::new(Rank(0), Incarnation(0));
const Q: ProcessId = ProcessId::new(Rank(1), Incarnation(0));
const JOB: JobId = JobId([3; 16]);

/// Decodes the bytes as what begins a connection, and hands those of a tape to a session.
pub fn run(data: &[u8]) {
    if let Ok(greeting) = Greeting::decode(data) {
        assert_eq!(SessionFrame::Greeting(greeting).to_vec(), data);
    }
    if let Ok(refusal) = Refusal::decode(data) {
        assert_eq!(SessionFrame::Refusal(refusal).to_vec(), data);
    }
    drive(Tape::new(data));
}

fn drive(mut tape: Tape<'_>) {
    let mut session = Session::new(SessionOptions::new(P, Q, JOB, 1));
    let (mut now, mut connection, mut dialled) = (Time(0), 0, None);
    while !tape.is_over() {
        now = now + Duration::from_millis(tape.byte().into());
        match tape.byte() % 8 {
            0 => drop(session.keep(u32::from(tape.short()), now)),
            1 => {
                let body = BodyId(tape.number());
                let _ = session.expect_body(body, tape.number(), now);
            }
            2 => {
                if let Some(number) = dialled.take() {
                    connection += 1;
                    session.handle_dialled(number, ConnectionId(connection), now);
                }
            }
            3 => {
                if let Ok(greeting) = Greeting::decode(tape.bytes()) {
                    connection += 1;
                    session.handle_greeting(ConnectionId(connection), &greeting, now);
                }
            }
            4 => session.handle_lost(ConnectionId(connection), now),
            5 => session.handle_timeout(now),
            _ => {
                let bytes = tape.bytes();
                let _ = session.handle_frame(ConnectionId(connection), bytes, now);
            }
        }
        while let Some(output) = session.poll_output(now) {
            if let Output::Dial { number } = output {
                dialled = Some(number);
            }
        }
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let greeting = |turn| Greeting {
        from: Q,
        to: P,
        job: JOB,
        cluster: ClusterId(0),
        form: MemoryForm::NATIVE,
        connection: 1,
        received_through: 0,
        oldest_kept: 1,
        window: WINDOW,
        turn,
        expected: vec![],
    };
    let stamp = Stamp {
        number: 1,
        received_through: 0,
    };
    let frames = [
        SessionFrame::Greeting(greeting(Turn::Ask)),
        SessionFrame::Greeting(greeting(Turn::Answer)),
        SessionFrame::Refusal(Refusal::Superseded { newest: 9 }),
        SessionFrame::Refusal(Refusal::Ended {
            received_through: 4,
        }),
        SessionFrame::Refusal(Refusal::Stranger),
        SessionFrame::Refusal(Refusal::Fenced {
            received_through: 3,
        }),
        SessionFrame::Acknowledge(stamp),
        SessionFrame::Taken(stamp, vec![BodyId(7)]),
        SessionFrame::Bye(stamp),
    ];
    let mut all: Vec<Vec<u8>> = frames.iter().map(SessionFrame::to_vec).collect();
    let event = |kind: u8, bytes: &[u8]| {
        let len = bytes.len() as u16;
        [&[1, kind], &len.to_le_bytes()[..], bytes].concat()
    };
    // A connection of the peer, what comes over it, and a loss.
    let mut together = event(3, &all[0]);
    together.extend([1, 0, 40, 0]);
    for frame in &all[5..] {
        together.extend(event(6, frame));
    }
    together.extend([1, 4, 200, 5, 1, 2]);
    all.push(together);
    all
}
