//! Names that may have been meant by a misspelt one.

use std::sync::Arc;

use super::MAX_NEAR;

/// Those of `known` that `wanted` may be a misspelling of, the nearest first.
pub(super) fn near<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Vec<Arc<str>> {
    let letters = wanted.chars().count();
    // One wrong letter in a short name, three in a long one.
    let most = (letters / 3).clamp(1, 3);
    let mut found: Vec<(usize, &str)> = known
        .filter(|name| *name != wanted && name.chars().count().abs_diff(letters) <= most)
        .map(|name| (distance(wanted, name), name))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    found.sort_unstable();
    found.dedup();
    found.truncate(MAX_NEAR);
    found.into_iter().map(|(_, name)| name.into()).collect()
}

/// How many letters must be changed, added, taken away or swapped; another case counts as nothing.
fn distance(one: &str, other: &str) -> usize {
    strsim::osa_distance(&one.to_lowercase(), &other.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_near_and_others_are_not() {
        let known = ["answers", "answer", "Inbox 1", "halo north"];
        let near = |wanted| -> Vec<String> {
            let found = near(wanted, known.into_iter());
            found.iter().map(ToString::to_string).collect()
        };
        assert_eq!(near("anwsers"), ["answers", "answer"], "the nearest first");
        assert_eq!(near("inbox 1"), ["Inbox 1"]);
        assert_eq!(near("halo norht"), ["halo north"]);
        assert_eq!(near("results"), [""; 0]);
        assert_eq!(
            near("answers"),
            ["answer"],
            "the name itself is no suggestion"
        );
        assert_eq!(near(""), [""; 0]);
    }
}
