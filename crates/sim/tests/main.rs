//! Tests of the engine's public interface: scenario in, tables out. All tests use `ackclock_sim::` paths, like any
//! user.

mod bounds;
mod burst_table;
pub(crate) mod common;
mod determinism;
mod fetches;
mod flows;
mod hosts;
mod impossible;
mod initial_window;
#[cfg(feature = "quinn")]
mod quinn;
#[cfg(feature = "toml")]
mod reading;
mod shortcuts;
mod transactions;
mod video;
