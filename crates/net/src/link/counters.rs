//! Link counters.

use ackclock_core::{Span, Time};

use super::crowd::Rare;
use super::{Crowd, Link, Rest};
use crate::pool::Pool;

/// Sums over the link's lifetime. A multi-segment packet (TSO) counts as that many packets. At any time, arrivals +
/// held_before = delivered + dropped_loss + dropped_queue + held.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Packets offered.
    pub arrivals: u64,
    /// Arrivals by [`Class`](ackclock_core::packet::Class).
    pub arrivals_by_class: [u64; 4],
    /// Packets dropped by the queue, by [`Class`](ackclock_core::packet::Class).
    pub dropped_by_class: [u64; 4],
    /// Packets dropped by the loss model, or damaged.
    pub dropped_loss: u64,
    /// Packets dropped by the queue, at its limit or by its discipline.
    pub dropped_queue: u64,
    /// Packets dropped by the loss model or the queue before counting began.
    pub dropped_before: u64,
    /// Packets delivered at the far end.
    pub delivered: u64,
    /// Packets marked CE.
    pub marked: u64,
    /// Bytes delivered at the far end.
    pub bytes_delivered: u64,
    /// Packets in the link: waiting, in transmission, in propagation, or at the far end but not yet taken.
    pub held: u64,
    /// Packets in the link when counting began.
    pub held_before: u64,
    /// Time-averaged number of waiting packets since counting began.
    pub mean_packets: f64,
    /// Maximum number of waiting packets.
    pub max_packets: u32,
    /// Mean time that packets waited before their transmission, s.
    pub mean_wait_s: f64,
    /// Longest time that a packet waited before its transmission.
    pub max_wait: Span,
    /// Number of whole seconds of the run at which packets waited, since counting began.
    pub seconds_queued: u64,
    /// Time spent transmitting; zero on a link that follows a trace.
    pub busy: Span,
    /// Delivery opportunities so far, on a link that follows a trace.
    pub opportunities: u64,
    /// Opportunities used at least in part, including those already assigned to waiting packets.
    pub opportunities_used: u64,
}

/// Packets passed on ahead of time that have not reached the far end yet. They do not count as delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Underway {
    /// Number of segments in these packets.
    pub segments: u64,
    /// Number of bytes in these packets, as charged by the link.
    pub bytes: u64,
}

/// Sums since the start of the run.
#[derive(Clone, Default)]
pub(super) struct Sums {
    at: Time,
    arrivals: [u64; 4],
    dropped: [u64; 4],
    dropped_loss: u64,
    dropped_queue: u64,
    delivered: u64,
    marked: u64,
    bytes_delivered: u64,
    held: u64,
    area: u128,
    served: u64,
    waited: u128,
    seconds_queued: u64,
    busy: Span,
    opportunities: u64,
    opportunities_used: u64,
}

impl Link {
    /// Number of packets waiting at `now`, excluding the one in transmission.
    pub fn waiting(&mut self, pool: &mut Pool, now: Time) -> u32 {
        self.serve(pool, now);
        self.rest.as_mut().map_or(0, |rest| {
            rest.crowd.backlog.advance(now);
            rest.queue.len() + rest.crowd.backlog.len()
        })
    }

    /// Return the sums up to `now`, since the start of the run or the last [`Link::count_from`]. `now` must not
    /// decrease from call to call.
    pub fn counters(&mut self, pool: &mut Pool, now: Time, underway: Underway) -> Counters {
        let all = self.sums(pool, now, underway);
        let start = Sums::default();
        let before =
            self.crowd_if_any().and_then(|crowd| crowd.rare_if_any()?.before.as_ref()).unwrap_or(&start);
        let less = |a: [u64; 4], b: [u64; 4]| std::array::from_fn(|i| a[i] - b[i]);
        let arrivals_by_class: [u64; 4] = less(all.arrivals, before.arrivals);
        let elapsed = now.since(before.at).0;
        let queue_max = self.rest.as_ref().map_or(0, |rest| rest.queue.figures(now).1);
        Counters {
            arrivals: arrivals_by_class.iter().sum(),
            arrivals_by_class,
            dropped_by_class: less(all.dropped, before.dropped),
            dropped_loss: all.dropped_loss - before.dropped_loss,
            dropped_queue: all.dropped_queue - before.dropped_queue,
            dropped_before: before.dropped_loss + before.dropped_queue,
            delivered: all.delivered - before.delivered,
            marked: all.marked - before.marked,
            bytes_delivered: all.bytes_delivered - before.bytes_delivered,
            held: all.held,
            held_before: before.held,
            mean_packets: if elapsed == 0 { 0.0 } else { (all.area - before.area) as f64 / elapsed as f64 },
            max_packets: self.crowd_if_any().map_or(0, |crowd| crowd.backlog.max()).max(queue_max),
            mean_wait_s: (all.waited - before.waited) as f64 / (all.served - before.served).max(1) as f64
                * 1e-9,
            max_wait: self.crowd_if_any().map_or(Span::ZERO, |crowd| crowd.max_wait),
            seconds_queued: all.seconds_queued - before.seconds_queued,
            busy: all.busy - before.busy,
            opportunities: all.opportunities - before.opportunities,
            opportunities_used: all.opportunities_used - before.opportunities_used,
        }
    }

    /// Restart counting at `now`, the end of a warm-up. Packets already waiting add only the rest of their wait to
    /// `mean_packets`.
    pub fn count_from(&mut self, pool: &mut Pool, now: Time, underway: Underway) {
        let sums = self.sums(pool, now, underway);
        let Rest { queue, crowd, .. } = self.rest();
        queue.forget_max();
        crowd.rare().before = Some(sums);
        crowd.backlog.advance(now);
        crowd.backlog.forget_max();
        crowd.max_wait = Span::ZERO;
    }

    fn crowd_if_any(&self) -> Option<&Crowd> {
        self.rest.as_ref().map(|rest| &rest.crowd)
    }

    fn sums(&mut self, pool: &mut Pool, now: Time, underway: Underway) -> Sums {
        self.serve(pool, now);
        let rest = self.rest.as_deref();
        let (area, _, dropped, marked) = rest.map_or((0, 0, 0, 0), |rest| rest.queue.figures(now));
        let (opportunities, opportunities_used) =
            self.capacity().map_or((0, 0), |capacity| capacity.opportunities(now));
        let counted = self.transmitter.counted(&self.recipe.rate);
        let arrivals: u64 = counted.arrivals.iter().sum();
        let (on_wire, bytes_on_wire) = rest.map_or((0, 0), |rest| rest.wire.load(pool));
        let (holds, waiting) = rest.map_or((false, 0), |rest| (rest.queue.holds(), rest.queue.len()));
        let nobody = Crowd::default();
        let crowd = self.crowd_if_any().unwrap_or(&nobody);
        let none = Rare::default();
        let rare = crowd.rare_if_any().unwrap_or(&none);
        let mut instants = crowd.instants.clone();
        if waiting > 0 {
            instants.cover(crowd.occupied, Time(now.0 + 1));
        }
        Sums {
            at: now,
            arrivals: counted.arrivals,
            dropped: rare.dropped,
            dropped_loss: rare.dropped_loss + rare.damaged[0],
            dropped_queue: rare.refused + dropped,
            delivered: counted.sent - on_wire - underway.segments - rare.damaged[0],
            marked: rare.marked + marked,
            bytes_delivered: counted.bytes_sent - bytes_on_wire - underway.bytes - rare.damaged[1],
            held: on_wire + underway.segments + waiting as u64,
            area: area + crowd.backlog.area(now),
            served: if holds { crowd.served } else { arrivals - rare.dropped_loss - rare.refused },
            waited: if holds { crowd.waited } else { crowd.backlog.waited() },
            seconds_queued: instants.up_to(now),
            // The transmitter stays busy from `now` until its current work ends, so that time is subtracted.
            busy: counted.transmission.saturating_sub(self.busy_until.since(now)),
            opportunities,
            opportunities_used,
        }
    }
}
