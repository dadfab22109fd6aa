//! Doors for the fuzz targets in `fuzz/targets`: what reads a stranger's bytes, by function. For nobody else.

use crate::handshake::{Hello, Role};
use crate::header::Header;
use crate::security::Records;

/// Reads a header.
///
/// # Panics
///
/// When one that was taken is not written as it was read.
pub fn header(bytes: &[u8]) {
    let Some(bytes) = bytes.first_chunk() else {
        return;
    };
    if let Ok(header) = Header::decode(bytes) {
        assert_eq!(header.encode(), *bytes, "{header:?}");
    }
}

/// Reads a hello, of either end.
///
/// # Panics
///
/// As [`header`].
pub fn hello(bytes: &[u8]) {
    let Some(bytes) = bytes.first_chunk() else {
        return;
    };
    for role in [Role::Dialler, Role::Acceptor] {
        for records in [Records::Sealed, Records::Clear] {
            if let Some(hello) = Hello::decode(bytes, role, records) {
                assert_eq!(hello.encode(role, records), *bytes, "{hello:?}");
            }
        }
    }
}
