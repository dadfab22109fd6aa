//! `mizzen site`: who this site is, and which others it believes.
//!
//! Everything is in one folder, which `mizzen gateway` reads. Where to look:
//!
//! | file | subject |
//! | --- | --- |
//! | `options.rs` | what the user may ask for |
//! | `folder.rs` | the files of a site: who may read them, how they are written |
//! | `init.rs`, `show.rs`, `change.rs` | the commands |

mod change;
mod folder;
mod init;
mod options;
mod show;

use std::process::ExitCode;

use options::Action;
pub(crate) use options::Site;

pub(crate) fn site(options: &Site) -> anyhow::Result<ExitCode> {
    match &options.action {
        Action::Init(init) => init::init(init)?,
        Action::Show(at) => show::show(&at.folder())?,
        Action::Add(add) => change::add(add)?,
        Action::Revoke(revoke) => change::revoke(revoke)?,
    }
    Ok(ExitCode::SUCCESS)
}
