//! One session, and a peer that is played by the test.

use mizzen_proto::session::{
    ConnectionId, Greeting, Output, Received, Session, SessionError, SessionFrame, SessionOptions,
    Stamp, Turn,
};
use mizzen_proto::time::Time;

use super::end::options;

pub(super) struct Lone {
    pub(super) session: Session,
    pub(super) now: Time,
}

pub(super) const C1: ConnectionId = ConnectionId(1);
pub(super) const C2: ConnectionId = ConnectionId(2);

impl Lone {
    pub(super) fn new() -> Self {
        Self::with(options(0, 1))
    }

    pub(super) fn with(options: SessionOptions) -> Self {
        let (session, now) = (Session::new(options), Time(0));
        Self { session, now }
    }

    /// One that was greeted by its peer over connection number 1.
    pub(super) fn open() -> Self {
        let mut lone = Self::new();
        lone.greet(C1, |_| {});
        lone
    }

    /// What the peer would say when it dials for the first time, if nothing was changed.
    pub(super) fn greeting(&self) -> Greeting {
        let options = self.session.options();
        Greeting {
            form: options.form,
            cluster: options.cluster,
            job: options.job,
            from: options.peer,
            to: options.local,
            connection: 1,
            received_through: options.first_number - 1,
            oldest_kept: options.first_number,
            window: options.window,
            turn: Turn::Ask,
            expected: Vec::new(),
        }
    }

    pub(super) fn greet(
        &mut self,
        connection: ConnectionId,
        change: impl FnOnce(&mut Greeting),
    ) -> Vec<Output> {
        let mut greeting = self.greeting();
        change(&mut greeting);
        self.session
            .handle_greeting(connection, &greeting, self.now);
        self.outputs()
    }

    pub(super) fn frame(
        &mut self,
        number: u64,
        received_through: u64,
    ) -> Result<Option<u64>, SessionError> {
        let stamp = Stamp {
            number,
            received_through,
        };
        let frame: &[u8] = if number == 0 { &[] } else { &[0x10, 1, 2, 3] };
        let bytes = [&stamp.to_bytes()[..], frame].concat();
        match self.session.handle_frame(C1, &bytes, self.now)? {
            Received::Nothing => Ok(None),
            Received::Frame { number, frame } => {
                assert_eq!(frame, [0x10, 1, 2, 3]);
                Ok(Some(number))
            }
            Received::Bye => panic!("no bye was sent"),
        }
    }

    pub(super) fn own(&mut self, frame: SessionFrame) -> Result<(), SessionError> {
        self.session
            .handle_frame(C1, &frame.to_vec(), self.now)
            .map(drop)
    }

    pub(super) fn keep(&mut self, count: usize) {
        for _ in 0..count {
            self.session.keep(100, self.now).unwrap();
        }
    }

    pub(super) fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.session.poll_output(self.now)).collect()
    }

    /// The numbers of frames among the outputs.
    pub(super) fn transmitted(&mut self) -> Vec<u64> {
        let number = |output: &Output| match output {
            Output::Transmit { stamp, .. } => Some(stamp.number),
            _ => None,
        };
        self.outputs().iter().filter_map(number).collect()
    }

    /// What was said to be received, alone, among the outputs.
    pub(super) fn acknowledged(&mut self) -> Vec<u64> {
        let through = |output: &Output| match output {
            Output::Send {
                frame: SessionFrame::Acknowledge(stamp),
                ..
            } => Some(stamp.received_through),
            _ => None,
        };
        self.outputs().iter().filter_map(through).collect()
    }

    pub(super) fn sleep(&mut self) {
        self.now = self.session.next_timeout().expect("something to wait for");
        self.session.handle_timeout(self.now);
    }
}

pub(super) fn refusal(outputs: &[Output]) -> Option<mizzen_proto::session::Refusal> {
    outputs.iter().find_map(|output| match output {
        Output::Send {
            frame: SessionFrame::Refusal(refusal),
            ..
        } => Some(*refusal),
        _ => None,
    })
}
