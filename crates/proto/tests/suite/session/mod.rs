//! Sessions around links, over connections that are cut (docs/wire-4.md).

mod cases;
mod end;
mod hostile;
mod oracle;
mod pipe;
mod world;
