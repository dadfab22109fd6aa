//! Buffers for messages, lent to the provider and taken back.
//!
//! This file has unsafe code because the provider reads or writes a buffer while it is lent. The
//! state of each says whose it is: [`Pool::bytes`] and [`Pool::bytes_mut`] give out only those that are ours.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::ptr::{self, NonNull};

use crate::endpoint::Endpoint;
use crate::registration::{Access, Registration};

/// Buffers of [`Pool::LEN`] bytes. To be dropped after the endpoint that they are lent to.
#[derive(Debug)]
pub(crate) struct Pool {
    slabs: Vec<Slab>,
    states: Vec<State>,
    free: Vec<BufferId>,
}

/// The number of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferId(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Ours,
    Lent,
}

impl BufferId {
    pub(crate) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer buffers than 2³²: they would not fit in memory"))
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Pool {
    /// Bytes of a buffer: as long as the messages that `ofi_rxm` copies rather than negotiates.
    pub(crate) const LEN: usize = 16 * 1024;
    /// Buffers that are allocated at a time.
    pub(crate) const SLAB: usize = 32;

    pub(crate) fn new() -> Self {
        Self {
            slabs: Vec::new(),
            states: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Takes a buffer; there is more memory if none is free.
    pub(crate) fn take(&mut self, endpoint: &Endpoint) -> io::Result<BufferId> {
        if self.free.is_empty() {
            self.grow(endpoint)?;
        }
        let id = self.free.pop().expect("just grown, or not empty");
        self.states[id.index()] = State::Ours;
        Ok(id)
    }

    /// Gives a buffer back.
    pub(crate) fn release(&mut self, id: BufferId) {
        assert_eq!(
            self.states[id.index()],
            State::Ours,
            "released a buffer that is lent or free"
        );
        self.states[id.index()] = State::Free;
        self.free.push(id);
    }

    /// Where a buffer is, to be handed to the provider with its descriptor.
    pub(crate) fn lend(&mut self, id: BufferId) -> (*mut u8, *mut c_void) {
        assert_eq!(
            self.states[id.index()],
            State::Ours,
            "lent a buffer that is not ours"
        );
        self.states[id.index()] = State::Lent;
        let slab = &self.slabs[id.index() / Self::SLAB];
        let none = ptr::null_mut();
        let descriptor = slab
            .registration
            .as_ref()
            .map_or(none, Registration::descriptor);
        (self.start(id), descriptor)
    }

    /// A lent buffer is ours again: the provider has said so, or did not take it.
    ///
    /// Returns whether it was lent, which a provider that keeps the rules cannot make false.
    pub(crate) fn take_back(&mut self, id: BufferId) -> bool {
        let state = self.states.get_mut(id.index());
        match state {
            Some(state) if *state == State::Lent => {
                *state = State::Ours;
                true
            }
            _ => false,
        }
    }

    pub(crate) fn bytes(&self, id: BufferId, len: usize) -> &[u8] {
        assert_eq!(
            self.states[id.index()],
            State::Ours,
            "looked at a buffer that is not ours"
        );
        let len = len.min(Self::LEN);
        // SAFETY: within the buffer, which is initialised from the start and not lent, hence written by
        // nobody while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.start(id), len) }
    }

    pub(crate) fn bytes_mut(&mut self, id: BufferId) -> &mut [u8] {
        assert_eq!(
            self.states[id.index()],
            State::Ours,
            "wrote a buffer that is not ours"
        );
        // SAFETY: as in `bytes`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start(id), Self::LEN) }
    }

    fn start(&self, id: BufferId) -> *mut u8 {
        let slab = &self.slabs[id.index() / Self::SLAB];
        // SAFETY: the place is less than `SLAB`, so the buffer is within the slab.
        unsafe {
            slab.memory
                .as_ptr()
                .add(id.index() % Self::SLAB * Self::LEN)
        }
    }

    fn grow(&mut self, endpoint: &Endpoint) -> io::Result<()> {
        let bytes = vec![0_u8; Self::SLAB * Self::LEN].into_boxed_slice();
        let len = bytes.len();
        let memory = NonNull::new(Box::into_raw(bytes).cast::<u8>()).expect("a box is not null");
        let mut slab = Slab {
            registration: None,
            memory,
        };
        if endpoint.domain().wants_local() {
            // SAFETY: the slab drops the registration before it frees the memory.
            let registration = unsafe {
                let domain = endpoint.domain();
                domain.register(endpoint, memory.as_ptr(), len, Access::Messages)?
            };
            slab.registration = Some(registration);
        }
        self.slabs.push(slab);
        let first = self.states.len();
        self.states.resize(first + Self::SLAB, State::Free);
        self.free
            .extend((first..first + Self::SLAB).rev().map(BufferId::from_index));
        Ok(())
    }
}

/// Memory of several buffers.
#[derive(Debug)]
struct Slab {
    registration: Option<Registration>,
    memory: NonNull<u8>,
}

impl Drop for Slab {
    fn drop(&mut self) {
        self.registration = None;
        let slice = ptr::slice_from_raw_parts_mut(self.memory.as_ptr(), Pool::SLAB * Pool::LEN);
        // SAFETY: it came from a box of this length, and the endpoint that it was lent to is closed.
        drop(unsafe { Box::from_raw(slice) });
    }
}
