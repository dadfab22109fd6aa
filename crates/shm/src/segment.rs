//! Segments: memory that one process makes and others map.
//!
//! A segment is a memfd, so it has no name and dies with its last holder. The kernel is asked to keep every
//! promise that a reader relies on, before the descriptor leaves the process:
//!
//! | promise | kept by | without it |
//! | --- | --- | --- |
//! | the memory exists | `fallocate`, then no seal lets a page go | SIGBUS later, instead of an error now |
//! | or will | [`Fault::Sparse`], where the kernel refuses no page | |
//! | it never gets smaller or larger | `F_SEAL_SHRINK`, `F_SEAL_GROW` | SIGBUS in whoever maps it |
//! | only its maker writes | `F_SEAL_FUTURE_WRITE`, after the maker mapped it | a reader could damage data of others |
//! | none of this changes | `F_SEAL_SEAL` | |
//!
//! [`View::attach`] checks all of them before it maps anything. It sees that the memory exists by the blocks that the
//! kernel counts for the file: `fallocate` by the reader would be charged to the wrong process, and is forbidden where only
//! the maker writes. A page that is missing after all, in a segment that every peer may write and punch holes
//! into, is filled with zeros by the kernel when it is touched, as long as the host has memory.
//!
//! A sparse segment has no memory before it is touched. A host out of memory then ends a process, as for any other memory. Only
//! a kernel that counts what it has promised (`vm.overcommit_memory` 2) refuses a page, with SIGBUS: there, nothing is sparse.

#![allow(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;

use rustix::fs::{FallocateFlags, FileType, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// The largest segment made or attached: twice the largest single message (1 GiB), so that its arena fits.
pub const MAX_SEGMENT: usize = 1 << 31;

/// When the pages of a mapping are entered in the page table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// While mapping: no page fault on the message path. For rings.
    Now,
    /// At the first touch of each page: mapping costs the same for any size. For large arenas.
    OnTouch,
    /// The same, and the page has no memory before that either. For what most holders never use.
    Sparse,
}

impl Fault {
    /// Whether memory may come when it is touched.
    fn is_sparse(self) -> bool {
        self == Self::Sparse && !counts_promises()
    }
}

/// Whether the kernel may refuse a page of a segment when it is touched. One that does not say so may.
fn counts_promises() -> bool {
    static COUNTS: OnceLock<bool> = OnceLock::new();
    *COUNTS.get_or_init(|| {
        let mode = std::fs::read_to_string("/proc/sys/vm/overcommit_memory");
        !mode.is_ok_and(|mode| matches!(mode.trim(), "0" | "1"))
    })
}

/// What an attached view may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Loads only. The segment must be sealed against writing by others ([`Segment::create`]).
    ReadOnly,
    /// Loads and stores. The segment must have been made with [`Segment::create_open`].
    ReadWrite,
}

/// Memory made by this process, mapped for reading and writing, to be passed to others by descriptor.
///
/// Its memory starts as zeros. It is reached through [`as_ptr`](Self::as_ptr) alone: other processes read it at any
/// time, so only atomic or volatile accesses may be made where they look.
#[derive(Debug)]
pub struct Segment {
    fd: OwnedFd,
    mapping: Mapping,
}

impl Segment {
    /// Makes a segment that only this process can ever write.
    ///
    /// `label` is what `/proc/<pid>/maps` shows; it does not name or find the segment.
    ///
    /// # Errors
    ///
    /// See [`SegmentError`]. Nothing is left behind.
    pub fn create(label: &str, bytes: usize, fault: Fault) -> Result<Self, SegmentError> {
        Self::create_sealed(label, bytes, fault, PRIVATE_SEALS)
    }

    /// Makes a segment that everyone who gets the descriptor may write, such as a doorbell or a hint.
    ///
    /// # Errors
    ///
    /// See [`SegmentError`]. Nothing is left behind.
    pub fn create_open(label: &str, bytes: usize, fault: Fault) -> Result<Self, SegmentError> {
        Self::create_sealed(label, bytes, fault, OPEN_SEALS)
    }

    /// Gives up the descriptor and keeps the memory: for a segment that has been passed to all who need it.
    ///
    /// A process with thousands of lanes would run out of descriptors otherwise.
    #[must_use]
    pub fn into_view(self) -> View {
        View {
            mapping: self.mapping,
            access: Access::ReadWrite,
        }
    }

    /// The memory and the descriptor apart: for a segment that one other process needs, which gets the descriptor.
    #[must_use]
    pub fn into_parts(self) -> (View, OwnedFd) {
        let view = View {
            mapping: self.mapping,
            access: Access::ReadWrite,
        };
        (view, self.fd)
    }

    /// The first byte. Valid for [`len`](Self::len) bytes as long as the segment lives.
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.mapping.start
    }

    /// How many bytes there are.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a segment of no bytes cannot be made"
    )]
    pub fn len(&self) -> usize {
        self.mapping.bytes
    }

    /// The descriptor to pass to others.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn create_sealed(
        label: &str,
        bytes: usize,
        fault: Fault,
        seals: SealFlags,
    ) -> Result<Self, SegmentError> {
        if bytes == 0 || bytes > MAX_SEGMENT {
            return Err(SegmentError::Size { bytes });
        }
        let fd = memfd(label)?;
        rustix::fs::ftruncate(&fd, bytes as u64).map_err(|e| SegmentError::from_errno(e, bytes))?;
        if !fault.is_sparse() {
            // A signal may interrupt the allocation of a large segment; it starts again where it stopped.
            rustix::io::retry_on_intr(|| {
                rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, bytes as u64)
            })
            .map_err(|e| SegmentError::from_errno(e, bytes))?;
        }
        // The seal against future writing leaves mappings alone that exist, so ours must come first.
        let mapping = Mapping::new(fd.as_fd(), bytes, Access::ReadWrite, fault)
            .map_err(|e| SegmentError::from_errno(e, bytes))?;
        rustix::fs::fcntl_add_seals(&fd, seals).map_err(SegmentError::Os)?;
        Ok(Self { fd, mapping })
    }
}

/// Memory made by another process, mapped into this one.
///
/// Its content is foreign: load each word once, check it, then use the copy.
#[derive(Debug)]
pub struct View {
    mapping: Mapping,
    access: Access,
}

impl View {
    /// Maps a segment received from another process, after checking that the kernel keeps its promises.
    ///
    /// The descriptor is closed in any case: the mapping does not need it.
    ///
    /// # Errors
    ///
    /// See [`AttachError`]. Nothing was mapped.
    pub fn attach(
        fd: OwnedFd,
        bytes: usize,
        access: Access,
        fault: Fault,
    ) -> Result<Self, AttachError> {
        if bytes == 0 || bytes > MAX_SEGMENT {
            return Err(AttachError::Limit { bytes });
        }
        check_kind(fd.as_fd())?;
        check_seals(fd.as_fd(), access)?;
        // Only now is the size worth looking at: the seals say that it cannot change after this line.
        let stat = rustix::fs::fstat(&fd).map_err(AttachError::Os)?;
        let actual = u64::try_from(stat.st_size).unwrap_or(0);
        if actual != bytes as u64 {
            return Err(AttachError::Size {
                expected: bytes,
                actual,
            });
        }
        let present = u64::try_from(stat.st_blocks)
            .unwrap_or(0)
            .saturating_mul(BLOCK);
        if present < actual && !fault.is_sparse() {
            return Err(AttachError::Sparse { present, bytes });
        }
        let mapping = Mapping::new(fd.as_fd(), bytes, access, fault).map_err(AttachError::Os)?;
        Ok(Self { mapping, access })
    }

    /// The first byte. Valid for [`len`](Self::len) bytes as long as the view lives; writable if
    /// [`access`](Self::access) says so.
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.mapping.start
    }

    /// How many bytes there are.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a view of no bytes cannot be made"
    )]
    pub fn len(&self) -> usize {
        self.mapping.bytes
    }

    /// What may be done with the memory.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }
}

/// Why a segment could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// Nothing, or more than [`MAX_SEGMENT`], was asked for.
    #[error("a segment has 1 to {MAX_SEGMENT} bytes, not {bytes}")]
    Size {
        /// What was asked for.
        bytes: usize,
    },
    /// The host, or this process's memory limit, has no room. Ask for less, or free some.
    #[error("no memory for a segment of {bytes} bytes")]
    NoMemory {
        /// What was asked for.
        bytes: usize,
    },
    /// This process, or the host, has no descriptor left. Raise the limit (`ulimit -n`).
    #[error("no file descriptor left for a segment")]
    NoDescriptor,
    /// The label holds a zero byte or is longer than the kernel takes (249 bytes).
    #[error("the label of a segment has no zero byte and at most 249 bytes")]
    Label,
    /// The kernel refused for another reason.
    #[error("segment refused by the kernel: {0}")]
    Os(#[source] Errno),
}

impl SegmentError {
    fn from_errno(errno: Errno, bytes: usize) -> Self {
        match errno {
            Errno::NOMEM | Errno::NOSPC | Errno::AGAIN => Self::NoMemory { bytes },
            Errno::MFILE | Errno::NFILE => Self::NoDescriptor,
            other => Self::Os(other),
        }
    }
}

/// Why a received descriptor was not mapped. All but [`Os`](Self::Os) are the sender's fault.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The descriptor is not a memfd.
    #[error("the descriptor is not a memfd")]
    NotSegment,
    /// A promise is not kept by the kernel, or the segment cannot be mapped as asked.
    #[error("the segment lacks the seals {missing:?}, or has {excess:?} that forbid mapping it so")]
    Seals {
        /// Seals that should be there.
        missing: SealNames,
        /// Seals that must not be there.
        excess: SealNames,
    },
    /// The segment does not have the size agreed upon.
    #[error("the segment has {actual} bytes instead of {expected}")]
    Size {
        /// What was agreed upon.
        expected: usize,
        /// What it has.
        actual: u64,
    },
    /// Some of the memory was never allocated: to touch it would be a fault if the host had no memory left.
    #[error("the segment has memory for {present} of its {bytes} bytes only")]
    Sparse {
        /// Bytes that have memory.
        present: u64,
        /// What was agreed upon.
        bytes: usize,
    },
    /// The size agreed upon is nothing, or more than [`MAX_SEGMENT`].
    #[error("a segment has 1 to {MAX_SEGMENT} bytes, not {bytes}")]
    Limit {
        /// What was agreed upon.
        bytes: usize,
    },
    /// The kernel refused.
    #[error("mapping refused by the kernel: {0}")]
    Os(#[source] Errno),
}

/// A set of seals, for people to read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SealNames(SealFlags);

impl std::fmt::Debug for SealNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.0.iter_names().map(|(name, _)| name);
        f.debug_set().entries(names).finish()
    }
}

/// A range of this process's address space, given back on drop.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a `Mapping` is an address range that belongs to no thread; only `drop` acts on it, with `&mut self`, and
// `munmap` may be called by any thread. It hands out raw pointers only: whoever dereferences them answers for races.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`; `&Mapping` gives nothing but two plain values.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(fd: BorrowedFd<'_>, bytes: usize, access: Access, fault: Fault) -> Result<Self, Errno> {
        let protection = match access {
            Access::ReadOnly => ProtFlags::READ,
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        };
        let flags = match fault {
            Fault::Now => MapFlags::SHARED | MapFlags::POPULATE,
            Fault::OnTouch | Fault::Sparse => MapFlags::SHARED,
        };
        // SAFETY: the address is null and `MAP_FIXED` is not among the flags, so the kernel picks a range that nothing
        // else uses: no memory that Rust knows of changes.
        let start =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, 0)? };
        let start = NonNull::new(start.cast())
            .expect("the kernel maps nothing at address zero unless told to");
        Ok(Self { start, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `bytes` are those of the `mmap` in `new`, nothing else unmaps it, and the pointers handed
        // out are documented to be valid only as long as the owner of `self` lives, which ends here.
        let result = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(result.is_ok(), "the range was mapped by us: {result:?}");
    }
}

fn memfd(label: &str) -> Result<OwnedFd, SegmentError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = match rustix::fs::memfd_create(label, flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 do not know the flag. A label they refuse gets here too, and is refused again.
        Err(Errno::INVAL) => rustix::fs::memfd_create(label, flags),
        made => made,
    };
    made.map_err(|errno| match errno {
        Errno::INVAL => SegmentError::Label,
        other => SegmentError::from_errno(other, 0),
    })
}

fn check_kind(fd: BorrowedFd<'_>) -> Result<(), AttachError> {
    let stat = rustix::fs::fstat(fd).map_err(AttachError::Os)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(AttachError::NotSegment);
    }
    let fs = rustix::fs::fstatfs(fd).map_err(AttachError::Os)?;
    if fs.f_type != TMPFS_MAGIC {
        return Err(AttachError::NotSegment);
    }
    Ok(())
}

/// Also what tells a memfd from a file on a mounted tmpfs: such a file is born with `F_SEAL_SEAL` and can have no other.
fn check_seals(fd: BorrowedFd<'_>, access: Access) -> Result<(), AttachError> {
    // A descriptor opened with `O_PATH`, or of a file system without seals, gives an error here.
    let seals = rustix::fs::fcntl_get_seals(fd).map_err(|_| AttachError::NotSegment)?;
    let (required, forbidden) = match access {
        Access::ReadOnly => (PRIVATE_SEALS, SealFlags::empty()),
        Access::ReadWrite => (OPEN_SEALS, SealFlags::FUTURE_WRITE | SealFlags::WRITE),
    };
    let missing = required.difference(seals);
    let excess = forbidden.intersection(seals);
    if !missing.is_empty() || !excess.is_empty() {
        return Err(AttachError::Seals {
            missing: SealNames(missing),
            excess: SealNames(excess),
        });
    }
    Ok(())
}

const OPEN_SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);
const PRIVATE_SEALS: SealFlags = OPEN_SEALS.union(SealFlags::FUTURE_WRITE);

/// Bytes of a block as `fstat` counts them.
const BLOCK: u64 = 512;

/// `TMPFS_MAGIC` of `linux/magic.h`. A memfd of huge pages lives on another file system and is not taken.
const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use std::sync::atomic::{AtomicU32, Ordering};

    const BYTES: usize = 3 * 4096;

    fn passed(segment: &Segment) -> OwnedFd {
        segment.fd().try_clone_to_owned().unwrap()
    }

    fn word(start: NonNull<u8>) -> &'static AtomicU32 {
        // SAFETY: tests pass the first byte of a mapping (page-aligned, at least a page) that they keep to their end.
        unsafe { start.cast().as_ref() }
    }

    fn raw_memfd(bytes: usize, seals: SealFlags) -> OwnedFd {
        let fd = memfd("test").unwrap();
        rustix::fs::ftruncate(&fd, bytes as u64).unwrap();
        rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
        fd
    }

    fn refused(fd: OwnedFd) -> AttachError {
        View::attach(fd, BYTES, Access::ReadOnly, Fault::Now).unwrap_err()
    }

    #[test]
    fn a_view_shows_what_the_maker_writes() {
        for fault in [Fault::Now, Fault::OnTouch] {
            let segment = Segment::create("test", BYTES, fault).unwrap();
            let view = View::attach(passed(&segment), BYTES, Access::ReadOnly, fault).unwrap();
            assert_eq!((segment.len(), view.len()), (BYTES, BYTES));
            assert_eq!(word(view.as_ptr()).load(Ordering::Acquire), 0);
            word(segment.as_ptr()).store(7, Ordering::Release);
            assert_eq!(word(view.as_ptr()).load(Ordering::Acquire), 7);
        }
    }

    #[test]
    fn an_open_segment_is_written_by_both() {
        let segment = Segment::create_open("test", BYTES, Fault::Now).unwrap();
        let view = View::attach(passed(&segment), BYTES, Access::ReadWrite, Fault::Now).unwrap();
        word(view.as_ptr()).store(9, Ordering::Release);
        assert_eq!(word(segment.as_ptr()).load(Ordering::Acquire), 9);
    }

    #[test]
    fn a_sparse_segment_has_the_memory_that_was_touched_or_all_where_touching_may_fail() {
        let bytes = 64 * 4096;
        let segment = Segment::create("test", bytes, Fault::Sparse).unwrap();
        let present = |fd: BorrowedFd<'_>| rustix::fs::fstat(fd).unwrap().st_blocks as u64 * BLOCK;
        let expected = |pages: u64| {
            if counts_promises() {
                bytes as u64
            } else {
                pages * 4096
            }
        };
        assert_eq!(present(segment.fd()), expected(0));
        word(segment.as_ptr()).store(3, Ordering::Release);
        let fd = passed(&segment);
        let view = View::attach(passed(&segment), bytes, Access::ReadOnly, Fault::Sparse).unwrap();
        assert_eq!(word(view.as_ptr()).load(Ordering::Acquire), 3);
        assert_eq!(present(fd.as_fd()), expected(1));
        if !counts_promises() {
            // Who expects all of it is told that it is not there.
            assert!(matches!(
                View::attach(passed(&segment), bytes, Access::ReadOnly, Fault::Now),
                Err(AttachError::Sparse { present: 4096, .. })
            ));
        }
        let (own, memory) = segment.into_parts();
        if crate::fault_in(&crate::region_of_view(own)) {
            assert_eq!(present(memory.as_fd()), bytes as u64);
        }
    }

    #[test]
    fn a_segment_without_its_descriptor_keeps_its_memory() {
        let segment = Segment::create("test", BYTES, Fault::Now).unwrap();
        let peer = View::attach(passed(&segment), BYTES, Access::ReadOnly, Fault::Now).unwrap();
        let own = segment.into_view();
        assert_eq!(own.access(), Access::ReadWrite);
        word(own.as_ptr()).store(3, Ordering::Release);
        assert_eq!(word(peer.as_ptr()).load(Ordering::Acquire), 3);
    }

    #[test]
    fn the_kernel_enforces_the_seals() {
        let segment = Segment::create("test", BYTES, Fault::Now).unwrap();
        let fd = segment.fd();
        assert_eq!(rustix::fs::ftruncate(fd, 4096), Err(Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(fd, 1 << 20), Err(Errno::PERM));
        assert_eq!(rustix::io::pwrite(fd, b"x", 0), Err(Errno::PERM));
        assert_eq!(
            rustix::fs::fcntl_add_seals(fd, SealFlags::WRITE),
            Err(Errno::PERM)
        );
        assert!(Mapping::new(fd, BYTES, Access::ReadWrite, Fault::Now).is_err());
        let view = View::attach(passed(&segment), BYTES, Access::ReadOnly, Fault::Now).unwrap();
        // SAFETY: only the protection of our own view changes, and the call is refused.
        let raised = unsafe {
            rustix::mm::mprotect(
                view.as_ptr().as_ptr().cast(),
                BYTES,
                rustix::mm::MprotectFlags::READ | rustix::mm::MprotectFlags::WRITE,
            )
        };
        assert_eq!(raised, Err(Errno::ACCESS));
    }

    #[test]
    fn descriptors_of_segments_are_closed_on_exec() {
        let segment = Segment::create("test", BYTES, Fault::Now).unwrap();
        let flags = rustix::io::fcntl_getfd(segment.fd()).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_private_segment_is_not_attached_for_writing() {
        let segment = Segment::create("test", BYTES, Fault::Now).unwrap();
        let error =
            View::attach(passed(&segment), BYTES, Access::ReadWrite, Fault::Now).unwrap_err();
        assert!(matches!(error, AttachError::Seals { .. }), "{error}");
    }

    #[test]
    fn a_missing_seal_is_refused_by_name() {
        for missing in [
            SealFlags::SHRINK,
            SealFlags::GROW,
            SealFlags::FUTURE_WRITE,
            SealFlags::SEAL,
        ] {
            let error = refused(raw_memfd(BYTES, PRIVATE_SEALS - missing));
            let AttachError::Seals { missing: found, .. } = error else {
                panic!("{error}")
            };
            assert_eq!(found, SealNames(missing));
        }
        let open = Segment::create_open("test", BYTES, Fault::Now).unwrap();
        assert!(refused(passed(&open)).to_string().contains("FUTURE_WRITE"));
    }

    #[test]
    fn another_size_is_refused() {
        let segment = Segment::create("test", BYTES, Fault::Now).unwrap();
        for wrong in [
            BYTES - 4096,
            BYTES - 1,
            BYTES + 1,
            BYTES + 4096,
            MAX_SEGMENT,
        ] {
            let error =
                View::attach(passed(&segment), wrong, Access::ReadOnly, Fault::Now).unwrap_err();
            assert!(
                matches!(error, AttachError::Size { actual, .. } if actual == BYTES as u64),
                "{error}"
            );
        }
        for wrong in [0, MAX_SEGMENT + 1, usize::MAX] {
            let error =
                View::attach(passed(&segment), wrong, Access::ReadOnly, Fault::Now).unwrap_err();
            assert!(matches!(error, AttachError::Limit { .. }), "{error}");
        }
    }

    #[test]
    fn a_segment_whose_pages_do_not_exist_is_refused() {
        let error = refused(raw_memfd(BYTES, PRIVATE_SEALS));
        assert!(error.to_string().contains("0 of its 12288"), "{error}");
        let fd = memfd("test").unwrap();
        rustix::fs::ftruncate(&fd, BYTES as u64).unwrap();
        rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, 8192).unwrap();
        rustix::fs::fcntl_add_seals(&fd, PRIVATE_SEALS).unwrap();
        let error = refused(fd);
        assert!(error.to_string().contains("8192 of its 12288"), "{error}");
    }

    #[test]
    fn pages_that_nobody_has_touched_exist() {
        let segment = Segment::create("test", BYTES, Fault::OnTouch).unwrap();
        View::attach(passed(&segment), BYTES, Access::ReadOnly, Fault::OnTouch).unwrap();
    }

    #[test]
    fn impossible_segments_are_not_made() {
        for wrong in [0, MAX_SEGMENT + 1, usize::MAX] {
            let error = Segment::create("test", wrong, Fault::OnTouch).unwrap_err();
            assert!(matches!(error, SegmentError::Size { .. }), "{error}");
        }
        for label in ["a\0b".to_owned(), "x".repeat(250)] {
            let error = Segment::create(&label, BYTES, Fault::OnTouch).unwrap_err();
            assert!(matches!(error, SegmentError::Label), "{error}");
        }
    }

    #[test]
    fn what_is_not_a_memfd_is_refused() {
        let open = |path: &str, flags| rustix::fs::open(path, flags, Mode::empty()).unwrap();
        let path_of_memfd = {
            let segment = Segment::create("test", BYTES, Fault::Now).unwrap();
            let link = format!(
                "/proc/self/fd/{}",
                std::os::fd::AsRawFd::as_raw_fd(&segment.fd())
            );
            open(&link, OFlags::PATH)
        };
        let (pipe, _writer) = rustix::pipe::pipe().unwrap();
        let cases = [
            ("directory", open("/", OFlags::DIRECTORY)),
            ("device", open("/dev/zero", OFlags::RDWR)),
            ("null device", open("/dev/null", OFlags::RDWR)),
            (
                "executable",
                std::fs::File::open(std::env::current_exe().unwrap())
                    .unwrap()
                    .into(),
            ),
            ("procfs", open("/proc/self/stat", OFlags::RDONLY)),
            ("O_PATH", path_of_memfd),
            ("pipe", pipe),
            (
                "socket",
                std::os::unix::net::UnixStream::pair().unwrap().0.into(),
            ),
        ];
        for (name, fd) in cases {
            let error = refused(fd);
            assert!(matches!(error, AttachError::NotSegment), "{name}: {error}");
        }
    }

    #[test]
    fn a_file_on_a_mounted_tmpfs_is_refused() {
        // An unnamed file: nothing to clean up. Where /dev/shm is missing there is nothing to test.
        let flags = OFlags::TMPFILE | OFlags::RDWR;
        let Ok(fd) = rustix::fs::open("/dev/shm", flags, Mode::RUSR | Mode::WUSR) else {
            return;
        };
        rustix::fs::ftruncate(&fd, BYTES as u64).unwrap();
        let error = refused(fd);
        assert!(
            matches!(error, AttachError::Seals { .. } | AttachError::NotSegment),
            "{error}"
        );
    }
}
