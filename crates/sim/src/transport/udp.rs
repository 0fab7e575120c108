//! Plain datagram traffic: a source that sends by the clock, whatever the network does, and a sink that notes what came
//! of it. Sans-IO, like every endpoint.

mod sink;
mod source;

pub use sink::{Received, Sink};
pub use source::{OnOff, Periods, Source, SourceParams};
