//! How much memory a run will need at most, computed before it starts.

use std::mem::size_of;

use ackclock_core::trace::Record;
use ackclock_core::{Packet, Rate, Span};
use ackclock_net::link::LinkParams;
use ackclock_net::{Limit, QueueConfig};
use ackclock_tcp::{Connection, VarsRow};

use crate::capture::Captured;
use crate::observe::{QueueRow, SampleRow};
use crate::spec::{CapturePoint, FlowGroup, Scenario, Topology, TraceLevel};
use crate::starts;
use crate::workload::{Asks, Place};

/// Upper estimate of the memory of one run, bytes: packets that links can hold, connections, rows of what is recorded. What
/// waits for a host that stalls, or is reordered by seconds, is not in it, and links without a rate are taken to carry
/// `FASTEST_BPS`; [`crate::bounds`] ends what comes to need more.
/// Nothing is built, so that a scenario beyond all bounds is refused at once; sums are floats, so that none overflows.
pub fn estimate_memory(scenario: &Scenario) -> u64 {
    let flows = flows(scenario);
    let links = links(scenario, flows);
    let carried = carried(scenario);

    let per_packet = (size_of::<Packet>() + 8) as f64 * GROWTH + SCOREBOARD_BYTES;
    let excess = excess(scenario);
    let piled = if any_unlimited(scenario) { excess * DATAGRAM_BYTES } else { 0.0 };
    let network = held(scenario).min(carried) * per_packet + piled + links * LINK_BYTES;
    let connections = flows * (2.0 * size_of::<Connection>() as f64 + CONNECTION_BYTES);

    let record = &scenario.record;
    let rows = |interval: u64, each: f64, size: usize| match interval {
        0 => 0.0,
        ns => scenario.duration_ns as f64 / ns as f64 * each * size as f64 * COPIES,
    };
    let traced = match record.trace {
        TraceLevel::None => 0.0,
        TraceLevel::Flow => carried.min(carried_by_flow_0(scenario)),
        TraceLevel::All => carried,
    };
    let sampled = rows(record.sample_interval_ns, flows, size_of::<SampleRow>())
        + rows(record.queue_interval_ns, links, size_of::<QueueRow>())
        + rows(record.goodput_interval_ns, flows, 24);
    // a row for each transmission, and one for each ACK
    let trace = traced * 2.0 * size_of::<Record>() as f64 * COPIES;
    let vars = match record.controller {
        TraceLevel::None => 0.0,
        TraceLevel::Flow => 1.0,
        TraceLevel::All => flows,
    };
    let vars = match record.controller_interval_ns {
        0 if vars > 1.0 => carried,
        0 => vars * carried.min(carried_by_flow_0(scenario)),
        ns => carried.min(vars * scenario.duration_ns as f64 / ns as f64),
    };
    let vars = vars * size_of::<VarsRow>() as f64 * COPIES;
    // data and ACKs
    let capture =
        (record.capture != CapturePoint::None) as u8 as f64 * carried * 2.0 * size_of::<Captured>() as f64;
    let drops = record.drops as u8 as f64 * (carried / 10.0 + excess) * size_of::<Packet>() as f64 * COPIES;
    let performance = record.performance as u8 as f64 * flows * PERFORMANCE_BYTES;
    let workloads = workloads(scenario);
    (BASE_BYTES + network + connections + sampled + trace + vars + capture + drops + performance + workloads)
        as u64
}

/// What a capture of one run may take on the disk, bytes: full packets with the headers of the file, and an ACK for each
/// two of them.
pub fn estimate_capture(scenario: &Scenario) -> u64 {
    let of = |group: &FlowGroup| {
        let each = size(group) + CAPTURE_BYTES + (HEADER_BYTES + CAPTURE_BYTES) / 2.0;
        carried_by(scenario, group, starts::members(group)) * each
    };
    scenario.flows.iter().map(of).sum::<f64>() as u64
}

/// Flows of the run; each client of a population is one.
fn flows(scenario: &Scenario) -> f64 {
    scenario.flows.iter().map(|group| starts::members(group) as f64).sum()
}

/// Links of the run, both directions, at most: edges and clients' paths belong to one flow each.
fn links(scenario: &Scenario, flows: f64) -> f64 {
    let shared = scenario.network.links.len() as f64 + 6.0;
    match scenario.network.topology {
        Topology::Chain | Topology::Graph => {
            let own = scenario.flows.iter().filter(|g| g.workload.params().has_own_path());
            shared + own.map(|_| 4.0 * flows).sum::<f64>()
        }
        Topology::Dumbbell | Topology::Wishbone => shared + 4.0 * flows,
    }
}

/// Most packets that the links of the scenario can hold at a time.
fn held(scenario: &Scenario) -> f64 {
    let network = &scenario.network;
    let shape = [&network.access, &network.bottleneck, &network.egress];
    let back = [&network.reverse.access, &network.reverse.bottleneck, &network.reverse.egress];
    let delay = |link: &LinkParams| link.longest_delay().0 as f64;
    let listed = || network.access_list.iter().chain(network.links.iter().map(|named| &named.link));
    let rtt_ns = shape.into_iter().flatten().map(delay).sum::<f64>()
        + shape.into_iter().zip(back).filter_map(|(f, b)| b.as_ref().or(f.as_ref())).map(delay).sum::<f64>()
        + listed().map(|link| 2.0 * delay(link)).sum::<f64>();

    // the other links cannot hold more than these let through, or the flows' own allowance below
    let shared = [&network.bottleneck, &network.reverse.bottleneck].into_iter().flatten();
    let shared: f64 = shared.chain(listed()).map(|link| capacity(link, rtt_ns)).sum();
    let own = |group: &FlowGroup| starts::members(group) as f64 * group.workload.params().held();
    shared + scenario.flows.iter().map(own).sum::<f64>()
}

/// Datagrams of sources that nothing holds back, beyond what the bottleneck lets through: they wait or are dropped.
fn excess(scenario: &Scenario) -> f64 {
    let of = |group: &FlowGroup| {
        let workload = group.workload.params();
        match workload.asks(Span(scenario.duration_ns)) {
            Asks::Regardless(each) if !workload.has_own_path() => starts::members(group) as f64 * each,
            _ => 0.0,
        }
    };
    let sent: f64 = scenario.flows.iter().map(of).sum();
    (sent - bottleneck(scenario)).max(0.0)
}

/// Whether a link has a queue without a limit.
fn any_unlimited(scenario: &Scenario) -> bool {
    let network = &scenario.network;
    let shape = [&network.access, &network.bottleneck, &network.egress];
    let listed = network.access_list.iter().chain(network.links.iter().map(|named| &named.link));
    let unlimited = |link: &LinkParams| link.queue.as_ref().and_then(QueueConfig::limit).is_none();
    shape.into_iter().flatten().chain(listed).any(unlimited)
}

/// The greatest rate that a link has for long, bit/s; `None` = infinite.
fn peak_bps(link: &LinkParams) -> Option<u64> {
    let rate = link.greatest_rate();
    (rate != Rate::INFINITE).then_some(rate.0)
}

/// Packets that wait at a link or fly because of it.
fn capacity(link: &LinkParams, rtt_ns: f64) -> f64 {
    let bdp = packets(peak_bps(link).unwrap_or(FASTEST_BPS), rtt_ns);
    let waiting = match link.queue.as_ref().and_then(QueueConfig::limit) {
        Some(Limit::Packets(limit)) => limit as f64,
        Some(Limit::Bytes(limit)) => limit as f64 / LEAST_BYTES,
        None => 2.0 * bdp,
    };
    2.0 * bdp + waiting
}

/// Data packets that the run can carry at most: what the bottleneck lets through, or what the applications ask for.
fn carried(scenario: &Scenario) -> f64 {
    scenario.flows.iter().map(|group| carried_by(scenario, group, starts::members(group))).sum()
}

fn carried_by_flow_0(scenario: &Scenario) -> f64 {
    scenario.flows.first().map_or(0.0, |group| carried_by(scenario, group, group.workload.params().flows()))
}

fn carried_by(scenario: &Scenario, group: &FlowGroup, flows: u64) -> f64 {
    let (duration, flows) = (Span(scenario.duration_ns), flows as f64);
    let more = (FULL_BYTES / size(group)).max(1.0);
    let link = bottleneck(scenario) * more;
    match group.workload.params().asks(duration) {
        Asks::Everything => link,
        Asks::Packets(each) => (flows * each * more).min(link + flows),
        Asks::Regardless(each) => flows * each,
    }
}

/// Bytes of a group's full packets.
fn size(group: &FlowGroup) -> f64 {
    group.stack.smss.map_or(FULL_BYTES, |smss| smss as f64 + HEADER_BYTES)
}

/// Full packets that the bottleneck lets through.
fn bottleneck(scenario: &Scenario) -> f64 {
    let network = &scenario.network;
    let slowest = network.bottleneck.iter().filter_map(peak_bps).min();
    let graph = network.links.iter().filter_map(|l| peak_bps(&l.link)).max();
    packets(slowest.or(graph).unwrap_or(FASTEST_BPS), scenario.duration_ns as f64)
}

/// What workloads leave behind and have open.
fn workloads(scenario: &Scenario) -> f64 {
    let of = |(index, group): (usize, &FlowGroup)| {
        let workload = group.workload.params();
        let rows = starts::members(group) as f64 * workload.rows(Span(scenario.duration_ns)) * COPIES;
        rows + workload.memory(&Place { scenario, group, index })
    };
    scenario.flows.iter().enumerate().map(of).sum()
}

/// Full packets in `ns` at `bps`.
pub fn packets(bps: u64, ns: f64) -> f64 {
    bps as f64 * ns / (FULL_BYTES * 8.0 * 1e9)
}

/// A full packet.
const FULL_BYTES: f64 = 1500.0;
/// Headers of IP and TCP, with timestamps.
const HEADER_BYTES: f64 = 52.0;
/// Ethernet's header, options, and a block of the file around a packet.
const CAPTURE_BYTES: f64 = 60.0;

/// A packet without payload.
const LEAST_BYTES: f64 = 40.0;
/// Program, tables' overhead, allocator.
const BASE_BYTES: f64 = (8 << 20) as f64;
const LINK_BYTES: f64 = 1024.0;
/// Histograms and slices of a flow.
const PERFORMANCE_BYTES: f64 = 262_144.0;
/// Both halves and buffers of a connection that exist even without packets.
pub const CONNECTION_BYTES: f64 = (8 << 10) as f64;
/// What sender and receiver remember of a packet in flight.
const SCOREBOARD_BYTES: f64 = 256.0;
/// A datagram that waits, in a ring that may be twice as large, which [`crate::bounds`] counts twice.
const DATAGRAM_BYTES: f64 = 4.0 * (size_of::<Packet>() + 8) as f64;
/// A ring that grows is up to twice as large as needed, and thrice while it is copied.
const GROWTH: f64 = 3.0;
/// Rows, growth of their vector, and columns made of them.
pub const COPIES: f64 = 3.0;
/// For links without a rate.
pub const FASTEST_BPS: u64 = 10_000_000_000;
