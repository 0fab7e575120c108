//! Queueing disciplines, set up and read over netlink.

use std::io::Result;

use crate::job::{Leaf, Qdisc, Shaper};
use crate::netlink::{attribute, u32_at, Message, Netlink};

/// Install a discipline at the root of an interface's egress.
pub fn install(netlink: &Netlink, interface: u32, qdisc: &Qdisc) -> Result<()> {
    let Some(Shaper { rate, burst, overhead, bucket }) = &qdisc.shaper else {
        return netlink.request(with(add(libc::RTM_NEWQDISC, interface, ROOT, HTB), &qdisc.leaf), "queue");
    };
    let root =
        add(libc::RTM_NEWQDISC, interface, ROOT, HTB).text(TCA_KIND, if *bucket { "tbf" } else { "htb" });
    // With a size table Linux would charge only one header for a multi-segment packet; without one it charges all of
    // them.
    let root = match overhead {
        0 => root,
        overhead => root.nest(TCA_STAB, &[], |m| m.attr(TCA_STAB_BASE, &size_spec(*overhead))),
    };
    if *bucket {
        netlink.request(root.nest(TCA_OPTIONS, &[], |m| tbf(m, *rate, *burst)), "tbf")?;
    } else {
        let root = root.nest(TCA_OPTIONS, &[], |m| m.attr(TCA_HTB_INIT, &words(&[3, 10, 1, 0, 0])));
        netlink.request(root, "htb")?;
        let class = add(libc::RTM_NEWTCLASS, interface, HTB, CLASS).text(TCA_KIND, "htb");
        netlink.request(class.nest(TCA_OPTIONS, &[], |m| htb_class(m, *rate, *burst)), "htb class")?;
    }
    netlink.request(with(add(libc::RTM_NEWQDISC, interface, CLASS, LEAF), &qdisc.leaf), "leaf")
}

/// Set up a discipline again if its clock runs while it is idle: RED must adapt from the start of the run, not from
/// some time during set-up.
pub fn renew(netlink: &Netlink, interface: u32, qdisc: &Qdisc) -> Result<()> {
    if qdisc.shaper.is_none() || !qdisc.leaf.renews {
        return Ok(());
    }
    let change = Message::new(libc::RTM_NEWQDISC, 0, &words(&[0, interface, LEAF, CLASS, 0]));
    netlink.request(with(change, &qdisc.leaf), "leaf, set anew")
}

/// Append a discipline's name and options to a request.
fn with(m: Message, leaf: &Leaf) -> Message {
    let options = if leaf.nested { TCA_OPTIONS | NLA_F_NESTED } else { TCA_OPTIONS };
    m.text(TCA_KIND, &leaf.kind).nest(options, &leaf.head, |m| {
        leaf.attributes.iter().fold(m, |m, (number, value)| m.attr(*number, value))
    })
}

fn htb_class(m: Message, rate: u64, burst: u32) -> Message {
    let slow = rate.min(u32::MAX as u64) as u32;
    let spec = words(&[0, 0, slow]); // struct tc_ratespec: only the rate is set
    let mut body = [spec.clone(), spec].concat();
    // Without a burst, a packet may start once the previous one has ended. With one, the ceiling gets a burst of one
    // packet, as `tc` sets it, and the smaller of the two applies.
    let ticks = |bytes: u32| ((bytes as u64 * 1_000_000_000 / rate.max(1)) >> 6).max(1) as u32; // ticks of 64 ns
    let bursts = if burst == 0 { [1, 1] } else { [ticks(burst), ticks(CEILING_BURST)] };
    body.extend(words(&[bursts[0], bursts[1], 1514, 0, 0]));
    let m = m.attr(TCA_HTB_PARMS, &body);
    if rate > u32::MAX as u64 {
        m.u64(TCA_HTB_RATE64, rate).u64(TCA_HTB_CEIL64, rate)
    } else {
        m
    }
}

/// struct tc_tbf_qopt with only the rate set; the bucket's size is an attribute, and the queue is grafted.
fn tbf(m: Message, rate: u64, bucket: u32) -> Message {
    let m = m.attr(TCA_TBF_PARMS, &words(&[0, 0, rate.min(u32::MAX as u64) as u32, 0, 0, 0, 0, 0, 0]));
    let m = if rate > u32::MAX as u64 { m.u64(TCA_TBF_RATE64, rate) } else { m };
    m.attr(TCA_TBF_BURST, &words(&[bucket]))
}

/// Counters of a discipline and its children.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Stats {
    /// Bytes dequeued.
    pub bytes: u64,
    /// Packets dequeued.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u32,
    /// Packets in the queue now.
    pub held: u32,
    /// Packets marked with CE.
    pub marked: u32,
}

impl Stats {
    /// Counts since `before`; the queue length is the current one.
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

/// Counters of the root disciplines of a namespace: (interface, counters).
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

/// Packets marked, read from the discipline's own statistics (tc_codel_xstats, tc_fq_codel_xstats, tc_red_xstats,
/// tc_dualpi2_xstats).
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

/// Build a struct tcmsg for a new object.
fn add(kind: u16, interface: u32, parent: u32, handle: u32) -> Message {
    let body = words(&[0, interface, handle, parent, 0]);
    Message::new(kind, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &body)
}

/// Build a struct tc_sizespec that only adds a constant to each packet's length.
fn size_spec(overhead: i32) -> Vec<u8> {
    words(&[0, overhead as u32, 1, 0, 0, 0]) // linklayer 1 (Ethernet): no conversion
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

/// `cburst` that tc chooses, bytes: its guess of an MTU.
const CEILING_BURST: u32 = 1600;
const ROOT: u32 = 0xffff_ffff;
const HTB: u32 = 1 << 16;
const CLASS: u32 = 1 << 16 | 1;
const LEAF: u32 = 2 << 16;

/// Flag that recent kernels require on nested attributes of a discipline.
const NLA_F_NESTED: u16 = 1 << 15;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STAB: u16 = 8;
const TCA_STAB_BASE: u16 = 1;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
