//! Plain datagram traffic: a source that sends on a schedule, regardless of the network, and a sink that
//! records arrivals. Sans-IO, like every endpoint.

mod sink;
mod source;

pub use sink::{Received, Sink};
pub use source::{OnOff, Periods, Source, SourceParams};
