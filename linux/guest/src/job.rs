//! The guest's job, as the host side writes it (`ackclock.linux._translate`): the scenario as the simulator reads it, and the
//! settings for the kernel.

use ackclock_sim::spec::Scenario;
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
    /// By group of flows: its hosts.
    pub hosts: Vec<Host>,
    /// Write a capture.
    pub capture: bool,
}

/// Who plays the network.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Network {
    /// The simulator's links, between devices of the relay.
    Relay {
        /// The kernel may run ahead of them; else every event takes place when it is due.
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
    /// Link whose table it fills.
    pub link: u32,
    /// What it does there.
    pub qdisc: Qdisc,
    /// Its drops are losses of the link, not of its queue.
    pub loses: bool,
    /// Packets that wait here are the link's queue.
    pub queues: bool,
    /// The card through which packets come to it, if that merges them.
    #[serde(default)]
    pub merging: Option<Card>,
}

/// A queueing discipline.
#[derive(Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Qdisc {
    /// Loss, then rate, then delay; `limit` packets in all.
    Netem {
        /// Packets.
        limit: u32,
        /// Delay, ns.
        delay_ns: u64,
        /// Bytes per second; 0 = infinite.
        rate: u64,
        /// Bytes charged on top of the frame.
        overhead: i32,
        /// Lost packets in 2^32.
        loss: u32,
        /// Gilbert-Elliott instead: p, r, 1 - loss in the bad state, loss in the good state, in 2^32.
        gemodel: Option<[u32; 4]>,
        /// Seed of the random losses.
        seed: u64,
    },
    /// A rate (HTB), packets leave at the start of their transmission; the leaf decides what waits.
    Shaper {
        /// Bytes per second.
        rate: u64,
        /// Bytes that may leave at once after an idle time; 0 = one packet.
        burst: u32,
        /// Bytes charged on top of the frame.
        overhead: i32,
        /// Queue.
        leaf: Leaf,
    },
    /// A queue that needs no shaper above it.
    Alone {
        /// Queue.
        leaf: Leaf,
    },
}

/// What waits for the shaper.
#[derive(Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Leaf {
    /// A delay below the shaper, as Mininet builds its links: what is under way counts as what waits.
    Netem {
        /// Packets.
        limit: u32,
        /// ns.
        delay_ns: u64,
    },
    /// First in, first out.
    Pfifo {
        /// Packets.
        limit: u32,
    },
    /// fq; times in us.
    Fq {
        /// Packets.
        limit: u32,
        /// Packets of a flow.
        flow_limit: u32,
        /// Bytes.
        quantum: u32,
        /// Bytes.
        initial_quantum: u32,
        /// us.
        refill_delay: u32,
        /// Bytes per second; none = no bound.
        max_rate: Option<u32>,
        /// Bytes per second.
        low_rate_threshold: u32,
        /// us.
        horizon: u32,
        /// Drops beyond it.
        horizon_drop: bool,
        /// us; none = no marks.
        ce_threshold: Option<u32>,
        /// ns.
        timer_slack: u32,
    },
    /// First in, first out.
    Bfifo {
        /// Bytes.
        limit: u32,
    },
    /// CoDel.
    Codel {
        /// Packets.
        limit: u32,
        /// us.
        target: u32,
        /// us.
        interval: u32,
        /// Marks.
        ecn: bool,
        /// us; 0: none.
        ce_threshold: u32,
    },
    /// FQ-CoDel.
    FqCodel {
        /// Packets.
        limit: u32,
        /// us.
        target: u32,
        /// us.
        interval: u32,
        /// Marks.
        ecn: bool,
        /// Number of queues.
        flows: u32,
        /// Bytes a queue may send in a turn.
        quantum: u32,
        /// us; 0: none.
        ce_threshold: u32,
        /// It marks ECT(1) alone.
        ce_ect1: bool,
    },
    /// RED, all in bytes.
    Red {
        /// Limit.
        limit: u32,
        /// Least mean at which it drops.
        min: u32,
        /// Mean at which it drops with `max_p`.
        max: u32,
        /// In 2^32.
        max_p: u32,
        /// Weight of an arrival: 2^-wlog.
        wlog: u8,
        /// Marks.
        ecn: bool,
        /// Above `max` it drops even what it could mark.
        harddrop: bool,
        /// `max_p` adapts.
        adaptive: bool,
    },
    /// DualPI2.
    Dualpi2 {
        /// Packets.
        limit: u32,
        /// us.
        target: u32,
        /// us.
        update: u32,
        /// In 1/256.
        alpha: u32,
        /// In 1/256.
        beta: u32,
        /// k.
        coupling: u8,
        /// us.
        step: u32,
        /// Packets.
        step_from: u32,
        /// Share of the C queue, in percent.
        classic_share: u8,
        /// Whatever can be marked goes into the L queue.
        any_ect: bool,
        /// Above a probability of 1 it drops.
        drops: bool,
    },
    /// CAKE, all packets in one tin.
    Cake {
        /// Target round-trip time, us.
        rtt: u32,
        /// Bytes; 0 = its own choice.
        memory: u32,
        /// Bytes per second of its own shaper; 0 = none.
        rate: u64,
        /// Bytes charged beyond the IP packet; none = the frame as it is.
        overhead: Option<i32>,
        /// Least bytes charged.
        mpu: u32,
        /// 0 = none, 1 = ATM, 2 = PTM.
        atm: u32,
        /// CAKE_FLOW_*.
        flow_mode: u32,
    },
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
    /// Least retransmission timeout of the route, ms; 0 = the kernel's.
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
    /// SO_MAX_PACING_RATE of senders, bytes/s; 0 = none.
    pub max_pacing_rate: u64,
}

/// What a device does with packets.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// What waits there.
    pub device: Option<Qdisc>,
    /// Packets of several segments leave it as segments; otherwise they cross the network as one.
    pub cuts: bool,
    /// Segments that come together are merged.
    pub gro: bool,
    /// ns.
    pub gro_flush_timeout: u64,
    /// Polls.
    pub napi_defer_hard_irqs: u32,
}
