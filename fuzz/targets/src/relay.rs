//! What goes over the links of gateways: frames, a gateway that gets them from strangers, and an end of a circuit.

use std::time::Duration;

use mizzen_proto::id::{Incarnation, ProcessId, Rank};
use mizzen_proto::membership::HostId;
use mizzen_proto::relay::{
    Action, Circuit, Contents, Cover, FRAME_HEADER, FragmentHeader, Gateway, Grant, Heading, Lane,
    LinkId, Peer, PieceHeader, Progress, RelayFrame, Route, Said, Slot, Turn, Word, blocked_bytes,
    grant_bytes,
};
use mizzen_proto::time::Time;

use crate::tape::Tape;

/// Decodes the bytes, and hands frames of a tape to a gateway and to an end.
pub fn run(data: &[u8]) {
    look_at(data);
    let mut tape = Tape::new(data);
    let mut gateway = Gateway::new(4 << 20, 256 << 10);
    let peers = [
        Peer::End(process(1)),
        Peer::End(process(2)),
        Peer::Gateway(HostId(3)),
        Peer::Gateway(HostId(3)),
    ];
    for (link, peer) in (0..).zip(peers) {
        let _ = gateway.handle_link(LinkId(link), peer, Time(0));
    }
    let mut circuit = Circuit::new(tape.byte() & 1 == 0, 1 << 20, Time(0));
    let (mut now, mut slot) = (Time(0), 0);
    while !tape.is_over() {
        now = now + Duration::from_millis(tape.byte().into());
        let link = LinkId(u64::from(tape.byte() & 3));
        let way = |heading: &Heading| Some(HostId(heading.to.0 & 7));
        match RelayFrame::decode(tape.bytes()) {
            Ok(RelayFrame::Grant(grant)) => gateway.handle_grant(link, &grant, now),
            Ok(RelayFrame::Blocked(granted)) => {
                gateway.handle_blocked(link, granted);
                circuit.handle_blocked();
                circuit.grow(granted);
            }
            Ok(RelayFrame::Fragment(header, contents)) => {
                slot += 1;
                let length = contents.len() as u32;
                let heading = header.heading(length);
                let _ = gateway.handle_fragment(link, heading, header.lane, Slot(slot), now, way);
                if let Ok(Turn::Now) = circuit.handle_fragment(header.number, contents.len(), now) {
                    circuit.free(contents.len());
                }
            }
            Ok(RelayFrame::Word(Word {
                said: Said::Open { progress, .. },
                ..
            })) => circuit.handle_progress(progress, now),
            Ok(RelayFrame::Word(_)) => gateway.handle_lost(link, now, way),
            Err(_) => gateway.handle_time(now),
        }
        while let Some(action) = gateway.poll_action() {
            if let Action::Send(link, _, _, slot) = action {
                if slot.0 % 2 == 0 {
                    gateway.handle_sent(link, slot, now);
                }
            }
        }
        assert!(gateway.held_bytes() <= gateway.reserved() && gateway.reserved() <= 4 << 20);
        let _ = (circuit.poll_progress(now), circuit.broken(now));
    }
}

/// What is taken is written the same way again.
fn look_at(data: &[u8]) {
    match RelayFrame::decode(data) {
        Ok(RelayFrame::Grant(grant)) => assert_eq!(grant_bytes(&grant), data),
        Ok(RelayFrame::Blocked(granted)) => assert_eq!(blocked_bytes(granted), data),
        Ok(RelayFrame::Word(word)) => assert_eq!(word.to_bytes(), data),
        Ok(RelayFrame::Fragment(header, contents)) => {
            assert_eq!([&header.to_bytes()[..], contents].concat(), data);
            if let Some(Contents::Piece(piece, bytes)) = Contents::decode(contents) {
                assert_eq!([&piece.to_bytes()[..], bytes].concat(), contents);
            }
            if let Some(cover) = Cover::decode(contents) {
                let (Cover::Flight(inside)
                | Cover::Sealed {
                    contents: inside, ..
                }) = cover;
                assert_eq!([&cover.header()[..], inside].concat(), contents);
            }
            assert_eq!(header.lasting().len(), header.to_bytes().len());
        }
        Err(error) => assert_eq!(error.len, data.len()),
    }
}

/// What honest ones say, each alone and all on a tape.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let route = Route {
        to_host: HostId(2),
        to: process(2),
        from_host: HostId(1),
        from: process(1),
    };
    let progress = Progress {
        sent: 3,
        taken: 2,
        granted: 1 << 20,
        blocked: 1 << 19,
    };
    let word = |said| Word {
        route,
        hop: 1,
        circuit: 77,
        said,
    };
    let header = |lane| FragmentHeader {
        route,
        hop: 0,
        lane,
        circuit: 77,
        number: 0,
    };
    let piece = PieceHeader {
        body: 5,
        offset: 0,
        total: 4,
    };
    let frame = [&FRAME_HEADER[..], b"hello"].concat();
    let body = [&piece.to_bytes()[..], b"body"].concat();
    let opens = [true, false].map(|dialled| Said::Open { dialled, progress });
    let mut all: Vec<Vec<u8>> = opens
        .into_iter()
        .chain([Said::Closed, Said::NoWay, Said::Wanted { granted: 1 << 22 }])
        .map(|said| word(said).to_bytes().to_vec())
        .collect();
    all.push(
        grant_bytes(&Grant {
            shared: 1 << 18,
            escapes: [0, 1, 1, 1, 1, 1, 1, 1, 1],
        })
        .to_vec(),
    );
    all.push(blocked_bytes(1 << 18).to_vec());
    for (lane, contents) in [(Lane::Shared, frame), (Lane::Escape(1), body)] {
        all.push([&header(lane).to_bytes()[..], &contents].concat());
    }
    all
}

fn process(rank: u32) -> ProcessId {
    ProcessId::new(Rank(rank), Incarnation(0))
}
