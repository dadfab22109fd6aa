//! What drives the names: this host's part of the registry, by what the membership says at each moment.

use mizzen_proto::id::ProcessId;
use mizzen_proto::membership::{AgentId, HostId, Spoken};
use mizzen_proto::registry::{Action, Frame, Question, Registry, Seen};

use super::{Command, Control};
use crate::clock;

impl Control {
    /// A process of this host asks.
    pub(crate) fn handle_question(&mut self, process: ProcessId, question: Question) {
        let seen = Seen::of(&self.agent, clock::now());
        self.names.handle_question(process, question, seen);
    }

    /// A process of this host wants no answers any more.
    pub(super) fn forget_questions(&mut self, process: ProcessId) {
        let seen = Seen::of(&self.agent, clock::now());
        self.names.handle_gone(process, seen);
    }

    /// Another agent says something about names. It speaks for itself only.
    pub(super) fn hear_of_names(&mut self, from: AgentId, frame: &[u8]) {
        let Ok(frame) = Frame::decode(frame) else {
            return;
        };
        if frame.from == from {
            let seen = Seen::of(&self.agent, clock::now());
            self.names.handle_frame(frame, seen);
        }
    }

    /// Lets the registry know who is here now and what time it is, and does what it wants.
    pub(super) fn pump_names(&mut self) {
        let now = clock::now();
        let seen = Seen::of(&self.agent, now);
        self.names.handle_members(seen);
        let is_due = |names: &Registry| names.next_wakeup().is_some_and(|due| due <= now);
        if is_due(&self.names) {
            self.names.handle_tick(seen);
        }
        while let Some(action) = self.names.poll_action() {
            match action {
                Action::Send(frame) => self.send_of_names(frame.to.host, &frame),
                Action::Answer(process, answer) => {
                    self.commands.push_back(Command::Answer(process, answer));
                }
            }
        }
    }

    fn send_of_names(&mut self, host: HostId, frame: &Frame) {
        let mut bytes = Vec::new();
        let encoded = frame.encode(&mut bytes);
        debug_assert!(encoded.is_ok(), "names have a limit, and handovers too");
        let spoken = Spoken::Names(bytes);
        if self.net.as_ref().is_some_and(|net| net.is_linked(host)) {
            self.send(host, spoken);
        } else {
            self.dial(host, vec![spoken]);
        }
    }
}
