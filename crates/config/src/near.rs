//! Which known word was meant by an unknown one.

use strsim::osa_distance;

/// The known word that is nearest, if it is near enough to be meant.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    if word.chars().nth(LONGEST).is_some() {
        return None;
    }
    let word = word.to_ascii_lowercase();
    // Letters to insert, remove, change or swap with their neighbour.
    let distances = known
        .iter()
        .map(|known| (osa_distance(&word, &known.to_ascii_lowercase()), *known));
    let (distance, known) = distances.min_by_key(|(distance, _)| *distance)?;
    // A third of the letters may be wrong: more, and any short word would be near any other.
    let allowed = (known.len() / 3).max(1);
    (distance <= allowed).then_some(known)
}

/// Letters of a word that may have been meant as another: longer ones are none of ours.
const LONGEST: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let known = ["name", "driver", "hosts", "interfaces", "security"];
        for (word, meant) in [
            ("drivr", Some("driver")),
            ("dirver", Some("driver")),
            ("Driver", Some("driver")),
            ("host", Some("hosts")),
            ("interface", Some("interfaces")),
            ("interfcae", Some("interfaces")),
            ("secruity", Some("security")),
            ("nmae", Some("name")),
            ("speed", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, &known), meant, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(1 << 20), &known), None);
        assert_eq!(nearest("name", &[]), None);
    }
}
