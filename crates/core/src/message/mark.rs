//! Which numbers a message of one piece holds: said and compared in debug builds only.
//!
//! Only the language's own numbers are marked, by their names, and their slices and arrays as one of them would be. Integers of
//! one width share one mark, signed or not. Bytes have none, because everything consists of them; nor have a program's own
//! types, which may be sent as one type and received as another with the same bytes. So there is no error where both sides
//! are right. In release builds nothing of this exists: a mark takes no space and no time. A side without marks accepts all.

use super::pieces::Flags;
use crate::error::UnpackError;

/// Which numbers a piece holds, if it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(#[cfg(debug_assertions)] u16);

impl Mark {
    /// What values of `T` are.
    #[inline(always)]
    pub(crate) fn of<T: ?Sized>() -> Self {
        #[cfg(debug_assertions)]
        return Self(code_of(core::any::type_name::<T>()));
        #[cfg(not(debug_assertions))]
        Self()
    }

    /// The flags of a message that is one piece of it.
    #[inline(always)]
    pub(crate) const fn single(self) -> Flags {
        #[cfg(debug_assertions)]
        return Flags(Flags::SINGLE.0 | self.0 << Flags::MARK.0.trailing_zeros());
        #[cfg(not(debug_assertions))]
        Flags::SINGLE
    }

    /// Whether a message with `flags` may be received as this.
    #[inline(always)]
    pub(crate) fn check(self, flags: Flags) -> Result<(), UnpackError> {
        #[cfg(debug_assertions)]
        {
            let name = |code: u16| NUMBERS.get(usize::from(code).wrapping_sub(1)).copied();
            let sent = (flags.0 & Flags::MARK.0) >> Flags::MARK.0.trailing_zeros();
            if let (Some(sent), Some(asked)) = (name(sent), name(self.0)) {
                if sent != asked {
                    return Err(UnpackError::Type { sent, asked });
                }
            }
        }
        let _ = flags;
        Ok(())
    }
}

/// What is marked; the mark is the position, from one.
#[cfg(debug_assertions)]
const NUMBERS: [&str; 6] = [
    "u16 or i16",
    "u32 or i32",
    "u64 or i64",
    "u128 or i128",
    "f32",
    "f64",
];

/// What an array or a slice, of any depth, consists of, by its type's name: "[f64]", "[f64; 3]" and "[[f64; 3]; 2]" are all f64.
pub(super) fn innermost(name: &str) -> &str {
    let mut element = name;
    while let Some(inner) = element
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        element = match inner.rsplit_once("; ") {
            Some((array, _)) if !inner.ends_with(']') => array,
            _ => inner,
        };
    }
    element
}

/// The mark of a type by its name; 0 for none.
#[cfg(debug_assertions)]
fn code_of(name: &str) -> u16 {
    match innermost(name) {
        "u16" | "i16" => 1,
        "u32" | "i32" => 2,
        "u64" | "i64" => 3,
        "usize" | "isize" if cfg!(target_pointer_width = "64") => 3,
        "u128" | "i128" => 4,
        "f32" => 5,
        "f64" => 6,
        _ => 0,
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn slices_and_arrays_have_the_mark_of_their_elements_and_other_types_none() {
        let marks = [
            Mark::of::<f64>(),
            Mark::of::<[f64]>(),
            Mark::of::<[f64; 3]>(),
            Mark::of::<[[f64; 3]; 2]>(),
            Mark::of::<[[f64; 3]]>(),
        ];
        assert!(marks.iter().all(|mark| mark.0 == 6), "{marks:?}");
        assert_eq!(Mark::of::<isize>().0, Mark::of::<u64>().0);
        let none = [
            Mark::of::<u8>(),
            Mark::of::<[u8]>(),
            Mark::of::<str>(),
            Mark::of::<bool>(),
            Mark::of::<[char]>(),
            Mark::of::<core::num::NonZeroU32>(),
        ];
        assert!(none.iter().all(|mark| mark.0 == 0), "{none:?}");
    }

    #[test]
    fn only_two_known_marks_that_differ_are_an_error() {
        let (float, integer) = (Mark::of::<f64>(), Mark::of::<u64>());
        assert_eq!(float.check(float.single()), Ok(()));
        assert_eq!(float.check(Flags::SINGLE), Ok(()));
        assert_eq!(Mark::of::<u8>().check(float.single()), Ok(()));
        assert_eq!(float.check(Flags(0x0f01)), Ok(()), "no such mark");
        let (sent, asked) = ("u64 or i64", "f64");
        assert_eq!(
            float.check(integer.single()),
            Err(UnpackError::Type { sent, asked })
        );
    }
}
