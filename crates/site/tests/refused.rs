//! What a gateway refuses, and what it ends.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use common::hostile::{self, ask, believing, hear};
use common::{
    Between, Echo, Site, door, echoes, ends, local, meeting, pace, refusal, two_sites, until,
};
use mizzen_identity::SiteKey;
use mizzen_site::{DoorError, Gateway};

/// A stream from a to b, of the job `render`, and what keeps it offered.
fn met(of_a: &Gateway, of_b: &Gateway) -> (TcpStream, mizzen_site::Offered) {
    let echo = Echo::new();
    let offered = door(of_b)
        .offer(&meeting("render@a"), "lead", echo.at())
        .unwrap();
    let mut socket = door(of_a).connect(&meeting("render@b"), "lead").unwrap();
    assert!(echoes(&mut socket, b"hello"));
    (socket, offered)
}

#[test]
fn a_revoked_site_is_cut_off_at_once_on_what_is_up_too() {
    let (a, mut b, of_a, of_b) = two_sites();
    let (mut socket, _offered) = met(&of_a, &of_b);
    b.has_told("site \"a\" is connected");
    b.revoked.push(a.key.pin().to_string());
    let began = Instant::now();
    assert_eq!(
        of_b.replace(b.file()).unwrap(),
        2,
        "the words and the stream"
    );
    ends(&mut socket);
    assert!(began.elapsed() < Duration::from_secs(2));
    until("a knows", || {
        of_a.status().contains("site b: not connected")
    });
    let (code, _) = refusal(door(&of_a).connect(&meeting("render@b"), "lead"));
    assert_eq!(code, 502);
    b.has_told("revoked");
}

#[test]
fn a_revoked_gateway_is_cut_off_while_its_site_is_believed() {
    let (a, mut b, of_a, of_b) = two_sites();
    let (mut socket, _offered) = met(&of_a, &of_b);
    let pin = a.credentials().as_peer().pins.gateway.to_string();
    b.revoked.push(pin);
    of_b.replace(b.file()).unwrap();
    ends(&mut socket);
    // Another gateway of a, with a key of its own.
    let mut other = Site::new("a");
    (other.key, other.others) = (a.key, a.others.clone());
    let another = other.open();
    let mut socket = door(&another)
        .connect(&meeting("render@b"), "lead")
        .unwrap();
    assert!(echoes(&mut socket, b"hello"));
}

#[test]
fn a_site_that_is_not_listed_any_more_is_cut_off() {
    let (_a, mut b, of_a, of_b) = two_sites();
    let (mut socket, _offered) = met(&of_a, &of_b);
    b.others.clear();
    of_b.replace(b.file()).unwrap();
    ends(&mut socket);
}

#[test]
fn what_is_no_longer_exported_ends_and_the_rest_goes_on() {
    let (_a, mut b, of_a, of_b) = two_sites();
    let (mut render, mut offered) = met(&of_a, &of_b);
    let echo = Echo::new();
    let _tiles = door(&of_b)
        .offer(&meeting("tiles@a"), "lead", echo.at())
        .unwrap();
    let mut tiles = door(&of_a).connect(&meeting("tiles@b"), "lead").unwrap();
    b.others[0].exports = vec!["tiles".into()];
    assert_eq!(
        of_b.replace(b.file()).unwrap(),
        2,
        "the stream and the offer"
    );
    ends(&mut render);
    offered.wait_for_end();
    assert!(echoes(&mut tiles, b"still here"));
    let (code, sentence) = refusal(door(&of_a).connect(&meeting("render@b"), "lead"));
    assert!(
        code == 403 && sentence.contains("does not let \"render\" be met with site \"a\""),
        "{sentence}"
    );
}

/// Both must allow it: asked by one's own gateway first, by the other's even if ours does not care.
#[test]
fn what_is_not_exported_is_not_met() {
    let (mut a, mut b, of_a, of_b) = two_sites();
    let echo = Echo::new();
    let _offered = door(&of_b)
        .offer(&meeting("payroll@a"), "lead", echo.at())
        .unwrap();
    a.others[0].exports = vec!["render".into()];
    of_a.replace(a.file()).unwrap();
    let (code, sentence) = refusal(door(&of_a).connect(&meeting("payroll@b"), "lead"));
    assert!(
        code == 403 && sentence.contains("site \"a\" does not let"),
        "{sentence}"
    );
    assert_eq!(
        refusal(door(&of_a).offer(&meeting("payroll@b"), "lead", local(7777))).0,
        403
    );
    assert_eq!(
        refusal(door(&of_a).connect(&meeting("payroll@nowhere"), "lead")).0,
        403
    );
    a.others[0].exports = vec!["*".into()];
    of_a.replace(a.file()).unwrap();
    b.others[0].exports = vec!["render".into()];
    of_b.replace(b.file()).unwrap();
    let (code, sentence) = refusal(door(&of_a).connect(&meeting("payroll@b"), "lead"));
    assert!(
        code == 403 && sentence.contains("site \"b\" does not let"),
        "{sentence}"
    );
    b.has_told("was refused");
    // Said by hand, without a gateway of our own.
    let credentials = believing(&a, &[&b]);
    let mut line = hostile::dial(&credentials, of_b.outside().unwrap());
    let answer = ask(&mut line, b"stream payroll lead\n").unwrap();
    assert!(answer.starts_with("no 403 "), "{answer}");
}

#[test]
fn what_was_offered_to_one_site_is_not_offered_to_another() {
    let (a, mut b, _of_a, of_b) = two_sites();
    let c = Site::new("c");
    b.believe(&c, None);
    of_b.replace(b.file()).unwrap();
    let echo = Echo::new();
    let _offered = door(&of_b)
        .offer(&meeting("render@a"), "lead", echo.at())
        .unwrap();
    let at = of_b.outside().unwrap();
    let mut line = hostile::dial(&believing(&c, &[&b]), at);
    let answer = ask(&mut line, b"stream render lead\n").unwrap();
    assert!(answer.starts_with("no 404 "), "{answer}");
    let mut line = hostile::dial(&believing(&a, &[&b]), at);
    assert_eq!(
        ask(&mut line, b"stream render lead\n").as_deref(),
        Some("ok")
    );
}

#[test]
fn who_is_not_listed_or_has_another_key_is_not_let_in() {
    let (_a, b, _of_a, of_b) = two_sites();
    let at = of_b.outside().unwrap();
    let unlisted = Site::new("c");
    // Another key under a name that is listed.
    let impostor = Site::new("a");
    for (who, why) in [(&unlisted, "not listed"), (&impostor, "another key")] {
        let mut line = hostile::dial(&believing(who, &[&b]), at);
        assert_eq!(ask(&mut line, b"words\n"), None, "{why}");
    }
    until("both are told", || {
        let news = b.news.lock().unwrap();
        news.iter()
            .filter(|text| text.contains("was not let in"))
            .count()
            == 2
    });
}

/// And we do not talk to a gateway that is not of the site that we dialled.
#[test]
fn a_site_is_not_taken_for_another_that_is_believed_as_well() {
    let (mut a, mut c) = (Site::new("a"), Site::new("c"));
    let b = Site::new("b");
    c.believe(&a, None);
    let of_c = c.open();
    a.believe(&b, of_c.outside());
    a.believe(&c, None);
    let of_a = a.open();
    let (code, sentence) = refusal(door(&of_a).connect(&meeting("render@b"), "lead"));
    assert!(
        code == 502 && sentence.contains("it is one of site \"c\""),
        "{sentence}"
    );
    a.has_told("it is one of site \"c\"");
}

#[test]
fn what_is_changed_on_the_way_is_noticed() {
    let (a, mut b) = (Site::new("a"), Site::new("b"));
    b.believe(&a, None);
    let of_b = b.open();
    let echo = Echo::new();
    let _offered = door(&of_b)
        .offer(&meeting("render@a"), "lead", echo.at())
        .unwrap();
    let between = Between::new(of_b.outside().unwrap(), None);
    let mut line = hostile::dial(&believing(&a, &[&b]), between.at);
    let answer = ask(&mut line, b"stream render lead\n");
    assert_eq!(answer.as_deref(), Some("ok"), "unchanged, it passes");
    let long = between.heard.lock().unwrap()[0].len();
    for at in (0..long).step_by(97).chain([long - 1]) {
        let between = Between::new(of_b.outside().unwrap(), Some(at));
        // A changed length makes the other end wait for more, until it has waited enough.
        let mut line = hostile::dial(&believing(&a, &[&b]), between.at);
        if ask(&mut line, b"stream render lead\n").is_some() {
            let heard = between.heard.lock().unwrap();
            assert!(means_nothing(&heard[0], at), "byte {at}");
        }
    }
}

/// Whether a byte is one that TLS 1.3 does not look at: the record of older versions that is there for those in between, and the
/// version in front of what is not yet encrypted (RFC 8446, sections 5 and 5.1).
fn means_nothing(records: &[u8], at: usize) -> bool {
    let mut begin = 0;
    loop {
        let len = usize::from(u16::from_be_bytes([records[begin + 3], records[begin + 4]]));
        let end = begin + 5 + len;
        if at < end {
            let is_version = (1..3).contains(&(at - begin));
            return records[begin] == 20 || (records[begin] == 22 && is_version);
        }
        begin = end;
    }
}

#[test]
fn what_was_said_once_cannot_be_said_again_by_another() {
    let (mut a, mut b) = (Site::new("a"), Site::new("b"));
    b.believe(&a, None);
    let of_b = b.open();
    let between = Between::new(of_b.outside().unwrap(), None);
    a.believe(&b, Some(between.at));
    let of_a = a.open();
    let (_socket, _offered) = met(&of_a, &of_b);
    let said = between.heard.lock().unwrap().clone();
    assert!(said.len() >= 2);
    let streams = of_b.status();
    for said in said {
        let mut socket = TcpStream::connect(of_b.outside().unwrap()).unwrap();
        socket.write_all(&said).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        // It answers with a handshake of its own, and ends when ours is not the answer to it.
        let mut heard = Vec::new();
        let _ = socket.read_to_end(&mut heard);
        assert!(!heard.windows(5).any(|bytes| bytes == b"hello"));
    }
    b.has_told("was not let in");
    assert!(streams.contains("1 streams") && of_b.status().contains("1 streams"));
}

#[test]
fn a_connection_that_nobody_wanted_does_not_come() {
    let (a, mut b, _of_a, of_b) = two_sites();
    let c = Site::new("c");
    b.believe(&c, None);
    of_b.replace(b.file()).unwrap();
    let at = of_b.outside().unwrap();
    let of_c = believing(&c, &[&b]);
    let mut line = hostile::dial(&of_c, at);
    let answer = ask(&mut line, b"come 0000000000000001\n").unwrap();
    assert!(answer.starts_with("no 403 "), "{answer}");
    // One that was wanted from another site: a has words with b, and is asked.
    let mut words = hostile::dial(&believing(&a, &[&b]), at);
    assert_eq!(ask(&mut words, b"words\n").as_deref(), Some("ok"));
    let asking = thread::spawn({
        let door = door(&of_b);
        move || door.connect(&meeting("render@a"), "lead").map(drop)
    });
    let want = loop {
        let line = hear(&mut words).expect("a wish");
        if line.starts_with("want ") {
            break line;
        }
    };
    let ticket = want.split(' ').nth(1).unwrap().to_owned();
    let mut line = hostile::dial(&of_c, at);
    let answer = ask(&mut line, format!("come {ticket}\n").as_bytes()).unwrap();
    assert!(answer.starts_with("no 403 "), "{answer}");
    words
        .write_all(format!("not {ticket} 404 not here\n").as_bytes())
        .unwrap();
    let error = asking.join().unwrap().unwrap_err();
    assert!(
        matches!(error, DoorError::Refused(why) if why.code == 404 && why.sentence == "not here")
    );
}

#[test]
fn who_does_not_speak_as_a_gateway_does_is_cut_off() {
    let (a, b, _of_a, of_b) = two_sites();
    let (at, credentials) = (of_b.outside().unwrap(), believing(&a, &[&b]));
    for said in [
        &b"what\n"[..],
        b"words words\n",
        b"\n",
        b"\xff\xfe\n",
        b"ok\n",
        &[b'a'; 4096],
    ] {
        let mut line = hostile::dial(&credentials, at);
        assert_eq!(ask(&mut line, said), None, "{said:?}");
    }
    // On words: an order to dial from who may not give it, an answer to nothing, noise.
    for said in [
        "want 0000000000000001 render lead",
        "ok",
        "ping 1",
        "stream render lead",
    ] {
        let mut line = hostile::dial(&credentials, at);
        assert_eq!(ask(&mut line, b"words\n").as_deref(), Some("ok"));
        line.write_all(format!("{said}\n").as_bytes()).unwrap();
        while let Some(line) = hear(&mut line) {
            assert!(line.starts_with("ping "), "{line}");
        }
    }
    // Bytes before they were asked for.
    let echo = Echo::new();
    let _offered = door(&of_b)
        .offer(&meeting("render@a"), "lead", echo.at())
        .unwrap();
    let mut line = hostile::dial(&credentials, at);
    let _ = ask(&mut line, b"stream render lead\nstream render lead\n");
    assert_eq!(hear(&mut line), None);
    assert!(of_b.status().contains(" 0 streams"), "{}", of_b.status());
}

#[test]
fn other_protocols_get_nothing_at_either_door() {
    let (a, b, of_a, of_b) = two_sites();
    let mut socket = TcpStream::connect(of_b.outside().unwrap()).unwrap();
    socket.write_all(b"GET /status HTTP/1.1\r\n\r\n").unwrap();
    let mut heard = Vec::new();
    let _ = socket.read_to_end(&mut heard);
    assert!(!heard.windows(4).any(|bytes| bytes == b"site"), "{heard:?}");
    // The door inside is none for gateways.
    let mut line = hostile::dial(&believing(&a, &[&b]), of_b.inside());
    assert_eq!(ask(&mut line, b"words\n"), None);
    // A wrong request is answered with a sentence.
    let mut socket = TcpStream::connect(of_a.inside()).unwrap();
    socket.write_all(b"DELETE / HTTP/1.1\r\n\r\n").unwrap();
    let mut heard = String::new();
    socket.read_to_string(&mut heard).unwrap();
    assert!(
        heard.starts_with("HTTP/1.1 400 this gateway does not understand"),
        "{heard}"
    );
}

/// Who came in from outside could go on to the next site, and so on round and round.
#[test]
fn a_door_of_the_gateway_is_not_offered_to_others() {
    let (_a, _b, _of_a, of_b) = two_sites();
    for port in [of_b.inside().port(), of_b.outside().unwrap().port(), 22] {
        let (code, sentence) =
            refusal(door(&of_b).offer(&meeting("render@a"), "lead", local(port)));
        assert!(
            code == 403 && sentence.contains("is not for jobs"),
            "{sentence}"
        );
    }
}

#[test]
fn an_offer_is_not_taken_over() {
    let (_a, _b, of_a, of_b) = two_sites();
    let (_socket, offered) = met(&of_a, &of_b);
    let (code, sentence) = refusal(door(&of_b).offer(&meeting("render@a"), "lead", local(7777)));
    assert!(
        code == 403 && sentence.contains("is offered by somebody else"),
        "{sentence}"
    );
    drop(offered);
    until("it is free", || {
        let door = door(&of_b);
        door.offer(&meeting("render@a"), "lead", local(7777))
            .is_ok()
    });
}

/// Silent ones fill the room for strangers; the oldest go, and who has something to say is heard.
#[test]
fn a_flood_of_strangers_keeps_nobody_out() {
    let (a, b, of_a, of_b) = two_sites();
    let echo = Echo::new();
    let _offered = door(&of_b)
        .offer(&meeting("render@a"), "lead", echo.at())
        .unwrap();
    let (outside, inside) = (of_b.outside().unwrap(), of_b.inside());
    let silent: Vec<_> = (0..400)
        .map(|i| TcpStream::connect(if i % 2 == 0 { outside } else { inside }).unwrap())
        .collect();
    let began = Instant::now();
    let mut socket = door(&of_a).connect(&meeting("render@b"), "lead").unwrap();
    assert!(echoes(&mut socket, b"hello") && door(&of_b).site().unwrap() == "b");
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    // The rest go when they have been silent for too long.
    for mut socket in silent {
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let mut heard = Vec::new();
        let _ = socket.read_to_end(&mut heard);
    }
    // As do those who speak one byte at a time.
    let mut slow = hostile::dial(&believing(&a, &[&b]), outside);
    let began = Instant::now();
    while slow.write_all(b"w").and_then(|()| slow.flush()).is_ok() {
        thread::sleep(Duration::from_millis(300));
        assert!(began.elapsed() < Duration::from_secs(12));
    }
}

/// A site that is believed has its share, and takes no more.
#[test]
fn a_flood_of_streams_of_one_site_ends_at_its_share() {
    let (a, mut b, of_a, of_b) = two_sites();
    let mut c = Site::new("c");
    b.believe(&c, None);
    of_b.replace(b.file()).unwrap();
    c.believe(&b, of_b.outside());
    let of_c = c.open();
    let echo = Echo::new();
    let _to_a = door(&of_b)
        .offer(&meeting("render@a"), "lead", echo.at())
        .unwrap();
    let _to_c = door(&of_b)
        .offer(&meeting("render@c"), "lead", echo.at())
        .unwrap();
    let credentials = believing(&a, &[&b]);
    let mut lines = vec![];
    for _ in 0..300 {
        let mut line = hostile::dial(&credentials, of_b.outside().unwrap());
        let _ = ask(&mut line, b"stream render lead\n");
        lines.push(line);
    }
    let streams = || -> usize {
        let status = of_b.status();
        let line = status
            .lines()
            .find(|line| line.ends_with(" in") && line.contains("streams"))
            .unwrap();
        line.trim().split(' ').next().unwrap().parse().unwrap()
    };
    assert!((200..=256).contains(&streams()), "{}", of_b.status());
    let mut socket = door(&of_c).connect(&meeting("render@b"), "lead").unwrap();
    assert!(echoes(&mut socket, b"hello"));
    drop((lines, of_a));
    until("they are gone", || streams() == 0);
}

#[test]
fn a_silent_gateway_is_given_up() {
    let (a, mut b) = (Site::new("a"), Site::new("b"));
    b.believe(&a, None);
    let mut quick = pace();
    quick.ping = Duration::from_millis(200);
    let of_b = b.open_with(quick);
    let mut line = hostile::dial(&believing(&a, &[&b]), of_b.outside().unwrap());
    assert_eq!(ask(&mut line, b"words\n").as_deref(), Some("ok"));
    until("it is there", || of_b.status().contains("dialled by gw1"));
    until("it is not", || !of_b.status().contains("dialled by gw1"));
    b.has_told("nothing was heard of it");
}

#[test]
fn a_key_that_is_not_its_site_s_own_is_nobody() {
    let (a, b, _of_a, of_b) = two_sites();
    // Certified by a key of our own, for the name of a site that is believed: the chain is good, the pin is not.
    let mut forged = Site::new("a");
    forged.gateway_key = a.gateway_key;
    forged.key = SiteKey::generate().unwrap();
    let mut line = hostile::dial(&believing(&forged, &[&b]), of_b.outside().unwrap());
    assert_eq!(ask(&mut line, b"words\n"), None);
    b.has_told("was not let in");
}
