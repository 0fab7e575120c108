//! Queries of a connection; the snapshot modelled on TCP_INFO is in `info.rs`.

use ackclock_core::prefetch::prefetch_all;
use ackclock_core::trace::RecoverySummary;
use ackclock_core::{Span, Time};

use super::{Connection, State};
use crate::receiver::Receiver;
use crate::sender::{Held, Record, Sender, VarsTrace};
use crate::stats::{Stats, Times};
use crate::ticks::{Armed, Ticks};

/// Packet and byte counters of accurate ECN, as in TCP_INFO.
#[derive(Clone, Copy, Debug, Default)]
pub struct AccurateMarks {
    /// Packets sent that arrived CE-marked, as reported by the peer.
    pub delivered_ce: u32,
    /// Packets received with a CE mark.
    pub received_ce: u32,
    /// Payload bytes sent that arrived as ECT(1), ECT(0) and CE, as reported by the peer.
    pub delivered_bytes: [u32; 3],
    /// Payload bytes received as ECT(1), ECT(0) and CE.
    pub received_bytes: [u32; 3],
}

impl Connection {
    /// Timer-wheel state of the timer that expires at `deadline`; `None` if it is not on the wheel, as with the pacing
    /// and ACK-compression clocks.
    pub fn on_wheel(&self, now: Time, deadline: Time) -> Option<Armed> {
        let fresh = |level| Armed { level, since: now };
        if matches!(self.state, State::SynSent | State::SynReceived) {
            return Ticks::of(&self.config).level(deadline - now).map(fresh);
        }
        let sender = self.sender.now();
        let of_data = sender.and_then(|sender| sender.on_wheel(deadline));
        of_data.or_else(|| {
            let delays = self.receiver.now()?.delays_until(deadline);
            Ticks::of(&self.config).level(deadline - now).filter(|_| delays).map(fresh)
        })
    }

    /// Prefetch the half that an expected segment needs most: the sending half if `sends`.
    #[inline]
    pub fn prefetch(&self, sends: bool) {
        match sends {
            true => self.sender.now().into_iter().for_each(prefetch_all),
            false => {
                self.receiver.now().into_iter().for_each(prefetch_all);
                self.sender.prefetch_resting();
            }
        }
    }

    /// Prefetch the lists of one half (the sending half if `sends`), which are stored separately.
    #[inline]
    pub fn prefetch_lists(&self, sends: bool) {
        match sends {
            true => self.sender.now().into_iter().for_each(|sender| sender.board.prefetch()),
            false => self.receiver.now().into_iter().for_each(Receiver::prefetch),
        }
    }

    /// Payload of a full segment, bytes.
    pub fn smss(&self) -> u32 {
        self.sender.ask(|sender| sender.smss)
    }

    /// Accurate ECN counters; `None` unless it was agreed on.
    pub fn accurate_marks(&self) -> Option<AccurateMarks> {
        let (out, back) =
            (self.sender.now()?.feedback.as_ref()?, self.receiver.now()?.marks.accurate.as_ref()?);
        Some(AccurateMarks {
            delivered_ce: out.ce,
            received_ce: back.ce,
            delivered_bytes: out.bytes,
            received_bytes: back.bytes,
        })
    }

    /// Connection state.
    pub fn state(&self) -> State {
        self.state
    }
    /// Whether this end has completed the handshake.
    pub fn is_established(&self) -> bool {
        matches!(self.state, State::Established | State::Done)
    }
    /// Payload bytes delivered in order to the application.
    #[inline]
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }
    /// Payload bytes received, including out-of-order data.
    pub fn arrived(&self) -> u64 {
        let behind = self.receiver.now().map_or(0, Receiver::behind_gaps);
        self.received() - self.concealed() + behind
    }
    /// Acknowledged bytes that a cheating receiver never received.
    pub fn concealed(&self) -> u64 {
        self.receiver.now().map_or(0, Receiver::concealed)
    }
    /// Whether the peer's data has arrived in order up to `offset`, or its FIN has arrived, or the connection is
    /// closed.
    #[inline(always)]
    pub fn has_come_to(&self, offset: u64) -> bool {
        self.receiver.next() >= offset || self.is_done() || self.peer_closed()
    }
    /// Whether the peer's FIN has arrived in order.
    pub fn peer_closed(&self) -> bool {
        self.receiver.fin_received()
    }
    /// Whether the application has closed this end.
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.sender.is_closing()
    }
    /// Whether everything that the application wrote, and the FIN after it, has been acknowledged.
    #[inline]
    pub fn has_delivered_all(&self) -> bool {
        self.sender.fin_acked()
    }
    /// Payload bytes written by the application.
    pub fn written(&self) -> u64 {
        self.sender.written()
    }
    /// Payload bytes sent and cumulatively acknowledged.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.sender.now().map_or(0, Sender::acked)
    }
    /// Whether the connection can be dropped: closed on both sides, or failed.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done | State::Failed)
    }
    /// Whether the connection has been given up or reset.
    pub fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Sender counters.
    pub fn stats(&self) -> &Stats {
        self.sender.stats()
    }
    /// Minimum RTT sample of this end; [`Span::MAX`] if there is none.
    pub fn min_rtt(&self) -> Span {
        self.sender.now().map_or(Span::MAX, |sender| sender.rtt.min_rtt())
    }
    /// Number of SYNs or SYN-ACKs retransmitted by this end.
    pub fn syn_retransmissions(&self) -> u64 {
        self.syn_retransmissions as u64
    }

    /// Receiver state: next offset expected, current limit on the offered window, and the peer's segment
    /// size.
    pub fn receiving(&self) -> (u64, u64, u32) {
        self.receiver.ask(|receiver| (receiver.rcv_nxt, receiver.offered(), receiver.rcv_mss()))
    }

    /// Sender state: first unacknowledged offset, and next offset to send.
    pub fn sending(&self) -> (u64, u64) {
        self.sender.standing()
    }

    /// Switch the per-ACK trace on or off.
    pub fn set_trace(&mut self, on: bool) {
        if on || self.sender.now().is_some() {
            self.sender.awake().set_trace(on);
        }
    }
    /// Record the controller's variables, at most one row per `interval`.
    pub fn trace_controller(&mut self, interval: Span) {
        self.sender.awake().trace_vars(interval);
    }
    /// Record the causes that limit the sender. Called at the start of the connection.
    pub fn keep_limits(&mut self, now: Time) {
        self.sender.awake().keep_limits(now);
    }
    /// Stop recording the causes that limit the sender.
    pub fn end_limits(&mut self, now: Time) {
        if let Some(sender) = self.sender.now_mut() {
            sender.end_limits(now);
        }
    }
    /// Time spent under each cause that limits the sender, and the kernel's stopwatches; `None` if not recorded.
    pub fn held(&self, now: Time) -> Option<(Held, Times)> {
        self.sender.now().and_then(|sender| sender.held(now))
    }
    /// Take the trace of the controller's variables.
    pub fn take_controller_trace(&mut self) -> Option<Box<VarsTrace>> {
        self.sender.now_mut()?.trace.vars.take()
    }
    /// Reason why the controller cannot be copied; `None` if it can.
    pub fn cannot_copy(&self) -> Option<String> {
        self.sender.now().and_then(Sender::cannot_copy)
    }
    /// Seed the controller's random numbers.
    pub fn seed_controller(&mut self, seed: u64) {
        self.sender.awake().seed(seed);
    }
    /// Take the records of the trace.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.sender.now_mut().map(|sender| sender.trace.take_records()).unwrap_or_default()
    }
    /// Take the recovery episodes that have ended.
    pub fn take_recoveries(&mut self) -> Vec<RecoverySummary> {
        self.sender.now_mut().map(|sender| sender.trace.take_recoveries()).unwrap_or_default()
    }
    /// Close the recovery episode in progress, if any, at the end of the run.
    pub fn finish(&mut self, now: Time) {
        if let Some(sender) = self.sender.now_mut() {
            sender.finish(now);
        }
    }
}
