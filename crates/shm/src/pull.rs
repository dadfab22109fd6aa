//! Reading the memory of another process: one copy by the kernel, where it allows it.
//!
//! The kernel asks whether this process might trace the other: same user, same or an outer container, and whatever else it is
//! configured to ask. A number of a process is reused; so whoever reads also reads a word that only the right process has there, in the same call.
#![allow(unsafe_code)]

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this process was forked from one that has a proof.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// A word of this process, by which others know that they read its memory, and its address. None in a process that was forked from one
/// that has such a word: both would have the same. (One that was made by a bare `clone` is not seen to be forked. It has no links of its own.)
#[must_use]
pub fn proof() -> Option<(u64, u64)> {
    static PROOF: OnceLock<Option<u64>> = OnceLock::new();
    // Set by the only thread of a forked process, before it gets here. What another thread was about to make is never made there.
    if IS_FORKED.load(Ordering::Relaxed) {
        return None;
    }
    // Seeded by the system, and different in each process.
    let word = || watch_forks().then(|| RandomState::new().hash_one(std::process::id()));
    let proof = PROOF.get_or_init(word).as_ref()?;
    let at = core::ptr::from_ref(proof).expose_provenance() as u64;
    Some((at, *proof))
}

/// Has it noted in each process that is forked from here. That costs nothing until then; to ask for the number of this process is a system
/// call each time.
fn watch_forks() -> bool {
    extern "C" fn forked() {
        IS_FORKED.store(true, Ordering::Relaxed);
    }
    // SAFETY: the function stays where it is, and only stores to memory that the forked process has too.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) == 0 }
}

/// Fills `target` from the memory of process `pid` at address `at`, if that process has the word `proof` at `proof_at`. `false`: it has
/// not, or the kernel refuses; some of `target` may have been written.
///
/// What is read may change meanwhile: whoever reads must know that it did not.
#[must_use]
pub fn read_memory(pid: u32, at: u64, target: &mut [u8], (proof_at, proof): (u64, u64)) -> bool {
    let mut proved = [0; 8];
    let len = target.len();
    let mine = [
        libc::iovec {
            iov_base: target.as_mut_ptr().cast(),
            iov_len: len,
        },
        libc::iovec {
            iov_base: proved.as_mut_ptr().cast(),
            iov_len: proved.len(),
        },
    ];
    let part = |at: u64, len| libc::iovec {
        iov_base: core::ptr::without_provenance_mut(at as usize),
        iov_len: len,
    };
    let theirs = [part(at, len), part(proof_at, proved.len())];
    // SAFETY: the kernel writes at most `len` bytes of `target` and those of `proved`, which are borrowed until it returns. Addresses of
    // another process are only looked up there, and lead to an error if nothing is at them.
    let read = unsafe {
        libc::process_vm_readv(
            pid as libc::pid_t,
            mine.as_ptr(),
            mine.len() as libc::c_ulong,
            theirs.as_ptr(),
            theirs.len() as libc::c_ulong,
            0,
        )
    };
    usize::try_from(read) == Ok(len + proved.len()) && u64::from_ne_bytes(proved) == proof
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_process_has_no_proof() {
        let mine = proof();
        assert!(mine.is_some());
        // SAFETY: the child does nothing that needs another thread, or memory of the allocator.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "no process could be forked");
        if child == 0 {
            let code = i32::from(proof().is_some());
            // SAFETY: it ends the child, without what the parent would do at its end.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: the kernel writes one number, which is borrowed until it returns.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0), "the child had a proof");
        assert_eq!(proof(), mine);
    }

    #[test]
    fn memory_is_read_with_the_right_proof_and_address_only() {
        let source: Vec<u8> = (0..100_000u32).map(|at| at as u8).collect();
        let (me, at) = (
            std::process::id(),
            source.as_ptr().expose_provenance() as u64,
        );
        let mut target = vec![0; source.len()];
        let (proof_at, word) = proof().expect("it was not forked");
        if !read_memory(me, at, &mut target, (proof_at, word)) {
            // A sandbox may refuse.
            return;
        }
        assert!(target == source);
        assert!(!read_memory(me, at, &mut target, (proof_at, word ^ 1)));
        assert!(!read_memory(me, at, &mut target, (8, word)));
        assert!(!read_memory(me, 8, &mut target, (proof_at, word)));
        // The highest number that a process can have is far below.
        assert!(!read_memory(
            i32::MAX as u32,
            at,
            &mut target,
            (proof_at, word)
        ));
    }
}
