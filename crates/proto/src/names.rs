//! Names: which process holds one, what a holder does, what others remember (docs/wire.md §7).
//!
//! Names are sharded: [`shard_of`] says which process holds one. The holder keeps a [`Directory`]; every
//! process that fetches keeps a [`NameCache`]. The engine hands the frames of [`Action::Name`] to the one
//! or the other and sends what [`Directory::poll_reply`] returns.
//!
//! [`Action::Name`]: crate::link::Action::Name

mod cache;
mod directory;

pub use cache::{CACHE_MAX, NameCache};
pub use directory::{
    Answer, Directory, DirectoryLimits, KEEPERS_MAX, NAMES_MAX, Reply, WAITERS_MAX,
};

use crate::id::Rank;
use crate::wire::Name;

/// The process that holds `name` among the `size` first ones of a job (docs/wire.md §7.2).
///
/// `size` is the number of processes the job started with: it must be the same for all who ask.
///
/// # Panics
/// When `size` is zero: there is no job without a process.
pub fn shard_of(name: Name<'_>, size: u32) -> Rank {
    assert_ne!(size, 0, "a job has a process");
    let hash = mix(fnv1a(name.as_str().as_bytes()));
    // The high half of a product spreads evenly over any size, without a division.
    Rank(((u128::from(hash) * u128::from(size)) >> 64) as u32)
}

/// FNV-1a of 64 bits (draft-eastlake-fnv).
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

/// The finaliser of splitmix64: the last byte of a name hardly reaches the high bits of FNV-1a, and
/// `tile0` to `tile9` would all have one holder.
pub(crate) fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_names_spread_over_their_holders() {
        let mut held = [0_u32; 16];
        for number in 0..1600 {
            let name = format!("tile{number}");
            let Rank(holder) = shard_of(Name::new(&name).unwrap(), 16);
            held[holder as usize] += 1;
        }
        assert!(
            held.iter().all(|&names| (60..140).contains(&names)),
            "{held:?}"
        );
    }

    #[test]
    fn fnv1a_agrees_with_its_published_values() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn one_process_holds_every_name_of_its_job() {
        assert_eq!(shard_of(Name::new("sum").unwrap(), 1), Rank(0));
    }
}
