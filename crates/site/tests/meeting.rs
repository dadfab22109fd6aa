//! Sites that meet: who dials whom, and what goes between them.

mod common;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;

use common::{Echo, Proxy, Site, door, echoes, meeting, pace, refusal, two_sites, until};

#[test]
fn what_is_offered_at_one_site_is_reached_from_the_other() {
    let (_a, _b, of_a, of_b) = two_sites();
    let echo = Echo::new();
    let _offer = door(&of_b)
        .offer(&meeting("render@a"), "lead", echo.at())
        .unwrap();
    let mut socket = door(&of_a).connect(&meeting("render@b"), "lead").unwrap();
    assert!(echoes(&mut socket, b"hello"));
    let long: Vec<u8> = (0..3_000_000u32).map(|i| (i * 7) as u8).collect();
    let mut sender = socket.try_clone().unwrap();
    let sent = long.clone();
    let sending = thread::spawn(move || {
        sender.write_all(&sent).unwrap();
        // What was said is said; the answer still comes.
        sender.shutdown(Shutdown::Write).unwrap();
    });
    let mut back = Vec::new();
    socket.read_to_end(&mut back).unwrap();
    sending.join().unwrap();
    assert!(back == long);
    let text = of_a.status();
    assert!(text.contains("3000005 bytes out, 3000005 in"), "{text}");
}

/// The site that cannot be dialled is asked to dial.
#[test]
fn a_site_that_dials_only_is_reached_too() {
    let (mut a, mut b) = (Site::new("a"), Site::new("b").dials_only());
    a.believe(&b, None);
    let of_a = a.open();
    b.believe(&a, of_a.outside());
    let of_b = b.open();
    assert_eq!(of_b.outside(), None);
    a.has_told("site \"b\" is connected");
    let echo = Echo::new();
    let _at_b = door(&of_b)
        .offer(&meeting("render@a"), "lead", echo.at())
        .unwrap();
    let _at_a = door(&of_a)
        .offer(&meeting("render@b"), "127.0.0.1:7", echo.at())
        .unwrap();
    let mut streams = vec![];
    for round in 0..20u8 {
        let mut out = door(&of_a).connect(&meeting("render@b"), "lead").unwrap();
        let mut back = door(&of_b)
            .connect(&meeting("render@a"), "127.0.0.1:7")
            .unwrap();
        assert!(echoes(&mut out, &[round; 1000]) && echoes(&mut back, &[round; 1000]));
        streams.push((out, back));
    }
    let (code, sentence) = refusal(door(&of_a).connect(&meeting("render@b"), "other"));
    assert!(
        code == 404 && sentence.contains("nobody at site \"b\" offers \"other\" of render@a"),
        "{sentence}"
    );
    assert!(of_b.status().contains("40 streams"), "{}", of_b.status());
    drop(streams);
    until("all have ended", || of_b.status().contains(" 0 streams"));
}

#[test]
fn a_proxy_is_gone_through() {
    let (mut a, mut b) = (Site::new("a").dials_only(), Site::new("b"));
    b.believe(&a, None);
    let of_b = b.open();
    let proxy = Proxy::new();
    a.proxy = Some(proxy.at);
    a.believe(&b, of_b.outside());
    let of_a = a.open();
    a.has_told("site \"b\" is connected");
    let echo = Echo::new();
    let _at_a = door(&of_a)
        .offer(&meeting("render@b"), "lead", echo.at())
        .unwrap();
    let _at_b = door(&of_b)
        .offer(&meeting("render@a"), "lead", echo.at())
        .unwrap();
    for (gateway, name) in [(&of_a, "render@b"), (&of_b, "render@a")] {
        let mut socket = door(gateway).connect(&meeting(name), "lead").unwrap();
        assert!(echoes(&mut socket, &[7; 100_000]));
    }
    let asked = proxy.asked.lock().unwrap();
    let head = format!("CONNECT {} HTTP/1.1\r\nHost: ", of_b.outside().unwrap());
    assert!(
        asked.len() == 3 && asked.iter().all(|asked| asked.starts_with(&head)),
        "{asked:?}"
    );
}

/// And not before both are there.
#[test]
fn gateways_may_come_and_go() {
    let (mut a, mut b) = (Site::new("a").dials_only(), Site::new("b"));
    b.believe(&a, None);
    let of_b = b.open();
    let at = of_b.outside().unwrap();
    drop(of_b);
    a.believe(&b, Some(at));
    let of_a = a.open();
    a.has_told("site \"b\" at 127.0.0.1");
    let (code, sentence) = refusal(door(&of_a).connect(&meeting("render@b"), "lead"));
    assert!(
        code == 502 && sentence.contains("cannot be reached"),
        "{code} {sentence}"
    );
    assert!(
        of_a.status().contains("site b: not connected: "),
        "{}",
        of_a.status()
    );
    for _ in 0..2 {
        // At the port of the first.
        let listening = Gateway::at(&b, at);
        until("they are connected", || {
            of_a.status().contains("site b: dialled gw1 at")
        });
        until("its round trip is known", || {
            of_a.status().contains("round trip")
        });
        drop(listening);
        until("it is seen", || {
            of_a.status().contains("site b: not connected")
        });
    }
}

struct Gateway;

impl Gateway {
    fn at(site: &Site, at: std::net::SocketAddr) -> mizzen_site::Gateway {
        let mut file = site.file();
        file.listen = Some(at);
        mizzen_site::Gateway::open(mizzen_site::Setup {
            file,
            credentials: site.credentials(),
            pace: pace(),
            news: std::sync::Arc::new(|_| {}),
        })
        .unwrap()
    }
}

/// One of two gateways has the offer; the other is asked first.
#[test]
fn all_gateways_of_a_site_are_asked() {
    let (mut a, mut b) = (Site::new("a"), Site::new("b"));
    b.believe(&a, None);
    let (first, second) = (b.open(), b.open());
    let other = a.believe(&b, first.outside());
    other.reach.push(second.outside().unwrap());
    let of_a = a.open();
    let echo = Echo::new();
    let _offer = door(&second)
        .offer(&meeting("render@a"), "lead", echo.at())
        .unwrap();
    let mut socket = door(&of_a).connect(&meeting("render@b"), "lead").unwrap();
    assert!(echoes(&mut socket, b"hello"));
    drop(first);
    let mut socket = door(&of_a).connect(&meeting("render@b"), "lead").unwrap();
    assert!(echoes(&mut socket, b"hello again"));
}

/// The new key is listed, then used, then the old is taken away: what goes by the new one is not touched.
#[test]
fn a_site_replaces_its_key_while_it_is_met() {
    let (mut a, mut b, of_a, of_b) = two_sites();
    let echo = Echo::new();
    let _offer = door(&of_b)
        .offer(&meeting("render@a"), "lead", echo.at())
        .unwrap();
    let by_old = door(&of_a).connect(&meeting("render@b"), "lead").unwrap();
    let old = b.key.pin().to_string();
    b.key = mizzen_identity::SiteKey::generate().unwrap();
    a.others[0].pins.push(b.key.pin().to_string());
    let renewed = b.open();
    a.others[0].reach = vec![renewed.outside().unwrap()];
    assert_eq!(of_a.replace(a.file()).unwrap(), 0, "nothing ends");
    let _offer = door(&renewed)
        .offer(&meeting("render@a"), "lead", echo.at())
        .unwrap();
    let mut by_new = door(&of_a).connect(&meeting("render@b"), "lead").unwrap();
    assert!(echoes(&mut by_new, b"new"));
    let (mut old_one, mut new_one) = (by_old, by_new);
    assert!(echoes(&mut old_one, b"old"));
    a.others[0].pins.retain(|pin| *pin != old);
    assert!(of_a.replace(a.file()).unwrap() >= 1);
    common::ends(&mut old_one);
    for round in 0..100u8 {
        assert!(echoes(&mut new_one, &[round; 10_000]));
    }
}
