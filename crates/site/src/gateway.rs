//! All of it together.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mizzen_config::SiteFile;
use mizzen_identity::{SiteCredentials, SiteList};

use crate::live::Entry;
use crate::state::{Pace, State};
use crate::{inside, outside, peering};

/// What a gateway is made of.
pub struct Setup {
    /// What the site's file says.
    pub file: SiteFile,
    /// Who this gateway is. Whom it believes is replaced by what the file says.
    pub credentials: SiteCredentials,
    /// How patient it is.
    pub pace: Pace,
    /// Who is told what happens, in clauses without a full stop.
    pub news: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// A gateway that serves, until it is dropped.
pub struct Gateway {
    state: Arc<State>,
    doors: Vec<(TcpListener, JoinHandle<()>)>,
    watching: Option<JoinHandle<()>>,
    inside: SocketAddr,
    outside: Option<SocketAddr>,
}

/// Why a gateway cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot listen where its file says.
    #[error(
        "the gateway cannot listen at {at} ({key} in its file): {cause}; is there one already?"
    )]
    Listen {
        /// Where.
        at: SocketAddr,
        /// Which key of the file says so.
        key: &'static str,
        /// What the system said.
        cause: io::Error,
    },
    /// A key or a name of its file is wrong.
    #[error("the site's file cannot be used: {0}")]
    File(String),
    /// The system has no threads left.
    #[error("the gateway has no thread to run in: {0}")]
    Thread(io::Error),
}

impl Gateway {
    /// Opens both doors, and begins to keep in touch with other sites.
    ///
    /// # Errors
    ///
    /// [`OpenError`]; nothing is open then.
    pub fn open(setup: Setup) -> Result<Self, OpenError> {
        let Setup {
            file,
            credentials,
            pace,
            news,
        } = setup;
        credentials.sites().replace(believed(&file)?);
        let (inner, inside) = listen(file.inside, "inside")?;
        let outer = file.listen.map(|at| listen(at, "listen")).transpose()?;
        let outside = outer.as_ref().map(|(_, at)| *at);
        let doors = [Some(inside), outside].into_iter().flatten().collect();
        let state = Arc::new(State::new(credentials, file, pace, news, doors));
        let mut gateway = Self {
            state,
            doors: Vec::new(),
            watching: None,
            inside,
            outside,
        };
        gateway.open_door(inner, inside::serve)?;
        if let Some((outer, _)) = outer {
            gateway.open_door(outer, outside::serve)?;
        }
        gateway.watch()?;
        peering::keep(&gateway.state);
        Ok(gateway)
    }

    /// Ends what goes to hosts that do not answer any more.
    fn watch(&mut self) -> Result<(), OpenError> {
        let state = Arc::clone(&self.state);
        let watch = move || {
            while !state.has_ended() {
                state.live.end_where(Entry::is_silent);
                state.sleep(state.changes(), WATCH);
            }
        };
        let watching = thread::Builder::new().name("watch".into()).spawn(watch);
        self.watching = Some(watching.map_err(OpenError::Thread)?);
        Ok(())
    }

    fn open_door(
        &mut self,
        door: TcpListener,
        serve: fn(&Arc<State>, &TcpListener),
    ) -> Result<(), OpenError> {
        let state = Arc::clone(&self.state);
        let own = door.try_clone().map_err(OpenError::Thread)?;
        let served = thread::Builder::new()
            .name("door".into())
            .spawn(move || serve(&state, &own));
        self.doors.push((door, served.map_err(OpenError::Thread)?));
        Ok(())
    }

    /// From now on this file holds: what it does not allow any more has ended when this returns. Returns how many connections that were.
    ///
    /// Who this gateway is and where its doors are stays as it was.
    ///
    /// # Errors
    ///
    /// [`OpenError::File`] if a key is wrong; then everything is as before.
    pub fn replace(&self, file: SiteFile) -> Result<usize, OpenError> {
        self.state.credentials.sites().replace(believed(&file)?);
        self.state.replace(file);
        let ended = self.state.review();
        peering::keep(&self.state);
        self.state.ring();
        Ok(ended)
    }

    /// How things are, for people.
    pub fn status(&self) -> String {
        self.state.status()
    }

    /// Where jobs of this site ask.
    pub fn inside(&self) -> SocketAddr {
        self.inside
    }

    /// Where other sites dial.
    pub fn outside(&self) -> Option<SocketAddr> {
        self.outside
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("inside", &self.inside)
            .field("outside", &self.outside)
            .finish_non_exhaustive()
    }
}

/// Ends what goes through it, too.
impl Drop for Gateway {
    fn drop(&mut self) {
        self.state.end();
        for (door, served) in self.doors.drain(..) {
            // Who waits for the next is woken.
            let _ = rustix::net::shutdown(&door, rustix::net::Shutdown::Both);
            let _ = served.join();
        }
        let _ = self.watching.take().map(JoinHandle::join);
    }
}

/// The sites of a file, as the checks of connections have them.
///
/// # Errors
///
/// [`OpenError::File`] if a key or a name is wrong.
pub fn believed(file: &SiteFile) -> Result<SiteList, OpenError> {
    let wrong = |error: &dyn fmt::Display| OpenError::File(error.to_string());
    let mut list = SiteList::new();
    for site in &file.sites {
        for key in &site.keys {
            let pin = key.parse().map_err(|error| wrong(&error))?;
            list.believe(&site.name, pin)
                .map_err(|error| wrong(&error))?;
        }
    }
    for pin in &file.revoked {
        list.revoke(pin.parse().map_err(|error| wrong(&error))?);
    }
    Ok(list)
}

fn listen(at: SocketAddr, key: &'static str) -> Result<(TcpListener, SocketAddr), OpenError> {
    let listen = || {
        let listener = TcpListener::bind(at)?;
        let bound = listener.local_addr()?;
        Ok((listener, bound))
    };
    listen().map_err(|cause| OpenError::Listen { at, key, cause })
}

/// How often it is looked whether hosts still answer.
const WATCH: Duration = Duration::from_secs(1);
