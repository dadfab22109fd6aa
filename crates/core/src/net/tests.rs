//! What only an engine's insides can bring about: cut links and nonsense on the wire.

mod account;
mod caught;
mod fenced;

use std::io::IoSlice;
use std::sync::{Arc, Barrier, MutexGuard};
use std::time::{Duration, Instant};

use super::engine::{Engine, Port};
use super::id::driver_id;
use super::link::Hub;
use crate::error::{Departure, FlushError, PostError, RetrieveError, UnpackError};
use crate::peers::Path;
use crate::progress::Progress;
use crate::testing::{Deck, local_over_tcp};
use crate::{Mailbox, Message, Result};
use mizzen_proto::session::Stamp;

fn inbox_of(deck: &Deck) -> Result<Mailbox> {
    let inbox = deck.mailbox()?;
    deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
    Ok(inbox)
}

/// Longer than what a poster leaves to its process.
const BEYOND: usize = (64 << 20) + 1;

fn link_to(deck: &Deck, rank: u32) -> Arc<super::NetLink> {
    match deck.process.peers.known(rank.into()) {
        Some(Path::Net(link)) => link,
        other => panic!("{other:?}"),
    }
}

fn port_of(engine: &Engine) -> MutexGuard<'_, Port> {
    loop {
        if let Some(port) = engine.handover.try_take() {
            return port;
        }
    }
}

#[test]
fn a_link_cut_while_a_body_is_under_way_fails_its_reader_and_its_poster() {
    let [announced, cut, lost] = [(); 3].map(|()| Barrier::new(2));
    local_over_tcp(2, |deck| {
        let inbox = inbox_of(&deck)?;
        let engine = deck.process.networks.get().unwrap().first();
        if deck.rank() == 0 {
            let mut incoming = inbox.retrieve()?;
            announced.wait();
            // Rank 1 cannot send the body now.
            cut.wait();
            let mut place = vec![0u8; BEYOND];
            incoming.unpack_cheaper(&mut place[..])?;
            let link = link_to(&deck, 1);
            let outcome = std::thread::scope(|threads| {
                let finish = threads.spawn(|| incoming.finish());
                while !link.session().is_receiving() {
                    std::thread::yield_now();
                }
                engine.cut(&link, Departure::ConnectionLost);
                lost.wait();
                finish.join().unwrap()
            });
            assert!(
                matches!(
                    outcome,
                    Err(crate::error::Error::Unpack(UnpackError::PeerGone(_)))
                ),
                "{outcome:?}"
            );
        } else {
            let address = deck.fetch("inbox 0")?;
            let long = vec![7u8; BEYOND];
            std::thread::scope(|threads| {
                let poster = threads.spawn(|| address.send(&long[..]));
                announced.wait();
                let port = port_of(engine);
                cut.wait();
                lost.wait();
                drop(port);
                let outcome = poster.join().unwrap();
                assert!(
                    matches!(
                        outcome,
                        Err(crate::error::Error::Post(PostError::PeerGone(_)))
                    ),
                    "{outcome:?}"
                );
            });
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn nonsense_on_the_wire_costs_the_sender_its_link_and_nothing_else() {
    local_over_tcp(3, |deck| {
        let inbox = inbox_of(&deck)?;
        let done = deck.mailbox()?;
        deck.bind(&format!("done {}", deck.rank()), &done)?;
        match deck.rank().0 {
            0 => {
                assert_eq!(inbox.receive::<u8>()?, 1);
                let Err(crate::error::Error::Retrieve(RetrieveError::PeerGone(gone))) =
                    inbox.retrieve()
                else {
                    panic!("rank 1 misbehaved")
                };
                assert_eq!((gone.rank(), gone.how()), (1.into(), Departure::Misbehaved));
                deck.fetch("done 2")?.send(&0u8)?;
                assert_eq!(inbox.receive::<u8>()?, 2, "rank 2 is not affected");
            }
            1 => {
                deck.fetch("inbox 0")?.send(&1u8)?;
                let engine = deck.process.networks.get().unwrap().first();
                let peer = driver_id(link_to(&deck, 0).peer);
                let mut port = port_of(engine);
                port.driver
                    .send_frame(peer, &[IoSlice::new(&[0xee; 40])])
                    .unwrap();
                drop(port);
                let deadline = Instant::now() + Duration::from_secs(10);
                while !link_to(&deck, 0).is_ended() && Instant::now() < deadline {
                    deck.process.poll_networks();
                }
            }
            _ => {
                let _ = done.receive::<u8>()?;
                deck.fetch("inbox 0")?.send(&2u8)?;
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_poster_waits_when_the_network_takes_nothing() {
    local_over_tcp(2, |deck| {
        let inbox = inbox_of(&deck)?;
        if deck.rank() == 0 {
            for number in 0..3000u32 {
                assert_eq!(inbox.retrieve()?.unpack_vec::<u32>()?, vec![number; 10_000]);
            }
        } else {
            let address = deck.fetch("inbox 0")?;
            let mut message = Message::new();
            for number in 0..3000u32 {
                message.clear();
                let data = vec![number; 10_000];
                message.pack_safer(&data[..]);
                address.post(&mut message)?;
                let waiting = link_to(&deck, 0).lock().outbox.len();
                assert!(waiting <= super::link::OUTBOX_MAX + 8, "{waiting} frames");
            }
        }
        Ok(())
    })
    .unwrap();
}

/// What a peer that never reads has waiting for it at most, whatever it asks: posts, and answers.
fn flood_of(flooder: impl Fn(u64) -> Vec<u8> + Sync) {
    let (full, done) = (Barrier::new(2), Barrier::new(2));
    local_over_tcp(2, |deck| {
        let inbox = inbox_of(&deck)?;
        let other = deck.fetch(&format!("inbox {}", 1 - deck.rank().0))?;
        other.send(&0u8)?;
        inbox.receive::<u8>()?;
        let engine = deck.process.networks.get().unwrap().first();
        if deck.rank() == 1 {
            // Nobody reads from the socket while the port is taken.
            let port = port_of(engine);
            full.wait();
            done.wait();
            drop(port);
            return Ok(());
        }
        full.wait();
        let link = link_to(&deck, 1);
        let limit = super::link::UNREAD_MAX + super::link::OUTBOX_MAX;
        let mut port = port_of(engine);
        let mut most = 0;
        // Far more than the socket's buffers take besides.
        for number in 0..1_000_000 {
            if link.lock().is_condemned {
                break;
            }
            let Port { later, .. } = &mut *port;
            let stamp = {
                let session = link.session();
                Stamp {
                    number: session.session.received_through() + 1,
                    received_through: session.acknowledged(),
                }
            };
            let event = mizzen_driver::Event::Frame {
                peer: driver_id(link.peer),
                bytes: &[&stamp.to_bytes()[..], &flooder(number)].concat(),
            };
            engine.handle(Some(&**deck.process), later, event, None);
            engine.serve_marked(&mut port, Some(&**deck.process));
            most = most.max(link.lock().outbox.len());
        }
        engine.release(port, Some(&**deck.process));
        let deadline = Instant::now() + Duration::from_secs(10);
        while !link.is_ended() && Instant::now() < deadline {
            deck.process.poll_networks();
        }
        done.wait();
        assert!(
            most <= limit,
            "{most} frames wait for a peer that never reads"
        );
        let gone = link.gone().expect("it was cut off");
        assert_eq!(gone.how(), Departure::Misbehaved);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_peer_that_floods_pings_and_never_reads_costs_a_bounded_number_of_frames() {
    flood_of(|number| {
        let token = mizzen_proto::id::PingToken(number);
        mizzen_proto::wire::Frame::Ping { token }.to_vec()
    });
}

/// What a peer has not read when it goes is in the account, no more and no less.
#[test]
fn a_flush_says_how_many_messages_a_lost_peer_did_not_take() {
    let [flushed, posted, cut] = [(); 3].map(|()| Barrier::new(2));
    local_over_tcp(2, |deck| {
        let inbox = inbox_of(&deck)?;
        let other = deck.fetch(&format!("inbox {}", 1 - deck.rank().0))?;
        other.send(&0u8)?;
        inbox.receive::<u8>()?;
        deck.process.flush(None)?;
        // Rank 0 says what it took while its port is still its own.
        flushed.wait();
        let engine = deck.process.networks.get().unwrap().first();
        if deck.rank() == 0 {
            // Nobody reads from the socket while the port is taken.
            let mut port = port_of(engine);
            posted.wait();
            cut.wait();
            port.driver.disconnect(driver_id(link_to(&deck, 1).peer));
            engine.release(port, Some(&**deck.process));
            let link = link_to(&deck, 1);
            engine.cut(&link, Departure::ConnectionLost);
            return Ok(());
        }
        let link = link_to(&deck, 0);
        posted.wait();
        for number in 0..10u32 {
            other.send(&number)?;
        }
        cut.wait();
        let deadline = Instant::now() + Duration::from_secs(10);
        while !link.is_ended() && Instant::now() < deadline {
            deck.process.poll_networks();
        }
        let Err(FlushError::PeerGone { gone, messages, .. }) = deck.process.flush(None) else {
            panic!("rank 0 did not take all")
        };
        assert_eq!((gone.rank(), messages), (0.into(), 10));
        assert_eq!(deck.process.flush(None), Ok(()), "it is told once");
        Ok(())
    })
    .unwrap();
}
