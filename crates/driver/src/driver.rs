//! The contract.
//!
//! This file has unsafe code because two of the trait's functions are lent the caller's memory.
#![allow(unsafe_code)]

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use crate::{
    BodyId, Caps, ConnectError, DriverError, Event, Locator, Part, PartMut, PeerId, Refused,
};

/// One process's attachment to one network. Never blocks, never spawns.
///
/// The caller owns the driver, serialises the calls, and polls it: nothing moves and no event is
/// reported other than inside a call. Between two processes there is at most one *link*.
///
/// # Contract
///
/// Each line is checked by cases of [`conformance`](mod@crate::conformance) that cite its number.
///
/// Links
///
/// 1. After `connect` returned `Ok`, exactly one of `Connected` and `ConnectFailed` is reported for the
///    peer, unless `disconnect` comes first.
/// 2. The process that was reached reports `Connected` too, unasked, with the id that the other calls
///    itself; either may send from then on. One of the two says that it dialled, the other that it did not.
/// 3. When both connect at the same time there is one link, one `Connected` at each end, and no frame
///    is lost. Still one of them dialled.
/// 4. To connect to oneself, to a peer that is connected or about to be, or to a locator that is not
///    understood is refused at once, and reports nothing.
/// 5. A connect that finds nobody, or a process that is not the peer, reports `ConnectFailed`; that
///    other process reports nothing.
///
/// Frames
///
/// 6. Frames arrive whole, once, in the order they were accepted, at the peer they were sent to.
/// 7. A frame is copied or written before `send_frame` returns. Its slices are joined in order; without
///    slices, or with empty ones only, it is an empty frame, and arrives like any other.
/// 8. A frame of `caps.max_frame` bytes is carried; a longer one is refused with `TooLong`.
/// 9. Without a link, everything is refused with `NotConnected`; an attempt under way is not a link.
///
/// Back-pressure
///
/// 10. `Busy` means that nothing of the frame was taken. One `Writable` follows when there is room, and
///     the next frame, of any length, is accepted. Without a `Busy` there is no `Writable`.
/// 11. A peer that does not take what it is sent fills its own link and no other; peers are served in
///     turn, and a busy one does not starve the others.
///
/// Bodies
///
/// 12. A body's bytes arrive in the receiver's parts in order, however either end splits it. `BodySent`
///     and `BodyReceived` are reported once each.
/// 13. `recv_body` may be called in any order; bodies are matched by id. Ids of different peers and
///     directions are independent. An id in flight is refused with `BodyInUse`, and is free again once
///     its end was reported.
/// 14. More parts, bytes or bodies than the capabilities say are refused with `TooManyParts`, `TooLong`
///     and `TooManyBodies`; up to them they are carried.
/// 15. A frame accepted before a body is reported before that body. A frame accepted after it may
///     overtake it, and does overtake a long one.
/// 16. `recv_body` comes before the peer's `send_body`: a body that was not asked for, or whose length
///     differs, costs the link. The receiver reports `Lost` with `Violation`, the sender `Lost`, and no
///     byte outside of the parts is written.
/// 17. Memory is not touched again once `BodySent`, `BodyReceived`, `BodyFailed` or `Lost` was reported
///     for it, once `disconnect` returned, or once the driver is dropped.
///
/// Loss
///
/// 18. The end of a link is reported by one `Lost`. Before it comes one `BodyFailed` for each body in
///     flight, and after it nothing of that link. As many bytes as `BodyFailed` says are in place, from the first on.
/// 19. After `disconnect` returned nothing of that link or attempt is reported. The other end reports
///     `Lost`; frames on their way may be lost. Without a link or an attempt, `disconnect` does nothing.
/// 20. Dropping a driver is disconnecting every peer.
/// 21. After a loss either end may connect again, with the same id or as another; nothing of the old link
///     is seen on the new one.
/// 22. What happens to one link leaves the others alone.
///
/// Polling
///
/// 23. `poll` hands at most `budget` events to the sink and returns how many. It never blocks.
/// 24. The wakeup descriptor, if `caps.can_sleep`, is readable while `poll` has something to do, and
///     quiet once it has done it. Calls other than `poll` may make it readable, too.
/// 25. A driver may be moved to, and used from, another thread between calls.
///
/// Bodies sent unasked, and frames sent together
///
/// 26. If `caps.can_push`, a body of `push_body` may come before its `recv_body`. It waits, and the link with
///     it: `BodyWaiting` is reported once, and then nothing of that link until `recv_body`. Without the
///     capability, `push_body` is refused with `CannotPush`.
/// 27. Frames between `gather` and `flush` may go out together; none is held back after `flush`.
pub trait Driver: Send {
    /// What this driver can do.
    fn caps(&self) -> &Caps;

    /// A descriptor that is readable while [`poll`](Driver::poll) has something to do; a thread with
    /// nothing else to do sleeps on it. It is only for waiting: never read it.
    fn wakeup(&self) -> Option<BorrowedFd<'_>>;

    /// Where other processes reach this one.
    fn locator(&self) -> &Locator;

    /// Starts to open a link to `peer`, which is reached at `at`.
    ///
    /// # Errors
    ///
    /// See line 4 of the contract.
    fn connect(&mut self, peer: PeerId, at: &Locator) -> Result<(), ConnectError>;

    /// Ends the link to `peer`, or the attempt to open one. Memory lent for its bodies is free at return.
    fn disconnect(&mut self, peer: PeerId);

    /// Sends a frame: the bytes of `frame`, joined.
    ///
    /// # Errors
    ///
    /// `Busy`, `NotConnected` or `TooLong`.
    fn send_frame(&mut self, peer: PeerId, frame: &[IoSlice<'_>]) -> Result<(), Refused>;

    /// Sends a body for which the peer has called [`recv_body`](Driver::recv_body).
    ///
    /// # Errors
    ///
    /// All but `Busy`: a body is never refused for lack of room, it waits.
    ///
    /// # Safety
    ///
    /// Non-empty `parts` stay readable, and nobody writes them, until line 17 of the contract frees them.
    unsafe fn send_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[Part],
    ) -> Result<(), Refused>;

    /// Says where a body from `peer` goes.
    ///
    /// # Errors
    ///
    /// All but `Busy`.
    ///
    /// # Safety
    ///
    /// Non-empty `parts` are initialised, overlap nothing, stay writable, and nobody else reads or writes
    /// them, until line 17 of the contract frees them.
    unsafe fn recv_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[PartMut],
    ) -> Result<(), Refused>;

    /// Sends a body that the peer may not have asked for yet. A caller that pushes more than the peer is ready to
    /// take stops the link.
    ///
    /// # Errors
    ///
    /// All but `Busy`; `CannotPush` without the capability.
    ///
    /// # Safety
    ///
    /// As for [`send_body`](Driver::send_body).
    unsafe fn push_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[Part],
    ) -> Result<(), Refused> {
        let _ = (peer, body, parts);
        Err(Refused::CannotPush)
    }

    /// The caller is about to send several frames to `peer`, or a frame and a body: they may wait for
    /// [`flush`](Driver::flush).
    fn gather(&mut self, peer: PeerId) {
        let _ = peer;
    }

    /// Ends what [`gather`](Driver::gather) began.
    fn flush(&mut self, peer: PeerId) {
        let _ = peer;
    }

    /// How `peer` is reached, in words for a user; `None` if there is nothing to say.
    fn describe(&self, peer: PeerId) -> Option<String> {
        let _ = peer;
        None
    }

    /// Moves what can be moved, hands at most `budget` events to `sink`, and returns how many.
    ///
    /// Fewer than `budget` does not mean that everything is done: the wakeup descriptor says that.
    ///
    /// # Errors
    ///
    /// When the attachment itself is unusable. Loss of a peer is an event, not an error.
    fn poll(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<usize, DriverError>;
}
