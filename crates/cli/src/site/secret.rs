//! `mizzen site secret`: what two halves of a job have in common.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, bail};
use zeroize::Zeroizing;

pub(super) fn secret(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    let mut random = Zeroizing::new([0u8; 32]);
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut random[..]))
        .context("no random numbers from /dev/urandom")?;
    // All room at once: growing would leave copies behind.
    let mut text = Zeroizing::new(String::with_capacity(2 * random.len() + 1));
    for byte in random.iter() {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
        }
    }
    text.push('\n');
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let write = || -> std::io::Result<()> {
        let mut file = options.open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().or_else(|error| match error.kind() {
        ErrorKind::AlreadyExists => bail!(
            "{shown} is there already, and nothing is overwritten: use it, if it is a secret of the two halves, or give another name"
        ),
        _ => Err(error).with_context(|| format!("{shown} cannot be written")),
    })?;
    println!(
        "{shown} is made. Take a copy to the other site by a way that you trust, such as scp, and let nobody else read it."
    );
    Ok(())
}
