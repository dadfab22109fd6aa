//! Protocol logic of Mizzen as state machines: no IO, clock, thread or payload
