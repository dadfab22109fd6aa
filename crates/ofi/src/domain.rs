//! An open domain: the access to one network.
//!
//! This file has unsafe code because it calls libfabric through the tables of its objects. All
//! objects of a domain are used by one thread at a time (`FI_THREAD_DOMAIN`): they share an `Rc`.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::io;
use std::ptr::{self, NonNull};
use std::rc::Rc;

use crate::info::{Info, Limits};
use crate::options::OpenError;
use crate::random::Random;
use crate::sys;

/// One network, opened.
#[derive(Debug)]
pub(crate) struct Domain {
    info: Info,
    limits: Limits,
    fabric: NonNull<sys::FidFabric>,
    domain: NonNull<sys::FidDomain>,
    keys: RefCell<Random>,
}

impl Domain {
    pub(crate) fn open(info: Info) -> Result<Rc<Self>, OpenError> {
        let refused = |step, status: i32| OpenError::Refused {
            provider: info.provider(),
            step,
            cause: info.library().error(status.into()),
        };
        let (mut fabric, mut domain) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the offer came from `fi_getinfo` and lives; `fabric` is written only.
        let status = unsafe {
            let attr = (*info.as_ptr()).fabric_attr;
            (info.library().fabric)(attr, &mut fabric, ptr::null_mut())
        };
        let Some(fabric) = NonNull::new(fabric).filter(|_| status == 0) else {
            return Err(refused("open the fabric", status));
        };
        // SAFETY: the fabric was just opened, and its table has `domain` in every version.
        let status = unsafe {
            let open = (*(*fabric.as_ptr()).ops).domain;
            open(fabric.as_ptr(), info.as_ptr(), &mut domain, ptr::null_mut())
        };
        let Some(domain) = NonNull::new(domain).filter(|_| status == 0) else {
            // SAFETY: nothing else refers to the fabric.
            unsafe { close(fabric.cast()) };
            return Err(refused("open the domain", status));
        };
        Ok(Rc::new(Self {
            limits: info.limits(),
            info,
            fabric,
            domain,
            keys: RefCell::new(Random::new()),
        }))
    }

    pub(crate) fn info(&self) -> &Info {
        &self.info
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn fabric(&self) -> *mut sys::FidFabric {
        self.fabric.as_ptr()
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::FidDomain {
        self.domain.as_ptr()
    }

    pub(crate) fn error(&self, status: i64) -> io::Error {
        self.info.library().error(status)
    }

    /// Whether transfers need their own memory registered, too.
    pub(crate) fn wants_local(&self) -> bool {
        self.limits.mr_mode & sys::FI_MR_LOCAL != 0
    }

    /// A key for registered memory, as long as the provider takes.
    pub(crate) fn fresh_key(&self) -> u64 {
        let random = self.keys.borrow_mut().next_u64();
        match self.limits.key_bytes {
            bytes @ 1..8 => random & ((1 << (8 * bytes)) - 1),
            _ => random,
        }
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: endpoints and registrations keep the domain alive, so none is left.
        unsafe {
            close(self.domain.cast());
            close(self.fabric.cast());
        }
    }
}

/// Closes an object of libfabric.
///
/// # Safety
///
/// It is open, and used by nobody after this.
pub(crate) unsafe fn close(object: NonNull<sys::Fid>) {
    // SAFETY: the caller's promise. A failure leaves nothing to be done: the object stays with the library.
    unsafe { ((*(*object.as_ptr()).ops).close)(object.as_ptr()) };
}
