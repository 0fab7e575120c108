//! What the tests of the whole TCP share: one end with hand-made ACKs ([`server`]), two ends and a path ([`wire`]).

pub mod server;
pub mod wire;
