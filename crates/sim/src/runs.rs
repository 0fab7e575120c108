//! Runs: a scenario and a seed become a world, which is run, for one seed or many, at once or step by step.

pub(crate) mod app;
pub mod batch;
pub(crate) mod build;
pub mod film;
pub mod prove;
pub mod run;
pub mod steer;
