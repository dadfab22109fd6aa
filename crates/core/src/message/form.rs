//! Plain data of hosts whose memory has another form than ours: put right, or refused.
//!
//! Plain data travels as it lay in the sender's memory. What comes from a host with another order of bytes has a flag that says so,
//! set when it came off the network, and is put right as it is unpacked: that is when its type is known. Numbers are, and arrays and
//! slices of them, and what merely wraps one. Bytes need nothing. The fields of a program's own types are not known here: they are
//! refused, with a sentence that says what to do. So is a `usize` of another length, which nobody can tell from two shorter ones.
//!
//! Types are told by their names, which the compiler does not promise to keep. A name that is not known is refused, so that another
//! compiler could only refuse too much. A message of a host like ours is left alone, and the
//! ways of unpacking that are taken often ask its flags before they come here.

use mizzen_proto::session::MemoryForm;

use super::pieces::Flags;
use crate::error::UnpackError;

/// What a message of a host with memory of the form `theirs` is marked with.
pub(crate) fn flags_of(ours: MemoryForm, theirs: MemoryForm) -> Flags {
    let mut flags = Flags::default();
    if ours.byte_order != theirs.byte_order {
        flags = flags.with(Flags::SWAPPED);
    }
    if ours.word != theirs.word {
        flags = flags.with(Flags::OTHER_WORD);
    }
    flags
}

/// Whether values of `T` of such a message can be put right, if they have to be.
pub(crate) fn check<T: ?Sized>(flags: Flags) -> Result<(), UnpackError> {
    if !flags.is_unlike() {
        return Ok(());
    }
    let name = core::any::type_name::<T>();
    match element(name) {
        Some(Element { is_word, .. }) if !(is_word && flags.has(Flags::OTHER_WORD)) => Ok(()),
        _ => Err(UnpackError::Unlike { name }),
    }
}

/// Puts bytes of values of `T` into our order. [`check`] was asked before.
pub(crate) fn put_right<T: ?Sized>(flags: Flags, bytes: &mut [u8]) {
    if !flags.has(Flags::SWAPPED) {
        return;
    }
    let width = element(core::any::type_name::<T>()).map_or(1, |element| element.width);
    if width > 1 {
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
}

/// How the name of a number ends whose order is part of its type, and is not ours.
const OTHER_ORDER: &str = if cfg!(target_endian = "big") {
    "<zerocopy::byteorder::LittleEndian>"
} else {
    "<zerocopy::byteorder::BigEndian>"
};

/// What plain data consists of.
struct Element {
    /// Its bytes.
    width: usize,
    /// Whether it is as long as an address.
    is_word: bool,
}

/// What values of a type consist of, by its name.
fn element(name: &str) -> Option<Element> {
    let width = match unwrapped(super::mark::innermost(name)) {
        "u8" | "i8" | "()" => 1,
        "u16" | "i16" => 2,
        "u32" | "i32" | "f32" => 4,
        "u64" | "i64" | "f64" => 8,
        "u128" | "i128" => 16,
        "usize" | "isize" => size_of::<usize>(),
        // Their order is part of their type, if it is not ours: ours may stand for "as it lies in memory", which was another there.
        other if other.starts_with("zerocopy::byteorder::") && other.ends_with(OTHER_ORDER) => 1,
        _ => return None,
    };
    let is_word = ["usize", "isize", "Usize<", "Isize<"]
        .iter()
        .any(|word| name.contains(word));
    Some(Element { width, is_word })
}

/// The number in what has the bytes of one, or an array of them, and nothing else.
fn unwrapped(name: &str) -> &str {
    const WRAPPERS: [&str; 4] = [
        "core::num::wrapping::Wrapping<",
        "core::num::nonzero::NonZero<",
        "core::option::Option<",
        "zerocopy::wrappers::Unalign<",
    ];
    let inner = |wrapper| name.strip_prefix(wrapper)?.strip_suffix('>');
    match WRAPPERS.into_iter().find_map(inner) {
        Some(inner) => unwrapped(super::mark::innermost(inner)),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use core::num::{NonZeroU32, Wrapping};

    use mizzen_proto::session::ByteOrder;
    use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unalign};

    use super::*;
    use crate::plain::Plain;

    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
    #[repr(C)]
    struct Own {
        number: u32,
    }

    #[cfg(target_endian = "little")]
    use zerocopy::big_endian::U32 as Other;
    #[cfg(target_endian = "big")]
    use zerocopy::little_endian::U32 as Other;

    fn put<T: Plain + ?Sized>(bytes: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = bytes.to_vec();
        check::<T>(Flags::SWAPPED).ok()?;
        put_right::<T>(Flags::SWAPPED, &mut bytes);
        Some(bytes)
    }

    #[test]
    fn numbers_and_what_consists_of_them_are_turned_round_and_own_types_refused() {
        let eight = [1, 2, 3, 4, 5, 6, 7, 8];
        let by = |width: usize| {
            let turned = eight
                .chunks(width)
                .flat_map(|one| one.iter().rev().copied());
            Some(turned.collect::<Vec<u8>>())
        };
        assert_eq!(put::<u8>(&eight), by(1));
        assert_eq!(put::<[[i16; 2]; 2]>(&eight), by(2));
        assert_eq!(put::<[f32]>(&eight), by(4));
        assert_eq!(put::<f64>(&eight), by(8));
        assert_eq!(put::<usize>(&eight), by(size_of::<usize>()));
        assert_eq!(put::<[Wrapping<u32>; 2]>(&eight), by(4));
        assert_eq!(put::<Option<NonZeroU32>>(&eight), by(4));
        assert_eq!(put::<[Unalign<[u16; 2]>; 2]>(&eight), by(2));
        assert_eq!(put::<Other>(&eight), by(1));
        assert_eq!(put::<[Other; 2]>(&eight), by(1));
        assert_eq!(put::<zerocopy::native_endian::U32>(&eight), None);
        assert_eq!(put::<Own>(&eight), None);
        assert_eq!(put::<[Own; 2]>(&eight), None);
        assert_eq!(
            put::<Wrapping<[u8; 0]>>(&[]),
            Some(vec![]),
            "nothing to turn"
        );
    }

    #[test]
    fn another_word_refuses_only_what_has_its_length() {
        let flags = Flags::OTHER_WORD;
        assert_eq!(check::<[u64]>(flags), Ok(()));
        assert_eq!(check::<f32>(flags), Ok(()));
        for refused in [
            check::<usize>(flags),
            check::<[isize; 3]>(flags),
            check::<Wrapping<usize>>(flags),
            check::<[zerocopy::byteorder::Usize<zerocopy::byteorder::BigEndian>]>(flags),
            check::<Own>(flags),
        ] {
            assert!(matches!(refused, Err(UnpackError::Unlike { .. })));
        }
        let mut bytes = [1, 2];
        put_right::<u16>(flags, &mut bytes);
        assert_eq!(bytes, [1, 2]);
    }

    #[test]
    fn hosts_like_ours_are_told_by_no_flag() {
        let ours = MemoryForm::NATIVE;
        let narrow = MemoryForm { word: 4, ..ours };
        let big = MemoryForm {
            byte_order: ByteOrder::Big,
            word: 4,
        };
        assert_eq!(flags_of(ours, ours), Flags::default());
        assert_eq!(flags_of(ours, narrow), Flags::OTHER_WORD);
        assert_eq!(flags_of(ours, big), Flags::OTHER_WORD.with(Flags::SWAPPED));
        assert_eq!(check::<Own>(Flags::default()), Ok(()));
    }
}
