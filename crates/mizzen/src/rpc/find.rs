//! Who serves a name.
//!
//! A service is bound under its name and its rank, so that it can be called there. The first one of a name is also bound under
//! the name alone: clients that do not care who serves it wait for that.

use std::time::{Duration, Instant};

use mizzen_core::service::Address;
use mizzen_core::{BindError, Endpoint, FetchError, Gone, Rank, ReachError};

fn anywhere(name: &str) -> String {
    format!("service {name}")
}

fn at(name: &str, rank: Rank) -> String {
    format!("service {name} at {rank}")
}

/// Others may call it.
pub(super) fn announce(process: &Endpoint, name: &str, address: Address) -> Result<(), BindError> {
    process.check_cluster_of(name)?;
    let here = at(name, process.id().rank);
    if process.has_bound(&here) {
        return Err(BindError::Taken {
            name: name.to_owned(),
            owner: process.id().rank,
        });
    }
    process.bind(&here, address)?;
    match process.bind(&anywhere(name), address) {
        Err(BindError::Taken { .. }) => Ok(()),
        outcome => outcome,
    }
}

/// Others may not any more.
pub(super) fn withdraw(process: &Endpoint, name: &str, address: Address) {
    process.unbind(&at(name, process.id().rank), address);
    process.unbind(&anywhere(name), address);
}

/// The service of one rank, waiting for it if it is not there yet.
pub(super) fn of_rank(
    process: &Endpoint,
    name: &str,
    rank: Rank,
    patience: Duration,
) -> Result<Address, FetchError> {
    let waits = || format!("for rank {rank} to serve {name:?}");
    let found = process.fetch_saying(&at(name, rank), Some(patience), &waits);
    found.map_err(|error| named(name, error))
}

/// The same, unless that rank is gone: then there is no use in waiting for it.
pub(super) fn of_rank_unless_gone(
    process: &Endpoint,
    name: &str,
    rank: Rank,
    patience: Duration,
) -> Result<Result<Address, FetchError>, Gone> {
    let begun = Instant::now();
    let soon = of_rank(process, name, rank, SOON.min(patience));
    if soon.is_ok() || patience <= SOON {
        return Ok(soon);
    }
    match process.reach_within(rank, patience) {
        Err(ReachError::Gone(gone)) => Err(gone),
        _ => {
            let left = patience.saturating_sub(begun.elapsed());
            Ok(of_rank(process, name, rank, left))
        }
    }
}

/// An error as the user knows the service: under its own name.
fn named(service: &str, mut error: FetchError) -> FetchError {
    if let FetchError::Unbound { name, .. }
    | FetchError::Invalid { name, .. }
    | FetchError::Refused { name, .. } = &mut error
    {
        service.clone_into(name);
    }
    error
}

/// The service of any rank: our own, or that of the one that began first, or of whoever still serves when that one has ended.
pub(super) fn of_any(
    process: &Endpoint,
    name: &str,
    patience: Duration,
) -> Result<Address, FetchError> {
    let mine = process.id().rank;
    if process.has_bound(&at(name, mine)) {
        return of_rank(process, name, mine, patience);
    }
    let first = process.fetch(&anywhere(name), Some(SHORT_WAIT.min(patience)));
    if first.is_ok() {
        return first;
    }
    let others = (1..process.size()).map(|step| Rank((mine.0 + step) % process.size()));
    for rank in others {
        if let Ok(address) = of_rank(process, name, rank, Duration::ZERO) {
            return Ok(address);
        }
    }
    let waits = || format!("for somebody to serve {name:?}");
    let found = process.fetch_saying(&anywhere(name), Some(patience), &waits);
    found.map_err(|error| named(name, error))
}

/// Who is about to serve does so by then; whoever has more patience first looks whether the rank is gone.
const SOON: Duration = Duration::from_millis(20);
/// Most who are called are there by then.
const SHORT_WAIT: Duration = Duration::from_millis(200);
