//! The engine through its public face: scenario in, tables out. Each names what it uses as `ackclock_sim::`, as any user does.

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
