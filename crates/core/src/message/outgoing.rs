//! A message being packed.

use core::fmt;
use core::marker::PhantomData;

use mizzen_lane::{Parts, SHORT_MAX, SLOT_MAX};

use super::mark::Mark;
use super::pieces::{Entry, Flags, Kind};
use super::table::Table;
use crate::error::{PostError, Result};
use crate::few::Few;
use crate::memory::{Buffer, HandedTicket, Lease, LentBuffer, LoanTicket, Made, SPARE};
use crate::plain::{Plain, PlainBytes};

/// A message being packed, piece by piece. `'m` is how long the memory that it refers to must stay unchanged.
///
/// A message may be posted several times, to several mailboxes, and [cleared](Message::clear) to be used again.
///
/// ```
/// use mizzen::Message;
///
/// mizzen::local(1, |deck| {
///     let inbox = deck.mailbox()?;
///     let numbers = vec![1.5f64; 1000];
///     let mut message = Message::new();
///     message.pack_safer(&7u32).pack_cheaper(&numbers[..]);
///     inbox.address().post(&mut message)?;
///
///     let mut incoming = inbox.retrieve()?;
///     assert_eq!(incoming.unpack_express::<u32>()?, 7);
///     let mut copy = vec![0.0f64; 1000];
///     incoming.unpack_cheaper(&mut copy[..])?;
///     incoming.finish()?;
///     assert_eq!(copy, numbers);
///     Ok(())
/// }).unwrap();
/// ```
#[derive(Default)]
pub struct Message<'m> {
    pieces: Few<Piece<'m>>,
    /// The bytes of all copied pieces.
    copied: Vec<u8>,
    /// A piece of the runtime's own before all others.
    lead: Option<Lead>,
}

/// A piece that the runtime puts before a program's own.
pub type Lead = [u8; 16];

/// Bytes of the longest message that goes through a lane with its lead before it, and is copied out before it is unpacked. A longer one
/// stays in the lane until each piece is copied to its place.
pub(crate) const LED_MAX: usize = SPARE;

enum Piece<'m> {
    /// Bytes `start..end` of `copied`.
    Copied {
        start: usize,
        end: usize,
        kind: Kind,
    },
    Borrowed(&'m [u8]),
    Later(&'m mut [u8]),
    Lent(Box<LentPiece>),
}

/// A lent buffer of a message, and what travels in its place.
pub(crate) struct LentPiece {
    buffer: Option<Buffer>,
    ticket: [u8; HandedTicket::BYTES],
    len: usize,
}

impl LentPiece {
    fn new(buffer: Buffer) -> Self {
        let mut ticket = [0; HandedTicket::BYTES];
        let len = match &buffer {
            Buffer::Made(Made(block)) => {
                ticket[..LoanTicket::BYTES].copy_from_slice(&block.ticket().to_bytes());
                LoanTicket::BYTES
            }
            Buffer::Borrowed(Lease(held)) => {
                let (owner, next) = (held.owner, held.loan.next_ticket());
                ticket = HandedTicket {
                    owner,
                    ticket: next,
                }
                .to_bytes();
                HandedTicket::BYTES
            }
        };
        Self {
            buffer: Some(buffer),
            ticket,
            len,
        }
    }

    /// The buffer, if it was not given away.
    pub(crate) fn buffer(&mut self) -> Option<&mut Buffer> {
        self.buffer.as_mut()
    }

    /// Another buffer goes in its place.
    pub(crate) fn replace(&mut self, buffer: Buffer) {
        *self = Self::new(buffer);
    }

    /// Takes it out of the message.
    pub(crate) fn take(&mut self) -> Option<Buffer> {
        self.buffer.take()
    }

    fn ticket(&self) -> &[u8] {
        &self.ticket[..self.len]
    }
}

/// A piece packed with [`Message::pack_later`]: the key to change it through the message.
#[derive(Debug)]
pub struct Later<T: ?Sized> {
    index: usize,
    _type: PhantomData<fn() -> Box<T>>,
}

impl<'m> Message<'m> {
    /// An empty message.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            pieces: Few::new(),
            copied: Vec::new(),
            lead: None,
        }
    }

    /// Puts a piece of a service's own before all others, in the place of the last one.
    pub fn set_lead(&mut self, lead: Option<Lead>) {
        self.lead = lead;
    }

    /// Packs a copy of `data`, made now: the source may change at once.
    pub fn pack_safer<T: PlainBytes + ?Sized>(&mut self, data: &T) -> &mut Self {
        self.pack_copy(data.as_bytes())
    }

    /// Packs a reference to `data`, which stays borrowed, and so unchanged, while the message refers to it.
    pub fn pack_cheaper<T: PlainBytes + ?Sized>(&mut self, data: &'m T) -> &mut Self {
        self.pieces.push(Piece::Borrowed(data.as_bytes()));
        self
    }

    /// Packs memory that is read when the message is posted. Change it until then through [`later`](Self::later).
    ///
    /// ```
    /// use mizzen::Message;
    /// let mut counts = [0u32; 3];
    /// let mut message = Message::new();
    /// let key = message.pack_later(&mut counts);
    /// message.later(&key)[1] = 5;
    /// assert_eq!(counts, [0, 5, 0]);
    /// ```
    pub fn pack_later<T: Plain + ?Sized>(&mut self, data: &'m mut T) -> Later<T> {
        let index = self.pieces.len();
        self.pieces.push(Piece::Later(data.as_mut_bytes()));
        Later {
            index,
            _type: PhantomData,
        }
    }

    /// The memory of a piece packed with [`pack_later`](Self::pack_later), to be changed before posting.
    ///
    /// # Panics
    ///
    /// If the key belongs to another message, or to this one before it was cleared.
    pub fn later<T: Plain + ?Sized>(&mut self, key: &Later<T>) -> &mut T {
        let Some(Piece::Later(bytes)) = self.pieces.get_mut(key.index) else {
            panic!("the key does not belong to this message");
        };
        let Ok(data) = T::mut_from_bytes(bytes) else {
            panic!("the key does not belong to this message");
        };
        data
    }

    /// Packs a lent buffer, which moves with the message: nothing is copied on one host. A [`Borrowed`](crate::Borrowed) one is
    /// handed on.
    pub fn pack_lent(&mut self, buffer: impl LentBuffer) -> &mut Self {
        self.pack_buffer(buffer.into_buffer())
    }

    /// The same, whatever its values are, for services.
    pub fn pack_buffer(&mut self, buffer: Buffer) -> &mut Self {
        self.pieces
            .push(Piece::Lent(Box::new(LentPiece::new(buffer))));
        self
    }

    /// Packs any serde value.
    ///
    /// # Errors
    ///
    /// [`Encode`](crate::PostError::Encode) if the value cannot be serialised.
    pub fn pack_value<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> Result<&mut Self> {
        let start = self.copied.len();
        let copied = core::mem::take(&mut self.copied);
        self.copied = postcard::to_extend(value, copied).map_err(PostError::encode)?;
        self.pieces.push(Piece::Copied {
            start,
            end: self.copied.len(),
            kind: Kind::Value,
        });
        Ok(self)
    }

    /// Packs a copy of a whole message as one piece. It must not have lent buffers.
    ///
    /// # Errors
    ///
    /// [`LentTwice`](crate::PostError::LentTwice) if it has lent pieces.
    pub fn pack_message(&mut self, message: &Message<'_>) -> Result<&mut Self> {
        if message.has_lent() {
            return Err(PostError::LentTwice.into());
        }
        let start = self.copied.len();
        let wire = message.wire();
        self.copied.push(wire.flags().0 as u8);
        wire.each(|part| self.copied.extend_from_slice(part));
        self.pieces.push(Piece::Copied {
            start,
            end: self.copied.len(),
            kind: Kind::Plain,
        });
        Ok(self)
    }

    /// Empties the message, keeping its memory for the next use. What it referred to stays borrowed for as long as the message
    /// exists; lent buffers that were not posted go back to the arena.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.copied.clear();
    }

    /// Gives back memory that is not needed: the message will wait.
    pub(crate) fn shrink(&mut self) {
        self.pieces.shrink_to_fit();
        self.copied.shrink_to_fit();
    }

    /// Bytes of all pieces, with those of lent buffers.
    pub(crate) fn all_bytes(&self) -> usize {
        let len = |piece: &Piece<'m>| match piece {
            Piece::Lent(lent) if lent.buffer.is_some() => lent
                .buffer
                .as_ref()
                .map_or(0, |buffer| buffer.as_bytes().len()),
            piece => self.bytes_of(piece).len(),
        };
        self.pieces.iter().map(len).sum()
    }

    /// Number of pieces.
    #[must_use]
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    pub(crate) fn has_lent(&self) -> bool {
        let mut has_lent = false;
        self.pieces
            .each(|piece| has_lent |= matches!(piece, Piece::Lent(_)));
        has_lent
    }

    /// The lent pieces, whether their buffers are still here or not.
    pub(crate) fn lent_pieces(&mut self) -> impl Iterator<Item = &mut LentPiece> {
        self.pieces.iter_mut().filter_map(|piece| match piece {
            Piece::Lent(lent) => Some(&mut **lent),
            _ => None,
        })
    }

    /// The message as it travels.
    pub(crate) fn wire(&self) -> WireMessage<'_, 'm> {
        self.wire_with(self.lead.as_ref(), Flags::default())
    }

    /// The same in a lane of a sender, where a lead comes before everything else: so it is read without a table.
    pub(crate) fn wire_in_lane(&self) -> WireMessage<'_, 'm> {
        let flags = self.lead.map_or(Flags::default(), |_| Flags::LED);
        self.wire_with(None, flags)
    }

    /// With this lead as the first of its pieces.
    fn wire_with(&self, lead: Option<&Lead>, mut flags: Flags) -> WireMessage<'_, 'm> {
        let mut table = Table::new();
        let only = self.pieces.only().map(Piece::kind);
        let single = only.filter(|kind| lead.is_none() && *kind != Kind::Lent);
        match single {
            Some(Kind::Value) => flags = flags.with(Flags::SINGLE).with(Flags::VALUE),
            Some(_) => flags = flags.with(Flags::SINGLE),
            None => self.begin_table(lead, &mut table),
        }
        let mut len = self.lead_bytes().len();
        self.pieces.each(|piece| {
            let (bytes, kind) = (self.bytes_of(piece).len(), piece.kind());
            len += bytes;
            if kind == Kind::Lent {
                flags = flags.with(Flags::LENT);
            }
            if single.is_none() {
                let len = bytes as u64;
                table.push_entry(Entry { len, kind });
            }
        });
        let len = len + table.bytes().len();
        WireMessage {
            message: self,
            table,
            flags,
            len,
        }
    }

    /// The message as it travels over a network.
    ///
    /// # Errors
    ///
    /// [`LentTwice`](crate::PostError::LentTwice) if a lent buffer was given away before.
    pub(crate) fn foreign(&self) -> Result<ForeignMessage<'_>, PostError> {
        let wire = self.wire();
        let mut pieces = Vec::with_capacity(self.pieces.len());
        let mut table = Table::new();
        self.begin_table(self.lead.as_ref(), &mut table);
        pieces.extend(self.lead.as_ref().map(|lead| &lead[..]));
        for piece in &self.pieces {
            let bytes = match piece {
                Piece::Lent(lent) => {
                    let buffer = lent.buffer.as_ref().ok_or(PostError::LentTwice)?;
                    buffer.as_bytes()
                }
                piece => self.bytes_of(piece),
            };
            let (len, kind) = (bytes.len() as u64, piece.kind());
            table.push_entry(Entry { len, kind });
            pieces.push(bytes);
        }
        let table = match wire.flags.has(Flags::SINGLE) {
            true => Vec::new(),
            false => table.into_vec(),
        };
        Ok(ForeignMessage {
            flags: wire.flags,
            table,
            pieces,
        })
    }

    /// Gives lent buffers back to whom they belong: their bytes were sent.
    pub(crate) fn drop_lent(&mut self) {
        for piece in self.lent_pieces() {
            drop(piece.take());
        }
    }

    /// The number of pieces, and the entry of the one before them.
    fn begin_table(&self, lead: Option<&Lead>, table: &mut Table) {
        let before = usize::from(lead.is_some());
        table.push_count(before + self.pieces.len());
        if let Some(lead) = lead {
            let (len, kind) = (lead.len() as u64, Kind::Plain);
            table.push_entry(Entry { len, kind });
        }
    }

    fn lead_bytes(&self) -> &[u8] {
        self.lead.as_ref().map_or(&[], |lead| &lead[..])
    }

    pub(crate) fn pack_copy(&mut self, bytes: &[u8]) -> &mut Self {
        let start = self.copied.len();
        self.copied.extend_from_slice(bytes);
        self.pieces.push(Piece::Copied {
            start,
            end: self.copied.len(),
            kind: Kind::Plain,
        });
        self
    }

    fn bytes_of<'a>(&'a self, piece: &'a Piece<'m>) -> &'a [u8] {
        match piece {
            Piece::Copied { start, end, .. } => &self.copied[*start..*end],
            Piece::Borrowed(bytes) => bytes,
            Piece::Later(bytes) => bytes,
            Piece::Lent(lent) => lent.ticket(),
        }
    }
}

impl Piece<'_> {
    fn kind(&self) -> Kind {
        match self {
            Self::Copied { kind, .. } => *kind,
            Self::Borrowed(_) | Self::Later(_) => Kind::Plain,
            Self::Lent(_) => Kind::Lent,
        }
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<_> = self
            .pieces
            .iter()
            .map(|piece| self.bytes_of(piece).len())
            .collect();
        f.debug_struct("Message").field("pieces", &lengths).finish()
    }
}

/// What the paths need to know of a message: its flags and its bytes in parts.
pub(crate) trait Encoded: Parts {
    fn flags(&self) -> Flags;

    /// All bytes, if they lie in one place that stays as it is while this value is borrowed.
    fn sole(&self) -> Option<&[u8]> {
        None
    }

    /// Calls `send` with the bytes joined, if they are at most `max` and fit a short message. Always inlined: what `send` returns would
    /// otherwise be copied through memory right behind its stores to another core's line, and wait for them.
    #[inline(always)]
    fn with_short<T>(&self, max: usize, send: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let len = self.len();
        if len > max.min(SHORT_MAX) {
            return None;
        }
        // Most are no longer than a slot, and there is less to clear then.
        let (one, two);
        let bytes = if len <= SLOT_MAX {
            one = self.joined::<SLOT_MAX>();
            &one[..len]
        } else {
            two = self.joined::<SHORT_MAX>();
            &two[..len]
        };
        Some(send(bytes))
    }

    /// The bytes joined, and zeroes behind them. They are at most `N`.
    #[inline(always)]
    fn joined<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        let mut at = 0;
        self.each(|part| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        });
        bytes
    }
}

/// A message of one plain piece, without a table.
#[derive(Clone, Copy)]
pub(crate) struct Single<'a>(pub(crate) &'a [u8], pub(crate) Mark);

impl Parts for Single<'_> {
    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn each(&self, mut take: impl FnMut(&[u8])) {
        take(self.0);
    }
}

impl Encoded for Single<'_> {
    #[inline]
    fn flags(&self) -> Flags {
        self.1.single()
    }

    fn sole(&self) -> Option<&[u8]> {
        Some(self.0)
    }

    #[inline(always)]
    fn with_short<T>(&self, max: usize, send: impl FnOnce(&[u8]) -> T) -> Option<T> {
        (self.0.len() <= max).then(|| send(self.0))
    }
}

/// A message as it goes over a network: lent pieces are their bytes.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) flags: Flags,
    pub(crate) table: &'a [u8],
    pub(crate) pieces: &'a [&'a [u8]],
}

impl<'a> Outgoing<'a> {
    /// A message of one plain piece.
    pub(crate) fn single(piece: &'a [&'a [u8]; 1], mark: Mark) -> Self {
        Self {
            flags: mark.single(),
            table: &[],
            pieces: piece,
        }
    }
}

/// A packed message as it travels over a network, with the memory of its table.
pub(crate) struct ForeignMessage<'a> {
    flags: Flags,
    table: Vec<u8>,
    pieces: Vec<&'a [u8]>,
}

impl ForeignMessage<'_> {
    /// The memory of the table, at the same address.
    pub(crate) fn into_table(self) -> Vec<u8> {
        self.table
    }

    pub(crate) fn outgoing(&self) -> Outgoing<'_> {
        Outgoing {
            flags: self.flags,
            table: &self.table,
            pieces: &self.pieces,
        }
    }
}

/// A packed message as it travels: table, then the pieces. A lead is the first of these, or before the table.
pub(crate) struct WireMessage<'a, 'm> {
    message: &'a Message<'m>,
    table: Table,
    flags: Flags,
    len: usize,
}

impl Parts for WireMessage<'_, '_> {
    fn len(&self) -> usize {
        self.len
    }

    fn each(&self, mut take: impl FnMut(&[u8])) {
        let (table, lead) = (self.table.bytes(), self.message.lead_bytes());
        let parts = if self.flags.has(Flags::LED) {
            [lead, table]
        } else {
            [table, lead]
        };
        parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .for_each(&mut take);
        let pieces = &self.message.pieces;
        pieces.each(|piece| take(self.message.bytes_of(piece)));
    }
}

impl Encoded for WireMessage<'_, '_> {
    fn flags(&self) -> Flags {
        self.flags
    }
}
