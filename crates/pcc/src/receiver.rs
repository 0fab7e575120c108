//! Receiving end: reassembles the data and reports which datagrams arrived, individually or several per report.

use ackclock_core::datagram::{Data, DataKind, Datagram, DatagramEndpoint, Report, REPORT_WORDS};
use ackclock_core::Time;

use crate::config::{Config, Feedback};
use crate::pieces::Incoming;
use crate::request::Requests;

/// Receiving end of a flow.
#[derive(Clone)]
pub struct Receiver {
    feedback: Feedback,
    /// Size of the transport's own header, bytes.
    header: u32,
    requests: Requests,
    data: Incoming,
    /// Largest datagram number that has arrived, and its arrival time.
    largest: Option<(u64, Time)>,
    /// Bitmap as in [`Report::received`].
    received: [u64; REPORT_WORDS],
    /// Number of arrivals since the last report.
    fresh: u32,
    /// Largest datagram number at the time of the last report, plus one.
    reported: u64,
    flush: Time,
    due: bool,
    arrivals: u64,
    duplicates: u64,
}

impl Receiver {
    /// Create a receiver before any arrival.
    pub fn new(config: &Config) -> Receiver {
        Receiver {
            feedback: config.feedback,
            header: config.header,
            requests: Requests::default(),
            data: Incoming::default(),
            largest: None,
            received: [0; REPORT_WORDS],
            fresh: 0,
            reported: 0,
            flush: Time::NEVER,
            due: false,
            arrivals: 0,
            duplicates: 0,
        }
    }

    /// Payload bytes delivered in order.
    pub fn received(&self) -> u64 {
        self.data.bytes()
    }

    /// Received payload bytes, including those beyond a gap.
    pub fn arrived(&self) -> u64 {
        self.data.bytes() + self.data.behind_gaps()
    }

    /// Whether the sender has closed and all its data has arrived.
    pub fn is_complete(&self) -> bool {
        self.data.is_complete()
    }

    /// Request data from the peer: one request of `bytes`, at most a datagram's payload. All data requested earlier
    /// must have arrived.
    pub fn ask(&mut self, bytes: u32) {
        self.requests.ask(bytes);
    }

    /// Whether anything has been received from the peer.
    pub fn is_established(&self) -> bool {
        self.largest.is_some()
    }

    /// Whether a request has failed for lack of a response.
    pub fn has_failed(&self) -> bool {
        self.requests.has_failed()
    }

    /// Number of data datagrams that have arrived, and number of duplicates among them.
    pub fn arrivals(&self) -> (u64, u64) {
        (self.arrivals, self.duplicates)
    }

    #[inline]
    fn note(&mut self, number: u64, now: Time) {
        let Some((largest, _)) = self.largest else {
            self.largest = Some((number, now));
            return;
        };
        if number > largest {
            shift(&mut self.received, number - largest);
            self.largest = Some((number, now));
        } else if let Some(below) = (largest - number).checked_sub(1) {
            if below < Report::SPAN {
                self.received[(below / 64) as usize] |= 1 << (below % 64);
            }
        }
    }

    fn report(&mut self, now: Time) -> Option<Datagram> {
        let (largest, arrived) = self.largest?;
        let mut received = self.received;
        if !self.feedback.repeats {
            keep(&mut received, largest.saturating_sub(self.reported));
        }
        let report = Report {
            next_chunk: self.data.next(),
            largest,
            held: now.since(arrived),
            received,
            fresh: self.fresh,
            len: REPORT_BYTES,
        };
        self.reported = largest + 1;
        self.fresh = 0;
        self.due = false;
        self.flush = Time::NEVER;
        Some(Datagram::Report(report))
    }
}

impl DatagramEndpoint for Receiver {
    #[inline]
    fn on_packet(&mut self, now: Time, datagram: &Datagram) {
        let Datagram::Data(Data { number, chunk, len, kind, .. }) = *datagram else { return };
        self.note(number, now);
        self.fresh += 1;
        if kind == DataKind::Hello {
            self.due = true;
            return;
        }
        self.arrivals += 1;
        let last = matches!(kind, DataKind::Last | DataKind::Close);
        if self.data.insert(chunk, len, last) {
            self.requests.on_answer();
        } else {
            self.duplicates += 1;
        }
        if self.fresh >= self.feedback.every || last {
            self.due = true;
        } else if self.flush == Time::NEVER {
            self.flush = now + self.feedback.flush;
        }
    }

    fn on_timer(&mut self, now: Time) {
        if now >= self.flush {
            self.due = self.fresh > 0;
            self.flush = Time::NEVER;
        }
        self.requests.on_timer(now);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        if !self.due {
            return self.requests.poll(now, self.header);
        }
        self.report(now)
    }

    #[inline]
    fn next_deadline(&self) -> Time {
        self.flush.min(self.requests.deadline())
    }
}

/// Shift the bitmap for a largest number that has grown by `by`. Bit `by` - 1 represents the old largest number, which
/// had arrived.
#[inline]
fn shift(words: &mut [u64; REPORT_WORDS], by: u64) {
    if by == 1 {
        for i in (1..REPORT_WORDS).rev() {
            words[i] = words[i] << 1 | words[i - 1] >> 63;
        }
        words[0] = words[0] << 1 | 1;
        return;
    }
    let mut out = [0; REPORT_WORDS];
    for (i, word) in out.iter_mut().enumerate() {
        // bit b of the new words is bit b - by of the old ones; bit by - 1 is the old largest number
        let at = (64 * i as u64).wrapping_sub(by) as i64;
        let low = old(words, at.div_euclid(64)) >> at.rem_euclid(64);
        let high = match at.rem_euclid(64) {
            0 => 0,
            part => old(words, at.div_euclid(64) + 1) << (64 - part),
        };
        *word = low | high;
    }
    if by <= Report::SPAN {
        out[((by - 1) / 64) as usize] |= 1 << ((by - 1) % 64);
    }
    *words = out;
}

fn old(words: &[u64; REPORT_WORDS], i: i64) -> u64 {
    usize::try_from(i).ok().and_then(|i| words.get(i)).copied().unwrap_or(0)
}

/// Clear all but the first `n` bits.
fn keep(words: &mut [u64; REPORT_WORDS], n: u64) {
    for (i, word) in words.iter_mut().enumerate() {
        let here = n.saturating_sub(64 * i as u64);
        if here < 64 {
            *word &= (1u64 << here) - 1;
        }
    }
}

/// Size of a report without UDP and IP headers, bytes: 16 for the transport's own header, then the cumulative number,
/// the largest number and its neighbouring bits.
const REPORT_BYTES: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Span;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn data(number: u64) -> Datagram {
        Datagram::Data(Data { number, chunk: number, len: 10, ..Data::default() })
    }

    proptest! {
        /// Oracle: the set of datagram numbers that have arrived.
        #[test]
        fn reports_tell_what_arrived(steps in prop::collection::vec((0u64..320, any::<bool>()), 1..60)) {
            let mut receiver = Receiver::new(&Config::default());
            let mut set = BTreeSet::new();
            let mut front = 0u64;
            for (step, ahead) in steps {
                let number = if ahead { front + step } else { front.saturating_sub(step) };
                front = front.max(number);
                set.insert(number);
                receiver.on_packet(Time(1), &data(number));
                let Some(Datagram::Report(report)) = receiver.poll_transmit(Time(2)) else { panic!("one report each") };
                prop_assert_eq!(report.largest, front);
                for i in 0..Report::SPAN.min(front) {
                    let bit = report.received[(i / 64) as usize] >> (i % 64) & 1 == 1;
                    prop_assert_eq!(bit, set.contains(&(front - 1 - i)), "{} below {}", i, front);
                }
            }
        }
    }

    #[test]
    fn twenty_at_a_time_or_after_the_flush_time() {
        let feedback = Feedback { every: 20, flush: Span(1_000), repeats: false };
        let mut receiver = Receiver::new(&Config { feedback, ..Config::default() });
        for n in 0..19 {
            receiver.on_packet(Time(n), &data(n));
            assert!(receiver.poll_transmit(Time(n)).is_none());
        }
        assert_eq!(receiver.next_deadline(), Time(1_000));
        receiver.on_packet(Time(19), &data(19));
        let Some(Datagram::Report(first)) = receiver.poll_transmit(Time(19)) else { panic!("due") };
        assert_eq!((first.fresh, first.largest, first.received[0]), (20, 19, (1 << 19) - 1));
        receiver.on_packet(Time(50), &data(21));
        receiver.on_timer(Time(1_050));
        let Some(Datagram::Report(second)) = receiver.poll_transmit(Time(1_050)) else { panic!("flushed") };
        // without repetition only 20 and 21 are reported, and 20 is missing
        assert_eq!((second.fresh, second.largest, second.received[0], second.held), (1, 21, 0, Span(1_000)));
        assert_eq!(second.next_chunk, 20);
    }
}
