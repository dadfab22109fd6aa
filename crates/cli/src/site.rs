//! `mizzen site`: who this site is, and which others it believes.
//!
//! Everything is in one folder, which `mizzen gateway` reads. Where to look:
//!
//! | file | subject |
//! | --- | --- |
//! | `options.rs` | what the user may ask for |
//! | `folder.rs` | the files of a site: who may read them, how they are written |
//! | `init.rs`, `show.rs`, `change.rs`, `status.rs`, `secret.rs` | the commands |
//! | `gateway.rs` | `mizzen gateway` |

mod change;
mod folder;
mod gateway;
mod init;
mod options;
mod secret;
mod show;
mod status;

use std::process::ExitCode;

use options::Action;
pub(crate) use options::{Gateway, Site};

/// Serves as the gateway of a site.
pub(crate) fn gateway(options: &Gateway) -> anyhow::Result<ExitCode> {
    gateway::gateway(&options.folder())?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn site(options: &Site) -> anyhow::Result<ExitCode> {
    match &options.action {
        Action::Init(init) => init::init(init)?,
        Action::Show(at) => show::show(&at.folder())?,
        Action::Add(add) => change::add(add)?,
        Action::Revoke(revoke) => change::revoke(revoke)?,
        Action::Secret(secret) => secret::secret(&secret.path)?,
        Action::Status(status) => status::status(&status.folder())?,
    }
    Ok(ExitCode::SUCCESS)
}
