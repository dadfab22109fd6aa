//! What the user may ask of `mizzen site`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use mizzen_identity::Pin;

use super::folder::Folder;

/// Say who this site is, and which other sites it believes.
#[derive(Debug, Args)]
pub(crate) struct Site {
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    Init(Init),
    Show(At),
    Add(Add),
    Revoke(Revoke),
    Status(Status),
    Secret(Secret),
}

/// Show the names and keys of this site, the sites that it believes, and what to type there to add this one.
#[derive(Debug, Args)]
pub(super) struct At {
    /// The folder of the site.
    #[arg(long = "dir", value_name = "DIR", default_value = "/etc/mizzen/site")]
    directory: PathBuf,
}

impl At {
    pub(super) fn folder(&self) -> Folder {
        Folder::new(&self.directory)
    }
}

/// Show how the gateway of this host is: which sites are connected, and what goes between them.
#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    at: At,
}

impl Status {
    pub(super) fn folder(&self) -> Folder {
        self.at.folder()
    }
}

/// Make a secret that two halves of a job have in common. Take it to the other site by a way that you trust.
#[derive(Debug, Args)]
pub(super) struct Secret {
    /// Where to write it. There must be no such file.
    #[arg(value_name = "FILE")]
    pub(super) path: PathBuf,
}

/// Let jobs of this site and of others meet. Runs until it is ended, and follows the site's file.
#[derive(Debug, Args)]
pub(crate) struct Gateway {
    #[command(flatten)]
    at: At,
}

impl Gateway {
    pub(super) fn folder(&self) -> Folder {
        self.at.folder()
    }
}

/// Make the keys and the file of a new site. Nothing that is there is overwritten.
#[derive(Debug, Args)]
pub(super) struct Init {
    /// What this site is called: 1 to 63 of a-z, 0-9 and -.
    pub(super) name: String,

    /// What this gateway is called, among those of the site.
    #[arg(long, value_name = "NAME", default_value = "gw1")]
    pub(super) gateway: String,

    /// Where gateways of other sites connect, as in 0.0.0.0:4433. Without it, this gateway dials outwards only.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<SocketAddr>,

    /// Where jobs of this site ask the gateway, as in 10.1.0.1:4434; no other site may reach it.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4434")]
    pub(super) inside: SocketAddr,

    #[command(flatten)]
    pub(super) at: At,
}

/// Believe another site, or another key of one that is believed already.
#[derive(Debug, Args)]
pub(super) struct Add {
    /// What the other site is called.
    pub(super) name: String,

    /// Its key, as `mizzen site show` prints it there. Have it confirmed by somebody whom you know at that site.
    #[arg(value_name = "PIN")]
    pub(super) pin: Pin,

    /// Host and port of a gateway of that site; may be given several times. Without it, they connect to us.
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) reach: Vec<String>,

    /// A job that may be met with that site, or the beginning of names and a *; may be given several times. None by default.
    #[arg(long = "export", value_name = "JOB")]
    pub(super) exports: Vec<String>,

    #[command(flatten)]
    pub(super) at: At,
}

/// Stop believing a key, or all keys of a site.
#[derive(Debug, Args)]
pub(super) struct Revoke {
    /// The pin of a key, of a site or of a gateway, or the name of a site.
    #[arg(value_name = "PIN|NAME")]
    pub(super) whom: String,

    #[command(flatten)]
    pub(super) at: At,
}
