//! A whole job inside one OS process: ranks are threads, so that a parallel program can be tested under `cargo test`.

use mizzen_core::Result;

use crate::deck::Deck;

/// Runs a job of `size` ranks as threads of this process and returns what each rank returned.
///
/// The ranks share nothing but what `body` captures; they communicate as processes of one host would. If a rank fails or
/// panics, the others are told as if its process had died, and its failure is the result.
///
/// If all ranks but one have returned, and that one waits for a message that nobody can send any more, it gets an error
/// ([`RetrieveError::NobodyLeft`](crate::RetrieveError::NobodyLeft)), if the program has no other
/// threads. The harness of `cargo test` has some: there the wait ends after 20 seconds
/// ([`RetrieveError::NobodyCame`](crate::RetrieveError::NobodyCame)).
///
/// ```
/// let squares = mizzen::local(4, |deck| Ok(deck.rank().0 * deck.rank().0))?;
/// assert_eq!(squares, [0, 1, 4, 9]);
/// # Ok::<(), mizzen::Error>(())
/// ```
///
/// # Errors
///
/// The error of the rank that failed first.
///
/// # Panics
///
/// If a rank panics, or if `size` is 0.
pub fn local<T: Send>(size: u32, body: impl Fn(Deck) -> Result<T> + Sync) -> Result<Vec<T>> {
    mizzen_core::local(size, |endpoint| body(Deck::new(endpoint)))
}

/// As [`local`], but ranks reach each other through TCP on the loopback interface only: for tests of the network path.
///
/// # Errors
///
/// As [`local`], or if the system refuses sockets.
///
/// # Panics
///
/// As [`local`].
#[doc(hidden)]
pub fn local_over_tcp<T: Send>(
    size: u32,
    body: impl Fn(Deck) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    mizzen_core::local_over_tcp(size, |endpoint| body(Deck::new(endpoint)))
}

/// As [`local_over_tcp`], over a network that is trusted: nothing is sealed. For who counts what a message costs.
///
/// # Errors
///
/// As [`local_over_tcp`].
///
/// # Panics
///
/// As [`local`].
#[doc(hidden)]
pub fn local_trusted<T: Send>(
    size: u32,
    body: impl Fn(Deck) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    mizzen_core::local_trusted(size, |endpoint| body(Deck::new(endpoint)))
}

/// As [`local_over_tcp`], but ranks with an odd number say that the bytes of their numbers lie in the other order.
///
/// # Errors
///
/// As [`local_over_tcp`].
///
/// # Panics
///
/// As [`local`].
#[doc(hidden)]
pub fn local_unlike<T: Send>(size: u32, body: impl Fn(Deck) -> Result<T> + Sync) -> Result<Vec<T>> {
    mizzen_core::local_unlike(size, |endpoint| body(Deck::new(endpoint)))
}
