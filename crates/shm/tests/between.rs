//! What only shows between mappings and processes: wake-ups through read-only memory, and descriptors that stay behind.
//!
//! The count of descriptors is the whole process's, so the tests of this file take turns.

#![allow(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use mizzen_shm::{Access, Fault, MAX_FDS, ProcessFd, Segment, Socket, View, futex};

static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|e| e.into_inner())
}

fn word(start: std::ptr::NonNull<u8>) -> &'static AtomicU32 {
    // SAFETY: tests pass the first byte of a mapping (page-aligned, at least a page) that they keep to their end.
    unsafe { start.cast().as_ref() }
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// A segment and its view, which went through a socket.
fn passed_segment(socket: &(Socket, Socket)) -> (Segment, View) {
    let segment = Segment::create("between", 8192, Fault::Now).unwrap();
    socket.0.send(b"segment", &[segment.fd()]).unwrap();
    let mut received = socket.1.recv(&mut [0; 64]).unwrap();
    let fd = received.fds.pop().unwrap();
    let view = View::attach(fd, 8192, Access::ReadOnly, Fault::Now).unwrap();
    (segment, view)
}

#[test]
fn a_reader_wakes_the_maker_through_memory_it_may_not_write() {
    let _turn = turn();
    let (segment, view) = passed_segment(&Socket::pair().unwrap());
    let (own, peer) = (word(segment.as_ptr()), word(view.as_ptr()));
    assert!(!std::ptr::eq(own, peer), "two mappings");
    std::thread::scope(|s| {
        let sleeper = s.spawn(|| futex::wait(own, 0, Some(Duration::from_secs(20))));
        while futex::wake(peer, 1) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(sleeper.join().unwrap(), futex::Wait::Woken);
    });
}

#[test]
fn a_maker_wakes_a_reader_that_sleeps_on_read_only_memory() {
    let _turn = turn();
    let (segment, view) = passed_segment(&Socket::pair().unwrap());
    let (own, peer) = (word(segment.as_ptr()), word(view.as_ptr()));
    std::thread::scope(|s| {
        let sleeper = s.spawn(|| {
            while peer.load(Ordering::Acquire) == 0 {
                assert_ne!(
                    futex::wait(peer, 0, Some(Duration::from_secs(20))),
                    futex::Wait::TimedOut
                );
            }
        });
        own.store(1, Ordering::Release);
        futex::wake(own, 1);
        sleeper.join().unwrap();
    });
}

#[test]
fn nothing_stays_open() {
    let _turn = turn();
    let before = open_descriptors();
    for _ in 0..20 {
        let pair = Socket::pair().unwrap();
        let (segment, view) = passed_segment(&pair);
        let refused = View::attach(
            segment.fd().try_clone_to_owned().unwrap(),
            4096,
            Access::ReadOnly,
            Fault::Now,
        );
        assert!(refused.is_err());
        assert!(ProcessFd::from_fd(segment.fd().try_clone_to_owned().unwrap()).is_err());
        assert!(Socket::from_fd(segment.fd().try_clone_to_owned().unwrap()).is_err());
        let process = ProcessFd::open(std::process::id()).unwrap();
        pair.0
            .send(b"too small a buffer", &[process.as_fd()])
            .unwrap();
        assert!(pair.1.recv(&mut [0; 4]).is_err());
        let many: Vec<OwnedFd> = (0..MAX_FDS + 2).map(|_| view_fd(&segment)).collect();
        send_raw(&pair.0, &many);
        assert!(pair.1.recv(&mut [0; 64]).is_err());
        // Packets that nobody reads close their descriptors with the socket.
        pair.0
            .send(b"unread", &[segment.fd(), process.as_fd()])
            .unwrap();
        let kept = segment.into_view();
        assert_eq!(kept.len(), view.len());
    }
    assert_eq!(open_descriptors(), before);
}

fn view_fd(segment: &Segment) -> OwnedFd {
    segment.fd().try_clone_to_owned().unwrap()
}

fn send_raw(socket: &Socket, fds: &[OwnedFd]) {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    let bytes = [std::io::IoSlice::new(b"many")];
    sendmsg(socket, &bytes, &mut control, SendFlags::NOSIGNAL).unwrap();
}
