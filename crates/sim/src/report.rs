//! Results at the end of a run: rows are turned into tables, and tables into metrics.

pub mod columns;
pub(crate) mod observe;
pub mod output;
pub mod performance;
pub mod summary;
