//! TCP Prague: scalable congestion control for L4S. Like DCTCP it reduces the window by half the fraction of segments
//! marked, but it keeps fractions of segments and of alpha, grows on unmarked ACKs even during a reduction, and gives
//! short paths no advantage.
//!
//! Sources: draft-briscoe-iccrg-prague-congestion-control; the L4S team's `tcp_prague`, from a description. Prague
//! needs accurate ECN (RFC 9768) and marks its packets ECT(1) (RFC 9331 §4).
//!
//! | rule | |
//! |---|---|
//! | alpha += (F - alpha) / 16 | once per max(RTT, virtual RTT), from the first mark on; F is the fraction of segments marked; alpha starts at 1 |
//! | cwnd -= cwnd alpha / 2 | on a mark, at most once per max(RTT, virtual RTT) |
//! | cwnd += unmarked s / cwnd | on every ACK outside loss recovery; s = (RTT / virtual RTT)^2 |
//! | slow start ends | at the first mark |
//! | a loss halves the window | within a round trip of a reduction for marks, both reductions together halve it |
//!
//! | variable | unit |
//! |---|---|
//! | `alpha` | 2^-24, the module's 20 bits times 16 |
//! | `frac_cwnd` | segments, 2^-20; cwnd follows it by at most one segment per ACK |
//!
//! Without accurate ECN the controller behaves like Reno, and only the stack's own pacing applies.
//!
//! Differs: bursts are sized by the stack (`tso`) instead of a quarter of a millisecond. Detection of a classic ECN
//! queue is left out; the module has it disabled as well.

use ackclock_core::schema::Takes;
use ackclock_core::trace::CaState;
use ackclock_core::{table, Span, Time};

use super::{AckSample, Arrival, CongestionControl, Needs};
use crate::window::Window;

/// Unit of fractions of segments and of F.
const ONE: u64 = 1 << 20;
/// log2 of the scale of alpha, which is in units of 1/16 of `ONE`.
const SHIFT_G: u32 = 4;
/// Minimum window, segments.
const MIN_CWND: u32 = 2;

table! {
    /// Options of `prague`.
    pub(super) struct PragueOptions "prague" {
        /// minimum RTT that a path is treated as having, seconds; 0 turns this off
        virtual_rtt_s: f64 = Takes::Number(0.0, 1.0), 0.025;
        /// number of round trips after slow start after which the minimum applies
        virtual_after: u32 = Takes::Whole(0, 1_000_000), 500;
    }
}

/// TCP Prague.
#[derive(Clone, Debug)]
pub struct Prague {
    virtual_rtt: Span,
    virtual_after: u32,
    /// Accurate ECN was negotiated.
    l4s: bool,
    alpha: u64,
    /// A mark has been seen.
    marked: bool,
    /// Period of alpha. It ends when `next_seq` is acknowledged and the time has passed.
    next_seq: u64,
    period_began: Time,
    delivered: u64,
    delivered_ce: u64,
    /// Number of rounds since slow start.
    rounds: u32,
    frac_cwnd: u64,
    /// cwnd as last set here; a different value was set by recovery or an undo.
    left: u32,
    reduced_at: Option<Time>,
    before_loss: u64,
    now: Time,
    srtt: Span,
    /// Payload of the last acknowledged segments, bytes. It is smaller than a full one if the AccECN option takes
    /// space; a pacing rate above the window's would fill the queue.
    payload: u64,
}

impl Prague {
    /// Create the controller with the parameters of a scenario.
    pub(super) fn new(options: &PragueOptions) -> Prague {
        Prague {
            virtual_rtt: Span((options.virtual_rtt_s * 1e9) as u64),
            virtual_after: options.virtual_after,
            l4s: false,
            alpha: ONE << SHIFT_G,
            marked: false,
            next_seq: 0,
            period_began: Time::ZERO,
            delivered: 0,
            delivered_ce: 0,
            rounds: 0,
            frac_cwnd: 0,
            left: 0,
            reduced_at: None,
            before_loss: 0,
            now: Time::ZERO,
            srtt: Span::ZERO,
            payload: 0,
        }
    }

    /// Round-trip time used by the rules: at least the virtual RTT once it applies.
    fn period(&self) -> Span {
        match self.rounds >= self.virtual_after {
            true => self.srtt.max(self.virtual_rtt),
            false => self.srtt,
        }
    }

    /// Return (RTT / virtual RTT)^2 in units of `ONE`, computed in 128 us units as in the module.
    fn share(&self) -> u64 {
        let (rtt, virt) = (self.srtt.as_us() / 128, self.period().as_us() / 128);
        if virt > rtt {
            rtt * rtt * ONE / (virt * virt)
        } else {
            ONE
        }
    }

    /// Update alpha at the end of its period.
    fn update_alpha(&mut self, window: &Window, ack: &Arrival) {
        self.delivered += u64::from(ack.newly_acked);
        self.delivered_ce += u64::from(ack.newly_acked_ce);
        if ack.snd_una < self.next_seq || ack.now.since(self.period_began) < self.period() {
            return;
        }
        if self.marked {
            let share = (self.delivered_ce * ONE / self.delivered.max(1)).min(ONE);
            self.alpha = (self.alpha - (self.alpha >> SHIFT_G) + share).min(ONE << SHIFT_G);
        }
        self.rounds = self.rounds.saturating_add(u32::from(!window.in_slow_start()));
        (self.next_seq, self.period_began) = (ack.snd_nxt, ack.now);
        (self.delivered, self.delivered_ce) = (0, 0);
    }

    /// Discard the fraction if recovery, a timeout or an undo has set the window.
    fn take_over(&mut self, window: &Window) {
        if window.cwnd != self.left {
            self.frac_cwnd = u64::from(window.cwnd) * ONE;
        }
    }

    /// Move cwnd towards `frac_cwnd` by at most one segment.
    fn follow(&mut self, window: &mut Window) {
        let whole = (self.frac_cwnd / ONE) as u32;
        match window.cwnd.cmp(&whole) {
            std::cmp::Ordering::Less => window.cwnd += 1,
            std::cmp::Ordering::Greater => window.cwnd -= 1,
            std::cmp::Ordering::Equal => {}
        }
        window.cwnd = window.cwnd.max(MIN_CWND).min(window.cwnd_clamp);
        self.left = window.cwnd;
    }
}

/// Return `value` times `share` / `of`, rounded to nearest.
fn part(value: u64, share: u64, of: u64) -> u64 {
    ((u128::from(value) * u128::from(share) + u128::from(of / 2)) / u128::from(of)) as u64
}

impl CongestionControl for Prague {
    fn on_negotiated(&mut self, accurate: bool) {
        self.l4s = accurate;
    }

    fn on_start(&mut self, window: &mut Window, now: Time, srtt: Span, smss: u32) {
        (self.now, self.srtt, self.period_began) = (now, srtt, now);
        self.left = window.cwnd;
        self.frac_cwnd = u64::from(window.cwnd) * ONE;
        self.payload = u64::from(smss);
    }

    fn on_sample(&mut self, window: &mut Window, ack: &Arrival) {
        (self.now, self.srtt) = (ack.now, ack.srtt);
        self.marked |= self.l4s && ack.newly_acked_ce > 0;
        self.update_alpha(window, ack);
        if let Some(payload) = ack.acked_bytes.checked_div(u64::from(ack.covered)) {
            self.payload = payload;
        }
        if self.l4s && ack.srtt > Span::ZERO {
            // twice the rate during slow start, as in the stack
            let percent = if window.cwnd < window.ssthresh / 2 { 200 } else { 100 };
            let bytes = u128::from(window.cwnd.max(ack.left_in_flight)) * u128::from(self.payload);
            let rate = bytes * percent * 10_000_000 / u128::from(ack.srtt.0.max(1));
            window.pacing_rate = u64::try_from(rate).unwrap_or(u64::MAX).max(1);
        }
    }

    /// Reduce the window by a fraction immediately on a mark. No CWR state is entered, so growth continues.
    fn on_ecn(&mut self, window: &mut Window, ack: &Arrival) -> bool {
        if !self.l4s {
            return true;
        }
        if self.reduced_at.is_some_and(|at| ack.now.since(at) < self.period()) {
            return false;
        }
        self.take_over(window);
        let cut = part(self.frac_cwnd, self.alpha, ONE << (SHIFT_G + 1));
        self.frac_cwnd = (self.frac_cwnd - cut).max(u64::from(MIN_CWND) * ONE);
        window.ssthresh = (self.frac_cwnd / ONE) as u32;
        self.reduced_at = Some(ack.now);
        self.follow(window);
        false
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if !self.l4s {
            return window.grow_as_reno(ack);
        }
        self.take_over(window);
        if ack.cwnd_limited {
            let mut unmarked = ack.acked.saturating_sub(ack.delivered_ce);
            if window.in_slow_start() {
                let before = window.cwnd;
                unmarked = window.slow_start(unmarked);
                self.frac_cwnd += u64::from(window.cwnd - before) * ONE;
            }
            self.frac_cwnd += part(u64::from(unmarked) * self.share(), ONE, self.frac_cwnd.max(ONE));
        }
        self.follow(window);
    }

    /// Halve the window on a loss. If marks have reduced it recently, both reductions together halve it.
    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        if !self.l4s {
            return (window.cwnd / 2).max(MIN_CWND);
        }
        self.take_over(window);
        self.before_loss = self.frac_cwnd;
        let just_cut = self.reduced_at.is_some_and(|at| self.now.since(at) < self.srtt);
        let one = ONE << SHIFT_G;
        let of = if just_cut { 2 * one - self.alpha } else { 2 * one };
        self.frac_cwnd = part(self.frac_cwnd, one, of);
        ((self.frac_cwnd / ONE) as u32).max(MIN_CWND)
    }

    fn on_state(&mut self, window: &mut Window, state: CaState, _now: Time) {
        if state == CaState::Loss {
            self.left = window.cwnd.wrapping_add(1); // the window set by the timeout applies
        }
    }

    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        let cwnd = window.cwnd.max(window.prior_cwnd);
        self.frac_cwnd = self.before_loss.max(u64::from(cwnd) * ONE);
        self.left = cwnd;
        cwnd
    }

    fn needs(&self) -> Needs {
        Needs { l4s: true, exact_ecn: true, pacing: true, vars: &["alpha", "frac_cwnd"], ..Needs::default() }
    }

    fn vars(&self, values: &mut [f64]) {
        let all = [self.alpha as f64 / (ONE << SHIFT_G) as f64, self.frac_cwnd as f64 / ONE as f64];
        for (value, known) in values.iter_mut().zip(all) {
            *value = known;
        }
    }
}

#[cfg(test)]
mod tests;
