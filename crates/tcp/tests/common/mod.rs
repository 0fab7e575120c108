//! Helpers of the TCP tests: one endpoint with hand-written ACKs ([`server`]), two endpoints and a path ([`wire`]).

pub mod server;
pub mod wire;
