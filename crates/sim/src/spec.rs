//! The scenario as the engine reads it: JSON with SI units in whole nanoseconds, bits per second and bytes. The Python
//! front validates and explains; here unknown keys and impossible values are refused once more, tersely.

mod host;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use host::{Batching, Cpu, Gate, Host};

/// A whole scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name, for messages only (not part of the result).
    #[serde(default)]
    pub name: String,
    /// Simulated time, ns.
    pub duration_ns: u64,
    /// The network.
    pub network: Network,
    /// Flow groups; flow ids count through them in order.
    pub flows: Vec<FlowGroup>,
    /// Hosts that are not perfect; flow groups name them.
    #[serde(default)]
    pub hosts: Vec<Host>,
    /// What to record.
    #[serde(default)]
    pub record: Record,
}

/// Which shape the network has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// sender - access - bottleneck - egress - receiver; all flows share every link.
    Chain,
    /// Every flow has its own access and egress link; one shared bottleneck.
    Dumbbell,
    /// As dumbbell, with access links given one by one (`access_list`, taken in turn).
    Wishbone,
    /// Links and paths listed freely.
    Graph,
}

/// The network: three named links for the usual shapes, or a list of links and paths.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Shape.
    pub topology: Topology,
    /// Bytes that links charge on top of the IP packet (14 for Ethernet without FCS).
    #[serde(default)]
    pub framing_bytes: u32,
    /// Sender's side; absent = the sender sits on the bottleneck.
    #[serde(default)]
    pub access: Option<Link>,
    /// Wishbone: the senders' links, taken in turn.
    #[serde(default)]
    pub access_list: Vec<Link>,
    /// The shared link.
    #[serde(default)]
    pub bottleneck: Option<Link>,
    /// Receiver's side; absent = the receiver sits on the bottleneck.
    #[serde(default)]
    pub egress: Option<Link>,
    /// Links of the way back where they differ from the way out.
    #[serde(default)]
    pub reverse: Reverse,
    /// Graph: unidirectional links.
    #[serde(default)]
    pub links: Vec<NamedLink>,
    /// Graph: paths over these links.
    #[serde(default)]
    pub paths: Vec<Path>,
}

/// The way back, link by link; an absent entry mirrors the forward link (rate, delay, queue and loss alike).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Reverse {
    pub access: Option<Link>,
    pub bottleneck: Option<Link>,
    pub egress: Option<Link>,
}

/// A link of a graph.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct NamedLink {
    pub name: String,
    pub link: Link,
}

/// A path of a graph: names of links, in order.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Path {
    pub name: String,
    pub forward: Vec<String>,
    pub backward: Vec<String>,
}

/// A unidirectional link: loss -> queue -> rate -> delay (-> jitter, reordering).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// bit/s; absent = infinite.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// Propagation delay, ns.
    #[serde(default)]
    pub delay_ns: u64,
    /// Queue; absent = unlimited drop-tail.
    #[serde(default)]
    pub queue: Option<Queue>,
    /// Loss ahead of the queue.
    #[serde(default)]
    pub loss: Loss,
    /// What the loss is for; other packets pass and are not counted by it.
    #[serde(default)]
    pub loss_applies_to: AppliesTo,
    /// Random extra delay, uniform in [0, jitter_ns]; order is kept unless `reorder` is set.
    #[serde(default)]
    pub jitter_ns: u64,
    /// Packets that overtake: this share gets no jitter and skips `reorder_by_ns` of the delay.
    #[serde(default)]
    pub reorder: Option<Reorder>,
    /// How rate, delay and loss vary; absent = they do not.
    #[serde(default)]
    pub capacity: Option<Capacity>,
}

/// A varying capacity.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum Capacity {
    /// Changes at listed times; up to the first the link is as its own keys say.
    Schedule {
        steps: Vec<CapacityStep>,
        #[serde(default)]
        repeat_ns: Option<u64>,
    },
    /// Drawn anew at intervals.
    Random {
        every_ns: u64,
        #[serde(default)]
        rate_bps: Option<Distribution>,
        #[serde(default)]
        delay_s: Option<Distribution>,
        #[serde(default)]
        loss: Option<Distribution>,
    },
    /// Delivery opportunities in each millisecond of a trace, the first and the last included.
    Mahimahi { counts: Vec<u32>, opportunity_bytes: u32 },
}

/// A change; what is absent stays as it was.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct CapacityStep {
    pub at_ns: u64,
    #[serde(default)]
    pub rate_bps: Option<u64>,
    #[serde(default)]
    pub delay_ns: Option<u64>,
    #[serde(default)]
    pub loss: Option<f64>,
}

/// Reordering: a share of packets is held back.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Share of packets held back.
    pub probability: f64,
    /// How much later they arrive, ns.
    pub extra_delay_ns: u64,
}

/// A queue and its discipline. Limits count what waits, not the packet in transmission.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum Queue {
    /// True tail drop, limited in packets or bytes.
    DropTail {
        #[serde(default)]
        limit_packets: Option<u32>,
        #[serde(default)]
        limit_bytes: Option<u64>,
    },
    /// netem's limit: packets in the delay line count too.
    NetemLimit { limit_packets: u32 },
    /// CoDel (RFC 8289).
    Codel {
        #[serde(default)]
        limit_packets: Option<u32>,
        #[serde(default = "codel_target")]
        target_ns: u64,
        #[serde(default = "codel_interval")]
        interval_ns: u64,
        #[serde(default)]
        ecn: bool,
    },
    /// Marks (or drops) what arrives while so many packets wait.
    Threshold {
        #[serde(default)]
        limit_packets: Option<u32>,
        mark_packets: u32,
    },
    /// FQ-CoDel (RFC 8290).
    FqCodel {
        #[serde(default)]
        limit_packets: Option<u32>,
        #[serde(default = "codel_target")]
        target_ns: u64,
        #[serde(default = "codel_interval")]
        interval_ns: u64,
        #[serde(default)]
        ecn: bool,
        #[serde(default = "fq_codel_queues")]
        queues: u32,
        #[serde(default = "fq_codel_quantum")]
        quantum_bytes: u32,
    },
    /// PIE (RFC 8033).
    Pie {
        #[serde(default)]
        limit_packets: Option<u32>,
        #[serde(default = "pie_interval")]
        target_ns: u64,
        #[serde(default = "pie_interval")]
        update_ns: u64,
        #[serde(default = "pie_burst")]
        max_burst_ns: u64,
        #[serde(default)]
        ecn: bool,
    },
    /// RED (Floyd, Jacobson 1993), gentle.
    Red {
        limit_packets: u32,
        min_packets: f64,
        max_packets: f64,
        #[serde(default = "red_max_p")]
        max_p: f64,
        #[serde(default = "red_weight")]
        weight: f64,
        #[serde(default)]
        ecn: bool,
    },
}

fn codel_target() -> u64 {
    5_000_000
}
fn codel_interval() -> u64 {
    100_000_000
}
/// RFC 8290 §5.2.
fn fq_codel_queues() -> u32 {
    1024
}
fn fq_codel_quantum() -> u32 {
    1514
}
/// RFC 8033 §4, §5.
fn pie_interval() -> u64 {
    15_000_000
}
fn pie_burst() -> u64 {
    150_000_000
}
fn red_max_p() -> f64 {
    0.1
}
fn red_weight() -> f64 {
    0.002
}

/// A loss model.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum Loss {
    #[default]
    None,
    /// Every packet with probability p.
    Bernoulli { p: f64 },
    /// Two states; p: good -> bad, r: bad -> good, loss in the bad and in the good state.
    GilbertElliott {
        p: f64,
        r: f64,
        #[serde(default = "one")]
        loss_bad: f64,
        #[serde(default)]
        loss_good: f64,
    },
    /// Every `every`-th packet, after `offset` packets.
    Periodic {
        every: u64,
        #[serde(default)]
        offset: u64,
    },
    /// Exactly these packets, counted from 1 in the order of their arrival at the link.
    Listed { packets: Vec<u64> },
    /// Exactly these transmissions.
    Scripted { drops: Vec<Drop> },
}

/// Packets that a loss is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AppliesTo {
    /// Every packet.
    #[default]
    All,
    /// SYN and SYN-ACK.
    Syn,
    /// Packets with payload.
    Data,
}

fn one() -> f64 {
    1.0
}

/// One line of a scripted loss: data segments `first..=last` (counted from 1 in order of first transmission) of a
/// flow, each at its `transmission`-th transmission (0 the original).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Drop {
    #[serde(default)]
    pub flow: u32,
    pub first: u32,
    pub last: u32,
    #[serde(default)]
    pub transmission: u8,
}

/// `count` flows that are alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowGroup {
    /// How many.
    #[serde(default = "one_flow")]
    pub count: u32,
    /// Host profile: see `ackclock_tcp::profile`.
    pub profile: String,
    /// Congestion controller's registry name.
    pub congestion_control: String,
    /// Options of the controller.
    #[serde(default)]
    pub congestion_control_options: BTreeMap<String, OptionValue>,
    /// Recovery rule's registry name; absent = the profile's.
    #[serde(default)]
    pub recovery: Option<String>,
    /// Single settings that differ from the profile.
    #[serde(default)]
    pub stack: Stack,
    /// What the application does.
    pub workload: Workload,
    /// Start of the first flow, ns.
    #[serde(default)]
    pub start_ns: u64,
    /// Start of each further flow after the one before it, ns.
    #[serde(default)]
    pub stagger_ns: u64,
    /// The application stops writing here, ns; absent = at the end.
    #[serde(default)]
    pub stop_ns: Option<u64>,
    /// Graph: name of the path; absent = the first.
    #[serde(default)]
    pub path: Option<String>,
    /// Host of the sending ends; absent = perfect ones.
    #[serde(default)]
    pub host: Option<String>,
    /// Host of the receiving ends; absent = perfect ones.
    #[serde(default)]
    pub peer_host: Option<String>,
}

/// Value of a controller's option.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
#[allow(missing_docs)]
pub enum OptionValue {
    Flag(bool),
    Number(f64),
    Text(String),
}

fn one_flow() -> u32 {
    1
}

/// Settings of a host that override its profile; every field absent by default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Stack {
    /// Payload of a full segment, bytes (SMSS, options already taken off).
    pub smss: Option<u32>,
    pub initial_window: Option<u32>,
    /// First advertised window, full segments.
    pub initial_receive_window: Option<u32>,
    /// Segments that leave before the first ACK of data at most.
    pub first_burst_cap: Option<u32>,
    /// "off", "alone" or "with-data".
    pub fin_ignores_cwnd: Option<String>,
    pub sack: Option<bool>,
    pub timestamps: Option<bool>,
    /// "dupthresh", "fack" or "rack".
    pub detection: Option<String>,
    pub initial_rto_ns: Option<u64>,
    pub min_rto_ns: Option<u64>,
    pub delayed_ack: Option<bool>,
    /// The first segments are acknowledged at once, as Linux does.
    pub quick_acks: Option<bool>,
    /// The end that is connected to delays its ACKs: the response carries the ACK of the request.
    pub response_carries_ack: Option<bool>,
    /// cwnd grows by one per ACK in slow start, not by the segments acknowledged.
    pub count_acks: Option<bool>,
    /// Reordering degree at the start, segments.
    pub reordering: Option<u32>,
    pub tlp: Option<bool>,
    pub frto: Option<bool>,
    pub undo: Option<bool>,
    pub limited_transmit: Option<bool>,
    /// "off", "rfc5827" or "delayed".
    pub early_retransmit: Option<String>,
    pub idle_restart: Option<bool>,
    pub sack_compression: Option<bool>,
    /// Greatest receive window, bytes.
    pub receive_buffer: Option<u64>,
    /// Receive buffer set by the application, bytes; how much of it is window is the profile's.
    pub socket_buffer: Option<u64>,
    pub metrics_cache: Option<MetricsCache>,
    /// Multiplicative decrease in thousandths where the controller has a choice (cubic: 700).
    pub beta_permille: Option<u32>,
    pub hystart: Option<bool>,
    pub hz: Option<u32>,
    pub pacing: Option<bool>,
    pub pace_initial_window: Option<bool>,
    /// "off", "accept" or "ask"; absent: as the profile and the controller want it.
    pub ecn: Option<String>,
    pub tso: Option<bool>,
    /// What written data may take in memory, bytes.
    pub send_buffer: Option<u64>,
}

/// What the hosts remember of earlier connections to a destination.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct MetricsCache {
    pub destination: String,
    /// Segments; 0 = nothing yet.
    #[serde(default)]
    pub ssthresh: u32,
    #[serde(default)]
    pub cwnd: u32,
}

/// A distribution to draw from.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum Distribution {
    Constant {
        value: f64,
    },
    Uniform {
        low: f64,
        high: f64,
    },
    /// ln X normal; `median` = exp(mu).
    Lognormal {
        median: f64,
        sigma: f64,
    },
    Exponential {
        mean: f64,
    },
    /// Each value equally likely.
    Choice {
        values: Vec<f64>,
    },
}

impl From<&Distribution> for ackclock_core::Distribution {
    fn from(spec: &Distribution) -> ackclock_core::Distribution {
        use ackclock_core::Distribution as Core;
        match spec {
            &Distribution::Constant { value } => Core::Constant { value },
            &Distribution::Uniform { low, high } => Core::Uniform { low, high },
            &Distribution::Lognormal { median, sigma } => Core::Lognormal { median, sigma },
            &Distribution::Exponential { mean } => Core::Exponential { mean },
            Distribution::Choice { values } => Core::Choice { values: values.clone() },
        }
    }
}

/// What the application does.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// As much as the connection takes, until the flow's stop.
    Bulk,
    /// This many bytes, then close.
    Transfer {
        /// Bytes.
        bytes: u64,
    },
    /// Client at the receiving end: connect, request, response of `bytes`, close; `count` times, one after another,
    /// each `pause_ns` after the last byte of the one before.
    Fetch {
        /// Response bytes.
        bytes: u64,
        /// Request bytes.
        #[serde(default = "request_bytes")]
        request_bytes: u64,
        /// Fetches.
        #[serde(default = "one_flow")]
        count: u32,
        /// Pause between them, ns.
        #[serde(default)]
        pause_ns: u64,
        /// Give up a fetch after this long, ns.
        #[serde(default)]
        timeout_ns: Option<u64>,
        /// Every fetch meets links as if it were the first: loss streams restart from (seed, fetch number), so that
        /// two arms of a comparison meet the same losses fetch by fetch.
        #[serde(default)]
        common_random_numbers: bool,
    },
    /// Writes `chunk_bytes` every chunk/rate, as video servers do; `bytes` in all (absent = until stop).
    Throttled {
        /// bit/s of the application.
        rate_bps: u64,
        /// Bytes of one write.
        chunk_bytes: u64,
        /// Bytes written at once at the start.
        #[serde(default)]
        initial_bytes: u64,
        /// Total.
        #[serde(default)]
        bytes: Option<u64>,
    },
    /// UDP datagrams at a constant rate until the flow's stop.
    ConstantRate {
        /// bit/s of IP packets.
        rate_bps: u64,
        /// UDP payload, bytes.
        payload_bytes: u32,
    },
    /// As constant-rate, in on-periods separated by silence.
    OnOff {
        /// bit/s of IP packets in an on-period.
        rate_bps: u64,
        /// UDP payload, bytes.
        payload_bytes: u32,
        /// Mean length of an on-period, ns.
        on_ns: u64,
        /// Mean length of the silence, ns.
        off_ns: u64,
        /// Exponentially distributed lengths; else all equal.
        #[serde(default)]
        exponential: bool,
    },
    /// A datagram of `payload_bytes` every `interval_ns`, until the flow's stop.
    Voice {
        /// Between datagrams, ns.
        interval_ns: u64,
        /// UDP payload, bytes.
        payload_bytes: u32,
    },
    /// `clients` clients, each alone on a path of its own with RTT, rate, loss and response size drawn once; each
    /// does one fetch at a time, `requests` in all on one connection each.
    Population {
        /// Clients.
        clients: u32,
        /// Requests of each client.
        #[serde(default = "one_flow")]
        requests: u32,
        /// Seconds.
        rtt_s: Distribution,
        /// bit/s.
        rate_bps: Distribution,
        /// Probability, each direction.
        loss: Distribution,
        /// Bytes.
        bytes: Distribution,
        /// Bottleneck buffer of each client, packets.
        #[serde(default = "population_queue")]
        queue_packets: u32,
        /// If set, the server writes at this many times the client's rate after an initial burst (video).
        #[serde(default)]
        throttle: Option<f64>,
    },
    /// Clients come and go: see [`Transactions`].
    Transactions(Box<Transactions>),
}

/// Clients at the receiving end come, open `batch` connections at once, ask, read, close. The group's flows are
/// client-server pairs that share arrivals, limits and number of transactions equally.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transactions {
    /// Bytes of a response.
    pub bytes: Distribution,
    /// Bytes of a request.
    #[serde(default = "request_bytes")]
    pub request_bytes: u64,
    /// When clients come.
    pub arrivals: Arrivals,
    /// Connections that a client opens at once.
    #[serde(default = "one_flow")]
    pub batch: u32,
    /// Requests on each connection, one after another.
    #[serde(default = "one_flow")]
    pub requests: u32,
    /// From the end of a response to the next request on the connection, s.
    #[serde(default = "no_time")]
    pub think_s: Distribution,
    /// Responses that the connections of a client fetch together, whoever is free taking the next; replaces
    /// `requests`.
    #[serde(default)]
    pub objects: Option<u32>,
    /// The connections of a client ask at the same time: the next request waits for all responses.
    #[serde(default)]
    pub together: bool,
    /// Connections of the group in all; absent = until the flows stop.
    #[serde(default)]
    pub count: Option<u64>,
    /// Most connections of the group that are open at a time; a client who comes then is turned away.
    #[serde(default)]
    pub max_open: Option<u32>,
    /// Initial windows to draw from, with their probabilities; empty = the stack's.
    #[serde(default)]
    pub initial_window_mix: Vec<(u32, f64)>,
    /// Whether all connections of a client draw the same initial window.
    #[serde(default)]
    pub mix_by_batch: bool,
    /// Which end closes first.
    #[serde(default)]
    pub close: CloseFirst,
}

/// When clients of [`Transactions`] come.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrivals {
    /// Intervals are exponential. Either is given.
    Poisson {
        /// Clients per second, over all flows of the group.
        #[serde(default)]
        rate_per_s: Option<f64>,
        /// Share of the bottleneck that the responses ask for.
        #[serde(default)]
        load: Option<f64>,
        /// Whether all packets of the data direction count in `load`, or data packets alone.
        #[serde(default)]
        count_all_packets: bool,
    },
    /// At equal intervals, the first at the flow's start.
    Periodic {
        /// Interval, ns.
        interval_ns: u64,
    },
    /// At these times after the flow's start, in order, ns.
    At {
        /// The times.
        times_ns: Vec<u64>,
    },
}

/// Which end of a connection closes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloseFirst {
    /// The server, as soon as it has written the last response.
    #[default]
    Server,
    /// The client, as soon as it has read the last response.
    Client,
}

fn no_time() -> Distribution {
    Distribution::Constant { value: 0.0 }
}

fn request_bytes() -> u64 {
    100
}
fn population_queue() -> u32 {
    100
}

/// What is recorded besides the running sums.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// Per-ACK trace: "none", "flow" (flow 0 only) or "all".
    pub trace: TraceLevel,
    /// The controllers' own variables, a row per ACK, or, of PCC, per monitor interval: "none", "flow" (flow 0 only) or
    /// "all".
    pub controller: TraceLevel,
    /// Least time between two such rows of a flow, ns.
    pub controller_interval_ns: u64,
    /// Capture of every packet at the hosts of one side (pcapng).
    pub capture: CapturePoint,
    /// TCP_INFO-like samples of each open flow, ns; 0 = off.
    pub sample_interval_ns: u64,
    /// Queue occupancy samples, ns; 0 = off.
    pub queue_interval_ns: u64,
    /// Goodput per flow and interval, ns; 0 = off.
    pub goodput_interval_ns: u64,
    /// Transactions: a row for each, or their summary alone.
    pub transactions: TransactionLevel,
    /// Links, and the summary of transactions, count from here on, ns: what was before is a warm-up.
    pub warm_up_ns: u64,
    /// A row for each dropped packet.
    pub drops: bool,
}

/// Where packets are captured. One side at a time: what both see would look like retransmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum CapturePoint {
    #[default]
    None,
    Sender,
    Receiver,
}

/// How much of transactions is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum TransactionLevel {
    #[default]
    Rows,
    Summary,
}

/// How much of the per-ACK trace is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum TraceLevel {
    #[default]
    None,
    Flow,
    All,
}
