//! The library: loaded on first use, and kept until the end of the process.
//!
//! This file has unsafe code because it takes functions out of a shared object by name.
#![allow(unsafe_code)]

use std::error::Error;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::io;
use std::sync::OnceLock;

use libloading::Library as Object;

use crate::options::OpenError;
use crate::sys;

/// The functions that libfabric exports and we use.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) getinfo: GetInfo,
    pub(crate) freeinfo: unsafe extern "C" fn(*mut sys::Info),
    pub(crate) dupinfo: unsafe extern "C" fn(*const sys::Info) -> *mut sys::Info,
    pub(crate) fabric:
        unsafe extern "C" fn(*mut sys::FabricAttr, *mut *mut sys::FidFabric, *mut c_void) -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    version: u32,
    /// Never unloaded: some providers have threads and exit handlers, and we keep its functions.
    _object: Object,
}

type GetInfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const sys::Info,
    *mut *mut sys::Info,
) -> c_int;

impl Library {
    /// The library, loaded if it was not yet.
    pub(crate) fn get() -> Result<&'static Self, OpenError> {
        static LOADED: OnceLock<Result<Library, String>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| Self::load(NAME));
        let library = loaded
            .as_ref()
            .map_err(|why| OpenError::NoLibrary { why: why.clone() })?;
        if library.version < sys::API_VERSION {
            let found = Version(library.version).to_string();
            return Err(OpenError::TooOld { found });
        }
        Ok(library)
    }

    /// What an error number of the library means; its own numbers begin where the system's end.
    pub(crate) fn error(&self, status: i64) -> io::Error {
        let number = i32::try_from(status.unsigned_abs()).unwrap_or(i32::MAX);
        if number < FIRST_OWN_ERROR {
            return io::Error::from_raw_os_error(number);
        }
        // SAFETY: `fi_strerror` takes any number, and returns text that is never freed.
        let text = unsafe { CStr::from_ptr((self.strerror)(number)) };
        io::Error::other(text.to_string_lossy().into_owned())
    }

    fn load(name: &str) -> Result<Self, String> {
        // SAFETY: loading runs the library's initialisers, which set up its providers and do not rely on us.
        let object = unsafe { Object::new(name) }.map_err(|why| explain(&why))?;
        // SAFETY: the types are those of the headers for the newest version of each symbol; what later
        // versions changed is behind the pointers, and only at the end of structures (see `sys`).
        let library = unsafe {
            let version: unsafe extern "C" fn() -> u32 = find(&object, b"fi_version\0")?;
            Self {
                getinfo: find(&object, b"fi_getinfo\0")?,
                freeinfo: find(&object, b"fi_freeinfo\0")?,
                dupinfo: find(&object, b"fi_dupinfo\0")?,
                fabric: find(&object, b"fi_fabric\0")?,
                strerror: find(&object, b"fi_strerror\0")?,
                version: version(),
                _object: object,
            }
        };
        Ok(library)
    }
}

/// A version of libfabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub(crate) u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 >> 16, self.0 & 0xffff)
    }
}

/// The version of the libfabric that is installed here.
///
/// # Errors
///
/// If there is none, or it is too old to be used.
pub fn version() -> Result<Version, OpenError> {
    Ok(Version(Library::get()?.version))
}

/// A function by name.
///
/// # Safety
///
/// `T` is the type of that function, which is not called once the object is unloaded.
unsafe fn find<T: Copy>(object: &Object, name: &[u8]) -> Result<T, String> {
    // SAFETY: passed on to the caller.
    let symbol = unsafe { object.get::<T>(name) };
    symbol.map(|symbol| *symbol).map_err(|why| explain(&why))
}

/// An error with its causes, which the loader keeps apart.
fn explain(why: &dyn Error) -> String {
    let mut text = why.to_string();
    let mut cause = why.source();
    while let Some(why) = cause {
        text.push_str(&format!(": {why}"));
        cause = why.source();
    }
    text
}

/// Of the ABI that both 1.x and 2.x have.
const NAME: &str = "libfabric.so.1";
/// `FI_ERRNO_OFFSET`.
const FIRST_OWN_ERROR: i32 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_the_library_is_told_so() {
        let why = Library::load("libfabric-that-nobody-installed.so.1").expect_err("nothing there");
        assert!(why.contains("libfabric-that-nobody-installed"), "{why}");
    }

    #[test]
    fn a_version_reads_as_people_write_it() {
        assert_eq!(Version(sys::API_VERSION).to_string(), "1.17");
    }
}
