//! Everybody connected to everybody, as processes are now: a life whose connection broke is gone for good.
//!
//! Of two machines, the one with the lower number dials, again and again until it meets a life that it does not hold to be gone.
//! The real ones dial on first use, from either side; who gets the link then is the driver's affair, and not simulated here.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ids::{ConnectionId, Life, MachineId, Place};
use crate::machine::{Context, Machine};

/// The connections of one life.
#[derive(Debug)]
pub(super) struct Mesh {
    size: u32,
    peers: BTreeMap<MachineId, Peer>,
}

#[derive(Debug, Default)]
struct Peer {
    dialling: Option<ConnectionId>,
    met: Option<(ConnectionId, Place)>,
    /// The last life that is held to be gone.
    gone: Option<Life>,
}

/// What a new connection means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Met {
    /// This life is met for the first time; not, if it was held to be gone.
    pub(super) peer: Option<Place>,
    /// And this earlier one is gone.
    pub(super) gone: Option<Place>,
}

/// How long a dialler waits before it tries again.
pub(super) const DIAL_AGAIN: Duration = Duration::from_millis(500);

impl Mesh {
    pub(super) fn new(size: u32) -> Self {
        Self {
            size,
            peers: BTreeMap::new(),
        }
    }

    /// Dials whoever is to be dialled; to be called again after [`DIAL_AGAIN`].
    pub(super) fn dial<M: Machine>(&mut self, context: &mut Context<'_, M>) {
        for number in context.me().machine.0 + 1..self.size {
            let peer = self.peers.entry(MachineId(number)).or_default();
            if peer.met.is_none() && peer.dialling.is_none() {
                peer.dialling = Some(context.dial(MachineId(number)));
            }
        }
    }

    pub(super) fn connected<M: Machine>(
        &mut self,
        connection: ConnectionId,
        place: Place,
        context: &mut Context<'_, M>,
    ) -> Met {
        let peer = self.peers.entry(place.machine).or_default();
        if peer.dialling == Some(connection) {
            peer.dialling = None;
        }
        let is_known = |known: &(ConnectionId, Place)| known.1.life >= place.life;
        if peer.gone.is_some_and(|gone| gone >= place.life)
            || peer.met.as_ref().is_some_and(is_known)
        {
            context.close(connection);
            return Met {
                peer: None,
                gone: None,
            };
        }
        let before = peer.met.replace((connection, place));
        let gone = before.map(|(old, gone)| {
            context.close(old);
            peer.gone = Some(gone.life);
            gone
        });
        Met {
            peer: Some(place),
            gone,
        }
    }

    pub(super) fn refused(&mut self, connection: ConnectionId, to: MachineId) {
        let peer = self.peers.entry(to).or_default();
        if peer.dialling == Some(connection) {
            peer.dialling = None;
        }
    }

    /// The life that is gone with this connection, if any.
    pub(super) fn lost(&mut self, connection: ConnectionId) -> Option<Place> {
        let is_it = |peer: &&mut Peer| peer.met.is_some_and(|met| met.0 == connection);
        let peer = self.peers.values_mut().find(is_it)?;
        let (_, place) = peer.met.take()?;
        peer.gone = Some(place.life);
        Some(place)
    }

    /// The life at the other end.
    pub(super) fn peer_of(&self, connection: ConnectionId) -> Option<Place> {
        let mut all = self.peers.values().filter_map(|peer| peer.met);
        Some(all.find(|met| met.0 == connection)?.1)
    }

    /// The lives that are met now.
    pub(super) fn met(&self) -> impl Iterator<Item = Place> {
        let met = self.peers.values().filter_map(|peer| peer.met);
        met.map(|met| met.1)
    }
}

/// Two lives that are there, of which one holds the other to be gone, or never met it.
pub(super) fn separated<'a>(
    lives: impl Iterator<Item = (Place, &'a Mesh)>,
) -> Option<(Place, Place)> {
    let lives: Vec<_> = lives.collect();
    let pairs = lives
        .iter()
        .flat_map(|one| lives.iter().map(move |two| (one, two)));
    let apart = |(one, two): &(&(Place, &Mesh), &(Place, &Mesh))| {
        one.0 != two.0 && !one.1.met().any(|met| met == two.0)
    };
    let (one, two) = pairs.into_iter().find(apart)?;
    Some((one.0, two.0))
}
