//! What the tests of the whole TCP share: one end with hand-made ACKs ([`server`]), two ends and a path ([`wire`]).
#![allow(dead_code, reason = "each test binary takes its part")]

pub mod server;
pub mod wire;
