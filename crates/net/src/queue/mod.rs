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
mod ledger;
mod linux_red;
mod netem_limit;
mod pie;
mod red;
mod threshold;

use ackclock_core::packet::{Ecn, Load};
use ackclock_core::schema::{Limit, Refusal};
use ackclock_core::{choice, family, Packet, Span, Stream, Time};

use crate::pool::{PacketId, Pool};
use crate::qdisc::Qdisc;
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
use ledger::Holding;
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

/// Parameters of a queue.
pub(crate) trait Discipline {
    /// State of the queue.
    type Queue;

    /// Return an empty queue. `stream` is used by disciplines that decide at random.
    fn queue(self, stream: impl FnOnce() -> Stream) -> Self::Queue;

    /// Maximum length of the queue; `None` = no limit.
    fn limit(&self) -> Option<Limit>;

    /// Return the kernel's matching queueing discipline, on a link with this delay.
    fn qdisc(&self, delay: Span) -> Result<Qdisc, Refusal>;
}

/// Declare the queues: for each, when it decides, its name, its parameters and its state. A queue decides at `arrival`,
/// or at `departure`, too, and then holds its packets; drop-tail is `easy`: the link asks it by itself.
macro_rules! queues {
    ($($decides:ident $name:ident($params:ident) = $state:ty;)+) => {
        family! {
            /// A queue and its parameters. Limits apply to waiting packets, not to the packet in transmission.
            pub enum QueueConfig "queues" { $($name($params),)+ }
        }

        impl QueueConfig {
            /// Maximum length of the queue; `None` = no limit.
            pub fn limit(&self) -> Option<Limit> {
                match self {
                    $(QueueConfig::$name(params) => Discipline::limit(params),)+
                }
            }

            /// Return the kernel's matching queueing discipline, on a link with this delay.
            pub fn qdisc(&self, delay: Span) -> Result<Qdisc, Refusal> {
                match self {
                    $(QueueConfig::$name(params) => Discipline::qdisc(params, delay),)+
                }
            }

            /// Whether the queue holds its packets because it may drop them later.
            pub fn holds(&self) -> bool {
                match self {
                    $(QueueConfig::$name(_) => at!($decides departure: true, false),)+
                }
            }
        }

        /// Queue state.
        #[derive(Clone)]
        pub(crate) enum Queue { $($name($state),)+ }

        impl Queue {
            /// Return an empty queue. `stream` is used by disciplines that decide at random.
            pub(crate) fn new(config: &QueueConfig, stream: impl FnOnce() -> Stream) -> Queue {
                match config.clone() {
                    $(QueueConfig::$name(params) => Queue::$name(params.queue(stream)),)+
                }
            }

            /// Decide on an arrival. Drop-tail and queues that hold packets have other entry points.
            #[inline(never)]
            pub(crate) fn admit(&mut self, arrival: &Arrival) -> Admission {
                match self {
                    $(Queue::$name(queue) => at!($decides arrival: queue.admit(arrival), {
                        let _ = queue;
                        unreachable!("invariant: drop-tail, or it holds packets: see `enqueue`")
                    }),)+
                }
            }
        }

        /// Evaluates to the first value for a queue that holds its packets, to the second for all others.
        macro_rules! held {
            ($self:ident, $queue:ident => $asked:expr, $otherwise:expr) => {
                match $self {
                    $(Queue::$name($queue) => at!($decides departure: $asked, {
                        let _ = $queue;
                        $otherwise
                    }),)+
                }
            };
        }
    };
}

/// Evaluates to the first value if the queue decides at this time, otherwise to the second.
macro_rules! at {
    (arrival arrival: $then:expr, $otherwise:expr) => {
        $then
    };
    (departure departure: $then:expr, $otherwise:expr) => {
        $then
    };
    ($decides:ident $asked:ident: $then:expr, $otherwise:expr) => {
        $otherwise
    };
}

queues! {
    easy DropTail(DropTailParams) = DropTail;
    arrival NetemLimit(NetemLimitParams) = NetemLimit;
    departure Codel(CodelParams) = Box<Codel>;
    departure FqCodel(FqCodelParams) = Box<FqCodel>;
    departure FqPie(FqPieParams) = Box<FqPie>;
    arrival Pie(PieParams) = Box<Pie>;
    arrival Threshold(ThresholdParams) = Threshold;
    arrival Red(RedParams) = Box<Red>;
    arrival LinuxRed(LinuxRedParams) = Box<LinuxRed>;
    departure Choke(ChokeParams) = Box<Choke>;
    departure DualPi2(DualPi2Params) = Box<DualPi2>;
    departure Cake(CakeParams) = Box<Cake>;
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

impl Queue {
    /// Set the host numbers of each flow: sender, receiver.
    pub(crate) fn learn_hosts(&mut self, hosts: &[[u32; 2]]) {
        if let Queue::Cake(cake) = self {
            cake.learn_hosts(hosts);
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
        held!(self, queue => queue.hold(pool, now, id, load, must_wait), {
            unreachable!("invariant: it holds packets")
        })
    }

    /// Return the packet to transmit at `now`.
    pub(crate) fn dequeue(&mut self, pool: &mut Pool, now: Time) -> Option<Served> {
        held!(self, queue => queue.serve(pool, now), None)
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
