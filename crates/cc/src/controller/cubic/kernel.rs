//! CUBIC's curve in the integers of the Linux kernel. The result is `cnt`, the number of delivered segments after which
//! cwnd may grow by one.
//!
//! Sources: behaviour of Linux 6.13 (`bictcp_update`, `cubictcp_recalc_ssthresh`, `cubictcp_cwnd_event`) at HZ = 1000;
//! RFC 9438 §4 for the meaning.
//!
//! | variable | RFC 9438 | unit |
//! |---|---|---|
//! | `last_max_cwnd` | W_max | segments |
//! | `epoch_start` | t_epoch | ms; 0 = no epoch |
//! | `origin` | W_max of the epoch, or cwnd at its start | segments |
//! | `k` | K | 1/1024 s |
//! | `tcp_cwnd`, `ack_cnt` | W_est, and segments delivered (or ACKs) towards its next one | segments |
//! | `cnt` | cwnd / (target - cwnd) | segments per segment of growth |
//! | `last_cwnd`, `last_time` | cwnd and time of the last computation | segments, ms |
//!
//! Differs: the cube saturates where the kernel's 64 bits overflow, 345 s away from K. The target saturates at 0 where
//! the kernel's wraps, which takes an epoch that starts at a thousandth of the last maximum.

use ackclock_core::{Span, Time};

use super::CubicParams;

/// Ticks per second.
const HZ: u64 = 1_000;
/// log2 of the curve's clock rate: 1024 units per second.
const BICTCP_HZ: u32 = 10;
/// C = 0.4 as 410/1024.
const CUBE_RTT_SCALE: u64 = 410;
/// 1/C in units of (1/1024 s)^3.
const CUBE_FACTOR: u64 = (1 << (10 + 3 * BICTCP_HZ)) / CUBE_RTT_SCALE;
/// Denominator of beta.
const BETA_SCALE: u32 = 1024;
/// Offset that keeps ticks above 0 from the start of the run, because an `epoch_start` of 0 means "no epoch" (Linux:
/// jiffies are large at boot).
const JIFFIES_OFFSET: u64 = 1 << 32;

/// The curve and its epoch.
#[derive(Clone, Debug)]
pub(super) struct KernelCurve {
    beta: u32,
    fast_convergence: bool,
    /// 8 (1 + beta) / 3 (1 - beta) in the kernel's rounding; `None` without TCP friendliness.
    beta_scale: Option<u32>,
    counts_acks: bool,
    epoch: Epoch,
}

#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    cnt: u32,
    last_max_cwnd: u32,
    last_cwnd: u32,
    last_time: u64,
    origin: u32,
    k: u32,
    epoch_start: u64,
    ack_cnt: u32,
    tcp_cwnd: u32,
}

impl KernelCurve {
    pub(super) fn new(params: &CubicParams) -> KernelCurve {
        let beta_scale = 8 * (BETA_SCALE + params.beta) / 3 / (BETA_SCALE - params.beta);
        KernelCurve {
            beta: params.beta,
            fast_convergence: params.fast_convergence,
            beta_scale: params.tcp_friendliness.then_some(beta_scale),
            counts_acks: params.counts_acks,
            epoch: Epoch::default(),
        }
    }

    /// Whether an RTT sample is ignored because it falls within a second of the start of an epoch, when recovery has
    /// just drained the queue.
    pub(super) fn ignores_rtt(&self, now: Time) -> bool {
        self.epoch.epoch_start != 0 && jiffies(now) < self.epoch.epoch_start + HZ
    }

    /// Process `acked` segments delivered in congestion avoidance and return `cnt`. `delay_min` is in us.
    pub(super) fn update(&mut self, cwnd: u32, acked: u32, now: Time, delay_min: u32) -> u32 {
        let e = &mut self.epoch;
        let now = jiffies(now);
        let counted = if self.counts_acks { 1 } else { acked };
        e.ack_cnt += counted;
        if e.last_cwnd == cwnd && now - e.last_time <= HZ / 32 {
            return e.cnt;
        }
        // the curve depends on the time in ticks, so only the Reno estimate changes within a tick
        if e.epoch_start == 0 || now != e.last_time {
            e.last_cwnd = cwnd;
            e.last_time = now;
            if e.epoch_start == 0 {
                e.begin(cwnd, counted, now);
            }
            e.cnt = e.count(cwnd, now, delay_min);
        }
        if let Some(beta_scale) = self.beta_scale {
            e.befriend_reno(cwnd, beta_scale);
        }
        e.cnt = e.cnt.max(2);
        e.cnt
    }

    /// Reduce: return the new ssthresh. The next update starts an epoch.
    pub(super) fn reduce(&mut self, cwnd: u32) -> u32 {
        let e = &mut self.epoch;
        e.epoch_start = 0;
        e.last_max_cwnd = if cwnd < e.last_max_cwnd && self.fast_convergence {
            (u64::from(cwnd) * u64::from(BETA_SCALE + self.beta) / u64::from(2 * BETA_SCALE)) as u32
        } else {
            cwnd
        };
        super::super::scale(cwnd, self.beta).max(2)
    }

    /// Reset all state after an RTO.
    pub(super) fn reset(&mut self) {
        self.epoch = Epoch::default();
    }

    /// Shift the epoch by an idle period, which does not count as elapsed time (RFC 9438 §5.8).
    pub(super) fn shift(&mut self, now: Time, idle: Span) {
        let e = &mut self.epoch;
        let delta = jiffies(now) - jiffies(Time(now.0.saturating_sub(idle.0)));
        if e.epoch_start != 0 && delta > 0 {
            e.epoch_start = (e.epoch_start + delta).min(jiffies(now));
        }
    }
}

impl Epoch {
    fn begin(&mut self, cwnd: u32, counted: u32, now: u64) {
        self.epoch_start = now;
        self.ack_cnt = counted;
        self.tcp_cwnd = cwnd;
        if self.last_max_cwnd <= cwnd {
            self.k = 0;
            self.origin = cwnd;
        } else {
            self.k = cubic_root(CUBE_FACTOR * u64::from(self.last_max_cwnd - cwnd));
            self.origin = self.last_max_cwnd;
        }
    }

    /// Return `cnt` from the curve's value one RTT ahead.
    fn count(&self, cwnd: u32, now: u64, delay_min: u32) -> u32 {
        let ticks = now - self.epoch_start + u64::from(delay_min).div_ceil(1_000_000 / HZ);
        let t = (ticks << BICTCP_HZ) / HZ;
        let k = u64::from(self.k);
        let offs = u128::from(t.abs_diff(k));
        let delta = (u128::from(CUBE_RTT_SCALE) * offs * offs * offs) >> (10 + 3 * BICTCP_HZ);
        let delta = u32::try_from(delta).unwrap_or(u32::MAX);
        let target =
            if t < k { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) };
        let cnt = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
        // before the first loss: at least 5 % per RTT
        if self.last_max_cwnd == 0 {
            cnt.min(20)
        } else {
            cnt
        }
    }

    /// Update W_est, the window that Reno with the same beta would have.
    fn befriend_reno(&mut self, cwnd: u32, beta_scale: u32) {
        let per_segment = ((u64::from(cwnd) * u64::from(beta_scale)) >> 3).max(1) as u32;
        while self.ack_cnt > per_segment {
            self.ack_cnt -= per_segment;
            self.tcp_cwnd += 1;
        }
        if self.tcp_cwnd > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.tcp_cwnd - cwnd));
        }
    }
}

fn jiffies(now: Time) -> u64 {
    now.0 / 1_000_000 + JIFFIES_OFFSET
}

/// Cube root by table lookup and one Newton-Raphson step, with the kernel's rounding.
fn cubic_root(a: u64) -> u32 {
    let bits = 64 - a.leading_zeros();
    if bits < 7 {
        return (u32::from(ROOTS[a as usize]) + 35) >> 6;
    }
    let b = ((bits * 84) >> 8) - 1;
    let first = u32::from(ROOTS[(a >> (b * 3)) as usize]);
    let x = u64::from(((first + 10) << b) >> 6);
    let x = 2 * x + a / (x * (x - 1));
    ((x * 341) >> 10) as u32
}

/// 64 times the cube root of the index, rounded as in the kernel.
#[rustfmt::skip]
const ROOTS: [u8; 64] = [
      0,  54,  54,  54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156,
    157, 161, 164, 168, 170, 173, 176, 179, 181, 185, 187, 190, 192, 194, 197, 199,
    200, 202, 204, 206, 209, 211, 213, 215, 217, 219, 221, 222, 224, 225, 227, 229,
    231, 232, 234, 236, 237, 239, 240, 242, 244, 245, 246, 248, 250, 251, 252, 254,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_those_of_rfc_9438() {
        assert_eq!(CUBE_FACTOR, 2_681_735_677);
        let c = KernelCurve::new(&CubicParams::LINUX);
        assert_eq!(c.beta_scale, Some(15)); // 8/alpha_cubic, alpha = 3 (1 - 0.7) / (1 + 0.7) = 0.53
    }

    #[test]
    fn cubic_root_is_within_one_percent() {
        let mut a = 64_u64;
        while a < 1 << 60 {
            for a in [a, a + 1, a + a / 3, a + a / 2] {
                let exact = libm::cbrt(a as f64);
                let got = f64::from(cubic_root(a));
                assert!((got - exact).abs() <= (0.01 * exact).max(1.0), "{a}: {got}, not {exact}");
            }
            a += a / 16;
        }
        for a in 0..64_u64 {
            assert!((f64::from(cubic_root(a)) - libm::cbrt(a as f64)).abs() <= 0.76, "{a}");
        }
    }

    #[test]
    fn k_of_a_reduction_by_thirty_segments() {
        let mut c = KernelCurve::new(&CubicParams::LINUX);
        assert_eq!(c.reduce(100), 70);
        c.update(70, 1, Time::ZERO, 100_000);
        // K = cbrt(30 / 0.4) = 4.217 s
        assert!((f64::from(c.epoch.k) / 1024.0 - 4.217).abs() < 0.01, "{}", c.epoch.k);
        assert_eq!(c.epoch.origin, 100);
    }

    #[test]
    fn without_a_loss_yet_growth_is_at_least_a_twentieth() {
        let mut c = KernelCurve::new(&CubicParams::LINUX);
        assert_eq!(c.update(100, 1, Time::ZERO, 1_000), 20);
    }

    #[test]
    fn before_2015_the_estimate_of_reno_grew_by_acks() {
        let estimate = |counts_acks, acked| {
            let mut c = KernelCurve::new(&CubicParams { counts_acks, ..CubicParams::LINUX });
            c.reduce(14);
            for n in 0..100 {
                c.update(10, acked, Time(n * 40_000_000), 1_000);
            }
            c.epoch.tcp_cwnd
        };
        assert_eq!((estimate(true, 1), estimate(true, 2)), (15, 15)); // one for each 18 segments
        assert_eq!((estimate(false, 1), estimate(false, 2)), (15, 21));
    }

    #[test]
    fn fast_convergence_aims_lower() {
        let mut c = KernelCurve::new(&CubicParams::LINUX);
        assert_eq!(c.reduce(100), 70);
        assert_eq!(c.reduce(90), 63);
        assert_eq!(c.epoch.last_max_cwnd, 90 * 1741 / 2048);
        let mut c = KernelCurve::new(&CubicParams { fast_convergence: false, ..CubicParams::LINUX });
        c.reduce(100);
        c.reduce(90);
        assert_eq!(c.epoch.last_max_cwnd, 90);
    }

    #[test]
    fn idle_time_shifts_the_epoch_but_not_past_now() {
        let ms = |t: u64| Time(t * 1_000_000);
        let mut c = KernelCurve::new(&CubicParams::LINUX);
        c.reduce(100);
        c.update(70, 1, ms(10), 1_000);
        c.shift(ms(5_010), Span::from_secs(4));
        assert_eq!(c.epoch.epoch_start, jiffies(ms(4_010)));
        c.shift(ms(5_010), Span::from_secs(4));
        assert_eq!(c.epoch.epoch_start, jiffies(ms(5_010)));
    }

    /// The kernel subtracts without a check. The saturating form here is equivalent unless the curve falls below 0,
    /// which takes an epoch that starts at less than 0.2 % of the last maximum (because of the error of the cube root).
    #[test]
    fn the_curve_does_not_fall_below_zero() {
        for last_max in (3..200_000_u32).step_by(7) {
            for cwnd in [last_max / 100 + 1, last_max / 8 + 1, last_max / 2 + 1] {
                let k = u128::from(cubic_root(CUBE_FACTOR * u64::from(last_max - cwnd)));
                let delta = (u128::from(CUBE_RTT_SCALE) * k.pow(3)) >> 40;
                assert!(delta <= u128::from(last_max), "{last_max} {cwnd} {delta}");
            }
        }
    }
}
