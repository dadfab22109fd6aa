//! The launcher's side: whoever connects is told how the job is.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::folder;

/// Where a launcher is asked.
#[derive(Debug)]
pub(crate) struct Door {
    listener: UnixListener,
    path: PathBuf,
    /// One for each that is being answered, and one.
    callers: Arc<()>,
}

/// Somebody who came to ask.
#[derive(Debug)]
pub(crate) struct Visitor {
    stream: UnixStream,
    /// Those who are being answered are counted by it.
    counted: Arc<()>,
}

impl Door {
    /// Opens the door of this process for those who ask how its job is.
    pub(crate) fn open() -> io::Result<Self> {
        Self::open_named(std::process::id().to_string())
    }

    /// Opens the door for those who ask why nothing happens.
    pub(crate) fn open_for_why() -> io::Result<Self> {
        Self::open_named(format!("{}{WHY}", std::process::id()))
    }

    fn open_named(name: String) -> io::Result<Self> {
        let folder = folder::path();
        folder::make(&folder)?;
        Self::open_at(folder.join(name))
    }

    fn open_at(path: PathBuf) -> io::Result<Self> {
        let listener = match UnixListener::bind(&path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left_over(&path) => {
                std::fs::remove_file(&path)?;
                UnixListener::bind(&path)?
            }
            bound => bound?,
        };
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            path,
            callers: Arc::default(),
        })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Lets somebody in who came, if somebody did.
    pub(crate) fn accept(&self) -> Option<Visitor> {
        let (stream, _) = self.listener.accept().ok()?;
        let counted = Arc::clone(&self.callers);
        (Arc::strong_count(&counted) <= MAX_CALLERS + 1).then_some(Visitor { stream, counted })
    }
}

impl Visitor {
    /// Answers. It may read as slowly as it likes.
    pub(crate) fn tell(self, answer: &impl Serialize) {
        let Ok(answer) = serde_json::to_vec(answer) else {
            return;
        };
        let tell = move || {
            // That it was not told, it sees itself.
            let _ = tell(self.stream, &answer);
            drop(self.counted);
        };
        let _ = thread::Builder::new()
            .name("mizzen-door".into())
            .spawn(tell);
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn tell(mut stream: UnixStream, answer: &[u8]) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(answer)
}

/// Whether a socket is that of a launcher that was killed.
pub(super) fn is_left_over(path: &Path) -> bool {
    let answer = UnixStream::connect(path);
    answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// What comes behind the process id in the name of the door for those who ask why nothing happens.
pub(super) const WHY: &str = ".why";

/// How many are answered at a time; who comes then is sent away.
const MAX_CALLERS: usize = 16;
/// How long one who is answered may take no byte.
const PATIENCE: Duration = Duration::from_secs(5);
