//! An endpoint with its completion queue and its address vector.
//!
//! This file has unsafe code because it calls libfabric through the tables of its objects, and hands
//! it memory. Closing an endpoint is what ends every use of that memory: cancelling a transfer is not
//! something that providers can do (`docs/design/libfabric.md`).
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io::{self, IoSlice};
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr::{self, NonNull};
use std::rc::Rc;

use crate::domain::{Domain, close};
use crate::sys;

/// A reliable, unconnected endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    endpoint: NonNull<sys::FidEp>,
    queue: NonNull<sys::FidCq>,
    addresses: NonNull<sys::FidAv>,
    wait: Option<RawFd>,
    name: Box<[u8]>,
    domain: Rc<Domain>,
}

/// Where another endpoint is, in the terms of one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address(u64);

/// Whether the provider took something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Posted {
    Yes,
    /// Not now: after some progress.
    Again,
}

/// The end of something that was posted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completion {
    /// What it was posted with; 0 if the provider does not say.
    pub(crate) context: usize,
    pub(crate) len: usize,
    /// How it failed, if it did.
    pub(crate) failure: Option<io::ErrorKind>,
}

/// Part of a body that is to be written at the other end.
#[derive(Debug)]
pub(crate) struct Write<'a> {
    pub(crate) slices: &'a [IoSlice<'a>],
    pub(crate) descriptors: &'a mut [*mut c_void],
    pub(crate) to: Address,
    pub(crate) address: u64,
    pub(crate) key: u64,
    pub(crate) context: usize,
}

impl Endpoint {
    pub(crate) fn open(domain: &Rc<Domain>) -> io::Result<Self> {
        let check = |status: i32| match status {
            0 => Ok(()),
            status => Err(domain.error(status.into())),
        };
        let (queue, wait) = open_queue(domain)?;
        let addresses = open_addresses(domain).inspect_err(|_| {
            // SAFETY: nothing else refers to the queue.
            unsafe { close(queue.cast()) };
        })?;
        let mut endpoint = ptr::null_mut();
        // SAFETY: the domain and the offer live; `endpoint` is written only.
        let opened = unsafe {
            let open = (*(*domain.as_ptr()).ops).endpoint;
            let info = domain.info().as_ptr();
            check(open(domain.as_ptr(), info, &mut endpoint, ptr::null_mut()))
        };
        let Some(endpoint) = NonNull::new(endpoint).filter(|_| opened.is_ok()) else {
            // SAFETY: nothing else refers to them.
            unsafe {
                close(addresses.cast());
                close(queue.cast());
            }
            return Err(opened.err().unwrap_or_else(|| io::ErrorKind::Other.into()));
        };
        let mut this = Self {
            endpoint,
            queue,
            addresses,
            wait,
            name: Box::default(),
            domain: Rc::clone(domain),
        };
        // SAFETY: all four are open, and closed in the right order by `drop`, also when this fails.
        unsafe {
            let (fid, ops) = (endpoint.as_ptr().cast(), &*(*endpoint.as_ptr()).fid.ops);
            check((ops.bind)(fid, addresses.as_ptr().cast(), 0))?;
            check((ops.bind)(
                fid,
                queue.as_ptr().cast(),
                sys::FI_SEND | sys::FI_RECV,
            ))?;
            check((ops.control)(fid, sys::FI_ENABLE, ptr::null_mut()))?;
            let mut name = [0_u8; MAX_NAME];
            let mut len = MAX_NAME;
            let name_of = (*(*endpoint.as_ptr()).cm).getname;
            check(name_of(fid, name.as_mut_ptr().cast(), &mut len))?;
            this.name = name[..len.min(MAX_NAME)].into();
        }
        Ok(this)
    }

    /// What others insert to reach this endpoint.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// A descriptor to sleep on, if the provider has one.
    pub(crate) fn wait(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the descriptor belongs to the queue, which is open as long as `self` is borrowed.
        self.wait.map(|fd| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Makes another endpoint known by its name.
    pub(crate) fn insert(&self, name: &[u8]) -> io::Result<Address> {
        // The provider reads as many bytes as its own names have.
        if name.len() != self.name.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut address = sys::FI_ADDR_UNSPEC;
        // SAFETY: the name is as long as the provider expects, and is copied; `address` is written only.
        let inserted = unsafe {
            let insert = (*(*self.addresses.as_ptr()).ops).insert;
            let (name, none) = (name.as_ptr().cast(), ptr::null_mut());
            insert(self.addresses.as_ptr(), name, 1, &mut address, 0, none)
        };
        match inserted {
            1 => Ok(Address(address)),
            status if status < 0 => Err(self.domain.error(status.into())),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Forgets another endpoint, to which nothing is being sent any more.
    pub(crate) fn remove(&self, mut address: Address) {
        // SAFETY: the address came from `insert`. A failure leaves an entry that nobody uses.
        unsafe {
            let remove = (*(*self.addresses.as_ptr()).ops).remove;
            remove(self.addresses.as_ptr(), &mut address.0, 1, 0);
        }
    }

    /// Sends a short message, which is copied at once.
    pub(crate) fn inject(&self, to: Address, message: &[u8]) -> io::Result<Posted> {
        // SAFETY: the message is not used after the call; the endpoint is enabled.
        let status = unsafe {
            let inject = (*(*self.endpoint.as_ptr()).msg).inject;
            inject(
                self.endpoint.as_ptr(),
                message.as_ptr().cast(),
                message.len(),
                to.0,
            )
        };
        self.posted(status)
    }

    /// Sends a message; a completion with `context` says when its memory is free.
    ///
    /// # Safety
    ///
    /// The memory is readable, and nobody writes it, until then or until the endpoint is closed.
    pub(crate) unsafe fn send(
        &self,
        to: Address,
        message: (*const u8, usize),
        descriptor: *mut c_void,
        context: usize,
    ) -> io::Result<Posted> {
        let (start, len) = message;
        // SAFETY: the caller's promise.
        let status = unsafe {
            let send = (*(*self.endpoint.as_ptr()).msg).send;
            let context = ptr::without_provenance_mut(context);
            send(
                self.endpoint.as_ptr(),
                start.cast(),
                len,
                descriptor,
                to.0,
                context,
            )
        };
        self.posted(status)
    }

    /// Sends a message whose memory is never changed.
    #[cfg(test)]
    pub(crate) fn send_leaked(&self, to: Address, message: &'static [u8]) -> io::Result<Posted> {
        // SAFETY: it is readable, and not written, for ever.
        unsafe { self.send(to, (message.as_ptr(), message.len()), ptr::null_mut(), 0) }
    }

    /// Offers memory for one message; a completion with `context` says how long it is.
    ///
    /// # Safety
    ///
    /// The memory is the provider's alone until then or until the endpoint is closed.
    pub(crate) unsafe fn receive(
        &self,
        memory: (*mut u8, usize),
        descriptor: *mut c_void,
        context: usize,
    ) -> io::Result<Posted> {
        let (start, len) = memory;
        // SAFETY: the caller's promise.
        let status = unsafe {
            let receive = (*(*self.endpoint.as_ptr()).msg).recv;
            let context = ptr::without_provenance_mut(context);
            let from = sys::FI_ADDR_UNSPEC;
            receive(
                self.endpoint.as_ptr(),
                start.cast(),
                len,
                descriptor,
                from,
                context,
            )
        };
        self.posted(status)
    }

    /// Writes at the other end; the completion says that the bytes are in their place.
    ///
    /// # Safety
    ///
    /// The slices are readable, and nobody writes them, until then or until the endpoint is closed.
    pub(crate) unsafe fn write(&self, write: Write<'_>) -> io::Result<Posted> {
        assert!(
            write.descriptors.len() >= write.slices.len(),
            "a descriptor for each slice"
        );
        let target = sys::RmaIov {
            addr: write.address,
            len: write.slices.iter().map(|slice| slice.len()).sum(),
            key: write.key,
        };
        let message = sys::MsgRma {
            msg_iov: write.slices.as_ptr().cast(),
            desc: write.descriptors.as_mut_ptr(),
            iov_count: write.slices.len(),
            addr: write.to.0,
            rma_iov: &target,
            rma_iov_count: 1,
            context: ptr::without_provenance_mut(write.context),
            data: 0,
        };
        // SAFETY: the caller's promise for the slices; everything else is copied during the call. `IoSlice`
        // has the layout of `struct iovec`.
        let status = unsafe {
            let write = (*(*self.endpoint.as_ptr()).rma).writemsg;
            let flags = sys::FI_COMPLETION | sys::FI_DELIVERY_COMPLETE;
            write(self.endpoint.as_ptr(), &message, flags)
        };
        self.posted(status)
    }

    /// Makes progress, and adds what has ended to `ended`.
    pub(crate) fn poll(&self, ended: &mut Vec<Completion>) -> io::Result<()> {
        let nothing = sys::CqMsgEntry {
            op_context: ptr::null_mut(),
            flags: 0,
            len: 0,
        };
        let mut entries = [nothing; BATCH];
        // SAFETY: the queue is open, of the format of these entries, and at most as many are written.
        let count = unsafe {
            let read = (*(*self.queue.as_ptr()).ops).read;
            read(self.queue.as_ptr(), entries.as_mut_ptr().cast(), BATCH)
        };
        if count == -(sys::FI_EAGAIN as isize) {
            return Ok(());
        }
        if count == -(sys::FI_EAVAIL as isize) {
            ended.extend(self.failure());
            return Ok(());
        }
        let Ok(count) = usize::try_from(count) else {
            return Err(self.domain.error(count as i64));
        };
        ended.extend(entries[..count].iter().map(|entry| Completion {
            context: entry.op_context.addr(),
            len: entry.len,
            failure: None,
        }));
        Ok(())
    }

    pub(crate) fn domain(&self) -> &Rc<Domain> {
        &self.domain
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::FidEp {
        self.endpoint.as_ptr()
    }

    pub(crate) fn queue(&self) -> *mut sys::Fid {
        self.queue.as_ptr().cast()
    }

    /// What the queue has to say of something that failed.
    fn failure(&self) -> Option<Completion> {
        let mut entry = sys::CqErrEntry {
            op_context: ptr::null_mut(),
            flags: 0,
            len: 0,
            buf: ptr::null_mut(),
            data: 0,
            tag: 0,
            olen: 0,
            err: 0,
            prov_errno: 0,
            err_data: ptr::null_mut(),
            // None of ours: details stay with the provider.
            err_data_size: 0,
            spare: [0; 8],
        };
        // SAFETY: the queue is open; the entry has room for what newer versions write.
        let count = unsafe {
            let read = (*(*self.queue.as_ptr()).ops).readerr;
            read(self.queue.as_ptr(), &mut entry, 0)
        };
        (count == 1).then(|| Completion {
            context: entry.op_context.addr(),
            len: 0,
            failure: Some(self.domain.error(entry.err.into()).kind()),
        })
    }

    fn posted(&self, status: isize) -> io::Result<Posted> {
        match status {
            0 => Ok(Posted::Yes),
            status if status == -(sys::FI_EAGAIN as isize) => Ok(Posted::Again),
            status => Err(self.domain.error(status as i64)),
        }
    }
}

impl Domain {
    /// Whether it is safe to sleep on the descriptors of these queues: nothing is waiting in them.
    pub(crate) fn may_sleep<'a>(&self, endpoints: impl Iterator<Item = &'a Endpoint>) -> bool {
        let mut queues: Vec<*mut sys::Fid> = endpoints.map(Endpoint::queue).collect();
        // SAFETY: the queues belong to endpoints that are borrowed, of this fabric.
        let status = unsafe {
            let try_wait = (*(*self.fabric()).ops).trywait;
            try_wait(self.fabric(), queues.as_mut_ptr(), queues.len() as i32)
        };
        status == 0
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // SAFETY: the endpoint refers to the other two, so it is closed first; nobody uses them after this.
        unsafe {
            close(self.endpoint.cast());
            close(self.addresses.cast());
            close(self.queue.cast());
        }
    }
}

/// A completion queue, with a descriptor if the provider has one.
fn open_queue(domain: &Rc<Domain>) -> io::Result<(NonNull<sys::FidCq>, Option<RawFd>)> {
    let mut status = 0;
    for wait_obj in [sys::FI_WAIT_FD, sys::FI_WAIT_NONE] {
        let mut attr = sys::CqAttr {
            size: 0,
            flags: 0,
            format: sys::FI_CQ_FORMAT_MSG,
            wait_obj,
            signaling_vector: 0,
            wait_cond: 0,
            wait_set: ptr::null_mut(),
            spare: [0; 4],
        };
        let mut queue = ptr::null_mut();
        // SAFETY: the domain is open; `queue` is written only.
        status = unsafe {
            let open = (*(*domain.as_ptr()).ops).cq_open;
            open(domain.as_ptr(), &mut attr, &mut queue, ptr::null_mut())
        };
        let Some(queue) = NonNull::new(queue).filter(|_| status == 0) else {
            continue;
        };
        let mut fd: RawFd = -1;
        if wait_obj == sys::FI_WAIT_FD {
            // SAFETY: the queue was opened with a descriptor, which is what this writes.
            let status = unsafe {
                let control = (*(*queue.as_ptr()).fid.ops).control;
                control(queue.as_ptr().cast(), sys::FI_GETWAIT, (&raw mut fd).cast())
            };
            if status != 0 {
                fd = -1;
            }
        }
        return Ok((queue, Some(fd).filter(|&fd| fd >= 0)));
    }
    Err(domain.error(status.into()))
}

fn open_addresses(domain: &Rc<Domain>) -> io::Result<NonNull<sys::FidAv>> {
    let kind = match domain.limits().av_type {
        sys::FI_AV_MAP => sys::FI_AV_MAP,
        _ => sys::FI_AV_TABLE,
    };
    let mut attr = sys::AvAttr {
        kind,
        rx_ctx_bits: 0,
        count: 0,
        ep_per_node: 0,
        name: ptr::null(),
        map_addr: ptr::null_mut(),
        flags: 0,
    };
    let mut addresses = ptr::null_mut();
    // SAFETY: the domain is open; `addresses` is written only.
    let status = unsafe {
        let open = (*(*domain.as_ptr()).ops).av_open;
        open(domain.as_ptr(), &mut attr, &mut addresses, ptr::null_mut())
    };
    NonNull::new(addresses)
        .filter(|_| status == 0)
        .ok_or_else(|| domain.error(status.into()))
}

/// Completions taken at a time.
const BATCH: usize = 16;
/// The longest name of an endpoint: those of known providers have at most 64 bytes.
pub(crate) const MAX_NAME: usize = 128;
