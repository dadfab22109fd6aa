//! The two ways to a mailbox: a `Sender`, which has a lane of its own, and the address, which anyone may use.

use mizzen::{Lent, MailboxRef, Message, PlainBytes, Result, Sender};

pub(crate) trait Outlet {
    fn send<T: PlainBytes + ?Sized>(&mut self, value: &T) -> Result<()>;
    fn post(&mut self, message: &mut Message<'_>) -> Result<()>;
    fn post_lent(&mut self, header: u64, buffer: Lent<u8>) -> Result<()>;
}

impl Outlet for Sender {
    #[inline]
    fn send<T: PlainBytes + ?Sized>(&mut self, value: &T) -> Result<()> {
        Sender::send(self, value)
    }

    #[inline]
    fn post(&mut self, message: &mut Message<'_>) -> Result<()> {
        Sender::post(self, message)
    }

    #[inline]
    fn post_lent(&mut self, header: u64, buffer: Lent<u8>) -> Result<()> {
        Sender::post_lent(self, &header, buffer)
    }
}

impl Outlet for MailboxRef {
    #[inline]
    fn send<T: PlainBytes + ?Sized>(&mut self, value: &T) -> Result<()> {
        MailboxRef::send(self, value)
    }

    #[inline]
    fn post(&mut self, message: &mut Message<'_>) -> Result<()> {
        MailboxRef::post(self, message)
    }

    #[inline]
    fn post_lent(&mut self, header: u64, buffer: Lent<u8>) -> Result<()> {
        MailboxRef::post_lent(self, &header, buffer)
    }
}
