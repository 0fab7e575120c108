//! Round-trip time and retransmission timeout.
//!
//! Two estimators: RFC 6298, and Linux's, which differs in three ways that show up in a trace. RTO = srtt + rttvar,
//! with rttvar (4 x mean deviation) at least 200 ms. A deviation caused by a falling RTT has only an eighth of the weight.
//! rttvar rises at once, but decays by a quarter once per window. Sources: RFC 6298 §2-4; Linux `tcp_rtt_estimator`,
//! `__tcp_set_rto`. Units: ns for RFC 6298; Linux works in microseconds, scaled by 8 (srtt) and 4 (mdev).

use ackclock_core::Span;

use crate::config::RtoStyle;

/// Estimator state of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    style: RtoStyle,
    min_rto: Span,
    max_rto: Span,
    tick: Span,
    /// Smoothed RTT. Linux: 8 x srtt, us; RFC 6298: ns.
    srtt: u64,
    mdev: u64,
    mdev_max: u64,
    rttvar: u64,
    rtt_seq: u64,
    rto: Span,
    backoff: u8,
    min_rtt: Span,
}

impl Rtt {
    /// Return an estimator without samples.
    pub fn new(style: RtoStyle, initial: Span, min: Span, max: Span, tick: Span) -> Rtt {
        Rtt {
            style,
            min_rto: min,
            max_rto: max,
            tick,
            srtt: 0,
            mdev: 0,
            mdev_max: 0,
            rttvar: 0,
            rtt_seq: 0,
            rto: initial,
            backoff: 0,
            min_rtt: Span::MAX,
        }
    }

    /// Whether there has been a sample.
    #[inline]
    pub fn has_sample(&self) -> bool {
        self.srtt != 0
    }

    /// Smoothed RTT; zero before the first sample.
    #[inline]
    pub fn srtt(&self) -> Span {
        match self.style {
            RtoStyle::Linux => Span::from_us(self.srtt >> 3),
            RtoStyle::Rfc6298 => Span(self.srtt),
        }
    }

    /// Smoothed RTT at full precision: eighths of a microsecond in Linux.
    pub fn exact_srtt(&self) -> Span {
        match self.style {
            RtoStyle::Linux => Span(125 * self.srtt),
            RtoStyle::Rfc6298 => Span(self.srtt),
        }
    }

    /// Variation term that the RTO adds to srtt.
    pub fn rttvar(&self) -> Span {
        match self.style {
            RtoStyle::Linux => Span::from_us(self.rttvar),
            RtoStyle::Rfc6298 => Span(4 * self.rttvar),
        }
    }

    /// Mean deviation.
    pub fn mdev(&self) -> Span {
        match self.style {
            RtoStyle::Linux => Span::from_us(self.mdev >> 2),
            RtoStyle::Rfc6298 => Span(self.rttvar),
        }
    }

    /// Minimum RTT; `Span::MAX` before the first sample.
    #[inline]
    pub fn min_rtt(&self) -> Span {
        self.min_rtt
    }

    /// Current retransmission timeout, including backoff.
    #[inline]
    pub fn rto(&self) -> Span {
        self.rto
    }

    /// Number of consecutive doublings of the RTO.
    pub fn backoff(&self) -> u8 {
        self.backoff
    }

    /// Update the minimum RTT with a sample.
    #[inline]
    pub fn update_min(&mut self, rtt: Span) {
        self.min_rtt = self.min_rtt.min(Span(rtt.0.max(1)));
    }

    /// Double the RTO after a timeout (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
        self.rto = (self.rto * 2).min(self.max_rto);
    }

    /// Set the RTO after a handshake without a sample: 3 s in RFC 6298 §5.7.
    pub fn fall_back(&mut self, rto: Span) {
        self.rto = rto;
        self.backoff = 0;
    }

    /// Process an RTT sample. `snd_una` and `snd_nxt` delimit the windows over which Linux takes the maximum deviation.
    #[inline]
    pub fn sample(&mut self, rtt: Span, snd_una: u64, snd_nxt: u64) {
        match self.style {
            RtoStyle::Linux => self.sample_linux(rtt.as_us().max(1), snd_una, snd_nxt),
            RtoStyle::Rfc6298 => self.sample_rfc(rtt.0.max(1)),
        }
        self.backoff = 0;
    }

    fn sample_linux(&mut self, rtt_us: u64, snd_una: u64, snd_nxt: u64) {
        let min_us = self.min_rto.as_us();
        if self.srtt == 0 {
            self.srtt = rtt_us << 3;
            self.mdev = rtt_us << 1;
            self.rttvar = self.mdev.max(min_us);
            self.mdev_max = self.rttvar;
            self.rtt_seq = snd_nxt;
        } else {
            let mut m = rtt_us as i64 - (self.srtt >> 3) as i64;
            self.srtt = (self.srtt as i64 + m).max(1) as u64;
            if m < 0 {
                m = -m - (self.mdev >> 2) as i64;
                // A falling RTT must not inflate the deviation (observed in the work on Eifel).
                if m > 0 {
                    m >>= 3;
                }
            } else {
                m -= (self.mdev >> 2) as i64;
            }
            self.mdev = (self.mdev as i64 + m) as u64;
            if self.mdev > self.mdev_max {
                self.mdev_max = self.mdev;
                self.rttvar = self.rttvar.max(self.mdev_max);
            }
            if snd_una > self.rtt_seq {
                if self.mdev_max < self.rttvar {
                    self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
                }
                self.rtt_seq = snd_nxt;
                self.mdev_max = min_us;
            }
        }
        let rto = Span::from_us((self.srtt >> 3) + self.rttvar);
        self.rto = round_up(rto, self.tick).min(self.max_rto);
    }

    fn sample_rfc(&mut self, rtt: u64) {
        if self.srtt == 0 {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            self.rttvar = (3 * self.rttvar + self.srtt.abs_diff(rtt)) / 4;
            self.srtt = (7 * self.srtt + rtt) / 8;
        }
        let rto = Span(self.srtt + self.tick.0.max(4 * self.rttvar));
        self.rto = rto.max(self.min_rto).min(self.max_rto);
    }
}

/// Round up to whole ticks (Linux `usecs_to_jiffies`).
fn round_up(span: Span, tick: Span) -> Span {
    if tick.0 <= 1 {
        return span;
    }
    Span(span.0.div_ceil(tick.0) * tick.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(x: u64) -> Span {
        Span::from_ms(x)
    }
    fn linux() -> Rtt {
        Rtt::new(RtoStyle::Linux, ms(1000), ms(200), Span::from_secs(120), ms(1))
    }

    #[test]
    fn linux_first_sample_gives_three_rtts_above_100_ms_and_srtt_plus_200_below() {
        let mut r = linux();
        r.sample(ms(150), 0, 0);
        assert_eq!(r.rto(), ms(450));
        let mut r = linux();
        r.sample(ms(40), 0, 0);
        assert_eq!(r.rto(), ms(240));
    }

    #[test]
    fn linux_rto_never_falls_below_srtt_plus_200_ms() {
        let mut r = linux();
        for i in 0..1000 {
            r.sample(ms(40), i * 10, i * 10 + 100);
        }
        assert_eq!(r.rto(), ms(240));
        assert_eq!(r.srtt(), ms(40));
    }

    #[test]
    fn rfc_6298_first_samples() {
        let mut r = Rtt::new(RtoStyle::Rfc6298, ms(1000), ms(1), Span::from_secs(60), ms(1));
        r.sample(ms(100), 0, 0);
        assert_eq!(r.rto(), ms(300)); // 100 + 4 x 50
        r.sample(ms(100), 0, 0);
        assert_eq!(r.rto(), ms(250)); // rttvar 37.5
        let mut r = Rtt::new(RtoStyle::Rfc6298, ms(1000), ms(1000), Span::from_secs(60), ms(1));
        r.sample(ms(100), 0, 0);
        assert_eq!(r.rto(), ms(1000));
        r.back_off();
        assert_eq!(r.rto(), ms(2000));
    }
}
