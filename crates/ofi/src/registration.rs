//! Memory registered with a domain.
//!
//! This file has unsafe code because it calls libfabric through the tables of its objects, and hands it memory.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::ptr::{self, NonNull};
use std::rc::Rc;

use crate::domain::{Domain, close};
use crate::endpoint::Endpoint;
use crate::sys;

/// What registered memory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Messages,
    Source,
    Target,
}

/// Memory that the network may use, until this is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    domain: Rc<Domain>,
    mr: NonNull<sys::FidMr>,
    start: u64,
}

impl Domain {
    /// Registers memory with an endpoint, under a key that nobody can guess if the provider lets us choose.
    ///
    /// # Safety
    ///
    /// The memory exists until the registration is dropped, and may be used as `access` says until then.
    pub(crate) unsafe fn register(
        self: &Rc<Self>,
        endpoint: &Endpoint,
        start: *const u8,
        len: usize,
        access: Access,
    ) -> io::Result<Registration> {
        let access = match access {
            Access::Messages => sys::FI_SEND | sys::FI_RECV,
            Access::Source => sys::FI_WRITE,
            Access::Target => sys::FI_REMOTE_WRITE,
        };
        let chooses = self.limits().mr_mode & sys::FI_MR_PROV_KEY != 0;
        let mut attempts = 0;
        let mr = loop {
            let key = if chooses { 0 } else { self.fresh_key() };
            let mut mr = ptr::null_mut();
            // SAFETY: the domain is open; the memory is the caller's promise; `mr` is written only.
            let status = unsafe {
                let register = (*(*self.as_ptr()).mr).reg;
                let (fid, none) = (self.as_ptr().cast(), ptr::null_mut());
                register(fid, start.cast(), len, access, 0, key, 0, &mut mr, none)
            };
            match NonNull::new(mr).filter(|_| status == 0) {
                Some(mr) => break mr,
                // The key is taken: by chance, if keys are short.
                None if !chooses && attempts < MAX_KEYS => attempts += 1,
                None => return Err(self.error(status.into())),
            }
        };
        let registration = Registration {
            domain: Rc::clone(self),
            mr,
            start: start as u64,
        };
        if self.limits().mr_mode & sys::FI_MR_ENDPOINT != 0 {
            // SAFETY: both are open, and the endpoint, which is of this domain, outlives its registrations.
            let status = unsafe {
                let ops = &*(*mr.as_ptr()).fid.ops;
                let bound = (ops.bind)(mr.as_ptr().cast(), endpoint.as_ptr().cast(), 0);
                let enable = || (ops.control)(mr.as_ptr().cast(), sys::FI_ENABLE, ptr::null_mut());
                if bound == 0 { enable() } else { bound }
            };
            if status != 0 {
                return Err(self.error(status.into()));
            }
        }
        Ok(registration)
    }
}

impl Registration {
    /// What a local transfer from or into this memory is to be given.
    pub(crate) fn descriptor(&self) -> *mut c_void {
        // SAFETY: the registration is open.
        unsafe { (*self.mr.as_ptr()).mem_desc }
    }

    /// What the other end needs to write here: an address and a key.
    pub(crate) fn remote(&self) -> (u64, u64) {
        let is_virtual = self.domain.limits().mr_mode & sys::FI_MR_VIRT_ADDR != 0;
        // SAFETY: the registration is open.
        let key = unsafe { (*self.mr.as_ptr()).key };
        (if is_virtual { self.start } else { 0 }, key)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: it is open, and used by nothing after this.
        unsafe { close(self.mr.cast()) };
    }
}

/// Keys tried before we believe that something else is wrong.
const MAX_KEYS: u32 = 16;
