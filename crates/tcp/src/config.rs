//! Configuration of one endpoint, and the settings that a scenario may change; `profiles` defines the named sets.

mod profiles;
mod stack;

use ackclock_cc::controller::Recipe;
use ackclock_cc::slow_start::HyStartParams;
use ackclock_cc::{Rule, SlowStartConfig, StartRule};
use ackclock_core::{choice, Span, Time};

use crate::memory::Share;

pub use profiles::{is_linux_today, PROFILES};
pub use stack::{MetricsCache, Stack, Switches};

/// Loss detection method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detection {
    /// Three SACKed segments above the lost one (RFC 6675 IsLost); without SACK three duplicate ACKs (RFC 5681).
    Dupthresh,
    /// Forward acknowledgment with lost-retransmission detection (Linux up to 4.x).
    Fack,
    /// RACK (RFC 8985 §6; Linux 4.4 on).
    Rack,
}

choice! { Detection: Dupthresh "dupthresh", Fack "fack", Rack "rack" }

/// Retransmission timeout estimator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtoStyle {
    /// RFC 6298.
    Rfc6298,
    /// Linux `tcp_rtt_estimator`.
    Linux,
}

/// A receiver's delayed-ACK policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayedAck {
    /// Acknowledge every segment at once.
    Off,
    /// Acknowledge every second segment, or after the timeout (RFC 1122 §4.2.3.2, RFC 5681 §4.2).
    Rfc,
    /// RFC 1122 with up to 16 quick ACKs at the start and an adaptive timeout of 40-200 ms, as in Linux.
    Linux,
}

/// Early retransmit for windows of fewer than four segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EarlyRetransmit {
    /// No early retransmit.
    Off,
    /// RFC 5827, without delay.
    Rfc5827,
    /// Linux 3.5-4.10: a quarter of the RTT later, unless an ACK arrives first.
    Delayed,
}

choice! { EarlyRetransmit: Off "off", Rfc5827 "rfc5827", Delayed "delayed" }

/// An endpoint's use of explicit congestion notification (RFC 3168, RFC 9768; Linux `tcp_ecn`, 0 to 5 in another
/// order).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnUse {
    /// No ECN.
    Off,
    /// Agree to ECN if the peer requests it.
    Accept,
    /// Request ECN, and agree to it.
    Ask,
    /// Request accurate ECN, and agree to any kind that the peer requests.
    AccEcn,
    /// Agree to accurate ECN, and request nothing.
    AccEcnAccept,
    /// Agree to accurate ECN, and request RFC 3168 ECN.
    AccEcnAsk,
}

choice! { EcnUse: Off "off", Accept "accept", Ask "ask", AccEcn "accecn", AccEcnAccept "accecn-accept", AccEcnAsk "accecn-ask" }

impl EcnUse {
    /// Whether the endpoint agrees to RFC 3168.
    pub fn accepts(self) -> bool {
        self != EcnUse::Off
    }

    /// Whether the endpoint agrees to RFC 9768.
    pub fn accepts_accurate(self) -> bool {
        matches!(self, EcnUse::AccEcn | EcnUse::AccEcnAccept | EcnUse::AccEcnAsk)
    }
}

/// Accurate ECN settings (Linux `tcp_ecn_option`, `tcp_ecn_option_beacon`, `tcp_ecn_fallback`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccEcnRules {
    /// Rule for sending the option: 0 never, 1 if it reports something new, 2 always if the path passes it, 3
    /// always.
    pub option: u8,
    /// Minimum number of options per round trip; 0: no minimum.
    pub beacon: u8,
    /// Whether the SYN mark reported by the peer is checked for plausibility.
    pub fallback: bool,
}

/// Rounding of ordinary timers, implemented in `ticks.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wheel {
    /// No rounding: each timer fires exactly at its deadline.
    Exact,
    /// Late by up to 1/256 of the interval (Linux 2.6.36-4.7).
    Slack,
    /// Late by up to an eighth of the interval (Linux 4.8 on).
    Levels,
}

/// Whether a FIN has to wait for the congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FinRule {
    /// The FIN waits for the congestion window like every other segment.
    Waits,
    /// A FIN without data is sent regardless of the congestion window (Linux `tcp_cwnd_test`; up to 2012 also
    /// a one-packet buffer with data and FIN).
    AloneLeaves,
    /// The segment with the FIN is sent regardless of the congestion window, even if it carries data.
    WithDataLeaves,
}

choice! { FinRule: Waits "off", AloneLeaves "alone", WithDataLeaves "with-data" }

/// Pacing settings (Linux `sk_pacing_status`; the formula is in `sender/pacing.rs`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pacing {
    /// Every segment after the first ten waits for the pacing rate.
    pub on: bool,
    /// The initial window is spread over the RTT of the handshake.
    pub initial_window: bool,
    /// The rate is computed for TCP_INFO even if no departure depends on it. (Multi-segment packets need it in any
    /// case.)
    pub measured: bool,
    /// Pacing rate in percent of cwnd per srtt, while cwnd is below half of ssthresh (Linux `tcp_pacing_ss_ratio`).
    pub ss_percent: u32,
    /// Pacing rate in percent of cwnd per srtt, once cwnd has reached half of ssthresh (Linux `tcp_pacing_ca_ratio`).
    pub ca_percent: u32,
    /// Maximum pacing rate, bytes/s (SO_MAX_PACING_RATE).
    pub most: u64,
}

impl Pacing {
    /// No pacing.
    pub const OFF: Pacing = Pacing {
        on: false,
        initial_window: false,
        measured: false,
        ss_percent: 200,
        ca_percent: 120,
        most: u64::MAX,
    };
}

/// Send buffer limit, bytes, in Linux's memory accounting (SO_SNDBUF, `tcp_wmem`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendLimit {
    /// Current limit.
    pub bytes: u64,
    /// Maximum to which the limit may grow with the window; 0 if the application has fixed the limit.
    pub most: u64,
}

impl SendLimit {
    /// Return a limit fixed by the application.
    pub fn fixed(bytes: u64) -> SendLimit {
        SendLimit { bytes, most: 0 }
    }
}

/// Send buffers, as in Linux: a write fills them, PSH is set where Linux sets it, and the time during which they
/// limit the sender is measured. Without buffers, data is only a byte count, and the last segment written so far
/// carries PSH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffers {
    /// Memory limit for written but unacknowledged data; `None`: unlimited.
    pub limit: Option<SendLimit>,
    /// Number of unsent bytes at which a write blocks (Linux `tcp_notsent_lowat`); `u64::MAX`: unlimited.
    pub notsent_lowat: u64,
    /// New data is sent in multi-segment packets; `None`: each segment is a packet.
    pub tso: Option<Tso>,
    /// Maximum size of a write call, bytes; a longer write is split into successive calls. `u64::MAX`: one call.
    pub call_bytes: u64,
}

impl Buffers {
    /// No limit, and one segment per packet.
    pub const UNLIMITED: Buffers =
        Buffers { limit: None, notsent_lowat: u64::MAX, tso: None, call_bytes: u64::MAX };
}

/// Size of each write call of an application that writes endlessly, bytes.
pub const WRITE: u64 = 256 << 10;

/// Size of multi-segment packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tso {
    /// Minimum number of segments per packet (Linux `tcp_min_tso_segs`).
    pub min_segments: u32,
    /// Divisor of the window: a packet is sent at once if at least `1 / win_divisor` of the window
    /// may be sent now; otherwise it may wait for an ACK (Linux `tcp_tso_win_divisor`).
    pub win_divisor: u32,
}

impl Tso {
    /// Linux's default.
    pub const LINUX: Tso = Tso { min_segments: 2, win_divisor: 3 };
}

/// Configuration of one endpoint.
#[derive(Clone, Debug)]
pub struct Config {
    /// How data leaves: windows, pacing, buffers.
    pub sending: SendConfig,
    /// How data is received and acknowledged.
    pub receiving: ReceiveConfig,
    /// Retransmission timeouts, patience, and the accuracy of timers.
    pub timers: TimerConfig,
    /// Detection and repair of losses.
    pub loss: LossConfig,
    /// Payload of a full segment, bytes; 0: 1460 minus the timestamp option.
    pub smss: u32,
    /// Settings whose defaults are the same in every profile.
    pub switches: Switches,
    /// Offer and use SACK (RFC 2018).
    pub sack: bool,
    /// Offer and use timestamps (RFC 7323).
    pub timestamps: bool,
    /// Multi-segment packets reach the peer as they were sent, because no NIC splits them.
    pub whole_packets: bool,
    /// IP header length, bytes.
    pub ip_header: u32,
    /// ECN mode.
    pub ecn: EcnUse,
    /// Accurate ECN settings.
    pub accecn: AccEcnRules,
    /// Check segments as if the peer were untrusted (RFC 5961), with this minimum interval between answers to
    /// invalid segments without payload. `None`: no checks, because the peer is another simulated endpoint.
    pub validate: Option<Span>,
    /// An application woken by a packet runs after all other events of the same instant, because the kernel
    /// processes packets first.
    pub application_waits: bool,
    /// Keep the counters that only TCP_INFO reads.
    pub ledger: bool,
    /// [`Connection::rest`](crate::Connection::rest) takes effect: it saves memory and does not change the outcome.
    pub rests: bool,
}

/// How data leaves: windows, pacing, buffers.
#[derive(Clone, Debug)]
pub struct SendConfig {
    /// Largest segment that the path is known to carry, options included, bytes. Smaller than the announced
    /// MSS if a router reported it.
    pub path_mss: u32,
    /// Initial window, segments.
    pub iw: u32,
    /// Grow cwnd per ACK instead of per acknowledged segment (Linux before the stretch-ACK fixes of 2015).
    pub count_acks: bool,
    /// After a dubious ACK, cwnd is at most pipe plus the reordering degree (Linux up to 3.1
    /// `tcp_moderate_cwnd`).
    pub moderate_open: bool,
    /// Reduce cwnd after an idle RTO (RFC 2861 as in Linux; RFC 5681 §4.1).
    pub idle_restart: bool,
    /// Do not grow cwnd while the application does not fill it (RFC 7661; Linux `tcp_is_cwnd_limited`).
    pub cwnd_validation: bool,
    /// Initial payload of a segment when the path MTU is probed, bytes (Linux `tcp_base_mss`).
    pub base_mss: u32,
    /// ECN-capable packets carry ECT(1) (RFC 9331) instead of ECT(0).
    pub ect1: bool,
    /// Pacing settings.
    pub pacing: Pacing,
    /// TCP small queues: limit on data in the host's device queue, bytes of memory (Linux
    /// `tcp_limit_output_bytes`); `None`: TCP ignores that queue.
    pub small_queues: Option<u64>,
    /// Send buffers; `None`: data is only a byte count.
    pub buffers: Option<Buffers>,
    /// Memory used by a send buffer beyond its payload, bytes (Linux `truesize`).
    pub buffer_overhead: u32,
    /// Send buffer that blocks an application with an endless write or one long transfer, with one segment
    /// per buffer. `None`: the application hands over everything at once. Used only without `buffers`.
    pub writer: Option<SendLimit>,
    /// Recipe for each connection's controller.
    pub controller: Recipe,
    /// Slow-start algorithm of each connection; `None`: the controller's own.
    pub slow_start: Option<SlowStartConfig>,
    /// Segments written and sent at the same instant take a fast path with the same outcome
    /// (`send_buffer.rs`).
    pub fills: bool,
}

/// How data is received and acknowledged.
#[derive(Clone, Debug)]
pub struct ReceiveConfig {
    /// Delayed-ACK policy.
    pub delayed_ack: DelayedAck,
    /// Delayed-ACK timeout; with `DelayedAck::Linux` its initial value.
    pub delack_timeout: Span,
    /// SACK compression: duplicate ACKs after the first three are delayed (Linux 4.18 on).
    pub sack_compression: bool,
    /// The receiver conceals losses, and acknowledges data ahead of its arrival: this fraction of a round
    /// trip's data, in units of 1/65536. `None`: an honest receiver.
    pub optimistic_acks: Option<u32>,
    /// Initial advertised window, bytes.
    pub initial_rwnd: u32,
    /// Initial advertised window of the connecting end, bytes; 0: `initial_rwnd`.
    pub initiator_rwnd: u32,
    /// Receive window that the first buffer can hold, bytes; 0: `initial_rwnd`.
    pub first_buffer: u64,
    /// Maximum receive window, bytes.
    pub receive_buffer: u64,
    /// Maximum receive buffer, bytes of memory including the packets' overhead (Linux `tcp_rmem`); 0: the
    /// memory of full segments for `receive_buffer`.
    pub receive_memory: u64,
    /// The offered window may shrink when memory runs short (Linux `tcp_shrink_window`; off by default, as
    /// there). RFC 9293 §3.8.6 advises against it.
    pub shrink_window: bool,
    /// Quarters of a socket buffer available to payload; the rest is reserved for the packets' overhead.
    pub window_quarters: u8,
    /// The whole window is offered from the start. Otherwise it opens by two segments for each segment received.
    pub whole_window: bool,
    /// The receiver reports duplicates (RFC 2883).
    pub dsack: bool,
    /// The application reads by [`Connection::read`](crate::Connection::read); otherwise it reads at once.
    pub explicit_reads: bool,
    /// The receiver processes the next in-order segment on a fast path with the same outcome.
    pub predicts: bool,
}

/// Retransmission timeouts, patience, and the accuracy of timers.
#[derive(Clone, Debug)]
pub struct TimerConfig {
    /// RTO estimator.
    pub rto_style: RtoStyle,
    /// RTO before the first RTT sample (RFC 6298 §2.1).
    pub initial_rto: Span,
    /// Minimum RTO (RFC 6298 §2.4).
    pub min_rto: Span,
    /// Maximum RTO (RFC 6298 §2.5).
    pub max_rto: Span,
    /// RTO after a handshake without an RTT sample (RFC 6298 §5.7).
    pub fallback_rto: Span,
    /// SYN retransmissions at constant intervals before the backoff begins (Linux 6.5 `tcp_syn_linear_timeouts`).
    pub syn_linear_timeouts: u8,
    /// Retransmissions of a SYN or SYN-ACK before giving up, not counting those of a SYN at constant intervals.
    pub syn_retries: u8,
    /// Retransmissions of data before giving up (Linux `tcp_retries2`).
    pub data_retries: u8,
    /// Timer ticks per second on the host; 0: exact timers.
    pub hz: u32,
    /// Rounding of timers longer than one tick.
    pub wheel: Wheel,
    /// Tick phase, ns. Hosts are not switched on at time 0.
    pub tick_phase: u64,
}

/// Detection and repair of losses.
#[derive(Clone, Debug)]
pub struct LossConfig {
    /// Loss detection method.
    pub detection: Detection,
    /// DupThresh, segments (Linux `tcp_reordering`).
    pub dup_thresh: u32,
    /// Send new data on the first duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Early retransmit: fewer duplicate ACKs suffice for a small flight (RFC 5827).
    pub early_retransmit: EarlyRetransmit,
    /// Tail loss probes (RFC 8985 §7).
    pub tlp: bool,
    /// F-RTO (RFC 5682).
    pub frto: bool,
    /// Undo a reduction shown by DSACKs or timestamps to be spurious.
    pub undo: bool,
    /// RFC 6675 NextSeg rules (3) and (4): without new data, also retransmit segments that are not marked lost.
    pub next_seg_rules: bool,
    /// Without SACK, recovery ends with the ACK of high_seq (RFC 6582 §3.2 step 3). Otherwise the state and
    /// cwnd are kept until data above high_seq is acknowledged (Linux `tcp_try_undo_recovery`).
    pub full_ack_ends: bool,
    /// Recovery rule, copied for each connection.
    pub rule: Rule,
}

/// Path MTU probing by the sender (RFC 4821; Linux `tcp_mtu_probing`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MtuProbing {
    /// Never.
    Off,
    /// After repeated timeouts, because the path may be dropping large packets.
    AfterTimeouts,
    /// Always, starting with small segments.
    Always,
}

choice! { MtuProbing: Off "off", AfterTimeouts "after-timeouts", Always "always" }

impl Config {
    /// Return the configuration after this change.
    pub fn with(mut self, change: impl FnOnce(&mut Config)) -> Config {
        change(&mut self);
        self
    }

    /// Return the slow-start algorithm of a new connection.
    pub fn slow_start(&self) -> StartRule {
        let needs = self.sending.controller.needs();
        match &self.sending.slow_start {
            _ if needs.control || needs.own_start => StartRule::Classic,
            Some(config) => StartRule::new(config, self.sending.iw),
            None if needs.hystart => {
                StartRule::new(&SlowStartConfig::HyStart(HyStartParams::LINUX), self.sending.iw)
            }
            None => StartRule::Classic,
        }
    }

    /// Timestamp value of the host's clock: 1 ms per unit, never zero.
    #[inline]
    pub(crate) fn timestamp(&self, now: Time) -> u32 {
        ((now.0 + self.timers.tick_phase) / 1_000_000) as u32 + 1
    }

    /// Payload of a full segment, bytes.
    pub fn payload(&self) -> u32 {
        match self.smss {
            0 => 1460 - 12 * self.timestamps as u32,
            smss => smss,
        }
    }

    /// Limit the receive window to `bytes`. If the profile limits memory, the maximum buffer becomes the
    /// memory that this window needs in full Ethernet segments, and the initial buffer is no larger (Linux:
    /// the third and the second value of `tcp_rmem`).
    pub fn bound_receive_buffer(&mut self, bytes: u64) {
        if self.receiving.receive_memory > 0 {
            self.receiving.receive_memory = self.switches.packet_memory.full().needed(bytes);
            self.receiving.first_buffer =
                self.receiving.first_buffer.min(Share::default().window(self.receiving.receive_memory));
        }
        self.receiving.receive_buffer = bytes;
    }

    /// Set the first window to the whole segments that fit into the first buffer (Linux `tcp_select_initial_window`).
    /// The end that connects does not know yet whether timestamps will reduce the payload (Linux `tcp_connect_init`).
    pub fn offer_first_buffer(&mut self) {
        let first = self.receiving.first_buffer;
        // An unscaled window field, such as that of a SYN, can express at most 65,535.
        let whole = |segment: u64| whole_segments(first, segment).min(65_535);
        let segment = self.payload() as u64;
        self.receiving.initial_rwnd = whole(segment) as u32;
        self.receiving.initiator_rwnd = whole(segment + 12 * self.timestamps as u64) as u32;
    }

    /// Set the first window of the end that connects to this many segments, without timestamps, of which it does not know
    /// yet (Linux `tcp_connect_init`). The first buffer is enlarged for them, but not beyond the largest one, `receive_buffer`,
    /// if that is set; both ends then offer at most the whole segments that fit (Linux: a route's `initrwnd` and
    /// `tcp_rmem`).
    pub fn offer_first_segments(&mut self, segments: u32, receive_buffer: Option<u64>) {
        let payload = self.payload();
        let sizes = [payload, payload + 12 * self.timestamps as u32];
        let mut first = sizes.map(|size| segments.saturating_mul(size));
        let receiving = &mut self.receiving;
        if let Some(bytes) = receive_buffer {
            let most = Share::default().window(receiving.receive_memory);
            receiving.first_buffer = receiving.first_buffer.max(first[0].into()).min(most);
            receiving.receive_buffer = bytes;
            let fits = sizes.map(|size| whole_segments(receiving.first_buffer, size.into()) as u32);
            first = [first[0].min(fits[0]), first[1].min(fits[1])];
            receiving.initial_rwnd = first[0];
        }
        receiving.initiator_rwnd = first[1];
    }

    /// Length of a timer tick; zero: exact timers.
    pub fn tick(&self) -> Span {
        match self.timers.hz {
            0 => Span::ZERO,
            hz => Span(1_000_000_000 / hz as u64),
        }
    }
}

/// Bytes of the whole segments that fit into a buffer, or all of it if none fits.
fn whole_segments(buffer: u64, segment: u64) -> u64 {
    match buffer > segment {
        true => buffer / segment * segment,
        false => buffer,
    }
}
