//! How much memory a run will need at most, computed before it starts.

use std::mem::size_of;

use ackclock_core::datagram::UDP_IP_BYTES;
use ackclock_core::trace::Record;
use ackclock_core::Packet;
use ackclock_net::Limit;
use ackclock_tcp::{Connection, VarsRow};

use crate::capture::Captured;
use crate::flow::FetchRow;
use crate::observe::{QueueRow, SampleRow};
use crate::spec::{
    Arrivals, Capacity, CapturePoint, Distribution, FlowGroup, Link, Scenario, Topology, TraceLevel,
    TransactionLevel, Workload,
};
use crate::tally::TransactionRow;
use crate::workload::video::ChunkRow;

/// Upper estimate of the memory of one run, bytes: packets that links can hold, connections, rows of what is recorded.
/// Nothing is built, so that a scenario beyond all bounds is refused at once; sums are floats, so that none overflows.
pub fn estimate_memory(scenario: &Scenario) -> u64 {
    let flows = flows(scenario);
    let links = links(scenario, flows);
    let carried = carried(scenario);

    let per_packet = (size_of::<Packet>() + 8) as f64 * GROWTH + SCOREBOARD_BYTES;
    let network = held(scenario).min(carried) * per_packet + links * LINK_BYTES;
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
    let drops = record.drops as u8 as f64 * carried / 10.0 * size_of::<Packet>() as f64 * COPIES;
    let fetches = fetches(scenario) * size_of::<FetchRow>() as f64 * COPIES;
    let transactions = transactions(scenario);
    let chunks = chunks(scenario) * size_of::<ChunkRow>() as f64 * COPIES;
    let rows = fetches + transactions + chunks;
    (BASE_BYTES + network + connections + sampled + trace + vars + capture + drops + rows) as u64
}

/// Flows of the run; each client of a population is one.
fn flows(scenario: &Scenario) -> f64 {
    let of = |group: &FlowGroup| match group.workload {
        Workload::Population { clients, .. } => group.count as f64 * clients as f64,
        _ => group.count as f64,
    };
    scenario.flows.iter().map(of).sum()
}

/// Links of the run, both directions, at most: edges and clients' paths belong to one flow each.
fn links(scenario: &Scenario, flows: f64) -> f64 {
    let shared = scenario.network.links.len() as f64 + 6.0;
    match scenario.network.topology {
        Topology::Chain | Topology::Graph => {
            let own = scenario.flows.iter().filter(|g| matches!(g.workload, Workload::Population { .. }));
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
    let delay = |link: &Link| longest_delay_ns(link) + link.jitter_ns as f64;
    let listed = || network.access_list.iter().chain(network.links.iter().map(|named| &named.link));
    let rtt_ns = shape.into_iter().flatten().map(delay).sum::<f64>()
        + shape.into_iter().zip(back).filter_map(|(f, b)| b.as_ref().or(f.as_ref())).map(delay).sum::<f64>()
        + listed().map(|link| 2.0 * delay(link)).sum::<f64>();

    // the other links cannot hold more than these let through, or the flows' own allowance below
    let shared = [&network.bottleneck, &network.reverse.bottleneck].into_iter().flatten();
    let shared: f64 = shared.chain(listed()).map(|link| capacity(link, rtt_ns)).sum();
    let own = |group: &FlowGroup| match &group.workload {
        Workload::Population { clients, queue_packets, bytes, .. } => {
            let each = response_packets(bytes).min(*queue_packets as f64 + OWN_PATH_PACKETS);
            *clients as f64 * group.count as f64 * each
        }
        _ => group.count as f64 * OWN_PATH_PACKETS,
    };
    shared + scenario.flows.iter().map(own).sum::<f64>()
}

/// The greatest rate that a link has for long, bit/s; `None` = infinite.
fn peak_bps(link: &Link) -> Option<u64> {
    match &link.capacity {
        None | Some(Capacity::Dummynet(_)) => link.rate_bps,
        Some(Capacity::Schedule { steps, .. }) => {
            steps.iter().filter_map(|s| s.rate_bps).chain(link.rate_bps).max()
        }
        Some(Capacity::Random { rate_bps: None, .. }) => link.rate_bps,
        Some(Capacity::Random { rate_bps: Some(drawn), .. }) => Some(greatest(drawn) as u64),
        Some(Capacity::Mahimahi { .. }) => link.mean_bps(),
    }
}

fn longest_delay_ns(link: &Link) -> f64 {
    let own = link.delay_ns as f64;
    match &link.capacity {
        Some(Capacity::Schedule { steps, .. }) => {
            steps.iter().filter_map(|s| s.delay_ns).fold(own, |longest, ns| longest.max(ns as f64))
        }
        Some(Capacity::Random { delay_s: Some(drawn), .. }) => greatest(drawn) * 1e9,
        _ => own,
    }
}

/// What a distribution hardly ever exceeds.
fn greatest(distribution: &Distribution) -> f64 {
    match distribution {
        &Distribution::Constant { value } => value,
        &Distribution::Uniform { high, .. } => high,
        &Distribution::Lognormal { median, sigma } => median * libm::exp(4.0 * sigma),
        &Distribution::Exponential { mean } => 10.0 * mean,
        Distribution::Choice { values } => values.iter().copied().fold(0.0, f64::max),
    }
}

/// Packets that wait at a link or fly because of it.
fn capacity(link: &Link, rtt_ns: f64) -> f64 {
    let bdp = packets(peak_bps(link).unwrap_or(FASTEST_BPS), rtt_ns);
    let waiting = match link.queue.limit() {
        Some(Limit::Packets(limit)) => limit as f64,
        Some(Limit::Bytes(limit)) => limit as f64 / LEAST_BYTES,
        None => 2.0 * bdp,
    };
    2.0 * bdp + waiting
}

/// Data packets that the run can carry at most: what the bottleneck lets through, or what the applications ask for.
fn carried(scenario: &Scenario) -> f64 {
    scenario.flows.iter().map(|group| carried_by(scenario, &group.workload, group.count)).sum()
}

fn carried_by_flow_0(scenario: &Scenario) -> f64 {
    scenario.flows.first().map_or(0.0, |group| carried_by(scenario, &group.workload, 1))
}

fn carried_by(scenario: &Scenario, workload: &Workload, count: u32) -> f64 {
    let count = count as f64;
    let network = &scenario.network;
    let slowest = network.bottleneck.iter().filter_map(peak_bps).min();
    let graph = network.links.iter().filter_map(|l| peak_bps(&l.link)).max();
    let link = packets(slowest.or(graph).unwrap_or(FASTEST_BPS), scenario.duration_ns as f64);
    let payload = |bytes: u64| bytes as f64 / 1000.0 + 10.0;
    match workload {
        Workload::Bulk | Workload::Transactions(_) => link,
        Workload::Transfer { bytes } => (count * payload(*bytes)).min(link + count),
        Workload::Fetch { bytes, count: fetches, .. } => {
            (count * *fetches as f64 * payload(*bytes)).min(link + count)
        }
        Workload::Video(video) => {
            let bps = video.ladder_bps.iter().copied().max().unwrap_or(0);
            let ns =
                (scenario.duration_ns as f64 + video.buffer_max_ns as f64) * (1.0 + video.size_variation);
            (count * packets(bps, ns)).min(link + count)
        }
        Workload::Throttled { rate_bps, .. } => {
            (count * packets(*rate_bps, scenario.duration_ns as f64)).min(link + count)
        }
        Workload::ConstantRate { rate_bps, payload_bytes }
        | Workload::OnOff { rate_bps, payload_bytes, .. } => {
            let each = (*payload_bytes as f64 + UDP_IP_BYTES as f64) * 8e9;
            count * *rate_bps as f64 * scenario.duration_ns as f64 / each
        }
        Workload::Voice { interval_ns, .. } => {
            count * scenario.duration_ns as f64 / (*interval_ns).max(1) as f64
        }
        Workload::Population { clients, requests, bytes, .. } => {
            count * *clients as f64 * *requests as f64 * response_packets(bytes)
        }
    }
}

/// Rows of transactions, and the connections that they have open.
fn transactions(scenario: &Scenario) -> f64 {
    let duration_s = scenario.duration_ns as f64 * 1e-9;
    let network = &scenario.network;
    let listed = network.links.iter().filter_map(|l| l.link.mean_bps()).max();
    let bps = network.bottleneck.as_ref().and_then(Link::mean_bps).or(listed).unwrap_or(FASTEST_BPS) as f64;
    let of = |group: &FlowGroup| {
        let Workload::Transactions(spec) = &group.workload else { return 0.0 };
        let each = spec.objects.map_or(spec.batch as f64 * spec.requests as f64, f64::from);
        let clients_per_s = match &spec.arrivals {
            &Arrivals::Poisson { rate_per_s: Some(rate), .. } => rate,
            &Arrivals::Poisson { load, .. } => {
                load.unwrap_or(1.0) * bps / (8.0 * each * mean(&spec.bytes).max(1.0))
            }
            &Arrivals::Periodic { interval_ns } => group.count as f64 * 1e9 / interval_ns.max(1) as f64,
            Arrivals::At { times_ns } => group.count as f64 * times_ns.len() as f64 / duration_s,
        };
        let most = spec.count.map_or(f64::INFINITY, |count| count as f64 * each / spec.batch.max(1) as f64);
        let all = (clients_per_s * each * duration_s).min(most);
        let rows = match scenario.record.transactions {
            TransactionLevel::Rows => all * size_of::<TransactionRow>() as f64 * COPIES,
            TransactionLevel::Summary => 0.0,
        };
        let limit = spec.max_open.map_or(f64::INFINITY, f64::from);
        let open = (clients_per_s * spec.batch as f64 * OPEN_S).min(all).min(limit);
        rows + open * (2.0 * size_of::<Connection>() as f64 + CONNECTION_BYTES)
    };
    scenario.flows.iter().map(of).sum()
}

/// Packets of one response, twice the mean.
fn response_packets(bytes: &Distribution) -> f64 {
    mean(bytes) / 500.0 + 10.0
}

fn mean(bytes: &Distribution) -> f64 {
    match bytes {
        &Distribution::Constant { value } => value,
        &Distribution::Uniform { low, high } => (low + high) / 2.0,
        &Distribution::Lognormal { median, sigma } => median * libm::exp(sigma * sigma / 2.0),
        &Distribution::Exponential { mean } => mean,
        Distribution::Choice { values } => values.iter().sum::<f64>() / values.len().max(1) as f64,
    }
}

fn fetches(scenario: &Scenario) -> f64 {
    let of = |workload: &Workload| match workload {
        Workload::Fetch { count, .. } => *count as f64,
        Workload::Population { clients, requests, .. } => *clients as f64 * *requests as f64,
        _ => 0.0,
    };
    scenario.flows.iter().map(|group| group.count as f64 * of(&group.workload)).sum()
}

/// Chunks that players fetch: what they play, and what they have ahead.
fn chunks(scenario: &Scenario) -> f64 {
    let of = |workload: &Workload| match workload {
        Workload::Video(video) => {
            let ahead = video.buffer_max_ns as f64;
            (scenario.duration_ns as f64 + ahead) / video.chunk_ns.max(1) as f64 + 1.0
        }
        _ => 0.0,
    };
    scenario.flows.iter().map(|group| group.count as f64 * of(&group.workload)).sum()
}

/// Full packets in `ns` at `bps`.
fn packets(bps: u64, ns: f64) -> f64 {
    bps as f64 * ns / (1500.0 * 8.0 * 1e9)
}

/// A packet without payload.
const LEAST_BYTES: f64 = 40.0;
/// Program, tables' overhead, allocator.
const BASE_BYTES: f64 = (8 << 20) as f64;
const LINK_BYTES: f64 = 1024.0;
/// Buffers of a connection that exist even without packets.
const CONNECTION_BYTES: f64 = (8 << 10) as f64;
/// What sender and receiver remember of a packet in flight.
const SCOREBOARD_BYTES: f64 = 256.0;
/// A ring that grows is up to twice as large as needed, and thrice while it is copied.
const GROWTH: f64 = 3.0;
/// Rows, growth of their vector, and columns made of them.
const COPIES: f64 = 3.0;
/// Packets on links of a flow's own.
const OWN_PATH_PACKETS: f64 = 200.0;
/// Ours: how long a transaction's connection is open, on a path as slow as those of our studies.
const OPEN_S: f64 = 30.0;
/// For links without a rate.
const FASTEST_BPS: u64 = 10_000_000_000;
