//! The guest's job, written on the host side by `ackclock.linux._translate`: the scenario in the simulator's form, and
//! the kernel settings.

use ackclock_sim::scenario::spec::Scenario;
use serde::Deserialize;

/// A run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The scenario: network, flows, and which records are kept.
    pub scenario: Scenario,
    /// Seed of the links' random streams.
    pub seed: u64,
    /// Monotonic time at which the run begins, ns.
    pub start_ns: u64,
    /// Implementation of the network.
    pub network: Network,
    /// Host settings, one per group of flows; after them that of the programs' hosts, if there are any.
    pub hosts: Vec<Host>,
    /// Whether to write a capture.
    pub capture: bool,
    /// Program to run instead of the flow's workload. The capture then has three interfaces: the sending host above its
    /// card, a switch behind the card, which cuts packets into segments, and the receiving host.
    #[serde(default)]
    pub program: Option<Program>,
    /// The user's programs; their hosts are numbered after those of the flows.
    #[serde(default)]
    pub live: Option<Live>,
    /// Size of a bulk sender's writes, bytes.
    #[serde(default = "usual_write")]
    pub write: usize,
}

fn usual_write() -> usize {
    256 << 10
}

/// The user's programs and their hosts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Live {
    /// Whether only the programs run. The scenario still has a flow, because every scenario needs one.
    pub alone: bool,
    /// Hosts of the programs.
    pub hosts: Vec<Place>,
    /// Pairs of hosts that reach each other, with the path between them. Other hosts do not.
    pub pairs: Vec<Pair>,
    /// Programs, in starting order.
    pub programs: Vec<Exec>,
    /// Folder on the machine that programs see as `/`.
    pub root: String,
    /// Working directory in which programs start.
    pub folder: String,
    /// Whether hosts also have an IPv6 address.
    #[serde(default)]
    pub ipv6: bool,
    /// Idle time after which the run ends, ns: no packet was sent and no program ran.
    pub quiet_ns: u64,
}

impl Live {
    /// Names of the hosts, by number.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|host| host.name.as_str())
    }

    /// Devices of a host, in order: number of the pair, and number of the host at its other end.
    pub fn devices(&self, host: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.pairs.iter().enumerate().filter_map(move |(pair, Pair { ends, .. })| {
            let side = ends.iter().position(|end| *end == host)?;
            Some((pair, ends[1 - side]))
        })
    }
}

/// Host on which programs run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Name.
    pub name: String,
    /// Side of the paths on which the host is: 0 at their start, 1 at their end.
    pub side: usize,
}

/// Two hosts that reach each other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Numbers of the two hosts; the forward path leads from the first to the second.
    pub ends: [usize; 2],
    /// Name of the path; `None` if the network is not a graph.
    pub path: Option<String>,
}

/// A program to be started.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// Name of its output files.
    pub name: String,
    /// Number of its host.
    pub host: usize,
    /// Path of the executable.
    pub file: String,
    /// Name and arguments.
    pub argv: Vec<String>,
    /// Environment, entries NAME=VALUE.
    pub env: Vec<String>,
    /// Start of the program, ns since the start of the run.
    pub start_ns: u64,
    /// Whether the run waits for this program to end.
    pub counts: bool,
}

/// A sending program and a reading program.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Total size of the data, bytes.
    pub total: u64,
    /// Size of one write or one response, bytes.
    pub block: u64,
    /// Pause between writes, or between a response and the next request, ns.
    pub pause: u64,
    /// Whether writes follow a fixed schedule, regardless of the connection's speed.
    pub paced: bool,
    /// Request size, bytes; each request is answered by one block. 0 = blocks are sent without requests.
    pub request: u32,
    /// Whether Nagle's algorithm is on.
    pub nagle: bool,
    /// SO_SNDBUF of the sender, bytes; 0 = autotuned.
    pub send_buffer: i32,
    /// SO_RCVBUF of the reading program, bytes; 0 = autotuned.
    pub receive_buffer: i32,
    /// Read size, bytes; 0 = whatever has arrived.
    pub read: u64,
    /// Pause before each read, ns.
    pub read_pause: u64,
}

/// Implementation of the network.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Network {
    /// The simulator's own links connect the relay's devices.
    Relay {
        /// Whether the kernel may run ahead of the links; otherwise every event is processed when it is due.
        ahead: bool,
        /// Whether hosts' cards have offloads, and packets are handed on as they are instead of copied.
        #[serde(default)]
        whole: bool,
    },
    /// The kernel's own queueing disciplines run on the wires between routers.
    Qdisc {
        /// Names of the links.
        links: Vec<String>,
        /// Stages from the sending to the receiving hosts, in order.
        forward: Vec<Stage>,
        /// Stages from the receiving to the sending hosts, in order.
        backward: Vec<Stage>,
    },
}

/// A queueing discipline on the path.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Link whose table this discipline fills.
    pub link: u32,
    /// Discipline with its options.
    pub qdisc: Qdisc,
    /// Whether drops count as link losses rather than as drops of its queue.
    pub loses: bool,
    /// Whether packets waiting here count as the link's queue.
    pub queues: bool,
    /// Card through which packets reach the interface, if the card merges segments.
    #[serde(default)]
    pub merging: Option<Card>,
}

/// Queueing discipline of a device, below a shaper or alone.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qdisc {
    /// Shaper that limits the rate; `None` if the rate is not limited here.
    pub shaper: Option<Shaper>,
    /// Discipline that queues the packets.
    pub leaf: Leaf,
}

/// Rate limit (HTB or TBF): packets are dequeued at the start of their transmission, and the leaf holds the queue.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shaper {
    /// Rate, bytes per second.
    pub rate: u64,
    /// Burst allowed after an idle period, bytes; 0 = one packet.
    pub burst: u32,
    /// Bytes charged per frame in addition to its length.
    pub overhead: i32,
    /// Whether the shaper is TBF, whose bucket holds `burst` bytes, and not HTB.
    #[serde(default)]
    pub bucket: bool,
}

/// Discipline as encoded by `ackclock_net::qdisc`. The guest passes the encoding to the kernel unchanged; the text form
/// is for `tc`.
#[derive(Clone, Deserialize)]
pub struct Leaf {
    /// Name of the discipline in the kernel.
    pub kind: String,
    /// Leading bytes of its options, before the attributes.
    pub head: Vec<u8>,
    /// Attributes: number and value.
    pub attributes: Vec<(u16, Vec<u8>)>,
    /// Whether the options carry the nested-attribute flag.
    pub nested: bool,
    /// Whether the discipline is set up again when the run begins.
    pub renews: bool,
}

/// Settings of the hosts of one group of flows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Congestion controller, by its name in the kernel.
    pub congestion_control: String,
    /// Kernel parameters: file below /proc/sys, and value.
    pub sysctl: Vec<(String, String)>,
    /// Initial window of the route, segments; 0 = the kernel's default.
    pub initcwnd: u32,
    /// Initial receive window of the route, segments; 0 = the kernel's default.
    pub initrwnd: u32,
    /// Minimum RTO of the route (`rto_min`), ms; 0 = the kernel's default.
    pub rto_min_ms: u32,
    /// TCP_MAXSEG, bytes; 0 = not set.
    pub mss: u32,
    /// MTU of the host's device, bytes.
    pub mtu: u32,
    /// Whether TCP builds packets of several segments.
    pub tso: bool,
    /// Cards of the sending and the receiving host.
    pub cards: [Card; 2],
    /// TCP_WINDOW_CLAMP of receivers, bytes; 0 = not set.
    pub window_clamp: u32,
    /// Send buffer of a sender's socket, bytes (SO_SNDBUF as the kernel stores it, twice the requested value); 0 =
    /// autotuned.
    pub send_buffer: u32,
    /// SO_MAX_PACING_RATE of senders, bytes/s; 0 = not set.
    pub max_pacing_rate: u64,
    /// Options that applications set on every socket: TCP_NODELAY, TCP_CORK, and TCP_QUICKACK after every read.
    pub nodelay: bool,
    pub cork: bool,
    pub quickack: bool,
}

/// Offloads and queue of a network card.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Discipline for packets that wait at the card.
    pub device: Option<Qdisc>,
    /// Rate of the card's line, bit/s, with the relay; 0 = infinite.
    #[serde(default)]
    pub line: u64,
    /// Whether the card cuts packets into segments; otherwise packets of several segments cross the network whole.
    pub cuts: bool,
    /// Whether segments that arrive together are merged.
    pub gro: bool,
    /// Value of the device's `gro_flush_timeout`, ns.
    pub gro_flush_timeout: u64,
    /// Value of the device's `napi_defer_hard_irqs`, polls.
    pub napi_defer_hard_irqs: u32,
}
