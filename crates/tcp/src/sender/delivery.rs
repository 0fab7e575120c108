//! Delivery rate estimation: a stamp for each segment in flight, and a sample for each ACK
//! (draft-cheng-iccrg-delivery-rate-estimation §3; Linux `tcp_rate_skb_sent`, `tcp_rate_skb_delivered`,
//! `tcp_rate_gen`, `tcp_rate_check_app_limited`). The estimator exists only for controllers that request it. Stamps
//! are stored in a ring apart from the scoreboard, so that other connections do not pay for them. Counts are
//! segments, as in Linux.

use ackclock_cc::{AckSample, CongestionControl, RateSample};
use ackclock_core::{Span, Time};

use super::Sender;

/// Stamp of a segment's last transmission.
#[derive(Clone, Copy, Debug, Default)]
struct Stamp {
    /// P.delivered: `delivered` at the transmission.
    delivered: u64,
    /// P.delivered_time: time of the last delivery at the transmission.
    delivered_time: Time,
    /// P.first_sent_time: transmission time of the segment that was the newest delivered one when this segment was sent.
    first_sent: Time,
    /// P.lost: `lost` at the transmission.
    lost: u64,
    delivered_ce: u64,
    /// P.tx_in_flight: segments in flight after the transmission.
    in_flight: u32,
    app_limited: bool,
    retrans: bool,
    /// The segment was delivered. If it counts as outstanding again, the receiver reneged on its SACK, and it is
    /// unknown whether the data is still there.
    spent: bool,
}

/// State of the newest segment that the current ACK covers.
#[derive(Clone, Copy, Debug)]
struct Newest {
    stamp: Stamp,
    xmit: Time,
    end: u64,
}

/// Delivery-rate estimator of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct DeliveryRate {
    ring: Vec<Stamp>,
    delivered_time: Time,
    first_sent: Time,
    /// C.app_limited: value of `delivered` up to which samples are application-limited; 0 if they are not.
    app_limited: u64,
    newest: Option<Newest>,
    /// Segments delivered by ACKs that report ECN marks.
    delivered_ce: u64,
    /// Time of the current ACK or timer.
    now: Time,
    /// The application-limited state is also checked on each ACK and timer, not only on writes.
    watches: bool,
    /// Application-limited state at the earlier transmission of the segment that the last tail loss probe retransmitted.
    probed_app_limited: bool,
}

/// Sender counters at the time of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub delivered: u64,
    pub lost: u64,
    pub in_flight: u32,
    pub packets_out: u32,
}

impl DeliveryRate {
    /// Return the estimator of a connection that has sent nothing.
    pub fn new(watches: bool) -> DeliveryRate {
        DeliveryRate { watches, ..DeliveryRate::default() }
    }

    /// Whether the sender is application-limited.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    #[inline]
    fn slot(&self, n: u64) -> usize {
        n as usize & (self.ring.len() - 1)
    }

    /// Stamp segment `n`, which is being sent. `counts` include it; `alone`: nothing else was outstanding.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, n: u64, retrans: bool, alone: bool, counts: Counts) {
        if counts.packets_out as usize > self.ring.len() {
            self.grow(n, counts.packets_out);
        }
        if alone {
            self.first_sent = now;
            self.delivered_time = now;
        }
        let slot = self.slot(n);
        self.ring[slot] = Stamp {
            delivered: counts.delivered,
            delivered_time: self.delivered_time,
            first_sent: self.first_sent,
            lost: counts.lost,
            delivered_ce: self.delivered_ce,
            in_flight: counts.in_flight,
            app_limited: self.app_limited > 0,
            retrans,
            spent: false,
        };
    }

    /// Enlarge the ring. `n` is the segment about to be stamped: the newest one or an outstanding one.
    fn grow(&mut self, n: u64, packets_out: u32) {
        let size = (packets_out as usize).next_power_of_two().max(64);
        let mut ring = vec![Stamp::default(); size];
        let old = self.ring.len() as u64;
        for k in n.saturating_sub(old)..n + 1 {
            if old > 0 {
                ring[k as usize & (size - 1)] = self.ring[k as usize & (old as usize - 1)];
            }
        }
        self.ring = ring;
    }

    /// Record the first delivery of segment `n`, last sent at `xmit`.
    #[inline]
    pub(super) fn on_delivered(&mut self, n: u64, xmit: Time, end: u64) {
        let slot = self.slot(n);
        self.ring[slot].spent = true;
        if self.newest.is_some_and(|newest| (xmit, end) < (newest.xmit, newest.end)) {
            return;
        }
        let stamp = self.ring[slot];
        self.newest = Some(Newest { stamp, xmit, end });
    }

    /// Return the sample of an ACK that delivered `delivered` segments. Called after loss detection.
    pub(super) fn sample(
        &mut self,
        now: Time,
        delivered: u32,
        delivered_ce: u32,
        small: bool,
        min_rtt: Span,
        counts: Counts,
    ) -> Option<RateSample> {
        if self.app_limited > 0 && counts.delivered > self.app_limited {
            self.app_limited = 0;
        }
        self.delivered_ce += u64::from(delivered_ce);
        if delivered > 0 {
            self.delivered_time = now;
        }
        let Newest { stamp, xmit, .. } = self.newest.take()?;
        self.first_sent = xmit;
        let send_elapsed = xmit.since(stamp.first_sent);
        let ack_elapsed = now.since(stamp.delivered_time);
        let interval = send_elapsed.max(ack_elapsed);
        let low = |x: u64| x.min(u64::from(u32::MAX)) as u32;
        Some(RateSample {
            delivered: low(counts.delivered - stamp.delivered),
            interval: if interval < min_rtt { Span::ZERO } else { interval },
            send_elapsed,
            ack_elapsed,
            prior_delivered: stamp.delivered,
            prior_time: stamp.delivered_time,
            total_delivered: counts.delivered,
            total_lost: counts.lost,
            delivered_ce: low(self.delivered_ce - stamp.delivered_ce),
            lost: low(counts.lost - stamp.lost),
            tx_in_flight: stamp.in_flight,
            is_app_limited: stamp.app_limited,
            is_retrans: stamp.retrans,
            is_ack_delayed: small
                && delivered == 1
                && stamp.delivered + 1 == counts.delivered
                && !stamp.retrans,
            is_probe_ack: false,
        })
    }
}

impl Sender {
    pub(super) fn counts(&self) -> Counts {
        Counts {
            delivered: self.delivered,
            lost: self.lost,
            in_flight: self.board.pipe(),
            packets_out: self.board.packets_out(),
        }
    }

    /// Return the rate sample of this ACK.
    pub(super) fn sample_rate(&mut self, ack: &AckSample, is_probe_ack: bool) -> Option<RateSample> {
        let (counts, min_rtt) = (self.counts(), self.rtt.min_rtt());
        let small = (1..u64::from(self.smss)).contains(&ack.acked_bytes);
        let rates = self.rates.as_mut()?;
        let sample = rates.sample(ack.now, ack.delivered, ack.delivered_ce, small, min_rtt, counts)?;
        Some(RateSample { is_probe_ack, ..sample })
    }

    /// Record the time of an ACK or timer.
    #[inline]
    pub(super) fn begin_event(&mut self, now: Time) {
        if self.rates.is_some() {
            self.begin_event_with_rates(now);
        }
    }

    /// Record the time as seen by controllers. Out of line, because most senders do not estimate rates.
    #[inline(never)]
    fn begin_event_with_rates(&mut self, now: Time) {
        let clock = self.clock(now);
        let Some(rates) = &mut self.rates else { return };
        rates.now = clock;
        if rates.watches {
            self.check_app_limited();
        }
    }

    /// Notify the controller that segment `n` was marked lost.
    #[inline(never)]
    pub(super) fn tell_lost(&mut self, n: u64) {
        let Some(rates) = &self.rates else { return };
        let (now, stamp) = (rates.now, rates.ring[rates.slot(n)]);
        if stamp.spent {
            return;
        }
        let lost = (self.lost - stamp.lost) as u32;
        let (window, delivered) = (&mut self.window, self.delivered);
        self.cc.on_lost(window, now, delivered, lost, stamp.in_flight, stamp.app_limited);
    }

    /// Record that a tail loss probe is about to retransmit segment `n`.
    pub(super) fn note_probed(&mut self, n: u64) {
        if let Some(rates) = &mut self.rates {
            rates.probed_app_limited = rates.ring[rates.slot(n)].app_limited;
        }
    }

    /// Notify the controller that the probe repaired a loss.
    pub(super) fn tell_repaired(&mut self) {
        let Some(rates) = &self.rates else { return };
        let (now, app_limited) = (rates.now, rates.probed_app_limited);
        self.cc.on_repaired(&mut self.window, now, self.delivered, app_limited);
    }

    /// Segments delivered since the newest segment covered by the current ACK was sent.
    #[inline]
    pub(super) fn since_sent(&self) -> u32 {
        let newest = self.rates.as_ref().and_then(|rates| rates.newest);
        newest.map_or(0, |newest| (self.delivered - newest.stamp.delivered) as u32)
    }

    /// Set the controller's counters to those of the connection, regardless of earlier notifications.
    pub(super) fn tell_totals(&mut self) {
        if let Some(rates) = &self.rates {
            self.cc.on_totals(self.delivered, self.lost, rates.delivered_time);
        }
    }

    /// Stamp segment `n`, which has just been sent.
    #[inline]
    pub(super) fn stamp(&mut self, now: Time, n: u64, retrans: bool) {
        if self.rates.is_some() {
            self.stamp_rate(now, n, retrans);
        }
    }

    #[inline(never)]
    fn stamp_rate(&mut self, now: Time, n: u64, retrans: bool) {
        let counts = self.counts();
        let alone = !retrans && counts.packets_out == 1;
        if let Some(rates) = &mut self.rates {
            rates.on_sent(now, n, retrans, alone, counts);
        }
        if alone {
            self.tell_totals(); // the segment reset the time of the last delivery, and the next ACK may deliver nothing
        }
    }

    /// Check before a write whether the earlier data left the window unused (draft §3.4, Linux
    /// `tcp_rate_check_app_limited`).
    pub(super) fn check_app_limited(&mut self) {
        let unsent = self.stream.from(self.snd_nxt);
        let idle = unsent < u64::from(self.smss)
            && self.board.pipe() < self.window.cwnd
            && self.board.lost_out <= self.board.retrans_out;
        if idle {
            self.mark_app_limited();
        }
    }

    /// Mark samples as application-limited until the data now in flight is delivered (draft §3.4).
    pub(super) fn mark_app_limited(&mut self) {
        let until = (self.delivered + u64::from(self.board.pipe())).max(1);
        if let Some(rates) = &mut self.rates {
            rates.app_limited = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(t: u64) -> Time {
        Time(t * 1_000_000)
    }
    fn counts(delivered: u64, packets_out: u32) -> Counts {
        Counts { delivered, lost: 0, in_flight: packets_out, packets_out }
    }

    /// Ten segments are sent 1 ms apart on a 100 ms path and ACKed 1 ms apart. The sample of the tenth ACK
    /// covers all segments delivered since its stamp, over the longer of the two times.
    #[test]
    fn the_rate_of_a_flight_is_what_was_delivered_over_the_longer_of_the_two_times() {
        let mut rates = DeliveryRate::default();
        for n in 0..10 {
            rates.on_sent(ms(n), n, false, n == 0, counts(0, n as u32 + 1));
        }
        for n in 0..10 {
            rates.on_delivered(n, ms(n), n + 1);
            let sample =
                rates.sample(ms(100 + n), 1, 0, false, Span::from_ms(100), counts(n + 1, 9)).expect("one");
            assert_eq!(sample.delivered, n as u32 + 1);
            // all segments were stamped before any delivery, and the first was sent at 0
            assert_eq!(sample.ack_elapsed, Span::from_ms(100 + n));
            assert_eq!(sample.send_elapsed, Span::from_ms(n));
        }
        // the next flight is ACK-clocked, and its samples give one segment per ms
        for n in 10..20 {
            rates.on_sent(ms(90 + n), n, false, false, counts(n - 9, 10));
        }
        for n in 10..20_u64 {
            rates.on_delivered(n, ms(90 + n), n + 1);
            let sample =
                rates.sample(ms(190 + n), 1, 0, false, Span::from_ms(100), counts(n + 1, 9)).expect("one");
            if n == 19 {
                assert_eq!((sample.delivered, sample.interval), (10, Span::from_ms(100)));
            }
        }
        assert_eq!(rates.sample(ms(300), 0, 0, false, Span::ZERO, counts(20, 0)), None, "nothing delivered");
    }

    #[test]
    fn an_interval_shorter_than_the_least_rtt_is_no_sample() {
        let mut rates = DeliveryRate::default();
        rates.on_sent(ms(0), 0, false, true, counts(0, 1));
        rates.on_delivered(0, ms(0), 1);
        let sample = rates.sample(ms(50), 1, 0, false, Span::from_ms(60), counts(1, 0)).expect("one");
        assert_eq!(sample.segments_per_second(), None);
    }

    /// The SYN counts as delivered, so the limit set by the first write ends with the first ACK (Linux),
    /// not the second.
    #[test]
    fn the_first_ack_ends_the_limit_of_the_first_write() {
        let mut rates = DeliveryRate { app_limited: 1, ..DeliveryRate::default() };
        rates.on_sent(ms(0), 0, false, true, counts(1, 1));
        rates.on_sent(ms(0), 1, false, false, counts(1, 2));
        rates.on_delivered(0, ms(0), 1);
        let sample = rates.sample(ms(50), 1, 0, false, Span::ZERO, counts(2, 1)).expect("one");
        assert!(sample.is_app_limited && sample.prior_delivered == 1);
        rates.on_sent(ms(50), 2, false, false, counts(2, 2));
        rates.on_delivered(2, ms(50), 3);
        let sample = rates.sample(ms(100), 1, 0, false, Span::ZERO, counts(4, 0)).expect("one");
        assert!(!sample.is_app_limited);
    }

    /// The receiver may have delayed the ACK of a small segment that was alone in flight (Linux
    /// `FLAG_ACK_MAYBE_DELAYED`). Condition: nothing else was delivered since it was sent.
    #[test]
    fn the_ack_of_a_small_segment_may_be_late_if_it_was_alone() {
        let ack = |before: u64, retrans: bool| {
            let mut rates = DeliveryRate::default();
            rates.on_sent(ms(0), 0, retrans, true, counts(1, 1));
            rates.on_delivered(0, ms(0), 1);
            let sample = rates.sample(ms(50), 1, 0, true, Span::ZERO, counts(2 + before, 0)).expect("one");
            sample.is_ack_delayed
        };
        assert!(ack(0, false));
        assert!(!ack(3, false), "the segments ahead of it made their ACKs leave");
        assert!(!ack(0, true), "the ACK may be for either transmission");
    }

    #[test]
    fn stamps_survive_growth() {
        let mut rates = DeliveryRate::default();
        for n in 0..1000 {
            rates.on_sent(ms(n), n, false, n == 0, counts(n, n as u32 + 1));
        }
        for n in 0..1000 {
            assert_eq!(rates.ring[rates.slot(n)].delivered, n);
        }
    }
}
