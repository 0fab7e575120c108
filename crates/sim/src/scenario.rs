//! Interpretation of a scenario: its parts become the settings of hosts, links and paths. Also estimates of a run's
//! needs, and bounds on a run.

pub mod bounds;
pub mod estimate;
pub mod hosts;
pub(crate) mod machines;
pub mod names;
pub mod spec;
pub mod starts;
pub mod topology;
