//! A gateway: the machine, and what drives it.

use std::collections::BTreeMap;
use std::rc::Rc;

use mizzen_proto::membership::HostId as NodeId;
use mizzen_proto::relay::{Action, Fate, Gateway, Heading, LinkId, Peer, Slot};
use mizzen_proto::route::MAX_HOPS;

use super::packet::{Note, Packet, Speaks};
use super::plan::{Known, Living, Plan};
use crate::ids::{ConnectionId, MachineId};
use crate::machine::Context;

#[derive(Debug)]
pub(super) struct GatewayNode {
    me: NodeId,
    plan: Rc<Plan>,
    living: Living,
    gateway: Gateway,
    known: Known,
    /// Connections that were made, and with whom.
    peers: BTreeMap<ConnectionId, NodeId>,
    dialling: BTreeMap<ConnectionId, NodeId>,
    /// What is in each buffer.
    buffers: BTreeMap<Slot, (NodeId, u64)>,
    next_slot: u64,
    escaped: u64,
}

impl GatewayNode {
    pub(super) fn new(me: NodeId, plan: &Rc<Plan>, living: &Living) -> Self {
        Self {
            me,
            known: Known::new(plan, me, living),
            gateway: Gateway::new(plan.pool, plan.shared),
            plan: Rc::clone(plan),
            living: Rc::clone(living),
            peers: BTreeMap::new(),
            dialling: BTreeMap::new(),
            buffers: BTreeMap::new(),
            next_slot: 0,
            escaped: 0,
        }
    }

    pub(super) fn start<M: Speaks>(&mut self, context: &mut Context<'_, M>) {
        if self.plan.shared == 0 {
            context.sometimes("there were no shared bytes");
        }
        self.tick(context);
    }

    pub(super) fn tick<M: Speaks>(&mut self, context: &mut Context<'_, M>) {
        self.known.renew(&self.plan, self.me, &self.living);
        let plan = Rc::clone(&self.plan);
        let links = plan.links(self.me).iter().copied();
        for peer in links.filter(|other| *other < self.me) {
            let known = self.peers.values().chain(self.dialling.values());
            let wanted = match plan.is_gateway(peer) {
                true => plan.stripes,
                false => 1,
            };
            for _ in known.filter(|known| **known == peer).count()..wanted {
                self.dialling.insert(context.dial(MachineId(peer.0)), peer);
            }
        }
        self.gateway.handle_time(context.now());
        self.act(context);
        let (held, reserved) = (self.gateway.held_bytes(), self.gateway.reserved());
        context.note(Note::Holds {
            count: self.gateway.held(),
            held,
            reserved,
        });
        let wait = self.plan.pace(context.rng().u64(20..120));
        context.set_timer(0, context.now() + wait);
    }

    pub(super) fn connected<M: Speaks>(
        &mut self,
        connection: ConnectionId,
        peer: NodeId,
        context: &mut Context<'_, M>,
    ) {
        self.dialling.remove(&connection);
        if self.plan.is_gateway(peer) && self.peers.values().any(|other| *other == peer) {
            context.sometimes("two gateways had several links");
        }
        self.peers.insert(connection, peer);
        let at = match self.plan.is_gateway(peer) {
            true => Peer::Gateway(peer),
            false => Peer::End(Plan::process(peer)),
        };
        if self
            .gateway
            .handle_link(link(connection), at, context.now())
            .is_err()
        {
            self.peers.remove(&connection);
            context.close(connection);
        }
        self.act(context);
    }

    pub(super) fn refused(&mut self, connection: ConnectionId) {
        self.dialling.remove(&connection);
    }

    pub(super) fn lost<M: Speaks>(
        &mut self,
        connection: ConnectionId,
        context: &mut Context<'_, M>,
    ) {
        self.peers.remove(&connection);
        let (plan, known) = (&self.plan, &self.known);
        let way = |heading: &Heading| known.next(plan, heading.to, heading.flow.flow);
        self.gateway
            .handle_lost(link(connection), context.now(), way);
        self.act(context);
    }

    pub(super) fn receive<M: Speaks>(
        &mut self,
        from: ConnectionId,
        packet: Packet,
        context: &mut Context<'_, M>,
    ) {
        let Some(peer) = self.peers.get(&from).copied() else {
            return;
        };
        let now = context.now();
        match packet {
            Packet::Fragment {
                heading,
                lane,
                from: origin,
                number,
                slot,
            } => {
                context.send(from, Packet::Taken(slot));
                let slot = Slot(self.next_slot);
                self.next_slot += 1;
                self.buffers.insert(slot, (origin, number));
                let (plan, known) = (&self.plan, &self.known);
                let way = |heading: &Heading| known.next(plan, heading.to, heading.flow.flow);
                match self
                    .gateway
                    .handle_fragment(link(from), heading, lane, slot, now, way)
                {
                    Ok(Fate::Queued) if heading.hop >= 4 => {
                        context.sometimes("a fragment passed five gateways")
                    }
                    Ok(Fate::Queued) => (),
                    Ok(Fate::TooFar) => context.sometimes("a fragment passed too many gateways"),
                    Ok(Fate::NoWay) => context.sometimes("a fragment had no way"),
                    Err(_) => context.note(Note::Overdrawn(peer)),
                }
            }
            Packet::Taken(slot) => {
                self.buffers.remove(&slot);
                self.gateway.handle_sent(link(from), slot, now);
            }
            Packet::Grant(grant) => self.gateway.handle_grant(link(from), &grant, now),
            Packet::Blocked(at) => {
                let before = self.gateway.reserved();
                self.gateway.handle_blocked(link(from), at);
                if self.gateway.reserved() > before {
                    context.sometimes("a link got more room");
                }
            }
            Packet::Acknowledged {
                to,
                by,
                number,
                hop,
            } => {
                let hop = hop + 1;
                let next = self.known.next(&self.plan, to, u64::from(by.0));
                let next = next.and_then(|next| self.peers.iter().find(|(_, peer)| **peer == next));
                if let (Some((connection, _)), true) = (next, hop <= MAX_HOPS) {
                    context.send(
                        *connection,
                        Packet::Acknowledged {
                            to,
                            by,
                            number,
                            hop,
                        },
                    );
                }
            }
        }
        self.act(context);
    }

    fn act<M: Speaks>(&mut self, context: &mut Context<'_, M>) {
        while let Some(action) = self.gateway.poll_action() {
            match action {
                Action::Send(LinkId(to), heading, lane, slot) => {
                    let Some((from, number)) = self.buffers.get(&slot).copied() else {
                        continue;
                    };
                    let packet = Packet::Fragment {
                        heading,
                        lane,
                        from,
                        number,
                        slot,
                    };
                    context.send(ConnectionId(to), packet);
                }
                Action::Grant(LinkId(to), grant) => {
                    context.send(ConnectionId(to), Packet::Grant(grant))
                }
                Action::Blocked(LinkId(to), granted) => {
                    context.send(ConnectionId(to), Packet::Blocked(granted))
                }
                Action::Free(slot) => drop(self.buffers.remove(&slot)),
                // Its end resends what is not acknowledged anyway.
                Action::Stalled(..) => (),
                Action::Cut(LinkId(connection)) => {
                    context.sometimes("a host was cut for taking nothing");
                    self.peers.remove(&ConnectionId(connection));
                    context.close(ConnectionId(connection));
                }
            }
        }
        let escaped = self.gateway.tally().escaped;
        if escaped > self.escaped {
            self.escaped = escaped;
            context.sometimes("a fragment took an escape");
        }
    }
}

fn link(connection: ConnectionId) -> LinkId {
    LinkId(connection.0)
}
