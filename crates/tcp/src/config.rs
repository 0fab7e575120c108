//! Host profiles: named sets of constants, and what a scenario may change in them. Each value names its source.
//!
//! Length: a list of settings, and their values in each profile.

use ackclock_cc::controller::Recipe;
use ackclock_cc::slow_start::HyStartParams;
use ackclock_cc::{Rule, SlowStartConfig, StartRule};
use ackclock_core::{choice, Span, Time};

use crate::memory::Share;
use crate::stack::Switches;

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
    /// Every segment at once.
    Off,
    /// Every second segment, or after the timeout (RFC 1122 §4.2.3.2, RFC 5681 §4.2).
    Rfc,
    /// As `Rfc`, with up to 16 quick ACKs at the start and an adaptive timeout of 40-200 ms.
    Linux,
}

/// Early retransmit for windows of fewer than four segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EarlyRetransmit {
    /// None.
    Off,
    /// RFC 5827, at once.
    Rfc5827,
    /// Linux 3.5-4.10: a quarter of the RTT later, unless anything arrives.
    Delayed,
}

choice! { EarlyRetransmit: Off "off", Rfc5827 "rfc5827", Delayed "delayed" }

/// What an endpoint does with explicit congestion notification (RFC 3168, RFC 9768; Linux `tcp_ecn`, 0 to 5 in another order).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnUse {
    /// Nothing.
    Off,
    /// Agrees if the peer asks.
    Accept,
    /// Asks, and agrees.
    Ask,
    /// Asks for accurate ECN, and agrees to what the peer asks for.
    AccEcn,
    /// Agrees to accurate ECN, and asks for none.
    AccEcnAccept,
    /// Agrees to accurate ECN, and asks for that of RFC 3168.
    AccEcnAsk,
}

choice! { EcnUse: Off "off", Accept "accept", Ask "ask", AccEcn "accecn", AccEcnAccept "accecn-accept", AccEcnAsk "accecn-ask" }

impl EcnUse {
    /// Agrees to that of RFC 3168.
    pub fn accepts(self) -> bool {
        self != EcnUse::Off
    }

    /// Agrees to that of RFC 9768.
    pub fn accepts_accurate(self) -> bool {
        matches!(self, EcnUse::AccEcn | EcnUse::AccEcnAccept | EcnUse::AccEcnAsk)
    }
}

/// How accurate ECN is carried out (Linux `tcp_ecn_option`, `tcp_ecn_option_beacon`, `tcp_ecn_fallback`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccEcnRules {
    /// The option: 0 never, 1 where it tells something new, 2 always if the path lets it through, 3 always.
    pub option: u8,
    /// How often at least in a round trip; 0: no matter.
    pub beacon: u8,
    /// What the peer says of a SYN's mark is checked.
    pub fallback: bool,
}

/// How far an ordinary timer is rounded; `ticks.rs` does it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wheel {
    /// Not at all: each fires at its tick.
    Exact,
    /// By 1/256 of its time at most (Linux 2.6.36-4.7).
    Slack,
    /// By an eighth of its time at most (Linux 4.8 on).
    Levels,
}

/// Whether a FIN waits for the congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FinRule {
    /// As every other segment does.
    Waits,
    /// A FIN without data leaves at once (Linux `tcp_cwnd_test`, up to 2012 any buffer of one packet with a FIN).
    AloneLeaves,
    /// The segment with the FIN leaves at once, be it the last one of the data.
    WithDataLeaves,
}

choice! { FinRule: Waits "off", AloneLeaves "alone", WithDataLeaves "with-data" }

/// When departures wait for a rate (Linux `sk_pacing_status`; the formula is in `sender/pacing.rs`).
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
    /// The same from there on (Linux `tcp_pacing_ca_ratio`).
    pub ca_percent: u32,
    /// Bound of the rate, bytes/s (SO_MAX_PACING_RATE).
    pub most: u64,
}

impl Pacing {
    /// Nothing waits.
    pub const OFF: Pacing = Pacing {
        on: false,
        initial_window: false,
        measured: false,
        ss_percent: 200,
        ca_percent: 120,
        most: u64::MAX,
    };
}

/// What the send buffer may take, in Linux's accounting of memory (SO_SNDBUF, `tcp_wmem`), bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendLimit {
    /// Now.
    pub bytes: u64,
    /// At most, where it grows with the window; a buffer that the application set does not.
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
    /// What the application may have written and not acknowledged; none: everything.
    pub limit: Option<SendLimit>,
    /// Bytes that may wait unsent before a write blocks (Linux `tcp_notsent_lowat`); `u64::MAX` = any number.
    pub notsent_lowat: u64,
    /// New data leaves in packets of several segments; none: each segment is a packet.
    pub tso: Option<Tso>,
    /// An application that has more than this to write makes one call after another; `u64::MAX`: one call.
    pub call_bytes: u64,
}

impl Buffers {
    /// Neither a limit nor packets of several segments.
    pub const UNLIMITED: Buffers =
        Buffers { limit: None, notsent_lowat: u64::MAX, tso: None, call_bytes: u64::MAX };
}

/// Bytes of one write call of an application that has more to write.
pub const WRITE: u64 = 256 << 10;

/// How large packets of several segments are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tso {
    /// Least number of segments of one packet (Linux `tcp_min_tso_segs`).
    pub min_segments: u32,
    /// Room for this part of the window is used at once, less of it may wait for an ACK (Linux `tcp_tso_win_divisor`).
    pub win_divisor: u32,
}

impl Tso {
    /// As Linux has it.
    pub const LINUX: Tso = Tso { min_segments: 2, win_divisor: 3 };
}

/// Everything that is constant for one endpoint.
#[derive(Clone, Debug)]
pub struct Config {
    /// Payload of a full segment, bytes; 0 = 1460 less the timestamp option.
    pub smss: u32,
    /// Greatest segment that the path is known to carry, options included, bytes; smaller than what is advertised where a
    /// router said so.
    pub path_mss: u32,
    /// What is the same in every profile.
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
    /// Least RTO (RFC 6298 §2.4).
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
    /// Hold back further duplicate ACKs for up to this long after the first three; zero = off (Linux 4.18 on).
    pub sack_compression: bool,
    /// New data on the first duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Fewer duplicate ACKs for a small flight (RFC 5827).
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
    /// The receiver conceals losses, and acknowledges ahead so many 65536ths of what comes in a round trip.
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
    /// The same of the end that connects; 0 = `initial_rwnd`.
    pub initiator_rwnd: u32,
    /// Window that the first receive buffer holds, bytes; 0 = `initial_rwnd`.
    pub first_buffer: u64,
    /// Greatest receive window, bytes.
    pub receive_buffer: u64,
    /// Greatest receive buffer, bytes of memory, packets' overhead included (Linux `tcp_rmem`); 0: what full segments need
    /// for `receive_buffer`.
    pub receive_memory: u64,
    /// Packets of several segments reach the peer as they were sent: no card cuts them up.
    pub whole_packets: bool,
    /// The window offered may shrink to what the memory still holds (Linux `tcp_shrink_window`; off by default, as there). RFC
    /// 9293 §3.8.6 advises against it.
    pub shrink_window: bool,
    /// Quarters of a socket buffer that hold payload; the rest is set apart for the packets' own overhead.
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
    /// How, if it is accurate.
    pub accecn: AccEcnRules,
    /// ECN-capable packets carry ECT(1) (RFC 9331) and not ECT(0).
    pub ect1: bool,
    /// Whether and how segments are paced.
    pub pacing: Pacing,
    /// Segments are checked as a peer's are who may send anything (RFC 5961), answers to those without payload at least
    /// this far apart; `None`: the peer is another endpoint of this kind.
    pub validate: Option<Span>,
    /// TCP small queues: most that may wait in the host's own queue, bytes of memory (Linux `tcp_limit_output_bytes`); `None`: TCP
    /// does not look at it.
    pub small_queues: Option<u64>,
    /// Data is sent from buffers.
    pub buffers: Option<Buffers>,
    /// Memory that such a buffer takes beside its payload, bytes (Linux `truesize`).
    pub buffer_overhead: u32,
    /// An application that writes without end, or one long transfer, blocks on a send buffer with one segment in each of its
    /// parts; none: it hands over everything at once. Without `buffers`.
    pub writer: Option<SendLimit>,
    /// An application that a packet wakes goes on when everything else of this instant has happened: the kernel takes packets in first.
    pub application_waits: bool,
    /// The books that only TCP_INFO reads are kept.
    pub ledger: bool,
    /// The application takes data by [`Connection::read`](crate::Connection::read); otherwise at once.
    pub explicit_reads: bool,
    /// Ticks per second of the host's timers; 0 = exact timers.
    pub hz: u32,
    /// What rounds a timer of more than one tick.
    pub wheel: Wheel,
    /// Phase of the tick, ns: hosts are not switched on at time 0.
    pub tick_phase: u64,
    /// Recovery rule at the start of a connection; each takes a copy.
    pub rule: Rule,
    /// Makes the controller of each connection.
    pub controller: Recipe,
    /// How each connection begins; `None`: as its controller does.
    pub slow_start: Option<SlowStartConfig>,
    /// A receiver takes the next segment in order on a path of its own: sooner, with the same outcome.
    pub predicts: bool,
    /// [`Connection::rest`](crate::Connection::rest) is heeded: less memory, with the same outcome.
    pub rests: bool,
    /// The same of segments that are written at once because they leave at once (`send_buffer.rs`).
    pub fills: bool,
}

/// What a packet without offload took beside its payload up to Linux 3.1: `struct sk_buff` (240 bytes; memory), and headers up
/// to the cache line in which 1448 bytes of payload end. The payload lay behind them.
const HEAD_UP_TO_3_1: u32 = 456;

/// Whether the sender looks for the path's MTU by itself (RFC 4821; Linux `tcp_mtu_probing`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MtuProbing {
    /// It does not.
    Off,
    /// After repeated timeouts, which a path that drops what is large may have caused.
    AfterTimeouts,
    /// Always, from small segments upwards.
    Always,
}

choice! { MtuProbing: Off "off", AfterTimeouts "after-timeouts", Always "always" }

/// Name and one line for each profile.
pub const PROFILES: &[(&str, &str)] = &[
    ("linux-6", "Linux 6 and 7: RACK-TLP, PRR with SafeACK, IW 10, SACK compression, F-RTO"),
    ("linux-3.2", "Linux 3.2: FACK, first PRR, initial RTO 1 s, IW 10"),
    ("linux-3.0", "Linux 3.0: FACK, rate halving, initial RTO 3 s, IW 10"),
    (
        "linux-2.6",
        "Linux 2.6 of 2004: FACK, rate halving, initial RTO 3 s, IW 2, a quarter of each buffer reserved",
    ),
    (
        "freebsd-4",
        "FreeBSD 4: NewReno without SACK, initial RTO 3 s, minimum RTO 1 s, IW 2, 100 ticks per second",
    ),
    ("rfc", "the RFCs: 5681, 6298, 6675, 6928, RFC 9937 for recovery"),
];

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

    /// The profile called `name`, if there is one.
    pub fn profile(name: &str) -> Option<Config> {
        Some(match name {
            "linux-6" => Config::linux_6(),
            "linux-3.2" => Config::linux_3_2(),
            "linux-3.0" => Config {
                // TCP_TIMEOUT_INIT was 3 s before 3.1
                initial_rto: Span::from_secs(3),
                buffer_overhead: HEAD_UP_TO_3_1,
                rule: rule("rate-halving"),
                moderate_open: true,
                ..Config::linux_3_2()
            },
            "linux-2.6" => Config::linux_2_6(),
            "freebsd-4" => Config::freebsd_4(),
            "rfc" => Config::rfc(),
            _ => return None,
        })
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

    /// The receive window is at most `bytes`. Where the profile bounds memory, the buffer holds that window in full segments of an
    /// Ethernet, and is no larger to begin with (Linux: the second and the third value of `tcp_rmem`).
    pub fn bound_receive_buffer(&mut self, bytes: u64) {
        if self.receive_memory > 0 {
            self.receive_memory = self.switches.packet_memory.full().needed(bytes);
            self.first_buffer = self.first_buffer.min(Share::default().window(self.receive_memory));
        }
        self.receive_buffer = bytes;
    }

    /// What the first buffer holds in whole segments is the first window (Linux `tcp_select_initial_window`).
    /// The end that connects does not know yet that timestamps take room (Linux `tcp_connect_init`).
    pub fn offer_first_buffer(&mut self) {
        let first = self.first_buffer;
        // a header without scaling, as a SYN's is, says no more than 65,535
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

    /// What no profile takes for granted is off. Numbers that every TCP has are those of the RFCs; each family of
    /// profiles states its own.
    fn plain() -> Config {
        Config {
            smss: 0,
            path_mss: u32::MAX,
            switches: Switches::USUAL,
            iw: 10, // RFC 6928
            sack: false,
            timestamps: false,
            detection: Detection::Dupthresh,
            dup_thresh: 3, // RFC 5681 §3.2
            rto_style: RtoStyle::Rfc6298,
            initial_rto: Span::from_secs(1),  // RFC 6298 §2.1
            min_rto: Span::from_secs(1),      // RFC 6298 §2.4
            max_rto: Span::from_secs(60),     // RFC 6298 §2.5: at least
            fallback_rto: Span::from_secs(3), // RFC 6298 §5.7
            syn_linear_timeouts: 0,
            syn_retries: 6,
            data_retries: 15,
            delayed_ack: DelayedAck::Rfc,
            delack_timeout: Span::from_ms(200), // RFC 5681 §4.2: below 500 ms
            sack_compression: false,
            limited_transmit: false,
            early_retransmit: EarlyRetransmit::Off,
            tlp: false,
            frto: false,
            undo: false,
            next_seg_rules: false,
            count_acks: false,
            optimistic_acks: None,
            moderate_open: false,
            full_ack_ends: false,
            idle_restart: true, // RFC 5681 §4.1
            cwnd_validation: false,
            initiator_rwnd: 0,
            initial_rwnd: 65_535, // what the header holds without scaling
            first_buffer: 0,
            receive_buffer: 64 << 20,
            receive_memory: 0,
            whole_packets: false,
            shrink_window: false,
            base_mss: 1024,
            ip_header: 20,
            window_quarters: 4,
            whole_window: false,
            dsack: false,
            ecn: EcnUse::Off,
            accecn: AccEcnRules { option: 2, beacon: 3, fallback: true },
            ect1: false,
            pacing: Pacing::OFF,
            validate: None,
            small_queues: None,
            buffers: None,
            buffer_overhead: 832, // SKB_TRUESIZE of a packet's head, in a kernel without WLAN and tunnels; with them 896
            writer: None,
            application_waits: false,
            ledger: false,
            explicit_reads: false,
            hz: 0,
            wheel: Wheel::Exact,
            tick_phase: 0,
            rule: rule("rfc6675"),
            controller: built_in("reno"),
            slow_start: None,
            predicts: true,
            rests: true,
            fills: true,
        }
    }

    fn linux_6() -> Config {
        Config {
            iw: 10, // TCP_INIT_CWND
            sack: true,
            timestamps: true,
            detection: Detection::Rack,
            dup_thresh: 3, // tcp_reordering
            rto_style: RtoStyle::Linux,
            initial_rto: Span::from_secs(1),  // TCP_TIMEOUT_INIT
            min_rto: Span::from_ms(200),      // TCP_RTO_MIN
            max_rto: Span::from_secs(120),    // TCP_RTO_MAX
            fallback_rto: Span::from_secs(3), // TCP_TIMEOUT_FALLBACK
            syn_linear_timeouts: 4,           // tcp_syn_linear_timeouts
            syn_retries: 6,                   // tcp_syn_retries
            data_retries: 15,                 // tcp_retries2
            delayed_ack: DelayedAck::Linux,
            delack_timeout: Span::from_ms(40), // TCP_DELACK_MIN, TCP_ATO_MIN
            sack_compression: true,
            limited_transmit: true,
            early_retransmit: EarlyRetransmit::Off, // replaced by RACK-TLP
            tlp: true,
            frto: true,
            undo: true,
            idle_restart: true, // tcp_slow_start_after_idle
            cwnd_validation: true,
            initial_rwnd: 65_160, // kernel reference: first advertised window with default rmem
            first_buffer: 65_536, // half of tcp_rmem's default
            receive_buffer: 64 << 20,
            receive_memory: 64 << 20, // tcp_rmem's greatest, as the kernel was measured with
            dsack: true,
            hz: 1000,
            wheel: Wheel::Levels,
            small_queues: Some(4 << 20), // tcp_limit_output_bytes
            rule: rule("prr-linux-6"),
            controller: built_in("cubic"),
            ..Config::plain()
        }
    }

    fn linux_3_2() -> Config {
        Config {
            detection: Detection::Fack,
            syn_linear_timeouts: 0,
            syn_retries: 5,
            sack_compression: false,
            small_queues: None, // they came in 3.6
            tlp: false,
            count_acks: true,
            wheel: Wheel::Slack,
            rule: rule("prr-linux-3.2"),
            ..Config::linux_6()
        }
    }

    /// The senders of the study on large pipes (2004). "Memory" marks what no source at hand confirms.
    fn linux_2_6() -> Config {
        Config {
            iw: 2,                           // study sheet, ambiguity A12 (memory); RFC 3390 would allow 3
            initial_rto: Span::from_secs(3), // TCP_TIMEOUT_INIT before 3.1
            buffer_overhead: HEAD_UP_TO_3_1,
            rule: rule("rate-halving"),                 // before 3.2
            moderate_open: true,                        // tcp_moderate_cwnd, up to 3.1
            window_quarters: 3, // tcp_adv_win_scale = 2: a quarter for overhead (study sheet 6.2; memory)
            initial_rwnd: 5_840, // four segments of 1460 (memory)
            first_buffer: 65_535, // three quarters of tcp_rmem of 87380 (memory)
            wheel: Wheel::Exact, // timers have slack since 2.6.36 (memory)
            slow_start: Some(SlowStartConfig::CLASSIC), // HyStart came in 2.6.29
            ..Config::linux_3_2()
        }
    }

    /// The hosts of TCP Westwood in the same study. "Memory" marks what no source at hand confirms.
    fn freebsd_4() -> Config {
        Config {
            iw: 2,                            // study sheet, ambiguity A12 (memory)
            sack: false,                      // study sheet, ambiguity A7 (memory); came with 5.3
            timestamps: true,                 // net.inet.tcp.rfc1323 = 1 (memory)
            detection: Detection::Dupthresh,  // three duplicate ACKs: tcprexmtthresh (memory)
            rto_style: RtoStyle::Rfc6298,     // the same estimator, Jacobson's
            initial_rto: Span::from_secs(3),  // TCPTV_RTOBASE (memory); RFC 2988
            min_rto: Span::from_secs(1),      // TCPTV_MIN (memory); RFC 2988
            max_rto: Span::from_secs(64),     // TCPTV_REXMTMAX (memory)
            fallback_rto: Span::from_secs(3), // as the initial one
            syn_retries: 12,                  // TCP_MAXRXTSHIFT (memory)
            data_retries: 12,                 // the same
            delayed_ack: DelayedAck::Rfc,
            delack_timeout: Span::from_ms(100), // net.inet.tcp.delacktime (memory)
            limited_transmit: false,            // net.inet.tcp.rfc3042 = 0 (memory)
            undo: false,                        // the "bad retransmit" recovery of one RTO is left out
            count_acks: true,                   // RFC 2581: a segment for each ACK
            idle_restart: true,
            cwnd_validation: false, // memory
            full_ack_ends: true,
            initial_rwnd: 65_535, // net.inet.tcp.recvspace (memory); with a larger buffer all of it, at once
            first_buffer: 65_536,
            whole_window: true,      // study sheet 6.2: 2 MiB stay 2 MiB
            hz: 100,                 // HZ of the i386 kernels (memory)
            rule: rule("freebsd-4"), // tcp_newreno_partial_ack and the full ACK of tcp_input
            controller: built_in("reno"),
            slow_start: Some(SlowStartConfig::CLASSIC),
            ..Config::plain()
        }
    }

    fn rfc() -> Config {
        Config {
            iw: 10, // RFC 6928
            sack: true,
            timestamps: true,
            detection: Detection::Dupthresh,
            rto_style: RtoStyle::Rfc6298,
            initial_rto: Span::from_secs(1), // RFC 6298 §2.1
            min_rto: Span::from_secs(1),     // RFC 6298 §2.4
            max_rto: Span::from_secs(60),    // RFC 6298 §2.5
            delayed_ack: DelayedAck::Rfc,
            delack_timeout: Span::from_ms(200), // RFC 5681 §4.2: below 500 ms
            limited_transmit: true,             // RFC 3042
            frto: true,                         // RFC 5682
            undo: true,                         // RFC 3522, RFC 3708
            next_seg_rules: true,               // RFC 6675 §4
            full_ack_ends: true,                // RFC 6582 §3.2 step 3
            idle_restart: true,                 // RFC 5681 §4.1
            cwnd_validation: true,              // RFC 7661
            initial_rwnd: 65_160,
            first_buffer: 65_536,
            dsack: true, // RFC 2883
            rule: rule("prr-rfc9937"),
            controller: built_in("cubic"), // RFC 9438
            ..Config::plain()
        }
    }
}

/// The recovery rule of a profile.
fn rule(name: &str) -> Rule {
    Rule::by_name(name).expect("invariant: a rule of the registry")
}

/// The controller of a profile.
fn built_in(name: &str) -> Recipe {
    Recipe::by_name(name).expect("invariant: a controller of the registry")
}
