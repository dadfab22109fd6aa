//! What this process has bound: to know whose a name is without asking, and which names go with a mailbox.

use std::collections::{BTreeSet, HashMap};

use crate::rank::MailboxId;

#[derive(Debug, Default)]
pub(super) struct OurNames {
    names: HashMap<String, MailboxId>,
    /// The same, by mailbox.
    mailboxes: BTreeSet<(MailboxId, String)>,
}

impl OurNames {
    pub(super) fn mailbox_of(&self, name: &str) -> Option<MailboxId> {
        self.names.get(name).copied()
    }

    pub(super) fn insert(&mut self, name: &str, mailbox: MailboxId) {
        if let Some(before) = self.names.insert(name.to_owned(), mailbox) {
            self.mailboxes.remove(&(before, name.to_owned()));
        }
        self.mailboxes.insert((mailbox, name.to_owned()));
    }

    /// The name means this mailbox no longer, if it did.
    pub(super) fn remove(&mut self, name: &str, mailbox: MailboxId) {
        if self.mailboxes.remove(&(mailbox, name.to_owned())) {
            self.names.remove(name);
        }
    }

    /// Takes out all names of a mailbox.
    pub(super) fn take_of(&mut self, mailbox: MailboxId) -> Vec<String> {
        let from = (mailbox, String::new());
        let of = self
            .mailboxes
            .range(from..)
            .map_while(|(of, name)| (*of == mailbox).then(|| name.clone()));
        let names: Vec<String> = of.collect();
        for name in &names {
            self.remove(name, mailbox);
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_with_their_mailbox() {
        let mut ours = OurNames::default();
        for (name, mailbox) in [("a", 1), ("b", 2), ("c", 2), ("d", 3)] {
            ours.insert(name, MailboxId(mailbox));
        }
        ours.insert("c", MailboxId(3));
        ours.remove("d", MailboxId(1));
        assert_eq!(ours.take_of(MailboxId(2)), ["b"]);
        assert_eq!(ours.take_of(MailboxId(2)), [""; 0]);
        assert_eq!(ours.take_of(MailboxId(3)), ["c", "d"]);
        assert_eq!(ours.mailbox_of("a"), Some(MailboxId(1)));
        assert_eq!(ours.mailbox_of("c"), None);
    }
}
