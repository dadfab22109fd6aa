//! Gateways that hand on (`mizzen_proto::relay`, `mizzen_proto::route`): everything arrives, once, and then nothing is left on the way.
//!
//! Ends on the networks of 2 to 8 gateways, which stand in a line, a ring, or anyhow, or in one to a thousand clusters of a hundred processes, send fragments to each other while connections break, ways are
//! cut, hosts pause, and gateways crash and start again. Each end resends what is not acknowledged, and takes what comes twice once. When the
//! trouble is over, everything that can arrive must, and then the network must be empty: that something moves would hide a knot somewhere.

mod end;
mod gateway;
mod packet;
mod plan;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use mizzen_proto::membership::HostId as NodeId;
use mizzen_proto::time::Time;

use self::end::End;
use self::gateway::GatewayNode;
use self::packet::{Note, Packet};
use self::plan::{Living, Plan};
use crate::campaign::Scenario;
use crate::ids::{ConnectionId, MachineId, Place};
use crate::kernel::run;
use crate::machine::{Context, Machine, Opened};
use crate::tally::Marks;
use crate::world::{Layout, Truth, Violation, World};

/// What is handed on.
pub const SCENARIO: Scenario = Scenario {
    name: "relay",
    about: "fragments through gateways that crash, pause and are cut off: all arrive once, and the network empties",
    expected: &[],
    sometimes: &[
        "a connection broke",
        "a host paused",
        "a machine crashed",
        "a machine started again",
        "a way was cut",
        "something came twice",
        "something was sent again",
        "a fragment took an escape",
        "a fragment passed five gateways",
        "a fragment had no way",
        "a host was cut for taking nothing",
        "there were no shared bytes",
        "a link got more room",
        "two gateways had several links",
    ],
    run: |seed, record| run(Relays::new(seed), seed, record),
};

#[derive(Debug)]
struct Relays {
    plan: Rc<Plan>,
    living: Living,
    /// What came, of whom, to whom.
    came: BTreeMap<(NodeId, NodeId), BTreeSet<u64>>,
    /// What each gateway holds.
    held: BTreeMap<NodeId, usize>,
    /// How many hold something.
    holders: usize,
    /// All pairs before this one have said all, or have no way as long as nobody comes or goes.
    settled: Cell<(u64, usize)>,
    /// What each end waits for.
    waits: BTreeMap<NodeId, usize>,
}

#[derive(Debug)]
enum Node {
    End(End),
    Gateway(GatewayNode),
}

impl Relays {
    fn new(seed: u64) -> Self {
        Self {
            plan: Rc::new(Plan::new(seed)),
            living: Living::default(),
            came: BTreeMap::new(),
            held: BTreeMap::new(),
            holders: 0,
            settled: Cell::default(),
            waits: BTreeMap::new(),
        }
    }

    fn holds(&mut self, gateway: NodeId, count: usize) {
        let before = self.held.insert(gateway, count).unwrap_or(0);
        self.holders += usize::from(count > 0);
        self.holders -= usize::from(before > 0);
    }

    /// The first pair that could speak to each other and did not say all.
    fn missing(&self) -> Option<String> {
        let living = self.living.borrow();
        let (epoch, settled) = self.settled.get();
        let first = if epoch == living.epoch { settled } else { 0 };
        let came = |pair| self.came.get(&pair).map_or(0, BTreeSet::len) as u64;
        let is_missing = |(from, to)| {
            came((from, to)) < self.plan.messages && self.plan.way(from, to, &living).is_some()
        };
        let rest = &self.plan.pairs[first..];
        let found = rest.iter().position(|pair| is_missing(*pair));
        let now = first + found.unwrap_or(rest.len());
        self.settled.set((living.epoch, now));
        let (from, to) = *self.plan.pairs.get(now)?;
        let (came, all) = (came((from, to)), self.plan.messages);
        Some(format!("{came} of {all} from {from:?} to {to:?}"))
    }
}

impl World for Relays {
    type Machine = Node;

    fn layout(&self) -> Layout {
        self.plan.layout()
    }

    fn machine(&mut self, place: Place) -> Node {
        let me = NodeId(place.machine.0);
        match self.plan.is_gateway(me) {
            true => Node::Gateway(GatewayNode::new(me, &self.plan, &self.living)),
            false => Node::End(End::new(me, &self.plan, &self.living)),
        }
    }

    fn handle_truth(&mut self, _: Time, truth: Truth) -> Result<(), Violation> {
        match truth {
            Truth::Started(place) => self.living.borrow_mut().add(NodeId(place.machine.0)),
            Truth::Ended(place) => {
                self.living.borrow_mut().remove(NodeId(place.machine.0));
                self.holds(NodeId(place.machine.0), 0);
            }
            _ => (),
        }
        Ok(())
    }

    fn handle_note(&mut self, _: Time, place: Place, note: Note) -> Result<(), Violation> {
        let me = NodeId(place.machine.0);
        match note {
            Note::Came(from, number) => {
                if !self.came.entry((from, me)).or_default().insert(number) {
                    let what = format!("{number} of {from:?} came to {me:?} twice");
                    return Err(Violation::new("each arrives once", what));
                }
            }
            Note::Holds {
                count,
                held,
                reserved,
            } => {
                self.holds(me, count);
                if reserved > self.plan.pool || held > reserved {
                    let what = format!("{me:?} holds {held} bytes, and reserved {reserved}");
                    return Err(Violation::new("memory is bounded", what));
                }
            }
            Note::Waits(count) => drop(self.waits.insert(me, count)),
            Note::Overdrawn(by) => {
                let what = format!("{by:?} sent to {me:?} what was not granted");
                return Err(Violation::new("nobody overdraws", what));
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.holders == 0 && self.missing().is_none()
    }

    fn finish(&mut self, _: Time, _: &[Option<Node>], _: &mut Marks) -> Result<(), Violation> {
        if let Some(what) = self.missing() {
            return Err(Violation::new("everything arrives", what));
        }
        match self.held.iter().find(|(_, held)| **held > 0) {
            Some((gateway, held)) => {
                let what = format!("{gateway:?} still holds {held}");
                Err(Violation::new("the network empties", what))
            }
            None => Ok(()),
        }
    }
}

impl Machine for Node {
    type Message = Packet;
    type Note = Note;

    fn start(&mut self, context: &mut Context<'_, Self>) {
        match self {
            Node::End(end) => end.start(context),
            Node::Gateway(gateway) => gateway.start(context),
        }
    }

    fn receive(&mut self, from: ConnectionId, packet: Packet, context: &mut Context<'_, Self>) {
        match self {
            Node::End(end) => end.receive(from, packet, context),
            Node::Gateway(gateway) => gateway.receive(from, packet, context),
        }
    }

    fn timer(&mut self, _: u64, context: &mut Context<'_, Self>) {
        match self {
            Node::End(end) => end.tick(context),
            Node::Gateway(gateway) => gateway.tick(context),
        }
    }

    fn connected(
        &mut self,
        connection: ConnectionId,
        peer: Place,
        _: Opened,
        context: &mut Context<'_, Self>,
    ) {
        let peer = NodeId(peer.machine.0);
        match self {
            Node::End(end) => end.connected(connection, peer),
            Node::Gateway(gateway) => gateway.connected(connection, peer, context),
        }
    }

    fn lost(&mut self, connection: ConnectionId, context: &mut Context<'_, Self>) {
        match self {
            Node::End(end) => end.lost(connection),
            Node::Gateway(gateway) => gateway.lost(connection, context),
        }
    }

    fn refused(&mut self, connection: ConnectionId, _: MachineId, _: &mut Context<'_, Self>) {
        match self {
            Node::End(end) => end.lost(connection),
            Node::Gateway(gateway) => gateway.refused(connection),
        }
    }
}
