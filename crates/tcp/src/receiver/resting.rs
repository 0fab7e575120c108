//! Compact form of a receiver that has seen only the handshake and ACKs.

use std::rc::Rc;

use ackclock_core::{Segment, Time};

use super::Receiver;
use crate::config::Config;
use crate::rwnd::Edges;

/// Inputs of a resting receiver. Waking it replays them.
#[derive(Clone, Debug)]
pub(crate) struct Resting {
    config: Rc<Config>,
    edges: Edges,
    begun: Time,
    smss: u32,
    ts_recent: u32,
    /// Timestamp echoed by the last ACK received.
    echoed: u32,
    /// Window in the last header sent.
    wnd: u32,
    responder: bool,
    /// The peer's SYN arrived, with the options that follow.
    has_syn: bool,
    sack: bool,
    timestamps: bool,
    /// The next header has the same window as the last one.
    is_settled: bool,
    /// An ACK must be sent.
    due: bool,
    closing: bool,
}

impl Receiver {
    /// Return the compact form of a receiver, before the peer's SYN arrives. `None` if an option was set.
    pub(crate) fn rest(&self, config: &Rc<Config>, responder: bool) -> Option<Resting> {
        let parts =
            self.marks.exact.is_some() || self.marks.accurate.is_some() || self.cheats.split.is_some();
        let set = self.reader.explicit || self.stamps_otherwise || self.acks.closing || self.acks.pending;
        let as_new = self.rcv_nxt == 0 && self.sizes.most == config.payload();
        (as_new && !parts && !set).then(|| Resting {
            config: config.clone(),
            edges: self.window.edges(),
            begun: Time::ZERO,
            smss: u32::MAX,
            ts_recent: 0,
            echoed: 0,
            wnd: 0,
            responder,
            has_syn: false,
            sack: false,
            timestamps: config.timestamps,
            is_settled: false,
            due: false,
            closing: false,
        })
    }
}

impl Resting {
    pub fn wake(&self) -> Receiver {
        let mut receiver = Receiver::of_end(&self.config, self.responder);
        if !self.responder && self.config.receiving.initiator_rwnd > 0 {
            receiver.offer_first(self.config.receiving.initiator_rwnd.into());
        }
        receiver.window.set_edges(self.edges);
        if self.has_syn {
            receiver.on_syn();
            receiver.negotiated(self.sack, self.timestamps);
            receiver.stamps.recent = self.ts_recent;
        }
        receiver.begin(self.begun, self.smss);
        receiver.window.has_echoed(self.echoed);
        receiver.acks.closing = self.closing;
        if self.due {
            receiver.ack_now();
        }
        receiver
    }

    pub fn on_syn(&mut self, seg: &Segment) {
        self.has_syn = true;
        self.is_settled = false;
        self.sack = seg.syn.sack_permitted;
        self.timestamps &= seg.has_ts;
        self.ts_recent = seg.ts_val;
    }

    pub fn begin(&mut self, now: Time, smss: u32) {
        (self.begun, self.smss) = (now, smss);
    }

    #[inline]
    pub fn next(&self) -> u64 {
        self.has_syn as u64
    }

    #[inline(always)]
    pub fn on_pure_ack(&mut self, seg: &Segment) {
        let newer = self.ts_recent.wrapping_sub(seg.ts_val) as i32 <= 0;
        if self.timestamps && seg.has_ts && seg.seq <= self.next() && newer {
            self.ts_recent = seg.ts_val;
        }
        self.echoed = seg.ts_ecr;
    }

    /// See [`Receiver::forget_echo`].
    pub fn forget_echo(&mut self) {
        self.echoed = 0;
    }

    /// Timestamp to be echoed.
    #[inline]
    pub fn latest_stamp(&self) -> u32 {
        self.ts_recent
    }

    #[inline(always)]
    pub fn stamp(&mut self, seg: &mut Segment) {
        if !self.is_settled {
            return self.stamp_anew(seg);
        }
        (seg.ack, seg.wnd) = (self.next(), self.wnd);
        if self.timestamps {
            seg.ts_ecr = self.ts_recent;
        }
        self.due = false;
    }

    /// See [`Receiver::stamps_alike`].
    #[inline]
    pub fn stamps_alike(&self) -> bool {
        self.is_settled
    }

    #[cold]
    fn stamp_anew(&mut self, seg: &mut Segment) {
        let mut receiver = self.wake();
        receiver.stamp(seg);
        let edges = receiver.window.edges();
        self.is_settled = edges == self.edges; // identical edges give identical windows
        (self.edges, self.wnd, self.due) = (edges, seg.wnd, false);
    }

    #[inline]
    pub fn ack_due(&self) -> bool {
        self.due
    }

    pub fn ack_now(&mut self) {
        self.due = true;
    }

    pub fn close(&mut self) {
        self.closing = true;
    }
}
