//! The launcher's side: whoever connects is told how the job is.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::answer::Running;
use super::folder;

/// Where a launcher is asked.
#[derive(Debug)]
pub(crate) struct Door {
    listener: UnixListener,
    path: PathBuf,
    /// One for each that is being answered, and one.
    callers: Arc<()>,
}

impl Door {
    /// Opens the door of this process.
    pub(crate) fn open() -> io::Result<Self> {
        let folder = folder::path();
        folder::make(&folder)?;
        Self::open_at(folder.join(std::process::id().to_string()))
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

    /// Answers somebody who came, if somebody did. It may read as slowly as it likes.
    pub(crate) fn answer(&self, running: impl FnOnce() -> Running) {
        let Ok((stream, _)) = self.listener.accept() else {
            return;
        };
        if Arc::strong_count(&self.callers) > MAX_CALLERS {
            return;
        }
        let Ok(answer) = serde_json::to_vec(&running()) else {
            return;
        };
        let caller = Arc::clone(&self.callers);
        let tell = move || {
            // That it was not told, it sees itself.
            let _ = tell(stream, &answer);
            drop(caller);
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

/// How many are answered at a time; who comes then is sent away.
const MAX_CALLERS: usize = 16;
/// How long one who is answered may take no byte.
const PATIENCE: Duration = Duration::from_secs(5);
