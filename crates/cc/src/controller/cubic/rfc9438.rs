//! CUBIC's curve in the real arithmetic of RFC 9438.
//!
//! Source: RFC 9438 §4.1-4.8, with the same names. Floating-point functions come from `libm` only, so that results are
//! bit-identical on all machines.
//!
//! | variable | meaning, unit |
//! |---|---|
//! | `w_max` | window at the last reduction, segments; 0 = none since the start or the last RTO |
//! | `cwnd_prior` | cwnd at the last reduction, segments |
//! | `t_epoch` | start of the current stage of congestion avoidance |
//! | `origin`, `k` | plateau of the curve, segments; time to it, s |
//! | `w_est` | window that Reno would have reached by now, segments |
//! | `credit` | growth short of a whole segment |
//!
//! Differs: cwnd is whole segments, so fractions accumulate in `credit`.

use ackclock_core::{Span, Time};

use super::CubicParams;
use crate::window::Window;

/// §5: constant C, segments / s^3.
const C: f64 = 0.4;

/// The curve and its epoch.
#[derive(Clone, Debug)]
pub(super) struct RfcCurve {
    beta: f64,
    fast_convergence: bool,
    tcp_friendliness: bool,
    w_max: f64,
    cwnd_prior: f64,
    t_epoch: Option<Time>,
    origin: f64,
    k: f64,
    w_est: f64,
    credit: f64,
}

impl RfcCurve {
    pub(super) fn new(params: &CubicParams) -> RfcCurve {
        let permille = super::permille(params.beta);
        RfcCurve {
            beta: f64::from(permille) / 1_000.0,
            fast_convergence: params.fast_convergence,
            tcp_friendliness: params.tcp_friendliness,
            w_max: 0.0,
            cwnd_prior: 0.0,
            t_epoch: None,
            origin: 0.0,
            k: 0.0,
            w_est: 0.0,
            credit: 0.0,
        }
    }

    /// §4.2-4.5: process `acked` segments delivered in congestion avoidance.
    pub(super) fn grow(&mut self, window: &mut Window, acked: u32, now: Time, srtt: Span) {
        let cwnd = f64::from(window.cwnd);
        let acked = f64::from(acked);
        if self.t_epoch.is_none() {
            self.begin(cwnd);
        }
        let t_epoch = *self.t_epoch.get_or_insert(now);
        let t = (now - t_epoch).as_secs();
        if self.tcp_friendliness {
            self.w_est += self.alpha() * acked / cwnd;
            if self.w_cubic(t) < self.w_est {
                window.cwnd = window.cwnd.max(self.w_est as u32).min(window.cwnd_clamp);
                return;
            }
        }
        let target = self.w_cubic(t + srtt.as_secs()).clamp(cwnd, 1.5 * cwnd);
        self.credit += acked * (target - cwnd) / cwnd;
        let whole = libm::floor(self.credit);
        self.credit -= whole;
        window.cwnd = window.cwnd.saturating_add(whole as u32).min(window.cwnd_clamp);
    }

    /// §4.6, §4.7: reduce and return the new ssthresh.
    pub(super) fn reduce(&mut self, cwnd: u32, flight_size: u32) -> u32 {
        let w = f64::from(cwnd);
        self.cwnd_prior = w;
        self.w_max = if w < self.w_max && self.fast_convergence { w * (1.0 + self.beta) / 2.0 } else { w };
        self.t_epoch = None;
        ((f64::from(flight_size) * self.beta) as u32).max(2)
    }

    /// §4.8: after an RTO, K is 0 and W_max is the window at which congestion avoidance begins.
    pub(super) fn reset(&mut self) {
        self.w_max = 0.0;
        self.t_epoch = None;
    }

    /// §5.8: shift the epoch by an idle period, which does not count as elapsed time.
    pub(super) fn shift(&mut self, now: Time, idle: Span) {
        if let Some(t) = &mut self.t_epoch {
            *t = (*t + idle).min(now);
        }
    }

    fn begin(&mut self, cwnd: f64) {
        self.w_est = cwnd;
        self.origin = self.w_max.max(cwnd);
        self.k = libm::cbrt((self.origin - cwnd) / C);
        self.credit = 0.0;
    }

    fn w_cubic(&self, t: f64) -> f64 {
        let d = t - self.k;
        C * d * d * d + self.origin
    }

    /// §4.3: Reno's additive increase for this beta, or 1 once W_est has regained the window before the loss.
    fn alpha(&self) -> f64 {
        if self.w_est >= self.cwnd_prior {
            1.0
        } else {
            3.0 * (1.0 - self.beta) / (1.0 + self.beta)
        }
    }
}
