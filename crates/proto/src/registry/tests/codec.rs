use std::sync::Arc;

use proptest::prelude::*;

use super::bed::address;
use crate::boot::{DecodeError, MAX_ANSWER, MAX_QUESTION};
use crate::id::{MailboxId, RequestId};
use crate::membership::{AgentId, Epoch, HostId};
use crate::registry::{
    Answer, Bound, FencingNumber, Frame, MAX_HANDED, MAX_NEAR, NAME_MAX, Outcome, Patience,
    Question, Record, Refusal, Said, View, Wish,
};

fn bound() -> Bound {
    Bound {
        number: FencingNumber {
            epoch: Epoch(3),
            counter: 4,
        },
        address: address(5, 6),
    }
}

fn all_said() -> Vec<Said> {
    let name = || "sum".into();
    let (request, stamp, round) = (7, 8, 9);
    let outcomes = [
        Outcome::Bound(bound().number),
        Outcome::Unbound(None),
        Outcome::Unbound(Some(bound().number)),
        Outcome::Taken(address(1, 2)),
        Outcome::Refused(Refusal::NamesFull),
        Outcome::Refused(Refusal::WaitingFull),
        Outcome::Refused(Refusal::OwnerGone),
        Outcome::Refused(Refusal::QuestionsFull),
    ];
    let record = Record {
        name: name(),
        bound: bound(),
    };
    let mut said = vec![
        Said::Hand {
            number: 1,
            records: vec![record.clone(), record],
        },
        Said::Handed { number: 1 },
        Said::Ready,
        Said::Established,
        Said::Withdraw { name: name() },
        Said::Free {
            name: name(),
            stamp,
        },
        Said::Full { name: name() },
        Said::Revoke {
            name: name(),
            round,
        },
        Said::Revoked {
            name: name(),
            round,
        },
        Said::Copied {
            name: name(),
            round,
        },
    ];
    for patience in [Patience::Wait, Patience::Look] {
        said.push(Said::Read {
            name: name(),
            patience,
            stamp,
        });
    }
    for wish in [Wish::Bind, Wish::Unbind] {
        said.push(Said::Change {
            name: name(),
            request,
            oldest: 6,
            wish,
            address: address(1, 2),
        });
    }
    for leased in [false, true] {
        said.push(Said::Found {
            name: name(),
            bound: bound(),
            stamp,
            leased,
        });
    }
    for bound in [None, Some(bound())] {
        said.push(Said::Copy {
            name: name(),
            round,
            bound,
        });
    }
    for outcome in outcomes {
        said.push(Said::Changed {
            name: name(),
            request,
            outcome,
        });
    }
    said
}

fn frame(said: Said) -> Frame {
    Frame {
        from: AgentId::new(HostId(1), 2),
        to: AgentId::new(HostId(3), 4),
        epoch: Epoch(5),
        view: View(6),
        sequence: 7,
        said,
    }
}

fn content(frame: &Frame) -> Vec<u8> {
    let mut bytes = vec![];
    frame.encode(&mut bytes).unwrap();
    bytes
}

#[test]
fn every_frame_survives_being_written_and_read() {
    for said in all_said() {
        let frame = frame(said);
        let bytes = content(&frame);
        assert_eq!(Frame::decode(&bytes), Ok(frame));
        for end in 0..bytes.len() {
            assert!(Frame::decode(&bytes[..end]).is_err());
        }
    }
}

#[test]
fn every_question_and_answer_survives_being_written_and_read() {
    let request = RequestId(1);
    let (name, mailbox) = (|| "sum".into(), MailboxId(2));
    let questions = [
        Question::Bind {
            request,
            name: name(),
            mailbox,
        },
        Question::Unbind {
            request,
            name: name(),
            mailbox,
        },
        Question::Read {
            request,
            name: name(),
            patience: Patience::Look,
        },
        Question::Near {
            request,
            name: name(),
        },
        Question::Cancel { request },
    ];
    for question in questions {
        let mut bytes = vec![];
        question.encode(&mut bytes).unwrap();
        assert_eq!(Question::decode(&bytes), Ok(question));
    }
    let outcome = Outcome::Taken(address(1, 2));
    let answers = [
        Answer::Done { request, outcome },
        Answer::Found {
            request,
            bound: bound(),
        },
        Answer::Free { request },
        Answer::Near {
            request,
            names: vec![name(); MAX_NEAR],
        },
    ];
    for answer in answers {
        let mut bytes = vec![];
        answer.encode(&mut bytes).unwrap();
        assert_eq!(Answer::decode(&bytes), Ok(answer));
    }
}

#[test]
fn the_longest_packets_fit_and_longer_ones_do_not() {
    let request = RequestId(1);
    let longest: Arc<str> = "x".repeat(NAME_MAX).into();
    let mut bytes = vec![];
    let name = Arc::clone(&longest);
    let mailbox = MailboxId(u64::MAX);
    let bind = Question::Bind {
        request,
        name,
        mailbox,
    };
    bind.encode(&mut bytes).unwrap();
    assert!(bytes.len() <= MAX_QUESTION);
    let near = |count| Answer::Near {
        request,
        names: vec![Arc::clone(&longest); count],
    };
    bytes.clear();
    near(MAX_NEAR).encode(&mut bytes).unwrap();
    assert!(bytes.len() <= MAX_ANSWER);
    assert!(near(MAX_NEAR + 1).encode(&mut vec![]).is_err());
}

#[test]
fn the_longest_handover_fits_and_a_longer_one_does_not() {
    let longest = |count| {
        let record = Record {
            name: "x".repeat(NAME_MAX).into(),
            bound: bound(),
        };
        frame(Said::Hand {
            number: 1,
            records: vec![record; count],
        })
    };
    let most = longest(MAX_HANDED);
    assert_eq!(Frame::decode(&content(&most)), Ok(most));
    assert!(longest(MAX_HANDED + 1).encode(&mut vec![]).is_err());
}

#[test]
fn a_name_that_is_empty_or_too_long_is_neither_written_nor_read() {
    for name in [String::new(), "x".repeat(NAME_MAX + 1)] {
        let said = Said::Withdraw { name: name.into() };
        assert!(frame(said).encode(&mut vec![]).is_err());
    }
    let mut bytes = content(&frame(Said::Withdraw { name: "a".into() }));
    let end = bytes.len();
    bytes.truncate(end - 1);
    bytes[end - 5] = 0;
    assert_eq!(Frame::decode(&bytes), Err(DecodeError::Value));
}

proptest! {
    #[test]
    fn bytes_that_are_read_are_written_the_same(bytes in proptest::collection::vec(0..20_u8, 0..120)) {
        if let Ok(frame) = Frame::decode(&bytes) {
            prop_assert_eq!(content(&frame), bytes.clone());
        }
        if let Ok(question) = Question::decode(&bytes) {
            let mut again = vec![];
            question.encode(&mut again).unwrap();
            prop_assert_eq!(again, bytes.clone());
        }
        if let Ok(answer) = Answer::decode(&bytes) {
            let mut again = vec![];
            answer.encode(&mut again).unwrap();
            prop_assert_eq!(again, bytes);
        }
    }
}
