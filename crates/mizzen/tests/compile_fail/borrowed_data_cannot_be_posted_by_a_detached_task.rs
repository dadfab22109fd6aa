use core::future::Future;

use mizzen::{MailboxRef, Message};

/// What every async runtime asks of a task.
fn spawn<F: Future + Send + 'static>(_task: F) {}

fn send(to: MailboxRef) {
    let halo = vec![0.0f64; 4096];
    let mut message = Message::new();
    message.pack_cheaper(&halo[..]);
    spawn(async move { to.post(&mut message) });
}

fn main() {}
