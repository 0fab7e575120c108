//! YeAH: behaves like Scalable TCP while the path has no queue and like Reno while it has one. The window is reduced by
//! the number of packets queued.
//!
//! Sources: Baiocchi, Castellani, Vacirca, "YeAH-TCP: yet another highspeed TCP" (PFLDnet 2007); Linux `tcp_yeah`.
//! queue = cwnd (rtt - base_rtt)/rtt with the minimum RTT of the round; `reno_count` is the window that Reno would
//! have; `doing_reno_now` counts round trips in slow mode, `fast_count` those in fast mode.

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::rounds::Rounds;
use super::scalable::AI_CNT;
use super::{AckSample, Arrival, CongestionControl};
use crate::window::Window;

/// Maximum number of packets queued in fast mode.
const ALPHA: u32 = 80;
/// Fast mode requires that the delay has risen by less than 1/PHY of base_rtt.
const PHY: u32 = 8;
/// Number of round trips in slow mode after which a loss is attributed to competing Reno flows.
const RHO: u32 = 16;
/// Number of round trips in fast mode after which `reno_count` restarts.
const ZETA: u32 = 50;
/// Minimum reduction by a loss, cwnd >> DELTA, and maximum reduction of the queue, cwnd >> EPSILON.
const DELTA: u32 = 3;
const EPSILON: u32 = 1;

/// YeAH.
#[derive(Clone, Debug)]
pub struct Yeah {
    rounds: Rounds,
    snd_nxt: u64,
    last_queue: u32,
    doing_reno_now: u32,
    reno_count: u32,
    fast_count: u32,
}

impl Default for Yeah {
    fn default() -> Yeah {
        Yeah {
            rounds: Rounds::default(),
            snd_nxt: 0,
            last_queue: 0,
            doing_reno_now: 0,
            reno_count: 2,
            fast_count: 0,
        }
    }
}

impl Yeah {
    fn on_round(&mut self, window: &mut Window) {
        let (rtt, base) = (self.rounds.min_rtt, self.rounds.base_rtt);
        let queue = (u64::from(window.cwnd) * u64::from(rtt - base) / u64::from(rtt)) as u32;
        if queue > ALPHA || rtt - base > base / PHY {
            if queue > ALPHA && window.cwnd > self.reno_count {
                let reduction = queue.min(window.cwnd >> EPSILON);
                window.cwnd = (window.cwnd - reduction).max(self.reno_count);
                window.ssthresh = window.cwnd;
            }
            match self.reno_count <= 2 {
                true => self.reno_count = (window.cwnd >> 1).max(2),
                false => self.reno_count += 1,
            }
            self.doing_reno_now = (self.doing_reno_now + 1).min(0xff_ffff);
        } else {
            self.fast_count += 1;
            if self.fast_count > ZETA {
                self.reno_count = 2;
                self.fast_count = 0;
            }
            self.doing_reno_now = 0;
        }
        self.last_queue = queue;
    }
}

impl CongestionControl for Yeah {
    #[inline]
    fn on_sample(&mut self, _window: &mut Window, ack: &Arrival) {
        self.snd_nxt = ack.snd_nxt;
        self.rounds.on_sample(ack);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
        }
        if acked > 0 {
            let w = if self.doing_reno_now == 0 { window.cwnd.min(AI_CNT) } else { window.cwnd };
            window.additive_increase(w, acked);
        }
        if ack.snd_una > self.rounds.beg_snd_nxt {
            if self.rounds.cnt_rtt > 2 {
                self.on_round(window);
            }
            self.rounds.start(ack.snd_nxt);
        }
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        let cwnd = window.cwnd;
        let half = (cwnd >> 1).max(2);
        let reduction = match self.doing_reno_now < RHO {
            true => self.last_queue.min(half).max(cwnd >> DELTA),
            false => half,
        };
        self.fast_count = 0;
        self.reno_count = (self.reno_count >> 1).max(2);
        cwnd.saturating_sub(reduction).max(2)
    }

    fn on_state(&mut self, _window: &mut Window, state: CaState, _now: Time) {
        self.rounds.on_state(state, self.snd_nxt);
    }

    fn on_tx_start(&mut self, _window: &mut Window, _now: Time, _idle: Span, snd_nxt: u64) {
        self.rounds = Rounds { beg_snd_nxt: snd_nxt, ..Rounds::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(cwnd: u32, rtt_us: u32) -> (Yeah, Window) {
        let rounds = Rounds { base_rtt: 100_000, min_rtt: rtt_us, cnt_rtt: 10, ..Rounds::default() };
        (Yeah { rounds, ..Yeah::default() }, Window { ssthresh: 2, ..Window::new(cwnd) })
    }

    #[test]
    fn a_queue_beyond_eighty_packets_is_shed() {
        let (mut c, mut w) = at(1000, 111_000); // 99 packets queued
        c.on_round(&mut w);
        assert_eq!((w.cwnd, c.doing_reno_now, c.reno_count), (901, 1, 450));
    }

    #[test]
    fn a_loss_in_fast_mode_costs_what_was_queued_and_an_eighth_at_least() {
        let (mut c, mut w) = at(1000, 101_000); // 9 packets queued
        c.on_round(&mut w);
        assert_eq!((w.cwnd, c.doing_reno_now), (1000, 0));
        assert_eq!(c.ssthresh(&w, 1000), 875);
        c.doing_reno_now = RHO;
        assert_eq!(c.ssthresh(&w, 1000), 500);
    }
}
