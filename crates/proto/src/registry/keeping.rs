//! What this agent keeps of names: those it answers for, and copies of what others answer for.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Bound, MAX_KEPT};

/// Names and what they mean.
#[derive(Debug, Default)]
pub(super) struct Kept {
    names: BTreeMap<Arc<str>, Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    bound: Bound,
    /// Whether all who keep the name in this view are known to have this. Only a holder knows.
    confirmed: bool,
}

impl Kept {
    /// What a name means, and whether all who keep it have that.
    pub(super) fn look(&self, name: &str) -> (Option<Bound>, bool) {
        let entry = self.names.get(name);
        (
            entry.map(|entry| entry.bound),
            entry.is_some_and(|entry| entry.confirmed),
        )
    }

    /// Keeps what the holder says.
    pub(super) fn keep(&mut self, name: &Arc<str>, bound: Bound, confirmed: bool) {
        if self.names.len() < MAX_KEPT || self.names.contains_key(name) {
            let entry = Entry { bound, confirmed };
            self.names.insert(Arc::clone(name), entry);
        }
    }

    /// Keeps what was handed over, unless something later is known.
    pub(super) fn merge(&mut self, name: &Arc<str>, bound: Bound) {
        let known = self.names.get(name);
        if known.is_none_or(|known| known.bound.number < bound.number) {
            self.keep(name, bound, false);
        }
    }

    /// Not all who keep the name now may have it.
    pub(super) fn doubt(&mut self, name: &str) {
        if let Some(entry) = self.names.get_mut(name) {
            entry.confirmed = false;
        }
    }

    pub(super) fn drop_name(&mut self, name: &str) {
        self.names.remove(name);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Bound, bool)> {
        self.names
            .iter()
            .map(|(name, entry)| (name, &entry.bound, entry.confirmed))
    }

    pub(super) fn is_full(&self, limit: usize) -> bool {
        self.names.len() >= limit
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}
