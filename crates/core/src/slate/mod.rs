//! What the members of a group on one host show each other, without messages.
//!
//! | file | subject |
//! | --- | --- |
//! | `number.rs` | a slate of this process, while a member has it |
//! | `slates.rs` | the slates of all members: showing, looking, waiting |
//! | `trays.rs`, `places.rs` | memory for what does not fit into a line; writing it and reading it in place |

mod number;
mod places;
mod slates;
mod trays;

pub use self::number::SlateNumber;
pub use self::slates::{CoreSet, Slates, Waited, own_cores};
pub use self::trays::{TRAY_PLACE, TrayPlace};
pub use mizzen_lane::{SLATE_WORDS, Shown};
