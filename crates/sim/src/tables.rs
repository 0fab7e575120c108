//! Data structures of a run's output: named tables with columns, each described at its declaration; histograms and
//! sums.

pub mod columns;
pub(crate) mod histogram;
pub mod samples;
pub mod table;
pub mod tally;
