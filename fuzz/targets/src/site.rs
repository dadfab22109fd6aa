//! What gateways of sites say to each other, what jobs ask of them, and what proxies answer.

use mizzen_site::fuzzing::{First, Line, Request};
use mizzen_tcp::{Answer, MAX_REASON};

/// What is taken for good is written back as it was read; what is told to people is short, and on one line.
pub fn run(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Some(first) = First::read(text) {
            assert_eq!(First::read(&first.to_string()), Some(first));
        }
        if let Some(line) = Line::read(text) {
            let written = line.to_string();
            assert!(written.len() < 512 && !written.contains(['\n', '\r']));
            assert_eq!(Line::read(&written), Some(line));
        }
    }
    if let Err(refusal) = Request::read(bytes) {
        assert!((400..600).contains(&refusal.code));
        assert!(!refusal.sentence.contains(['\n', '\r']));
    }
    if let Answer::Refused { reason, .. } = Answer::read(bytes) {
        let is_shown = |char: char| !char.is_control();
        assert!(reason.chars().count() <= MAX_REASON && reason.chars().all(is_shown));
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "words",
        "stream render 10.2.0.5:40001",
        "come 0000000000000007",
        "ok",
        "no 404 nobody offers it",
        "ping 0000000000000001",
        "pong 0000000000000001",
        "want 0000000000000007 render [fd00::1]:40001",
        "not 0000000000000007 403 it is not exported",
        "CONNECT 10.2.0.5:40001 HTTP/1.1\r\nHost: x\r\nMizzen-Meeting: render@b\r\n\r\n",
        "OFFER launcher HTTP/1.1\r\nMizzen-Meeting: render@b\r\nMizzen-Port: 40001\r\n\r\n",
        "GET /status HTTP/1.1\r\n\r\n",
        "HTTP/1.1 200 Connected\r\n\r\n",
        "HTTP/1.1 403 site \"b\" does not let \"render\" be met\r\nContent-Length: 0\r\n\r\n",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}
