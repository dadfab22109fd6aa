//! The two ways to a mailbox: a `Sender`, which has a lane of its own, and the address, which anyone may use.

use mizzen::zerocopy::{Immutable, IntoBytes};
use mizzen::{Lent, MailboxRef, Message, PostError, Sender};

pub(crate) trait Outlet {
    fn send<T: IntoBytes + Immutable + ?Sized>(&mut self, value: &T) -> Result<(), PostError>;
    fn post(&mut self, message: &mut Message<'_>) -> Result<(), PostError>;
    fn post_lent(&mut self, header: u64, buffer: Lent<u8>) -> Result<(), PostError>;
}

impl Outlet for Sender {
    #[inline]
    fn send<T: IntoBytes + Immutable + ?Sized>(&mut self, value: &T) -> Result<(), PostError> {
        Sender::send(self, value)
    }

    #[inline]
    fn post(&mut self, message: &mut Message<'_>) -> Result<(), PostError> {
        Sender::post(self, message)
    }

    #[inline]
    fn post_lent(&mut self, header: u64, buffer: Lent<u8>) -> Result<(), PostError> {
        Sender::post_lent(self, &header, buffer)
    }
}

impl Outlet for MailboxRef {
    #[inline]
    fn send<T: IntoBytes + Immutable + ?Sized>(&mut self, value: &T) -> Result<(), PostError> {
        MailboxRef::send(self, value)
    }

    #[inline]
    fn post(&mut self, message: &mut Message<'_>) -> Result<(), PostError> {
        MailboxRef::post(self, message)
    }

    #[inline]
    fn post_lent(&mut self, header: u64, buffer: Lent<u8>) -> Result<(), PostError> {
        MailboxRef::post_lent(self, &header, buffer)
    }
}
