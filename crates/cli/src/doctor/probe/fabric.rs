//! libfabric, which reaches fast networks: whether it is there, which version, which providers.
//!
//! This file has unsafe code because it loads a library and calls it.
#![allow(unsafe_code)]

use std::process::Command;

use super::super::report::Finding;
use super::command::output;

/// What there is of libfabric on this host.
pub(crate) fn fabric() -> Vec<Finding> {
    let Some(version) = loaded_version() else {
        return vec![Finding::ok("libfabric", "not there (TCP does not need it)")];
    };
    let listed = output(Command::new("fi_info").arg("-l"));
    let providers = match listed.as_deref().map(providers) {
        Some(names) if !names.is_empty() => names.join(", "),
        Some(_) => "none".to_owned(),
        None => "unknown: there is no fi_info".to_owned(),
    };
    vec![
        Finding::ok("libfabric", version),
        Finding::ok("fabric providers", providers),
    ]
}

/// The version of the library that processes would load. None if there is none.
fn loaded_version() -> Option<String> {
    // SAFETY: what the library runs while it is loaded is the site's own code, installed to be loaded like this; we are a
    // process that does nothing else and ends soon.
    let library = unsafe { libloading::Library::new("libfabric.so.1") }.ok()?;
    // SAFETY: libfabric declares `uint32_t fi_version(void)`, in all versions of the library of this name.
    let version = unsafe { library.get::<unsafe extern "C" fn() -> u32>(b"fi_version\0") };
    // SAFETY: as declared: no arguments, and callable at any time.
    let number = version.ok().map(|version| unsafe { version() });
    // Unloading would run its destructors while its threads, if it has any, are still there.
    std::mem::forget(library);
    Some(number.map_or_else(|| "unknown version".to_owned(), show))
}

/// The major version is in the upper half.
fn show(number: u32) -> String {
    format!("{}.{}", number >> 16, number & 0xffff)
}

/// The providers in what `fi_info -l` prints, without those that only watch others.
fn providers(text: &str) -> Vec<&str> {
    let names = text.lines().filter_map(|line| line.strip_suffix(':'));
    names
        .filter(|name| !name.starts_with(char::is_whitespace) && !name.starts_with("ofi_hook"))
        .take(MAX_PROVIDERS)
        .collect()
}

/// Providers that are shown.
const MAX_PROVIDERS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_read_from_the_list() {
        let text = "psm2:\n    version: 117.0\nofi_rxm:\n    version: 117.0\nofi_hook_perf:\n    version: 117.0\ntcp:\n";
        assert_eq!(providers(text), ["psm2", "ofi_rxm", "tcp"]);
        assert_eq!(providers("fi_info: error\n"), [""; 0]);
        assert_eq!(show(0x0001_0011), "1.17");
    }
}
