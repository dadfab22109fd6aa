//! Which known word was meant by an unknown one.

/// The known word that is nearest, if it is near enough to be meant.
pub(crate) fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let word: Vec<char> = word.chars().take(LONGEST + 1).collect();
    if word.len() > LONGEST {
        return None;
    }
    let distances = known.iter().map(|known| (distance(&word, known), *known));
    let (distance, known) = distances.min_by_key(|(distance, _)| *distance)?;
    // A third of the letters may be wrong: more, and any short word would be near any other.
    let allowed = (known.len() / 3).max(1);
    (distance <= allowed).then_some(known)
}

/// How many letters to insert, remove, change or swap with their neighbour, ignoring case.
fn distance(word: &[char], known: &str) -> usize {
    let known: Vec<char> = known.chars().collect();
    let same = |i: usize, j: usize| word[i].eq_ignore_ascii_case(&known[j]);
    // Row `i` holds the distances from the first `i` letters of the word.
    let mut rows = vec![vec![0; known.len() + 1]; word.len() + 1];
    rows[0] = (0..=known.len()).collect();
    for i in 1..=word.len() {
        rows[i][0] = i;
        for j in 1..=known.len() {
            let changed = rows[i - 1][j - 1] + usize::from(!same(i - 1, j - 1));
            let mut best = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1) {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[word.len()][known.len()]
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
