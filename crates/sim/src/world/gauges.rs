//! Measurements of each flow in the network after the warm-up: round-trip times, one-way delays, data packets dropped
//! and arrived. Memory per flow is constant (sums and two histograms), however long the run is.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Packet, Span, Time};

use crate::tables::histogram::Histogram;

/// Sum and histogram of durations.
#[derive(Clone, Default)]
pub struct Spread {
    pub(crate) histogram: Histogram,
    sum_ns: u64,
}

impl Spread {
    #[inline]
    pub(crate) fn add(&mut self, span: Span) {
        self.histogram.add(span);
        self.sum_ns = self.sum_ns.saturating_add(span.0); // saturates after centuries
    }

    pub(crate) fn merge(&mut self, other: &Spread) {
        self.histogram.merge(&other.histogram);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    pub(crate) fn mean_s(&self) -> f64 {
        match self.histogram.total() {
            0 => f64::NAN,
            n => self.sum_ns as f64 / n as f64 * 1e-9,
        }
    }

    /// Median, 95th and 99th percentile, accurate to 0.4 %.
    pub(crate) fn quantiles(&self) -> [Span; 3] {
        self.histogram.quantiles([0.5, 0.95, 0.99]).map(|span| span.unwrap_or(Span::MAX))
    }
}

/// Measurements of all flows in the network.
#[derive(Clone)]
pub struct Gauges {
    /// Start of the measurement. Arrivals, drops and RTT samples before it belong to the warm-up.
    from: Time,
    pub(crate) flows: Vec<(Gauge, OnTheWay)>,
}

/// Measurements of one flow.
#[derive(Clone, Default)]
pub(crate) struct Gauge {
    pub(crate) rtt: Spread,
    pub(crate) delay: Spread,
    pub(crate) dropped: u64,
    pub(crate) arrived: u64,
}

/// Data packets in the network, in the order in which they left their host. A packet is removed when it arrives or is
/// dropped. It is usually the first in the list, or the last if a full queue dropped it.
#[derive(Clone, Default)]
pub(crate) struct OnTheWay(pub(crate) VecDeque<(Name, Time)>);

/// Packet identity: connection, segment, and transmission number.
type Name = (u32, u32, u8);

impl OnTheWay {
    #[inline]
    fn take(&mut self, name: Name) -> Option<Time> {
        match self.0.front() {
            Some(&(first, t)) if first == name => {
                self.0.pop_front();
                Some(t)
            }
            _ => self.search(name),
        }
    }

    /// Search for a packet from both ends at once.
    #[cold]
    fn search(&mut self, name: Name) -> Option<Time> {
        let last = self.0.len().checked_sub(1)?;
        let ends = (0..=last / 2).flat_map(|i| [last - i, i]);
        let at = ends.into_iter().find(|&at| self.0[at].0 == name)?;
        self.0.remove(at).map(|(_, t)| t)
    }
}

#[inline]
fn name(packet: &Packet) -> Name {
    let (segment, transmission) = packet.header.ordinal();
    (packet.conn, segment, transmission)
}

impl Gauges {
    /// Return empty measurements for this many flows.
    pub fn new(from: Time, flows: usize) -> Gauges {
        Gauges { from, flows: (0..flows).map(|_| Default::default()).collect() }
    }

    /// Record that a packet enters the network.
    #[inline]
    pub fn depart(&mut self, now: Time, packet: &Packet) {
        if is_data(packet) {
            self.flows[packet.flow as usize].1 .0.push_back((name(packet), now));
        }
    }

    /// Record that a packet leaves the network at the receiving host.
    #[inline]
    pub fn arrive(&mut self, now: Time, packet: &Packet) {
        if !is_data(packet) {
            return;
        }
        let (gauge, on_the_way) = &mut self.flows[packet.flow as usize];
        let departed = on_the_way.take(name(packet));
        if let Some(departed) = departed.filter(|_| now >= self.from) {
            gauge.arrived += 1;
            gauge.delay.add(now.since(departed));
        }
    }

    /// Record that a packet is dropped by a link or a queue.
    #[cold]
    pub fn lose(&mut self, now: Time, packet: &Packet) {
        if !is_data(packet) {
            return;
        }
        let (gauge, on_the_way) = &mut self.flows[packet.flow as usize];
        on_the_way.take(name(packet));
        gauge.dropped += (now >= self.from) as u64;
    }

    /// Record a sender's RTT sample.
    #[inline]
    pub fn sample(&mut self, now: Time, flow: FlowId, rtt: Span) {
        if now >= self.from {
            self.flows[flow as usize].0.rtt.add(rtt);
        }
    }
}

#[inline]
fn is_data(packet: &Packet) -> bool {
    packet.forward && packet.header.payload() > 0
}
