//! Values of options, checked.

use core::fmt::Display;
use core::ops::RangeInclusive;
use core::str::FromStr;

use crate::Result;

/// The value of `option` as a number within `bounds`.
///
/// ```
/// use mizzen_examples::options::number;
///
/// assert_eq!(number("--threads", "2", 1..=64).unwrap(), 2);
/// let refusal = number("--threads", "none", 1..=64).unwrap_err();
/// assert_eq!(refusal.to_string(), "--threads needs a number from 1 to 64, not \"none\"");
/// ```
///
/// # Errors
///
/// A sentence that names the option and its bounds.
pub fn number<T: FromStr + PartialOrd + Display>(
    option: &str,
    value: &str,
    bounds: RangeInclusive<T>,
) -> Result<T> {
    match value.parse() {
        Ok(number) if bounds.contains(&number) => Ok(number),
        _ => {
            let (least, most) = bounds.into_inner();
            Err(format!("{option} needs a number from {least} to {most}, not {value:?}").into())
        }
    }
}
