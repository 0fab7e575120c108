//! Queues: which packets a link refuses, marks or drops. One discipline, one file; a closed enum on the hot path.
//!
//! Disciplines that decide on arrival (drop-tail, netem-limit, RED) never hold a packet: its departure is computed
//! when it arrives, and only `backlog::Backlog` counts the waiting packets. Disciplines that decide at departure
//! (CoDel) hold their packets.

pub(crate) mod backlog;
mod cake;
mod choke;
mod cobalt;
pub(crate) mod codel;
mod drop_tail;
mod dualpi2;
pub(crate) mod fq_codel;
mod fq_pie;
pub(crate) mod instants;
mod linux_red;
mod netem_limit;
mod pie;
mod red;
mod threshold;

use ackclock_core::packet::{Ecn, Load};
use ackclock_core::schema::{Limit, Refusal};
use ackclock_core::{choice, family, Packet, Span, Stream, Time};

use crate::pool::{PacketId, Pool};
use crate::qdisc::{refused, Qdisc};
use crate::wire::Wire;
use backlog::Backlog;
use cake::Cake;
pub use cake::{CakeParams, Isolation, LineCode};
use choke::Choke;
pub use choke::ChokeParams;
use codel::Codel;
pub use codel::CodelParams;
pub(crate) use drop_tail::DropTail;
pub use drop_tail::DropTailParams;
use dualpi2::DualPi2;
pub use dualpi2::{DualPi2Params, Overload};
use fq_codel::FqCodel;
pub use fq_codel::FqCodelParams;
use fq_pie::FqPie;
pub use fq_pie::FqPieParams;
use linux_red::LinuxRed;
pub use linux_red::LinuxRedParams;
use netem_limit::NetemLimit;
pub use netem_limit::NetemLimitParams;
use pie::Pie;
pub use pie::PieParams;
use red::Red;
pub use red::RedParams;
use threshold::Threshold;
pub use threshold::ThresholdParams;

family! {
    /// A queue and its parameters. Limits apply to waiting packets, not to the packet in transmission.
    pub enum QueueConfig "queues" {
        DropTail(DropTailParams),
        NetemLimit(NetemLimitParams),
        Codel(CodelParams),
        FqCodel(FqCodelParams),
        FqPie(FqPieParams),
        Pie(PieParams),
        Threshold(ThresholdParams),
        Red(RedParams),
        LinuxRed(LinuxRedParams),
        Choke(ChokeParams),
        DualPi2(DualPi2Params),
        Cake(CakeParams),
    }
}

impl QueueConfig {
    /// A drop-tail queue without limits.
    pub const UNLIMITED: QueueConfig = QueueConfig::drop_tail(None);

    /// Return a drop-tail queue with this limit; `None` = no limit.
    pub const fn drop_tail(limit: Option<Limit>) -> QueueConfig {
        QueueConfig::DropTail(DropTailParams { limit })
    }

    /// Return a drop-tail queue with a limit in packets.
    pub const fn packets(limit: u32) -> QueueConfig {
        QueueConfig::drop_tail(Some(Limit::Packets(limit)))
    }

    /// Maximum length of the queue; `None` = no limit.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            QueueConfig::DropTail(params) => params.limit,
            QueueConfig::NetemLimit(params) => Some(Limit::Packets(params.limit)),
            QueueConfig::Codel(params) => params.limit.map(Limit::Packets),
            QueueConfig::FqCodel(params) => params.limit.map(Limit::Packets),
            QueueConfig::FqPie(params) => params.limit.map(Limit::Packets),
            QueueConfig::Pie(params) => params.limit.map(Limit::Packets),
            QueueConfig::Threshold(params) => params.limit.map(Limit::Packets),
            QueueConfig::Red(params) => Some(Limit::Packets(params.limit)),
            QueueConfig::LinuxRed(params) => Some(Limit::Bytes(params.limit)),
            QueueConfig::Choke(params) => Some(Limit::Packets(params.limit)),
            QueueConfig::DualPi2(params) => params.limit.map(Limit::Packets),
            QueueConfig::Cake(params) => params.limit.map(Limit::Bytes),
        }
    }

    /// Return the kernel's matching queueing discipline, on a link with this delay.
    pub fn qdisc(&self, delay: Span) -> Result<Qdisc, Refusal> {
        match self {
            QueueConfig::DropTail(params) => Ok(params.qdisc()),
            QueueConfig::NetemLimit(params) => Ok(params.qdisc(delay)),
            QueueConfig::Codel(params) => Ok(params.qdisc()),
            QueueConfig::FqCodel(params) => Ok(params.qdisc()),
            QueueConfig::FqPie(params) => Ok(params.qdisc()),
            QueueConfig::Pie(params) => Ok(params.qdisc()),
            QueueConfig::Red(params) => params.qdisc(),
            QueueConfig::LinuxRed(params) => params.qdisc(),
            QueueConfig::DualPi2(params) => params.qdisc(),
            QueueConfig::Cake(params) => Ok(params.qdisc()),
            QueueConfig::Threshold(_) => Err(refused("kind", "\"threshold\"")),
            QueueConfig::Choke(_) => Err(refused("kind", "\"choke\"")),
        }
    }

    /// Whether the queue holds its packets because it may drop them later.
    pub fn holds(&self) -> bool {
        use QueueConfig::{Cake, Choke, Codel, DualPi2, FqCodel, FqPie};
        matches!(self, Cake(_) | Choke(_) | Codel(_) | DualPi2(_) | FqCodel(_) | FqPie(_))
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        QueueConfig::UNLIMITED
    }
}

/// Reason why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The loss model dropped the packet.
    Loss,
    /// The queue was at its limit.
    QueueFull,
    /// Dropped by the discipline before its limit was reached.
    Aqm,
}

/// Index of a packet that leaves the queue that held it, and its wait.
#[derive(Clone, Copy)]
pub(crate) struct Served {
    pub id: PacketId,
    pub load: Load,
    pub waited: Span,
}

/// Drop of a held packet: time, packet, and reason.
pub(crate) type Dropped = (Time, Packet, Refused);

/// A discipline's decision on an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Accept,
    Mark,
    Refuse(Refused),
}

/// Packet that arrives at the queue, and the state of the link at that time.
pub(crate) struct Arrival<'a> {
    pub now: Time,
    pub packet: &'a Packet,
    /// Transmission time of the packet.
    pub tx: Span,
    /// Time at which the transmitter becomes idle.
    pub busy_until: Time,
    /// Packets waiting at `now`.
    pub backlog: &'a Backlog,
    /// Packets not yet taken from the far end.
    pub wire: &'a Wire,
    /// Number of packets in `wire`.
    pub on_wire: u32,
    pub pool: &'a Pool,
}

impl Arrival<'_> {
    /// Whether the packet's transmission starts at once. A transmission that ends in the same nanosecond has ended.
    #[inline]
    pub(crate) fn finds_link_idle(&self) -> bool {
        self.busy_until <= self.now
    }
}

/// Queue state.
#[derive(Clone)]
pub(crate) enum Queue {
    DropTail(DropTail),
    NetemLimit(NetemLimit),
    Threshold(Threshold),
    Red(Box<Red>),
    LinuxRed(Box<LinuxRed>),
    Pie(Box<Pie>),
    Codel(Box<Codel>),
    FqCodel(Box<FqCodel>),
    FqPie(Box<FqPie>),
    Choke(Box<Choke>),
    DualPi2(Box<DualPi2>),
    Cake(Box<Cake>),
}

/// Evaluates to the first value for a queue that holds its packets, to the second for all others.
macro_rules! held {
    ($self:ident, $queue:ident => $asked:expr, $otherwise:expr) => {
        match $self {
            Queue::Codel($queue) => $asked,
            Queue::FqCodel($queue) => $asked,
            Queue::FqPie($queue) => $asked,
            Queue::Choke($queue) => $asked,
            Queue::DualPi2($queue) => $asked,
            Queue::Cake($queue) => $asked,
            _ => $otherwise,
        }
    };
}

impl Queue {
    /// Return an empty queue. `stream` is used by disciplines that decide at random.
    pub(crate) fn new(config: &QueueConfig, stream: impl FnOnce() -> Stream) -> Queue {
        match config.clone() {
            QueueConfig::DropTail(params) => Queue::DropTail(DropTail::new(&params)),
            QueueConfig::NetemLimit(params) => Queue::NetemLimit(NetemLimit::new(&params)),
            QueueConfig::Codel(params) => Queue::Codel(Box::new(Codel::new(params))),
            QueueConfig::FqCodel(params) => Queue::FqCodel(Box::new(FqCodel::new(params))),
            QueueConfig::FqPie(params) => Queue::FqPie(Box::new(FqPie::new(params, stream()))),
            QueueConfig::LinuxRed(params) => Queue::LinuxRed(Box::new(LinuxRed::new(params, stream()))),
            QueueConfig::Pie(params) => Queue::Pie(Box::new(Pie::new(params, stream()))),
            QueueConfig::Threshold(params) => Queue::Threshold(Threshold::new(&params)),
            QueueConfig::Red(params) => Queue::Red(Box::new(Red::new(params, stream()))),
            QueueConfig::Choke(params) => Queue::Choke(Box::new(Choke::new(params, stream()))),
            QueueConfig::DualPi2(params) => Queue::DualPi2(Box::new(DualPi2::new(params, stream()))),
            QueueConfig::Cake(params) => Queue::Cake(Box::new(Cake::new(params, stream()))),
        }
    }

    /// Set the host numbers of each flow: sender, receiver.
    pub(crate) fn learn_hosts(&mut self, hosts: &[[u32; 2]]) {
        if let Queue::Cake(cake) = self {
            cake.learn_hosts(hosts);
        }
    }

    /// Decide on an arrival. Drop-tail and queues that hold packets have other entry points.
    #[inline(never)]
    pub(crate) fn admit(&mut self, arrival: &Arrival) -> Admission {
        match self {
            Queue::NetemLimit(queue) => queue.admit(arrival),
            Queue::Threshold(queue) => queue.admit(arrival),
            Queue::Red(queue) => queue.admit(arrival),
            Queue::LinuxRed(queue) => queue.admit(arrival),
            Queue::Pie(queue) => queue.admit(arrival),
            _ => unreachable!("invariant: drop-tail, or it holds packets: see `enqueue`"),
        }
    }

    /// Whether the queue holds its packets and also decides at departure.
    #[inline]
    pub(crate) fn holds(&self) -> bool {
        held!(self, _queue => true, false)
    }

    /// Variant of [`Queue::admit`] for a queue that holds its packets. Returns false if the packet is refused, which
    /// then still belongs to the caller.
    pub(crate) fn enqueue(
        &mut self,
        pool: &mut Pool,
        now: Time,
        id: PacketId,
        load: Load,
        must_wait: bool,
    ) -> bool {
        let accepted = match self {
            Queue::Codel(queue) => return queue.enqueue(now, id, load, must_wait),
            Queue::FqCodel(queue) => return queue.enqueue(pool, now, id, load, must_wait),
            Queue::FqPie(queue) => return queue.enqueue(pool, now, id, load, must_wait),
            Queue::Choke(queue) => queue.enqueue(now, pool[id], must_wait),
            Queue::DualPi2(queue) => queue.enqueue(now, pool[id], must_wait),
            Queue::Cake(queue) => queue.enqueue(now, pool[id], must_wait),
            _ => unreachable!("invariant: it holds packets"),
        };
        if accepted {
            pool.release(id); // copied into the queue
        }
        accepted
    }

    /// Return the packet to transmit at `now`.
    pub(crate) fn dequeue(&mut self, pool: &mut Pool, now: Time) -> Option<Served> {
        let (packet, waited) = match self {
            Queue::Codel(queue) => return queue.dequeue(pool, now, 0),
            Queue::FqCodel(queue) => return queue.dequeue(pool, now),
            Queue::FqPie(queue) => return queue.dequeue(now),
            Queue::Choke(queue) => queue.dequeue(now)?,
            Queue::DualPi2(queue) => queue.dequeue(now)?,
            Queue::Cake(queue) => queue.dequeue(now)?,
            _ => return None,
        };
        Some(Served { id: pool.insert(&packet), load: packet.load(), waited })
    }

    /// Time at or after which a held packet can be sent; `None` if there is none.
    #[inline]
    pub(crate) fn head_arrival(&self) -> Option<Time> {
        held!(self, queue => queue.head_arrival(), None)
    }

    /// Whether any dropped packets are still to be reported.
    #[inline]
    pub(crate) fn has_head_drops(&self) -> bool {
        held!(self, queue => queue.has_head_drops(), false)
    }

    /// Return the oldest drop that has not been reported yet: time, packet and reason.
    #[inline]
    pub(crate) fn take_head_drop(&mut self) -> Option<Dropped> {
        held!(self, queue => queue.take_head_drop(), None)
    }

    /// Number of segments in a queue that holds its packets; 0 for other queues.
    pub(crate) fn len(&self) -> u32 {
        held!(self, queue => queue.len(), 0)
    }

    /// Reset the maximum number of packets to the current length.
    pub(crate) fn forget_max(&mut self) {
        held!(self, queue => queue.forget_max(), ())
    }

    /// Return statistics on the held packets: the integral of their number over time up to `now` (segments x ns), its
    /// maximum, and the segments dropped and marked.
    pub(crate) fn figures(&self, now: Time) -> (u128, u32, u64, u64) {
        held!(self, queue => queue.figures(now), (0, 0, 0, 0))
    }
}

/// Return the number of a packet's queue among `queues`: Fibonacci hashing of the connection number, reduced by
/// multiplication.
fn queue_of(packet: &Packet, queues: u32) -> u32 {
    let spread = (packet.conn as u64 ^ (packet.forward as u64) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (((spread >> 32) * queues as u64) >> 32) as u32
}

/// Whether the packet can be marked instead of dropped (RFC 3168 §5).
pub(crate) fn ecn_capable(packet: &Packet) -> bool {
    packet.ecn != Ecn::NotEct
}

/// Packets that are treated as coming from a scalable congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Classifier {
    /// ECT(1) and CE (RFC 9331 §5.1).
    L4s,
    /// Every packet that can be marked, including ECT(0), which DCTCP sends.
    AnyEct,
}

choice! { Classifier: L4s "l4s", AnyEct "any-ect" }

impl Classifier {
    /// Whether a packet with this ECN field goes to the L queue.
    pub(crate) fn takes(self, ecn: Ecn) -> bool {
        match ecn {
            Ecn::NotEct => false,
            Ecn::Ect0 => self == Classifier::AnyEct,
            Ecn::Ect1 | Ecn::Ce => true,
        }
    }
}

/// Queue under test without a link, and the pool with its packets.
#[cfg(test)]
pub(crate) struct Pooled<Q> {
    inner: Q,
    pool: Pool,
}

#[cfg(test)]
mod pooled {
    use super::*;

    impl<Q> Pooled<Q> {
        pub(crate) fn new(inner: Q) -> Pooled<Q> {
            Pooled { inner, pool: Pool::default() }
        }

        fn taken(&mut self, served: Served) -> (Packet, Span) {
            (self.pool.remove(served.id), served.waited)
        }
    }

    impl Pooled<Codel> {
        pub(crate) fn enqueue(&mut self, now: Time, packet: Packet, must_wait: bool) -> bool {
            let id = self.pool.insert(&packet);
            self.inner.enqueue(now, id, packet.load(), must_wait)
        }

        pub(crate) fn dequeue(&mut self, now: Time) -> Option<(Packet, Span)> {
            let served = self.inner.dequeue(&mut self.pool, now, 0)?;
            Some(self.taken(served))
        }
    }

    impl Pooled<FqCodel> {
        pub(crate) fn enqueue(&mut self, now: Time, packet: Packet, must_wait: bool) -> bool {
            let id = self.pool.insert(&packet);
            self.inner.enqueue(&mut self.pool, now, id, packet.load(), must_wait)
        }

        pub(crate) fn dequeue(&mut self, now: Time) -> Option<(Packet, Span)> {
            let served = self.inner.dequeue(&mut self.pool, now)?;
            Some(self.taken(served))
        }
    }

    impl<Q> std::ops::Deref for Pooled<Q> {
        type Target = Q;
        fn deref(&self) -> &Q {
            &self.inner
        }
    }

    impl<Q> std::ops::DerefMut for Pooled<Q> {
        fn deref_mut(&mut self) -> &mut Q {
            &mut self.inner
        }
    }
}
