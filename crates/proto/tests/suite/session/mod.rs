//! Sessions around links, over connections that are cut (docs/wire-4.md).

mod cases;
mod claims;
mod cuts;
mod end;
mod hostile;
mod lone;
mod oracle;
mod pipe;
mod world;
