//! Rows of periodic records.

use ackclock_core::trace::CaState;
use ackclock_core::{FlowId, Span, Time};
use ackclock_tcp::{Held, Times};

/// Sample of an open flow.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "columns of table `samples`, by name")]
pub struct SampleRow {
    pub t: Time,
    pub flow: FlowId,
    pub cwnd: u32,
    pub ssthresh: u32,
    pub srtt: Span,
    pub in_flight: u32,
    pub ca_state: CaState,
    pub bytes_acked: u64,
    pub retransmissions: u64,
    /// The peer's window, bytes.
    pub rwnd: u32,
    /// Time in each state of the sender (the kernel's `chrono`); `None` if the sender does not record it.
    pub times: Option<Times>,
}

/// Sample of a link's queue.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "columns of table `queue_samples`, by name")]
pub struct QueueRow {
    pub t: Time,
    pub link: u32,
    pub packets: u32,
}

/// Goodput of a flow over the interval that ends at `t`.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "columns of table `goodput`, by name")]
pub struct GoodputRow {
    pub t: Time,
    pub flow: FlowId,
    pub bps: f64,
    pub delivered_bps: f64,
}

/// A flow's time by limiting cause over the interval that ends at `t`.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "columns of table `limits`, by name")]
pub struct LimitRow {
    pub t: Time,
    pub flow: FlowId,
    pub held: Held,
}
