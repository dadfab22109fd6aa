//! The wish for a circuit that is not there yet.

use std::io::ErrorKind;
use std::time::Duration;

use mizzen_driver::ConnectFailure;
use mizzen_proto::membership::HostId;
use mizzen_proto::time::Time;

/// A process is asked for a circuit.
pub(super) struct Dial {
    pub(super) host: HostId,
    pub(super) circuit: u64,
    pub(super) again: Time,
    pub(super) tries: u64,
    /// Whether somebody answered who did not prove to be who was meant.
    pub(super) is_refused: bool,
    /// When it was wished.
    pub(super) since: Time,
    wait: Duration,
    /// Whether gateways knew no way, the last time they were asked.
    has_no_way: bool,
    /// How often they knew none.
    no_ways: u32,
}

impl Dial {
    /// From now on.
    pub(super) fn new(host: HostId, circuit: u64, now: Time) -> Self {
        Self {
            host,
            circuit,
            again: now,
            tries: 0,
            is_refused: false,
            since: now,
            wait: FIRST_AGAIN,
            has_no_way: false,
            no_ways: 0,
        }
    }

    /// The same wish for another circuit, after what was there came to nothing.
    pub(super) fn anew(self, circuit: u64, now: Time) -> Self {
        let again = now + self.wait;
        Self {
            circuit,
            again,
            has_no_way: false,
            ..self
        }
    }

    /// The process is asked now: how long to wait for an answer, and then longer. There may be a way by now.
    pub(super) fn ask(&mut self, now: Time) {
        self.has_no_way = false;
        self.again = now + self.wait;
        self.wait = (self.wait * 2).min(LAST_AGAIN);
        self.tries += 1;
    }

    /// Gateways know no way to it.
    pub(super) fn handle_no_way(&mut self) {
        if !self.has_no_way {
            self.has_no_way = true;
            self.no_ways += 1;
        }
    }

    /// Whether a circuit that the other end dials meanwhile will do, although ours was to win: gateways know no way to where we look
    /// for it, or it would have answered long ago.
    pub(super) fn gives_way(&self, now: Time) -> bool {
        let is_unanswered = self.tries > QUESTIONS && now.since(self.since) >= PREFERRED;
        self.has_no_way || is_unanswered
    }

    /// Why it is given up, if it is time for that.
    pub(super) fn failure(&self, now: Time) -> Option<ConnectFailure> {
        let since = now.since(self.since);
        if self.has_no_way && self.no_ways >= NO_WAYS && since >= NO_WAY {
            return Some(ConnectFailure::Unreachable(ErrorKind::HostUnreachable));
        }
        if since < PATIENCE {
            return None;
        }
        Some(match self.has_no_way {
            true => ConnectFailure::Unreachable(ErrorKind::HostUnreachable),
            false if self.is_refused => ConnectFailure::Rejected,
            false => ConnectFailure::TimedOut,
        })
    }
}

/// How soon a process is asked again for a circuit, and how late.
const FIRST_AGAIN: Duration = Duration::from_millis(50);
const LAST_AGAIN: Duration = Duration::from_millis(500);
/// After so many questions, and so long, a process that has not answered is believed not to be where it is looked for. Each end asks in
/// the same rhythm, and a gateway passes on the newest word only: that there is no way may be replaced by the other's question each
/// time. Questions alone say little, since all gateways that are met are asked at once; nor does time alone, of a process without cores.
const QUESTIONS: u64 = 3;
const PREFERRED: Duration = Duration::from_millis(300);
/// How long a process is asked for a circuit.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How long, if gateways know no way to it; and how often they must have said so. Gateways that have just begun do not know all ways
/// yet, and a process that lost its cores meanwhile has not asked for long, whatever the clock says.
const NO_WAY: Duration = Duration::from_secs(1);
const NO_WAYS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time(millis * 1_000_000)
    }

    /// Asks whenever it is time, and each time hears at once that there is no way.
    fn ask_in_vain(dial: &mut Dial, from: u64, to: u64) {
        for now in (from..to).map(at) {
            if dial.again <= now {
                dial.ask(now);
                dial.handle_no_way();
            }
        }
    }

    #[test]
    fn where_there_is_no_way_a_second_is_enough() {
        let mut dial = Dial::new(HostId(7), 1, at(0));
        ask_in_vain(&mut dial, 0, 1_000);
        assert_eq!(dial.failure(at(999)), None);
        let unreachable = ConnectFailure::Unreachable(ErrorKind::HostUnreachable);
        assert_eq!(dial.failure(at(1_000)), Some(unreachable));
    }

    #[test]
    fn who_lost_its_cores_for_a_second_has_not_asked_for_as_long() {
        let mut dial = Dial::new(HostId(7), 1, at(0));
        ask_in_vain(&mut dial, 0, 1);
        assert_eq!(dial.failure(at(1_500)), None);
        ask_in_vain(&mut dial, 1_500, 3_000);
        assert!(dial.failure(at(3_000)).is_some());
    }

    #[test]
    fn who_is_not_answered_gives_way_in_the_end() {
        let mut dial = Dial::new(HostId(7), 1, at(0));
        (0..QUESTIONS).for_each(|_| dial.ask(at(0)));
        assert!(!dial.gives_way(at(1_000)), "it has hardly asked");
        dial.ask(at(50));
        assert!(!dial.gives_way(at(299)), "it has not waited");
        assert!(dial.gives_way(at(300)));
        let mut dial = Dial::new(HostId(7), 1, at(0));
        dial.ask(at(0));
        dial.handle_no_way();
        assert!(dial.gives_way(at(1)));
    }

    #[test]
    fn nobody_is_asked_for_ever() {
        let mut dial = Dial::new(HostId(7), 1, at(0));
        dial.ask(at(0));
        assert_eq!(dial.failure(at(4_999)), None);
        assert_eq!(dial.failure(at(5_000)), Some(ConnectFailure::TimedOut));
    }
}
