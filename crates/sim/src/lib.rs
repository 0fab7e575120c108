//! The simulator: a scenario and a seed in, tables out. The world runs the only event loop, workloads drive the
//! connections, and nothing here decides what TCP or a queue does.
//!
//! Modules, from the bottom up. Each uses only the modules above it in the table:
//!
//! | module | contents |
//! |---|---|
//! | [`error`], [`cpu`], [`memory`], [`yardstick`] | utilities for all other modules |
//! | [`mod@tables`] | data structures of a run's output: tables, their columns, histograms, sums |
//! | [`transport`] | the ends of a flow: our own, and wrappers of external stacks |
//! | [`capture`] | files with the packets seen at a host |
//! | [`world`] | the event loop: links, ends, hosts |
//! | [`workload`] | behaviour of applications, which drive the connections of a [`workload::flow`] |
//! | [`scenario`] | the scenario as written ([`scenario::spec`]) and its checks; settings of hosts, links and paths; estimates of a run's needs, and its bounds |
//! | [`report`] | rows from events, tables from rows ([`report::output`]), metrics from tables ([`report::summary`]) |
//! | [`runs`] | building and running worlds: one run, many seeds ([`runs::batch`]), or step by step |
//!
//! A module is public if the Python binding or the guest of the linux backend uses it.

// Part of the library's test binary, because a separate binary would link the whole engine again.
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
