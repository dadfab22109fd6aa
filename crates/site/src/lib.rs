//! The gateway of a site: a door outside, at which other sites are known by their keys, and one inside, at which the jobs of
//! this site ask for those of others. Between the two it passes bytes, if both sites allow that job to be met.
//!
//! It is no part of any job, and sees nothing that jobs say: that is sealed between their ends. It decides who may meet whom
//! by its file, again whenever that changes, and ends at once what is not allowed any more.
//!
//! ```text
//!   job's gateway ──CONNECT──▶ inside │ gateway of a │ ══ TLS: who, which meeting ══▶ │ gateway of b │ ──▶ what was offered inside b
//!                              `stream …`                      then bytes, as they are
//! ```
//!
//! | module | subject |
//! | --- | --- |
//! | `lock` | locks that stay usable |
//! | `refusal` | why something is not done: a number and a sentence |
//! | `meeting` | what is met: the names of meetings, and of what is offered there |
//! | `word` | what gateways say to each other |
//! | `request` | what is asked inside |
//! | `sealed` | a connection of two gateways while they speak |
//! | `words` | one that is kept for words |
//! | `offers` | what jobs of this site offer to others |
//! | `live` | what is up, and what must end |
//! | `pump` | passing bytes, both ways |
//! | `state` | what all threads of a gateway share |
//! | `streams` | from a wish to two ends that are joined |
//! | `callers` | who comes to a door |
//! | `outside`, `peering` | other sites: who dials us, and whom we dial |
//! | `inside` | the jobs of this site |
//! | `client` | how a job asks the gateway of its site |
//! | `gateway` | all of it together |

mod callers;
mod client;
mod gateway;
mod inside;
mod live;
mod lock;
mod meeting;
mod offers;
mod outside;
mod peering;
mod pump;
mod refusal;
mod request;
mod sealed;
mod state;
mod streams;
mod word;
mod words;

pub use client::{Door, DoorError, Offered};
pub use gateway::{Gateway, OpenError, Setup, believed};
pub use meeting::{BadName, Meeting};
pub use refusal::Refusal;
pub use state::Pace;
#[doc(hidden)]
pub mod fuzzing {
    //! What reads foreign bytes, for `fuzz/targets`.
    pub use crate::request::Request;
    pub use crate::word::{First, Line};
}
