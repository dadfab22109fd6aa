//! A read-only view offers no store: an attempt is refused by name, where the kernel would kill the process.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mizzen_lane::{Region, Returns, Watch};
use mizzen_shm::{Access, Fault, Segment, View, region_of_view};

/// A segment's memory as a peer sees it.
fn seen_by_a_peer(bytes: usize) -> (Arc<Segment>, Region) {
    let segment = Arc::new(Segment::create("test", bytes, Fault::Now).expect("there is memory"));
    let fd = segment.fd().try_clone_to_owned().expect("a descriptor");
    let view = View::attach(fd, bytes, Access::ReadOnly, Fault::Now).expect("a segment of ours");
    (segment, region_of_view(view))
}

#[test]
#[should_panic(expected = "read-only")]
fn a_word_of_a_read_only_view_is_not_stored_to() {
    let (_segment, region) = seen_by_a_peer(4096);
    region.word(0).store(1, Ordering::Relaxed);
}

#[test]
#[should_panic(expected = "read-only")]
fn a_small_word_of_a_read_only_view_is_not_stored_to() {
    let (_segment, region) = seen_by_a_peer(4096);
    region.word32(1).store(1, Ordering::Relaxed);
}

#[test]
#[should_panic(expected = "read-only")]
fn a_part_of_a_read_only_view_is_read_only_too() {
    let (_segment, region) = seen_by_a_peer(4096);
    region.part(64, 64).word(0).store(1, Ordering::Relaxed);
}

#[test]
#[should_panic(expected = "read-only")]
fn a_buffer_is_not_given_back_in_the_lenders_view_of_the_table() {
    let (_segment, region) = seen_by_a_peer(4096);
    Returns::new(region, 8).give_back(1, 1);
}

#[test]
#[should_panic(expected = "read-only")]
fn a_sender_does_not_announce_the_sleep_of_a_receiver() {
    let (_segment, region) = seen_by_a_peer(4096);
    Watch::new(region, 0, None).announce_sleep(3);
}

#[test]
fn a_read_only_view_is_loaded_from() {
    let (segment, region) = seen_by_a_peer(4096);
    let ours = mizzen_shm::region_of_segment(&segment);
    ours.word(3).store(7, Ordering::Release);
    assert_eq!(region.load(3, Ordering::Acquire), 7);
    assert!(ours.is_writable() && !region.is_writable());
}
