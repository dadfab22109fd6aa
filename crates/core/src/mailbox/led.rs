//! A message that came through a lane with its lead before it: copied out whole, and opened when somebody wants its pieces.

use core::fmt;
use std::sync::Arc;

use crate::incoming::Incoming;
use crate::memory::Spare;
use crate::message::Flags;
use crate::process::Process;
use crate::rank::{ProcessId, Rank};

/// What was behind the lead of a message, in memory that the thread uses again when this is dropped.
pub struct Led {
    source: ProcessId,
    flags: Flags,
    spare: Spare,
}

impl Led {
    pub(super) fn new(source: ProcessId, flags: Flags, spare: Spare) -> Self {
        Self {
            source,
            flags: flags.without(Flags::LED),
            spare,
        }
    }

    /// The process that sent it.
    #[must_use]
    pub fn source(&self) -> ProcessId {
        self.source
    }

    /// Its bytes, if they are a single piece.
    #[must_use]
    pub fn single(&self) -> Option<&[u8]> {
        self.flags.has(Flags::SINGLE).then(|| self.spare.bytes())
    }

    /// It will be kept for long, and takes no more memory than it needs from now on.
    #[must_use]
    pub fn tightened(mut self) -> Self {
        self.spare.tighten();
        self
    }

    /// The message without its lead. If its sender broke the format, whoever unpacks a piece is told so.
    #[inline(always)]
    pub fn open<'m>(self, process: &Arc<Process>) -> Incoming<'m> {
        Incoming::of_spare(Arc::clone(process), self.source, self.flags, self.spare)
    }
}

impl fmt::Debug for Led {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank: Rank = self.source.rank;
        f.debug_struct("Led")
            .field("source", &rank)
            .field("bytes", &self.spare.bytes().len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Led;
    use crate::error::{Error, UnpackError};
    use crate::memory::Spare;
    use crate::message::Flags;

    #[test]
    fn a_message_behind_a_lead_that_is_nonsense_is_malformed_when_it_is_unpacked() {
        crate::local(1, |endpoint| {
            for table in [
                &[][..],
                &[0xff; 11],
                &[1],
                &[1, 40],
                &[2, 4, 7, 0],
                &[200, 200, 200],
            ] {
                let mut spare = Spare::take();
                spare.as_mut()[..table.len()].copy_from_slice(table);
                spare.set_len(table.len());
                let source = endpoint.id();
                let mut incoming = Led::new(source, Flags::LED, spare).open(&endpoint);
                let is_malformed = |found: Result<(), Error>| {
                    matches!(found, Err(Error::Unpack(UnpackError::Malformed)))
                };
                assert!(is_malformed(incoming.unpack_express::<u64>().map(drop)));
                assert!(is_malformed(incoming.skip()));
                assert!(is_malformed(incoming.reset()));
                assert_eq!(incoming.next_len(), None);
                assert!(incoming.finish().is_ok(), "nothing was to be filled");
            }
            Ok(())
        })
        .unwrap();
    }
}
