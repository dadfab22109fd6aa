//! Other commands, with limits on how long they may take and how much they may say.

use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// A child that is ended when we are done with it.
#[derive(Debug)]
pub(crate) struct Kill(pub(crate) Child);

impl Drop for Kill {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a command prints. None if it cannot be run, fails, or takes too long.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut child = Kill(child);
    let deadline = Instant::now() + PATIENCE;
    let bytes = read_to_end(child.0.stdout.as_mut()?, OUTPUT, deadline)?;
    // Its output is closed: it ends, or it is killed.
    while child.0.try_wait().ok()?.is_none() {
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let succeeded = child.0.try_wait().ok()??.success();
    succeeded.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads up to and without `end`. None if it does not come in time, or after more than `most` bytes.
pub(crate) fn read_until(
    from: &mut (impl Read + AsFd),
    end: u8,
    most: usize,
    deadline: Instant,
) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < most && is_readable(from, deadline) {
        let mut byte = [0];
        if from.read(&mut byte).ok()? == 0 {
            return None;
        }
        if byte[0] == end {
            return Some(bytes);
        }
        bytes.push(byte[0]);
    }
    None
}

fn read_to_end(from: &mut (impl Read + AsFd), most: usize, deadline: Instant) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while is_readable(from, deadline) {
        let count = from.read(&mut buffer).ok()?;
        if count == 0 {
            return Some(bytes);
        }
        bytes.extend_from_slice(&buffer[..count]);
        if bytes.len() > most {
            return None;
        }
    }
    None
}

/// Waits until there is something to read. Not if the deadline comes first.
fn is_readable(fd: &impl AsFd, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(timeout) = Timespec::try_from(left) else {
            return false;
        };
        let mut fds = [PollFd::new(fd, PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Err(Errno::INTR) => {}
            Ok(count) => return count > 0,
            Err(_) => return false,
        }
    }
}

/// How long a command may take. Less than the patience with all probes.
const PATIENCE: Duration = Duration::from_secs(4);

/// Bytes that a command may print.
const OUTPUT: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Option<String> {
        output(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn a_command_is_heard_unless_it_fails_or_says_too_much() {
        assert_eq!(shell("echo one; echo two").as_deref(), Some("one\ntwo\n"));
        assert_eq!(shell("echo one; exit 1"), None);
        assert_eq!(shell("yes"), None);
        assert_eq!(output(&mut Command::new("/no/such/command")), None);
    }

    #[test]
    fn a_line_is_taken_whole_or_not_at_all() {
        let read = |script: &str, most, patience| {
            let mut command = Command::new("sh");
            let child = command.args(["-c", script]).stdout(Stdio::piped()).spawn();
            let mut child = Kill(child.unwrap());
            let deadline = Instant::now() + patience;
            read_until(child.0.stdout.as_mut().unwrap(), b'\n', most, deadline)
        };
        let long = Duration::from_secs(20);
        let line = read("echo one; exec sleep 100", 10, long);
        assert_eq!(line, Some(b"one".to_vec()));
        let short = Duration::from_millis(200);
        assert_eq!(read("printf one; exec sleep 100", 10, short), None);
        assert_eq!(read("printf one", 10, long), None);
        assert_eq!(read("echo one", 2, long), None);
    }
}
