//! Packets between agent and process, frames between launcher and agent and between agents, and the stream that holds these.

use mizzen_proto::boot::{
    Condition, DecodeError, FromAgent, FromProcess, MAX_FRAME, MAX_PACKET, ToAgent, ToProcess,
    TooLarge, split_frame,
};
use mizzen_proto::membership::{News, Spoken};
use mizzen_proto::rollcall::{Attendance, Present, Report};

/// Decodes the bytes as each kind of message, and as a stream of frames.
pub fn run(data: &[u8]) {
    packet(data, ToProcess::decode, ToProcess::encode);
    packet(data, FromProcess::decode, FromProcess::encode);
    present(data);
    content(data);
    let mut stream = data;
    while let Ok(Some((frame, used))) = split_frame(stream) {
        assert!(used > frame.len() && used <= stream.len() && frame.len() <= MAX_FRAME);
        content(frame);
        stream = &stream[used..];
    }
}

fn content(data: &[u8]) {
    framed(data, ToAgent::decode, ToAgent::encode);
    framed(data, FromAgent::decode, FromAgent::encode);
    // A snapshot may come in any order, and is written in one: what is read need not be what is written.
    let _ = Spoken::decode(data);
    let _ = News::decode(data);
}

/// What a process answers to a roll-call, and what is made of it.
fn present(data: &[u8]) {
    let Ok(present) = Present::decode(data) else {
        return;
    };
    assert_eq!(present.encode(), data);
    let of = |rank| Attendance::new(rank, Condition::Sleeps, Some(present.clone()));
    let report = Report::of(&[of(0), of(1), of(2)]);
    assert_eq!(report.longest.is_some(), !present.waits.is_empty());
}

type Decode<T> = fn(&[u8]) -> Result<T, DecodeError>;
type Encode<T> = fn(&T, &mut Vec<u8>) -> Result<(), TooLarge>;

fn packet<T>(data: &[u8], decode: Decode<T>, encode: Encode<T>) {
    let Ok(message) = decode(data) else { return };
    assert!(data.len() <= MAX_PACKET);
    let mut again = Vec::new();
    encode(&message, &mut again).expect("what was decoded keeps the limits");
    assert_eq!(again, data);
}

fn framed<T>(data: &[u8], decode: Decode<T>, encode: Encode<T>) {
    let Ok(message) = decode(data) else { return };
    let mut again = Vec::new();
    encode(&message, &mut again).expect("what was decoded keeps the limits");
    let (content, used) = split_frame(&again)
        .expect("a frame that was just written")
        .expect("all of it");
    assert_eq!((content, used), (data, again.len()));
}
