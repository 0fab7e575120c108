//! One endpoint of a connection: handshake and close around a [`Sender`](crate::sender::Sender) and a
//! [`Receiver`](crate::receiver::Receiver). (RFC 9293; Linux where the profile says so.)

use ackclock_core::packet::{Ecn, SynOptions};
use ackclock_core::trace::{CaState, Record, RecoverySummary};
use ackclock_core::{Flags, FlowId, Segment, Span, Time};

use crate::config::Config;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::ticks::Ticks;

/// Where the connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    /// Both FINs were sent and acknowledged.
    Done,
    /// Retries exhausted, or reset by the peer.
    Failed,
}

/// Running sums of one endpoint, as a sender unless said otherwise.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Stats {
    /// Retransmissions included.
    pub data_segments_sent: u64,
    pub retransmissions: u64,
    /// Of data; split by the state in which they struck.
    pub rtos: u64,
    pub rtos_open: u64,
    pub rtos_disorder: u64,
    pub rtos_recovery: u64,
    pub rtos_loss: u64,
    /// SYN or SYN-ACK sent again by this end.
    pub syn_retransmissions: u64,
    pub tlps: u64,
    pub recoveries: u64,
    pub lost_retransmits: u64,
    pub undos: u64,
    pub spurious_rtos: u64,
    pub dsacks_received: u64,
    pub hystart_exits: u64,
    pub hystart_exit_cwnd: u32,
    pub rtt_sum_ns: u128,
    pub rtt_samples: u64,
    pub acks_received: u64,
    /// Pure ACKs sent by this end as a receiver.
    pub acks_sent: u64,
}

/// A snapshot in the spirit of TCP_INFO; windows in segments.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Info {
    pub state: State,
    pub ca_state: CaState,
    pub cwnd: u32,
    pub ssthresh: u32,
    pub srtt: Span,
    pub rttvar: Span,
    pub rto: Span,
    pub min_rtt: Span,
    pub in_flight: u32,
    /// packets_out.
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub bytes_acked: u64,
    pub total_retrans: u64,
    pub reordering: u32,
    pub snd_wnd: u32,
}

/// One endpoint.
pub struct Connection {
    state: State,
    config: Config,
    ticks: Ticks,
    sender: Sender,
    receiver: Receiver,
    /// A SYN or SYN-ACK must leave.
    syn_due: bool,
    /// The pending one is a retransmission asked for by the timer or by the peer.
    syn_again: bool,
    syn_sent_at: Time,
    syn_tries: u32,
    syn_timeouts: u32,
    syn_deadline: Time,
    has_ts: bool,
    sack: bool,
    peer_mss: u32,
    /// The ACK of the SYN-ACK leaves before any data (`connect` returns first).
    ack_first: bool,
}

impl Connection {
    /// The end that sends the SYN.
    pub fn initiator(flow: FlowId, config: &Config) -> Connection {
        Connection::new(flow, config, State::Closed, false)
    }

    /// The end that listens.
    pub fn responder(flow: FlowId, config: &Config) -> Connection {
        Connection::new(flow, config, State::Listen, true)
    }

    fn new(flow: FlowId, config: &Config, state: State, responder: bool) -> Connection {
        let ticks = Ticks::new(config.tick(), config.tick_phase);
        Connection {
            state,
            ticks,
            sender: Sender::new(flow, responder, config, ticks),
            receiver: Receiver::new(config, ticks),
            syn_due: false,
            syn_again: false,
            syn_sent_at: Time::ZERO,
            syn_tries: 0,
            syn_timeouts: 0,
            syn_deadline: Time::NEVER,
            has_ts: config.timestamps,
            sack: config.sack,
            peer_mss: 536, // RFC 9293 §3.7.1, until the peer says otherwise
            ack_first: false,
            config: config.clone(),
        }
    }

    /// Send the SYN.
    pub fn connect(&mut self, now: Time) {
        debug_assert_eq!(self.state, State::Closed);
        self.state = State::SynSent;
        self.syn_due = true;
        self.arm_syn(now);
    }

    /// The application hands over `bytes`, before or after the handshake.
    pub fn write(&mut self, _now: Time, bytes: u64) {
        self.sender.write(bytes);
    }
    /// The application always has more.
    pub fn write_forever(&mut self, _now: Time) {
        self.sender.write(1 << 62);
    }
    /// Nothing beyond what was sent so far.
    pub fn stop_writing(&mut self, _now: Time) {
        self.sender.stop_writing();
    }
    /// FIN after all written data.
    pub fn close(&mut self, _now: Time) {
        self.sender.close();
    }
    /// Forget everything, without a word to the peer.
    pub fn abort(&mut self) {
        self.state = State::Done;
    }

    /// A segment arrived.
    #[inline]
    pub fn on_packet(&mut self, now: Time, seg: &Segment, _ecn: Ecn) {
        if self.state != State::Established || seg.flags.has(Flags::SYN) || seg.flags.has(Flags::RST) {
            return self.on_packet_slow(now, seg);
        }
        self.on_established(now, seg);
    }

    #[inline]
    fn on_established(&mut self, now: Time, seg: &Segment) {
        if seg.flags.has(Flags::ACK) {
            self.sender.on_ack(now, seg);
        }
        if seg.len > 0 || seg.flags.has(Flags::FIN) {
            let ts_now = self.sender.ts(now);
            self.receiver.on_data(now, seg, self.sender.rtt.srtt(), self.sender.rtt.rto(), ts_now);
        } else {
            self.receiver.on_pure_ack(seg);
        }
        if self.sender.fin_sent()
            && self.sender.fin_acked()
            && self.receiver.fin_received()
            && !self.receiver.ack_due()
        {
            self.state = State::Done;
        }
    }

    #[cold]
    fn on_packet_slow(&mut self, now: Time, seg: &Segment) {
        if seg.flags.has(Flags::RST) {
            self.state = State::Failed;
            return;
        }
        let syn = seg.flags.has(Flags::SYN);
        match self.state {
            State::Listen if syn && !seg.flags.has(Flags::ACK) => {
                self.negotiate(seg);
                self.state = State::SynReceived;
                self.syn_due = true;
                self.arm_syn(now);
            }
            State::SynReceived if syn => {
                // The SYN-ACK was lost: answer again (Linux `tcp_check_req`).
                self.syn_due = true;
                self.syn_again = true;
                self.arm_syn(now);
            }
            State::SynReceived if seg.flags.has(Flags::ACK) && seg.ack >= 1 => {
                self.establish(now, seg);
                self.on_established(now, seg);
            }
            State::SynSent if syn && seg.flags.has(Flags::ACK) => {
                self.negotiate(seg);
                self.establish(now, seg);
                self.receiver.ack_now();
                self.ack_first = true;
            }
            State::Established if syn => self.receiver.ack_now(),
            State::Done if seg.seq_len() > 0 => self.receiver.ack_now(),
            _ => {}
        }
    }

    fn negotiate(&mut self, seg: &Segment) {
        self.receiver.on_syn();
        self.has_ts &= seg.has_ts;
        self.peer_mss = seg.syn.mss as u32;
        self.sack &= seg.syn.sack_permitted;
        self.receiver.negotiated(seg.syn.sack_permitted, seg.has_ts);
        self.receiver.ts_recent = seg.ts_val;
        self.sender.set_snd_wnd(seg.wnd);
    }

    fn establish(&mut self, now: Time, seg: &Segment) {
        self.state = State::Established;
        self.syn_deadline = Time::NEVER;
        self.syn_due = false;
        let mut rtt = (self.syn_tries <= 1).then(|| now - self.syn_sent_at);
        if rtt.is_none() && self.has_ts && seg.ts_ecr > 0 {
            let ms = self.sender.ts(now).saturating_sub(seg.ts_ecr) as u64;
            rtt = Some(Span::from_ms(ms.max(1)));
        }
        if self.syn_timeouts > 1 {
            self.sender.start_from_one();
        }
        let smss = self.peer_mss.saturating_sub(12 * self.has_ts as u32).max(1);
        self.sender.established(now, seg.wnd, self.sack, smss, rtt);
    }

    fn arm_syn(&mut self, now: Time) {
        // Only the SYN keeps its pace; the SYN-ACK backs off from the start.
        let linear = if self.state == State::SynSent { self.config.syn_linear_timeouts as u32 } else { 0 };
        let doublings = self.syn_timeouts.saturating_sub(linear).min(16);
        let rto = (self.config.initial_rto * (1 << doublings)).min(self.config.max_rto);
        self.syn_deadline = self.ticks.expiry(now, rto);
    }

    /// A deadline may have passed.
    pub fn on_timer(&mut self, now: Time) {
        if self.syn_deadline <= now {
            self.syn_timeouts += 1;
            if self.syn_timeouts > self.config.syn_retries as u32 {
                self.syn_deadline = Time::NEVER;
                self.state = State::Failed;
                return;
            }
            self.syn_due = true;
            self.syn_again = true;
            self.arm_syn(now);
        }
        if self.state == State::Established {
            self.sender.on_timer(now);
            self.receiver.on_timer(now, self.sender.rtt.rto());
            if self.sender.failed {
                self.state = State::Failed;
            }
        }
    }

    /// When [`Connection::on_timer`] wants to be called; `Time::NEVER` if no timer is armed.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        match self.state {
            State::Established => self.sender.deadline().min(self.receiver.deadline()),
            State::SynSent | State::SynReceived => self.syn_deadline,
            _ => Time::NEVER,
        }
    }

    /// Next segment to leave; call until `None` after every input.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if self.state != State::Established {
            return self.poll_slow(now);
        }
        if std::mem::take(&mut self.ack_first) {
            return Some(self.pure_ack(now));
        }
        if let Some(mut seg) = self.sender.poll(now) {
            self.receiver.on_data_sent(now);
            self.receiver.stamp(&mut seg);
            return Some(self.timestamped(seg));
        }
        self.receiver.ack_due().then(|| self.pure_ack(now))
    }

    fn timestamped(&self, mut seg: Segment) -> Segment {
        if !self.has_ts {
            (seg.has_ts, seg.ts_val, seg.ts_ecr) = (false, 0, 0);
        }
        seg
    }

    #[inline]
    fn pure_ack(&mut self, now: Time) -> Segment {
        self.sender.stats.acks_sent += 1;
        let mut seg = Segment { seq: self.sender.snd_nxt, flags: Flags::ACK, ..Segment::default() };
        if self.has_ts {
            seg.has_ts = true;
            seg.ts_val = self.sender.ts(now);
        }
        self.receiver.stamp(&mut seg);
        if self.sender.fin_sent() && self.sender.fin_acked() && self.receiver.fin_received() {
            self.state = State::Done;
        }
        seg
    }

    #[cold]
    fn poll_slow(&mut self, now: Time) -> Option<Segment> {
        if self.state == State::Done && self.receiver.ack_due() {
            return Some(self.pure_ack(now)); // the peer's FIN again: our last ACK was lost
        }
        if !self.syn_due {
            return None;
        }
        self.syn_due = false;
        let again = std::mem::take(&mut self.syn_again);
        if again {
            self.sender.stats.syn_retransmissions += 1;
        }
        self.syn_tries += 1;
        if self.syn_tries == 1 {
            self.syn_sent_at = now;
        }
        let syn = SynOptions {
            mss: (self.config.payload() + 12 * self.config.timestamps as u32).min(u16::MAX as u32) as u16,
            wscale: window_scale(self.config.receive_buffer),
            sack_permitted: self.sack,
        };
        let mut seg = Segment { flags: Flags::SYN, syn, ..Segment::default() };
        if self.has_ts {
            seg.has_ts = true;
            seg.ts_val = self.sender.ts(now);
        }
        self.receiver.stamp(&mut seg);
        if self.state == State::SynReceived {
            seg.flags |= Flags::ACK;
        } else {
            seg.ack = 0;
        }
        Some(seg)
    }

    /// State of the connection.
    pub fn state(&self) -> State {
        self.state
    }
    /// Whether the handshake is over at this end.
    pub fn is_established(&self) -> bool {
        matches!(self.state, State::Established | State::Done)
    }
    /// Payload bytes delivered in order to the application.
    #[inline]
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }
    /// The peer's FIN arrived in order.
    pub fn peer_closed(&self) -> bool {
        self.receiver.fin_received()
    }
    /// Payload bytes that the application wrote so far.
    pub fn written(&self) -> u64 {
        self.sender.written()
    }
    /// Payload bytes of ours cumulatively acknowledged.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.sender.acked()
    }
    /// May be dropped: closed on both sides, or failed.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done | State::Failed)
    }
    /// Gave up, or was reset.
    pub fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Running sums.
    pub fn stats(&self) -> &Stats {
        &self.sender.stats
    }

    /// Snapshot.
    pub fn info(&self) -> Info {
        let s = &self.sender;
        Info {
            state: self.state,
            ca_state: s.ca_state,
            cwnd: s.window.cwnd,
            ssthresh: s.window.ssthresh,
            srtt: s.rtt.srtt(),
            rttvar: s.rtt.rttvar(),
            rto: s.rtt.rto(),
            min_rtt: s.rtt.min_rtt(),
            in_flight: s.board.pipe(),
            unacked: s.board.packets_out(),
            sacked: s.board.sacked_out,
            lost: s.board.lost_out,
            retrans: s.board.retrans_out,
            bytes_acked: s.acked(),
            total_retrans: s.stats.retransmissions,
            reordering: s.reordering(),
            snd_wnd: s.snd_wnd().min(u32::MAX as u64) as u32,
        }
    }

    /// Switch the per-ACK trace on or off.
    pub fn set_trace(&mut self, on: bool) {
        self.sender.records = on.then(Vec::new);
    }
    /// Drain the trace.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.sender.records.as_mut().map(std::mem::take).unwrap_or_default()
    }
    /// Drain the finished episodes of recovery.
    pub fn take_recoveries(&mut self) -> Vec<RecoverySummary> {
        std::mem::take(&mut self.sender.recoveries)
    }
    /// The run ends: an episode of recovery under way gets its line too.
    pub fn finish(&mut self, now: Time) {
        self.sender.finish(now);
    }
}

/// Least shift that lets 16 bits express this buffer (RFC 7323 §2.3: at most 14).
fn window_scale(buffer: u64) -> u8 {
    (0..14).find(|&s| 65_535u64 << s >= buffer).unwrap_or(14)
}
