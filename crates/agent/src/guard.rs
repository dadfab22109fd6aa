//! What ends the processes when even the agent is killed.
//!
//! The kernel ends the children of an agent with it (`PR_SET_PDEATHSIG`), but not what these have started. So an
//! agent starts a guard before anything else: a process that does nothing but read a pipe that only the agent holds. When the
//! pipe ends, the agent has ended, and the guard ends all process groups that it knows of.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

/// The agent's side. Ends the guard on drop.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
}

impl Guard {
    pub(crate) fn start() -> std::io::Result<Self> {
        let child = Command::new("/proc/self/exe")
            .arg0("mizzen")
            .arg("guard")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // Not in ours: a key of the terminal must not end it.
            .process_group(0)
            .spawn()?;
        Ok(Self { child })
    }

    /// From now on this group is ended with us.
    pub(crate) fn add(&mut self, group: Pid) {
        self.tell(group.as_raw_nonzero().get());
    }

    /// This group has ended. Its number may be used again.
    pub(crate) fn remove(&mut self, group: Pid) {
        self.tell(-group.as_raw_nonzero().get());
    }

    /// A guard that is gone cannot be told, and the job goes on without one.
    fn tell(&mut self, word: i32) {
        if let Some(pipe) = &mut self.child.stdin {
            let _ = pipe.write_all(&word.to_le_bytes());
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The guard's side: reads its standard input to the end, then ends what is left.
///
/// An agent starts its own program again for this, with the one argument `guard`.
pub fn serve() {
    let mut groups = BTreeSet::new();
    let mut input = std::io::stdin().lock();
    let mut word = [0; 4];
    while input.read_exact(&mut word).is_ok() {
        let number = i32::from_le_bytes(word);
        if number > 0 {
            groups.insert(number);
        } else {
            groups.remove(&number.saturating_neg());
        }
    }
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}
