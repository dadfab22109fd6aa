//! What a process remembers of names that others hold (docs/wire.md §7.7).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::id::{Address, ProcessId};
use crate::wire::{Keep, Name};

/// What a process remembers of names that others hold.
///
/// It may be wrong for as long as a forget is on its way: whoever posts to a remembered address must be ready
/// for the mailbox to be gone, call [`handle_address_gone`](Self::handle_address_gone) and fetch again.
#[derive(Debug, Default)]
pub struct NameCache {
    entries: HashMap<Arc<str>, Entry>,
    /// The same names by age, to drop the oldest.
    by_age: BTreeMap<u64, Arc<str>>,
    next_age: u64,
}

#[derive(Debug)]
struct Entry {
    address: Address,
    age: u64,
}

impl NameCache {
    /// Nothing remembered.
    pub fn new() -> Self {
        Self::default()
    }

    /// A fetch of `name` was answered.
    pub fn handle_found(&mut self, name: Name<'_>, address: Address, keep: Keep) {
        self.remove(name.as_str());
        if keep == Keep::Once {
            return;
        }
        if self.entries.len() >= CACHE_MAX {
            if let Some((_, oldest)) = self.by_age.pop_first() {
                self.entries.remove(&oldest);
            }
        }
        let name: Arc<str> = name.as_str().into();
        let age = self.next_age;
        self.next_age += 1;
        self.by_age.insert(age, Arc::clone(&name));
        self.entries.insert(name, Entry { address, age });
    }

    /// The holder of `name` says that it no longer means what it did.
    pub fn handle_forget(&mut self, name: Name<'_>) {
        self.remove(name.as_str());
    }

    /// A life of a process is over, and so is every earlier one.
    pub fn handle_process_gone(&mut self, process: ProcessId) {
        self.retain(|address| !address.process.is_fenced_by(process));
    }

    /// A message to `address` was refused because there is no such mailbox.
    pub fn handle_address_gone(&mut self, gone: Address) {
        self.retain(|address| address != gone);
    }

    /// What `name` meant when it was last heard of.
    pub fn lookup(&self, name: Name<'_>) -> Option<Address> {
        let entry = self.entries.get(name.as_str())?;
        Some(entry.address)
    }

    /// All names that are remembered.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(|name| &**name)
    }

    /// How many names are remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn remove(&mut self, name: &str) {
        if let Some(entry) = self.entries.remove(name) {
            self.by_age.remove(&entry.age);
        }
    }

    fn retain(&mut self, keep: impl Fn(Address) -> bool) {
        let by_age = &mut self.by_age;
        self.entries.retain(|_, entry| {
            let kept = keep(entry.address);
            if !kept {
                by_age.remove(&entry.age);
            }
            kept
        });
    }
}

/// How many names a process remembers: the oldest is fetched again when it is needed.
pub const CACHE_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Incarnation, MailboxId, Rank};

    fn address(rank: u32) -> Address {
        Address {
            process: ProcessId::new(Rank(rank), Incarnation(0)),
            mailbox: MailboxId(9),
        }
    }

    fn name(text: &str) -> Name<'_> {
        Name::new(text).unwrap()
    }

    #[test]
    fn what_was_found_is_remembered_until_forgotten() {
        let mut cache = NameCache::new();
        cache.handle_found(name("sum"), address(1), Keep::UntilForgotten);
        assert_eq!(cache.lookup(name("sum")), Some(address(1)));
        cache.handle_forget(name("sum"));
        assert_eq!(cache.lookup(name("sum")), None);
    }

    #[test]
    fn what_may_be_used_once_is_not_remembered() {
        let mut cache = NameCache::new();
        cache.handle_found(name("sum"), address(1), Keep::UntilForgotten);
        cache.handle_found(name("sum"), address(2), Keep::Once);
        assert!(cache.is_empty());
    }

    #[test]
    fn the_names_of_a_dead_process_are_forgotten() {
        let mut cache = NameCache::new();
        cache.handle_found(name("sum"), address(1), Keep::UntilForgotten);
        cache.handle_found(name("max"), address(2), Keep::UntilForgotten);
        cache.handle_process_gone(address(1).process);
        assert_eq!(cache.lookup(name("sum")), None);
        assert_eq!(cache.lookup(name("max")), Some(address(2)));
    }

    #[test]
    fn a_closed_mailbox_is_forgotten_under_all_its_names() {
        let mut cache = NameCache::new();
        cache.handle_found(name("sum"), address(1), Keep::UntilForgotten);
        cache.handle_found(name("total"), address(1), Keep::UntilForgotten);
        cache.handle_address_gone(address(1));
        assert!(cache.is_empty());
    }

    #[test]
    fn a_full_cache_drops_its_oldest_name() {
        let mut cache = NameCache::new();
        for number in 0..=CACHE_MAX {
            let text = number.to_string();
            cache.handle_found(name(&text), address(1), Keep::UntilForgotten);
        }
        assert_eq!(cache.len(), CACHE_MAX);
        assert_eq!(cache.by_age.len(), CACHE_MAX);
        assert_eq!(cache.lookup(name("0")), None);
        assert!(cache.lookup(name("1")).is_some());
    }
}
