//! A Mahimahi trace (Netravali et al., USENIX ATC 2015; LinkShell): each line of the file names a millisecond in
//! which the bytes of one packet may be sent. The trace repeats; its last time stamp is the period.
//!
//! Rules: an opportunity without a waiting packet is lost. A packet smaller than an opportunity leaves the rest to
//! the packets queued behind it; a larger one takes several opportunities. Packets that arrive at the instant of an
//! opportunity can use it.
//!
//! Differs: by default an opportunity is 1500 bytes as counted by the link; Mahimahi's 1504 is the same packet with
//! Mahimahi's tunnel header.

use std::sync::Arc;

use ackclock_core::schema::{words, Described, Refusal, Takes, Value, SIZE};
use ackclock_core::{table, Rate, Span, Time};

const MS: u64 = 1_000_000;

table! {
    /// A Mahimahi trace, replayed exactly and in a loop.
    /// The link must not have a `rate`.
    pub struct MahimahiParams "mahimahi" {
        /// File with the trace; each line gives a millisecond at which one packet may be sent. The path is relative to
        /// the scenario file.
        file: Opportunities = Takes::Trace;
        /// Bytes that may be sent at each of these times, including framing.
        opportunity: u32 = SIZE, 1500;
    }
    rules |mahimahi, rules| {
        if mahimahi.trace().is_none() {
            rules.refuse_as("file", "a trace without an opportunity", "one in a millisecond or more");
        }
    }
}

/// Number of packets that may be sent in each millisecond of a trace, from zero to its period inclusive.
#[derive(Clone, Debug, PartialEq)]
pub struct Opportunities(pub Arc<[u32]>);

impl Described for Opportunities {
    fn read(value: &Value) -> Result<Opportunities, Refusal> {
        match value {
            Value::Counts(counts) => Ok(Opportunities(counts.clone())),
            _ => Vec::read(value).map(|counts| Opportunities(counts.into())),
        }
    }
    fn write(&self) -> Value {
        self.0.to_vec().write()
    }
}

/// Maximum length of a trace, ms.
const LONGEST_MS: u32 = 3_600_000;

/// Parse the contents of a file. Returns the opportunities in each millisecond, from 0 to the last one listed, or the
/// number of the invalid line.
pub fn read_trace(data: &[u8]) -> Result<Arc<[u32]>, (usize, Refusal)> {
    const LINE: &str = "a whole number of milliseconds in each line";
    if data.iter().all(u8::is_ascii_whitespace) {
        return Err((1, Refusal::new("an empty trace", LINE)));
    }
    let lines = data.strip_suffix(b"\n").unwrap_or(data).split(|&c| c == b'\n');
    let mut counts: Vec<u32> = Vec::new();
    let (mut last, mut number, mut turned) = (0, 0, None);
    for (i, line) in lines.enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line.len() > 9 || !line.iter().all(u8::is_ascii_digit) {
            let found = match line {
                [] => "an empty line".to_string(),
                _ => words::quoted(&String::from_utf8_lossy(line)),
            };
            return Err((i + 1, Refusal::new(found, LINE)));
        }
        let ms = line.iter().fold(0, |ms, digit| 10 * ms + (digit - b'0') as u32);
        number = i + 1;
        if ms < last && turned.is_none() {
            turned = Some((
                number,
                Refusal::new(format_args!("{ms} ms after {last} ms"), "times that never decrease"),
            ));
        }
        if turned.is_none() && ms <= LONGEST_MS {
            counts.resize(counts.len().max(ms as usize + 1), 0);
            counts[ms as usize] += 1;
        }
        last = ms;
    }
    if let Some(refused) = turned {
        return Err(refused);
    }
    if last > LONGEST_MS || last == 0 {
        let allowed = format_args!("1 to {LONGEST_MS} ms");
        return Err((number, Refusal::new(format_args!("{last} ms as the trace's end"), allowed)));
    }
    Ok(counts.into())
}

impl MahimahiParams {
    /// The trace; `None` if its period is zero or it has no opportunities.
    pub(super) fn trace(&self) -> Option<Trace> {
        Trace::new(&self.file.0, self.opportunity)
    }

    /// Mean rate.
    pub(super) fn mean(&self) -> Rate {
        let total: u128 = self.file.0.iter().map(|&count| count as u128).sum();
        // the last millisecond of a cycle is the first one of the next
        let period = (self.file.0.len() as u128).saturating_sub(1).max(1);
        Rate((total * self.opportunity as u128 * 8000 / period) as u64)
    }
}

/// Opportunities of a trace, by millisecond.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trace {
    /// Opportunities in the first millisecond of the run. Later cycles add those of the previous cycle's last
    /// millisecond.
    first: u32,
    /// Opportunities in each millisecond of all later cycles.
    cycle: Vec<u32>,
    /// For each millisecond of the cycle, the next one with opportunities, including itself; the period if there is
    /// none.
    next: Vec<u32>,
    total: u64,
    bytes: u32,
}

impl Trace {
    /// Build a trace from the number of opportunities in each millisecond, from zero to the period inclusive, and the
    /// bytes per opportunity. `None` if the period is zero or there are no opportunities.
    fn new(counts: &[u32], bytes: u32) -> Option<Trace> {
        let (&last, head) = counts.split_last()?;
        let &first = head.first()?;
        let total = counts.iter().map(|&c| c as u64).sum::<u64>();
        if total == 0 || bytes == 0 {
            return None;
        }
        let mut cycle = head.to_vec();
        cycle[0] = first.checked_add(last)?;
        let mut next = vec![0; cycle.len()];
        let mut following = cycle.len() as u32;
        for (ms, &count) in cycle.iter().enumerate().rev() {
            if count > 0 {
                following = ms as u32;
            }
            next[ms] = following;
        }
        Some(Trace { first, cycle, next, total, bytes })
    }

    /// Length of a cycle.
    fn period(&self) -> Span {
        Span(self.cycle.len() as u64 * MS)
    }

    /// Number of opportunities in millisecond `ms` of the run.
    fn count(&self, ms: u64) -> u32 {
        if ms == 0 {
            return self.first;
        }
        self.cycle[(ms % self.cycle.len() as u64) as usize]
    }

    /// First millisecond of the run, from `ms` on, that has opportunities.
    fn seek(&self, ms: u64) -> u64 {
        if ms == 0 && self.first > 0 {
            return 0;
        }
        let period = self.cycle.len() as u64;
        let mut ms = ms.max(1);
        loop {
            let at = ms % period;
            let next = self.next[at as usize] as u64;
            if next < period {
                return ms - at + next;
            }
            ms += period - at;
        }
    }

    /// Number of opportunities up to and including millisecond `ms` of the run.
    fn elapsed(&self, ms: u64) -> u64 {
        let period = self.cycle.len() as u64;
        let (whole, part) = ((ms + 1) / period, (ms + 1) % period);
        let beginning: u64 = self.cycle[..part as usize].iter().map(|&c| c as u64).sum();
        // the first millisecond lacks the opportunities that the end of an earlier cycle would have added
        whole * self.total + beginning - (self.cycle[0] - self.first) as u64
    }
}

/// Transmitter's position in the trace.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    /// Millisecond of the current opportunity.
    ms: u64,
    /// Opportunities of this millisecond used so far, including the current one.
    taken: u32,
    /// Remaining bytes of the current opportunity.
    left: u32,
    used: u64,
}

/// State of a trace replay.
#[derive(Clone)]
pub(crate) struct Replay {
    trace: Trace,
    cursor: Cursor,
    pub(crate) delay: Span,
}

impl Replay {
    pub(crate) fn new(params: &MahimahiParams, delay: Span) -> Replay {
        let trace = params.trace().expect("invariant: checked with the scenario");
        Replay { trace, cursor: Cursor { ms: 0, taken: 0, left: 0, used: 0 }, delay }
    }

    /// Mean time between opportunities.
    pub(crate) fn typical(&self) -> Span {
        Span(self.trace.period().0 / self.trace.total)
    }

    /// Return the first opportunity for a packet that may be sent no earlier than `earliest`.
    pub(crate) fn start(&self, earliest: Time) -> Time {
        self.take(earliest, 1).1
    }

    /// Transmit a packet no earlier than `earliest`. Returns the times of the first and the last opportunity it uses.
    pub(crate) fn transmit(&mut self, earliest: Time, bytes: u32) -> (Time, Time) {
        let (cursor, start) = self.take(earliest, bytes);
        self.cursor = cursor;
        (start, Time(cursor.ms * MS))
    }

    /// Number of opportunities up to `now`, and the number used by packets transmitted so far.
    pub(crate) fn opportunities(&self, now: Time) -> (u64, u64) {
        (self.trace.elapsed(now.0 / MS), self.cursor.used)
    }

    fn take(&self, earliest: Time, bytes: u32) -> (Cursor, Time) {
        let mut cursor = self.cursor;
        let earliest = earliest.0.div_ceil(MS);
        let (mut wanted, mut start) = (bytes, None);
        if earliest <= cursor.ms && cursor.left > 0 {
            let part = wanted.min(cursor.left);
            (cursor.left, wanted) = (cursor.left - part, wanted - part);
            start = Some(cursor.ms);
        }
        while wanted > 0 {
            if cursor.ms < earliest {
                (cursor.ms, cursor.taken) = (self.trace.seek(earliest), 0);
            } else if cursor.taken == self.trace.count(cursor.ms) {
                (cursor.ms, cursor.taken) = (self.trace.seek(cursor.ms + 1), 0);
            }
            cursor.taken += 1;
            cursor.used += 1;
            let part = wanted.min(self.trace.bytes);
            wanted -= part;
            cursor.left = self.trace.bytes - part;
            start = start.or(Some(cursor.ms));
        }
        (cursor, Time(start.unwrap_or(cursor.ms) * MS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CapacityConfig, CodelParams, LinkConfig, QueueConfig, SoleLink};
    use ackclock_core::Packet;
    use proptest::prelude::*;

    /// Times of all opportunities, read straight from the lines of a file.
    fn opportunities(lines: &[u64]) -> impl Iterator<Item = u64> + '_ {
        let period = *lines.last().expect("a line");
        (0..).flat_map(move |cycle| lines.iter().map(move |t| cycle * period + t))
    }

    fn counts(lines: &[u64]) -> Vec<u32> {
        let mut counts = vec![0; *lines.last().expect("a line") as usize + 1];
        for &t in lines {
            counts[t as usize] += 1;
        }
        counts
    }

    fn link(lines: &[u64], queue: QueueConfig) -> SoleLink {
        let file = Opportunities(counts(lines).into());
        let capacity = Some(CapacityConfig::Mahimahi(MahimahiParams { file, opportunity: 1500 }));
        let plain = LinkConfig::new("l", Rate::INFINITE, Span::from_ms(7));
        SoleLink::new(&LinkConfig { capacity, queue, ..plain }, 1)
    }

    fn lines() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(0u64..40, 1..60).prop_map(|mut lines| {
            lines.sort_unstable();
            if lines.last() == Some(&0) {
                lines.push(1);
            }
            lines
        })
    }

    proptest! {
        /// Oracle: a list of opportunities, and a queue served at each of them.
        #[test]
        fn replayed_exactly(
            lines in lines(),
            arrivals in prop::collection::vec((0u64..3_000_000, 1u32..4000), 1..120),
            codel in any::<bool>(),
        ) {
            let queue = match codel {
                // never exceeds its target, so it only holds packets
                true => QueueConfig::Codel(CodelParams {
                    limit: None, target: Span::from_secs(99), interval: Span::from_secs(99), ecn: false, ce_threshold: None }),
                false => QueueConfig::UNLIMITED,
            };
            let mut link = link(&lines, queue);
            let (mut t, mut got, mut offered) = (0, Vec::new(), Vec::new());
            for (i, (gap, bytes)) in arrivals.into_iter().enumerate() {
                t += gap;
                while link.next_event() < Time(t) {
                    let now = link.next_event();
                    got.extend(std::iter::from_fn(|| link.poll(now)).map(|p| (now.0, p.conn)));
                }
                link.offer(Time(t), Packet { bytes, conn: i as u32, ..Packet::default() }).expect("no limit");
                offered.push((t, bytes));
            }
            while link.next_event() != Time::NEVER {
                let now = link.next_event();
                got.extend(std::iter::from_fn(|| link.poll(now)).map(|p| (now.0, p.conn)));
            }

            let mut expected = Vec::new();
            let (mut head, mut sent) = (0, 0);
            let (mut elapsed, mut used) = (0, 0);
            for at in opportunities(&lines) {
                if head == offered.len() {
                    break;
                }
                elapsed += 1;
                let mut room = 1500;
                while head < offered.len() && offered[head].0 <= at * MS && room > 0 {
                    used += (room == 1500) as u64;
                    let part = room.min(offered[head].1 - sent);
                    (room, sent) = (room - part, sent + part);
                    if sent == offered[head].1 {
                        expected.push((at * MS + 7 * MS, head as u32));
                        (head, sent) = (head + 1, 0);
                    }
                }
            }
            prop_assert_eq!(&got, &expected);
            let end = expected.last().expect("something was sent").0 - 7 * MS;
            let c = link.counters(Time(end + 7 * MS));
            prop_assert_eq!(c.opportunities_used, used);
            // all opportunities in the last millisecond count, including those after the last packet
            let last = opportunities(&lines).take_while(|&t| t <= end / MS + 7).count() as u64;
            prop_assert_eq!(c.opportunities, last);
            prop_assert!(elapsed <= last);
        }
    }

    #[test]
    fn a_full_queue_gets_every_opportunity_from_1_to_1000_mbit() {
        for mbit in [1u64, 12, 1000] {
            // rate in Mbit/s, as a 600 ms file of 12,000-bit packets
            let lines: Vec<u64> = (1..=50 * mbit).map(|i| (i * 12).div_ceil(mbit)).collect();
            assert_eq!(lines.last(), Some(&600));
            let mut link = link(&lines, QueueConfig::UNLIMITED);
            for _ in 0..100 * mbit {
                link.offer(Time::ZERO, Packet { bytes: 1500, ..Packet::default() }).expect("no limit");
            }
            let mut times = Vec::new();
            while link.next_event() != Time::NEVER {
                let now = link.next_event();
                times.extend(std::iter::from_fn(|| link.poll(now)).map(|_| now.0 / MS - 7));
            }
            assert_eq!(times, opportunities(&lines).take_while(|&t| t <= 1200).collect::<Vec<_>>(), "{mbit}");
            let c = link.counters(Time(1_200 * MS));
            assert_eq!((c.opportunities, c.opportunities_used), (100 * mbit, 100 * mbit));
        }
    }

    #[test]
    fn refuses_what_offers_nothing() {
        let params =
            |counts: &[u32]| MahimahiParams { file: Opportunities(counts.into()), opportunity: 1500 };
        for bad in [&[][..], &[5], &[0, 0], &[0, 0, 0]] {
            assert!(params(bad).trace().is_none(), "{bad:?}");
        }
        assert_eq!(Trace::new(&[0, 1], 0), None);
        let params = params(&[0, 1, 0, 1]);
        assert_eq!(params.trace().expect("fine").period(), Span::from_ms(3));
        assert_eq!(params.mean(), Rate(8_000_000));
    }
}
