//! Reading the memory of another process, tried on a child that wants to be read.
//!
//! The child is this command again (`doctor-readable`): it says where its bytes are, and which, and waits until it is let go.
//! This file has unsafe code because `process_vm_readv` writes where it is told to.
#![allow(unsafe_code)]

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::command::{Kill, read_until};

/// Starts a child and reads its memory. The error is what the kernel said.
pub(crate) fn read_a_child() -> Result<(), String> {
    let child = Command::new("/proc/self/exe")
        .arg0("mizzen")
        .arg("doctor-readable")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("no child: {error}"))?;
    let mut child = Kill(child);
    let (address, expected) = told(&mut child.0).ok_or("the child says nothing")?;
    let found = read_memory(child.0.id(), address)?;
    if found == expected {
        Ok(())
    } else {
        Err("other bytes than the child has".to_owned())
    }
}

/// The child: says where its bytes are, and waits for the end of its standard input.
pub(crate) fn serve() {
    let mut bytes: Box<Bytes> = Box::default();
    let random =
        std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut *bytes));
    let address = std::hint::black_box(&*bytes).as_ptr().addr();
    let line = format!("{address:x} {:x}\n", u128::from_le_bytes(*bytes));
    let said = std::io::stdout().write_all(line.as_bytes());
    if random.is_ok() && said.is_ok() {
        let _ = std::io::stdin().read(&mut [0]);
    }
    std::hint::black_box(bytes);
}

fn told(child: &mut Child) -> Option<(usize, Bytes)> {
    let deadline = Instant::now() + PATIENCE;
    let bytes = read_until(child.stdout.as_mut()?, b'\n', LINE, deadline)?;
    parse(&String::from_utf8_lossy(&bytes))
}

/// A line such as `7f00deadbeef 0123456789abcdef0123456789abcdef`.
fn parse(line: &str) -> Option<(usize, Bytes)> {
    let (address, bytes) = line.trim().split_once(' ')?;
    let address = usize::from_str_radix(address, 16).ok()?;
    let bytes = u128::from_str_radix(bytes, 16).ok()?;
    Some((address, bytes.to_le_bytes()))
}

fn read_memory(process: u32, address: usize) -> Result<Bytes, String> {
    let mut found = Bytes::default();
    let here = libc::iovec {
        iov_base: found.as_mut_ptr().cast(),
        iov_len: found.len(),
    };
    let there = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(address),
        iov_len: found.len(),
    };
    let process = libc::pid_t::try_from(process).map_err(|error| error.to_string())?;
    // SAFETY: `here` is all of `found`, which lives longer than the call and is not used meanwhile; `there` is an address of the
    // other process, which the kernel checks.
    let count =
        unsafe { libc::process_vm_readv(process, &raw const here, 1, &raw const there, 1, 0) };
    match usize::try_from(count) {
        Ok(count) if count == found.len() => Ok(found),
        Ok(_) => Err("cut short".to_owned()),
        Err(_) => Err(refusal(&std::io::Error::last_os_error())),
    }
}

/// Without the number that the standard library adds.
fn refusal(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "not permitted".to_owned(),
        Some(libc::ENOSYS) => "not in this kernel, or hidden by seccomp".to_owned(),
        _ => error.to_string(),
    }
}

/// What is read.
type Bytes = [u8; 16];

/// Bytes of what the child says.
const LINE: usize = 64;

/// How long the child may take to say it.
const PATIENCE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_read_itself() {
        let bytes = [7_u8; 16];
        let found = read_memory(std::process::id(), bytes.as_ptr().addr());
        assert_eq!(found, Ok(bytes));
        assert!(read_memory(std::process::id(), 8).is_err());
    }

    #[test]
    fn what_a_child_says_is_checked() {
        let mut bytes = [0; 16];
        bytes[0] = 0xff;
        assert_eq!(parse("1f ff\n"), Some((0x1f, bytes)));
        for line in [
            "",
            " ",
            "x y",
            "1f",
            "fffffffffffffffff 1",
            "1 100000000000000000000000000000000",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
