//! Writes the seeds of all targets: `cargo run -p mizzen-fuzz-targets --example seeds -- FOLDER` makes `FOLDER/<target>/`.

use std::path::Path;
use std::{env, fs, io};

use mizzen_fuzz_targets::TARGETS;

fn main() -> io::Result<()> {
    let folder = env::args_os().nth(1).ok_or(io::ErrorKind::InvalidInput)?;
    for target in TARGETS {
        let folder = Path::new(&folder).join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)().into_iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
