//! The peer's receive window: which ACKs may change it, and what depends on it.

use ackclock_core::Segment;

use super::plain::Reasons;
use super::Sender;
use crate::config::RtoStyle;

impl Sender {
    #[inline(always)]
    pub(super) fn take_window(&mut self, wnd: u32) {
        self.snd_wnd = wnd as u64;
        if self.mtu_search.is_some() {
            self.offered_to_mtu_search(wnd as u64);
        }
        if self.half_window.is_some() {
            self.widen_half_window(wnd as u64);
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.offered(wnd as u64);
        }
        if let Some(queue) = &mut self.queue {
            queue.offered(wnd as u64);
        }
    }

    /// Whether the ACK updates the window (Linux `tcp_may_update_window`). If neither its sequence nor its ACK number is
    /// new, Linux takes a smaller window to be that of an overtaken ACK, unless it is zero. RFC 9293 §3.10.7.4 accepts it.
    #[inline(always)]
    pub(crate) fn hears_window(&self, seg: &Segment) -> bool {
        let (wnd, before) = (seg.wnd as u64, self.snd_wnd);
        match self.config.timers.rto_style {
            RtoStyle::Linux => {
                seg.ack > self.snd_una
                    || seg.seq > self.snd_wl1
                    || (seg.seq == self.snd_wl1 && (wnd > before || wnd == 0))
            }
            RtoStyle::Rfc6298 => seg.seq >= self.snd_wl1,
        }
    }

    /// Process the window in an ACK. True if the ACK is not a duplicate: in Linux because it may update
    /// the window, in RFC 5681 §2 because the window differs.
    #[inline(always)]
    pub(super) fn hear_window(&mut self, seg: &Segment) -> bool {
        if !self.hears_window(seg) {
            return false;
        }
        let same = seg.wnd as u64 == self.snd_wnd;
        self.snd_wl1 = seg.seq;
        self.take_window(seg.wnd);
        !same || self.config.timers.rto_style == RtoStyle::Linux
    }

    /// Record the peer's window, last updated at `wl1`, before anything has been sent.
    pub(crate) fn offered(&mut self, wnd: u32, wl1: u64) {
        self.snd_wl1 = wl1;
        self.take_window(wnd);
    }

    /// Set the window from the peer's SYN.
    pub fn set_snd_wnd(&mut self, wnd: u32) {
        self.snd_wnd = wnd as u64;
        if let Some(queue) = &mut self.queue {
            queue.offered(wnd as u64);
        }
    }
}

/// Limit on the segment size for a peer whose window has never been large (Linux `tcp_bound_to_half_wnd`): at
/// most half of the largest window, so that two segments can be in flight.
#[derive(Clone, Debug)]
pub(super) struct HalfWindow {
    /// Segment payload without this limit, and option bytes.
    full: u32,
    options: u32,
    widest: u64,
}

impl HalfWindow {
    fn segment(&self) -> u32 {
        let most = if self.widest > TCP_MSS_DEFAULT { self.widest / 2 } else { self.widest };
        let least = LEAST_PACKET.saturating_sub(self.options);
        self.full.min((most.min(u64::from(self.full)) as u32).max(least))
    }
}

impl Sender {
    /// Apply the limit after the handshake, in which the peer offered `wnd`.
    pub(super) fn fit_into_half_window(&mut self, wnd: u64, options: u32) {
        if wnd / 2 >= u64::from(self.smss)
            || wnd == 0
            || self.config.timers.rto_style != RtoStyle::Linux
            || self.mtu_search.is_some()
        {
            return;
        }
        let half = HalfWindow { full: self.smss, options, widest: wnd };
        let payload = half.segment();
        self.resize_segments(payload);
        self.half_window = Some(Box::new(half));
        self.reasons.set(Reasons::MTU_SEARCH, true);
    }

    /// Raise the limit if the peer offers a larger window.
    #[cold]
    fn widen_half_window(&mut self, wnd: u64) {
        if let Some(half) = self.half_window.as_mut().filter(|half| wnd > half.widest) {
            half.widest = wnd;
            let payload = half.segment();
            self.resize_segments(payload);
        }
    }
}

const TCP_MSS_DEFAULT: u64 = 536;
/// Bytes that remain for options and payload in a segment of 68 bytes.
const LEAST_PACKET: u32 = 68 - 20;
