//! Seals between two ends that are who they say, and others; packets that were changed, moved, reflected and mixed.

use std::sync::Arc;

use super::{JOB, authority, credentials, process};
use crate::{Authority, Bond, Credentials, Identity, SEAL, Seal, SealError, Shaking};

fn bond(peer: &Identity, ours: &str, theirs: &str) -> Bond {
    Bond {
        peer: peer.clone(),
        ours: ours.into(),
        theirs: theirs.into(),
    }
}

/// The ends of a link between the ranks 0 and 1.
fn ends(authority: &Authority) -> (Shaking, Shaking) {
    let [zero, one] = [0, 1].map(process);
    (
        Shaking::dial(&credentials(authority, &zero), bond(&one, "0", "1")).unwrap(),
        Shaking::accept(&credentials(authority, &one), bond(&zero, "1", "0")).unwrap(),
    )
}

/// Runs a handshake to its end.
fn shake(mut dialler: Shaking, mut acceptor: Shaking) -> Result<(Seal, Seal), SealError> {
    let hello = dialler.begin()?;
    let answer = acceptor.take(&hello)?.expect("an answer");
    let proof = dialler.take(&answer)?.expect("a proof");
    assert_eq!(acceptor.take(&proof)?, None);
    assert!(dialler.is_proved() && acceptor.is_proved());
    Ok((dialler.finish().unwrap(), acceptor.finish().unwrap()))
}

fn seals() -> (Seal, Seal) {
    let (dialler, acceptor) = ends(&authority());
    shake(dialler, acceptor).unwrap()
}

fn sealed(seal: &mut Seal, number: u64, contents: &[u8]) -> (bool, Vec<u8>) {
    let mut packet = contents.to_vec();
    let phase = seal.seal(number, 0, b"header", &mut packet).unwrap();
    (phase, packet)
}

/// What a packet says that came as it is, with this header.
fn opened(seal: &mut Seal, number: u64, phase: bool, packet: &[u8]) -> Result<Vec<u8>, SealError> {
    let mut packet = packet.to_vec();
    let opened = seal.open(number, phase, b"header", &mut packet);
    opened.map(<[u8]>::to_vec)
}

#[test]
fn what_is_sealed_is_opened_by_the_other_end_whatever_its_length_and_order() {
    let (mut one, mut other) = seals();
    let lengths = [0, 1, 15, 16, 17, 1000, 65_000];
    let mut packets: Vec<_> = (0..).zip(lengths).collect::<Vec<(u64, usize)>>();
    packets.reverse();
    for (number, length) in packets {
        let contents = vec![0x5a; length];
        for (from, to) in [(0, 1), (1, 0)] {
            let ends = [&mut one, &mut other];
            let (phase, packet) = sealed(ends[from], number, &contents);
            assert_eq!(packet.len(), length + SEAL);
            let opened = opened(ends[to], number, phase, &packet);
            assert_eq!(opened, Ok(contents.clone()));
        }
    }
    assert_eq!((one.refused(), other.refused()), (0, 0));
}

#[test]
fn nothing_of_it_can_be_read_on_the_way() {
    let (mut one, _) = seals();
    let secret = b"nobody on the way may read this sentence";
    let (_, packet) = sealed(&mut one, 0, secret);
    assert!(!packet.windows(8).any(|window| secret.starts_with(window)));
    // Not even that two are the same.
    let (_, again) = sealed(&mut one, 1, secret);
    assert_ne!(packet, again);
    assert!(!format!("{one:?}").contains("key"));
}

#[test]
fn what_was_changed_anywhere_does_not_open() {
    let (mut one, mut other) = seals();
    let (phase, packet) = sealed(&mut one, 3, b"as it was sent");
    for bit in 0..packet.len() * 8 {
        let mut changed = packet.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let opened = opened(&mut other, 3, phase, &changed);
        assert_eq!(opened, Err(SealError::Broken), "{bit}");
    }
    for length in 0..packet.len() {
        let opened = opened(&mut other, 3, phase, &packet[..length]);
        assert_eq!(opened, Err(SealError::Broken), "{length}");
    }
    assert_eq!(other.refused(), packet.len() as u64 * 9);
    // And it does no harm.
    assert!(opened(&mut other, 3, phase, &packet).is_ok());
}

#[test]
fn it_opens_only_in_its_place() {
    let (mut one, mut other) = seals();
    let (phase, packet) = sealed(&mut one, 3, b"the third");
    let broken = Err(SealError::Broken);
    let mut at = |number, phase, header: &[u8]| {
        let mut packet = packet.clone();
        other
            .open(number, phase, header, &mut packet)
            .map(<[u8]>::len)
    };
    assert_eq!(at(4, phase, b"header"), broken, "another number");
    assert_eq!(at(3, phase, b"footer"), broken, "another header");
    assert_eq!(at(3, !phase, b"header"), broken, "another key");
    assert_eq!(at(3, phase, b"header"), Ok(9));
    // Who sent it does not take it for the other's, and those of another link know nothing of it.
    let reflected = opened(&mut one, 3, phase, &packet);
    assert_eq!(reflected, Err(SealError::Broken));
    let (mut stranger, mut another) = seals();
    for seal in [&mut stranger, &mut another] {
        let opened = opened(seal, 3, phase, &packet);
        assert_eq!(opened, Err(SealError::Broken));
    }
}

#[test]
fn keys_are_replaced_under_way_and_nothing_is_lost() {
    let (one, mut other) = seals();
    let mut one = one.most(16);
    // Sixty-four are under way at a time, and come in any order.
    let (mut taken, mut replaced, mut last) = (0, 0, false);
    for round in 0..100_u64 {
        let numbers = round * 64..(round + 1) * 64;
        let mut flying = Vec::new();
        for number in numbers.clone() {
            let mut packet = number.to_le_bytes().to_vec();
            let phase = one.seal(number, taken, b"", &mut packet).unwrap();
            replaced += u32::from(std::mem::replace(&mut last, phase) != phase);
            flying.push((number, phase, packet));
        }
        flying.sort_by_key(|(number, ..)| number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for (number, phase, mut packet) in flying {
            let opened = other.open(number, phase, b"", &mut packet);
            assert_eq!(opened, Ok(&number.to_le_bytes()[..]), "{number}");
        }
        taken = numbers.end;
    }
    assert!(replaced >= 99, "{replaced}");
    // What was old before is replaced now; if nothing comes back, it is not.
    one.rotate();
    let (phase, _) = sealed(&mut one, 10_000, b"");
    let mut packet = vec![];
    assert_eq!(
        one.seal(10_001, 10_001, b"", &mut packet).unwrap(),
        !phase,
        "the other end has something of this key"
    );
    one.rotate();
    for number in 10_002..10_100 {
        let mut packet = vec![];
        let same = one.seal(number, 10_001, b"", &mut packet);
        assert_eq!(same, Ok(!phase), "nothing of this key has come back");
    }
}

#[test]
fn who_is_not_who_was_expected_gets_no_seal() {
    let authority = authority();
    let [zero, one, two] = [0, 1, 2].map(process);
    let of = |identity: &Identity| credentials(&authority, identity);
    let other_job = Authority::new("local", [9; 16]).unwrap();
    let stranger = Identity::new("local", [9; 16], 1, 0).unwrap();
    let agent = Identity::agent("local", JOB, 1, 1).unwrap();
    let later = Identity::new("local", JOB, 1, 1).unwrap();
    let same_name = Authority::new("local", JOB).unwrap();
    let others: [(&str, Credentials); 5] = [
        ("another rank", of(&two)),
        ("another life", of(&later)),
        ("an agent", of(&agent)),
        ("another job", credentials(&other_job, &stranger)),
        ("another authority", credentials(&same_name, &one)),
    ];
    for (what, impostor) in others {
        let dialler = Shaking::dial(&of(&zero), bond(&one, "0", "1")).unwrap();
        let acceptor = Shaking::accept(&impostor, bond(&zero, "1", "0")).unwrap();
        assert!(shake(dialler, acceptor).is_err(), "{what} is dialled");
        let dialler = Shaking::dial(&impostor, bond(&zero, "1", "0")).unwrap();
        let acceptor = Shaking::accept(&of(&zero), bond(&one, "0", "1")).unwrap();
        assert!(shake(dialler, acceptor).is_err(), "{what} dials");
    }
    let dialler = Shaking::dial(&of(&zero), bond(&one, "0", "1")).unwrap();
    let acceptor = Shaking::accept(&of(&two), bond(&zero, "1", "0")).unwrap();
    let refused = shake(dialler, acceptor).unwrap_err();
    let (found, wanted) = (two, one);
    assert_eq!(refused, SealError::Other { found, wanted });
}

#[test]
fn a_handshake_for_one_link_is_none_for_another() {
    let authority = authority();
    let [zero, one] = [0, 1].map(process);
    for (ours, theirs) in [("0", "2"), ("2", "1"), ("", "1"), ("0", "")] {
        let dialler = Shaking::dial(&credentials(&authority, &zero), bond(&one, ours, theirs));
        let acceptor = Shaking::accept(&credentials(&authority, &one), bond(&zero, "1", "0"));
        let refused = shake(dialler.unwrap(), acceptor.unwrap()).unwrap_err();
        assert_eq!(refused, SealError::Purpose, "{ours} {theirs}");
    }
}

#[test]
fn flights_that_were_changed_cut_or_come_twice_lead_to_nothing() {
    let authority = authority();
    // What each end says to the other, in turn.
    let flight = |which: u8| {
        let (mut dialler, mut acceptor) = ends(&authority);
        let hello = dialler.begin().unwrap();
        if which == 0 {
            return (hello, dialler, acceptor);
        }
        let answer = acceptor.take(&hello).unwrap().unwrap();
        if which == 1 {
            return (answer, acceptor, dialler);
        }
        let proof = dialler.take(&answer).unwrap().unwrap();
        (proof, dialler, acceptor)
    };
    for which in 0..3 {
        let (whole, ..) = flight(which);
        for at in (0..whole.len()).step_by(23) {
            let (mut bytes, _, mut end) = flight(which);
            bytes[at.min(whole.len() - 1)] ^= 0x40;
            // A greeting may be changed and understood: then the proof does not fit what was said.
            let said = end.take(&bytes);
            assert!(!end.is_proved(), "{which} {at}");
            assert!(which == 0 || said.is_err(), "{which} {at}");
            let (bytes, _, mut end) = flight(which);
            assert!(
                end.take(&bytes[..at]).is_err() || !end.is_proved(),
                "{which} {at}"
            );
            assert!(end.finish().is_none());
        }
        let (bytes, mut from, mut to) = flight(which);
        assert!(from.take(&bytes).is_err(), "its own flight");
        let _ = to.take(&bytes).unwrap();
        assert!(to.take(&bytes).is_err(), "the same flight again");
    }
    let (_, mut acceptor) = ends(&authority);
    assert_eq!(acceptor.begin(), Err(SealError::Flight));
    assert_eq!(acceptor.take(&[0; 40_000]), Err(SealError::Flight));
}

#[test]
fn a_changed_greeting_is_noticed_in_the_end() {
    let authority = authority();
    let (mut dialler, mut acceptor) = ends(&authority);
    let mut hello = dialler.begin().unwrap();
    // The random bytes of the greeting: level, length, type, length, version.
    hello[3 + 4 + 2] ^= 1;
    let answer = acceptor.take(&hello).unwrap().unwrap();
    assert!(dialler.take(&answer).is_err());
    assert!(!dialler.is_proved());
}

#[test]
fn a_connection_is_no_handshake_of_a_seal() {
    use rustls::quic::{ClientConnection, Version};
    let authority = authority();
    let zero = credentials(&authority, &process(0));
    let (_, mut acceptor) = ends(&authority);
    let config = Arc::clone(&zero.client_config());
    let mut connection =
        ClientConnection::new(config, Version::V1, crate::server_name(), b"0".to_vec()).unwrap();
    let mut hello = Vec::new();
    connection.write_hs(&mut hello);
    let mut flight = vec![0];
    flight.extend_from_slice(&u16::try_from(hello.len()).unwrap().to_le_bytes());
    flight.extend_from_slice(&hello);
    assert!(matches!(acceptor.take(&flight), Err(SealError::Proof(_))));
}

#[test]
fn what_overtakes_the_proof_opens_but_proves_nothing() {
    let (mut dialler, mut acceptor) = ends(&authority());
    let hello = dialler.begin().unwrap();
    assert!(acceptor.open(0, false, b"header", &mut [0; 40]).is_err());
    let answer = acceptor.take(&hello).unwrap().unwrap();
    let proof = dialler.take(&answer).unwrap().unwrap();
    let mut seal = dialler.finish().unwrap();
    let (phase, mut packet) = sealed(&mut seal, 2, b"early");
    let opened = acceptor.open(2, phase, b"header", &mut packet).unwrap();
    assert_eq!(opened, b"early");
    assert!(!acceptor.is_proved());
    acceptor.take(&proof).unwrap();
    assert!(acceptor.is_proved());
}
