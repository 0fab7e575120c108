//! The simulator: a scenario and a seed in, tables out. The world runs the only event loop, workloads drive the
//! connections, and nothing here decides what TCP or a queue does.
//!
//! Rooms, from the ground up; each uses those before it only:
//!
//! | room | what it holds |
//! |---|---|
//! | [`error`], [`cpu`], [`memory`], [`yardstick`] | what any of them needs |
//! | [`mod@tables`] | the form of what a run leaves: tables, their columns, histograms, sums |
//! | [`transport`] | the ends of a flow: our own and those that wrap stacks of others |
//! | [`capture`] | packets as a host saw them, as files |
//! | [`world`] | the event loop: links, ends, hosts |
//! | [`workload`] | what applications do: they drive the connections of a [`workload::flow`] |
//! | [`scenario`] | what is written ([`scenario::spec`]), read and judged; settings of hosts, links and ways; what a run will need, and its bounds |
//! | [`report`] | events become rows, rows become tables ([`report::output`]), tables become metrics ([`report::summary`]) |
//! | [`runs`] | a scenario and a seed become a world and are run: one, many seeds ([`runs::batch`]), or step by step |
//!
//! Modules are public where the Python binding and the guest of the linux backend use them.

// Part of the library's test binary: a separate one would link the whole engine once more.
#[cfg(test)]
extern crate self as ackclock_sim;
#[cfg(test)]
#[path = "../tests/main.rs"]
mod outside;
#[cfg(test)]
use outside::common;

pub mod capture;
pub mod cpu;
pub mod error;
pub mod memory;
pub mod report;
pub mod runs;
pub mod scenario;
pub mod tables;
pub mod transport;
pub mod workload;
pub mod world;
pub mod yardstick;

pub use ackclock_net::capacity::read_trace;
pub use error::Error;
pub use report::summary::Metrics;
pub use runs::batch::{on_threads, run_batch, run_each, Batch, Kept};
pub use runs::run::{parse, run, run_for, run_taking, run_tracing, run_with, Output};
pub use scenario::bounds::Bounds;
pub use scenario::estimate::{estimate_capture, estimate_memory, estimate_time};
pub use scenario::hosts::Customs;
pub use scenario::spec::{tables, Scenario, FAMILIES};
pub use tables::table::{Column, Table};
pub use world::shortcuts::Shortcuts;
