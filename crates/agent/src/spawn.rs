//! Starting a process: what must happen between fork and exec.

#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{bail, ensure};
use mizzen_proto::boot::{AGENT_FD, Start};
use rustix::process::{Resource, Rlimit};

use crate::signals;

/// What the process of rank 0 reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// What the launcher reads.
    Inherit,
    /// Nothing.
    Null,
}

/// Whether a process leads a group of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// It does: its group is ended with it.
    Own,
    /// It stays in the launcher's, since only the foreground group may read from the terminal.
    Launcher,
}

/// What is the same for all processes of a host.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    name: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    /// The limit of descriptors that processes get: ours was raised.
    descriptors: Rlimit,
}

impl Program {
    /// Finds the program, or says why it cannot be run.
    pub(crate) fn find(start: &mut Start) -> anyhow::Result<Self> {
        let host = &start.host;
        // A gateway without processes needs no program.
        let is_needed = !start.ranks.is_empty();
        let cwd = PathBuf::from(OsString::from_vec(std::mem::take(&mut start.cwd)));
        ensure!(
            !is_needed || cwd.is_dir(),
            "directory {} does not exist on {host}; make it, or run from one that all hosts have",
            cwd.display()
        );
        let text = |bytes: Vec<u8>| OsString::from_vec(bytes);
        let name = text(std::mem::take(&mut start.program));
        let env: Vec<_> = std::mem::take(&mut start.env)
            .into_iter()
            .map(|(n, v)| (text(n), text(v)))
            .collect();
        let path = match is_needed {
            true => find(&name, &cwd, &env, host)?,
            false => PathBuf::new(),
        };
        let args = std::mem::take(&mut start.args)
            .into_iter()
            .map(text)
            .collect();
        Ok(Self {
            path,
            name,
            args,
            env,
            cwd,
            descriptors: raise_descriptor_limit(),
        })
    }

    /// Starts a process that inherits `socket` and finds `variables` in its environment.
    pub(crate) fn spawn(
        &self,
        variables: [(&str, String); 6],
        socket: BorrowedFd<'_>,
        stdin: Stdin,
        group: Group,
    ) -> std::io::Result<Child> {
        let mut command = Command::new(&self.path);
        command
            .arg0(&self.name)
            .args(&self.args)
            .current_dir(&self.cwd);
        let inherited = socket.as_raw_fd();
        command
            .env_clear()
            .envs(self.env.iter().map(|(n, v)| (n, v)))
            .envs(variables)
            .env(AGENT_FD, inherited.to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(match stdin {
            Stdin::Inherit => Stdio::inherit(),
            Stdin::Null => Stdio::null(),
        });
        if group == Group::Own {
            command.process_group(0);
        }
        signals::unblock_in(&mut command);
        let parent = rustix::process::getpid();
        let descriptors = self.descriptors;
        let prepare = move || {
            let kill = Some(rustix::process::Signal::KILL);
            rustix::process::set_parent_process_death_signal(kill)?;
            // The agent may have died before the line above.
            if rustix::process::getppid() != Some(parent) {
                return Err(std::io::ErrorKind::BrokenPipe.into());
            }
            rustix::process::setrlimit(Resource::Nofile, descriptors)?;
            // SAFETY: the caller of `spawn` borrows the socket until it returns, and it returns after exec: the
            // descriptor is open in the child, whose table is a copy of ours.
            let socket = unsafe { BorrowedFd::borrow_raw(inherited) };
            rustix::io::fcntl_setfd(socket, rustix::io::FdFlags::empty())?;
            Ok(())
        };
        // SAFETY: `prepare` runs in the child of a process that may have threads, so it must do only what a signal handler
        // may: it makes four system calls and allocates nothing (an error of `ErrorKind` or errno is not boxed).
        unsafe { command.pre_exec(prepare) };
        command.spawn()
    }

    /// How many descriptors the agent may have for its processes. Some are its own, and some are under way to processes that are
    /// introduced to each other.
    pub(crate) fn descriptors_left(&self) -> usize {
        const OTHERS: u64 = 96;
        let most = rustix::process::getrlimit(Resource::Nofile).current;
        most.map_or(usize::MAX, |most| most.saturating_sub(OTHERS) as usize)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn find(
    name: &OsStr,
    cwd: &Path,
    env: &[(OsString, OsString)],
    host: &str,
) -> anyhow::Result<PathBuf> {
    let shown = name.to_string_lossy();
    if name.as_bytes().contains(&b'/') {
        let path = cwd.join(name);
        ensure!(
            path.exists(),
            "{shown} does not exist on {host}; check the path"
        );
        ensure!(
            !path.is_dir(),
            "{shown} is a directory on {host}; give a program"
        );
        ensure!(
            executable(&path),
            "{shown} is not executable on {host}; try chmod +x {shown}"
        );
        return Ok(path);
    }
    let search = env
        .iter()
        .find(|(n, _)| n == "PATH")
        .map_or(OsStr::new(""), |(_, v)| v);
    let found = std::env::split_paths(search)
        .map(|directory| cwd.join(directory).join(name))
        .find(|path| path.is_file() && executable(path));
    if let Some(path) = found {
        return Ok(path);
    }
    let here = cwd.join(name);
    if here.is_file() {
        bail!(
            "{shown} was not found in PATH on {host}; to run the one in this directory give ./{shown}"
        );
    }
    bail!("{shown} was not found in PATH on {host}; check the name, or give a path");
}

fn executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Lets the agent have as many descriptors as it may: it needs three or four for each process. Returns what it had.
fn raise_descriptor_limit() -> Rlimit {
    let before = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    // Should it be refused, starting fewer processes works, and starting more says what is missing.
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
    before
}
