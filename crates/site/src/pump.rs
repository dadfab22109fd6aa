//! Passing bytes, both ways, until both ends have said all or one of them is gone.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Bytes that went out of this site, and came in.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(crate) out: AtomicU64,
    pub(crate) back: AtomicU64,
}

/// Passes bytes between `inside` and `outside`. Returns when both directions have ended.
pub(crate) fn pass(inside: &TcpStream, outside: &TcpStream, passed: &Passed) {
    for end in [inside, outside] {
        let _ = end.set_read_timeout(None);
        let _ = end.set_write_timeout(None);
        // What is small is waited for.
        let _ = end.set_nodelay(true);
    }
    thread::scope(|scope| {
        let back = thread::Builder::new().name("pass".into()).stack_size(STACK);
        let back = back.spawn_scoped(scope, || one_way(outside, inside, &passed.back));
        match back {
            Ok(_) => one_way(inside, outside, &passed.out),
            // Without a thread there is no connection.
            Err(_) => end(inside, outside),
        }
    });
}

fn one_way(mut from: &TcpStream, mut to: &TcpStream, count: &AtomicU64) {
    let mut buffer = vec![0; PIECE];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => {
                // This direction only: the other end may have more to say.
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Ok(len) => {
                if to.write_all(&buffer[..len]).is_err() {
                    return end(from, to);
                }
                count.fetch_add(len as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return end(from, to),
        }
    }
}

fn end(one: &TcpStream, other: &TcpStream) {
    let _ = one.shutdown(Shutdown::Both);
    let _ = other.shutdown(Shutdown::Both);
}

/// Bytes taken at a time.
const PIECE: usize = 128 << 10;
/// Of a thread that only passes bytes on.
pub(crate) const STACK: usize = 128 << 10;
