use zerocopy::{Immutable, IntoBytes};

#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Padded {
    kind: u8,
    count: u32,
}

fn main() {}
