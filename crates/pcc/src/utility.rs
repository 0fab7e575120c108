//! Utility functions of monitor intervals. Allegro only compares utilities, so their scale does not matter; Vivace's
//! gradient steps rely on rates in Mbit/s.
//!
//! Sources: NSDI 2015 (safe utility, its alpha; Theorems 1 and 2), NSDI 2018 (Vivace), SIGCOMM 2020 (Proteus); the
//! latency-sensitive and incast forms are those of the authors' public code.

use crate::interval::Measured;

/// Utility function. An `Err` states why there is no value, and ends the run.
pub trait Utility: Send {
    /// Return the utility of the interval `now`; `before` is the previous interval.
    fn of(&mut self, now: &Measured, before: Option<&Measured>) -> Result<f64, String>;
}

/// Needed to copy a whole world, which is refused if a user-defined utility is present.
impl Clone for Box<dyn Utility> {
    fn clone(&self) -> Box<dyn Utility> {
        unreachable!("invariant: no world with a user's own utility is copied")
    }
}

/// Decreasing sigmoid: 1 / (1 + e^(alpha y)).
pub fn sigmoid(alpha: f64, y: f64) -> f64 {
    1.0 / (1.0 + libm::exp(alpha * y))
}

/// The safe utility of NSDI 2015: u = T s(L - 0.05) - x L, where x is the sending rate, L the loss rate, T = x (1 - L).
pub fn safe(alpha: f64, tolerance: f64, x: f64, loss: f64) -> f64 {
    x * (1.0 - loss) * sigmoid(alpha, loss - tolerance) - x * loss
}

/// Minimum alpha for which Theorem 1 holds with n senders: max(2.2 (n - 1), 100).
pub fn alpha_for(senders: u32) -> f64 {
    (2.2 * (senders.max(1) - 1) as f64).max(100.0)
}

/// Loss rate at the symmetric equilibrium of the safe utility with n senders, in the fluid model L = max(0, 1 - C / sum
/// x). There the derivative of u with respect to a sender's rate is 0. The loss rate is 0 if the derivative is negative
/// at any rate beyond C.
pub fn equilibrium_loss(senders: u32, alpha: f64) -> f64 {
    let n = senders as f64;
    // At sum x = S each sender sends S / n, and dL/dx = (1 - L)/S. In units of u / x: u = x g(L), so du/dx = g(L) + x
    // g'(L) dL/dx = g(L) + g'(L) (1 - L) / n.
    let slope = |loss: f64| {
        let s = sigmoid(alpha, loss - 0.05);
        let g = (1.0 - loss) * s - loss;
        let ds = -alpha * s * (1.0 - s);
        let dg = -s + (1.0 - loss) * ds - 1.0;
        g + dg * (1.0 - loss) / n
    };
    if slope(0.0) <= 0.0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 0.5);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if slope(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// Utility parameters of Vivace and Proteus; rates in Mbit/s, times in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gradient {
    /// t: exponent of the rate.
    pub exponent: f64,
    /// b: weight of the RTT gradient.
    pub latency: f64,
    /// c: weight of the loss rate.
    pub loss: f64,
    /// Absolute RTT gradient below which it counts as zero.
    pub tolerance: f64,
    /// Whether a falling RTT is ignored rather than rewarded.
    pub clip: bool,
    /// d: weight of the RTT's standard deviation, 1/s (Proteus' scavenger); 0 for none.
    pub deviation: f64,
    /// Rate in Mbit/s from which the deviation counts (Proteus' hybrid).
    pub threshold: f64,
}

impl Default for Gradient {
    /// NSDI 2018 with the constants of the authors' user-space code: t 0.9, b 900, c 11.35.
    fn default() -> Gradient {
        Gradient {
            exponent: 0.9,
            latency: 900.0,
            loss: 11.35,
            tolerance: 0.01,
            clip: true,
            deviation: 0.0,
            threshold: 0.0,
        }
    }
}

impl Gradient {
    /// u = x^t - b x dRTT/dT - c x L - d x sigma(RTT).
    pub fn utility(&self, x: f64, gradient: f64, loss: f64, deviation: f64) -> f64 {
        let gradient = match gradient {
            g if libm::fabs(g) < self.tolerance => 0.0,
            g if self.clip && g < 0.0 => 0.0,
            g => g,
        };
        let deviation = if x >= self.threshold { deviation } else { 0.0 };
        libm::pow(x, self.exponent)
            - self.latency * x * gradient
            - self.loss * x * loss
            - self.deviation * x * deviation
    }
}

/// The utilities of this crate, and user-defined ones.
#[derive(Clone)]
pub enum Kind {
    /// Utility [`safe`].
    Safe {
        /// Steepness of the sigmoid.
        alpha: f64,
        /// Loss rate at the centre of the sigmoid.
        tolerance: f64,
    },
    /// [`Kind::Safe`] times the ratio of the previous RTT to the current one, divided by the RTT, as printed in the
    /// paper.
    LatencyPaper {
        /// Steepness of the sigmoid.
        alpha: f64,
    },
    /// Default of the authors' code: a sigmoid of 1 - RTT_prev / RTT instead of the ratio.
    Latency {
        /// Steepness of the loss sigmoid.
        alpha: f64,
        /// Steepness of the RTT sigmoid.
        rtt_alpha: f64,
    },
    /// u = T (1 - L).
    LossResilient,
    /// u = T - 20 x L.
    Incast,
    /// Utility of Vivace or Proteus.
    Gradient(Gradient),
    /// User-defined utility.
    Custom(Box<dyn Utility>),
}

impl Kind {
    /// The safe utility of NSDI 2015 with alpha 100.
    pub const SAFE: Kind = Kind::Safe { alpha: 100.0, tolerance: 0.05 };
}

impl Utility for Kind {
    fn of(&mut self, now: &Measured, before: Option<&Measured>) -> Result<f64, String> {
        let (x, loss) = (now.rate_mbps(), now.loss());
        let rtt = now.rtt_mean;
        // without an earlier interval, the RTT counts as unchanged
        let rtt_before = before.map_or(rtt, |b| b.rtt_mean);
        Ok(match self {
            Kind::Safe { alpha, tolerance } => safe(*alpha, *tolerance, x, loss),
            Kind::LatencyPaper { alpha } => {
                let gain = x * (1.0 - loss) * sigmoid(*alpha, loss - 0.05);
                ratio(gain * ratio(rtt_before, rtt, 1.0) - x * loss, rtt, 0.0)
            }
            Kind::Latency { alpha, rtt_alpha } => {
                let gain = x * (1.0 - loss) * sigmoid(*alpha, loss - 0.05);
                let trend = sigmoid(*rtt_alpha, 1.0 - ratio(rtt_before, rtt, 1.0));
                ratio(1000.0 * (gain * trend - x * loss), rtt, 0.0)
            }
            Kind::LossResilient => x * (1.0 - loss) * (1.0 - loss),
            Kind::Incast => x * (1.0 - loss) - 20.0 * x * loss,
            Kind::Gradient(gradient) => gradient.utility(x, now.rtt_gradient, loss, now.rtt_deviation),
            Kind::Custom(own) => return own.of(now, before),
        })
    }
}

/// Return a / b, or `otherwise` if b is not positive (an interval without RTT samples).
fn ratio(a: f64, b: f64, otherwise: f64) -> f64 {
    if b > 0.0 {
        a / b
    } else {
        otherwise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed values for x = 100 (derived from NSDI 2015's formula).
    #[test]
    fn the_safe_utility_to_the_printed_digits() {
        let printed = [
            (0.00, "99.3307"),
            (0.01, "96.2194"),
            (0.02, "91.3523"),
            (0.03, "82.4373"),
            (0.04, "66.1816"),
            (0.05, "42.5000"),
            (0.06, "19.2805"),
            (0.08, "-3.6368"),
            (0.10, "-9.3976"),
        ];
        for (loss, expected) in printed {
            assert_eq!(format!("{:.4}", safe(100.0, 0.05, 100.0, loss)), expected, "L = {loss}");
        }
    }

    #[test]
    fn utility_changes_sign_at_seven_and_a_half_percent_of_random_loss() {
        assert!(safe(100.0, 0.05, 1.0, 0.0743) > 0.0);
        assert!(safe(100.0, 0.05, 1.0, 0.0745) < 0.0);
    }

    /// Loss rates in percent for n senders with alpha = max(2.2 (n - 1), 100). The printed value for ten senders is
    /// 2.54; the exact one, 2.53452, rounds to 2.53.
    #[test]
    fn equilibrium_losses_to_the_printed_digits() {
        let printed = [
            (1, "0.00"),
            (2, "0.00"),
            (3, "0.39"),
            (4, "1.09"),
            (5, "1.50"),
            (8, "2.23"),
            (10, "2.53"),
            (20, "3.45"),
            (46, "4.65"),
            (100, "4.86"),
        ];
        for (senders, expected) in printed {
            let loss = equilibrium_loss(senders, alpha_for(senders));
            assert_eq!(format!("{:.2}", 100.0 * loss), expected, "n = {senders}");
        }
        assert!((alpha_for(100) - 217.8).abs() < 1e-9);
    }

    #[test]
    fn vivace_ignores_small_gradients_and_punishes_queues_and_losses() {
        let g = Gradient::default();
        assert_eq!(g.utility(100.0, 0.009, 0.0, 0.0), libm::pow(100.0, 0.9));
        assert_eq!(g.utility(100.0, -0.5, 0.0, 0.0), libm::pow(100.0, 0.9));
        assert!(g.utility(100.0, 0.02, 0.0, 0.0) < 0.0);
        // NSDI 2018: with c = 11.35 a higher rate does not pay off beyond 5 % random loss (at 1 Mbit/s: x^t' = t)
        let du = |x: f64, loss: f64| g.exponent * libm::pow(x, g.exponent - 1.0) - g.loss * loss;
        assert!(du(100.0, 0.049) > 0.0 && du(100.0, 0.051) < 0.0);
    }
}
