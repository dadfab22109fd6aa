//! A message being unpacked.

use core::fmt;
use std::sync::Arc;

use zerocopy::IntoBytes;

use crate::error::{Error, UnpackError};
use crate::few::Few;
use crate::link::{MemoryLink, Stream};
use crate::memory::{Borrowed, Holding, LoanTicket, Spare};
use crate::message::{
    AnyTicket, Entry, Flags, Kind, MAX_PIECES, Mark, Payload, Table, VARINT_MAX, any_ticket_at,
    form, is_ticket_len, read_varint, ticket_at,
};
use crate::plain::Plain;
use crate::process::Process;
use crate::rank::{ProcessId, Rank};
use crate::values::decode;

/// Entries of the table that are read only once.
const KNOWN: usize = 3;
/// Bytes in which the tables of most messages are: so many entries of any length, and their number.
const FRONT: usize = (KNOWN + 1) * VARINT_MAX;

/// A received message, unpacked piece by piece in the order in which it was packed.
///
/// `'m` is the memory that [`unpack_cheaper`](Self::unpack_cheaper) was told to fill; it is readable again after
/// [`finish`](Self::finish).
pub struct Incoming<'m> {
    source: ProcessId,
    pub(crate) process: Arc<Process>,
    pub(crate) flags: Flags,
    pub(super) payload: Payload,
    /// The first entries of the table as they were when it was checked.
    known: [u64; KNOWN],
    /// How many bytes of it each is, which its sender chose.
    known_lens: [u8; KNOWN],
    /// How many entries there are.
    count: usize,
    /// The next entry of the table, or its end.
    table_at: usize,
    /// Pieces not unpacked yet.
    left: usize,
    /// Where the next piece begins.
    data_at: usize,
    /// Cheaper pieces: where they are and where they shall go.
    pub(super) pending: Few<(usize, &'m mut [u8])>,
    /// Lent pieces not unpacked yet, by where they lie. Dropping them gives them back.
    pub(super) lent: Vec<(usize, Option<Holding>)>,
}

// Up to so many bytes are moved without a loop, and messages are moved often.
const _: () = assert!(size_of::<Incoming<'static>>() <= 256);

impl<'m> Incoming<'m> {
    /// A message that came from `source`.
    ///
    /// # Errors
    ///
    /// If its table or a descriptor makes no sense.
    pub(crate) fn open(
        process: Arc<Process>,
        source: ProcessId,
        flags: Flags,
        payload: Payload,
        lender: Option<&Arc<MemoryLink>>,
    ) -> Result<Self, UnpackError> {
        if flags.has(Flags::LED) {
            // Only services send leads, and those they are for open them otherwise.
            return Err(UnpackError::Malformed);
        }
        let (flags, payload) = match lender {
            Some(_) if flags.has(Flags::HANDED) => {
                let bytes = with_table(&payload).ok_or(UnpackError::Malformed)?;
                (Flags::LENT, Payload::Owned(bytes))
            }
            Some(lender) if flags.has(Flags::STREAM) => {
                let ticket = ticket_at(&payload, 0).ok_or(UnpackError::Malformed)?;
                let stream = Stream::open(lender, ticket)?;
                (
                    flags.without(Flags::STREAM),
                    Payload::Stream(Box::new(stream)),
                )
            }
            Some(lender) if flags.has(Flags::LONG) => {
                let ticket = ticket_at(&payload, 0).ok_or(UnpackError::Malformed)?;
                (
                    flags.without(Flags::LONG),
                    Payload::Block(Box::new(lender.borrow_block(ticket)?)),
                )
            }
            _ => (flags, payload),
        };
        let mut incoming = Self::new(process, source, flags, payload);
        incoming.arrive_table()?;
        incoming.read_table()?;
        if let Some(lender) = lender.filter(|_| flags.has(Flags::LENT)) {
            incoming.collect_lent(lender)?;
        }
        Ok(incoming)
    }

    /// A message that is all here, in memory of our own. If its table makes no sense, whoever unpacks a piece is told so. Always inlined:
    /// a message is long, and to move it just after it was written takes as long as all the rest.
    #[inline(always)]
    pub(crate) fn of_spare(
        process: Arc<Process>,
        source: ProcessId,
        flags: Flags,
        spare: Spare,
    ) -> Self {
        let mut incoming = Self::new(process, source, flags, Payload::Spare(spare));
        if incoming.read_table().is_err() {
            // Its entry is read from the table, which is empty.
            (incoming.flags, incoming.payload) = (Flags::default(), Payload::Owned(Vec::new()));
            (incoming.count, incoming.left) = (KNOWN + 1, 1);
        }
        incoming
    }

    #[inline(always)]
    fn new(process: Arc<Process>, source: ProcessId, flags: Flags, payload: Payload) -> Self {
        Self {
            source,
            process,
            flags,
            payload,
            known: [0; KNOWN],
            known_lens: [0; KNOWN],
            count: 0,
            table_at: 0,
            left: 0,
            data_at: 0,
            pending: Few::new(),
            lent: Vec::new(),
        }
    }

    /// The process that sent the message.
    #[must_use]
    pub fn source(&self) -> Rank {
        self.source.rank
    }

    /// Number of pieces not unpacked yet.
    #[must_use]
    pub fn pieces_left(&self) -> usize {
        self.left
    }

    /// Length in bytes of the next piece.
    #[must_use]
    pub fn next_len(&self) -> Option<usize> {
        self.peek().ok().map(|(entry, _)| entry.len as usize)
    }

    /// Unpacks one plain value, at once: for what decides how to go on.
    ///
    /// # Errors
    ///
    /// [`UnpackError`] if there is no piece left, it has another length, or it is a serde value.
    pub fn unpack_express<T: Plain>(&mut self) -> Result<T, Error> {
        let at = self.plain_of::<T>(size_of::<T>())?;
        let mut value = T::new_zeroed();
        self.copy(at, value.as_mut_bytes())?;
        if self.flags.is_unlike() {
            form::put_right::<T>(self.flags, value.as_mut_bytes());
        }
        Ok(value)
    }

    /// Unpacks plain values into `target`, at once.
    ///
    /// # Errors
    ///
    /// As [`unpack_express`](Self::unpack_express).
    pub fn unpack_express_into<T: Plain + ?Sized>(&mut self, target: &mut T) -> Result<(), Error> {
        let target = target.as_mut_bytes();
        let at = self.plain_of::<T>(target.len())?;
        self.copy(at, target)?;
        if self.flags.is_unlike() {
            form::put_right::<T>(self.flags, target);
        }
        Ok(())
    }

    /// Unpacks a piece of any number of plain values.
    ///
    /// # Errors
    ///
    /// [`UnpackError`] if there is no piece left, or its length is not a multiple of a value's.
    pub fn unpack_vec<T: Plain>(&mut self) -> Result<Vec<T>, Error> {
        let (entry, _) = self.peek()?;
        let (len, size) = (entry.len as usize, size_of::<T>());
        check_plain(entry)?;
        if size == 0 || len % size != 0 {
            return Err(UnpackError::Length {
                expected: size,
                found: len,
            }
            .into());
        }
        let at = self.plain_of::<T>(len)?;
        let mut values = self.copy_values::<T>(at, len / size)?;
        if self.flags.is_unlike() {
            form::put_right::<T>(self.flags, values.as_mut_bytes());
        }
        Ok(values)
    }

    /// Says where the next piece is to go. It is there after [`finish`](Self::finish), not before: until then `target` cannot
    /// be read. From a host with another order of bytes it comes at once, because it has to be put right.
    ///
    /// # Errors
    ///
    /// As [`unpack_express`](Self::unpack_express).
    pub fn unpack_cheaper<T: Plain + ?Sized>(&mut self, target: &'m mut T) -> Result<(), Error> {
        if self.flags.is_unlike() {
            return self.unpack_express_into(target);
        }
        let target = target.as_mut_bytes();
        let at = self.plain_of::<T>(target.len())?;
        self.pending.push((at, target));
        Ok(())
    }

    /// Unpacks a lent buffer: read in place, given back when dropped.
    ///
    /// # Errors
    ///
    /// [`UnpackError`] if the next piece is not lent or does not hold whole values of `T`.
    pub fn unpack_lent<T: Plain>(&mut self) -> Result<Borrowed<T>, Error> {
        let (entry, used) = self.peek()?;
        if !entry.is_lent() {
            return Err(UnpackError::NotLent.into());
        }
        form::check::<T>(self.flags)?;
        let at = self.data_at;
        let buffer = if self.flags.has(Flags::FOREIGN) {
            self.take_foreign(at, entry.len as usize, form::put_right::<T>)?
        } else {
            self.take_lent(at).ok_or(UnpackError::NotLent)?
        };
        self.step(entry, used);
        Ok(Borrowed::new(buffer)?)
    }

    /// Unpacks any serde value.
    ///
    /// # Errors
    ///
    /// [`UnpackError::Decode`] if the bytes are not a `T`; [`UnpackError::NotAValue`] if they are plain data.
    pub fn unpack_value<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, Error> {
        if self.peek()?.0.kind == Kind::Plain {
            return Err(UnpackError::NotAValue.into());
        }
        self.unpack_encoded()
    }

    /// Unpacks a value of which only its bytes were packed, as services do.
    ///
    /// # Errors
    ///
    /// [`UnpackError::Decode`] if the bytes are not a `T`.
    pub fn unpack_encoded<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, Error> {
        Ok(self.with_piece(decode)?)
    }

    /// Unpacks a message that was packed into this one.
    ///
    /// # Errors
    ///
    /// [`UnpackError`] if the piece is not a message.
    pub fn unpack_message(&mut self) -> Result<Incoming<'static>, Error> {
        let (process, source) = (Arc::clone(&self.process), self.source);
        let unlike = self.flags.unlike();
        let bytes = self.with_piece(|_, bytes| Ok(bytes.to_vec()))?;
        let (flags, rest) = bytes.split_first().ok_or(UnpackError::NotAMessage)?;
        let flags = Flags(u16::from(*flags));
        if flags.without(Flags::SINGLE.with(Flags::VALUE)) != Flags::default() {
            return Err(UnpackError::NotAMessage.into());
        }
        let payload = Payload::Owned(rest.to_vec());
        let flags = flags.with(unlike);
        Ok(Incoming::open(process, source, flags, payload, None)?)
    }

    /// Skips the next piece.
    ///
    /// # Errors
    ///
    /// [`UnpackError::NoPiece`] if there is none.
    pub fn skip(&mut self) -> Result<(), Error> {
        let (entry, used) = self.peek()?;
        self.step(entry, used);
        Ok(())
    }

    /// Starts again from the first piece. Lent pieces that have been unpacked do not come back.
    ///
    /// # Errors
    ///
    /// [`UnpackError::Spent`] if pieces were unpacked, and the message is longer than what its sender may have unread here
    /// (64 MiB).
    pub fn reset(&mut self) -> Result<(), Error> {
        self.check_unspent()?;
        Ok(self.read_table()?)
    }

    /// Fills the memory of all [`unpack_cheaper`](Self::unpack_cheaper) calls and ends the message.
    ///
    /// # Errors
    ///
    /// [`UnpackError`] if the sender was lost before all of it came.
    #[inline]
    pub fn finish(mut self) -> Result<(), Error> {
        let payload = &self.payload;
        if let Payload::Offered(_) | Payload::Stream(_) = payload {
            return self.finish_coming();
        }
        self.pending
            .each_mut(|(at, target)| payload.copy_out(*at, target));
        Ok(())
    }

    #[inline(never)]
    fn finish_coming(self) -> Result<(), Error> {
        match self.payload {
            Payload::Offered(_) => Ok(self.finish_offered()?),
            _ => Ok(self.finish_stream()?),
        }
    }

    /// A copy of the message that holds nothing of the sender's memory, except for lent pieces: lanes and blocks are free
    /// again. Use it to keep a message for a long time.
    ///
    /// # Errors
    ///
    /// [`UnpackError::PeerGone`] if the rest of the message did not come; [`UnpackError::Pending`] if cheaper pieces wait for
    /// [`finish`](Self::finish).
    pub fn detach(mut self) -> Result<Incoming<'static>, Error> {
        if !self.pending.is_empty() {
            return Err(UnpackError::Pending.into());
        }
        let payload = self.detach_payload()?;
        Ok(Incoming {
            payload,
            pending: Few::new(),
            ..self
        })
    }

    /// Bytes of the pieces that have been told where to go.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending.iter().map(|(_, target)| target.len()).sum()
    }

    /// The same message, of which no piece has been told where to go.
    pub(super) fn without_pending(self) -> Incoming<'static> {
        Incoming {
            pending: Few::new(),
            ..self
        }
    }

    /// Whether all of its bytes are here.
    pub(super) fn is_all_here(&self) -> bool {
        self.payload.here() == self.payload.len()
    }

    /// Where the next piece begins.
    pub(super) fn data_at(&self) -> usize {
        self.data_at
    }

    /// Where the next piece begins, if it is plain values of `T` and `len` bytes long; steps over it.
    #[inline]
    fn plain_of<T: ?Sized>(&mut self, len: usize) -> Result<usize, UnpackError> {
        let (entry, used) = self.peek()?;
        check_plain(entry)?;
        // Another length says more than another number.
        if entry.len == len as u64 {
            Mark::of::<T>().check(self.flags)?;
            if self.flags.is_unlike() {
                form::check::<T>(self.flags)?;
            }
        }
        self.pass_over(entry, used, len)
    }

    /// Where the next piece begins, if it is not lent and `len` bytes long; steps over it.
    #[inline]
    fn piece_of(&mut self, len: usize) -> Result<usize, UnpackError> {
        let (entry, used) = self.peek()?;
        if entry.is_lent() {
            return Err(UnpackError::Lent);
        }
        self.pass_over(entry, used, len)
    }

    /// Steps over the next piece if it is `len` bytes long: where it begins.
    #[inline]
    fn pass_over(&mut self, entry: Entry, used: usize, len: usize) -> Result<usize, UnpackError> {
        if entry.len != len as u64 {
            return Err(UnpackError::Length {
                expected: len,
                found: entry.len as usize,
            });
        }
        let at = self.data_at;
        // The table was checked, but it may lie in memory that its sender can still change.
        if at
            .checked_add(len)
            .is_none_or(|end| end > self.payload.len())
        {
            return Err(UnpackError::Malformed);
        }
        self.step(entry, used);
        Ok(at)
    }

    /// Gives the process and the next piece's bytes to `read`, which may check and then use them: they cannot change meanwhile.
    pub(crate) fn with_piece<T>(
        &mut self,
        read: impl FnOnce(&Arc<Process>, &[u8]) -> Result<T, UnpackError>,
    ) -> Result<T, UnpackError> {
        let (entry, _) = self.peek()?;
        let len = entry.len as usize;
        let at = self.piece_of(len)?;
        self.arrive(at, len)?;
        match self.payload.in_place() {
            Some(bytes) => read(&self.process, &bytes[at..at + len]),
            None => {
                let copy: Vec<u8> = self.copy_values(at, len)?;
                read(&self.process, &copy)
            }
        }
    }

    /// The next entry of the table and its length in the table.
    #[inline]
    fn peek(&self) -> Result<(Entry, usize), UnpackError> {
        if self.left == 0 {
            return Err(UnpackError::NoPiece);
        }
        if self.flags.has(Flags::SINGLE) {
            return Ok((
                Entry {
                    len: self.payload.len() as u64,
                    kind: if self.flags.has(Flags::VALUE) {
                        Kind::Value
                    } else {
                        Kind::Plain
                    },
                },
                0,
            ));
        }
        let index = self.count - self.left;
        let known = self.known.get(index).zip(self.known_lens.get(index));
        let entry = match known {
            Some((value, used)) => Entry::decode(*value).map(|entry| (entry, usize::from(*used))),
            None => self.entry_at(self.table_at),
        };
        entry.ok_or(UnpackError::Malformed)
    }

    #[inline]
    fn step(&mut self, entry: Entry, used: usize) {
        self.left -= 1;
        self.table_at += used;
        self.data_at = self.data_at.saturating_add(entry.len as usize);
    }

    fn entry_at(&self, at: usize) -> Option<(Entry, usize)> {
        if let Some(here) = self.payload.in_place() {
            return Entry::read(here.get(at..)?);
        }
        let (bytes, len) = self.window(at);
        Entry::read(&bytes[..len])
    }

    /// Waits for what `window` will look at, if it comes by and by.
    #[inline]
    fn arrive_window(&mut self, at: usize) -> Result<(), UnpackError> {
        match &mut self.payload {
            Payload::Stream(stream) => stream.arrive_table((at + VARINT_MAX).min(stream.len())),
            _ => Ok(()),
        }
    }

    /// Up to ten bytes of the payload from `at` on: enough for one integer of the table.
    fn window(&self, at: usize) -> ([u8; VARINT_MAX], usize) {
        let mut bytes = [0; VARINT_MAX];
        let len = self.payload.here().saturating_sub(at).min(bytes.len());
        self.payload.copy_out(at, &mut bytes[..len]);
        (bytes, len)
    }

    /// Reads and checks the whole table: afterwards every piece lies inside the payload.
    fn read_table(&mut self) -> Result<(), UnpackError> {
        if self.flags.has(Flags::SINGLE) {
            (self.table_at, self.data_at) = (0, 0);
            (self.count, self.left) = (1, 1);
            return Ok(());
        }
        self.arrive_window(0)?;
        // One copy has the tables of most messages.
        let mut front = [0; FRONT];
        let len = self.payload.here().min(FRONT);
        self.payload.copy_out(0, &mut front[..len]);
        let (count, used) = read_varint(&front[..len]).ok_or(UnpackError::Malformed)?;
        if count > MAX_PIECES as u64 {
            return Err(UnpackError::Malformed);
        }
        let (mut at, mut total) = (used, 0u64);
        for index in 0..count as usize {
            let found = front[..len].get(at..).and_then(read_varint);
            let (value, used) = match found {
                Some(found) => found,
                None => {
                    self.arrive_window(at)?;
                    let (bytes, len) = self.window(at);
                    read_varint(&bytes[..len]).ok_or(UnpackError::Malformed)?
                }
            };
            if let Some(known) = self.known.get_mut(index) {
                *known = value;
                self.known_lens[index] = used as u8;
            }
            let entry = Entry::decode(value).ok_or(UnpackError::Malformed)?;
            let is_ticket = !self.flags.has(Flags::FOREIGN);
            if entry.is_lent() && is_ticket && !is_ticket_len(entry.len) {
                return Err(UnpackError::Malformed);
            }
            at += used;
            total = total.checked_add(entry.len).ok_or(UnpackError::Malformed)?;
        }
        if (at as u64).checked_add(total) != Some(self.payload.len() as u64) {
            return Err(UnpackError::Malformed);
        }
        (self.table_at, self.data_at) = (used, at);
        (self.count, self.left) = (count as usize, count as usize);
        Ok(())
    }

    /// Claims all lent pieces, so that dropping the message gives them back.
    fn collect_lent(&mut self, lender: &MemoryLink) -> Result<(), UnpackError> {
        let mut taken = Ok(());
        for (at, len) in self.lent_places() {
            let ticket = any_ticket_at(&self.payload, at, len);
            let held = match ticket.ok_or(UnpackError::Malformed)? {
                AnyTicket::Own(ticket) => lender.borrow(ticket),
                // From its owner itself: that may be gone, and its link is here.
                AnyTicket::Handed(handed)
                    if handed.owner == lender.peer && handed.owner != self.process.id =>
                {
                    lender.take_over(handed.ticket)
                }
                AnyTicket::Handed(handed) => self.process.take_over(handed),
            };
            // The others are taken all the same: dropping the message gives them back.
            match held {
                Ok(held) => self.lent.push((at, Some(held))),
                Err(error) => taken = taken.and(Err(error)),
            }
        }
        taken
    }

    /// The lent buffer of the piece at `at`, if it was not unpacked before.
    pub(super) fn take_lent(&mut self, at: usize) -> Option<Holding> {
        let index = self.lent.binary_search_by_key(&at, |(place, _)| *place);
        self.lent[index.ok()?].1.take()
    }

    /// Where lent pieces not unpacked yet begin, and how long they are.
    fn lent_places(&self) -> Vec<(usize, u64)> {
        let lent = |(at, entry): (usize, Entry)| entry.is_lent().then_some((at, entry.len));
        self.rest().into_iter().filter_map(lent).collect()
    }

    /// The pieces not unpacked yet, and where each begins.
    pub(super) fn rest(&self) -> Vec<(usize, Entry)> {
        let (mut table_at, mut data_at) = (self.table_at, self.data_at);
        let mut pieces = Vec::new();
        for _ in 0..self.left {
            let Some((entry, used)) = self.entry_at(table_at) else {
                break;
            };
            pieces.push((data_at, entry));
            table_at += used;
            data_at = data_at.saturating_add(entry.len as usize);
        }
        pieces
    }
}

impl fmt::Debug for Incoming<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("source", &self.source)
            .field("bytes", &self.payload.len())
            .field("pieces_left", &self.left)
            .finish()
    }
}

/// Plain data is asked for.
#[inline]
fn check_plain(entry: Entry) -> Result<(), UnpackError> {
    match entry.kind {
        Kind::Plain => Ok(()),
        Kind::Lent => Err(UnpackError::Lent),
        Kind::Value => Err(UnpackError::NotPlain),
    }
}

/// The bytes of a message of a header and a lent buffer, as any other with these two pieces has them.
fn with_table(handed: &Payload) -> Option<Vec<u8>> {
    let header = handed.len().checked_sub(LoanTicket::BYTES)?;
    let mut table = Table::new();
    table.push_count(2);
    for (len, kind) in [(header, Kind::Plain), (LoanTicket::BYTES, Kind::Lent)] {
        let len = len as u64;
        table.push_entry(Entry { len, kind });
    }
    let mut bytes = table.into_vec();
    let at = bytes.len();
    bytes.resize(at + handed.len(), 0);
    handed.copy_out(LoanTicket::BYTES, &mut bytes[at..at + header]);
    handed.copy_out(0, &mut bytes[at + header..]);
    Some(bytes)
}
