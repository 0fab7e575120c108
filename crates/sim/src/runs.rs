//! Runs: build a world from a scenario and a seed and run it, for one seed or many, at once or step by step.

pub(crate) mod app;
pub mod batch;
pub(crate) mod build;
pub mod film;
pub mod prove;
pub mod run;
pub mod steer;
