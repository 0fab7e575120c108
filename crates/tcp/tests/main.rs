//! Tests of TCP through its public interface: one or two connections, and a path. They are one program because each program links the whole engine.

mod accurate_ecn;
mod behaviour;
mod common;
mod handshake;
mod host_queue;
mod ideal_path;
mod kernel_vectors;
mod newreno;
mod pacing;
mod patience;
mod pauses;
mod send_buffer;
mod wire;
