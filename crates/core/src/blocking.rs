//! Threads that are about to block say so, so that another may take their place meanwhile.
//!
//! A worker (`workers`) gives its place away while it blocks. What blocks lies below the workers, and need not know them: it
//! finds what the calling thread left here.

use std::cell::RefCell;
use std::rc::Rc;

/// A thread's place, which it may give away for a while.
pub(crate) trait Place {
    /// Gives the place away. `false`: it was given away before, and not taken back.
    fn leave(&self) -> bool;

    /// Takes it back.
    fn come_back(&self);
}

thread_local! {
    static PLACE: RefCell<Option<Rc<dyn Place>>> = const { RefCell::new(None) };
}

/// Says which place the calling thread has, if any.
pub(crate) fn set_place(place: Option<Rc<dyn Place>>) {
    PLACE.set(place);
}

/// Does something that blocks. If the calling thread has a place, another takes it meanwhile.
pub fn without_place<T>(blocks: impl FnOnce() -> T) -> T {
    let place = PLACE.with_borrow(Clone::clone);
    // Whoever waits inside of a wait has given its place away already.
    let Some(place) = place.filter(|place| place.leave()) else {
        return blocks();
    };
    let _back = Back(&*place);
    blocks()
}

/// Takes the place again, also after a panic.
struct Back<'a>(&'a dyn Place);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.0.come_back();
    }
}
