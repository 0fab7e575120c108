//! Window rules without any protocol code. Congestion controllers determine ssthresh and the growth of the window;
//! recovery rules determine how the window reaches ssthresh; slow-start rules determine when slow start ends. All
//! combinations work, except with controllers that have their own start phase. Controllers and rules see ACKs as counts
//! of segments; neither sees a sequence number, a timer or a packet. The exception is `ideal`, a minimal sender on a
//! path without delay variation, which recomputes the tables of the RFCs.

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
