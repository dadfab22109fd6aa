//! Amounts as people read them.

/// `23.5 GiB`.
pub(crate) fn bytes(count: u64) -> String {
    for (unit, name) in [
        (1_u64 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ] {
        if count >= unit {
            let amount = count as f64 / unit as f64;
            let digits = usize::from(amount < 100.0 && amount.fract() >= 0.05);
            return format!("{amount:.digits$} {name}");
        }
    }
    format!("{count} B")
}

/// `1 core`, `2 cores`.
pub(crate) fn count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A limit that may not be there.
pub(crate) fn limit(limit: Option<u64>, show: impl FnOnce(u64) -> String) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), show)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_digits_that_matter() {
        for (amount, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (8 << 20, "8 MiB"),
            (25_274_925_056, "23.5 GiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(bytes(amount), shown);
        }
        assert_eq!(count(1, "core", "cores"), "1 core");
    }
}
