//! The network of ackclock: unidirectional links, their queues and their loss models. Depends only on
//! `ackclock_core`.
//!
//! A [`Link`] is loss model -> queue -> rate -> propagation delay, in this order. For every link, at every instant:
//! arrivals = delivered + dropped + held.

pub mod adversary;
mod aggregate;
pub mod capacity;
pub mod ecn_fault;
mod faults;
pub mod host;
pub mod jitter;
pub mod link;
pub mod loss;
pub mod netem_jitter;
pub mod outage;
pub mod pool;
pub mod qdisc;
pub mod queue;
pub mod reorder;
mod thin;
mod transmitter;
pub mod wifi;
mod wire;

pub use ackclock_core::schema::Limit;
pub use adversary::{Adversary, Asks, Fate};
pub use capacity::CapacityConfig;
pub use ecn_fault::EcnFault;
pub use host::{Host, HostConfig};
pub use link::{Counters, Leg, Link, LinkConfig, Merging, Recipe, SoleLink, Underway};
pub use loss::{AppliesTo, LossConfig};
pub use outage::Outage;
pub use pool::{PacketId, Pool};
pub use queue::{
    CodelParams, DropTailParams, FqCodelParams, FqPieParams, LinuxRedParams, NetemLimitParams, PieParams,
    QueueConfig, RedParams, Refused, ThresholdParams,
};
pub use reorder::Reorder;
pub use wifi::WifiJitter;
