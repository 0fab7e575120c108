//! The receiver's own RTT estimate, from timestamps and from the time that a window of data takes to arrive.

use ackclock_core::{Segment, Time};

use super::ReceiveWindow;

impl ReceiveWindow {
    /// Record the timestamp echoed by a segment without data.
    #[inline(always)]
    pub fn has_echoed(&mut self, stamp: u32) {
        self.last_ts_ecr = stamp;
    }

    /// Take an RTT sample from a full segment that echoes a new timestamp, at least one tick of the timestamp
    /// clock old (Linux `tcp_rcv_rtt_measure_ts`, `tcp_rcv_rtt_update`). A larger sample has a gain of 1/8
    /// and is ignored if data is waiting for the application; a smaller one is adopted at once.
    #[inline]
    pub fn measure_rtt(&mut self, seg: &Segment, ts_now: u32, rcv_mss: u32, waits: bool) {
        if seg.ts_ecr == self.last_ts_ecr || !seg.has_ts || seg.ts_ecr == 0 {
            return;
        }
        self.last_ts_ecr = seg.ts_ecr;
        let sample = 1_000 * ts_now.saturating_sub(seg.ts_ecr) as u64;
        if seg.len < rcv_mss || sample == 0 {
            return;
        }
        if self.rtt_8 == 0 || 8 * sample < self.rtt_8 {
            self.rtt_8 = 8 * sample;
        } else if !waits {
            self.rtt_8 += sample - (self.rtt_8 >> 3);
        }
    }

    /// Take an RTT sample from the time that a window of data takes to arrive, which is at least an RTT. `rcv_nxt`: end
    /// of the data in order. This is the only measurement without timestamps (Linux `tcp_rcv_rtt_measure`; Fisk and
    /// Feng 2001). The minimum is kept.
    #[inline]
    pub fn measure_window(&mut self, now: Time, rcv_nxt: u64) {
        if rcv_nxt >= self.window_ends {
            self.begin_window(now, rcv_nxt);
        }
    }

    #[cold]
    fn begin_window(&mut self, now: Time, rcv_nxt: u64) {
        let now_us = now.0 / 1_000;
        if self.window_ends > 0 {
            let sample = 8 * (now_us - self.windows_since).max(1);
            if self.rtt_8 == 0 || sample < self.rtt_8 {
                self.rtt_8 = sample;
            }
        }
        (self.window_ends, self.windows_since) = (rcv_nxt + self.told, now_us);
    }
}
