//! The receiver's own RTT estimate, from timestamps and from the time in which a window arrives.

use ackclock_core::{Segment, Time};

use super::ReceiveWindow;

impl ReceiveWindow {
    /// An ACK without data echoed this timestamp.
    #[inline(always)]
    pub fn has_echoed(&mut self, stamp: u32) {
        self.last_ts_ecr = stamp;
    }

    /// The receiver's own view of the RTT: a full segment that echoes a new timestamp, older than a tick of its clock (Linux
    /// `tcp_rcv_rtt_measure_ts`, `tcp_rcv_rtt_update`): gain 1/8 upwards, unless data waits for the application; at
    /// once downwards.
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

    /// Data arrived up to `rcv_nxt`: the time that one window takes is at least an RTT, and the only measure without timestamps
    /// (Linux `tcp_rcv_rtt_measure`; Fisk and Feng 2001). The minimum counts.
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
