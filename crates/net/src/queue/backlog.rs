//! Packets that wait in a FIFO link whose departure times are computed on arrival. Only packets that have to wait are
//! recorded; each may be forgotten when its transmission starts. Packets that have left are still counted until the
//! exact number is needed ([`Backlog::advance`]).
//!
//! Packets of the same size and segment count whose transmissions start at equal intervals form a run, and only runs
//! are stored. In front of a busy link, the segments of bulk flows form a single run.

use std::collections::VecDeque;

use ackclock_core::packet::Load;
use ackclock_core::{Span, Time};

/// Packets of one load whose transmissions start at intervals of `step`.
#[derive(Clone, Copy)]
struct Run {
    load: Load,
    /// Start of the last packet's transmission.
    last: Time,
    /// Interval between two transmission starts. Only a guess while the run contains a single packet.
    step: Span,
    packets: u32,
}

impl Run {
    /// Time from the last packet's transmission start to `start`.
    #[inline]
    fn gap(&self, start: Time) -> Span {
        Span(start.0 - self.last.0)
    }

    /// Packets of the run that still wait after `now`.
    fn waiting(&self, now: Time) -> u32 {
        match (self.last.since(now).0, self.step.0) {
            (0, _) => 0,
            (_, 0) => self.packets,
            (rest, step) => rest.div_ceil(step).min(self.packets as u64) as u32,
        }
    }

    /// Sum of the remaining waits of those packets after `now`, in segments x ns.
    fn still_to_wait(&self, now: Time) -> u128 {
        let n = self.waiting(now) as u128;
        let earlier = self.step.0 as u128 * (n * n.saturating_sub(1) / 2);
        (n * self.last.since(now).0 as u128 - earlier) * self.load.segments() as u128
    }
}

/// Waiting packets, in order of their transmission starts. A multi-segment packet counts as that many packets, so
/// that a limit in packets means the same with and without TSO.
#[derive(Clone)]
pub(crate) struct Backlog {
    /// The newest run, which contains the last arrival.
    run: Run,
    /// All older runs.
    earlier: VecDeque<Run>,
    /// Whether each packet is a separate run.
    single: bool,
    bytes: u64,
    packets: u32,
    max: u32,
    /// Total wait of all arrivals so far, in segments x ns, including the remaining wait of packets still queued.
    area: u128,
}

impl Default for Backlog {
    fn default() -> Backlog {
        let run = Run { load: Load::default(), last: Time::ZERO, step: Span::MAX, packets: 0 };
        Backlog { run, earlier: VecDeque::new(), single: false, bytes: 0, packets: 0, max: 0, area: 0 }
    }
}

impl Backlog {
    /// Store each packet as a separate run.
    pub(crate) fn store_single_packets(&mut self) {
        self.single = true;
    }

    /// Remove packets whose transmission starts at or before `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time) {
        loop {
            let run = self.earlier.front_mut().unwrap_or(&mut self.run);
            let waiting = run.waiting(now);
            let gone = run.packets - waiting;
            run.packets = waiting;
            self.packets -= gone * run.load.segments();
            self.bytes -= gone as u64 * run.load.bytes() as u64;
            if waiting > 0 || self.earlier.pop_front().is_none() {
                return;
            }
        }
    }

    /// Whether `segments` more would stay within the longest queue so far.
    #[inline]
    pub(crate) fn held_before(&self, segments: u32) -> bool {
        self.packets + segments <= self.max
    }

    /// Update the maximum for `segments` more that start waiting at `now`. Must precede [`Backlog::push`].
    #[inline]
    pub(crate) fn expect(&mut self, now: Time, segments: u32) {
        if !self.held_before(segments) {
            self.advance(now);
            self.max = self.max.max(self.packets + segments);
        }
    }

    /// Add a packet that waits for `wait`, until `start`.
    #[inline]
    pub(crate) fn push(&mut self, start: Time, wait: Span, load: Load) {
        let (alike, gap) = (self.run.load == load, self.run.gap(start));
        if !alike || gap != self.run.step {
            match alike && gap >= wait && self.earlier.is_empty() {
                true => (self.packets, self.bytes, self.run.packets) = (0, 0, 0), // same load and step, and all packets have left
                false => self.begin_run(start, wait, load),
            }
        }
        self.run.last = start;
        self.run.packets += 1;
        self.packets += load.segments();
        self.bytes += load.bytes() as u64;
        self.area += wait.0 as u128 * load.segments() as u128;
    }

    /// Start a new run for a packet that does not continue the current one, or set the step of a run that contains a
    /// single packet.
    #[inline(never)]
    fn begin_run(&mut self, start: Time, wait: Span, load: Load) {
        let run = &mut self.run;
        let (alike, gap) = (run.load == load, run.gap(start));
        if gap >= wait {
            self.earlier.clear(); // all packets have left
            (self.packets, self.bytes, run.packets) = (0, 0, 0);
        } else if run.packets == 1 && alike && !self.single {
            run.step = gap;
        } else if run.packets > 0 {
            self.earlier.push_back(*run);
            run.packets = 0;
        }
        if !alike {
            (run.load, run.step) = (load, Span::MAX);
        }
    }

    /// Number of segments that waited at the last call of [`Backlog::advance`], plus later arrivals.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.packets
    }

    /// Number of waiting packets; a multi-segment packet counts once.
    pub(crate) fn whole(&self) -> u32 {
        self.runs().map(|run| run.packets).sum()
    }

    /// Bytes of the packets that [`Backlog::len`] counts.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Maximum number of segments that waited at once.
    pub(crate) fn max(&self) -> u32 {
        self.max
    }

    /// Reset the maximum to the current length.
    pub(crate) fn forget_max(&mut self) {
        self.max = self.len();
    }

    /// Total wait of all arrivals, in segments x ns, up to the end of each wait.
    pub(crate) fn waited(&self) -> u128 {
        self.area
    }

    /// Integral of the number of waiting segments up to `now`, in segments x ns.
    pub(crate) fn area(&self, now: Time) -> u128 {
        self.area - self.runs().map(|run| run.still_to_wait(now)).sum::<u128>()
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.earlier.iter().chain([&self.run])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::packet::Class;
    use proptest::prelude::*;

    #[test]
    fn counts_until_the_start_and_integrates_up_to_now() {
        let mut backlog = Backlog::default();
        backlog.expect(Time(0), 1);
        backlog.push(Time(10), Span(10), Load::new(Class::Data, 1, 100));
        backlog.expect(Time(5), 1);
        backlog.push(Time(20), Span(15), Load::new(Class::Data, 1, 50));
        assert_eq!((backlog.len(), backlog.bytes(), backlog.area(Time(5))), (2, 150, 5));
        backlog.advance(Time(10));
        assert_eq!((backlog.len(), backlog.bytes(), backlog.area(Time(10))), (1, 50, 15));
        backlog.advance(Time(25));
        assert_eq!((backlog.len(), backlog.bytes(), backlog.area(Time(25)), backlog.max()), (0, 0, 25, 2));
    }

    proptest! {
        /// Oracle: a list of all waiting packets.
        #[test]
        fn runs_count_as_their_packets_do(
            steps in prop::collection::vec((0u64..8, prop_oneof![5 => Just(3u64), 1 => 0u64..9], 0u32..2, any::<bool>()), 1..200),
        ) {
            let (mut backlog, mut list) = (Backlog::default(), Vec::new());
            let (mut now, mut start, mut most, mut waited) = (0, 0, 0, 0u128);
            for (passed, step, kind, looks) in steps {
                now += passed;
                start = (start + step).max(now + 1);
                let load = Load::new(Class::Data, 1 + kind, 100 + kind);
                backlog.expect(Time(now), load.segments());
                backlog.push(Time(start), Span(start - now), load);
                list.push((start, load));
                waited += (start - now) as u128 * load.segments() as u128;
                let there: Vec<_> = list.iter().copied().filter(|&(start, _)| start > now).collect();
                let segments: u32 = there.iter().map(|(_, load)| load.segments()).sum();
                let rest: u128 = there.iter().map(|(s, load)| (s - now) as u128 * load.segments() as u128).sum();
                most = most.max(segments);
                prop_assert_eq!((backlog.area(Time(now)), backlog.waited(), backlog.max()), (waited - rest, waited, most));
                prop_assert!(backlog.len() >= segments && backlog.len() <= most);
                if looks {
                    backlog.advance(Time(now));
                    let bytes: u64 = there.iter().map(|(_, load)| load.bytes() as u64).sum();
                    prop_assert_eq!((backlog.len(), backlog.bytes(), backlog.whole()), (segments, bytes, there.len() as u32));
                }
            }
        }
    }
}
