//! TCP-LP: low priority. It grows as Reno and gives way as soon as the delay says that others are there.
//!
//! Sources: Kuzmanovic, Knightly, "TCP-LP: low-priority service via end-point congestion control" (IEEE/ACM ToN 2006);
//! Linux `tcp_lp`. `smoothed` is the delay, with a gain of 1/8; congestion is indicated when it exceeds the least delay by
//! more than 15 % of the range. The first indication halves the window and begins an inference phase of three round
//! trips, in which the window does not grow; another one in that phase leaves one segment. Losses are as for Reno.
//!
//! Differs: the delay is the RTT, not the one-way delay of timestamps, so a queue on the way back counts. The rule knows
//! only ratios of delays above the least one, so it is the same where only the way there has a queue.

use ackclock_core::{Span, Time};

use super::{AckSample, Arrival, CongestionControl, Needs};
use crate::window::Window;

/// Share of the range of delays above which congestion is indicated, in hundredths.
const THRESHOLD: u64 = 15;
/// Length of the inference phase, round trips.
const INFERENCE: u64 = 3;

/// TCP-LP.
#[derive(Clone, Debug)]
pub struct Lp {
    least: Span,
    /// The greatest delay that was seen twice, and the greatest: a single late packet stretches no range (Linux `owd_max_rsv`).
    greatest: Span,
    once: Span,
    smoothed: Span,
    /// The last indication.
    indicated: Option<Time>,
    /// Whether this is in the inference phase.
    infers: bool,
}

impl Default for Lp {
    fn default() -> Lp {
        Lp {
            least: Span::MAX,
            greatest: Span::ZERO,
            once: Span::ZERO,
            smoothed: Span::ZERO,
            indicated: None,
            infers: false,
        }
    }
}

impl Lp {
    fn learn(&mut self, rtt: Span) {
        self.least = self.least.min(rtt);
        if rtt > self.greatest {
            if rtt > self.once {
                self.greatest = if self.greatest == Span::ZERO { rtt } else { self.once };
                self.once = rtt;
            } else {
                self.greatest = rtt;
            }
        }
        self.smoothed = match self.smoothed {
            Span::ZERO => rtt,
            before => Span((7 * before.0 + rtt.0) / 8),
        };
    }

    fn is_indicated(&self) -> bool {
        let range = self.greatest.0.saturating_sub(self.least.0);
        self.smoothed.0 > self.least.0 + range * THRESHOLD / 100
    }
}

impl CongestionControl for Lp {
    fn on_sample(&mut self, window: &mut Window, ack: &Arrival) {
        let Some(rtt) = ack.rtt else { return };
        self.learn(rtt);
        let phase = Span(ack.srtt.0 * INFERENCE);
        self.infers = self.indicated.is_some_and(|at| ack.now.since(at) < phase);
        if !self.is_indicated() {
            return;
        }
        window.cwnd = if self.infers { 1 } else { (window.cwnd / 2).max(1) };
        self.indicated = Some(ack.now);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if !self.infers {
            window.grow_as_reno(ack);
        }
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        (window.cwnd / 2).max(2)
    }

    fn needs(&self) -> Needs {
        Needs { vars: &["least_s", "greatest_s", "smoothed_s"], ..Needs::default() }
    }

    fn vars(&self, values: &mut [f64]) {
        if self.least == Span::MAX {
            return;
        }
        for (value, known) in values.iter_mut().zip([self.least, self.greatest, self.smoothed]) {
            *value = known.0 as f64 * 1e-9;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;

    fn told(lp: &mut Lp, w: &mut Window, now_ms: u64, rtt_ms: u64) {
        let ack =
            AckSample::from(Arrival { rtt: Some(Span::from_ms(rtt_ms)), ..arrival(now_ms * 1_000_000, 1) });
        lp.on_sample(w, &ack);
        lp.on_ack(w, &ack);
    }

    #[test]
    fn it_gives_way_at_once_and_then_altogether() {
        let mut lp = Lp::default();
        let mut w = Window { ssthresh: 10, ..Window::new(40) };
        for at in 0..20 {
            told(&mut lp, &mut w, 1000 + at, 100);
        }
        assert_eq!(w.cwnd, 40);
        // a delay that stays shows itself in the smoothed one
        told(&mut lp, &mut w, 1100, 200);
        told(&mut lp, &mut w, 1101, 200);
        assert_eq!(w.cwnd, 1, "halved, and one segment with the next ACK in the inference phase");
        // nobody there: it grows again when the phase is over
        for at in 0..40 {
            told(&mut lp, &mut w, 1110 + at, 100);
        }
        assert_eq!(w.cwnd, 1);
        for at in 0..40 {
            told(&mut lp, &mut w, 1500 + at, 100);
        }
        assert!(w.cwnd > 1, "{}", w.cwnd);
    }

    #[test]
    fn one_late_packet_stretches_no_range() {
        let mut lp = Lp::default();
        for rtt in [100, 110, 900] {
            lp.learn(Span::from_ms(rtt));
        }
        assert_eq!(lp.greatest, Span::from_ms(110));
    }
}
