//! What the sender tells of itself, to its connection and to TCP_INFO.

use super::Sender;

impl Sender {
    /// Whether our FIN was acknowledged.
    pub fn fin_acked(&self) -> bool {
        self.stream.fin_sent() && self.board.packets_out() == 0
    }

    /// Whether this end closed.
    pub fn closing(&self) -> bool {
        self.stream.is_closed()
    }

    /// Nothing to send, and nothing outstanding.
    pub fn is_idle(&self) -> bool {
        self.board.packets_out() == 0 && !self.has_new_data()
    }

    /// Whether a FIN was sent.
    pub fn fin_sent(&self) -> bool {
        self.stream.fin_sent()
    }

    /// Payload bytes cumulatively acknowledged.
    pub fn acked(&self) -> u64 {
        self.snd_una - 1 - self.fin_acked() as u64
    }

    /// RACK's reordering degree, for TCP_INFO.
    pub fn reordering(&self) -> u32 {
        self.dupthresh.degree()
    }

    /// Payload of a full segment now.
    pub fn smss(&self) -> u32 {
        self.smss
    }

    /// Consecutive timeouts without an answer.
    pub fn retransmits(&self) -> u32 {
        self.patience.timeouts()
    }

    /// Whether the connection is given up.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.patience.gave_up()
    }

    /// Segments delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Peer's window.
    pub fn snd_wnd(&self) -> u64 {
        self.snd_wnd
    }

    /// Payload bytes that the application wrote so far.
    pub fn written(&self) -> u64 {
        self.stream.end() - 1
    }
}
