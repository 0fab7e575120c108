//! The window that the peer offers: which ACKs may change it, and who has to know.

use ackclock_core::Segment;

use super::Sender;
use crate::config::RtoStyle;

impl Sender {
    #[inline(always)]
    pub(super) fn take_window(&mut self, wnd: u32) {
        self.snd_wnd = wnd as u64;
        if self.mtu_search.is_some() {
            self.offered_to_mtu_search(wnd as u64);
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.offered(wnd as u64);
        }
        if let Some(queue) = &mut self.queue {
            queue.offered(wnd as u64);
        }
    }

    /// Whether the ACK says anew how wide the window is (Linux `tcp_may_update_window`). With old numbers for data and ACK a
    /// smaller window is that of an ACK that was overtaken, unless it is zero. RFC 9293 §3.10.7.4 believes it.
    #[inline(always)]
    pub(crate) fn hears_window(&self, seg: &Segment) -> bool {
        let (wnd, before) = (seg.wnd as u64, self.snd_wnd);
        match self.config.rto_style {
            RtoStyle::Linux => {
                seg.ack > self.snd_una
                    || seg.seq > self.snd_wl1
                    || (seg.seq == self.snd_wl1 && (wnd > before || wnd == 0))
            }
            RtoStyle::Rfc6298 => seg.seq >= self.snd_wl1,
        }
    }

    /// An ACK tells of the window. True: so it is no duplicate, to Linux because it could; to RFC 5681 §2 if the window is another.
    #[inline(always)]
    pub(super) fn hear_window(&mut self, seg: &Segment) -> bool {
        if !self.hears_window(seg) {
            return false;
        }
        let same = seg.wnd as u64 == self.snd_wnd;
        self.snd_wl1 = seg.seq;
        self.take_window(seg.wnd);
        !same || self.config.rto_style == RtoStyle::Linux
    }

    /// The peer offers this window, while nothing was sent.
    pub(crate) fn offered(&mut self, wnd: u32) {
        self.take_window(wnd);
    }

    /// Peer's window on its SYN.
    pub fn set_snd_wnd(&mut self, wnd: u32) {
        self.snd_wnd = wnd as u64;
        if let Some(queue) = &mut self.queue {
            queue.offered(wnd as u64);
        }
    }
}
