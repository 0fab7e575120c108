//! Drop-tail: first in, first out, and a packet that would exceed the limit is dropped. As with a Linux pfifo or
//! bfifo under a shaper, the limit counts the waiting packets, and one more is in transmission (measured on the
//! kernel: of 2000 packets offered in zero time, a limit of N lets exactly N + 1 pass).

use ackclock_core::packet::Load;
use ackclock_core::schema::{Limit, Refusal, Takes};
use ackclock_core::{table, Span, Stream, Time};

use super::backlog::Backlog;
use super::Discipline;
use crate::qdisc::{Qdisc, ENOUGH};

table! {
    /// First in, first out. A packet that arrives at a full queue is dropped.
    pub struct DropTailParams "drop-tail" {
        /// Maximum length of the queue: packets, bytes or multiples of the bandwidth-delay product. Default: unlimited.
        limit: Option<Limit> = Takes::Limit;
    }
}

impl Discipline for DropTailParams {
    type Queue = DropTail;

    fn queue(self, _: impl FnOnce() -> Stream) -> DropTail {
        DropTail::new(&self)
    }

    fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// Return Linux `pfifo` or `bfifo` with this limit.
    fn qdisc(&self, _: Span) -> Result<Qdisc, Refusal> {
        let (kind, most) = match self.limit {
            None => ("pfifo", ENOUGH),
            Some(Limit::Packets(packets)) => ("pfifo", packets),
            Some(Limit::Bytes(bytes)) => ("bfifo", bytes.min(u32::MAX as u64) as u32),
        };
        Ok(Qdisc::new(kind).begins(&[most]).says(&format!("limit {most}")))
    }
}

#[derive(Clone)]
pub(crate) struct DropTail {
    limit_packets: u32,
    /// Whether a multi-segment packet counts once.
    whole: bool,
    /// Limit in bytes. If the queue stays within it and within its longest length so far, a packet fits without a
    /// further check. 0 if a multi-segment packet counts once, so that every packet is checked.
    easy_bytes: u64,
}

impl DropTail {
    pub(crate) fn new(params: &DropTailParams) -> DropTail {
        let (limit_packets, limit_bytes) = match params.limit {
            None => (u32::MAX, u64::MAX),
            Some(Limit::Packets(packets)) => (packets, u64::MAX),
            Some(Limit::Bytes(bytes)) => (u32::MAX, bytes),
        };
        DropTail { limit_packets, whole: false, easy_bytes: limit_bytes }
    }

    /// Let the limit count a multi-segment packet once, as Linux's disciplines do.
    pub(crate) fn count_packets(&mut self) {
        if self.limit_packets < u32::MAX {
            (self.whole, self.easy_bytes) = (true, 0);
        }
    }

    /// Whether the queue has room for a packet that arrives while the link is busy. Packets whose transmission has
    /// started are removed from `backlog` only if the first answer is no.
    #[inline]
    pub(crate) fn has_room(&self, now: Time, load: Load, backlog: &mut Backlog) -> bool {
        if self.has_room_at_sight(load, backlog) {
            return true;
        }
        backlog.advance(now);
        let waiting = match self.whole {
            false if backlog.bytes() + load.bytes() as u64 > self.easy_bytes => return false,
            false => backlog.len() + load.segments(),
            true => backlog.whole() + 1,
        };
        waiting <= self.limit_packets
    }

    /// Whether the packet certainly fits: the queue stays within its longest length so far.
    #[inline]
    pub(crate) fn has_room_at_sight(&self, load: Load, backlog: &Backlog) -> bool {
        backlog.held_before(load.segments()) && backlog.bytes() + load.bytes() as u64 <= self.easy_bytes
    }
}

#[cfg(test)]
mod tests {
    use crate::{Limit, LinkConfig, QueueConfig, Refused, SoleLink};
    use ackclock_core::{Packet, Rate, Span, Time};

    fn passed(limit: Option<Limit>) -> usize {
        let config = LinkConfig {
            queue: QueueConfig::drop_tail(limit),
            ..LinkConfig::new("l", Rate(10_000_000), Span::from_ms(20))
        };
        let mut link = SoleLink::new(&config, 1);
        let packet = Packet { bytes: 1514, ..Packet::default() };
        let fates: Vec<_> = (0..2000).map(|_| link.offer(Time::ZERO, packet)).collect();
        let passed = fates.iter().filter(|f| f.is_ok()).count();
        assert!(fates[passed..].iter().all(|&f| f == Err(Refused::QueueFull)), "only the tail is dropped");
        passed
    }

    #[test]
    fn of_a_burst_n_wait_and_one_is_in_transmission_as_measured_on_the_kernel() {
        for n in [0, 20, 50, 100, 333] {
            assert_eq!(passed(Some(Limit::Packets(n))), n as usize + 1);
        }
        assert_eq!(passed(None), 2000);
    }

    #[test]
    fn bytes_that_wait_are_limited_likewise() {
        assert_eq!(passed(Some(Limit::Bytes(15_140))), 11);
        assert_eq!(passed(Some(Limit::Bytes(15_139))), 10);
    }

    #[test]
    fn a_place_is_free_in_the_nanosecond_in_which_a_transmission_starts() {
        let config = LinkConfig {
            queue: QueueConfig::packets(1),
            ..LinkConfig::new("l", Rate(8_000_000_000), Span::ZERO)
        };
        let mut link = SoleLink::new(&config, 1);
        let packet = Packet { bytes: 100, ..Packet::default() }; // 100 ns each
        assert_eq!(link.offer(Time(0), packet), Ok(()));
        assert_eq!(link.offer(Time(0), packet), Ok(()));
        assert_eq!(link.offer(Time(99), packet), Err(Refused::QueueFull));
        assert_eq!(link.offer(Time(100), packet), Ok(()));
    }
}
