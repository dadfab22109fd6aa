//! Small files of the kernel.

use std::io::Read;
use std::path::Path;

/// A small file of the kernel, without blanks around it. None if it is not there, is empty, or is no text.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(LARGEST).read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Bytes of a file that are read: the list of mounts may be long.
const LARGEST: u64 = 1 << 20;
