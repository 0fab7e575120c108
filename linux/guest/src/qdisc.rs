//! Queueing disciplines by netlink.

use std::io::Result;

use crate::job::{Leaf, Qdisc};
use crate::netlink::{attribute, u32_at, Message, Netlink};

/// Put a discipline at the root of an interface's egress.
pub fn install(netlink: &Netlink, interface: u32, qdisc: &Qdisc) -> Result<()> {
    match qdisc {
        Qdisc::Netem { .. } => netlink.request(netem(interface, qdisc), "netem"),
        Qdisc::Alone { leaf } => {
            netlink.request(with_leaf(add(libc::RTM_NEWQDISC, interface, ROOT, HTB), leaf), "queue")
        }
        Qdisc::Shaper { rate, burst, overhead, leaf } => {
            let root = add(libc::RTM_NEWQDISC, interface, ROOT, HTB).text(TCA_KIND, "htb");
            // A size table would charge a packet of several segments with one header; without it Linux charges all.
            let root = match overhead {
                0 => root,
                overhead => root.nest(TCA_STAB, &[], |m| m.attr(TCA_STAB_BASE, &size_spec(*overhead))),
            };
            let root = root.nest(TCA_OPTIONS, &[], |m| m.attr(TCA_HTB_INIT, &words(&[3, 10, 1, 0, 0])));
            netlink.request(root, "htb")?;
            let class = add(libc::RTM_NEWTCLASS, interface, HTB, CLASS).text(TCA_KIND, "htb");
            netlink.request(class.nest(TCA_OPTIONS, &[], |m| htb_class(m, *rate, *burst)), "htb class")?;
            netlink.request(with_leaf(add(libc::RTM_NEWQDISC, interface, CLASS, LEAF), leaf), "leaf")
        }
    }
}

/// Where the clock of a discipline runs while it is idle, set it anew: RED adapts from the start of the run on, not from
/// some moment of the set-up.
pub fn renew(netlink: &Netlink, interface: u32, qdisc: &Qdisc) -> Result<()> {
    let Qdisc::Shaper { leaf: leaf @ Leaf::Red { adaptive: true, .. }, .. } = qdisc else { return Ok(()) };
    let change = Message::new(libc::RTM_NEWQDISC, 0, &words(&[0, interface, LEAF, CLASS, 0]));
    netlink.request(with_leaf(change, leaf), "leaf, set anew")
}

fn netem(interface: u32, qdisc: &Qdisc) -> Message {
    let Qdisc::Netem { limit, delay_ns, rate, overhead, loss, gemodel, seed } = qdisc else {
        unreachable!("invariant: the caller looked")
    };
    let body = words(&[0, *limit, *loss, 0, 0, 0]); // latency in us is superseded by LATENCY64
    add(libc::RTM_NEWQDISC, interface, ROOT, HTB).text(TCA_KIND, "netem").nest(TCA_OPTIONS, &body, |m| {
        let m = m.u64(TCA_NETEM_LATENCY64, *delay_ns).u64(TCA_NETEM_PRNG_SEED, *seed);
        let m = match gemodel {
            Some(model) => m.nest(TCA_NETEM_LOSS, &[], |m| m.attr(NETEM_LOSS_GE, &words(model))),
            None => m,
        };
        if *rate == 0 {
            return m;
        }
        let slow = (*rate).min(u32::MAX as u64) as u32;
        let m = m.attr(TCA_NETEM_RATE, &words(&[slow, *overhead as u32, 0, 0]));
        if *rate > u32::MAX as u64 {
            m.u64(TCA_NETEM_RATE64, *rate)
        } else {
            m
        }
    })
}

fn htb_class(m: Message, rate: u64, burst: u32) -> Message {
    let slow = rate.min(u32::MAX as u64) as u32;
    let spec = words(&[0, 0, slow]); // struct tc_ratespec: all zero but the rate
    let mut body = [spec.clone(), spec].concat();
    // Without a burst a packet may start when the one before it has ended. With one, `tc` gives the ceiling one of a
    // packet, and the smaller of the two decides.
    let ticks = |bytes: u32| ((bytes as u64 * 1_000_000_000 / rate.max(1)) >> 6).max(1) as u32; // of 64 ns
    let bursts = if burst == 0 { [1, 1] } else { [ticks(burst), ticks(CEILING_BURST)] };
    body.extend(words(&[bursts[0], bursts[1], 1514, 0, 0]));
    let m = m.attr(TCA_HTB_PARMS, &body);
    if rate > u32::MAX as u64 {
        m.u64(TCA_HTB_RATE64, rate).u64(TCA_HTB_CEIL64, rate)
    } else {
        m
    }
}

fn with_leaf(m: Message, leaf: &Leaf) -> Message {
    match *leaf {
        Leaf::Netem { limit, delay_ns } => {
            let body = words(&[0, limit, 0, 0, 0, 0]);
            m.text(TCA_KIND, "netem").nest(TCA_OPTIONS, &body, |m| m.u64(TCA_NETEM_LATENCY64, delay_ns))
        }
        Leaf::Pfifo { limit } => m.text(TCA_KIND, "pfifo").attr(TCA_OPTIONS, &words(&[limit])),
        Leaf::Fq { .. } => fq(m, leaf),
        Leaf::Bfifo { limit } => m.text(TCA_KIND, "bfifo").attr(TCA_OPTIONS, &words(&[limit])),
        Leaf::Codel { limit, target, interval, ecn, ce_threshold } => {
            m.text(TCA_KIND, "codel").nest(TCA_OPTIONS, &[], |m| {
                let m = m
                    .u32(TCA_CODEL_TARGET, target)
                    .u32(TCA_CODEL_LIMIT, limit)
                    .u32(TCA_CODEL_INTERVAL, interval)
                    .u32(TCA_CODEL_ECN, ecn as u32);
                match ce_threshold {
                    0 => m,
                    us => m.u32(TCA_CODEL_CE_THRESHOLD, us),
                }
            })
        }
        Leaf::FqCodel { limit, target, interval, ecn, flows, quantum, ce_threshold, ce_ect1 } => {
            m.text(TCA_KIND, "fq_codel").nest(TCA_OPTIONS, &[], |m| {
                let m = m
                    .u32(TCA_FQ_CODEL_TARGET, target)
                    .u32(TCA_FQ_CODEL_LIMIT, limit)
                    .u32(TCA_FQ_CODEL_INTERVAL, interval)
                    .u32(TCA_FQ_CODEL_ECN, ecn as u32)
                    .u32(TCA_FQ_CODEL_FLOWS, flows)
                    .u32(TCA_FQ_CODEL_QUANTUM, quantum);
                match (ce_threshold, ce_ect1) {
                    (0, _) => m,
                    (us, false) => m.u32(TCA_FQ_CODEL_CE_THRESHOLD, us),
                    (us, true) => m
                        .u32(TCA_FQ_CODEL_CE_THRESHOLD, us)
                        .attr(TCA_FQ_CODEL_CE_THRESHOLD_SELECTOR, &[1])
                        .attr(TCA_FQ_CODEL_CE_THRESHOLD_MASK, &[3]),
                }
            })
        }
        Leaf::Red { limit, min, max, max_p, wlog, ecn, harddrop, adaptive } => {
            let mut body = words(&[limit, min, max]);
            let flags = ecn as u8 | (harddrop as u8) << 1 | (adaptive as u8) << 2;
            body.extend([wlog, 0, 10, flags]); // Plog is superseded by MAX_P; no idle damping table
            m.text(TCA_KIND, "red").nest(TCA_OPTIONS, &[], |m| {
                m.attr(TCA_RED_PARMS, &body).attr(TCA_RED_STAB, &[0; 256]).u32(TCA_RED_MAX_P, max_p)
            })
        }
        Leaf::Dualpi2 {
            limit,
            target,
            update,
            alpha,
            beta,
            coupling,
            step,
            step_from,
            classic_share,
            any_ect,
            drops,
        } => m.text(TCA_KIND, "dualpi2").nest(TCA_OPTIONS | NLA_F_NESTED, &[], |m| {
            m.u32(TCA_DUALPI2_LIMIT, limit)
                .u32(TCA_DUALPI2_MEMORY_LIMIT, u32::MAX)
                .u32(TCA_DUALPI2_TARGET, target)
                .u32(TCA_DUALPI2_TUPDATE, update)
                .u32(TCA_DUALPI2_ALPHA, alpha)
                .u32(TCA_DUALPI2_BETA, beta)
                .u32(TCA_DUALPI2_STEP_THRESH_US, step)
                .u32(TCA_DUALPI2_MIN_QLEN_STEP, step_from)
                .attr(TCA_DUALPI2_COUPLING, &[coupling])
                .attr(TCA_DUALPI2_DROP_OVERLOAD, &[drops as u8])
                .attr(TCA_DUALPI2_DROP_EARLY, &[0])
                .attr(TCA_DUALPI2_C_PROTECTION, &[classic_share])
                .attr(TCA_DUALPI2_ECN_MASK, &[if any_ect { 3 } else { 1 }])
                .attr(TCA_DUALPI2_SPLIT_GSO, &[0])
        }),
        Leaf::Cake { rtt, memory, rate, overhead, mpu, atm, flow_mode } => {
            m.text(TCA_KIND, "cake").nest(TCA_OPTIONS, &[], |m| {
                let m = m
                    .u64(TCA_CAKE_BASE_RATE64, rate)
                    .u32(TCA_CAKE_DIFFSERV_MODE, BEST_EFFORT)
                    .u32(TCA_CAKE_ATM, atm)
                    .u32(TCA_CAKE_FLOW_MODE, flow_mode)
                    .u32(TCA_CAKE_RTT, rtt)
                    .u32(TCA_CAKE_TARGET, (rtt / 20).max(1))
                    .u32(TCA_CAKE_MPU, mpu)
                    .u32(TCA_CAKE_SPLIT_GSO, 0);
                let m = match overhead {
                    Some(bytes) => m.u32(TCA_CAKE_OVERHEAD, bytes as u32),
                    None => m,
                };
                match memory {
                    0 => m,
                    bytes => m.u32(TCA_CAKE_MEMORY, bytes),
                }
            })
        }
    }
}

/// The options of fq.
fn fq(m: Message, leaf: &Leaf) -> Message {
    let &Leaf::Fq {
        limit,
        flow_limit,
        quantum,
        initial_quantum,
        refill_delay,
        max_rate,
        low_rate_threshold,
        horizon,
        horizon_drop,
        ce_threshold,
        timer_slack,
    } = leaf
    else {
        unreachable!("invariant: the caller looked")
    };
    m.text(TCA_KIND, "fq").nest(TCA_OPTIONS, &[], |m| {
        let m = m
            .u32(TCA_FQ_PLIMIT, limit)
            .u32(TCA_FQ_FLOW_PLIMIT, flow_limit)
            .u32(TCA_FQ_QUANTUM, quantum)
            .u32(TCA_FQ_INITIAL_QUANTUM, initial_quantum)
            .u32(TCA_FQ_FLOW_REFILL_DELAY, refill_delay)
            .u32(TCA_FQ_LOW_RATE_THRESHOLD, low_rate_threshold)
            .u32(TCA_FQ_HORIZON, horizon)
            .attr(TCA_FQ_HORIZON_DROP, &[horizon_drop as u8])
            .u32(TCA_FQ_TIMER_SLACK, timer_slack);
        let m = max_rate.into_iter().fold(m, |m, rate| m.u32(TCA_FQ_FLOW_MAX_RATE, rate));
        ce_threshold.into_iter().fold(m, |m, us| m.u32(TCA_FQ_CE_THRESHOLD, us))
    })
}

/// Counters of a discipline and what hangs below it.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Stats {
    /// Bytes sent on.
    pub bytes: u64,
    /// Packets sent on.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u32,
    /// Packets held.
    pub held: u32,
    /// Packets marked.
    pub marked: u32,
}

impl Stats {
    /// What was counted after `before`; what is held is what is held now.
    pub fn since(&self, before: &Stats) -> Stats {
        Stats {
            bytes: self.bytes - before.bytes,
            packets: self.packets - before.packets,
            drops: self.drops - before.drops,
            held: self.held,
            marked: self.marked - before.marked,
        }
    }
}

/// Counters of the roots of all interfaces of a namespace: (interface, counters).
pub fn stats(netlink: &Netlink) -> Result<Vec<(u32, Stats)>> {
    let mut found: Vec<(u32, Stats)> = Vec::new();
    let mut marks = Vec::new();
    let request = Message::new(libc::RTM_GETQDISC, 0, &[0; 20]);
    netlink.dump(request, |entry| {
        let (index, parent) = (u32_at(entry, 4), u32_at(entry, 12));
        let Some(s) = attribute(&entry[20..], TCA_STATS2) else { return };
        if let (Some(kind), Some(own)) = (attribute(&entry[20..], TCA_KIND), attribute(s, TCA_STATS_APP)) {
            marks.push((index, marked(kind, own)));
        }
        if parent != ROOT {
            return;
        }
        let mut stats = Stats::default();
        if let Some(basic) = attribute(s, TCA_STATS_BASIC) {
            stats.bytes = u64::from_ne_bytes(basic[..8].try_into().expect("invariant: eight bytes"));
            stats.packets = u32_at(basic, 8) as u64;
        }
        if let Some(queue) = attribute(s, TCA_STATS_QUEUE) {
            stats.held = u32_at(queue, 0);
            stats.drops = u32_at(queue, 8);
        }
        found.push((index, stats));
    })?;
    for (index, marked) in marks {
        if let Some((_, stats)) = found.iter_mut().find(|(i, _)| *i == index) {
            stats.marked += marked;
        }
    }
    Ok(found)
}

/// Packets marked, in a discipline's own counters (tc_codel_xstats, tc_fq_codel_xstats, tc_red_xstats, tc_dualpi2_xstats).
fn marked(kind: &[u8], own: &[u8]) -> u32 {
    let at: &[usize] = match kind.split(|&b| b == 0).next() {
        Some(b"codel") => &[24, 32], // ecn_mark, ce_mark
        Some(b"fq_codel") => &[12, 28],
        Some(b"red") => &[12],
        Some(b"dualpi2") => &[24],
        _ => &[],
    };
    at.iter().filter(|&&at| own.len() >= at + 4).map(|&at| u32_at(own, at)).sum()
}

/// struct tcmsg of a new object.
fn add(kind: u16, interface: u32, parent: u32, handle: u32) -> Message {
    let body = words(&[0, interface, handle, parent, 0]);
    Message::new(kind, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &body)
}

/// struct tc_sizespec that only adds to each packet's length.
fn size_spec(overhead: i32) -> Vec<u8> {
    words(&[0, overhead as u32, 1, 0, 0, 0]) // linklayer 1: as it is
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

/// `cburst` that tc chooses: its guess of an MTU, bytes.
const CEILING_BURST: u32 = 1600;
const ROOT: u32 = 0xffff_ffff;
const HTB: u32 = 1 << 16;
const CLASS: u32 = 1 << 16 | 1;
const LEAF: u32 = 2 << 16;

/// Disciplines of recent kernels want nests flagged as such.
const NLA_F_NESTED: u16 = 1 << 15;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STAB: u16 = 8;
const TCA_STAB_BASE: u16 = 1;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
const TCA_NETEM_LOSS: u16 = 5;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_PRNG_SEED: u16 = 14;
const NETEM_LOSS_GE: u16 = 2;
const TCA_CODEL_TARGET: u16 = 1;
const TCA_CODEL_LIMIT: u16 = 2;
const TCA_CODEL_INTERVAL: u16 = 3;
const TCA_CODEL_ECN: u16 = 4;
const TCA_CODEL_CE_THRESHOLD: u16 = 5;
const TCA_FQ_CODEL_TARGET: u16 = 1;
const TCA_FQ_CODEL_LIMIT: u16 = 2;
const TCA_FQ_CODEL_INTERVAL: u16 = 3;
const TCA_FQ_CODEL_ECN: u16 = 4;
const TCA_FQ_CODEL_FLOWS: u16 = 5;
const TCA_FQ_CODEL_QUANTUM: u16 = 6;
const TCA_FQ_CODEL_CE_THRESHOLD: u16 = 7;
const TCA_FQ_CODEL_CE_THRESHOLD_SELECTOR: u16 = 10;
const TCA_FQ_CODEL_CE_THRESHOLD_MASK: u16 = 11;
const TCA_FQ_PLIMIT: u16 = 1;
const TCA_FQ_FLOW_PLIMIT: u16 = 2;
const TCA_FQ_QUANTUM: u16 = 3;
const TCA_FQ_INITIAL_QUANTUM: u16 = 4;
const TCA_FQ_FLOW_MAX_RATE: u16 = 7;
const TCA_FQ_FLOW_REFILL_DELAY: u16 = 9;
const TCA_FQ_LOW_RATE_THRESHOLD: u16 = 11;
const TCA_FQ_CE_THRESHOLD: u16 = 12;
const TCA_FQ_TIMER_SLACK: u16 = 13;
const TCA_FQ_HORIZON: u16 = 14;
const TCA_FQ_HORIZON_DROP: u16 = 15;
const TCA_RED_PARMS: u16 = 1;
const TCA_RED_STAB: u16 = 2;
const TCA_RED_MAX_P: u16 = 3;
const TCA_CAKE_BASE_RATE64: u16 = 2;
const TCA_CAKE_DIFFSERV_MODE: u16 = 3;
const TCA_CAKE_ATM: u16 = 4;
const TCA_CAKE_FLOW_MODE: u16 = 5;
const TCA_CAKE_OVERHEAD: u16 = 6;
const TCA_CAKE_RTT: u16 = 7;
const TCA_CAKE_TARGET: u16 = 8;
const TCA_CAKE_MEMORY: u16 = 10;
const TCA_CAKE_MPU: u16 = 14;
const TCA_CAKE_SPLIT_GSO: u16 = 17;
/// CAKE_DIFFSERV_BESTEFFORT.
const BEST_EFFORT: u32 = 3;
const TCA_DUALPI2_LIMIT: u16 = 1;
const TCA_DUALPI2_MEMORY_LIMIT: u16 = 2;
const TCA_DUALPI2_TARGET: u16 = 3;
const TCA_DUALPI2_TUPDATE: u16 = 4;
const TCA_DUALPI2_ALPHA: u16 = 5;
const TCA_DUALPI2_BETA: u16 = 6;
const TCA_DUALPI2_STEP_THRESH_US: u16 = 8;
const TCA_DUALPI2_MIN_QLEN_STEP: u16 = 9;
const TCA_DUALPI2_COUPLING: u16 = 10;
const TCA_DUALPI2_DROP_OVERLOAD: u16 = 11;
const TCA_DUALPI2_DROP_EARLY: u16 = 12;
const TCA_DUALPI2_C_PROTECTION: u16 = 13;
const TCA_DUALPI2_ECN_MASK: u16 = 14;
const TCA_DUALPI2_SPLIT_GSO: u16 = 15;
