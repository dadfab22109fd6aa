//! A process's handle on its job.

use core::fmt;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use mizzen_core::service::{lock, without_place};
use mizzen_core::{
    ArenaError, BindError, Endpoint, Error, FetchError, Incarnation, JoinError, Lent, Mailbox,
    MailboxError, MailboxRef, Plain, Rank, Scope, Task, WeakEndpoint,
};

/// A process's handle on the job. Clone it, share it between threads.
///
/// ```
/// let deck = mizzen::Deck::join()?;
/// println!("rank {} of {}", deck.rank(), deck.size());
/// # Ok::<(), mizzen::Error>(())
/// ```
#[derive(Clone)]
pub struct Deck {
    pub(crate) process: Endpoint,
    kept: Arc<Keeping>,
}

/// What all clones of a `Deck` hold together: what services keep as long as the process is in its job, by its type.
#[derive(Default)]
struct Keeping(Mutex<HashMap<TypeId, Arc<dyn Kept>>>);

/// Something that a service of this crate keeps as long as the program has a [`Deck`].
pub(crate) trait Kept: Any + Send + Sync {
    /// The last `Deck` is dropped. Workers may still hold what they looked at last; the process leaves its job now all the
    /// same.
    fn close(&self);

    /// Itself, to find out what it is.
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let kept = core::mem::take(&mut *lock(&self.0));
        kept.into_values().for_each(|kept| kept.close());
    }
}

/// A `Deck` that does not keep the process in its job.
pub(crate) struct WeakDeck {
    process: WeakEndpoint,
    kept: Weak<Keeping>,
}

impl WeakDeck {
    /// The `Deck`, if the program has one.
    pub(crate) fn upgrade(&self) -> Option<Deck> {
        Some(Deck {
            kept: self.kept.upgrade()?,
            process: self.process.upgrade()?,
        })
    }
}

impl Deck {
    /// How long [`fetch`](Self::fetch) waits for a name to be bound. A name that nobody binds is nearly always misspelt; a
    /// program that binds later says so with [`fetch_timeout`](Self::fetch_timeout).
    pub const FETCH_PATIENCE: Duration = Duration::from_secs(30);

    /// Joins the job that the launcher (`mizzen run`) started. Without a launcher, this is a job of one.
    ///
    /// # Errors
    ///
    /// [`JoinError`] if the launcher's agent cannot be understood, or this process has joined before.
    pub fn join() -> Result<Self, JoinError> {
        Endpoint::join().map(Self::new)
    }

    pub(crate) fn new(process: Endpoint) -> Self {
        Self {
            process,
            kept: Arc::default(),
        }
    }

    pub(crate) fn downgrade(&self) -> WeakDeck {
        WeakDeck {
            process: self.process.downgrade(),
            kept: Arc::downgrade(&self.kept),
        }
    }

    /// What a service keeps here: made at its first use.
    pub(crate) fn keep<K: Kept>(
        &self,
        make: impl FnOnce(&Self) -> Result<K, Error>,
    ) -> Result<Arc<K>, Error> {
        let mut kept = lock(&self.kept.0);
        if let Some(known) = kept.get(&TypeId::of::<K>()) {
            let known: Arc<dyn Any + Send + Sync> = Arc::clone(known).as_any();
            if let Ok(known) = known.downcast() {
                return Ok(known);
            }
        }
        let made = Arc::new(make(self)?);
        kept.insert(TypeId::of::<K>(), Arc::clone(&made) as Arc<dyn Kept>);
        Ok(made)
    }

    /// This process's number in the job, from 0.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.process.id().rank
    }

    /// Which life of this rank it is: 0, and one more each time the launcher started it again.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.process.id().incarnation
    }

    /// Number of processes in the job.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.process.size()
    }

    /// The host this process runs on, as the launcher calls it.
    #[must_use]
    pub fn host(&self) -> &str {
        self.process.host()
    }

    /// Whether a launcher started this job. If not, it is a job of one.
    #[must_use]
    pub fn is_launched(&self) -> bool {
        self.process.is_launched()
    }

    /// Insists on a job of at least `needed` processes.
    ///
    /// # Errors
    ///
    /// [`JoinError::TooSmall`], which says how to start the program.
    pub fn at_least(&self, needed: u32) -> Result<&Self, JoinError> {
        let size = self.size();
        if size < needed {
            return Err(JoinError::TooSmall {
                size,
                needed,
                launched: self.is_launched(),
            });
        }
        Ok(self)
    }

    /// A new mailbox, owned by the caller.
    ///
    /// # Errors
    ///
    /// [`MailboxError::TooMany`] if the process has as many as it may.
    pub fn mailbox(&self) -> Result<Mailbox, MailboxError> {
        Mailbox::open_in(&self.process)
    }

    /// Binds a name to a mailbox, for everyone in the job.
    ///
    /// # Errors
    ///
    /// [`BindError::Taken`] if the name means another mailbox, of this process or of another. Binding the same one again is
    /// fine; [`unbind`](Self::unbind) it, or drop it, before the name is bound to another.
    pub fn bind(&self, name: &str, mailbox: &Mailbox) -> Result<(), BindError> {
        self.process.bind(name, mailbox.full_address())
    }

    /// Frees a name that was bound to a mailbox of this process.
    pub fn unbind(&self, name: &str, mailbox: &Mailbox) {
        self.process.unbind(name, mailbox.full_address());
    }

    /// The mailbox that `name` means, waiting until someone binds it, at most [`FETCH_PATIENCE`](Self::FETCH_PATIENCE).
    ///
    /// # Errors
    ///
    /// [`FetchError::Unbound`] if nobody did.
    pub fn fetch(&self, name: &str) -> Result<MailboxRef, FetchError> {
        self.fetch_timeout(name, Self::FETCH_PATIENCE)
    }

    /// As [`fetch`](Self::fetch), waiting as long as said. `Duration::ZERO` does not wait.
    ///
    /// # Errors
    ///
    /// As [`fetch`](Self::fetch).
    pub fn fetch_timeout(&self, name: &str, timeout: Duration) -> Result<MailboxRef, FetchError> {
        let address = self.process.fetch(name, Some(timeout))?;
        Ok(MailboxRef::new(self.process.clone(), address))
    }

    /// A buffer of `count` zeroed values in this process's arena, to be moved into a message. Waits while receivers hold
    /// all of the arena.
    ///
    /// # Errors
    ///
    /// [`ArenaError::TooLong`] if no arena can hold it, or the system has no memory.
    pub fn lend<T: Plain>(&self, count: usize) -> Result<Lent<T>, ArenaError> {
        let mut buffer = self.lend_unzeroed(count)?;
        buffer.zero();
        Ok(buffer)
    }

    /// As [`lend`](Self::lend), but the values are what an earlier message of this process left there, or zero. For a buffer
    /// that is written all over: setting a long one to zero costs more than handing it over.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     let inbox = deck.mailbox()?;
    ///     let mut samples = deck.lend_unzeroed::<f32>(1000)?;
    ///     samples.fill(0.5);
    ///     inbox.address().post_lent(&1u32, samples)?;
    ///     assert_eq!(inbox.receive_lent::<u32, f32>()?.1[999], 0.5);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`lend`](Self::lend).
    pub fn lend_unzeroed<T: Plain>(&self, count: usize) -> Result<Lent<T>, ArenaError> {
        self.process.lend_unzeroed(count)
    }

    /// Bytes of memory that this process holds for lent buffers and long messages.
    #[must_use]
    pub fn arena_bytes(&self) -> usize {
        self.process.arena_bytes()
    }

    /// Runs a closure on a worker of this process. There are as many workers as cores (or as `MIZZEN_WORKERS` says); one that
    /// blocks in a call of this library gives its place to another meanwhile.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     let parts: Vec<_> = (0..4u64).map(|part| deck.run(move || part * part)).collect();
    ///     let sum: u64 = parts.into_iter().map(|part| part.join()).sum();
    ///     assert_eq!(sum, 14);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Task<T> {
        self.process.crew().spawn(async move { work() })
    }

    /// Runs a future on the workers of this process. A task that [awaits](Mailbox::retrieve_async) a message costs no thread:
    /// idle workers look for it.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     let mut inbox = deck.mailbox()?;
    ///     let address = inbox.address();
    ///     let task = deck.run_async(async move {
    ///         let mut message = inbox.retrieve_async().await?;
    ///         Ok::<u64, mizzen::Error>(message.unpack_express()?)
    ///     });
    ///     address.send(&7u64)?;
    ///     assert_eq!(task.join()?, 7);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    pub fn run_async<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        self.process.crew().spawn(future)
    }

    /// Does something that blocks the thread, such as reading a file. In a worker, another takes its place meanwhile; in any
    /// other thread this is a plain call. Calls of this library that block do so by themselves.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     let inner = deck.clone();
    ///     let nap = std::time::Duration::from_millis(1);
    ///     deck.run(move || inner.blocking(|| std::thread::sleep(nap))).join();
    ///     Ok(())
    /// }).unwrap();
    /// ```
    pub fn blocking<T>(&self, blocks: impl FnOnce() -> T) -> T {
        without_place(blocks)
    }

    /// Overlaps communication with computation on borrowed data: what is posted inside goes on while the closure computes,
    /// and is done when `scope` returns.
    ///
    /// ```
    /// use mizzen::Message;
    /// mizzen::local(1, |deck| {
    ///     let inbox = deck.mailbox()?;
    ///     let halo = vec![1.0f64; 4096];
    ///     let address = inbox.address();
    ///     let sum = deck.scope(|scope| {
    ///         let mut message = Message::new();
    ///         message.pack_cheaper(&halo[..]);
    ///         let sent = scope.post(&address, message);
    ///         let sum: f64 = halo.iter().sum();
    ///         sent.wait().map(|()| sum)
    ///     })?;
    ///     assert_eq!(sum, 4096.0);
    ///     assert_eq!(inbox.receive_vec::<f64>()?, halo);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    pub fn scope<'env, T>(&self, body: impl for<'scope> FnOnce(&Scope<'scope, 'env>) -> T) -> T {
        std::thread::scope(|threads| body(&Scope::new(threads)))
    }
}

impl fmt::Display for Deck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_launched() {
            write!(
                f,
                "rank {} of {} on {}",
                self.rank(),
                self.size(),
                self.host()
            )
        } else {
            write!(
                f,
                "rank 0 of 1, started without the launcher (`mizzen run -n 4 -- <program>` starts four)"
            )
        }
    }
}

impl fmt::Debug for Deck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deck")
            .field("rank", &self.process.id())
            .field("size", &self.size())
            .finish()
    }
}
