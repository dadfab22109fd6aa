//! Frames between hosts: what is decoded is encoded to the same bytes.

use mizzen_proto::wire::{FRAME_MAX, Frame, HEADER_MAX};

/// Decodes one frame.
pub fn run(data: &[u8]) {
    let Ok(frame) = Frame::decode(data) else {
        return;
    };
    assert!(data.len() <= FRAME_MAX);
    assert!(frame.header().len() <= HEADER_MAX);
    assert_eq!(frame.kind() as u8, data[0]);
    assert_eq!(frame.to_vec(), data, "{frame:?}");
}
