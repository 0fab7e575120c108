//! Condition under which an unused sender can be dropped, to be created again when needed (see `connection/sending.rs`).

use ackclock_cc::Controller;
use ackclock_core::FlowId;

use super::send_buffer::SendBuffer;
use super::Sender;

impl Sender {
    /// Whether settings and handshake fully determine the sender: nothing else has been set or written,
    /// and no trace has been requested.
    pub(crate) fn is_untouched(&self) -> bool {
        let parts = self.queue.is_some() || self.mtu_search.is_some() || self.host_queue.is_some();
        let parts = parts || self.half_window.is_some();
        let paces = self.rates.is_some() || self.pacer.is_some();
        let needs = self.config.sending.controller.needs();
        let controlled = matches!(self.cc, Controller::Custom(_)) || needs.seed || needs.idle;
        let asked = self.trace.is_on() || self.trace.vars.is_some() || self.limits.is_some() || controlled;
        let remembers = self.window.ssthresh != self.config.switches.initial_ssthresh;
        let wrote = self.stream.is_closed() || !self.buffer.as_ref().is_none_or(SendBuffer::is_at_rest);
        let idle = self.is_idle() && self.snd_nxt == 1 && !wrote;
        idle && !parts && !paces && !asked && !remembers
    }

    /// Flow of the sender, and whether it belongs to the responder.
    pub(crate) fn whose(&self) -> (FlowId, bool) {
        self.trace.whose()
    }
}
