//! The guest's job, as the host side writes it (`ackclock.linux._translate`): the scenario as the simulator reads it, and the
//! settings for the kernel.

use ackclock_sim::scenario::spec::Scenario;
use serde::Deserialize;

/// One run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Network, flows, what to record.
    pub scenario: Scenario,
    /// Seed of the links' random streams.
    pub seed: u64,
    /// Monotonic time at which the run begins, ns.
    pub start_ns: u64,
    /// Who plays the network.
    pub network: Network,
    /// Hosts, by group of flows.
    pub hosts: Vec<Host>,
    /// Write a capture.
    pub capture: bool,
    /// A program in place of the flow's workload; then the capture is of three places, one interface each: the sending host above its card, a switch
    /// behind the card, which cuts packets, and the receiving host.
    #[serde(default)]
    pub program: Option<Program>,
    /// Programs of the user's, on hosts behind those of the flows.
    #[serde(default)]
    pub live: Option<Live>,
}

/// Programs of the user's and their hosts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Live {
    /// Whether no flow runs beside the programs: the scenario's flow is there only because a scenario needs one.
    pub alone: bool,
    /// Pairs of hosts, with the way between them.
    pub pairs: Vec<Pair>,
    /// Programs, in order of start.
    pub programs: Vec<Exec>,
    /// Folder of the machine that programs see as `/`.
    pub root: String,
    /// Folder in which they begin.
    pub folder: String,
    /// The run is over when for so long no packet was sent and no program ran, ns.
    pub quiet_ns: u64,
}

impl Live {
    /// Names of the hosts, by number.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().flat_map(|pair| pair.names.iter().map(String::as_str))
    }
}

/// Two hosts that programs run on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// From the first to the second leads the way forward.
    pub names: [String; 2],
    /// The way, in a graph.
    pub path: Option<String>,
}

/// A program to be started.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// Name of its files of output.
    pub name: String,
    /// Number of its host.
    pub host: usize,
    /// Place of its file.
    pub file: String,
    /// Name and arguments.
    pub argv: Vec<String>,
    /// NAME=VALUE.
    pub env: Vec<String>,
    /// When it starts, ns of the run.
    pub start_ns: u64,
    /// The run lasts until this program has ended.
    pub counts: bool,
}

/// A program that sends, and one that reads.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Bytes in all.
    pub total: u64,
    /// Bytes of a write, or of an answer.
    pub block: u64,
    /// Between writes, or between an answer and the next request, ns.
    pub pause: u64,
    /// Writes are due at a pace, whatever the connection takes.
    pub paced: bool,
    /// Bytes of a request, for each of which a block is sent; 0 = blocks are sent unasked.
    pub request: u32,
    /// Small writes wait for the ACK of the last one.
    pub nagle: bool,
    /// SO_SNDBUF of the sender, bytes; 0 = it grows.
    pub send_buffer: i32,
    /// SO_RCVBUF of the reader, bytes; 0 = it grows.
    pub receive_buffer: i32,
    /// Bytes that are read at a time; 0 = as they come.
    pub read: u64,
    /// Pause before each read, ns.
    pub read_pause: u64,
}

/// Who plays the network.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Network {
    /// The simulator's links, between devices of the relay.
    Relay {
        /// Whether the kernel may run ahead of the links; otherwise every event takes place when it is due.
        ahead: bool,
    },
    /// The kernel's queueing disciplines, between routers.
    Qdisc {
        /// Names of the links.
        links: Vec<String>,
        /// From the sending to the receiving hosts, in order.
        forward: Vec<Stage>,
        /// And back.
        backward: Vec<Stage>,
    },
}

/// One queueing discipline on the way.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Link whose table this discipline fills.
    pub link: u32,
    /// Discipline with its options.
    pub qdisc: Qdisc,
    /// Drops count as losses of the link, not of its queue.
    pub loses: bool,
    /// Packets that wait here are the link's queue.
    pub queues: bool,
    /// Card through which packets reach the interface, if it merges them.
    #[serde(default)]
    pub merging: Option<Card>,
}

/// A queueing discipline of a device, below a shaper or alone.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qdisc {
    /// Shaper of the rate, if the rate is the limit.
    pub shaper: Option<Shaper>,
    /// The queue.
    pub leaf: Leaf,
}

/// A rate (HTB): packets leave at the start of their transmission, the leaf decides what waits.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shaper {
    /// Bytes per second.
    pub rate: u64,
    /// Bytes that may leave at once after an idle time; 0 = one packet.
    pub burst: u32,
    /// Bytes charged on top of the frame.
    pub overhead: i32,
}

/// A discipline as `ackclock_net::qdisc` describes it, of which the words are for `tc`; the guest hands it to the kernel as it is.
#[derive(Clone, Deserialize)]
pub struct Leaf {
    /// The kernel's name.
    pub kind: String,
    /// First bytes of its options.
    pub head: Vec<u8>,
    /// Number and value of each attribute.
    pub attributes: Vec<(u16, Vec<u8>)>,
    /// The options are flagged as nested.
    pub nested: bool,
    /// The discipline is set anew when the run begins.
    pub renews: bool,
}

/// Settings of the hosts of a group of flows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Controller, by the kernel's name.
    pub congestion_control: String,
    /// File below /proc/sys -> value.
    pub sysctl: Vec<(String, String)>,
    /// Initial window of the route, segments; 0 = the kernel's.
    pub initcwnd: u32,
    /// Initial receive window of the route, segments; 0 = the kernel's.
    pub initrwnd: u32,
    /// Minimum RTO of the route (`rto_min`), ms; 0 = the kernel's default.
    pub rto_min_ms: u32,
    /// TCP_MAXSEG, bytes; 0 = none.
    pub mss: u32,
    /// MTU of the host's device.
    pub mtu: u32,
    /// TCP makes packets of several segments.
    pub tso: bool,
    /// Cards of the sending and of the receiving host.
    pub cards: [Card; 2],
    /// TCP_WINDOW_CLAMP of receivers, bytes; 0 = none.
    pub window_clamp: u32,
    /// Memory that a sender's socket may take (SO_SNDBUF as the kernel keeps it, twice what is asked for), bytes; 0 = it grows.
    pub send_buffer: u32,
    /// SO_MAX_PACING_RATE of senders, bytes/s; 0 = none.
    pub max_pacing_rate: u64,
    /// Options that applications set on every socket: TCP_NODELAY, TCP_CORK, and TCP_QUICKACK each time they have read.
    pub nodelay: bool,
    pub cork: bool,
    pub quickack: bool,
}

/// Treatment of packets by a device.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Discipline of the packets that wait there.
    pub device: Option<Qdisc>,
    /// Whether packets of several segments leave it as segments; otherwise they cross the network whole.
    pub cuts: bool,
    /// Segments that come together are merged.
    pub gro: bool,
    /// ns.
    pub gro_flush_timeout: u64,
    /// Polls.
    pub napi_defer_hard_irqs: u32,
}
