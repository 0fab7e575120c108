//! Data structures of a run's output: named tables of columns, each described where it is declared;
//! histograms and sums.

pub mod columns;
pub(crate) mod histogram;
pub mod samples;
pub mod table;
pub mod tally;
