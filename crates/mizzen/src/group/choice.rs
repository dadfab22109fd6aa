//! By what a group chooses between several ways of an operation.

use mizzen_proto::group::cost::Costs;
use mizzen_proto::group::plan::Way;

/// By what a member chooses. The same at all members.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choice {
    /// What was agreed on.
    pub(super) costs: Option<Costs>,
    /// Whether that counts for operations that combine data, too.
    pub(super) is_tuned: bool,
    /// The way of all operations that have it, whatever it costs.
    pub(super) forced: Option<Way>,
}

impl Choice {
    /// That of a group of some of the members.
    pub(super) fn inherited(&self) -> Self {
        Self {
            forced: None,
            ..*self
        }
    }
}
