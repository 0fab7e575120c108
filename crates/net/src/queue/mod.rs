//! Queues: which packets a link refuses, marks or drops. One discipline, one file; a closed enum on the hot path.
//!
//! Disciplines that decide on arrival (drop-tail, netem-limit, RED) never hold a packet: its departure is computed
//! when it arrives, and `backlog::Backlog` alone knows who still waits. CoDel decides at departure and holds them.

pub(crate) mod backlog;
pub(crate) mod codel;
mod drop_tail;
pub(crate) mod fq_codel;
pub(crate) mod instants;
mod netem_limit;
mod pie;
mod red;
mod threshold;

use ackclock_core::packet::Ecn;
use ackclock_core::{Packet, Span, Stream, Time};

use crate::wire::Wire;
use backlog::Backlog;
use codel::Codel;
pub use codel::CodelParams;
use drop_tail::DropTail;
use fq_codel::FqCodel;
pub use fq_codel::FqCodelParams;
use netem_limit::NetemLimit;
use pie::Pie;
pub use pie::PieParams;
use red::Red;
use threshold::Threshold;

/// Every queue: its name in a scenario, and what it does.
pub const REGISTRY: &[(&str, &str)] = &[
    ("drop-tail", "first in, first out; refuses what exceeds a limit in packets or bytes"),
    ("netem-limit", "as Linux netem's limit: packets in transmission and in the delay line count too, one of several segments (TSO) once"),
    ("codel", "CoDel (RFC 8289): drops or marks at departure while the sojourn time stays above a target"),
    ("threshold", "marks every packet that arrives while at least so many wait (DCTCP's switch, RFC 8257)"),
    ("fq-codel", "FQ-CoDel (RFC 8290): a queue for each connection, served in turn, each under CoDel"),
    ("pie", "PIE (RFC 8033): drops or marks arrivals at random, so that the queueing delay stays near a reference"),
    ("red", "RED (Floyd, Jacobson 1993), gentle: drops or marks at random by the average queue length"),
];

/// A queue and its parameters. Limits in packets and bytes count what waits, not the packet in transmission.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueConfig {
    /// Tail drop; `None` = no such limit.
    DropTail {
        /// Most packets that wait.
        limit_packets: Option<u32>,
        /// Most bytes that wait.
        limit_bytes: Option<u64>,
    },
    /// netem's limit.
    NetemLimit {
        /// Most packets in the link, wherever they are.
        limit_packets: u32,
    },
    /// CoDel.
    Codel {
        /// Most packets that wait; `None` = no limit.
        limit_packets: Option<u32>,
        /// Acceptable standing sojourn time.
        target: Span,
        /// Time for which it may be exceeded; of the order of a worst-case RTT.
        interval: Span,
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool,
    },
    /// Marking at a threshold.
    Threshold {
        /// Most packets that wait; `None` = no limit.
        limit_packets: Option<u32>,
        /// K: packets that wait from which on arrivals are marked.
        mark_packets: u32,
    },
    /// FQ-CoDel.
    FqCodel(FqCodelParams),
    /// PIE.
    Pie(PieParams),
    /// RED.
    Red {
        /// Most packets that wait.
        limit_packets: u32,
        /// min_th: average queue below which nothing is dropped, packets.
        min_packets: f64,
        /// max_th: average queue at which the probability reaches `max_p`, packets.
        max_packets: f64,
        /// Drop probability at max_th.
        max_p: f64,
        /// w_q: weight of a sample in the average.
        weight: f64,
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool,
    },
}

impl QueueConfig {
    /// A drop-tail queue without limits.
    pub const UNLIMITED: QueueConfig = QueueConfig::DropTail { limit_packets: None, limit_bytes: None };
}

impl Default for QueueConfig {
    fn default() -> Self {
        QueueConfig::UNLIMITED
    }
}

/// Why a packet was dropped at arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// By the loss model.
    Loss,
    /// The queue's limit is reached.
    QueueFull,
    /// By the discipline, ahead of its limit.
    Aqm,
}

/// A packet that a queue held and dropped, and why.
pub(crate) type Dropped = (Packet, Refused);

/// What a discipline decides about a packet on arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accept,
    Mark,
    Refuse(Refused),
}

/// A packet at the entrance of the queue, and the state of the link that it meets.
pub(crate) struct Arrival<'a> {
    pub now: Time,
    pub packet: &'a Packet,
    /// Its transmission time.
    pub tx: Span,
    /// The transmitter has work until then.
    pub busy_until: Time,
    /// Who waits at `now`.
    pub backlog: &'a Backlog,
    /// Everything not yet taken from the far end.
    pub wire: &'a Wire,
}

impl Arrival<'_> {
    /// Whether the packet's transmission starts at once. One that ends at this very nanosecond is over.
    #[inline]
    pub(crate) fn finds_link_idle(&self) -> bool {
        self.busy_until <= self.now
    }
}

/// A queue at work.
pub(crate) enum Queue {
    DropTail(DropTail),
    NetemLimit(NetemLimit),
    Threshold(Threshold),
    Red(Box<Red>),
    Pie(Box<Pie>),
    Codel(Box<Codel>),
    FqCodel(Box<FqCodel>),
}

impl Queue {
    /// `stream` serves disciplines that decide at random.
    pub(crate) fn new(config: &QueueConfig, stream: Stream) -> Queue {
        match *config {
            QueueConfig::DropTail { limit_packets, limit_bytes } => {
                Queue::DropTail(DropTail::new(limit_packets, limit_bytes))
            }
            QueueConfig::NetemLimit { limit_packets } => Queue::NetemLimit(NetemLimit::new(limit_packets)),
            QueueConfig::Codel { limit_packets, target, interval, ecn } => {
                Queue::Codel(Box::new(Codel::new(limit_packets, CodelParams { target, interval, ecn })))
            }
            QueueConfig::Pie(params) => Queue::Pie(Box::new(Pie::new(params, stream))),
            QueueConfig::FqCodel(params) => Queue::FqCodel(Box::new(FqCodel::new(params))),
            QueueConfig::Threshold { limit_packets, mark_packets } => {
                Queue::Threshold(Threshold::new(limit_packets, mark_packets))
            }
            QueueConfig::Red { limit_packets, min_packets, max_packets, max_p, weight, ecn } => {
                let parameters = red::Parameters {
                    limit_packets,
                    min_th: min_packets,
                    max_th: max_packets,
                    max_p,
                    w_q: weight,
                    ecn,
                };
                Queue::Red(Box::new(Red::new(parameters, stream)))
            }
        }
    }

    /// Decide about an arrival. CoDel has its own way in.
    #[inline]
    pub(crate) fn admit(&mut self, arrival: &Arrival) -> Verdict {
        match self {
            Queue::DropTail(queue) => queue.admit(arrival),
            Queue::NetemLimit(queue) => queue.admit(arrival),
            Queue::Threshold(queue) => queue.admit(arrival),
            Queue::Red(queue) => queue.admit(arrival),
            Queue::Pie(queue) => queue.admit(arrival),
            Queue::Codel(_) | Queue::FqCodel(_) => unreachable!("invariant: CoDel decides at departure"),
        }
    }

    /// Whether it holds its packets, and decides about them at departure too.
    #[inline]
    pub(crate) fn holds(&self) -> bool {
        matches!(self, Queue::Codel(_) | Queue::FqCodel(_))
    }

    /// [`Queue::admit`] of a queue that holds its packets: false if this one is refused.
    pub(crate) fn enqueue(&mut self, now: Time, packet: Packet, must_wait: bool) -> bool {
        match self {
            Queue::Codel(queue) if must_wait && queue.is_full() => return false,
            Queue::Codel(queue) => queue.enqueue(now, packet, must_wait),
            Queue::FqCodel(queue) => queue.enqueue(now, packet, must_wait),
            _ => unreachable!("invariant: it holds packets"),
        }
        true
    }

    /// The packet to transmit at `now`, and how long it waited.
    pub(crate) fn dequeue(&mut self, now: Time) -> Option<(Packet, Span)> {
        match self {
            Queue::Codel(queue) => queue.dequeue(now),
            Queue::FqCodel(queue) => queue.dequeue(now),
            _ => None,
        }
    }

    /// A time at or after which a packet that it holds can leave.
    pub(crate) fn head_arrival(&self) -> Option<Time> {
        match self {
            Queue::Codel(queue) => queue.head_arrival(),
            Queue::FqCodel(queue) => queue.head_arrival(),
            _ => None,
        }
    }

    /// A packet that it held and dropped, and why.
    #[inline]
    pub(crate) fn take_head_drop(&mut self) -> Option<Dropped> {
        match self {
            Queue::Codel(queue) => queue.take_head_drop(),
            Queue::FqCodel(queue) => queue.take_head_drop(),
            _ => None,
        }
    }

    /// Packets that it holds.
    pub(crate) fn len(&self) -> u32 {
        match self {
            Queue::Codel(queue) => queue.len(),
            Queue::FqCodel(queue) => queue.len(),
            _ => 0,
        }
    }

    /// Start the search for the greatest number of packets anew.
    pub(crate) fn forget_max(&mut self) {
        match self {
            Queue::Codel(queue) => queue.forget_max(),
            Queue::FqCodel(queue) => queue.forget_max(),
            _ => {}
        }
    }

    /// What it counts of the packets that it holds: their integral over time up to `now`, most at a time, dropped, marked.
    pub(crate) fn figures(&self, now: Time) -> (u128, u32, u64, u64) {
        match self {
            Queue::Codel(queue) => (queue.area(now), queue.max(), queue.dropped(), queue.marked()),
            Queue::FqCodel(queue) => (queue.area(now), queue.max(), queue.dropped(), queue.marked()),
            _ => (0, 0, 0, 0),
        }
    }
}

/// Whether a mark can be set instead of dropping the packet (RFC 3168 §5).
pub(crate) fn ecn_capable(packet: &Packet) -> bool {
    packet.ecn != Ecn::NotEct
}
