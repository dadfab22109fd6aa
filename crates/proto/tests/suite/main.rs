//! The rules of `docs/wire.md`, each with a test that cites its paragraph.

mod agreement;
mod circuit;
mod frames;
mod group;
mod link;
mod pair;
mod paragraphs;
mod random;
mod relay;
mod route;
mod session;
