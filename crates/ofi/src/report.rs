//! What is reported and in which order, and the end of a link, at which there is much to report.

use mizzen_driver::{Event, LossReason, PeerId, Way};

use crate::driver::OfiDriver;
use crate::incoming::Item;
use crate::link::Stage;
use crate::message::Header;
use crate::pending::Report;

impl OfiDriver {
    /// Reports what there is, within the budget: what waits, then links in turn.
    pub(crate) fn report(&mut self, budget: usize, sink: &mut dyn FnMut(Event<'_>)) -> usize {
        let mut reported = 0;
        while reported < budget {
            if let Some(report) = self.reports.pop_front() {
                reported += usize::from(self.deliver(report, sink));
                continue;
            }
            let Some(slot) = self.turns.pop_front() else {
                break;
            };
            reported += self.serve(slot, budget - reported, sink);
        }
        reported
    }

    /// Forgets what was to be reported of a peer.
    pub(crate) fn drop_reports(&mut self, peer: PeerId) {
        self.reports.retain(|report| report.peer() != peer);
    }

    /// Ends a link without a word.
    pub(crate) fn close(&mut self, slot: usize) {
        let Some(link) = self.links[slot].as_deref_mut() else {
            return;
        };
        link.bodies.fail();
        link.incoming.clear(&mut self.ports[link.port]);
        let peer = link.peer;
        let has_connected = link.is_open();
        self.ports.part(link.port, peer, has_connected);
        self.peers.remove(&peer);
        for list in [&mut self.greeting, &mut self.stuck, &mut self.busy] {
            list.retain(|&other| other != slot);
        }
        self.turns.retain(|&other| other != slot);
        self.bury(slot);
    }

    /// Ends an open link: what had arrived is reported, then its bodies, then the loss.
    pub(crate) fn end(&mut self, slot: usize, reason: LossReason) {
        let Some(link) = self.links[slot].as_deref_mut() else {
            return;
        };
        let peer = link.peer;
        link.bodies.close();
        while let Some(item) = link.incoming.next() {
            match item {
                Item::Frame { buffer, len } => {
                    let port = &mut self.ports[link.port];
                    let bytes = port.bytes(buffer, Header::LEN + len)[Header::LEN..].to_vec();
                    port.release(buffer);
                    self.reports.push_back(Report::Frame { peer, bytes });
                }
                Item::Joined { bytes, .. } => {
                    self.reports.push_back(Report::Frame { peer, bytes });
                }
                Item::Complete { body, len } if link.bodies.handle_complete(body, len).is_ok() => {
                    self.reports
                        .push_back(Event::BodyReceived { peer, body }.into());
                }
                Item::Complete { .. } | Item::Offer { .. } => {}
            }
        }
        let (unsent, unreceived) = link.bodies.fail();
        let mut fail = |body, way| {
            // What was written is not known to be without gaps.
            let in_place = 0;
            let failed = Event::BodyFailed {
                peer,
                body,
                way,
                in_place,
            };
            self.reports.push_back(failed.into());
        };
        unsent.into_iter().for_each(|body| fail(body, Way::Sending));
        unreceived
            .into_iter()
            .for_each(|body| fail(body, Way::Receiving));
        self.reports.push_back(Event::Lost { peer, reason }.into());
        self.close(slot);
    }

    /// Frees the number of a link that has ended, as soon as the provider has let go of its messages.
    pub(crate) fn bury(&mut self, slot: usize) {
        let Some(link) = self.links[slot].as_deref_mut() else {
            return;
        };
        link.is_reported = false;
        let old = std::mem::replace(&mut link.stage, Stage::Gone(None));
        let (mut outgoing, left) = match old {
            Stage::Open(mut outgoing) => {
                let left = outgoing.close(&mut self.ports[link.port]);
                (Some(outgoing), left)
            }
            Stage::Gone(outgoing) => {
                let left = outgoing.as_ref().map_or(0, |outgoing| outgoing.in_flight());
                (outgoing, left)
            }
            Stage::Greeting { .. } => (None, 0),
        };
        if left > 0 {
            link.stage = Stage::Gone(outgoing.take());
            return;
        }
        if let Some(outgoing) = outgoing {
            let endpoint = self.ports[link.port].endpoint();
            endpoint.remove(outgoing.address());
        }
        self.links[slot] = None;
        self.free.push(slot);
    }

    /// Reports one thing that waited; says whether it was still worth it.
    fn deliver(&mut self, report: Report, sink: &mut dyn FnMut(Event<'_>)) -> bool {
        match report {
            Report::Frame { peer, bytes } => sink(Event::Frame {
                peer,
                bytes: &bytes,
            }),
            Report::Event(event) => {
                if !self.is_current(event) {
                    return false;
                }
                sink(event);
            }
        }
        true
    }

    /// What a report means for the link that it is about; whether it is still true.
    fn is_current(&mut self, event: Event<'static>) -> bool {
        let Some(&slot) = self.peers.get(&event.peer()) else {
            return true;
        };
        let Some(link) = self.links[slot].as_deref_mut() else {
            return true;
        };
        match event {
            // Of this link, and not of one before: that one's loss would come first.
            Event::Connected { .. } => {
                link.is_reported = true;
                self.mark(slot);
            }
            Event::BodySent { body, .. } if link.is_reported => link.bodies.forget(body),
            // Frames sent since it was queued may have taken the room.
            Event::Writable { .. } => return link.confirm_room(),
            _ => {}
        }
        true
    }

    /// One link's turn.
    fn serve(&mut self, slot: usize, budget: usize, sink: &mut dyn FnMut(Event<'_>)) -> usize {
        let mut reported = 0;
        while reported < budget.min(TURN) {
            let Some(link) = self.links[slot].as_deref_mut() else {
                return reported;
            };
            let Some(item) = link.incoming.next() else {
                break;
            };
            let peer = link.peer;
            let checked = match item {
                Item::Frame { buffer, len } => {
                    let port = &mut self.ports[link.port];
                    let message = port.bytes(buffer, Header::LEN + len);
                    let bytes = &message[Header::LEN..];
                    sink(Event::Frame { peer, bytes });
                    port.release(buffer);
                    link.incoming.take(1);
                    reported += 1;
                    Ok(())
                }
                Item::Joined { bytes, messages } => {
                    let bytes = &bytes[..];
                    sink(Event::Frame { peer, bytes });
                    link.incoming.take(messages);
                    reported += 1;
                    Ok(())
                }
                Item::Offer { body, len } => link.bodies.handle_offer(body, len),
                Item::Complete { body, len } => {
                    let checked = link.bodies.handle_complete(body, len);
                    if checked.is_ok() {
                        sink(Event::BodyReceived { peer, body });
                        reported += 1;
                    }
                    checked
                }
            };
            if let Err(what) = checked {
                // What follows comes from a peer that broke the rules.
                link.incoming.clear(&mut self.ports[link.port]);
                self.lose(slot, LossReason::Violation(what));
                return reported;
            }
        }
        if let Some(link) = self.links[slot].as_deref_mut() {
            link.has_turn = false;
            let outcome = link.return_credits(&mut self.ports[link.port]);
            if let Err(cause) = outcome {
                self.fail(slot, cause.kind());
            }
            self.mark(slot);
        }
        reported
    }
}

/// Reports of one link in a row while others wait.
const TURN: usize = 4;
