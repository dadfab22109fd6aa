//! An open domain: the access to one network, and memory registered with it.
//!
//! The file is about unsafety in so far as it calls libfabric through the tables of its objects. All
//! objects of a domain are used by one thread at a time (`FI_THREAD_DOMAIN`): they share an `Rc`.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::c_void;
use std::io;
use std::ptr::{self, NonNull};
use std::rc::Rc;

use crate::endpoint::Endpoint;
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

    pub(crate) fn as_ptr(&self) -> *mut sys::FidDomain {
        self.domain.as_ptr()
    }

    pub(crate) fn error(&self, status: i64) -> io::Error {
        self.info.library().error(status)
    }

    /// Whether it is safe to sleep on the descriptors of these queues: nothing is waiting in them.
    pub(crate) fn may_sleep<'a>(&self, endpoints: impl Iterator<Item = &'a Endpoint>) -> bool {
        let mut queues: Vec<*mut sys::Fid> = endpoints.map(Endpoint::queue).collect();
        // SAFETY: the queues belong to endpoints that are borrowed, of this fabric.
        let status = unsafe {
            let try_wait = (*(*self.fabric.as_ptr()).ops).trywait;
            try_wait(
                self.fabric.as_ptr(),
                queues.as_mut_ptr(),
                queues.len() as i32,
            )
        };
        status == 0
    }

    /// Whether transfers need their own memory registered, too.
    pub(crate) fn wants_local(&self) -> bool {
        self.limits.mr_mode & sys::FI_MR_LOCAL != 0
    }

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
        let chooses = self.limits.mr_mode & sys::FI_MR_PROV_KEY != 0;
        let mut attempts = 0;
        let mr = loop {
            let key = if chooses { 0 } else { self.fresh_key() };
            let mut mr = ptr::null_mut();
            // SAFETY: the domain is open; the memory is the caller's promise; `mr` is written only.
            let status = unsafe {
                let register = (*(*self.domain.as_ptr()).mr).reg;
                let (fid, none) = (self.domain.as_ptr().cast(), ptr::null_mut());
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
        if self.limits.mr_mode & sys::FI_MR_ENDPOINT != 0 {
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

    fn fresh_key(&self) -> u64 {
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

impl Registration {
    /// What a local transfer from or into this memory is to be given.
    pub(crate) fn descriptor(&self) -> *mut c_void {
        // SAFETY: the registration is open.
        unsafe { (*self.mr.as_ptr()).mem_desc }
    }

    /// What the other end needs to write here: an address and a key.
    pub(crate) fn remote(&self) -> (u64, u64) {
        let is_virtual = self.domain.limits.mr_mode & sys::FI_MR_VIRT_ADDR != 0;
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

/// Closes an object of libfabric.
///
/// # Safety
///
/// It is open, and used by nobody after this.
pub(crate) unsafe fn close(object: NonNull<sys::Fid>) {
    // SAFETY: the caller's promise. A failure leaves nothing to be done: the object stays with the library.
    unsafe { ((*(*object.as_ptr()).ops).close)(object.as_ptr()) };
}

/// Keys tried before we believe that something else is wrong.
const MAX_KEYS: u32 = 16;
