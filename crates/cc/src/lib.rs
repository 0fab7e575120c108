//! Window rules, pure and alone: congestion controllers say what ssthresh is and how the window grows; recovery rules
//! say how the window gets there. Every pair of the two works. Nothing here knows segments, timers or packets.

pub mod conformance;
pub mod controller;
pub mod ideal;
pub mod rate;
pub mod recovery;
pub mod window;

pub use controller::{AckSample, Arrival, CongestionControl, Controller};
pub use rate::RateSample;
pub use recovery::{RecoveryAck, RecoveryEntry, RecoveryExit, RecoveryRule, Rule};
pub use window::Window;
