//! How much memory a run will need at most, told before it starts.

use std::mem::size_of;

use ackclock_core::trace::Record;
use ackclock_core::Packet;
use ackclock_tcp::Connection;

use crate::build::build;
use crate::capture::Captured;
use crate::error::Error;
use crate::flow::FetchRow;
use crate::observe::{QueueRow, SampleRow};
use crate::spec::{Distribution, FlowGroup, Link, Queue, Scenario, TraceLevel, Workload};

/// Upper estimate of the memory of one run, bytes: packets that links can hold, connections, rows of what is recorded.
pub fn estimate_memory(scenario: &Scenario) -> Result<u64, Error> {
    let built = build(scenario, 0)?;
    let flows = built.app.flows.len() as u64;
    let links = built.link_names.len() as u64;
    let carried = carried(scenario);

    let per_packet = (size_of::<Packet>() + 8) as u64 * GROWTH + SCOREBOARD_BYTES;
    let network = held(scenario).min(carried) * per_packet + links * LINK_BYTES;
    let connections = flows * (2 * size_of::<Connection>() as u64 + CONNECTION_BYTES);

    let record = &scenario.record;
    let rows = |interval: u64, each: u64, size: u64| match interval {
        0 => 0,
        ns => scenario.duration_ns / ns * each * size * COPIES,
    };
    let traced = match record.trace {
        TraceLevel::None => 0,
        TraceLevel::Flow => carried.min(carried_by_flow_0(scenario)),
        TraceLevel::All => carried,
    };
    let sampled = rows(record.sample_interval_ns, flows, size_of::<SampleRow>() as u64)
        + rows(record.queue_interval_ns, links, size_of::<QueueRow>() as u64)
        + rows(record.goodput_interval_ns, flows, 24);
    // a row for each transmission, and one for each ACK
    let trace = traced * 2 * size_of::<Record>() as u64 * COPIES;
    // data and ACKs, at both hosts
    let capture = record.capture as u64 * carried * 4 * size_of::<Captured>() as u64;
    let drops = record.drops as u64 * carried / 10 * size_of::<Packet>() as u64 * COPIES;
    let fetches = fetches(scenario) * size_of::<FetchRow>() as u64 * COPIES;
    Ok(BASE_BYTES + network + connections + sampled + trace + capture + drops + fetches)
}

/// Most packets that the links of the scenario can hold at a time.
fn held(scenario: &Scenario) -> u64 {
    let network = &scenario.network;
    let shape = [&network.access, &network.bottleneck, &network.egress];
    let back = [&network.reverse.access, &network.reverse.bottleneck, &network.reverse.egress];
    let delay = |link: &Link| link.delay_ns + link.jitter_ns;
    let listed = || network.access_list.iter().chain(network.links.iter().map(|named| &named.link));
    let rtt_ns = shape.into_iter().flatten().map(delay).sum::<u64>()
        + shape.into_iter().zip(back).filter_map(|(f, b)| b.as_ref().or(f.as_ref())).map(delay).sum::<u64>()
        + listed().map(|link| 2 * delay(link)).sum::<u64>();

    // the other links cannot hold more than these let through, or the flows' own allowance below
    let shared = [&network.bottleneck, &network.reverse.bottleneck].into_iter().flatten();
    let shared: u64 = shared.chain(listed()).map(|link| capacity(link, rtt_ns)).sum();
    let own = |group: &FlowGroup| match &group.workload {
        Workload::Population { clients, queue_packets, bytes, .. } => {
            let each = response_packets(bytes).min(*queue_packets as u64 + OWN_PATH_PACKETS);
            *clients as u64 * group.count as u64 * each
        }
        _ => group.count as u64 * OWN_PATH_PACKETS,
    };
    shared + scenario.flows.iter().map(own).sum::<u64>()
}

/// Packets that wait at a link or fly because of it.
fn capacity(link: &Link, rtt_ns: u64) -> u64 {
    let bdp = packets(link.rate_bps.unwrap_or(FASTEST_BPS), rtt_ns);
    let waiting = match link.queue {
        Some(
            Queue::DropTail { limit_packets: Some(limit), .. }
            | Queue::NetemLimit { limit_packets: limit }
            | Queue::Codel { limit_packets: Some(limit), .. }
            | Queue::Red { limit_packets: limit, .. },
        ) => limit as u64,
        Some(Queue::DropTail { limit_bytes: Some(limit), .. }) => limit / LEAST_BYTES,
        _ => 2 * bdp,
    };
    2 * bdp + waiting
}

/// Data packets that the run can carry at most: what the bottleneck lets through, or what the applications ask for.
fn carried(scenario: &Scenario) -> u64 {
    scenario.flows.iter().map(|group| carried_by(scenario, &group.workload, group.count)).sum()
}

fn carried_by_flow_0(scenario: &Scenario) -> u64 {
    scenario.flows.first().map_or(0, |group| carried_by(scenario, &group.workload, 1))
}

fn carried_by(scenario: &Scenario, workload: &Workload, count: u32) -> u64 {
    let count = count as u64;
    let network = &scenario.network;
    let slowest = network.bottleneck.iter().filter_map(|l| l.rate_bps).min();
    let graph = network.links.iter().filter_map(|l| l.link.rate_bps).max();
    let link = packets(slowest.or(graph).unwrap_or(FASTEST_BPS), scenario.duration_ns);
    let payload = |bytes: u64| bytes / 1000 + 10;
    match workload {
        Workload::Bulk => link,
        Workload::Transfer { bytes } => (count * payload(*bytes)).min(link + count),
        Workload::Fetch { bytes, count: fetches, .. } => {
            (count * *fetches as u64 * payload(*bytes)).min(link + count)
        }
        Workload::Throttled { rate_bps, .. } => {
            (count * packets(*rate_bps, scenario.duration_ns)).min(link + count)
        }
        Workload::Population { clients, requests, bytes, .. } => {
            count * *clients as u64 * *requests as u64 * response_packets(bytes)
        }
    }
}

/// Packets of one response, twice the mean.
fn response_packets(bytes: &Distribution) -> u64 {
    let mean = match bytes {
        &Distribution::Constant { value } => value,
        &Distribution::Uniform { low, high } => (low + high) / 2.0,
        &Distribution::Lognormal { median, sigma } => median * libm::exp(sigma * sigma / 2.0),
        &Distribution::Exponential { mean } => mean,
        Distribution::Choice { values } => values.iter().sum::<f64>() / values.len().max(1) as f64,
    };
    (mean / 500.0) as u64 + 10
}

fn fetches(scenario: &Scenario) -> u64 {
    let of = |workload: &Workload| match workload {
        Workload::Fetch { count, .. } => *count as u64,
        Workload::Population { clients, requests, .. } => *clients as u64 * *requests as u64,
        _ => 0,
    };
    scenario.flows.iter().map(|group| group.count as u64 * of(&group.workload)).sum()
}

/// Full packets in `ns` at `bps`.
fn packets(bps: u64, ns: u64) -> u64 {
    (bps as u128 * ns as u128 / (1500 * 8 * 1_000_000_000)) as u64
}

/// A packet without payload.
const LEAST_BYTES: u64 = 40;
/// Program, tables' overhead, allocator.
const BASE_BYTES: u64 = 8 << 20;
const LINK_BYTES: u64 = 1024;
/// Buffers of a connection that exist even without packets.
const CONNECTION_BYTES: u64 = 8 << 10;
/// What sender and receiver remember of a packet in flight.
const SCOREBOARD_BYTES: u64 = 256;
/// A ring that grows is up to twice as large as needed, and thrice while it is copied.
const GROWTH: u64 = 3;
/// Rows, growth of their vector, and columns made of them.
const COPIES: u64 = 3;
/// Packets on links of a flow's own.
const OWN_PATH_PACKETS: u64 = 200;
/// For links without a rate.
const FASTEST_BPS: u64 = 10_000_000_000;
