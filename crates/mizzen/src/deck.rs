//! A process's handle on its job.

use core::fmt;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use mizzen_core::service::lock;
use mizzen_core::{
    Channel, CounterRow, Endpoint, Error, Incarnation, JoinError, Lent, Mailbox, MailboxRef, Plain,
    Rank, Ranks, Result, Scope, Task, Topology, WeakEndpoint,
};

/// A process's handle on the job. It can be cloned, and shared between threads.
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
    /// program that has to wait longer uses [`fetch_timeout`](Self::fetch_timeout).
    pub const FETCH_TIMEOUT: Duration = Duration::from_secs(30);

    /// Joins the job that the launcher (`mizzen run`) started. Without a launcher, this is a job of one.
    ///
    /// # Errors
    ///
    /// [`JoinError`] if the launcher's agent cannot be understood, or this process has joined before.
    pub fn join() -> Result<Self> {
        Ok(Self::new(Endpoint::join()?))
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
    pub(crate) fn keep<K: Kept>(&self, make: impl FnOnce(&Self) -> Result<K>) -> Result<Arc<K>> {
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

    /// Which life of this rank this is: 0, and one more each time the launcher has restarted it.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.process.id().incarnation
    }

    /// Number of processes in the job.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.process.size()
    }

    /// All ranks of the job, in order.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     let inbox = deck.mailbox()?;
    ///     deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
    ///     let inboxes = deck.ranks().map(|rank| deck.fetch(&format!("inbox {rank}")));
    ///     let inboxes = inboxes.collect::<mizzen::Result<Vec<_>>>()?;
    ///     let next = (deck.rank() + 1) % deck.size();
    ///     inboxes[next.index()].send(&deck.rank().0)?;
    ///     assert_eq!((inbox.receive::<u32>()? + 1) % deck.size(), deck.rank());
    ///     // Nobody leaves while others still look for names.
    ///     deck.finish()
    /// }).unwrap();
    /// ```
    #[must_use]
    pub fn ranks(&self) -> Ranks {
        Ranks::new(self.size())
    }

    /// All ranks but this one, in order.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     assert!(deck.others().all(|other| other != deck.rank()));
    ///     assert_eq!(deck.others().count(), 2);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    pub fn others(&self) -> impl DoubleEndedIterator<Item = Rank> + Clone + use<> {
        let me = self.rank();
        self.ranks().filter(move |rank| *rank != me)
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
    pub fn at_least(&self, needed: u32) -> Result<&Self> {
        let size = self.size();
        if size < needed {
            let launched = self.is_launched();
            return Err(Error::from(JoinError::TooSmall {
                size,
                needed,
                launched,
            }));
        }
        Ok(self)
    }

    /// A new mailbox, owned by the caller.
    ///
    /// # Errors
    ///
    /// [`MailboxError::TooMany`](crate::MailboxError::TooMany) if the process has no room for another.
    pub fn mailbox(&self) -> Result<Mailbox> {
        Ok(Mailbox::open_in(&self.process)?)
    }

    /// Who is where in the job: hosts, networks, clusters, and what this process shares with others. The launcher is asked each time: keep what it says.
    ///
    /// ```no_run
    /// // Ranks of the same cluster first.
    /// let deck = mizzen::Deck::join()?;
    /// let topology = deck.topology()?;
    /// let mut others: Vec<_> = deck.others().collect();
    /// others.sort_by_key(|rank| (!topology.is_near(*rank), !topology.is_in_my_cluster(*rank)));
    /// # Ok::<(), mizzen::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`TopologyError`](crate::TopologyError) if the launcher does not answer.
    #[track_caller]
    pub fn topology(&self) -> Result<Topology> {
        Ok(self.process.topology()?)
    }

    /// The channel of this name: `default`, which everybody is on, or one of the job's file.
    ///
    /// ```no_run
    /// // On the hosts of the channel `bulk`: over its network, whatever else is under way.
    /// let deck = mizzen::Deck::join()?;
    /// let bulk = deck.channel("bulk")?;
    /// let inbox = bulk.mailbox()?;
    /// deck.bind(&format!("bulk inbox {}", deck.rank()), &inbox)?;
    /// for member in bulk.members().filter(|member| *member != deck.rank()) {
    ///     deck.fetch(&format!("bulk inbox {member}"))?.send(&vec![0u8; 1 << 20][..])?;
    /// }
    /// # Ok::<(), mizzen::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ChannelError`](crate::ChannelError) if the job has none of that name, or this process is not on it.
    pub fn channel(&self, name: &str) -> Result<Channel> {
        Ok(Channel::named(&self.process, name)?)
    }

    /// The names of all channels that this process is on, `default` first.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     assert_eq!(deck.channels(), ["default"]);
    ///     assert!(deck.channel("bulk").unwrap_err().to_string().contains("no channel \"bulk\""));
    ///     Ok(())
    /// }).unwrap();
    /// ```
    #[must_use]
    pub fn channels(&self) -> Vec<String> {
        Channel::names(&self.process)
    }

    /// Binds a name to a mailbox, for everyone in the job. A name that begins with one of the job's clusters and a colon, `west:board`, is
    /// that cluster's: only its processes bind it, and everybody [fetches](Self::fetch) it by the same name. So a program that runs in several
    /// clusters has a board in each ([`Topology::my_cluster`]).
    ///
    /// # Errors
    ///
    /// [`BindError::Taken`](crate::BindError::Taken) if the name is bound to another mailbox, of this process or of another.
    /// Binding the same one again is fine; [`unbind`](Self::unbind) or drop a mailbox before its name is bound to another.
    /// [`BindError::Refused`](crate::BindError::Refused) if the name is another cluster's.
    pub fn bind(&self, name: &str, mailbox: &Mailbox) -> Result<()> {
        self.process.check_cluster_of(name)?;
        Ok(self.process.bind(name, mailbox.full_address())?)
    }

    /// Frees a name that was bound to a mailbox of this process.
    pub fn unbind(&self, name: &str, mailbox: &Mailbox) {
        self.process.unbind(name, mailbox.full_address());
    }

    /// The address of the mailbox bound to `name`. Waits until somebody binds it, for at most
    /// [`FETCH_TIMEOUT`](Self::FETCH_TIMEOUT).
    ///
    /// # Errors
    ///
    /// [`FetchError::Unbound`](crate::FetchError::Unbound) if nobody did.
    #[track_caller]
    pub fn fetch(&self, name: &str) -> Result<MailboxRef> {
        self.fetch_timeout(name, Self::FETCH_TIMEOUT)
    }

    /// As [`fetch`](Self::fetch), but waits for at most `timeout`. `Duration::ZERO` does not wait.
    ///
    /// # Errors
    ///
    /// As [`fetch`](Self::fetch).
    #[track_caller]
    pub fn fetch_timeout(&self, name: &str, timeout: Duration) -> Result<MailboxRef> {
        let address = self.process.fetch(name, Some(timeout))?;
        Ok(MailboxRef::new(self.process.clone(), address))
    }

    /// Waits until each process has what this one posted to it. Between processes of a host a message that was posted is there
    /// already, unless its reader is far behind; another host has it when it has said so, which a pulled cable can delay.
    /// A process that has a message need not have read it.
    ///
    /// ```
    /// use mizzen::Deck;
    ///
    /// # fn main() -> mizzen::Result<()> {
    /// let deck = Deck::join()?;
    /// let inbox = deck.mailbox()?;
    /// inbox.address().send(&7u64)?;
    /// deck.flush()?; // whatever comes now, the message is where it should be
    /// assert_eq!(inbox.receive::<u64>()?, 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`FlushError::PeerGone`](crate::FlushError::PeerGone) if a process is gone that did not take all; each is told once.
    #[track_caller]
    pub fn flush(&self) -> Result<()> {
        Ok(self.process.flush(None)?)
    }

    /// As [`flush`](Self::flush), but waits for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), and [`FlushError::TimedOut`](crate::FlushError::TimedOut).
    #[track_caller]
    pub fn flush_timeout(&self, timeout: Duration) -> Result<()> {
        Ok(self.process.flush(Some(timeout))?)
    }

    /// A buffer of `count` zeroed values in this process's arena, to be moved into a message. Waits while receivers hold
    /// all of the arena.
    ///
    /// # Errors
    ///
    /// [`ArenaError::TooLong`](crate::ArenaError::TooLong) if no arena can hold it, or the system has no memory.
    #[track_caller]
    pub fn lend<T: Plain>(&self, count: usize) -> Result<Lent<T>> {
        let mut buffer = self.lend_unzeroed(count)?;
        buffer.zero();
        Ok(buffer)
    }

    /// As [`lend`](Self::lend), but the values are what an earlier message of this process left there, or zero. For a buffer
    /// that you overwrite completely: setting a long one to zero costs more than handing it over.
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
    #[track_caller]
    pub fn lend_unzeroed<T: Plain>(&self, count: usize) -> Result<Lent<T>> {
        Ok(self.process.lend_unzeroed(count)?)
    }

    /// As [`lend`](Self::lend), but does not wait: `None` while receivers hold all that may be lent.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     deck.set_lending_limit(2 << 20);
    ///     let _first = deck.lend::<u8>(1 << 20)?;
    ///     let second = deck.try_lend::<u8>(1 << 20)?.expect("there is room for two");
    ///     assert!(deck.try_lend::<u8>(1 << 20)?.is_none());
    ///     drop(second);
    ///     assert!(deck.try_lend::<u8>(1 << 20)?.is_some());
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`lend`](Self::lend).
    pub fn try_lend<T: Plain>(&self, count: usize) -> Result<Option<Lent<T>>> {
        let mut buffer = self.process.try_lend_unzeroed(count)?;
        buffer.iter_mut().for_each(Lent::zero);
        Ok(buffer)
    }

    /// As [`lend`](Self::lend), but waits for at most `timeout`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// mizzen::local(1, |deck| {
    ///     deck.set_lending_limit(1 << 20);
    ///     let _first = deck.lend::<u8>(1 << 20)?;
    ///     assert!(deck.lend_timeout::<u8>(1 << 20, Duration::from_millis(1)).is_err());
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`ArenaError::AllOut`](crate::ArenaError::AllOut) if nothing came back in time; otherwise as [`lend`](Self::lend).
    #[track_caller]
    pub fn lend_timeout<T: Plain>(&self, count: usize, timeout: Duration) -> Result<Lent<T>> {
        let mut buffer = self.process.lend_unzeroed_timeout(count, timeout)?;
        buffer.zero();
        Ok(buffer)
    }

    /// Allows so many bytes of lent buffers of this process at once: those that it is filling, and those that are out, with
    /// whomever. [`lend`](Self::lend) waits while there are as many, and the launcher says with whom they are if that takes long.
    /// Each counts with the bytes that it takes, which is a power of two; buffers that other hosts sent do not count.
    ///
    /// Without it, the limit is 1 GiB, and it cannot be more. What is out already stays out.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     deck.set_lending_limit(4 << 20); // four frames of 1 MiB
    ///     let frames: Vec<_> = (0..4).map(|_| deck.lend::<u8>(1 << 20)).collect::<mizzen::Result<_>>()?;
    ///     assert!(deck.try_lend::<u8>(1 << 20)?.is_none());
    ///     drop(frames);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    pub fn set_lending_limit(&self, bytes: usize) {
        self.process.set_lending_limit(bytes);
    }

    /// Bytes of memory that this process holds for lent buffers and long messages.
    #[must_use]
    pub fn arena_bytes(&self) -> usize {
        self.process.arena_bytes()
    }

    /// What was counted so far: for each link, mailbox, service and pool of this process, messages, credits that ran out, sleeps,
    /// wake-ups, copies, reruns. Counting costs nothing where time matters; reading takes locks for a moment.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     let inbox = deck.mailbox()?;
    ///     for number in 0..3u64 {
    ///         inbox.address().send(&number)?;
    ///         inbox.receive::<u64>()?;
    ///     }
    ///     let counters = deck.counters();
    ///     let link = counters.iter().find(|row| row.object == "link to rank 0" && row.name == "messages_sent");
    ///     assert_eq!(link.unwrap().value, 3);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    #[must_use]
    pub fn counters(&self) -> Vec<CounterRow> {
        self.process.counters()
    }

    /// Runs a closure on a worker of this process. There are as many workers as this process's share of
    /// the host's cores, or as `MIZZEN_WORKERS` says. While one blocks in a call of this library, another takes its place.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     let parts: Vec<_> = (0..4u64).map(|part| deck.spawn(move || part * part)).collect();
    ///     let sum = parts.into_iter().map(|part| part.join()).sum::<mizzen::Result<u64>>()?;
    ///     assert_eq!(sum, 14);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    pub fn spawn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Task<T> {
        self.process.workers().spawn(async move { work() })
    }

    /// Runs a future on the workers of this process. A task that [awaits](Mailbox::retrieve_async) a message costs no thread:
    /// idle workers look for it.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     let mut inbox = deck.mailbox()?;
    ///     let address = inbox.address();
    ///     let task = deck.spawn_async(async move {
    ///         let mut message = inbox.retrieve_async().await?;
    ///         Ok::<u64, mizzen::Error>(message.unpack_express()?)
    ///     });
    ///     address.send(&7u64)?;
    ///     assert_eq!(task.join()??, 7);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    pub fn spawn_async<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        self.process.workers().spawn(future)
    }

    /// Overlaps communication with computation on borrowed data: what is posted inside the closure goes on while the closure
    /// computes or reads, without a thread of its own, and is done when `scope` returns, whether somebody waited for it or not.
    ///
    /// If the closure panics, what is not done is taken back before the panic goes on. A message that nobody knows of yet
    /// was not posted. Who reads one that was announced gets [`UnpackError::Retracted`](crate::UnpackError::Retracted), or,
    /// on another host, does not find it any more; a body that is on the network already is waited for. Memory that was being
    /// filled holds some of its message.
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
        mizzen_core::scope(body)
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
