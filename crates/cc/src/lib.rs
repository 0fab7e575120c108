//! Window rules, pure and alone: congestion controllers say what ssthresh is and how the window grows; recovery rules
//! say how the window gets there; slow starts say when a flow has grown enough. Every set of the three works, but for controllers with a start of their own. Controllers and rules see ACKs as counts of segments;
//! neither sees a sequence number, a timer or a packet. The exception is `ideal`, a minimal sender on a path without
//! delay variation, which recomputes the tables of the RFCs.

pub mod conformance;
pub mod controller;
pub mod ideal;
pub mod recovery;
pub mod slow_start;
pub mod window;

pub use controller::{AckSample, Arrival, CongestionControl, Controller, RateSample};
pub use recovery::{RecoveryAck, RecoveryEntry, RecoveryExit, RecoveryRule, Rule};
pub use slow_start::{SlowStart, SlowStartConfig, StartRule};
pub use window::Window;
