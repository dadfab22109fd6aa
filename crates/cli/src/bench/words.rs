//! Figures as people read them.

/// `64 KiB`
pub(crate) fn size(bytes: usize) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes % unit == 0 {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{bytes} B")
}

/// `1.23 µs`, from a value in one of the units that results have.
pub(crate) fn value(value: f64, unit: &str) -> String {
    match unit {
        "ns" => scaled(value, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]),
        "s" => scaled(value, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")]),
        "msg/s" => scaled(value, &[(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")]),
        "B/s" => scaled(
            value,
            &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")],
        ),
        "cpu%" => format!("{value:.3} %"),
        _ => format!("{value} {unit}"),
    }
}

/// As [`value`], for values that are round: `10 µs`.
pub(crate) fn round(value: f64, unit: &str) -> String {
    let text = self::value(value, unit);
    match text.split_once(' ') {
        Some((amount, name)) if amount.contains('.') => {
            let amount = amount.trim_end_matches('0').trim_end_matches('.');
            format!("{amount} {name}")
        }
        _ => text,
    }
}

/// In the largest unit of which there is at least one, with three digits that matter.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let fitting = units.iter().find(|(unit, _)| value >= *unit);
    let Some((unit, name)) = fitting.or(units.last()) else {
        return value.to_string();
    };
    let amount = value / unit;
    let digits = match amount {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{amount:.digits$} {name}")
}

/// A size as the user writes it: `8`, `64K`, `1M`.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let refusal = || {
        format!(
            "{text:?} is not a size up to 256M; write bytes, or a number with K or M, as in 8,64K,1M"
        )
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => 1,
        "k" | "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        _ => return Err(refusal()),
    };
    let count: usize = digits.parse().map_err(|_| refusal())?;
    let size = count.checked_mul(unit).ok_or_else(refusal)?;
    if size <= LARGEST {
        Ok(size)
    } else {
        Err(refusal())
    }
}

/// Both sides hold buffers of this size, several times.
const LARGEST: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for (text, bytes, shown) in [
            ("8", 8, "8 B"),
            ("64K", 65_536, "64 KiB"),
            ("1M", 1 << 20, "1 MiB"),
            ("1000", 1000, "1000 B"),
            ("2KiB", 2048, "2 KiB"),
        ] {
            assert_eq!(parse_size(text), Ok(bytes));
            assert_eq!(size(bytes), shown);
        }
        for wrong in [
            "",
            "K",
            "-1",
            "1.5K",
            "64Q",
            "1000000M",
            "99999999999999999999",
        ] {
            assert!(
                parse_size(wrong).unwrap_err().contains("is not a size"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn values_have_three_digits_that_matter() {
        assert_eq!(value(123.4, "ns"), "123 ns");
        assert_eq!(value(1234.0, "ns"), "1.23 µs");
        assert_eq!(value(12_345_678.0, "msg/s"), "12.3 M/s");
        assert_eq!(value(8.25e9, "B/s"), "8.25 GB/s");
        assert_eq!(value(0.0123, "s"), "12.3 ms");
        assert_eq!(value(0.0, "ns"), "0.00 ns");
        assert_eq!(round(10_000.0, "ns"), "10 µs");
        assert_eq!(round(100.0, "ns"), "100 ns");
    }
}
