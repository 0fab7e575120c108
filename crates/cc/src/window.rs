//! The congestion window and related values, in segments.

use crate::controller::AckSample;

/// cwnd and ssthresh of one sender, in segments as in Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u32,
    /// Slow-start threshold; [`Window::INFINITE`] until the first reduction.
    pub ssthresh: u32,
    /// Linear-growth counter: segments acknowledged since cwnd last grew (Linux `snd_cwnd_cnt`).
    pub cwnd_cnt: u32,
    /// Maximum of cwnd.
    pub cwnd_clamp: u32,
    /// cwnd at the last reduction (W; Linux `prior_cwnd`).
    pub prior_cwnd: u32,
    /// Pacing rate requested by the controller, bytes/s; [`Window::UNPACED`] if there is none.
    pub pacing_rate: u64,
}

impl Window {
    /// ssthresh before the first reduction (Linux TCP_INFINITE_SSTHRESH).
    pub const INFINITE: u32 = 0x7fff_ffff;

    /// Value of `pacing_rate` without pacing.
    pub const UNPACED: u64 = u64::MAX;

    /// Create a window of `iw` segments.
    pub fn new(iw: u32) -> Window {
        Window {
            cwnd: iw,
            ssthresh: Window::INFINITE,
            cwnd_cnt: 0,
            cwnd_clamp: u32::MAX,
            prior_cwnd: iw,
            pacing_rate: Window::UNPACED,
        }
    }

    /// Whether cwnd is below ssthresh: RFC 5681 §3.1, decided as in Linux.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start: grow by one segment per segment acknowledged, up to ssthresh. Return the segments left for linear
    /// growth (Linux `tcp_slow_start`; RFC 3465 with L unlimited).
    #[inline]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd.min(self.cwnd_clamp);
        left
    }

    /// Common first step of all controllers with the slow start of RFC 5681: nothing happens unless the window limits
    /// the sender, and slow start first consumes the segments that it needs. Return the segments left for linear
    /// growth, if any.
    #[inline]
    pub fn past_slow_start(&mut self, ack: &AckSample) -> Option<u32> {
        if !ack.cwnd_limited {
            return None;
        }
        if !self.in_slow_start() {
            return Some(ack.acked);
        }
        Some(self.slow_start(ack.acked)).filter(|&left| left > 0)
    }

    /// Grow by slow start, then by one segment per round trip (RFC 5681 §3.1; Linux `tcp_reno_cong_avoid`).
    #[inline]
    pub fn grow_as_reno(&mut self, ack: &AckSample) {
        if let Some(acked) = self.past_slow_start(ack) {
            self.additive_increase(self.cwnd, acked);
        }
    }

    /// ssthresh to keep across a change of the window outside recovery: at least 3/4 of cwnd (Linux
    /// `tcp_current_ssthresh`).
    pub fn current_ssthresh(&self) -> u32 {
        self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2))
    }

    /// Grow linearly: one segment per `w` segments acknowledged (Linux `tcp_cong_avoid_ai`).
    #[inline]
    pub fn additive_increase(&mut self, w: u32, acked: u32) {
        let w = w.max(1);
        if self.cwnd_cnt >= w {
            self.cwnd_cnt = 0;
            self.cwnd = self.cwnd.saturating_add(1);
        }
        self.cwnd_cnt = self.cwnd_cnt.saturating_add(acked);
        if self.cwnd_cnt >= w {
            let delta = self.cwnd_cnt / w;
            self.cwnd_cnt -= delta * w;
            self.cwnd = self.cwnd.saturating_add(delta);
        }
        self.cwnd = self.cwnd.min(self.cwnd_clamp);
    }
}
