//! Options of the command line: their values checked, and one answer to wrong ones for a whole job.

use core::fmt::Display;
use core::ops::RangeInclusive;
use core::str::FromStr;

use mizzen::Deck;

use crate::failure::Result;

/// Reads a value as a number within `bounds`, whose type is that of the option: a `value_parser` of clap.
///
/// ```
/// use mizzen_examples::options::number;
///
/// let threads = number(1..=64);
/// assert_eq!(threads("2"), Ok(2));
/// assert_eq!(threads("none"), Err("not a number from 1 to 64".to_owned()));
/// ```
pub fn number<T: FromStr + PartialOrd + Display + Clone>(
    bounds: RangeInclusive<T>,
) -> impl Fn(&str) -> std::result::Result<T, String> + Clone {
    move |value| match value.parse() {
        Ok(number) if bounds.contains(&number) => Ok(number),
        _ => {
            let (least, most) = (bounds.start(), bounds.end());
            Err(format!("not a number from {least} to {most}"))
        }
    }
}

/// The options, or none if this process has nothing to do: they were wrong, or the user asked for help.
///
/// All processes of a job get the same arguments, and one answer is enough: rank 0 gives it.
///
/// # Errors
///
/// At rank 0, what is wrong with the options.
pub fn accept<T>(deck: &Deck, asked: Result<T>) -> Result<Option<T>> {
    let error = match asked {
        Ok(options) => return Ok(Some(options)),
        Err(_) if deck.rank() != 0 => return Ok(None),
        Err(error) => error,
    };
    match error.downcast::<clap::Error>() {
        // Help is an error to clap, though not one that goes to the standard error.
        Ok(help) if !help.use_stderr() => {
            help.print()?;
            Ok(None)
        }
        Ok(refusal) => {
            let text = refusal.to_string();
            // What failed is said by who prints it.
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            Err(text.trim_end().into())
        }
        Err(error) => Err(error),
    }
}
