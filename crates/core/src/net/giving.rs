//! Giving the driver memory: bodies to send, and the places of those that come.
//!
//! This file has unsafe code because a driver reads and writes that memory after the call. Who may lend it, and until when, is
//! said in `bodies.rs`.
#![allow(unsafe_code)]

use mizzen_driver::{Driver, Part, PartMut, Refused};
use mizzen_proto::id::BodyId;
use mizzen_proto::link::Link;

use super::id::driver_id;
use super::session::NetSession;
use crate::rank::ProcessId;

/// Gives a pushed body its place. If there is no connection, it gets it from the session when there is.
pub(super) fn place_pushed(
    peer: ProcessId,
    session: &mut NetSession,
    driver: &mut dyn Driver,
    body: BodyId,
    parts: Vec<PartMut>,
) -> Result<(), Vec<PartMut>> {
    let is_given = match session.is_linked() {
        true => match place_body(peer, driver, body, &parts) {
            Ok(()) => true,
            Err(Refused::NotConnected { .. }) => false,
            Err(_) => return Err(parts),
        },
        false => false,
    };
    session.place(body, parts, is_given);
    Ok(())
}

/// Gives the driver the place of a body, or what is left of it.
pub(super) fn place_body(
    peer: ProcessId,
    driver: &mut dyn Driver,
    body: BodyId,
    parts: &[PartMut],
) -> Result<(), Refused> {
    let (from, name) = (driver_id(peer), mizzen_driver::BodyId(body.0));
    // SAFETY: they come from a `Wanted`, or from `Pushed::keep`. A `Wanted` was given parts of memory that is borrowed mutably,
    // disjoint and initialised, until `end` is set or the link cut: `receive` does not return before, and an operation does not
    // end; or of memory that it holds itself, and that nobody looks at before. What is kept is not looked at or freed before
    // its end either. Ends are set only when the session has forgotten the parts, and the driver reported the end of what it
    // had of them or lost the connection; and under the port, which our caller holds. After a loss they are given
    // again, but never while the driver has them.
    unsafe { driver.recv_body(from, name, parts) }
}

/// Gives the driver a body to send, or what is left of it.
pub(super) fn give_body(
    peer: ProcessId,
    driver: &mut dyn Driver,
    body: BodyId,
    parts: &[Part],
) -> Result<(), Refused> {
    let (to, name) = (driver_id(peer), mizzen_driver::BodyId(body.0));
    // SAFETY: the session has the parts, so they are of an offer that has not ended: offers with bodies under way end when
    // the session has forgotten those, which it does not while the driver reads them; and under the port, which our caller
    // holds. Until then the memory belongs to the `Lending`, or to a thread in `NetLink::send_borrowed` or an operation,
    // which neither write it nor end; or it is `Bodies::joined`, which is kept as long.
    unsafe {
        if Link::is_pushed(body) {
            driver.push_body(to, name, parts)
        } else {
            driver.send_body(to, name, parts)
        }
    }
}
