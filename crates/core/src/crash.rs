//! Named steps at which a test may kill this process. They cost nothing unless the feature `crash-points` is on.

/// Every step, for tests that visit them all.
#[cfg(feature = "crash-points")]
pub const POINTS: &[&str] = &[
    "attach.introduced",
    "attach.made",
    "attach.hello",
    "attach.mapped",
    "attach.linked",
    "sender.open.made",
    "sender.open.answered",
    "receiver.open.claimed",
    "receiver.open.added",
    "lend.show",
    "lane.publish.before",
    "lane.publish.payload",
    "lane.publish.after",
    "lane.bytes.before",
    "lane.bytes.after",
    "lane.consume.seen",
    "lane.consume.copied",
    "lane.consume.advanced",
    "lane.release",
    "sender.drop",
    "mailbox.drop",
    "leave",
];

#[cfg(feature = "crash-points")]
pub use armed::arm;
#[cfg(feature = "crash-points")]
pub(crate) use armed::{hook_lanes, point};

#[cfg(not(feature = "crash-points"))]
pub(crate) fn hook_lanes() {}

/// A step of the protocol.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub(crate) fn point(_name: &'static str) {}

#[cfg(feature = "crash-points")]
mod armed {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    static ARMED: AtomicBool = AtomicBool::new(false);
    static PLAN: Mutex<Option<(String, u32)>> = Mutex::new(None);

    /// Has this process killed when it reaches the named step for the `visit`-th time, counted from 1.
    pub fn arm(name: &str, visit: u32) {
        *PLAN
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some((name.to_owned(), visit));
        ARMED.store(true, Ordering::Release);
    }

    /// Has the steps of lanes come here too.
    pub(crate) fn hook_lanes() {
        mizzen_lane::set_step_hook(point);
    }

    pub(crate) fn point(name: &'static str) {
        if !ARMED.load(Ordering::Acquire) {
            return;
        }
        let mut plan = PLAN
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some((_, left)) = plan.as_mut().filter(|(wanted, _)| wanted == name) else {
            return;
        };
        *left -= 1;
        if *left == 0 {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
    }
}
