//! What providers offer, and the choice of one.
//!
//! This file has unsafe code because it walks the lists that libfabric returns.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::ptr::{self, NonNull};

use crate::library::{Library, Version};
use crate::options::{OfiOptions, OpenError};
use crate::sys;

/// An offer that was chosen: ours until it is dropped.
pub(crate) struct Info {
    library: &'static Library,
    list: NonNull<sys::Info>,
}

impl Info {
    /// The first offer that suits the driver, under these options.
    pub(crate) fn choose(options: &OfiOptions) -> Result<Self, OpenError> {
        let library = Library::get()?;
        if let Some(found) = query(library, options, Need::Driver) {
            return Ok(found);
        }
        let everywhere = query(library, &OfiOptions::new(), Need::Driver);
        let mut available: Vec<String> = everywhere.iter().flat_map(Info::names).collect();
        available.sort();
        available.dedup();
        let wanted = options.provider.as_deref().unwrap_or("of any name");
        let mut wanted = format!("{wanted:?}");
        if let Some(at) = options.at {
            wanted.push_str(&format!(" at {at}"));
        }
        if let Some(domain) = &options.domain {
            wanted.push_str(&format!(" on {domain}"));
        }
        Err(OpenError::NoProvider { wanted, available })
    }

    pub(crate) fn library(&self) -> &'static Library {
        self.library
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::Info {
        self.list.as_ptr()
    }

    pub(crate) fn provider(&self) -> String {
        // SAFETY: as in `first`.
        text(unsafe { (*self.first().fabric_attr).prov_name })
    }

    pub(crate) fn addr_format(&self) -> u32 {
        self.first().addr_format
    }

    /// The numbers that the driver plans with.
    pub(crate) fn limits(&self) -> Limits {
        let info = self.first();
        // SAFETY: as in `first`; `fi_getinfo` fills all attributes of what it returns.
        let (tx, ep, domain) = unsafe { (&*info.tx_attr, &*info.ep_attr, &*info.domain_attr) };
        Limits {
            inject: tx.inject_size,
            slices: tx.iov_limit.max(1),
            transfer: ep.max_msg_size,
            mr_mode: domain.mr_mode,
            key_bytes: domain.mr_key_size,
            av_type: domain.av_type,
        }
    }

    fn first(&self) -> &sys::Info {
        // SAFETY: `fi_getinfo` made it, and nobody frees or changes it before `self` is dropped.
        unsafe { self.list.as_ref() }
    }

    /// The providers of the whole list.
    fn names(&self) -> Vec<String> {
        self.offers(|info| {
            // SAFETY: `offers` hands out entries of the list, which have all attributes.
            text(unsafe { (*info.fabric_attr).prov_name })
        })
    }

    fn offers<T>(&self, mut take: impl FnMut(&sys::Info) -> T) -> Vec<T> {
        let mut taken = Vec::new();
        let mut next = self.list.as_ptr();
        // SAFETY: the list ends with a null pointer, and all of it lives as long as `self`.
        while let Some(info) = unsafe { next.as_ref() } {
            taken.push(take(info));
            next = info.next;
        }
        taken
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: the list came from `fi_getinfo`, and nothing of it is used after this.
        unsafe { (self.library.freeinfo)(self.list.as_ptr()) };
    }
}

impl std::fmt::Debug for Info {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Info").field(&self.provider()).finish()
    }
}

/// What the chosen provider can do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The longest message that is copied at once.
    pub(crate) inject: usize,
    /// The most slices of one transfer.
    pub(crate) slices: usize,
    /// The longest transfer.
    pub(crate) transfer: usize,
    pub(crate) mr_mode: i32,
    pub(crate) key_bytes: usize,
    pub(crate) av_type: i32,
}

/// One thing that libfabric offers here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ProviderInfo {
    /// Its name, as [`OfiOptions::provider`] takes it.
    pub name: String,
    /// The interface or card, as [`OfiOptions::domain`] takes it.
    pub domain: String,
    /// Whether a driver can use it.
    pub usable: bool,
}

/// What libfabric offers on this machine; nothing if it finds no network.
///
/// # Errors
///
/// If there is no libfabric, or it is too old.
pub fn providers() -> Result<Vec<ProviderInfo>, OpenError> {
    let library = Library::get()?;
    let all = |need| {
        let found = query(library, &OfiOptions::new(), need);
        let offers = found.iter().flat_map(|info| {
            // SAFETY: `offers` hands out entries of a list that `fi_getinfo` filled.
            info.offers(|info| unsafe {
                (
                    text((*info.fabric_attr).prov_name),
                    text((*info.domain_attr).name),
                )
            })
        });
        offers.collect::<Vec<_>>()
    };
    let usable = all(Need::Driver);
    let mut providers: Vec<ProviderInfo> = all(Need::Nothing)
        .into_iter()
        .chain(usable.clone())
        .map(|(name, domain)| ProviderInfo {
            usable: usable.contains(&(name.clone(), domain.clone())),
            name,
            domain,
        })
        .collect();
    providers.sort();
    providers.dedup();
    Ok(providers)
}

/// What an offer must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// What the driver is built on.
    Driver,
    Nothing,
}

fn query(library: &'static Library, options: &OfiOptions, need: Need) -> Option<Info> {
    let node = options.at.map(|at| at.to_string());
    let node = node.and_then(|node| CString::new(node).ok());
    let name = |text: &Option<String>| text.as_ref().map(|text| CString::new(text.as_str()));
    // A name with a zero byte inside is nobody's.
    let provider = name(&options.provider).transpose().ok()?;
    let domain = name(&options.domain).transpose().ok()?;
    let raw = |text: &Option<CString>| {
        text.as_ref()
            .map_or(ptr::null_mut(), |text| text.as_ptr().cast_mut())
    };
    // SAFETY: `fi_dupinfo` of nothing allocates hints with all attributes, zeroed (`fi_allocinfo`).
    let hints = NonNull::new(unsafe { (library.dupinfo)(ptr::null()) })?;
    let mut list = ptr::null_mut();
    // SAFETY: the hints are ours alone and complete. The names outlive the call, which does not keep them,
    // and are taken out again before the hints are freed, which would free them too. `list` is written only.
    let status = unsafe {
        if need == Need::Driver {
            fill(hints.as_ptr());
        }
        (*(*hints.as_ptr()).fabric_attr).prov_name = raw(&provider);
        (*(*hints.as_ptr()).domain_attr).name = raw(&domain);
        let source = if node.is_some() { sys::FI_SOURCE } else { 0 };
        let status = (library.getinfo)(
            sys::API_VERSION,
            raw(&node),
            ptr::null(),
            source,
            hints.as_ptr(),
            &mut list,
        );
        (*(*hints.as_ptr()).fabric_attr).prov_name = ptr::null_mut();
        (*(*hints.as_ptr()).domain_attr).name = ptr::null_mut();
        (library.freeinfo)(hints.as_ptr());
        status
    };
    let list = NonNull::new(list).filter(|_| status == 0)?;
    // SAFETY: the list is complete and ours. What was asked for is offered, but is not to be the rule:
    // only writes wait for delivery, frames do not.
    unsafe { (*(*list.as_ptr()).tx_attr).op_flags = 0 };
    Some(Info { library, list })
}

/// Says what the driver needs.
///
/// # Safety
///
/// `hints` has all attributes, and nobody else uses it.
unsafe fn fill(hints: *mut sys::Info) {
    // SAFETY: the caller's promise.
    unsafe {
        (*hints).caps = sys::FI_MSG | sys::FI_RMA;
        (*hints).mode = 0;
        (*(*hints).ep_attr).kind = sys::FI_EP_RDM;
        // Frames of a link arrive in the order they were sent.
        (*(*hints).tx_attr).msg_order = sys::FI_ORDER_SAS;
        (*(*hints).rx_attr).msg_order = sys::FI_ORDER_SAS;
        // The end of a write means that the bytes are in their place.
        (*(*hints).tx_attr).op_flags = sys::FI_DELIVERY_COMPLETE;
        let domain = &mut *(*hints).domain_attr;
        domain.threading = sys::FI_THREAD_DOMAIN;
        domain.control_progress = sys::FI_PROGRESS_MANUAL;
        domain.data_progress = sys::FI_PROGRESS_MANUAL;
        domain.resource_mgmt = sys::FI_RM_ENABLED;
        domain.mr_mode = sys::FI_MR_LOCAL
            | sys::FI_MR_VIRT_ADDR
            | sys::FI_MR_ALLOCATED
            | sys::FI_MR_PROV_KEY
            | sys::FI_MR_ENDPOINT;
    }
}

fn text(from: *const c_char) -> String {
    if from.is_null() {
        return String::new();
    }
    // SAFETY: not null, hence a string that libfabric ended with a zero byte; it is copied at once.
    unsafe { CStr::from_ptr(from) }
        .to_string_lossy()
        .into_owned()
}

impl Version {
    /// The interface that we ask for, which newer libraries serve, too.
    pub const OLDEST: Self = Self(sys::API_VERSION);
}
