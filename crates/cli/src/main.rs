//! The mizzen command.
fn main() {}
