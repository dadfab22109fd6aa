//! Names while hosts are lost: those of survivors are answered again soon, and none has two owners.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use mizzen::{BindError, Error, Mailbox, Rank};

use super::place::Place;

/// How soon after a verdict names must be answered.
const BOUND: Duration = Duration::from_secs(1);
/// How long they are waited for, so that it is known by how much it was too late.
const PATIENCE: Duration = Duration::from_secs(20);

/// The names of this process: one to be fetched after the loss of each host, since what was fetched before is known.
pub(super) struct Names(Mailbox);

impl Names {
    pub(super) fn bind(place: &Place) -> anyhow::Result<Self> {
        let mailbox = place.deck.mailbox()?;
        for host in 0..place.hosts {
            place
                .deck
                .bind(&name_of(place.deck.rank(), host), &mailbox)?;
        }
        Ok(Self(mailbox))
    }

    /// Checks all names after the loss of each host, until nobody tells of more.
    pub(super) fn answer(self, place: &Place, told: Receiver<Rank>) -> anyhow::Result<()> {
        let mut lost = BTreeSet::new();
        for rank in told {
            lost.insert(rank);
            let host = place.host_of(rank);
            if place.ranks_of(host).all(|rank| lost.contains(&rank)) {
                self.check(place, host, &lost)?;
            }
        }
        Ok(())
    }

    fn check(&self, place: &Place, host: u32, lost: &BTreeSet<Rank>) -> anyhow::Result<()> {
        let since = Instant::now();
        let deck = &place.deck;
        for rank in deck.others().filter(|rank| !lost.contains(rank)) {
            let name = name_of(rank, host);
            let found = deck.fetch_timeout(&name, PATIENCE);
            let found = found.with_context(|| format!("the name {name:?}"))?;
            ensure!(
                found.rank() == rank,
                "{name:?} means a mailbox of rank {}",
                found.rank()
            );
        }
        let took = since.elapsed();
        println!(
            "names after host {host} answered in {} ms",
            took.as_millis()
        );
        ensure!(took < BOUND, "names were answered after {took:.1?} only");
        self.inherit(place, host)
    }

    /// All who are left want one name: one of them gets it, and everybody is told the same one.
    fn inherit(&self, place: &Place, host: u32) -> anyhow::Result<()> {
        let (deck, heir) = (&place.deck, place.board.heir_of(host));
        let name = format!("heir of host {host}");
        match deck.bind(&name, &self.0) {
            Ok(()) => {
                let me = u64::from(deck.rank().0) + 1;
                let before = heir.swap(me, Ordering::SeqCst);
                ensure!(
                    before == 0,
                    "{name:?} was bound by rank {} already",
                    before - 1
                );
            }
            Err(Error::Bind(BindError::Taken { .. })) => (),
            Err(error) => bail!("{name:?}: {error}"),
        }
        let found = deck.fetch_timeout(&name, PATIENCE)?.rank();
        let deadline = Instant::now() + PATIENCE;
        // Who was told that it is bound to it says so a moment later.
        while heir.load(Ordering::SeqCst) == 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        let owner = heir.load(Ordering::SeqCst);
        ensure!(
            owner == u64::from(found.0) + 1,
            "{name:?} means rank {found}, and rank {} bound it",
            owner.wrapping_sub(1)
        );
        println!("heir of host {host} is rank {found}");
        Ok(())
    }
}

fn name_of(rank: Rank, host: u32) -> String {
    format!("rank {rank} after host {host}")
}
