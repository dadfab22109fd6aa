//! Threads that are about to block say so, so that another may take their place.
//!
//! A worker (`workers`) gives its place away while it blocks. What blocks lies below the workers, and need not know them: it
//! finds what the calling thread left here.

use std::cell::RefCell;
use std::rc::Rc;

/// A thread's place, which it may give away for a while.
pub(crate) trait WorkerSlot {
    /// Gives the place away. `false`: it was given away before, and not taken back.
    fn leave(&self) -> bool;

    /// Takes it back.
    fn come_back(&self);
}

thread_local! {
    static SLOT: RefCell<Option<Rc<dyn WorkerSlot>>> = const { RefCell::new(None) };
}

/// Says which place the calling thread has, if any.
pub(crate) fn set_worker_slot(place: Option<Rc<dyn WorkerSlot>>) {
    SLOT.set(place);
}

/// Does something that blocks the thread, such as reading a file. On a worker, another takes its place meanwhile; on any
/// other thread this is a plain call. Blocking calls of this library need no such wrapper.
///
/// ```
/// use std::time::Duration;
///
/// let nap = || std::thread::sleep(Duration::from_millis(1));
/// mizzen_core::service::block_in_place(nap);
/// ```
pub fn block_in_place<T>(blocks: impl FnOnce() -> T) -> T {
    let place = SLOT.with_borrow(Clone::clone);
    // Whoever waits inside of a wait has given its place away already.
    let Some(place) = place.filter(|place| place.leave()) else {
        return blocks();
    };
    let _back = Back(&*place);
    blocks()
}

/// Takes the place again, also after a panic.
struct Back<'a>(&'a dyn WorkerSlot);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.0.come_back();
    }
}
