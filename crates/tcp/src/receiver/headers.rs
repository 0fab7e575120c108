//! Header fields written by the receiver, and those it reads from segments without data.

use ackclock_core::{Flags, Segment};

use super::Receiver;

/// Timestamps (RFC 7323).
#[derive(Clone, Debug)]
pub(crate) struct Stamps {
    /// Whether timestamps are in use.
    pub(super) on: bool,
    /// Latest timestamp of the peer, which is echoed (TS.Recent).
    pub(crate) recent: u32,
    /// Value of the host's timestamp clock when the latest segment arrived.
    pub(super) now: u32,
}

impl Receiver {
    /// Write ACK number, window, SACK blocks and timestamp echo into a header, and clear all pending acknowledgments.
    #[inline(always)]
    pub fn stamp(&mut self, seg: &mut Segment) {
        if self.acks.early.is_some() || self.stamps_otherwise {
            if self.stamp_otherwise(seg) {
                return;
            }
        } else {
            seg.ack = self.rcv_nxt;
            seg.wnd = self.window.advertise(self.rcv_nxt);
        }
        self.echo(seg);
        if self.has_blocks() {
            seg.sack = self.assembly.sack_list(self.rcv_nxt, self.stamps.on);
        }
        self.assembly.dsack = None;
        self.acks.rcv_wup = self.rcv_nxt;
        self.acks.decrement_quickack(&self.window);
        self.acks.acknowledged();
        self.drain();
    }

    /// Whether the next header carries SACK blocks.
    #[inline]
    pub fn has_blocks(&self) -> bool {
        self.assembly.sack & (!self.assembly.sacks.is_empty() | self.assembly.dsack.is_some())
    }

    /// Length of the SACK blocks in the next header, bytes.
    pub fn room_of_blocks(&self) -> u32 {
        match self.has_blocks() {
            true => 4 + 8 * self.assembly.sack_list(self.rcv_nxt, self.stamps.on).as_slice().len() as u32,
            false => 0,
        }
    }

    /// Whether [`Receiver::stamp`] would write identical fields into successive headers sent now.
    #[inline(always)]
    pub fn stamps_alike(&self) -> bool {
        let plain = self.assembly.sacks.is_empty()
            & self.assembly.dsack.is_none()
            & self.reader.drains.is_none()
            & self.acks.early.is_none();
        plain & !self.stamps_otherwise & self.window.repeats()
    }

    /// Write the echo of ECN marks and of the timestamp.
    #[inline(always)]
    fn echo(&self, seg: &mut Segment) {
        if self.marks.echo_marks {
            seg.flags |= Flags::ECE;
        }
        if self.stamps.on {
            seg.ts_ecr = self.stamps.recent;
        }
    }

    /// Write the header for a held-back ACK, after an allocation failure, for an exact echo of ECN marks,
    /// or for a cheating receiver. Returns true if the header is complete and the ACK of the latest arrival
    /// is still pending.
    #[cold]
    fn stamp_otherwise(&mut self, seg: &mut Segment) -> bool {
        seg.ack = self.rcv_nxt;
        let early = self.acks.early.take().map(|early| *early);
        seg.wnd = match early {
            None => self.window.advertise(self.rcv_nxt),
            Some((_, window)) => window,
        };
        if std::mem::take(&mut self.reader.no_memory) {
            self.window.advertise_none(self.rcv_nxt);
            seg.wnd = 0;
        }
        if let (Some(optimist), None) = (&mut self.cheats.optimist, &early) {
            let ahead = optimist.ahead(self.window.measured().1, seg.wnd);
            (seg.ack, seg.wnd) = (seg.ack + u64::from(ahead), seg.wnd - ahead);
        }
        if let Some(exact) = &mut self.marks.exact {
            let before = exact.before.take();
            if before.map_or(exact.ce, |(_, ce)| ce) {
                seg.flags |= Flags::ECE;
            }
            if let Some((ack, _)) = before {
                seg.ack = ack;
                if self.stamps.on {
                    seg.ts_ecr = self.stamps.recent;
                }
                return true;
            }
        }
        if let Some((sack, _)) = early {
            seg.sack = sack;
            self.assembly.dsack = None;
            self.echo(seg);
            return true;
        }
        if let Some(split) = &mut self.cheats.split {
            if let Some(ack) = split.next(self.acks.rcv_wup, self.rcv_nxt, self.sizes.rcv_mss) {
                seg.ack = ack;
                self.echo(seg);
                return true;
            }
        }
        false
    }

    /// Store the timestamp of a pure ACK or of data.
    #[inline]
    pub fn remember_stamp(&mut self, seg: &Segment) {
        let newer = self.stamps.recent.wrapping_sub(seg.ts_val) as i32 <= 0;
        if self.stamps.on && seg.has_ts && seg.seq <= self.acks.rcv_wup && newer {
            self.stamps.recent = seg.ts_val;
        }
    }

    /// Process a segment without data. Its echoed timestamp gives no RTT sample later either (Linux
    /// `rcv_rtt_last_tsecr`), because the time between the ACK of a request and the response is not path delay.
    #[inline(always)]
    pub fn on_pure_ack(&mut self, seg: &Segment) {
        self.remember_stamp(seg);
        self.window.has_echoed(seg.ts_ecr);
    }

    /// Discard the timestamp that the handshake echoed.
    pub fn forget_echo(&mut self) {
        self.window.has_echoed(0);
    }
}
