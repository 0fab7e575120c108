//! TCP through its public face: a connection, or two, and a path. One program: each one is linked with the whole engine.

mod accurate_ecn;
mod behaviour;
mod common;
mod handshake;
mod ideal_path;
mod kernel_vectors;
mod newreno;
mod pacing;
mod patience;
mod pauses;
mod send_buffer;
mod wire;
