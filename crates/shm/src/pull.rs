//! Reading the memory of another process: one copy by the kernel, where it allows it.
//!
//! The kernel asks whether this process might trace the other: same user, same or an outer container, and whatever else it is
//! configured to ask. A number of a process is reused; so whoever reads also reads a word that only the right process has there, in the same call.
#![allow(unsafe_code)]

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// A word of this process, by which others know that they read its memory, and its address. None in a process that was forked from one
/// that has such a word: both would have the same.
#[must_use]
pub fn proof() -> Option<(u64, u64)> {
    static PROOF: OnceLock<(u64, u32)> = OnceLock::new();
    let me = std::process::id();
    // Seeded by the system, and different in each process.
    let (proof, whose) = PROOF.get_or_init(|| (RandomState::new().hash_one(me), me));
    let at = core::ptr::from_ref(proof).expose_provenance() as u64;
    (*whose == me).then_some((at, *proof))
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
