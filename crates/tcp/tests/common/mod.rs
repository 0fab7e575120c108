//! Helpers of the TCP tests: one end with hand-made ACKs ([`server`]), two ends and a path ([`wire`]).

pub mod server;
pub mod wire;
