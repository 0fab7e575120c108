//! What a scenario says and how its parts become the settings of hosts, links and ways; what it will need, and what bounds a run.

pub mod bounds;
pub mod estimate;
pub mod hosts;
pub(crate) mod machines;
pub mod names;
pub mod spec;
pub mod starts;
pub mod topology;
