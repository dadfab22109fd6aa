//! What an application says at the end that has drawn a picture through a pool.

use std::path::Path;

use mizzen::{Deck, Report};

use crate::picture::fingerprint;

/// Where the picture goes, if anywhere: programs want figures, unless they name a file.
#[must_use]
pub fn file<'a>(named: Option<&'a Path>, json: bool, otherwise: &'a str) -> Option<&'a Path> {
    match named {
        None if !json => Some(Path::new(otherwise)),
        named => named,
    }
}

/// Who computed how much of the picture in `file`.
#[must_use]
pub fn for_people(file: Option<&Path>, report: &Report) -> String {
    match file {
        Some(file) => format!("{}: {report}", file.display()),
        None => report.to_string(),
    }
}

/// What was asked for, how long it took, and what tells two pictures apart.
#[must_use]
pub fn for_programs(deck: &Deck, asked: &[(&str, usize)], seconds: f64, pixels: &[u8]) -> String {
    let asked = asked
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value},"));
    format!(
        "{{{}\"ranks\":{},\"seconds\":{seconds},\"fingerprint\":\"{:016x}\"}}",
        asked.collect::<String>(),
        deck.size(),
        fingerprint(pixels)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_a_picture_and_programs_only_where_they_ask_for_one() {
        let named = Path::new("mine.png");
        assert_eq!(file(None, false, "scene.png"), Some(Path::new("scene.png")));
        assert_eq!(file(None, true, "scene.png"), None);
        assert_eq!(file(Some(named), true, "scene.png"), Some(named));
    }
}
