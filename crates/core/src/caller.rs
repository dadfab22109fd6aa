//! Where in the program a thread calls this library: what a user is told of a wait.
//!
//! The outermost call counts. A service that waits for a message on behalf of its user is in a call of the user's, and that is the
//! line to show.

use core::cell::Cell;
use core::marker::PhantomData;
use core::panic::Location;

thread_local! {
    static CALLER: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
}

/// The thread is in a call from there, as long as this lives and unless it was in one before.
#[derive(Debug)]
pub struct Caller {
    is_outermost: bool,
    /// It belongs to its thread.
    _not_send: PhantomData<*const ()>,
}

impl Caller {
    /// In a call from where the function that uses this was called, if that is `#[track_caller]`.
    #[must_use]
    #[track_caller]
    pub fn enter() -> Self {
        Self::enter_at(Location::caller())
    }

    /// In a call from there.
    #[must_use]
    pub fn enter_at(at: &'static Location<'static>) -> Self {
        let is_outermost = CALLER.get().is_none();
        if is_outermost {
            CALLER.set(Some(at));
        }
        Self {
            is_outermost,
            _not_send: PhantomData,
        }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.is_outermost {
            CALLER.set(None);
        }
    }
}

/// Where the thread was called from, if it is known.
pub(crate) fn current() -> Option<&'static Location<'static>> {
    CALLER.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_call_counts() {
        let outer = Location::caller();
        assert_eq!(current(), None);
        {
            let _outer = Caller::enter_at(outer);
            let _inner = Caller::enter();
            assert_eq!(current(), Some(outer));
        }
        assert_eq!(current(), None);
    }
}
