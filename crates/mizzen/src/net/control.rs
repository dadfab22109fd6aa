//! What an engine needs of the process around it.

use std::sync::Arc;

use mizzen_proto::wire::NameFrame;

use super::link::NetLink;
use crate::error::Gone;
use crate::process::mailboxes::Mailboxes;
use crate::process::progress::Progress;
use crate::rank::ProcessId;

/// The process around an engine: where messages go, and who decides about peers.
pub(crate) trait Control: Progress {
    /// This, as threads that wait see it.
    fn progress(&self) -> &dyn Progress;

    /// Where messages are delivered.
    fn mailboxes(&self) -> &Mailboxes;

    /// Whether a link with this life of a process may be.
    fn is_welcome(&self, peer: ProcessId) -> bool;

    /// There is a link.
    fn connected(&self, link: Arc<NetLink>);

    /// A frame about names came.
    fn handle_name(&self, from: ProcessId, frame: NameFrame<'_>);

    /// A link is over, and with it the process at its other end.
    fn peer_gone(&self, gone: Gone);
}
