//! Who comes to one of the doors.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::live::{Stranger, Strangers};
use crate::pump::STACK;
use crate::state::State;

/// Takes in who comes, each in a thread.
pub(crate) fn accept(
    state: &Arc<State>,
    listener: &TcpListener,
    strangers: &Arc<Strangers>,
    name: &str,
    serve: impl Fn(Arc<State>, TcpStream, Stranger) + Clone + Send + 'static,
) {
    while !state.has_ended() {
        let changes = state.changes();
        let Ok((socket, from)) = listener.accept() else {
            // No descriptor left, or the end.
            state.sleep(changes, Duration::from_millis(50));
            continue;
        };
        let Ok(end) = socket.try_clone() else {
            continue;
        };
        let stranger = strangers.add(end, from.ip());
        let (state, serve) = (Arc::clone(state), serve.clone());
        // Without a thread it is closed.
        let thread = thread::Builder::new()
            .name(name.into())
            .stack_size(4 * STACK);
        let _ = thread.spawn(move || serve(state, socket, stranger));
    }
}
