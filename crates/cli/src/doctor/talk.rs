//! Asking several sides at once, each with a time limit.

use std::time::Instant;

use mizzen_agent::Other;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::report::{Answer, Request};
use super::wire;
use crate::run::{Link, quote};

/// The sides that answer, and why the others do not.
pub(crate) struct Talk {
    sides: Vec<Result<Link, String>>,
}

/// A question to a side, and what became of it.
enum State {
    NotAsked,
    Waiting,
    Answered(Answer),
}

impl Talk {
    pub(crate) fn new(sides: Vec<Result<Link, String>>) -> Self {
        Self { sides }
    }

    /// Asks each side what there is for it, and waits for the answers until the deadline. Sides that do not answer, or answer
    /// with something else, are asked no more.
    pub(crate) fn ask(
        &mut self,
        requests: &[Option<Request>],
        deadline: Instant,
    ) -> Vec<Option<Answer>> {
        let mut states: Vec<State> = Vec::new();
        for (side, request) in self.sides.iter_mut().zip(requests) {
            let asked = match (side, request) {
                (Ok(link), Some(request)) => wire::encode(request, link.stream.queue()),
                _ => None,
            };
            states.push(asked.map_or(State::NotAsked, |()| State::Waiting));
        }
        while states.iter().any(|state| matches!(state, State::Waiting)) {
            if Instant::now() >= deadline {
                self.give_up(&states);
                break;
            }
            for index in self.wait(&states, deadline) {
                self.turn(index, &mut states[index]);
            }
        }
        let answer = |state| match state {
            State::Answered(answer) => Some(answer),
            State::NotAsked | State::Waiting => None,
        };
        states.into_iter().map(answer).collect()
    }

    /// Why a side does not answer. None if it does.
    pub(crate) fn failure(&self, index: usize) -> Option<&str> {
        match self.sides.get(index) {
            Some(Err(why)) => Some(why),
            _ => None,
        }
    }

    /// Waits until something happens, and says to whom.
    fn wait(&self, states: &[State], deadline: Instant) -> Vec<usize> {
        let mut owners = Vec::new();
        let mut fds = Vec::new();
        for (index, side) in self.sides.iter().enumerate() {
            let (Ok(link), State::Waiting) = (side, &states[index]) else {
                continue;
            };
            let mut watch = |fd, flags| {
                owners.push(index);
                fds.push(PollFd::from_borrowed_fd(fd, flags));
            };
            watch(link.stream.input(), PollFlags::IN);
            if link.stream.backlog() > 0 {
                watch(link.stream.output(), PollFlags::OUT);
            }
            if let Some(stderr) = link.stderr() {
                watch(stderr, PollFlags::IN);
            }
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Vec::new(),
            // Without poll we look at all of them.
            Err(_) => return owners,
        }
        let ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let mut ready: Vec<usize> = owners
            .iter()
            .zip(ready)
            .filter(|(_, ready)| *ready)
            .map(|(index, _)| *index)
            .collect();
        ready.dedup();
        ready
    }

    /// Writes and reads what there is.
    fn turn(&mut self, index: usize, state: &mut State) {
        let Ok(link) = &mut self.sides[index] else {
            return;
        };
        if !matches!(state, State::Waiting) {
            return;
        }
        link.read_stderr();
        // That it is closed shows when it is read.
        let _ = link.stream.flush();
        let other = link.stream.receive();
        match link
            .stream
            .next(|content| Ok(wire::decode::<Answer>(content)))
        {
            Ok(Some(Some(mut answer))) => {
                answer.tame();
                *state = State::Answered(answer);
            }
            Ok(Some(None)) => {
                self.fail(index, "answered as another version of mizzen; install the same there, or give --agent-path".to_owned());
                *state = State::NotAsked;
            }
            Err(_) => {
                let said = quote(&link.stream.untaken()[..link.stream.untaken().len().min(QUOTED)])
                    .unwrap_or_default();
                self.fail(
                    index,
                    format!("answered {said}; the remote shell must print nothing of its own"),
                );
                *state = State::NotAsked;
            }
            Ok(None) if other == Other::Closed => {
                let said = quote(&link.stream.untaken()[..link.stream.untaken().len().min(QUOTED)]);
                let mut why = link.close();
                if let Some(said) = said {
                    why.push_str(&format!(", printing {said}"));
                }
                self.fail(
                    index,
                    format!("{why}; check --hosts, --remote-shell and --agent-path"),
                );
                *state = State::NotAsked;
            }
            Ok(None) => {}
        }
    }

    fn give_up(&mut self, states: &[State]) {
        for (index, state) in states.iter().enumerate() {
            if matches!(state, State::Waiting) {
                self.fail(
                    index,
                    "did not answer in time; check that its remote shell logs in without asking"
                        .to_owned(),
                );
            }
        }
    }

    /// Ends a side, and keeps why.
    fn fail(&mut self, index: usize, why: String) {
        if let Ok(link) = &mut self.sides[index] {
            link.abandon();
        }
        self.sides[index] = Err(why);
    }
}

/// Bytes of a stranger's answer that are shown.
const QUOTED: usize = 200;
