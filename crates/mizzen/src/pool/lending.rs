//! The service by which others ask for items and deliver results. It lives as long as the process is in its job, so that
//! latecomers learn what is over.

use core::ops::AddAssign;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tracing::{Span, debug};

use crate::deck::{Deck, Kept};
use crate::rpc::Service;
use mizzen_core::Endpoint;
use mizzen_core::Error;
use mizzen_core::service::{Counted, Rows, lock, summary};
use mizzen_core::{Incarnation, ProcessId, Rank};

/// The name of the service.
pub(super) const SERVICE: &str = "mizzen pool";

/// Which map: its name, and how many of that name were before.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct MapId {
    pub(super) name: String,
    pub(super) number: u32,
}

/// What one process wants of another.
#[derive(Serialize, Deserialize)]
pub(super) enum Ask {
    /// Up to so many items to run.
    Items {
        map: MapId,
        want: u32,
        rank: u32,
        incarnation: u32,
    },
    /// The result of an item, or why there is none.
    Result {
        map: MapId,
        /// Which life of the owner gave it away.
        owner: u32,
        rank: u32,
        index: u64,
        result: Result<ByteBuf, NoResult>,
    },
}

/// Why an item has no result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum NoResult {
    /// The function panicked, and said this.
    Panicked(String),
    /// There is one, but it is longer than a message may be.
    TooLong { bytes: u64, limit: u64 },
}

/// What it gets.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// These items; none if there are none now.
    Items {
        items: Vec<(u64, ByteBuf)>,
        /// Which life of the owner this is.
        owner: u32,
    },
    /// The process has not begun with that map.
    NotYet,
    /// All its items have results, or nobody wants them any more.
    Finished,
    /// Thanks for the result.
    Noted,
}

impl Ask {
    pub(super) fn items(map: &MapId, want: usize, process: ProcessId) -> Self {
        Self::Items {
            map: map.clone(),
            want: u32::try_from(want).unwrap_or(u32::MAX),
            rank: process.rank.0,
            incarnation: process.incarnation.0,
        }
    }
}

/// The items of one map, as others see them.
pub(super) trait Lender: Send + Sync {
    /// Gives away up to `want` items.
    fn lend(&self, to: ProcessId, want: usize, size: u32) -> Vec<(u64, Vec<u8>)>;
    fn deliver(&self, from: Rank, index: u64, result: Result<Vec<u8>, NoResult>);
    fn is_finished(&self) -> bool;
    /// What happened to the items so far.
    fn counts(&self) -> Counts;
}

/// What happened to items.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Results of this process's items.
    pub(super) items: u64,
    pub(super) reruns: u64,
    pub(super) dropped: u64,
    /// Items of others that were run here.
    pub(super) helped: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.items += other.items;
        self.reruns += other.reruns;
        self.dropped += other.dropped;
        self.helped += other.helped;
    }
}

/// What others ask for items of this process's maps; from the first map on.
pub(super) fn of(deck: &Deck) -> Result<Arc<MapRegistry>, Error> {
    let served = deck.keep(|deck| {
        let registry = Arc::<MapRegistry>::default();
        let service = Mutex::new(Some(registry.serve(&deck.process)?));
        let counted: Arc<dyn Counted> = Arc::<MapRegistry>::clone(&registry);
        deck.process.add_counted(&counted);
        Ok(Served {
            registry,
            service,
            span: deck.process.span().clone(),
        })
    })?;
    Ok(Arc::clone(&served.registry))
}

/// The registry of a process, and its service.
struct Served {
    registry: Arc<MapRegistry>,
    service: Mutex<Option<Service>>,
    /// What its events belong to.
    span: Span,
}

impl Kept for Served {
    fn close(&self) {
        if let Some(service) = lock(&self.service).take() {
            debug!(parent: &self.span, counts = summary(&*self.registry), "pool ended");
            drop(service);
        }
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// What a process knows of its maps.
#[derive(Default)]
pub(super) struct MapRegistry {
    maps: Mutex<Maps>,
}

#[derive(Default)]
struct Maps {
    open: HashMap<MapId, Arc<dyn Lender>>,
    /// How many maps of each name were begun.
    begun: HashMap<String, u32>,
    /// What happened in those that have ended.
    ended: Counts,
}

impl Counted for MapRegistry {
    fn count(&self, rows: &mut Rows) {
        let maps = lock(&self.maps);
        let mut counts = maps.ended;
        maps.open.values().for_each(|map| counts += map.counts());
        let begun = maps.begun.values().copied().map(u64::from).sum();
        rows.object(
            "pool",
            &[
                ("maps", begun),
                ("items", counts.items),
                ("reruns", counts.reruns),
                ("results_dropped", counts.dropped),
                ("items_of_others", counts.helped),
            ],
        );
    }
}

impl MapRegistry {
    /// Answers to others from now on.
    fn serve(self: &Arc<Self>, process: &Endpoint) -> Result<Service, Error> {
        let (registry, size, me) = (Arc::clone(self), process.size(), process.id());
        Service::of_function(process, SERVICE, move |ask: Ask| {
            registry.answer(ask, size, me)
        })
    }

    /// Begins a map.
    pub(super) fn open(&self, name: &str, lender: Arc<dyn Lender>) -> MapId {
        let mut maps = lock(&self.maps);
        let begun = maps.begun.entry(name.to_owned()).or_default();
        let map = MapId {
            name: name.to_owned(),
            number: *begun,
        };
        *begun += 1;
        maps.open.insert(map.clone(), lender);
        map
    }

    /// Ends a map: whoever asks learns that it is finished.
    pub(super) fn close(&self, map: &MapId) {
        let mut maps = lock(&self.maps);
        if let Some(lender) = maps.open.remove(map) {
            maps.ended += lender.counts();
        }
    }

    fn answer(&self, ask: Ask, size: u32, me: ProcessId) -> Answer {
        let (Ask::Items { map, .. } | Ask::Result { map, .. }) = &ask;
        let lender = {
            let maps = lock(&self.maps);
            match maps.open.get(map) {
                Some(lender) => Arc::clone(lender),
                None if maps.begun.get(&map.name).is_some_and(|n| *n > map.number) => {
                    return Answer::Finished;
                }
                None => return Answer::NotYet,
            }
        };
        match ask {
            Ask::Items { .. } if lender.is_finished() => Answer::Finished,
            Ask::Items {
                want,
                rank,
                incarnation,
                ..
            } => {
                let to = ProcessId::new(Rank(rank), Incarnation(incarnation));
                let items = lender.lend(to, want as usize, size);
                let items = items.into_iter();
                Answer::Items {
                    items: items.map(|(index, item)| (index, item.into())).collect(),
                    owner: me.incarnation.0,
                }
            }
            Ask::Result {
                owner,
                rank,
                index,
                result,
                ..
            } => {
                // What an earlier life of this rank gave away is not an item of this one.
                if owner == me.incarnation.0 {
                    lender.deliver(Rank(rank), index, result.map(ByteBuf::into_vec));
                }
                Answer::Noted
            }
        }
    }
}
