//! What a driver can do: the numbers that the layer above plans with.

/// The capabilities of one driver; they do not change during its life.
///
/// Each field is read by one decision of the layer above and verified by one conformance case.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caps {
    /// The longest frame, in bytes. Decides what goes eagerly and what goes as a body.
    pub max_frame: usize,
    /// The longest body, in bytes. Decides where a long message is cut into several bodies.
    pub max_body: usize,
    /// The most parts of one body. Decides when scattered memory is packed before it is sent.
    pub max_parts: usize,
    /// The most bodies in flight with one peer, in each direction. Decides how many transfers are
    /// granted at once.
    pub max_bodies: usize,
    /// Whether [`Driver::wakeup`](crate::Driver::wakeup) gives a descriptor. Decides whether a
    /// thread with nothing to do may sleep, or has to keep polling.
    pub can_sleep: bool,
    /// Whether [`Driver::push_body`](crate::Driver::push_body) carries bodies that were not asked for. Decides
    /// whether a message of medium length saves the round trip of being asked for.
    pub can_push: bool,
}

impl Caps {
    /// Capabilities of a driver that offers no more than every driver must.
    ///
    /// Start from these and raise the fields that the network allows.
    #[must_use]
    pub const fn least() -> Self {
        Self {
            max_frame: Self::LEAST_FRAME,
            max_body: Self::LEAST_BODY,
            max_parts: Self::LEAST_PARTS,
            max_bodies: Self::LEAST_BODIES,
            can_sleep: false,
            can_push: false,
        }
    }

    /// Every driver carries frames of this many bytes: room for a header and a short message.
    pub const LEAST_FRAME: usize = 4096;
    /// Every driver carries bodies of this many bytes, so that a message is seldom cut.
    pub const LEAST_BODY: usize = 1 << 24;
    /// Every driver takes this many parts.
    pub const LEAST_PARTS: usize = 16;
    /// Every driver keeps this many bodies in flight with one peer.
    pub const LEAST_BODIES: usize = 16;
}
