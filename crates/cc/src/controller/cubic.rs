//! CUBIC: after a loss the window is a cubic function of the time since that loss, flat around the window at which it
//! occurred. Two forms: the Linux kernel's integers ([`kernel`]) and the real arithmetic of RFC 9438 ([`rfc9438`]);
//! this file contains the common parts.
//!
//! Sources: RFC 9438; Ha, Rhee, Xu, "CUBIC" (2008); Linux `tcp_cubic.c` as of 6.13 (behaviour).
//!
//! | variable | meaning |
//! |---|---|
//! | `delay_min` | minimum RTT, us; 0 before the first sample |
//! | `beta` | fraction of the window kept by a reduction, 1/1024 |

mod kernel;
mod rfc9438;

use ackclock_core::schema::FLAG;
use ackclock_core::trace::CaState;
use ackclock_core::{table, Span, Time};

use self::kernel::KernelCurve;
use self::rfc9438::RfcCurve;
use super::{AckSample, Arrival, CongestionControl, Needs};
use crate::window::Window;

/// Arithmetic to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CubicForm {
    /// Integers and milliseconds as in the Linux kernel.
    Linux,
    /// Real numbers as in RFC 9438.
    Rfc9438,
}

/// Parameters of CUBIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CubicParams {
    /// Arithmetic to use.
    pub form: CubicForm,
    /// Fraction of the window kept by a reduction, in units of 1/1024, from 1 to 1023. The RFC 9438 form uses the
    /// nearest thousandth (717 becomes 0.7).
    pub beta: u32,
    /// Fraction kept by a reduction for a mark; `None` uses `beta` (RFC 8511: 0.85).
    pub ecn_beta: Option<u32>,
    /// Release bandwidth to new flows by lowering W_max if a loss occurs below the last maximum (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// Grow at least as fast as Reno (RFC 9438 §4.3).
    pub tcp_friendliness: bool,
    /// Count ACKs rather than acknowledged segments for the Reno estimate (`ack_cnt`), as kernels before 2015 did;
    /// kernel form only.
    pub counts_acks: bool,
}

impl CubicParams {
    /// Linux 6 and 7.
    pub const LINUX: CubicParams = CubicParams {
        form: CubicForm::Linux,
        beta: 717,
        ecn_beta: None,
        fast_convergence: true,
        tcp_friendliness: true,
        counts_acks: false,
    };
    /// RFC 9438.
    pub const RFC9438: CubicParams = CubicParams { form: CubicForm::Rfc9438, ..CubicParams::LINUX };

    /// Return these parameters with `options` applied.
    pub(super) fn with(self, options: &CubicOptions) -> CubicParams {
        CubicParams {
            fast_convergence: options.fast_convergence,
            tcp_friendliness: options.tcp_friendliness,
            ..self
        }
    }

    /// Default options, used if a scenario gives none.
    pub(super) fn options(&self) -> CubicOptions {
        CubicOptions { fast_convergence: self.fast_convergence, tcp_friendliness: self.tcp_friendliness }
    }
}

table! {
    /// Options of a scenario: the module parameters of Linux (`/sys/module/tcp_cubic/parameters`) except those of
    /// HyStart, which is a slow start, and `initial_ssthresh` and `beta`, which the stack sets. The defaults depend on
    /// the form ([`CubicParams::options`]).
    pub(super) struct CubicOptions "cubic" {
        /// lower the target window further if a loss occurs below the last maximum
        fast_convergence: bool = FLAG;
        /// grow at least as fast as Reno
        tcp_friendliness: bool = FLAG;
    }
}

/// CUBIC in either of its forms.
#[derive(Clone, Debug)]
pub struct Cubic {
    /// Parameters as given, with beta clamped to the range 1 to 1023.
    pub params: CubicParams,
    delay_min: u32,
    curve: Curve,
}

/// Return the nearest thousandth of a value in units of 1/1024.
fn permille(beta: u32) -> u32 {
    (beta * 1_000 + 512) / 1_024
}

#[derive(Clone, Debug)]
enum Curve {
    Kernel(KernelCurve),
    Rfc(RfcCurve),
}

impl Cubic {
    /// Create a controller at the start of a connection.
    pub fn new(params: CubicParams) -> Cubic {
        let params = CubicParams { beta: params.beta.clamp(1, 1023), ..params };
        let curve = match params.form {
            CubicForm::Linux => Curve::Kernel(KernelCurve::new(&params)),
            CubicForm::Rfc9438 => Curve::Rfc(RfcCurve::new(&params)),
        };
        Cubic { params, delay_min: 0, curve }
    }

    /// Whether RTT samples at `now` are used (Linux `cubictcp_acked`). HyStart ignores the others as well.
    #[inline]
    pub fn heeds_rtt(&self, now: Time) -> bool {
        !matches!(&self.curve, Curve::Kernel(curve) if curve.ignores_rtt(now))
    }
}

impl CongestionControl for Cubic {
    fn on_sample(&mut self, _window: &mut Window, ack: &Arrival) {
        let Some(rtt) = ack.rtt else { return };
        let delay = u32::try_from(rtt.as_us()).unwrap_or(u32::MAX).max(1);
        if (self.delay_min == 0 || delay < self.delay_min) && self.heeds_rtt(ack.now) {
            self.delay_min = delay;
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        let Some(acked) = window.past_slow_start(ack) else { return };
        match &mut self.curve {
            Curve::Kernel(curve) => {
                let cnt = curve.update(window.cwnd, acked, ack.now, self.delay_min);
                window.additive_increase(cnt, acked);
            }
            Curve::Rfc(curve) => curve.grow(window, acked, ack.now, ack.srtt),
        }
    }

    fn ssthresh(&mut self, window: &Window, in_flight: u32) -> u32 {
        match &mut self.curve {
            Curve::Kernel(curve) => curve.reduce(window.cwnd),
            Curve::Rfc(curve) => curve.reduce(window.cwnd, in_flight),
        }
    }

    fn ssthresh_for_mark(&mut self, window: &Window, in_flight: u32) -> u32 {
        let of_loss = self.ssthresh(window, in_flight);
        let Some(beta) = self.params.ecn_beta else { return of_loss };
        let left = match self.params.form {
            CubicForm::Linux => super::scale(window.cwnd, beta),
            CubicForm::Rfc9438 => (u64::from(in_flight) * u64::from(permille(beta)) / 1_000) as u32,
        };
        left.max(2)
    }

    fn on_rto(&mut self, _window: &mut Window, _now: Time) {
        if let Curve::Rfc(curve) = &mut self.curve {
            self.delay_min = 0;
            curve.reset();
        }
    }

    fn on_state(&mut self, _window: &mut Window, state: CaState, _now: Time) {
        if let (Curve::Kernel(curve), CaState::Loss) = (&mut self.curve, state) {
            self.delay_min = 0; // at every timeout, even in Recovery (Linux `cubictcp_state`)
            curve.reset();
        }
    }

    fn needs(&self) -> Needs {
        Needs { hystart: self.params.form == CubicForm::Linux, ..Needs::default() }
    }

    fn on_tx_start(&mut self, _window: &mut Window, now: Time, idle: Span, _snd_nxt: u64) {
        match &mut self.curve {
            Curve::Kernel(curve) => curve.shift(now, idle),
            Curve::Rfc(curve) => curve.shift(now, idle),
        }
    }
}

#[cfg(test)]
mod tests;
