//! Named steps of sending and receiving, at which a test may intervene. They cost nothing unless the feature `steps` is on.

#[cfg(feature = "steps")]
pub use hooked::set_step_hook;
#[cfg(feature = "steps")]
pub(crate) use hooked::step;

/// A step of a lane.
#[cfg(not(feature = "steps"))]
#[inline(always)]
pub(crate) fn step(_name: &'static str) {}

#[cfg(feature = "steps")]
mod hooked {
    use std::sync::OnceLock;

    static HOOK: OnceLock<fn(&'static str)> = OnceLock::new();

    /// Calls `hook` at every step of every lane of this process. Only the first hook counts.
    pub fn set_step_hook(hook: fn(&'static str)) {
        let _ = HOOK.set(hook);
    }

    pub(crate) fn step(name: &'static str) {
        if let Some(hook) = HOOK.get() {
            hook(name);
        }
    }
}
