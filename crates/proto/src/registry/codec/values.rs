//! Values that many frames hold.

use std::sync::Arc;

use crate::boot::codec::{Reader, Writer};
use crate::boot::{DecodeError, MAX_PROCESSES, TooLarge};
use crate::id::{Address, Incarnation, MailboxId, ProcessId, Rank};
use crate::membership::Epoch;
use crate::registry::{Bound, FencingNumber, NAME_MAX, Name};

/// A byte for the length would do for a name; what all frames use does too.
pub(super) fn put_name(w: &mut Writer<'_>, name: &Arc<str>) -> Result<(), TooLarge> {
    Name::new(name).map_err(|_| TooLarge)?;
    w.text(name, NAME_MAX)
}

pub(super) fn name(r: &mut Reader<'_>) -> Result<Arc<str>, DecodeError> {
    let text = r.text(NAME_MAX)?;
    Name::new(&text).map_err(|_| DecodeError::Value)?;
    Ok(text.into())
}

pub(super) fn put_bound(w: &mut Writer<'_>, bound: Bound) {
    put_number(w, bound.number);
    put_address(w, bound.address);
}

pub(super) fn bound(r: &mut Reader<'_>) -> Result<Bound, DecodeError> {
    Ok(Bound {
        number: number(r)?,
        address: address(r)?,
    })
}

pub(super) fn put_number(w: &mut Writer<'_>, number: FencingNumber) {
    w.u64(number.epoch.0);
    w.u64(number.counter);
}

pub(super) fn number(r: &mut Reader<'_>) -> Result<FencingNumber, DecodeError> {
    Ok(FencingNumber {
        epoch: Epoch(r.u64()?),
        counter: r.u64()?,
    })
}

pub(super) fn put_address(w: &mut Writer<'_>, address: Address) {
    w.u32(address.process.rank.0);
    w.u32(address.process.incarnation.0);
    w.u64(address.mailbox.0);
}

pub(super) fn address(r: &mut Reader<'_>) -> Result<Address, DecodeError> {
    let (rank, life) = (r.u32()?, r.u32()?);
    if rank >= MAX_PROCESSES {
        return Err(DecodeError::Limit);
    }
    Ok(Address {
        process: ProcessId::new(Rank(rank), Incarnation(life)),
        mailbox: MailboxId(r.u64()?),
    })
}

pub(super) fn flag(r: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match r.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        kind => Err(DecodeError::Kind(kind)),
    }
}
