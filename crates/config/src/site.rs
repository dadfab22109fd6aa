//! The site's file, `site.toml`: who this site is, and which others it believes.
//!
//! | module | subject |
//! | --- | --- |
//! | `file` | what comes out |
//! | `check` | which key may say what |
//! | `edit` | adding to a file, without losing what people wrote in it |

mod check;
mod edit;
mod file;

pub use edit::{EditError, NewSite};
pub use file::{PeerSite, SiteFile};
