//! Results at the end of a run: rows become tables, tables become
//! metrics.

pub mod columns;
pub(crate) mod observe;
pub mod output;
pub mod performance;
pub mod summary;
