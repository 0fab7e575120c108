//! The engine through its public face: scenario in, tables out. One program: each one is linked with the whole engine.

mod bounds;
mod burst_table;
mod common;
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
