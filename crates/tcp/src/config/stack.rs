//! Settings of a TCP stack that a scenario may change, one entry each, in the order in which they are applied
//! to the host's profile.

use ackclock_cc::{SlowStartConfig, Window};
use ackclock_core::schema::{Rules, Takes, DURATION, FLAG, RATE, SIZE};
use ackclock_core::{table, Rate, Span};

use super::{
    Buffers, Config, DelayedAck, Detection, EarlyRetransmit, EcnUse, FinRule, MtuProbing, SendLimit, Tso,
};
use crate::memory::PacketMemory;

/// Form of an entry. `/// About. key: type = takes, default;`: a mechanism reads the key as a field of
/// [`Switches`], whose default is the same in every profile. `/// About. key: type = takes => change;`: the
/// key changes a field of [`Config`] that profiles set. Keys with neither are requested by name.
macro_rules! stack {
    ($($(#[doc = $about:literal])+ $key:ident: $type:ty = $takes:expr $(, $default:expr)? $(=> $apply:expr)?;)*) => {
        /// Settings that are equal in every profile unless a scenario changes them.
        #[derive(Clone, Debug)]
        pub struct Switches {
            $($(#[doc = concat!("See [`Stack`]; `", stringify!($default), "` unless a scenario says otherwise.")] pub $key: $type,)?)*
        }

        impl Switches {
            /// Values for a scenario that sets no key.
            pub(crate) const USUAL: Switches = Switches { $($($key: $default,)?)* };
        }

        table! {
            /// Settings of TCP that override the host profile. The default of every key is the profile's value.
            pub struct Stack "stack" {
                $($(#[doc = $about])+ $key: Option<$type> = $takes;)*
            }
            rules Stack::judge_keys
        }

        impl Stack {
            /// Apply the keys that are set to `config`.
            pub fn apply(&self, config: &mut Config) {
                $($(if let Some(value) = self.$key.clone() {
                    let apply: fn(&mut Config, $type) = $apply;
                    apply(config, value);
                })?
                $(if let Some(value) = self.$key.clone() {
                    let _: &$type = &$default;
                    config.switches.$key = value;
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
    /// Payload of a full segment in bytes, without TCP options: 64 to 65000.
    smss: u32 = Takes::Size(64, 65_000) => |config, bytes| config.smss = bytes;
    /// Initial congestion window, segments.
    initial_window: u32 = SEGMENTS => |config, segments| config.sending.iw = segments;
    /// Initial slow-start threshold, segments. Default: arbitrarily high (RFC 5681 §3.1). A value that `metrics_cache`
    /// remembers takes precedence.
    initial_ssthresh: u32 = Takes::Whole(2, 1_000_000_000), Window::INFINITE;
    /// Maximum number of segments sent before the first ACK of data, regardless of the initial window. Default: no
    /// maximum.
    first_burst_cap: u32 = SEGMENTS, 0;
    /// Whether a FIN may be sent when the congestion window is full: never ("off"), if it carries no data ("alone"), or
    /// even with the last data ("with-data": an initial window of 10 then sends up to 11 segments).
    fin_ignores_cwnd: FinRule = FinRule::TAKES, FinRule::Waits;
    /// Selective acknowledgments (SACK, RFC 2018).
    sack: bool = FLAG => |config, on| config.sack = on;
    /// TCP timestamps (RFC 7323).
    timestamps: bool = FLAG => |config, on| config.timestamps = on;
    /// Loss detection of the sender. "fack" and "rack" require SACK.
    detection: Detection = Detection::TAKES => |config, how| config.loss.detection = how;
    /// Retransmission timeout (RTO) before the first RTT sample.
    initial_rto: Span = DURATION => |config, rto| config.timers.initial_rto = rto;
    /// Minimum retransmission timeout (RTO).
    min_rto: Span = DURATION => |config, rto| config.timers.min_rto = rto;
    /// Delayed ACKs.
    delayed_ack: bool = FLAG => |config, on| match (on, config.receiving.delayed_ack) {
        (false, _) => config.receiving.delayed_ack = DelayedAck::Off,
        (true, DelayedAck::Off) => config.receiving.delayed_ack = DelayedAck::Rfc,
        _ => {}
    };
    /// With delayed ACKs: acknowledge the first segments of a connection immediately, as Linux does.
    quick_acks: bool = FLAG => |config, on| match (on, config.receiving.delayed_ack) {
        (false, DelayedAck::Linux) => config.receiving.delayed_ack = DelayedAck::Rfc,
        (true, DelayedAck::Rfc) => config.receiving.delayed_ack = DelayedAck::Linux,
        _ => {}
    };
    /// The server delays its ACKs regardless of `delayed_ack`, so its response carries the ACK of the request.
    response_carries_ack: bool = FLAG, false;
    /// In slow start cwnd grows by one segment per ACK, not by the number of acknowledged segments (as in Linux until
    /// 2015).
    count_acks: bool = FLAG => |config, on| config.sending.count_acks = on;
    /// The receiver cheats: it acknowledges each segment in this many parts.
    ack_splits: u32 = Takes::Whole(1, 100), 1;
    /// The receiver cheats: it never reports ECN marks.
    hide_marks: bool = FLAG, false;
    /// The receiver cheats: it acknowledges missing data as if it had arrived, and acknowledges data ahead of its
    /// arrival, by this share of the data that arrives in a round trip. Goodput counts only data that arrives.
    optimistic_acks: f64 = Takes::Share => |config, share| config.receiving.optimistic_acks = Some((share * 65536.0) as u32);
    /// Degree of reordering that connections assume initially, segments (Linux `tcp_reordering`). Default: 3.
    reordering: u32 = Takes::Whole(1, 300) => |config, degree| config.loss.dup_thresh = degree;
    /// Tail loss probes (TLP, RFC 8985).
    tlp: bool = FLAG => |config, on| config.loss.tlp = on;
    /// F-RTO: detection of spurious timeouts (RFC 5682).
    frto: bool = FLAG => |config, on| config.loss.frto = on;
    /// Undo window reductions that prove unnecessary.
    undo: bool = FLAG => |config, on| config.loss.undo = on;
    /// Limited transmit (RFC 3042).
    limited_transmit: bool = FLAG => |config, on| config.loss.limited_transmit = on;
    /// Early retransmit: off, as in RFC 5827, or delayed as in Linux.
    early_retransmit: EarlyRetransmit = EarlyRetransmit::TAKES => |config, form| config.loss.early_retransmit = form;
    /// Reduce cwnd after an idle period (RFC 5681 §4.1).
    idle_restart: bool = FLAG => |config, on| config.sending.idle_restart = on;
    /// SACK compression: the receiver sends one ACK for several SACKs in close succession.
    sack_compression: bool = FLAG => |config, on| config.receiving.sack_compression = on;
    /// Memory charged for a received packet: as with a device that copies it ("copied": 2304 bytes for 1448 of
    /// payload), or as between network namespaces of one machine (veth), which pass on the sender's buffer
    /// ("handed-on": 832 bytes plus the payload).
    packet_memory: PacketMemory = PacketMemory::TAKES, PacketMemory::Copied;
    /// Maximum receive window. In `linux-6` it is the payload of the full Ethernet segments that fit in the largest
    /// receive buffer. A value smaller than the initial buffer also replaces that buffer, and so reduces the first
    /// window.
    receive_buffer: u64 = SIZE => |config, bytes| config.bound_receive_buffer(bytes);
    /// Receive buffer that the application sets (SO_RCVBUF). It does not grow automatically. The profile determines the
    /// share of it that the receive window may use.
    socket_buffer: u64 = SIZE => |config, bytes| {
        let window = bytes / 4 * config.receiving.window_quarters as u64;
        (config.receiving.receive_buffer, config.receiving.first_buffer, config.receiving.receive_memory) = (window, window, 0);
        if config.receiving.whole_window {
            config.receiving.initial_rwnd = window.min(u32::MAX as u64) as u32;
        }
    };
    /// Packetization layer path MTU discovery (RFC 4821, Linux `tcp_mtu_probing`): never, after repeated timeouts, or
    /// from the start. In the last case, segments begin at 1024 bytes and grow with each acknowledged probe.
    mtu_probing: MtuProbing = MtuProbing::TAKES, MtuProbing::Off;
    /// First receive window that the receiver advertises, full segments. Default: the profile's (65160 bytes in
    /// `linux-6`).
    initial_receive_window: u32 = SEGMENTS => |config, segments| {
        config.receiving.initial_rwnd = segments.saturating_mul(config.payload());
        config.receiving.receive_buffer = config.receiving.receive_buffer.max(config.receiving.initial_rwnd as u64);
    };
    /// Multiplicative decrease factor, for controllers that allow it to be set (cubic: 0.7).
    beta: f64 = Takes::Number(0.001, 0.999);
    /// Multiplicative decrease factor after an ECN mark (ABE, RFC 8511: 0.8 for reno, 0.85 for cubic). Default: the
    /// same as after a loss.
    ecn_beta: f64 = Takes::Number(0.001, 0.999);
    /// Slow-start algorithm, for any controller that begins with slow start. Default: "hystart" for cubic, except in the
    /// profiles `linux-2.6` and `freebsd-4`; "classic" for the others.
    slow_start: SlowStartConfig = Takes::OneOf(SlowStartConfig::FAMILY) => |config, rule| config.sending.slow_start = Some(rule);
    /// Explicit congestion notification (RFC 3168): "off", "accept" it if the peer requests it, or "ask" for it.
    /// "accecn" requests accurate ECN (RFC 9768). "accecn-accept" and "accecn-ask" accept accurate ECN, but request no
    /// ECN or that of RFC 3168, respectively. Default: the mode that the profile and the controller need.
    ecn: EcnUse = EcnUse::TAKES;
    /// Send ECN-capable packets with ECT(1), the L4S identifier (RFC 9331), instead of ECT(0). Default: on if the
    /// controller needs it.
    ect1: bool = FLAG;
    /// When to send the AccECN option: 0 never, 1 when it reports something new, 2 always if the path passes it, 3
    /// always (Linux `tcp_ecn_option`).
    accecn_option: u32 = Takes::Whole(0, 3) => |config, option| config.accecn.option = option as u8;
    /// Ticks per second of the kernel's timer clock (HZ).
    hz: u32 = Takes::Whole(1, 1_000_000) => |config, hz| config.timers.hz = hz;
    /// Pace segments after the first ten, at 200 % of cwnd per SRTT in slow start and 120 % later.
    pacing: bool = FLAG => |config, on| config.sending.pacing.on = on;
    /// Spread the initial window over the RTT measured by the handshake.
    pace_initial_window: bool = FLAG => |config, on| config.sending.pacing.initial_window = on;
    /// Maximum pacing rate (SO_MAX_PACING_RATE). Setting it turns pacing on.
    max_pacing_rate: Rate = RATE => |config, rate| (config.sending.pacing.on, config.sending.pacing.most) = (true, (rate.0 / 8).max(1));
    /// TCP small queues: TCP keeps only about a millisecond's worth of data in the queue of the host's own device, if
    /// it has one.
    small_queues: bool = FLAG => |config, on| match on {
        false => config.sending.small_queues = None,
        true => config.sending.small_queues = config.sending.small_queues.or(Some(LIMIT_OUTPUT_BYTES)),
    };
    /// With `small_queues`: maximum memory, as Linux counts it, of TCP's packets in that queue, regardless of the rate.
    /// Default: 4 MiB (Linux `tcp_limit_output_bytes`).
    limit_output_bytes: u64 = SIZE => |config, bytes| config.sending.small_queues = config.sending.small_queues.map(|_| bytes);
    /// Send packets of several segments, sized and deferred as Linux does for TCP segmentation offload. Unless a host's
    /// NIC splits them, they also arrive whole, as between virtual machines.
    tso: bool = FLAG => |config, on| if on {
        config.sending.buffers.get_or_insert(Buffers::UNLIMITED).tso = Some(Tso::LINUX);
    };
    /// Maximum memory of written data; when it is full, the application waits. Counted as in Linux: payload plus 832
    /// bytes per packet (456 in `linux-3.0` and `linux-2.6`). Without `tso` each segment is a packet.
    send_buffer: u64 = SIZE => |config, bytes| {
        config.sending.buffers.get_or_insert(Buffers::UNLIMITED).limit = Some(SendLimit::fixed(bytes));
    };
    /// Both applications set TCP_NODELAY: a partial segment does not wait for the ACK of an earlier one (Nagle's
    /// algorithm is off).
    nodelay: bool = FLAG, false;
    /// Both applications set TCP_CORK: a partial segment waits until it is full, until the FIN, or for at most 200 ms.
    cork: bool = FLAG, false;
    /// Both applications set TCP_QUICKACK after each read: the data read is acknowledged at once, and exchanges of
    /// requests and responses do not lead to delayed ACKs.
    quickack: bool = FLAG, false;
    /// Hosts remember ssthresh from one connection to the next. Default: they do not.
    metrics_cache: MetricsCache = Takes::Table(MetricsCache::TABLE);
}

impl Stack {
    /// Check the combination of keys: at most one receive buffer, and SACK with FACK and RACK.
    fn judge_keys(&self, rules: &mut Rules) {
        if self.socket_buffer.is_some() && self.receive_buffer.is_some() {
            let found = format!("{} beside receive_buffer", rules.shown("socket_buffer"));
            rules.refuse_as("socket_buffer", found, "one of the two");
        }
        if self.sack == Some(false) && matches!(self.detection, Some(Detection::Fack | Detection::Rack)) {
            let found = format!("{} with sack = false", rules.shown("detection"));
            rules.refuse_as("detection", found, "\"dupthresh\", no detection, or sack = true");
        }
    }
}

table! {
    /// Metrics of earlier connections to a destination, which hosts store and use for the next connection (Linux
    /// tcp_metrics).
    ///
    /// Without `ssthresh` the first connection starts cold and later ones start warm.
    pub struct MetricsCache "metrics-cache" {
        /// Name of the destination. Groups with the same name share the stored metrics.
        destination: String = Takes::Text, "peer".to_string();
        /// Slow-start threshold remembered when the run starts, segments. Default: none.
        ssthresh: Option<u32> = Takes::Whole(2, 1_000_000_000);
        /// Congestion window remembered when the run starts, segments. Hosts record it, but no connection starts with
        /// it. Default: none.
        cwnd: Option<u32> = Takes::Whole(1, 1_000_000_000);
    }
}
