//! Requests and answers as bytes: JSON in the frames that launcher and agents use.

use std::io::{self, Read};

use mizzen_proto::boot::{DecodeError, FRAME_HEADER, split_frame};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A word by which a side knows its front end, and the other way round.
#[derive(Debug, Serialize, Deserialize)]
struct Envelope<T> {
    mizzen_doctor: u32,
    says: T,
}

/// Appends a frame. None if it is too long for one.
pub(crate) fn encode<T: Serialize>(says: &T, to: &mut Vec<u8>) -> Option<()> {
    let envelope = Envelope {
        mizzen_doctor: VERSION,
        says,
    };
    let content = serde_json::to_vec(&envelope).ok()?;
    let length = u32::try_from(content.len()).ok()?;
    if content.len() > LONGEST {
        return None;
    }
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(&content);
    Some(())
}

/// What a frame holds; none if it is not from a doctor of our version.
pub(crate) fn decode<T: DeserializeOwned>(content: &[u8]) -> Option<T> {
    if content.len() > LONGEST {
        return None;
    }
    let envelope: Envelope<T> = serde_json::from_slice(content).ok()?;
    (envelope.mizzen_doctor == VERSION).then_some(envelope.says)
}

/// Reads one frame, and waits for it. None at the end of the stream, or if there is something else.
pub(crate) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut frame = vec![0; FRAME_HEADER];
    match from.read_exact(&mut frame) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let Ok([a, b, c, d]) = <[u8; 4]>::try_from(&frame[..]) else {
        return Ok(None);
    };
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > LONGEST {
        return Ok(None);
    }
    frame.resize(FRAME_HEADER + length, 0);
    from.read_exact(&mut frame[FRAME_HEADER..])?;
    let whole: Result<_, DecodeError> = split_frame(&frame);
    Ok(whole
        .ok()
        .flatten()
        .and_then(|(content, _)| decode(content)))
}

/// Bytes of a request or an answer: many times what the longest takes.
const LONGEST: usize = 1 << 20;

/// Counted up when a request or an answer changes its meaning.
const VERSION: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::report::{Address, Answer, Finding, Report, Request};

    #[test]
    fn what_is_encoded_is_read() {
        let mut bytes = Vec::new();
        let request = Request::Look {
            bind: "10.0.0.1".to_owned(),
        };
        encode(&request, &mut bytes).unwrap();
        encode(&Request::Clock, &mut bytes).unwrap();
        let (content, _) = split_frame(&bytes).unwrap().unwrap();
        assert_eq!(decode::<Request>(content), Some(request.clone()));
        let mut stream = &bytes[..];
        assert_eq!(read::<Request>(&mut stream).unwrap(), Some(request));
        assert_eq!(read::<Request>(&mut stream).unwrap(), Some(Request::Clock));
        assert_eq!(read::<Request>(&mut stream).unwrap(), None);
    }

    #[test]
    fn a_changed_byte_does_no_harm() {
        let report = Report {
            mizzen: "0.1.0".to_owned(),
            boot: 2,
            kernel: "Linux".to_owned(),
            findings: vec![Finding::warn("load", "3.0", "End others.").varying()],
            addresses: vec![Address {
                interface: "eth0".to_owned(),
                ip: "fd00::1".parse().unwrap(),
            }],
            port: 7,
            token: "x".to_owned(),
        };
        let mut bytes = Vec::new();
        encode(&Answer::Looked(report), &mut bytes).unwrap();
        for at in 0..bytes.len() {
            for value in [0, b'"', b'{', b'-', b'9', b'\\', 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                if let Ok(Some(mut answer)) = read::<Answer>(&mut &changed[..]) {
                    answer.tame();
                }
            }
        }
    }

    #[test]
    fn strange_bytes_are_nothing() {
        for content in [
            &b""[..],
            b"{}",
            b"null",
            b"\xff\xfe",
            b"{\"mizzen_doctor\":2,\"says\":{\"Clock\":1}}",
            b"{\"mizzen_doctor\":1,\"says\":{\"Clock\":-1}}",
            b"{\"mizzen_doctor\":1,\"says\":{\"Looked\":{}}}",
            b"{\"mizzen_doctor\":1,\"says\":{\"Else\":0}}",
            &b"[".repeat(100_000),
        ] {
            assert_eq!(decode::<Answer>(content), None);
        }
        let good = b"{\"mizzen_doctor\":1,\"says\":{\"Clock\":1}}";
        assert_eq!(decode::<Answer>(good), Some(Answer::Clock(1)));
        for cut in 0..good.len() {
            assert_eq!(decode::<Answer>(&good[..cut]), None);
        }
        let mut endless = io::repeat(0xff);
        assert_eq!(read::<Request>(&mut endless).unwrap(), None);
        assert!(read::<Request>(&mut &b"\x05\0\0\0ab"[..]).is_err());
    }
}
