//! Switches of a TCP stack: what a scenario may change in a host's profile, one entry each, in the order in which they are
//! carried out.

use ackclock_cc::SlowStartConfig;
use ackclock_core::schema::{Takes, DURATION, FLAG, RATE, SIZE};
use ackclock_core::{table, Rate, Span};
use ackclock_tcp::{
    Buffers, Config, DelayedAck, Detection, EarlyRetransmit, EcnUse, FinRule, MtuProbing, PacketMemory,
    SendLimit, Tso,
};

/// `/// About. key: type = takes => what it changes;` What changes nothing of [`Config`] is asked for by its name.
macro_rules! stack {
    ($($(#[doc = $about:literal])+ $key:ident: $type:ty = $takes:expr $(=> $apply:expr)?;)*) => {
        table! {
            /// Settings of a host that override its profile; every one absent: as in the profile.
            pub struct Stack "stack" {
                $($(#[doc = $about])+ $key: Option<$type> = $takes;)*
            }
        }

        impl Stack {
            /// Make the changes that are given.
            pub fn apply(&self, config: &mut Config) {
                $($(if let Some(value) = self.$key.clone() {
                    let apply: fn(&mut Config, $type) = $apply;
                    apply(config, value);
                })?)*
            }
        }

        impl Default for Stack {
            fn default() -> Stack {
                Stack { $($key: None,)* }
            }
        }
    };
}

/// Linux `tcp_limit_output_bytes`.
const LIMIT_OUTPUT_BYTES: u64 = 4 << 20;
const SEGMENTS: Takes = Takes::Whole(1, 65_535);

stack! {
    /// Payload of a full segment, options taken off: 64 to 65000 bytes.
    smss: u32 = Takes::Size(64, 65_000) => |config, bytes| config.smss = bytes;
    /// Segments.
    initial_window: u32 = SEGMENTS => |config, segments| config.iw = segments;
    /// Slow-start threshold before the first loss, segments: slow start ends there; absent: arbitrarily high (RFC 5681 §3.1).
    /// What `metrics_cache` remembers comes first.
    initial_ssthresh: u32 = Takes::Whole(2, 1_000_000_000) => |config, segments| config.initial_ssthresh = segments;
    /// Segments that leave before the first ACK of data at most, whatever the initial window; absent: no such bound.
    first_burst_cap: u32 = SEGMENTS => |config, segments| config.first_burst_cap = segments;
    /// Whether a FIN leaves though the congestion window is full: never, if it carries no data, or even with the last data
    /// (an initial window of 10 is then really one of 11).
    fin_ignores_cwnd: FinRule = FinRule::TAKES => |config, rule| config.fin_rule = rule;
    /// Selective acknowledgements.
    sack: bool = FLAG => |config, on| config.sack = on;
    /// TCP timestamps.
    timestamps: bool = FLAG => |config, on| config.timestamps = on;
    /// How losses are detected; "fack" and "rack" need SACK.
    detection: Detection = Detection::TAKES => |config, how| config.detection = how;
    /// Retransmission timeout before the first RTT sample.
    initial_rto: Span = DURATION => |config, rto| config.initial_rto = rto;
    /// Least retransmission timeout.
    min_rto: Span = DURATION => |config, rto| config.min_rto = rto;
    /// Delayed ACKs.
    delayed_ack: bool = FLAG => |config, on| match (on, config.delayed_ack) {
        (false, _) => config.delayed_ack = DelayedAck::Off,
        (true, DelayedAck::Off) => config.delayed_ack = DelayedAck::Rfc,
        _ => {}
    };
    /// Of delayed ACKs: the first segments of a connection are acknowledged at once, as Linux does.
    quick_acks: bool = FLAG => |config, on| match (on, config.delayed_ack) {
        (false, DelayedAck::Linux) => config.delayed_ack = DelayedAck::Rfc,
        (true, DelayedAck::Rfc) => config.delayed_ack = DelayedAck::Linux,
        _ => {}
    };
    /// The end that is connected to delays its ACKs whatever `delayed_ack` says, so that its response carries the ACK of the
    /// request.
    response_carries_ack: bool = FLAG => |config, on| config.responder_delays_acks = on;
    /// In slow start the window grows by one segment per ACK, not by the segments acknowledged (as Linux did until 2015).
    count_acks: bool = FLAG => |config, on| config.count_acks = on;
    /// The receiver cheats: it acknowledges each segment in so many pieces.
    ack_splits: u32 = Takes::Whole(1, 100) => |config, pieces| config.ack_splits = pieces;
    /// The receiver cheats: it never echoes marks.
    hide_marks: bool = FLAG => |config, on| config.hide_marks = on;
    /// The receiver cheats: it acknowledges what is missing as if it had come, and this share of what comes in a round trip
    /// ahead of it. Goodput is of what comes.
    optimistic_acks: f64 = Takes::Share => |config, share| config.optimistic_acks = Some((share * 65536.0) as u32);
    /// Reordering degree that a connection begins with, segments (a Linux route's `reordering`).
    reordering: u32 = Takes::Whole(1, 300) => |config, segments| config.reordering = segments;
    /// Tail loss probes.
    tlp: bool = FLAG => |config, on| config.tlp = on;
    /// F-RTO.
    frto: bool = FLAG => |config, on| config.frto = on;
    /// Undo of needless window reductions.
    undo: bool = FLAG => |config, on| config.undo = on;
    /// Limited transmit (RFC 3042).
    limited_transmit: bool = FLAG => |config, on| config.limited_transmit = on;
    /// Early retransmit: RFC 5827's or Linux's delayed form.
    early_retransmit: EarlyRetransmit = EarlyRetransmit::TAKES => |config, form| config.early_retransmit = form;
    /// Small window after an idle time.
    idle_restart: bool = FLAG => |config, on| config.idle_restart = on;
    /// The receiver joins SACKs that follow each other closely.
    sack_compression: bool = FLAG => |config, on| config.sack_compression = on;
    /// Greatest receive window.
    receive_buffer: u64 = SIZE => |config, bytes| (config.receive_buffer, config.receive_memory) = (bytes, 0);
    /// Receive buffer set by the application (SO_RCVBUF), which then does not grow by itself; how much of it the window may
    /// fill is the profile's.
    socket_buffer: u64 = SIZE => |config, bytes| {
        let window = bytes / 4 * config.window_quarters as u64;
        (config.receive_buffer, config.first_buffer, config.receive_memory) = (window, window, 0);
        if config.whole_window {
            config.initial_rwnd = window.min(u32::MAX as u64) as u32;
        }
    };
    /// What a packet takes of the memory for received data: as behind a device that copies it (2304 bytes for 1448 of payload),
    /// or as between namespaces of one machine (veth), where the sender's memory is handed on (832 bytes and the payload).
    packet_memory: PacketMemory = PacketMemory::TAKES => |config, kept| config.packet_memory = kept;
    /// The sender looks for the path's MTU by itself (RFC 4821; Linux `tcp_mtu_probing`): never, after repeated timeouts, or from the
    /// start, when segments hold 1024 bytes and grow with each probe that is acknowledged.
    mtu_probing: MtuProbing = MtuProbing::TAKES => |config, when| config.mtu_probing = when;
    /// First window that a receiver advertises, full segments; absent: the profile's 65160 bytes.
    initial_receive_window: u32 = SEGMENTS => |config, segments| {
        config.initial_rwnd = segments.saturating_mul(config.payload());
        config.receive_buffer = config.receive_buffer.max(config.initial_rwnd as u64);
    };
    /// Multiplicative decrease, where the controller has a choice (cubic: 0.7).
    beta: f64 = Takes::Number(0.001, 0.999);
    /// The same after a mark instead of a loss (ABE, RFC 8511: 0.8 for reno, 0.85 for cubic); absent: as after a loss.
    ecn_beta: f64 = Takes::Number(0.001, 0.999);
    /// How a connection grows until it knows the path, beside any controller that begins with slow start; absent: as the
    /// controller does ("hystart" for cubic, "classic" for the others).
    slow_start: SlowStartConfig = Takes::OneOf(SlowStartConfig::FAMILY) => |config, rule| config.slow_start = Some(rule);
    /// Explicit congestion notification (RFC 3168): never, if the peer asks, or ask for it; "accecn" asks for accurate ECN (RFC
    /// 9768), "accecn-accept" and "accecn-ask" agree to it and ask for none or for that of RFC 3168; absent: as the profile and
    /// the controller want it.
    ecn: EcnUse = EcnUse::TAKES;
    /// ECN-capable packets carry ECT(1), the mark of L4S (RFC 9331), and not ECT(0); absent: as the controller wants it.
    ect1: bool = FLAG;
    /// The option of accurate ECN: 0 never, 1 where it tells something new, 2 always if the path lets it through, 3 always (Linux
    /// `tcp_ecn_option`).
    accecn_option: u32 = Takes::Whole(0, 3) => |config, option| config.accecn.option = option as u8;
    /// Ticks of the kernel's clock per second.
    hz: u32 = Takes::Whole(1, 1_000_000) => |config, hz| config.hz = hz;
    /// Departures wait for the pacing rate, from the eleventh segment on: 200 % of cwnd per SRTT in slow start, 120 % later.
    pacing: bool = FLAG => |config, on| config.pacing.on = on;
    /// The initial window is spread over the RTT of the handshake.
    pace_initial_window: bool = FLAG => |config, on| config.pacing.initial_window = on;
    /// Bound of the pacing rate (SO_MAX_PACING_RATE); it turns pacing on.
    max_pacing_rate: Rate = RATE => |config, rate| (config.pacing.on, config.pacing.most) = (true, (rate.0 / 8).max(1));
    /// TCP small queues: where the host has a device of its own, TCP leaves about a millisecond's worth in its queue.
    small_queues: bool = FLAG => |config, on| match on {
        false => config.small_queues = None,
        true => config.small_queues = config.small_queues.or(Some(LIMIT_OUTPUT_BYTES)),
    };
    /// Most that TCP leaves there, whatever the rate, as Linux counts memory; absent: 4 MiB (Linux `tcp_limit_output_bytes`).
    limit_output_bytes: u64 = SIZE => |config, bytes| config.small_queues = config.small_queues.map(|_| bytes);
    /// Data leaves in packets of several segments, sized and deferred as Linux does for segmentation offload, and arrives in
    /// them, as between virtual machines.
    tso: bool = FLAG => |config, on| if on {
        config.buffers.get_or_insert(Buffers::UNLIMITED).tso = Some(Tso::LINUX);
    };
    /// What written data may take in memory before the application waits, as Linux counts it: payload, and 832 bytes a packet (456 in `linux-3.0`
    /// and `linux-2.6`). Without `tso` each segment is a packet.
    send_buffer: u64 = SIZE => |config, bytes| {
        config.buffers.get_or_insert(Buffers::UNLIMITED).limit = Some(SendLimit::fixed(bytes));
    };
    /// The hosts remember ssthresh from one connection to the next; absent: they do not.
    metrics_cache: MetricsCache = Takes::Table(MetricsCache::TABLE);
}

table! {
    /// What the hosts remember of earlier connections to a destination (Linux tcp_metrics), and start the next with.
    ///
    /// Without ssthresh the first connection is a cold start; those after it are warm.
    pub struct MetricsCache "metrics-cache" {
        /// Name; groups that give the same one share what is remembered.
        destination: String = Takes::Text, "peer".to_string();
        /// Slow-start threshold remembered at the start, segments; absent: none.
        ssthresh: Option<u32> = Takes::Whole(2, 1_000_000_000);
        /// Window remembered at the start, segments; no connection starts with it.
        cwnd: Option<u32> = Takes::Whole(1, 1_000_000_000);
    }
}
