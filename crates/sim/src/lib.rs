//! The simulator: a scenario and a seed in, tables out. The world runs the only event loop, workloads drive the
//! connections, and nothing here decides what TCP or a queue does.
//!
//! | from | by | to |
//! |---|---|---|
//! | the scenario as JSON | [`parse`], [`spec`] | [`Scenario`] |
//! | [`Scenario`] | `build`: [`topology`] (links, ways), [`hosts`] (settings of each end), `machines`, [`workload`], [`starts`] | a world, ready to run |
//! | a world | [`world`] (the event loop), [`transport`] and [`udp`] (the ends) | packets and events |
//! | events | `observe` (samples), [`flow`], [`tally`] and `histogram` (sums and rows), [`capture`] | rows |
//! | rows | [`output`], [`table`]; [`columns`] says what they mean | tables |
//! | tables | [`summary`] | metrics |
//!
//! [`batch`] does this for many seeds, [`estimate`] says beforehand how much memory it takes. Modules are public where the
//! Python binding and the guest of the linux backend use them.

// Not a program of its own: the engine would be compiled once more, as the library that it is linked with.
#[cfg(test)]
extern crate self as ackclock_sim;
#[cfg(test)]
#[path = "../tests/main.rs"]
mod outside;
#[cfg(test)]
use outside::common;

mod app;
pub mod batch;
pub mod bounds;
mod build;
pub mod capture;
pub mod columns;
pub mod cpu;
pub mod error;
pub mod estimate;
pub mod film;
pub mod flow;
mod histogram;
pub mod hosts;
mod machines;
pub mod memory;
mod names;
mod observe;
pub mod output;
pub mod performance;
pub mod run;
pub mod shortcuts;
pub mod spec;
pub mod starts;
pub mod steer;
pub mod summary;
pub mod table;
pub mod tally;
pub mod topology;
pub mod transport;
pub mod udp;
pub mod workload;
pub mod world;
pub mod yardstick;

pub use ackclock_net::capacity::read_trace;
pub use batch::{on_threads, run_batch, run_each, Batch, Kept};
pub use bounds::Bounds;
pub use error::Error;
pub use estimate::{estimate_capture, estimate_memory, estimate_time};
pub use hosts::Customs;
pub use run::{parse, run, run_for, run_taking, run_tracing, run_with, Output};
pub use shortcuts::Shortcuts;
pub use spec::{tables, Scenario, FAMILIES};
pub use summary::Metrics;
pub use table::{Column, Table};
