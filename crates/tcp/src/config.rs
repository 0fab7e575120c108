//! Constants of one endpoint, and the settings that a scenario may change; `profiles` holds the named sets.

mod profiles;
mod stack;

use ackclock_cc::controller::Recipe;
use ackclock_cc::slow_start::HyStartParams;
use ackclock_cc::{Rule, SlowStartConfig, StartRule};
use ackclock_core::{choice, Span, Time};

use crate::memory::Share;

pub use profiles::{is_linux_today, PROFILES};
pub use stack::{MetricsCache, Stack, Switches};

/// How losses are detected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detection {
    /// Three SACKed segments above (RFC 6675 IsLost); without SACK three duplicate ACKs (RFC 5681).
    Dupthresh,
    /// Forward acknowledgment with lost-retransmission detection (Linux up to 4.x).
    Fack,
    /// RACK (RFC 8985 §6; Linux 4.4 on).
    Rack,
}

choice! { Detection: Dupthresh "dupthresh", Fack "fack", Rack "rack" }

/// How the retransmission timeout follows RTT samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtoStyle {
    /// RFC 6298.
    Rfc6298,
    /// Linux `tcp_rtt_estimator`.
    Linux,
}

/// When a receiver acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayedAck {
    /// Acknowledge every segment at once.
    Off,
    /// Every second segment, or after the timeout (RFC 1122 §4.2.3.2, RFC 5681 §4.2).
    Rfc,
    /// RFC 1122 with up to 16 quick ACKs at the start and an adaptive timeout of 40-200 ms, as in Linux.
    Linux,
}

/// Early retransmit for windows of fewer than four segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EarlyRetransmit {
    /// No early retransmit.
    Off,
    /// RFC 5827 without delay.
    Rfc5827,
    /// Linux 3.5-4.10: a quarter of the RTT later, unless anything arrives.
    Delayed,
}

choice! { EarlyRetransmit: Off "off", Rfc5827 "rfc5827", Delayed "delayed" }

/// Use of explicit congestion notification by an endpoint (RFC 3168, RFC 9768; Linux `tcp_ecn`, 0 to 5 in another order).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnUse {
    /// No ECN.
    Off,
    /// Agree if the peer requests it.
    Accept,
    /// Request it, and agree.
    Ask,
    /// Request accurate ECN, and agree to any kind that the peer requests.
    AccEcn,
    /// Agree to accurate ECN, and request nothing.
    AccEcnAccept,
    /// Agree to accurate ECN, and request RFC 3168.
    AccEcnAsk,
}

choice! { EcnUse: Off "off", Accept "accept", Ask "ask", AccEcn "accecn", AccEcnAccept "accecn-accept", AccEcnAsk "accecn-ask" }

impl EcnUse {
    /// Whether it agrees to RFC 3168.
    pub fn accepts(self) -> bool {
        self != EcnUse::Off
    }

    /// Whether it agrees to RFC 9768.
    pub fn accepts_accurate(self) -> bool {
        matches!(self, EcnUse::AccEcn | EcnUse::AccEcnAccept | EcnUse::AccEcnAsk)
    }
}

/// Settings of accurate ECN (Linux `tcp_ecn_option`, `tcp_ecn_option_beacon`, `tcp_ecn_fallback`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccEcnRules {
    /// When the option is sent: 0 never, 1 if it reports something new, 2 always if the path passes it, 3
    /// always.
    pub option: u8,
    /// Minimum number of options per round trip; 0: no minimum.
    pub beacon: u8,
    /// The peer's report on the mark of a SYN is checked.
    pub fallback: bool,
}

/// Rounding of ordinary timers, implemented in `ticks.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wheel {
    /// No rounding: each timer fires at its tick.
    Exact,
    /// Up to 1/256 of its time (Linux 2.6.36-4.7).
    Slack,
    /// Up to an eighth of its time (Linux 4.8 on).
    Levels,
}

/// Whether a FIN waits for the congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FinRule {
    /// The FIN waits for the congestion window like every other segment.
    Waits,
    /// A FIN without data is sent whatever the window (Linux `tcp_cwnd_test`; up to 2012 also a buffer of one packet
    /// with data and FIN).
    AloneLeaves,
    /// The segment with the FIN is sent whatever the window, even if it carries data.
    WithDataLeaves,
}

choice! { FinRule: Waits "off", AloneLeaves "alone", WithDataLeaves "with-data" }

/// When departures are paced (Linux `sk_pacing_status`; the formula is in `sender/pacing.rs`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pacing {
    /// Every segment after the first ten waits for the pacing rate.
    pub on: bool,
    /// The initial window is spread over the RTT of the handshake.
    pub initial_window: bool,
    /// The rate is computed even if nothing waits for it, for TCP_INFO. (Packets of several segments need it anyway.)
    pub measured: bool,
    /// Share of cwnd per srtt while cwnd is below half of ssthresh, percent (Linux `tcp_pacing_ss_ratio`).
    pub ss_percent: u32,
    /// Share of cwnd per srtt from half of ssthresh on, percent (Linux `tcp_pacing_ca_ratio`).
    pub ca_percent: u32,
    /// Bound of the rate, bytes/s (SO_MAX_PACING_RATE).
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

/// Limit of the send buffer, in Linux's accounting of memory (SO_SNDBUF, `tcp_wmem`), bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendLimit {
    /// Now.
    pub bytes: u64,
    /// Upper bound of a buffer that grows with the window; a buffer set by the application does not grow.
    pub most: u64,
}

impl SendLimit {
    /// Set by the application: it stays.
    pub fn fixed(bytes: u64) -> SendLimit {
        SendLimit { bytes, most: 0 }
    }
}

/// Data is sent from buffers, as Linux does: a write fills them, PSH is set where Linux sets it, and the time that they
/// limit the sender is measured. Without, data is a number of bytes, and PSH is on the last segment written so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffers {
    /// Bytes that the application may have written without acknowledgment; `None`: unlimited.
    pub limit: Option<SendLimit>,
    /// Bytes that may wait unsent before a write blocks (Linux `tcp_notsent_lowat`); `u64::MAX`: unlimited.
    pub notsent_lowat: u64,
    /// New data leaves in packets of several segments; none: each segment is a packet.
    pub tso: Option<Tso>,
    /// Size above which an application splits its data into successive write calls; `u64::MAX`: one call.
    pub call_bytes: u64,
}

impl Buffers {
    /// Neither a limit nor packets of several segments.
    pub const UNLIMITED: Buffers =
        Buffers { limit: None, notsent_lowat: u64::MAX, tso: None, call_bytes: u64::MAX };
}

/// Bytes of one write call of an application that has more to write.
pub const WRITE: u64 = 256 << 10;

/// Size of packets with several segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tso {
    /// Minimum number of segments of one packet (Linux `tcp_min_tso_segs`).
    pub min_segments: u32,
    /// Fraction of the window that is used at once; less room may wait for an ACK (Linux
    /// `tcp_tso_win_divisor`).
    pub win_divisor: u32,
}

impl Tso {
    /// Linux's default.
    pub const LINUX: Tso = Tso { min_segments: 2, win_divisor: 3 };
}

/// Constants of one endpoint.
#[derive(Clone, Debug)]
pub struct Config {
    /// Payload of a full segment, bytes; 0 = 1460 less the timestamp option.
    pub smss: u32,
    /// Largest segment that the path is known to carry, options included, bytes; smaller than the advertised
    /// one if a router said so.
    pub path_mss: u32,
    /// Settings that are the same in every profile.
    pub switches: Switches,
    /// Initial window, segments.
    pub iw: u32,
    /// Offer and use SACK (RFC 2018).
    pub sack: bool,
    /// Offer and use timestamps (RFC 7323).
    pub timestamps: bool,
    /// How losses are inferred.
    pub detection: Detection,
    /// dupthresh, and Linux's `tcp_reordering`.
    pub dup_thresh: u32,
    /// Which estimator sets the RTO.
    pub rto_style: RtoStyle,
    /// RTO before the first RTT sample (RFC 6298 §2.1).
    pub initial_rto: Span,
    /// Minimum RTO (RFC 6298 §2.4).
    pub min_rto: Span,
    /// Greatest RTO (RFC 6298 §2.5).
    pub max_rto: Span,
    /// RTO after a handshake without an RTT sample (RFC 6298 §5.7).
    pub fallback_rto: Span,
    /// SYN retransmissions at constant intervals before they back off (Linux 6.5 `tcp_syn_linear_timeouts`).
    pub syn_linear_timeouts: u8,
    /// Retransmissions of a SYN or SYN-ACK before giving up; those of a SYN at constant intervals come on top.
    pub syn_retries: u8,
    /// Retransmissions of data before giving up (Linux `tcp_retries2`).
    pub data_retries: u8,
    /// How ACKs are delayed.
    pub delayed_ack: DelayedAck,
    /// Delayed-ACK timeout of `DelayedAck::Rfc`.
    pub delack_timeout: Span,
    /// Time for which further duplicate ACKs are delayed after the first three; zero = off (Linux 4.18 on).
    pub sack_compression: bool,
    /// New data on the first duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Early retransmit: fewer duplicate ACKs suffice for a small flight (RFC 5827).
    pub early_retransmit: EarlyRetransmit,
    /// Tail loss probes (RFC 8985 §7).
    pub tlp: bool,
    /// F-RTO (RFC 5682).
    pub frto: bool,
    /// Undo a reduction that DSACKs or timestamps show to be needless.
    pub undo: bool,
    /// RFC 6675 NextSeg rules (3) and (4): retransmit beyond what is marked lost when there is no new data.
    pub next_seg_rules: bool,
    /// Grow by ACKs instead of segments acknowledged (Linux before the stretch-ACK fixes of 2015).
    pub count_acks: bool,
    /// The receiver conceals losses, and acknowledges ahead this many 65536ths of what arrives in a round
    /// trip.
    pub optimistic_acks: Option<u32>,
    /// cwnd never exceeds what is in flight by more than `dup_thresh` after an ACK that is dubious (Linux up to 3.1
    /// `tcp_moderate_cwnd`).
    pub moderate_open: bool,
    /// Without SACK, recovery ends with the ACK of high_seq (RFC 6582 §3.2 step 3); otherwise the state is held until
    /// something above it is acknowledged, and cwnd with it (Linux `tcp_try_undo_recovery`).
    pub full_ack_ends: bool,
    /// Slow start again after an idle RTO (RFC 2861 as in Linux; RFC 5681 §4.1).
    pub idle_restart: bool,
    /// Keep cwnd as it is when the application does not fill it (RFC 7661; Linux `tcp_is_cwnd_limited`).
    pub cwnd_validation: bool,
    /// First advertised window, bytes.
    pub initial_rwnd: u32,
    /// First advertised window of the end that connects, bytes; 0 = `initial_rwnd`.
    pub initiator_rwnd: u32,
    /// Window that the first receive buffer holds, bytes; 0 = `initial_rwnd`.
    pub first_buffer: u64,
    /// Greatest receive window, bytes.
    pub receive_buffer: u64,
    /// Largest receive buffer, bytes of memory including packets' overhead (Linux `tcp_rmem`); 0: the size
    /// that full segments need for `receive_buffer`.
    pub receive_memory: u64,
    /// Packets of several segments reach the peer as they were sent: no card cuts them up.
    pub whole_packets: bool,
    /// Whether the offered window may shrink to what the memory still holds (Linux `tcp_shrink_window`; off
    /// by default, as there). RFC 9293 §3.8.6 advises against it.
    pub shrink_window: bool,
    /// Quarters of a socket buffer that hold payload; the rest is reserved for the packets' own overhead.
    pub window_quarters: u8,
    /// The whole window is offered from the start; otherwise it opens by two segments for each that arrives.
    pub whole_window: bool,
    /// Payload that it then begins with (Linux `tcp_base_mss`).
    pub base_mss: u32,
    /// Bytes of an IP header.
    pub ip_header: u32,
    /// Duplicates are reported (RFC 2883).
    pub dsack: bool,
    /// Use of ECN.
    pub ecn: EcnUse,
    /// Rules of accurate ECN, where it is used.
    pub accecn: AccEcnRules,
    /// ECN-capable packets carry ECT(1) (RFC 9331) and not ECT(0).
    pub ect1: bool,
    /// Whether and how segments are paced.
    pub pacing: Pacing,
    /// Check segments as from an untrusted peer (RFC 5961); answers to those without payload are at least
    /// this far apart. `None`: the peer is another endpoint of this kind.
    pub validate: Option<Span>,
    /// TCP small queues: limit of data in the host's own queue, bytes of memory (Linux
    /// `tcp_limit_output_bytes`); `None`: TCP ignores that queue.
    pub small_queues: Option<u64>,
    /// Data is sent from buffers.
    pub buffers: Option<Buffers>,
    /// Memory of such a buffer beyond its payload, bytes (Linux `truesize`).
    pub buffer_overhead: u32,
    /// An application that writes without end, or one long transfer, blocks on a send buffer with one segment
    /// per buffer; none: it hands over everything at once. Without `buffers`.
    pub writer: Option<SendLimit>,
    /// An application woken by a packet runs after everything else of this instant: the kernel processes
    /// packets first.
    pub application_waits: bool,
    /// The books that only TCP_INFO reads are kept.
    pub ledger: bool,
    /// The application takes data by [`Connection::read`](crate::Connection::read); otherwise at once.
    pub explicit_reads: bool,
    /// Ticks per second of the host's timers; 0 = exact timers.
    pub hz: u32,
    /// Rounding of a timer of more than one tick.
    pub wheel: Wheel,
    /// Phase of the tick, ns: hosts are not switched on at time 0.
    pub tick_phase: u64,
    /// Recovery rule at the start of a connection; each takes a copy.
    pub rule: Rule,
    /// Makes the controller of each connection.
    pub controller: Recipe,
    /// Slow start of each connection; `None`: the controller's.
    pub slow_start: Option<SlowStartConfig>,
    /// The receiver processes the next segment in order on a fast path with the same outcome.
    pub predicts: bool,
    /// [`Connection::rest`](crate::Connection::rest) is heeded: less memory, with the same outcome.
    pub rests: bool,
    /// Segments written and sent at the same instant take a fast path with the same outcome
    /// (`send_buffer.rs`).
    pub fills: bool,
}

/// Whether the sender probes for the path's MTU (RFC 4821; Linux `tcp_mtu_probing`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MtuProbing {
    /// Never.
    Off,
    /// After repeated timeouts, which a path that drops large packets may have caused.
    AfterTimeouts,
    /// Always, from small segments upwards.
    Always,
}

choice! { MtuProbing: Off "off", AfterTimeouts "after-timeouts", Always "always" }

impl Config {
    /// The slow start of a new connection.
    pub fn slow_start(&self) -> StartRule {
        let needs = self.controller.needs();
        match &self.slow_start {
            _ if needs.control || needs.own_start => StartRule::Classic,
            Some(config) => StartRule::new(config, self.iw),
            None if needs.hystart => StartRule::new(&SlowStartConfig::HyStart(HyStartParams::LINUX), self.iw),
            None => StartRule::Classic,
        }
    }

    /// Value of the timestamp clock: 1 ms, never zero.
    #[inline]
    pub(crate) fn timestamp(&self, now: Time) -> u32 {
        ((now.0 + self.tick_phase) / 1_000_000) as u32 + 1
    }

    /// Payload of a full segment, bytes.
    pub fn payload(&self) -> u32 {
        match self.smss {
            0 => 1460 - 12 * self.timestamps as u32,
            smss => smss,
        }
    }

    /// Bound the receive window by `bytes`. If the profile limits memory, the buffer holds that window in
    /// full Ethernet segments, and is no larger initially (Linux: the second and the third value of
    /// `tcp_rmem`).
    pub fn bound_receive_buffer(&mut self, bytes: u64) {
        if self.receive_memory > 0 {
            self.receive_memory = self.switches.packet_memory.full().needed(bytes);
            self.first_buffer = self.first_buffer.min(Share::default().window(self.receive_memory));
        }
        self.receive_buffer = bytes;
    }

    /// The first window is the part of the first buffer that whole segments fill (Linux `tcp_select_initial_window`). The end that connects does not
    /// know yet that timestamps take room (Linux `tcp_connect_init`).
    pub fn offer_first_buffer(&mut self) {
        let first = self.first_buffer;
        // a header without scaling, such as a SYN's, can express at most 65,535
        let whole =
            |segment: u64| (if first > segment { first / segment * segment } else { first }).min(65_535);
        let segment = self.payload() as u64;
        self.initial_rwnd = whole(segment) as u32;
        self.initiator_rwnd = whole(segment + 12 * self.timestamps as u64) as u32;
    }

    /// Length of a timer tick; zero = exact timers.
    pub fn tick(&self) -> Span {
        match self.hz {
            0 => Span::ZERO,
            hz => Span(1_000_000_000 / hz as u64),
        }
    }
}
