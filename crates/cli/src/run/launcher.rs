//! The launcher: one loop over the links to agents, the signals and the output. Whatever happens goes to [`Job`], which decides.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use mizzen_agent::{Other, Signals};
use mizzen_proto::boot::{
    FromAgent, OUTPUT_ROOM, Progress, SignalOrigin, Stream, ToAgent, VERSION,
};
use mizzen_proto::membership::{Entry, News, Pace};
use mizzen_proto::rollcall::Report;
use mizzen_proto::time::Time;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use tracing::debug;

use super::appearance::Appearance;
use super::cast::Cast;
use super::job::{Action, Job};
use super::links::{self, Link, Phase};
use super::maps::Maps;
use super::options::Run;
use super::other_half::{Far, FromDeputy};
use super::printer::{self, Printer};
use super::roll_call::RollCalls;
use super::starts::starts;
use super::whereabouts::Whereabouts;
use crate::hang::sentences;
use crate::running::{Door, Visitor};
use crate::signals;

/// All of a job that is started here.
pub(super) struct Launcher {
    job: Job,
    links: Vec<Link>,
    /// What each agent is told when it is there; taken then.
    starts: Vec<Option<ToAgent>>,
    whereabouts: Whereabouts,
    signals: Signals,
    printer: Printer,
    maps: Maps,
    /// When to draw the bars again, if they must be.
    draw_at: Option<Instant>,
    deadline: Option<Instant>,
    interrupts: u32,
    began: Instant,
    pace: Pace,
    /// When the root said last that it lives, in a job of several hosts.
    root_heard: Option<Instant>,
    /// Whether agents that share no network speak through us.
    passes: bool,
    /// The launcher of the other half, if the job has two.
    far: Option<Far>,
    /// Where the user's other commands ask how the job is.
    door: Option<Door>,
    /// Where they ask why nothing happens, and who does.
    why_door: Option<Door>,
    visitors: Vec<Visitor>,
    roll_calls: RollCalls,
    appearance: Appearance,
}

/// What poll watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watched {
    Signals,
    Input(usize),
    Output(usize),
    Stderr(usize),
    Print(Stream),
    /// The launcher of the other half.
    Far,
    /// Somebody who asks how the job is.
    Door,
    /// Somebody who asks why nothing happens.
    WhyDoor,
}

impl Launcher {
    pub(super) fn start(
        options: &Run,
        cast: Cast,
        links: Vec<Link>,
        far: Option<Far>,
        signals: Signals,
        printer: Printer,
    ) -> anyhow::Result<Self> {
        let appearance = Appearance::new(options, &cast);
        let names = cast.hosts.iter().map(|host| host.name.clone()).collect();
        let job = Job::new(
            &cast.places,
            names,
            options.on_death(),
            options.max_restarts,
            options.pace(),
        );
        let mut starts = starts(options, cast.file.as_ref(), &cast.hosts, &job)?;
        cast.complete(&mut starts);
        let whereabouts = Whereabouts::new(cast.file, &cast.hosts, &job)?;
        let deadline = Some(Instant::now() + START_TIMEOUT);
        Ok(Self {
            job,
            links,
            starts,
            whereabouts,
            signals,
            printer,
            maps: Maps::default(),
            draw_at: None,
            deadline,
            interrupts: 0,
            began: Instant::now(),
            pace: options.pace(),
            root_heard: None,
            passes: false,
            far,
            door: open_door(Door::open()),
            why_door: open_door(Door::open_for_why()),
            visitors: Vec::new(),
            roll_calls: RollCalls::new(options.why_after.0),
            appearance,
        })
    }

    pub(super) fn serve(mut self) -> anyhow::Result<u8> {
        let mut told_to_stop = false;
        let mut said_why = false;
        loop {
            if self.job.is_over() && !told_to_stop {
                // Agents stay for restarts; there will be none.
                self.act(vec![Action::Broadcast(ToAgent::Stop { code: 0 })]);
                told_to_stop = true;
            }
            self.printer.print_log();
            self.give_room();
            for link in &mut self.links {
                // That it is closed shows when it is read.
                let _ = link.stream.flush();
            }
            let closed = self.links.iter().all(|link| link.phase == Phase::Closed);
            // Said last; but nobody who does not read the output may wait for the reason in vain.
            let stalled = self.job.is_over() && self.printer.backlog() >= HIGH_WATER;
            if (closed || stalled) && !said_why {
                said_why = true;
                if let Some(sentence) = self.job.verdict() {
                    self.say(&sentence);
                }
            }
            if closed {
                self.printer.lift_bars();
                let code = self.job.exit_code();
                self.far.iter_mut().for_each(|far| far.end(code));
            }
            if closed && self.printer.backlog() == 0 {
                let code = self.job.exit_code();
                if let Some(far) = self.far.take() {
                    far.finish();
                }
                return Ok(code);
            }
            for watched in self.wait()? {
                self.handle(watched);
            }
            self.enforce_deadline();
            self.watch_root();
            self.begin_roll_call();
            self.end_roll_call();
            self.show_progress();
            if self.printer.is_closed() && !self.job.is_stopping() {
                let actions = self.job.stop(None, BROKEN_PIPE);
                self.act(actions);
            }
        }
    }

    /// Lets agents send more output, as long as it is printed. Then they wait, and their processes; all else they say
    /// is heard.
    fn give_room(&mut self) {
        if self.printer.backlog() >= HIGH_WATER {
            return;
        }
        for host in 0..self.links.len() {
            let owed = self.links[host].owed;
            // Below half of it, the agent has the other half.
            if owed >= OUTPUT_ROOM / 2 {
                self.links[host].owed = 0;
                self.tell(host, &ToAgent::Room { bytes: owed });
            }
        }
    }

    fn wait(&self) -> Result<Vec<Watched>, Errno> {
        let mut watched = vec![Watched::Signals];
        watched.extend(self.printer.waiting().map(Watched::Print));
        let far = self.far.as_ref().and_then(Far::fd);
        watched.extend(far.map(|_| Watched::Far));
        watched.extend(self.door.iter().map(|_| Watched::Door));
        watched.extend(self.why_door.iter().map(|_| Watched::WhyDoor));
        for (i, link) in self
            .links
            .iter()
            .enumerate()
            .filter(|(_, link)| link.phase != Phase::Closed)
        {
            watched.push(Watched::Input(i));
            if link.stream.backlog() > 0 {
                watched.push(Watched::Output(i));
            }
            if link.stderr().is_some() {
                watched.push(Watched::Stderr(i));
            }
        }
        let mut fds: Vec<PollFd<'_>> = watched
            .iter()
            .map(|watched| self.poll_fd(*watched))
            .collect();
        let lines = self.maps.next_line().filter(|_| !self.printer.has_bars());
        let next = [
            self.deadline,
            self.draw_at,
            lines,
            self.root_deadline(),
            self.roll_calls.deadline(),
        ];
        let timeout = next
            .into_iter()
            .flatten()
            .min()
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(vec![]),
            Err(other) => return Err(other),
        }
        let ready = fds.iter().map(|fd| !fd.revents().is_empty());
        Ok(watched
            .iter()
            .copied()
            .zip(ready)
            .filter(|(_, ready)| *ready)
            .map(|(watched, _)| watched)
            .collect())
    }

    fn poll_fd(&self, watched: Watched) -> PollFd<'_> {
        let (fd, flags) = match watched {
            Watched::Signals => (self.signals.as_fd(), PollFlags::IN),
            Watched::Input(i) => (self.links[i].stream.input(), PollFlags::IN),
            Watched::Output(i) => (self.links[i].stream.output(), PollFlags::OUT),
            Watched::Stderr(i) => {
                let stream = &self.links[i].stream;
                (
                    self.links[i].stderr().unwrap_or(stream.input()),
                    PollFlags::IN,
                )
            }
            Watched::Print(stream) => (printer::descriptor(stream), PollFlags::OUT),
            Watched::Far => {
                let far = self.far.as_ref().and_then(Far::fd);
                (far.unwrap_or(self.signals.as_fd()), PollFlags::IN)
            }
            Watched::Door => {
                let door = self.door.as_ref().map(Door::fd);
                (door.unwrap_or(self.signals.as_fd()), PollFlags::IN)
            }
            Watched::WhyDoor => {
                let door = self.why_door.as_ref().map(Door::fd);
                (door.unwrap_or(self.signals.as_fd()), PollFlags::IN)
            }
        };
        PollFd::from_borrowed_fd(fd, flags)
    }

    fn handle(&mut self, watched: Watched) {
        match watched {
            Watched::Signals => self.handle_signals(),
            Watched::Input(i) => self.handle_input(i),
            // Flushed in each turn.
            Watched::Output(_) => {}
            Watched::Stderr(i) => self.links[i].read_stderr(),
            Watched::Print(stream) => self.printer.write(stream),
            Watched::Far => self.handle_far(),
            Watched::Door => {
                let visitor = self.door.as_ref().and_then(Door::accept);
                let running = || self.appearance.running(&self.job, self.began.elapsed());
                visitor
                    .into_iter()
                    .for_each(|visitor| visitor.tell(&running()));
            }
            Watched::WhyDoor => {
                let visitor = self.why_door.as_ref().and_then(Door::accept);
                if let Some(visitor) = visitor {
                    self.visitors.push(visitor);
                    self.call_roll();
                }
            }
        }
    }

    /// What the user of the other half wants is as if ours wanted it.
    fn handle_far(&mut self) {
        let words = self.far.as_mut().map(Far::hear);
        for word in words.into_iter().flatten() {
            match word {
                FromDeputy::Signal(number) => self.handle_signal(number, SignalOrigin::Process),
                FromDeputy::Unread => {
                    let actions = self.job.stop(None, BROKEN_PIPE);
                    self.act(actions);
                }
            }
        }
    }

    fn handle_signals(&mut self) {
        while let Some((number, origin)) = self.signals.next() {
            self.handle_signal(number, origin);
        }
    }

    fn handle_signal(&mut self, number: u8, origin: SignalOrigin) {
        self.job.handle_signal(number);
        self.interrupts += u32::from(signals::asks_to_end(number));
        let connecting = self
            .links
            .iter()
            .any(|link| link.phase == Phase::Connecting);
        let actions = if signals::asks_to_end(number)
            && connecting
            && self.deadline.is_some()
            && !self.is_local()
        {
            let name = signals::name(number);
            let why = format!("got {name} before all hosts answered.");
            self.job.stop(Some(why), 128 + number)
        } else {
            self.job.pass_on(number, origin)
        };
        self.act(actions);
        if self.interrupts >= IMPATIENCE {
            let actions = self.job.stop_by_signal(number);
            self.act(actions);
            self.printer.discard();
            self.abandon_far();
        }
        if self.job.is_stopping() {
            self.abandon_connecting();
        }
    }

    fn handle_input(&mut self, host: usize) {
        let other = self.links[host].stream.receive();
        // A key of the terminal reaches rank 0 too: its end must not be heard of before the signal.
        self.handle_signals();
        if self.links[host].phase == Phase::Closed {
            return; // Given up because of a signal.
        }
        loop {
            match self.links[host].stream.next(FromAgent::decode) {
                Ok(Some(frame)) => self.handle_frame(host, frame),
                Ok(None) => break,
                Err(_) => {
                    let said = links::quote(self.links[host].stream.untaken()).unwrap_or_default();
                    let name = &self.links[host].host;
                    let why = format!(
                        "host {name} answered with something that is not an agent: {said}; \
                         its remote shell must print nothing of its own."
                    );
                    self.fail(host, why);
                    return;
                }
            }
        }
        if other == Other::Closed {
            self.handle_closed(host);
        }
    }

    fn handle_frame(&mut self, host: usize, frame: FromAgent) {
        self.log(host, &frame);
        let actions = match frame {
            FromAgent::Hello { version } => return self.handle_hello(host, version),
            FromAgent::Output {
                rank,
                stream,
                bytes,
            } => {
                if self.links[host].is_far() {
                    return; // Its own launcher prints that.
                }
                let owed = &mut self.links[host].owed;
                *owed = owed.saturating_add(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
                self.printer.print(rank, stream, &bytes);
                return;
            }
            FromAgent::Started {
                rank,
                incarnation,
                pid,
            } => {
                self.job.handle_started(rank, incarnation, pid);
                return;
            }
            FromAgent::News { news } => return self.handle_news(host, &news),
            FromAgent::Listening { locator } => {
                // All others: the root needs no way to itself.
                let others = (0..self.links.len()).filter(|other| *other != host);
                let root = |other| {
                    Action::Tell(
                        other,
                        ToAgent::Root {
                            locator: locator.clone(),
                        },
                    )
                };
                others.map(root).collect()
            }
            FromAgent::Pulse => {
                self.root_heard = Some(Instant::now());
                return;
            }
            FromAgent::Pass { to, bytes } => {
                self.passes = true;
                let (from, there) = (u32::try_from(host).unwrap_or(u32::MAX), to as usize);
                let is_there = |link: &Link| link.phase != Phase::Closed;
                vec![match self.links.get(there).is_some_and(is_there) {
                    true => Action::Tell(there, ToAgent::Passed { from, bytes }),
                    false => Action::Tell(host, ToAgent::NotPassed { to }),
                }]
            }
            FromAgent::Fenced { text } => self.job.handle_fenced(host, &text),
            FromAgent::Ready {
                rank,
                incarnation,
                locator,
            } => self.job.handle_ready(rank, incarnation, locator),
            FromAgent::Waiting { rank, text } => self.job.handle_waiting(rank, &text, self.now()),
            FromAgent::Overdue { .. } => return self.roll_calls.handle_overdue(Instant::now()),
            FromAgent::Present {
                call,
                rank,
                incarnation,
                condition,
                present,
            } => {
                if self.job.is_on(rank, host) {
                    let present = present.as_deref();
                    self.roll_calls
                        .handle_present(call, rank, incarnation, condition, present);
                }
                return;
            }
            FromAgent::Called { call } => {
                return self.roll_calls.handle_called(host, Some(call));
            }
            FromAgent::Path { rank, text } => self.job.handle_path(rank, &text),
            FromAgent::Progress { rank, progress } => {
                if rank < self.job.size() {
                    self.handle_progress(rank, progress);
                }
                return;
            }
            FromAgent::Locate { rank, incarnation } => {
                self.job.handle_locate(host, rank, incarnation)
            }
            FromAgent::AskTopology { rank, from } => {
                vec![Action::Tell(host, self.whereabouts.page(rank, from))]
            }
            FromAgent::Error { text } => self.job.stop(Some(text), CANNOT_START),
        };
        self.act(actions);
    }

    /// What agents tell of their processes, for those who want to know.
    fn log(&self, host: usize, frame: &FromAgent) {
        let host = &self.links[host].host;
        match frame {
            FromAgent::Hello { version } => debug!(host, version, "agent answered"),
            FromAgent::Started {
                rank,
                incarnation,
                pid,
            } => debug!(host, rank, incarnation, pid, "process started"),
            FromAgent::Ready { rank, locator, .. } => debug!(host, rank, locator, "process joined"),
            FromAgent::Locate { rank, .. } => debug!(host, rank, "a process looks for another"),
            _ => (),
        }
    }

    /// The root decided something. From anybody else that is nothing.
    fn handle_news(&mut self, host: usize, bytes: &[u8]) {
        if host != ROOT {
            return;
        }
        let Ok(news) = News::decode(bytes) else {
            let name = &self.links[host].host;
            let why = format!("the root of the job, on {name}, decided what makes no sense.");
            return self.fail(host, why);
        };
        for entry in &news.entries {
            log_entry(entry);
            if let Entry::Ended { process, .. } = entry {
                self.maps.handle_exited(process.rank.0);
                self.redraw();
            }
        }
        let actions = self.job.read(&news);
        self.act(actions);
    }

    /// A process waits for long: the user is told why.
    fn begin_roll_call(&mut self) {
        let is_due = self.roll_calls.poll_due(Instant::now());
        if is_due && !self.job.is_stopping() {
            self.call_roll();
            self.roll_calls.tell_user();
        }
    }

    /// Has all hosts say how their ranks are, unless they are at it.
    fn call_roll(&mut self) {
        let open = |host: &usize| self.links[*host].phase == Phase::Open;
        let hosts = (0..self.links.len()).filter(open).collect();
        if let Some(call) = self.roll_calls.begin(hosts, Instant::now()) {
            self.act(vec![Action::Broadcast(ToAgent::RollCall { call })]);
        }
    }

    /// Tells those who want to know, when all have answered, or too little time is left.
    fn end_roll_call(&mut self) {
        let now = Instant::now();
        let Some(over) = self.roll_calls.poll(now) else {
            return;
        };
        let report = Report::of(&self.job.attendance(over.heard));
        // What was waited for may have come meanwhile.
        if over.is_overdue && report.longest.is_some() && !self.job.is_stopping() {
            self.roll_calls.note_said(&report, now);
            let age = self.began.elapsed();
            let hang = self.appearance.hang(&self.job, report.clone(), age);
            sentences(&hang).iter().for_each(|line| self.say(line));
        }
        if self.visitors.is_empty() {
            return;
        }
        let age = self.began.elapsed();
        let hang = self.appearance.hang(&self.job, report, age);
        for visitor in std::mem::take(&mut self.visitors) {
            visitor.tell(&hang);
        }
    }

    fn handle_progress(&mut self, rank: u32, progress: Progress) {
        let over = self.maps.handle(rank, progress, Instant::now());
        if let Some(sentence) = over.filter(|_| !self.printer.has_bars()) {
            self.printer.say(&sentence);
        }
        self.redraw();
    }

    /// Has the bars drawn soon: at once would be too often for a terminal, and for the eye.
    fn redraw(&mut self) {
        if self.printer.has_bars() {
            self.draw_at
                .get_or_insert_with(|| Instant::now() + DRAW_INTERVAL);
        }
    }

    /// Shows how far the maps are: as bars on a terminal, as a line now and then elsewhere.
    fn show_progress(&mut self) {
        let now = Instant::now();
        if !self.printer.has_bars() {
            for line in self.maps.poll_lines(now) {
                self.printer.say(&line);
            }
            return;
        }
        let shown = self.maps.shown();
        // Lines that were printed meanwhile took their place.
        if !shown.is_empty() && !self.printer.are_bars_drawn() {
            self.redraw();
        }
        if self.draw_at.is_some_and(|at| at <= now) {
            let is_drawn = self.printer.draw_bars(&shown);
            self.draw_at = (!is_drawn).then(|| now + DRAW_INTERVAL);
        }
    }

    fn handle_hello(&mut self, host: usize, version: u32) {
        if version != VERSION {
            let name = &self.links[host].host;
            let why = format!(
                "the mizzen command on {name} speaks version {version}, this one {VERSION}; \
                 install the same there, or give --agent-path."
            );
            return self.fail(host, why);
        }
        let link = &mut self.links[host];
        link.phase = Phase::Open;
        if let Some(start) = self.starts[host].take() {
            let fits = start.encode(link.stream.queue_secret());
            debug_assert!(fits.is_ok(), "it was encoded once before");
        }
        let early = std::mem::take(&mut link.early);
        link.stream.queue().extend(early);
        if self
            .links
            .iter()
            .all(|link| link.phase != Phase::Connecting)
        {
            self.deadline = None;
        }
    }

    fn handle_closed(&mut self, host: usize) {
        self.roll_calls.handle_called(host, None);
        let connecting = self.links[host].phase == Phase::Connecting;
        let why = self.links[host].close();
        let name = &self.links[host].host;
        let mut actions = vec![];
        if connecting {
            let sentence =
                format!("host {name} cannot be reached: {why}; check --hosts and --remote-shell.");
            actions = self.job.stop(Some(sentence), CANNOT_START);
        }
        actions.extend(self.job.handle_closed(host, why));
        if self.passes && host != ROOT {
            let to = u32::try_from(host).unwrap_or(u32::MAX);
            actions.push(Action::Tell(ROOT, ToAgent::NotPassed { to }));
        }
        self.act(actions);
        if self.job.is_stopping() {
            self.abandon_connecting();
        }
    }

    /// Ends the job because of what an agent is, or said.
    fn fail(&mut self, host: usize, why: String) {
        let actions = self.job.stop(Some(why), CANNOT_START);
        self.act(actions);
        self.abandon(host);
        self.abandon_connecting();
    }

    /// Hosts that have not answered have no processes to be waited for.
    fn abandon_connecting(&mut self) {
        if self.is_local() {
            return;
        }
        for host in 0..self.links.len() {
            if self.links[host].phase == Phase::Connecting {
                self.abandon(host);
            }
        }
    }

    /// The other launcher ends what is left there, whoever reads its output.
    fn abandon_far(&mut self) {
        for host in 0..self.links.len() {
            let link = &self.links[host];
            if link.is_far() && link.phase != Phase::Closed {
                self.abandon(host);
            }
        }
    }

    fn abandon(&mut self, host: usize) {
        self.roll_calls.handle_called(host, None);
        self.links[host].abandon();
        let actions = self.job.handle_closed(host, "it was given up".to_owned());
        self.act(actions);
    }

    fn enforce_deadline(&mut self) {
        let Some(deadline) = self.deadline else {
            return;
        };
        if Instant::now() < deadline {
            return;
        }
        self.deadline = None;
        if let Some(link) = self
            .links
            .iter()
            .find(|link| link.phase == Phase::Connecting)
        {
            let why = format!(
                "host {} did not answer within {} s; check that its remote shell logs in without asking.",
                link.host,
                START_TIMEOUT.as_secs()
            );
            let actions = self.job.stop(Some(why), CANNOT_START);
            self.act(actions);
            self.abandon_connecting();
        }
    }

    /// When the root must have been heard: it says with each beat that it lives. A job of one host has no beats.
    fn root_deadline(&self) -> Option<Instant> {
        let heard = self.root_heard.filter(|_| !self.job.is_stopping())?;
        heard.checked_add(self.pace.lease)
    }

    fn watch_root(&mut self) {
        let now = Instant::now();
        let Some(deadline) = self.root_deadline().filter(|deadline| *deadline <= now) else {
            return;
        };
        if now > deadline + self.pace.late() {
            // It was us who did not listen.
            self.root_heard = Some(now);
            return;
        }
        let actions = self.job.handle_root_silent();
        self.act(actions);
        // It may be there for ever without saying so.
        self.links[ROOT].abandon();
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Say(sentence) => self.say(&sentence),
                Action::Tell(host, frame) => self.tell(host, &frame),
                Action::Broadcast(frame) => {
                    for host in 0..self.links.len() {
                        self.tell(host, &frame);
                    }
                }
            }
        }
    }

    /// Tells the user, and that of the other half.
    fn say(&mut self, sentence: &str) {
        self.printer.say(sentence);
        if let Some(far) = &mut self.far {
            far.say(sentence);
        }
    }

    /// An agent that has not answered is told after it was told to start.
    fn tell(&mut self, host: usize, frame: &ToAgent) {
        let link = &mut self.links[host];
        let queue = match link.phase {
            Phase::Open => link.stream.queue(),
            Phase::Connecting => &mut link.early,
            Phase::Closed => return,
        };
        let fits = frame.encode(queue);
        debug_assert!(fits.is_ok(), "locators were limited when they came in");
    }

    /// The time, as machines count it.
    fn now(&self) -> Time {
        Time::default() + self.began.elapsed()
    }

    fn is_local(&self) -> bool {
        self.links.iter().all(Link::is_local)
    }
}

/// A job that nobody can ask is still a job.
fn open_door(door: std::io::Result<Door>) -> Option<Door> {
    door.inspect_err(|error| debug!(%error, "nobody can ask how the job is"))
        .ok()
}

/// What was decided, for those who want to know.
fn log_entry(entry: &Entry) {
    match entry {
        Entry::Ended { process, how } => {
            let (rank, incarnation) = (process.rank.0, process.incarnation.0);
            debug!(rank, incarnation, ?how, "process ended");
        }
        Entry::Left { process } => debug!(rank = process.rank.0, "process left the job"),
        Entry::Restarted { process, .. } => {
            debug!(rank = process.rank.0, "process is started again");
        }
        Entry::HostJoined { agent, .. } => debug!(host = agent.host.0, "agent joined"),
        Entry::HostEnded { agent, how } => debug!(host = agent.host.0, ?how, "agent is gone"),
        Entry::JobEnds(why) => debug!(?why, "the job ends"),
        Entry::Interrupted { signal } => debug!(signal, "the user interrupts"),
        Entry::Placed { .. } => {}
    }
}

/// The host whose agent is the root.
const ROOT: usize = 0;

/// How long all hosts together have to answer.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Output that waits to be printed before agents have to wait with theirs. [`OUTPUT_ROOM`] of each host, and the frame
/// that exceeds it, may come on top.
pub(super) const HIGH_WATER: usize = 4 << 20;

/// Between two drawings of the bars.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

/// How many signals that ask to end it takes until processes are ended even if they do not listen.
pub(super) const IMPATIENCE: u32 = 3;

/// The exit code when the job cannot be started.
const CANNOT_START: u8 = 1;

/// The exit code when nobody reads what is printed: as if killed by `SIGPIPE`.
const BROKEN_PIPE: u8 = 141;
