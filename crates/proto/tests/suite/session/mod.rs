//! Sessions around links, over connections that are cut (docs/wire-sessions.md).

mod cases;
mod claims;
mod cuts;
mod end;
mod hostile;
mod lone;
mod oracle;
mod pipe;
mod world;
