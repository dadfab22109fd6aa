//! What is to be moved on while threads of this process wait for something else: receives that were posted, and that nobody may
//! be waiting for at the moment. The peer for which a thread waits may be waiting for one of them.

use core::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::lock::lock;

/// Something that is under way and that nobody may be waiting for.
pub(crate) trait UnderWay: Send + Sync {
    /// Moves it on, unless another thread does.
    fn move_on(&self);

    /// A thread is about to sleep: somebody else must move it on.
    fn watch(&self);
}

/// All that is under way in a process.
#[derive(Default)]
pub(crate) struct Standing {
    /// How many there are, so that a look at none costs nothing.
    count: AtomicUsize,
    all: Mutex<Vec<Weak<dyn UnderWay>>>,
}

impl Standing {
    pub(crate) fn add(&self, one: &Arc<impl UnderWay + 'static>) {
        let one: Weak<dyn UnderWay> = Arc::<_>::downgrade(one) as Weak<dyn UnderWay>;
        self.change(|all| all.push(one));
    }

    pub(crate) fn remove(&self, one: &Weak<dyn UnderWay>) {
        self.change(|all| all.retain(|other| !Weak::ptr_eq(other, one)));
    }

    /// Moves everything on.
    #[inline]
    pub(crate) fn move_on(&self) {
        self.for_each(|one| one.move_on());
    }

    /// A thread is about to sleep.
    pub(crate) fn watch(&self) {
        self.for_each(|one| one.watch());
    }

    #[inline]
    fn for_each(&self, each: impl Fn(&dyn UnderWay)) {
        // Who adds something from another thread sees to it itself.
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let all: Vec<_> = lock(&self.all).iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|one| each(&**one));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Weak<dyn UnderWay>>)) {
        let mut all = lock(&self.all);
        change(&mut all);
        all.retain(|one| one.strong_count() > 0);
        self.count.store(all.len(), Ordering::Relaxed);
    }
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Standing").field(&self.count).finish()
    }
}
