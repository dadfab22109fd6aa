//! Copies through memory that two cores share: the ring of a lane, the chunks of a stream.
//!
//! A line that the other core has read has to be taken from it before it can be written. Stores are carried out in order, so a
//! copy stops at each such line, unless the lines are asked for ahead of it, for writing. Stores of 32
//! bytes, because those of 64 make some processors slower than the wait that they save; none of them across two lines, because
//! such a store takes both. What it gains: docs/design/copies-between-cores.md.
#![allow(unsafe_code)]

use core::ptr::NonNull;

/// Copies `source` to `target`, whose lines another core has read, and will read again. The copy after this one will go to `next`: its
/// first lines are asked for towards the end of this one. There need be no memory at `next`.
///
/// # Safety
///
/// `source.len()` bytes from `target` on can be written, and `source` is not among them.
#[inline]
pub(crate) unsafe fn copy_for_another_core(target: NonNull<u8>, source: &[u8], next: *const u8) {
    #[cfg(target_arch = "x86_64")]
    if source.len() >= x86::LEAST && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: as the caller promised; the instructions are there.
        unsafe { x86::copy_claiming(target.as_ptr(), source.as_ptr(), source.len(), next) };
        return;
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = next;
    // SAFETY: as the caller promised.
    unsafe { target.copy_from_nonoverlapping(NonNull::from(source).cast(), source.len()) }
}

/// Copies from `source`, which another core has written, to `target`.
///
/// # Safety
///
/// `target.len()` bytes from `source` on can be read, and are not written meanwhile by this process.
#[inline]
pub(crate) unsafe fn copy_from_another_core(source: NonNull<u8>, target: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if target.len() >= x86::LEAST && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: as the caller promised; `target` is a Rust reference, so it does not overlap memory that nobody may hold
        // references to. The instructions are there.
        unsafe {
            x86::copy(target.as_mut_ptr(), source.as_ptr(), target.len());
        }
        return;
    }
    // SAFETY: as the caller promised.
    unsafe { source.copy_to_nonoverlapping(NonNull::from(&mut *target).cast(), target.len()) }
}

/// Asks for the lines of the `len` bytes at `at`, which this thread will write next and another core has read. Those of longer messages are
/// asked for while they are copied. There need be no memory at `at`.
#[inline]
pub(crate) fn claim(at: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if len < x86::LEAST {
        for line in (0..len).step_by(x86::LINE) {
            x86::claim(at.wrapping_add(line));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, len);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::asm;
    use core::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256};

    /// From how many bytes on it makes a difference.
    pub(super) const LEAST: usize = 2 << 10;
    /// From how many bytes on stores begin where a line does. What was stored otherwise than it is loaded soon after, as by who echoes a
    /// short message, is waited for.
    const ALIGNED: usize = 8 << 10;
    /// How far ahead lines are asked for. From 1,024 on it hardly matters.
    const AHEAD: usize = 4096;
    pub(super) const LINE: usize = 64;
    /// Bytes of one turn of the loop: two lines.
    const TURN: usize = 2 * LINE;

    /// Copies `len` bytes. The lines that it writes are asked for ahead, and behind its end those at `next`.
    ///
    /// # Safety
    ///
    /// As for [`copy_turns`].
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn copy_claiming(
        target: *mut u8,
        source: *const u8,
        len: usize,
        next: *const u8,
    ) {
        let inside = len.saturating_sub(AHEAD) / TURN * TURN;
        let ahead = target.cast_const().wrapping_add(AHEAD);
        // What is asked for next begins where what was asked for ends.
        let beyond = next.wrapping_add((inside + AHEAD).saturating_sub(len));
        // SAFETY: two parts of what the caller promised.
        unsafe {
            copy_turns(target, source, inside, |at| {
                claim_turn(ahead.wrapping_add(at))
            });
            copy_turns(target.add(inside), source.add(inside), len - inside, |at| {
                claim_turn(beyond.wrapping_add(at))
            });
        }
    }

    /// Copies `len` bytes, many of them by stores that begin where a line does. The memory that an allocator gives does not: the C
    /// library's begins 16 bytes behind one. The first and the last turn are copied apart, and overlap the others.
    ///
    /// # Safety
    ///
    /// As for [`copy_turns`].
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn copy(target: *mut u8, source: *const u8, len: usize) {
        if len < ALIGNED {
            // SAFETY: as the caller promised.
            return unsafe { copy_turns(target, source, len, |_| ()) };
        }
        let before = target.align_offset(LINE) % LINE;
        let (last, aligned) = (len - TURN, (len - before) / TURN * TURN);
        // SAFETY: parts of what the caller promised, because a turn and a line are shorter than `ALIGNED`.
        unsafe {
            copy_turns(target, source, TURN, |_| ());
            copy_turns(target.add(before), source.add(before), aligned, |_| ());
            copy_turns(target.add(last), source.add(last), TURN, |_| ());
        }
    }

    /// Copies `len` bytes, and calls `before` with the place of each turn.
    ///
    /// # Safety
    ///
    /// The processor has AVX2. `len` bytes can be read from `source` on and written from `target` on, and do not overlap.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn copy_turns(target: *mut u8, source: *const u8, len: usize, before: impl Fn(usize)) {
        let whole = len / TURN * TURN;
        let mut at = 0;
        while at < whole {
            before(at);
            // SAFETY: the turn ends before `whole`, so it lies inside what the caller promised of both. No closure: it would not
            // have this function's instructions.
            unsafe {
                let from: *const __m256i = source.add(at).cast();
                let to: *mut __m256i = target.add(at).cast();
                let first = _mm256_loadu_si256(from);
                let second = _mm256_loadu_si256(from.add(1));
                let third = _mm256_loadu_si256(from.add(2));
                let fourth = _mm256_loadu_si256(from.add(3));
                _mm256_storeu_si256(to, first);
                _mm256_storeu_si256(to.add(1), second);
                _mm256_storeu_si256(to.add(2), third);
                _mm256_storeu_si256(to.add(3), fourth);
            }
            at += TURN;
        }
        // SAFETY: the rest of what the caller promised.
        unsafe {
            target
                .add(whole)
                .copy_from_nonoverlapping(source.add(whole), len - whole);
        }
    }

    #[inline(always)]
    fn claim_turn(at: *const u8) {
        claim(at);
        claim(at.wrapping_add(LINE));
    }

    /// Asks for the line at `at`, to write to it. The processor leaves it if there is no such memory.
    #[inline(always)]
    pub(super) fn claim(at: *const u8) {
        // SAFETY: a hint: it changes no memory and no register, and raises no fault whatever the address is. Processors that do
        // not know it do nothing.
        unsafe { asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies every length around the limits, to and from odd places, and nothing beyond.
    fn check(copy: impl Fn(&mut [u8], &[u8])) {
        let source: Vec<u8> = (0..40_000u32).map(|at| (at * 7 + at / 256) as u8).collect();
        for len in [1, 1 << 10, 2 << 10, 4 << 10, 32 << 10]
            .into_iter()
            .flat_map(|limit| [0, 1, 63, 64, 127, 128, 129, 255].map(|more| limit + more))
        {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (3, 61)] {
                let mut target = vec![0xee; to + len + 8192];
                copy(&mut target[to..to + len], &source[from..from + len]);
                assert!(target[..to].iter().all(|byte| *byte == 0xee));
                assert!(
                    target[to..to + len] == source[from..from + len],
                    "{len} bytes"
                );
                assert!(
                    target[to + len..].iter().all(|byte| *byte == 0xee),
                    "beyond {len} bytes"
                );
            }
        }
    }

    #[test]
    fn both_ways_copy_what_they_should_and_nothing_else() {
        // SAFETY: the targets are as long as the sources, and lie elsewhere.
        check(|target, source| unsafe {
            let next = target.as_ptr_range().end;
            copy_for_another_core(NonNull::from(target).cast(), source, next);
        });
        // SAFETY: as above.
        check(|target, source| unsafe {
            copy_from_another_core(NonNull::from(source).cast(), target);
        });
    }
}
