//! An end: sends what was granted, resends what is not acknowledged, takes each once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use mizzen_proto::membership::HostId as NodeId;
use mizzen_proto::relay::{Credit, Slot};
use mizzen_proto::time::Time;

use super::packet::{Note, Packet, Speaks};
use super::plan::{Known, Living, Plan};
use crate::ids::{ConnectionId, MachineId};
use crate::machine::Context;

#[derive(Debug)]
pub(super) struct End {
    me: NodeId,
    plan: Rc<Plan>,
    living: Living,
    known: Known,
    gateways: BTreeMap<NodeId, Gateway>,
    dialling: BTreeMap<ConnectionId, NodeId>,
    flows: BTreeMap<NodeId, Flow>,
    /// What came, of whom.
    came: BTreeMap<NodeId, BTreeSet<u64>>,
}

/// A gateway of this end's network.
#[derive(Debug)]
struct Gateway {
    connection: ConnectionId,
    credit: Credit,
    /// What has no credit yet: to whom, which, how long.
    waiting: VecDeque<(NodeId, u64, u32)>,
}

/// To one other end.
#[derive(Debug, Default)]
struct Flow {
    next: u64,
    /// When it was sent last, and how long it is.
    unacknowledged: BTreeMap<u64, (Time, u32)>,
}

impl End {
    pub(super) fn new(me: NodeId, plan: &Rc<Plan>, living: &Living) -> Self {
        Self {
            me,
            known: Known::new(plan, me, living),
            flows: plan.targets(me).map(|to| (to, Flow::default())).collect(),
            plan: Rc::clone(plan),
            living: Rc::clone(living),
            gateways: BTreeMap::new(),
            dialling: BTreeMap::new(),
            came: BTreeMap::new(),
        }
    }

    pub(super) fn start<M: Speaks>(&mut self, context: &mut Context<'_, M>) {
        self.tick(context);
    }

    pub(super) fn tick<M: Speaks>(&mut self, context: &mut Context<'_, M>) {
        self.known.renew(&self.plan, self.me, &self.living);
        let plan = Rc::clone(&self.plan);
        for gateway in plan.links(self.me).iter().copied() {
            let is_dialled = self.dialling.values().any(|known| *known == gateway);
            if !self.gateways.contains_key(&gateway) && !is_dialled {
                self.dialling
                    .insert(context.dial(MachineId(gateway.0)), gateway);
            }
        }
        let now = context.now();
        let mut due = Vec::new();
        for (to, flow) in &mut self.flows {
            for (number, (sent, length)) in &mut flow.unacknowledged {
                if now.since(*sent) >= AGAIN {
                    *sent = now;
                    context.sometimes("something was sent again");
                    due.push((*to, *number, *length));
                }
            }
            while flow.next < self.plan.messages && flow.unacknowledged.len() < self.plan.window {
                let length = context.rng().u32(1..=65_536);
                flow.unacknowledged.insert(flow.next, (now, length));
                due.push((*to, flow.next, length));
                flow.next += 1;
            }
        }
        for one in due {
            self.post(one, context);
        }
        let waits = self
            .flows
            .values()
            .map(|flow| flow.unacknowledged.len())
            .sum();
        context.note(Note::Waits(waits));
        let wait = self.plan.pace(context.rng().u64(2..60));
        context.set_timer(0, context.now() + wait);
    }

    /// Sends something by the way that is known now; or later, as what is not acknowledged.
    fn post<M: Speaks>(
        &mut self,
        (to, number, length): (NodeId, u64, u32),
        context: &mut Context<'_, M>,
    ) {
        let flow = Plan::heading(self.me, to, length).flow.flow;
        let next = self.known.next(&self.plan, to, flow);
        let Some(gateway) = next.and_then(|next| self.gateways.get_mut(&next)) else {
            return;
        };
        if !gateway.waiting.contains(&(to, number, length)) {
            gateway.waiting.push_back((to, number, length));
        }
        let me = self.me;
        flush(gateway, me, context);
    }

    pub(super) fn connected(&mut self, connection: ConnectionId, peer: NodeId) {
        self.dialling.remove(&connection);
        let gateway = Gateway {
            connection,
            credit: Credit::default(),
            waiting: VecDeque::new(),
        };
        self.gateways.insert(peer, gateway);
    }

    pub(super) fn lost(&mut self, connection: ConnectionId) {
        self.dialling.remove(&connection);
        self.gateways
            .retain(|_, gateway| gateway.connection != connection);
    }

    pub(super) fn receive<M: Speaks>(
        &mut self,
        from: ConnectionId,
        packet: Packet,
        context: &mut Context<'_, M>,
    ) {
        match packet {
            Packet::Fragment {
                from: origin,
                number,
                slot,
                ..
            } => {
                context.send(from, Packet::Taken(slot));
                if self.came.entry(origin).or_default().insert(number) {
                    context.note(Note::Came(origin, number));
                } else {
                    context.sometimes("something came twice");
                }
                let next = self.known.next(&self.plan, origin, u64::from(self.me.0));
                let gateway = next.and_then(|next| self.gateways.get(&next));
                // Without a way there is no acknowledgement; it comes with what is sent again.
                if let Some(gateway) = gateway {
                    let acknowledged = Packet::Acknowledged {
                        to: origin,
                        by: self.me,
                        number,
                        hop: 0,
                    };
                    context.send(gateway.connection, acknowledged);
                }
            }
            Packet::Taken(_) | Packet::Blocked(_) => (),
            Packet::Grant(grant) => {
                let me = self.me;
                let mut gateways = self.gateways.values_mut();
                if let Some(gateway) = gateways.find(|gateway| gateway.connection == from) {
                    gateway.credit.handle_grant(&grant);
                    flush(gateway, me, context);
                }
            }
            Packet::Acknowledged { by, number, .. } => {
                if let Some(flow) = self.flows.get_mut(&by) {
                    flow.unacknowledged.remove(&number);
                }
            }
        }
    }
}

/// Sends what has credit.
fn flush<M: Speaks>(gateway: &mut Gateway, me: NodeId, context: &mut Context<'_, M>) {
    while let Some((to, number, length)) = gateway.waiting.front().copied() {
        let Some(lane) = gateway.credit.take(0, length) else {
            break;
        };
        gateway.waiting.pop_front();
        let fragment = Packet::Fragment {
            heading: Plan::heading(me, to, length),
            lane,
            from: me,
            number,
            slot: Slot(number),
        };
        context.send(gateway.connection, fragment);
    }
}

/// What was not acknowledged in this time is sent again.
const AGAIN: Duration = Duration::from_millis(1500);
