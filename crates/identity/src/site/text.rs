//! Keys and certificates as text: PEM (RFC 7468), as other tools write and read it.
//!
//! Our own, since a parser made for certificates leaves copies of keys behind. A private key is PKCS#8 of Ed25519 (RFC 8410), which has one
//! form of 48 bytes: nothing has to be parsed.

use std::fmt;

use zeroize::Zeroizing;

use super::error::SiteKeyError;

/// The longest text of a key or a certificate that is read, in bytes. A certificate of ours has up to 1024 bytes, as text a third more.
pub const MAX_TEXT: usize = 4096;

pub(super) const SEED: usize = 32;

/// The private key of a site or a gateway as text, to be written into a file that nobody else can read. Wiped when dropped, never printed.
pub struct KeyText(Zeroizing<String>);

impl KeyText {
    /// The text. Wipe every copy that you make.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Without the text.
impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(..)")
    }
}

/// A certificate as text.
pub fn certificate_to_text(certificate: &[u8]) -> String {
    let mut text = String::new();
    write(CERTIFICATE, certificate, &mut text);
    text
}

/// Reads what [`certificate_to_text`] wrote.
///
/// # Errors
///
/// [`SiteKeyError::CertificateText`] if it is anything else than one certificate in PEM.
pub fn certificate_from_text(text: &str) -> Result<Vec<u8>, SiteKeyError> {
    let mut certificate = Vec::new();
    read(CERTIFICATE, text, &mut certificate).ok_or(SiteKeyError::CertificateText)?;
    Ok(certificate)
}

pub(super) fn seed_to_text(seed: &[u8; SEED]) -> KeyText {
    let mut der = Zeroizing::new([0; PKCS8.len() + SEED]);
    der[..PKCS8.len()].copy_from_slice(&PKCS8);
    der[PKCS8.len()..].copy_from_slice(seed);
    // All room at once: growing would leave copies behind.
    let mut text = Zeroizing::new(String::with_capacity(256));
    write(PRIVATE_KEY, der.as_slice(), &mut text);
    KeyText(text)
}

/// Boxed: moving it would leave copies behind.
pub(super) fn seed_from_text(text: &str) -> Result<Box<Zeroizing<[u8; SEED]>>, SiteKeyError> {
    let mut der = Zeroizing::new(Vec::with_capacity(MAX_TEXT));
    read(PRIVATE_KEY, text, &mut der).ok_or(SiteKeyError::KeyText)?;
    let given = der.strip_prefix(&PKCS8).ok_or(SiteKeyError::KeyText)?;
    let mut seed = Box::new(Zeroizing::new([0; SEED]));
    if given.len() != SEED {
        return Err(SiteKeyError::KeyText);
    }
    seed.copy_from_slice(given);
    Ok(seed)
}

fn write(label: &str, der: &[u8], text: &mut String) {
    text.extend(["-----BEGIN ", label, "-----\n"]);
    for line in der.chunks(LINE / 4 * 3) {
        for group in line.chunks(3) {
            let mut bytes = [0; 4];
            bytes[1..=group.len()].copy_from_slice(group);
            let bits = u32::from_be_bytes(bytes);
            let used = group.len() + 1;
            text.extend((0..4).map(|at| match at < used {
                true => char::from(ALPHABET[(bits >> (18 - 6 * at)) as usize & 63]),
                false => '=',
            }));
        }
        text.push('\n');
    }
    text.extend(["-----END ", label, "-----\n"]);
}

/// Adds what the text says to `der`, which has room for [`MAX_TEXT`] bytes if it must not be copied. None, if it says something else.
fn read(label: &str, text: &str, der: &mut Vec<u8>) -> Option<()> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let mut lines = text.trim().lines().map(str::trim_end);
    let is = |line: &str, word: &str| {
        let inner = line.strip_prefix("-----")?.strip_suffix("-----")?;
        (inner.strip_prefix(word)? == label).then_some(())
    };
    is(lines.next()?, "BEGIN ")?;
    let mut line = lines.next()?;
    while !line.starts_with('-') {
        let next = lines.next()?;
        let last = next.starts_with('-');
        read_line(line, last, der)?;
        line = next;
    }
    is(line, "END ")?;
    lines.next().is_none().then_some(())
}

/// Only the last line may be shorter, or end with `=`.
fn read_line(line: &str, last: bool, der: &mut Vec<u8>) -> Option<()> {
    let digits = line.as_bytes();
    let fits = if last { 1..=LINE } else { LINE..=LINE };
    if !fits.contains(&digits.len()) || digits.len() % 4 != 0 {
        return None;
    }
    let padding = match last {
        true => digits
            .iter()
            .rev()
            .take_while(|&&digit| digit == b'=')
            .count(),
        false => 0,
    };
    if padding > 2 {
        return None;
    }
    for group in digits[..digits.len() - padding].chunks(4) {
        let mut bits = 0;
        for &digit in group {
            bits = bits << 6 | u32::from(value(digit)?);
        }
        bits <<= 6 * (4 - group.len());
        let bytes = bits.to_be_bytes();
        let (used, unused) = bytes[1..].split_at(group.len() - 1);
        // One text for each certificate: what pads must be zero.
        if unused.iter().any(|&byte| byte != 0) {
            return None;
        }
        der.extend_from_slice(used);
    }
    Some(())
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

const CERTIFICATE: &str = "CERTIFICATE";
const PRIVATE_KEY: &str = "PRIVATE KEY";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Characters of a line.
const LINE: usize = 64;

/// What stands before the 32 bytes of an Ed25519 key in PKCS#8 (RFC 8410, 7): lengths, version 1, the algorithm.
const PKCS8: [u8; 16] = [
    0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20,
];
