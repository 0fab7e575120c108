//! Upper estimates of a run's memory, disk space and CPU time, computed before the run.

use std::mem::size_of;

use ackclock_core::{Packet, Rate, Span};
use ackclock_net::link::LinkParams;
use ackclock_net::{Limit, QueueConfig};
use ackclock_pcc::IntervalRow;
use ackclock_tcp::{Connection, Record, VarsRow};

use crate::capture::Captured;
use crate::scenario::names::{is_foreign, is_pcc};
use crate::scenario::spec::{CapturePoint, FlowGroup, Scenario, Topology, TraceLevel};
use crate::tables::samples::{LimitRow, QueueRow, SampleRow};
use crate::workload::needs::{packets, CONNECTION_BYTES, COPIES, FASTEST_BPS, FULL_BYTES};
use crate::workload::Asks;

/// Upper estimate of a run's memory, bytes: packets on links, connections, recorded rows. Packets held by a stalled
/// host or delayed for seconds by reordering are not included. Links without a rate are assumed to run at
/// `FASTEST_BPS`. A run that needs more is ended by [`crate::scenario::bounds`]. Nothing is built, so a scenario
/// beyond all bounds is rejected at once. Sums are floats, so they cannot overflow.
pub fn estimate_memory(scenario: &Scenario) -> u64 {
    let flows = flows(scenario);
    let links = links(scenario, flows);
    let carried = carried(scenario);

    let per_packet = (size_of::<Packet>() + 8) as f64 * GROWTH + SCOREBOARD_BYTES;
    let excess = excess(scenario);
    let piled = if any_unlimited(scenario) { excess * DATAGRAM_BYTES } else { 0.0 };
    let blind = blind(scenario);
    let network = held(scenario).min(carried) * per_packet + piled + blind * PIECE_BYTES + links * LINK_BYTES;
    // QUIC: the bytes themselves, the stack's record of each packet, and data waiting for earlier data
    let quic: f64 = quic(scenario).map(|group| group.members() as f64).sum();
    let quic = match quic > 0.0 {
        true => {
            let window = held(scenario).min(carried) * QUIC_PACKET_BYTES;
            window + quic * (QUIC_CONNECTION_BYTES + carried.min(QUIC_GAPS) * QUIC_PACKET_BYTES)
        }
        false => 0.0,
    };
    let connections = quic + flows * (2.0 * size_of::<Connection>() as f64 + CONNECTION_BYTES);

    let record = &scenario.record;
    let rows = |interval: u64, each: f64, size: usize| match interval {
        0 => 0.0,
        ns => scenario.duration_ns as f64 / ns as f64 * each * size as f64 * COPIES,
    };
    let pcc = |(group, _): &(&FlowGroup, u64)| is_pcc(&group.congestion_control);
    // PCC has no rows per ACK
    let traced = of_all(scenario, followed(scenario, record.trace).filter(|of| !pcc(of)));
    // PCC flows are not sampled
    let tcp = scenario.flows.iter().filter(|group| !is_pcc(&group.congestion_control));
    let tcp: f64 = tcp.map(|group| group.members() as f64).sum();
    let sampled = rows(record.sample_interval_ns, tcp, size_of::<SampleRow>())
        + rows(record.queue_interval_ns, links, size_of::<QueueRow>())
        + rows(record.goodput_interval_ns, flows, 32)
        + rows(record.limits_interval_ns, tcp, size_of::<LimitRow>());
    // one row per transmission and one per ACK
    let trace = traced * 2.0 * size_of::<Record>() as f64 * COPIES;
    let vars = of_all(scenario, followed(scenario, record.controller).filter(|of| !pcc(of)));
    let followed_flows: u64 = followed(scenario, record.controller).map(|(_, flows)| flows).sum();
    let vars = match record.controller_interval_ns {
        0 => vars,
        ns => vars.min(followed_flows as f64 * scenario.duration_ns as f64 / ns as f64),
    };
    let intervals: f64 = followed(scenario, record.controller)
        .filter(pcc)
        .map(|(group, flows)| intervals(scenario, group, flows))
        .sum();
    let vars =
        vars * size_of::<VarsRow>() as f64 * COPIES + intervals * size_of::<IntervalRow>() as f64 * COPIES;
    // data packets and ACKs
    let captured = carried * 2.0 + blind;
    let capture =
        (record.capture != CapturePoint::None) as u8 as f64 * captured * size_of::<Captured>() as f64;
    let drops =
        record.drops as u8 as f64 * (carried / 10.0 + excess + blind) * size_of::<Packet>() as f64 * COPIES;
    let performance = u8::from(record.measures()) as f64 * flows * PERFORMANCE_BYTES;
    let workloads = workloads(scenario);
    (BASE_BYTES + network + connections + sampled + trace + vars + capture + drops + performance + workloads)
        as u64
}

/// Disk space that the capture of one run may need, bytes: full packets with the headers of the file format, and one
/// ACK per two packets.
pub fn estimate_capture(scenario: &Scenario) -> u64 {
    let of = |group: &FlowGroup| {
        let each = size(group) + CAPTURE_BYTES + (HEADER_BYTES + CAPTURE_BYTES) / 2.0;
        carried_by(scenario, group, group.members()) * each
    };
    scenario.flows.iter().map(of).sum::<f64>() as u64
}

/// Upper estimate of a run's CPU time, s: packets, periodic samples, and link changes. For built-in controllers it is
/// accurate to within a small factor, which is enough to reject runs of hours or days.
pub fn estimate_time(scenario: &Scenario) -> f64 {
    let flows = flows(scenario);
    let duration = Span(scenario.duration_ns);
    let network = &scenario.network;
    let shape = [&network.access, &network.bottleneck, &network.egress];
    let back = [&network.reverse.access, &network.reverse.bottleneck, &network.reverse.egress];
    let changes =
        |link: &LinkParams| link.capacity.as_ref().map_or(0.0, |capacity| capacity.changes(duration));
    let own = match network.topology {
        Topology::Chain | Topology::Graph => 1.0,
        Topology::Dumbbell | Topology::Wishbone => flows,
    };
    let both = |at: usize| {
        let there = shape[at].as_ref().map_or(0.0, changes);
        there + back[at].as_ref().or(shape[at].as_ref()).map_or(0.0, changes)
    };
    let listed = network.access_list.iter().map(|link| 2.0 * changes(link) * flows).sum::<f64>()
        + network.links.iter().map(|named| 2.0 * changes(&named.link.0)).sum::<f64>();
    let changes = both(1) + own * (both(0) + both(2)) + listed;

    let record = &scenario.record;
    let rows = |interval: u64, each: f64| match interval {
        0 => 0.0,
        ns => scenario.duration_ns as f64 / ns as f64 * each,
    };
    let rows = rows(record.sample_interval_ns, flows)
        + rows(record.queue_interval_ns, links(scenario, flows))
        + rows(record.goodput_interval_ns, flows)
        + rows(record.limits_interval_ns, flows);
    let quic: f64 = quic(scenario).map(|group| carried_by(scenario, group, group.members())).sum();
    (carried(scenario) * PACKET_NS
        + quic.min(2.0 * carried(scenario)) * QUIC_PACKET_NS
        + changes * CHANGE_NS
        + rows * ROW_NS)
        / 1e9
}

/// Groups that use QUIC or another external stack.
fn quic(scenario: &Scenario) -> impl Iterator<Item = &FlowGroup> {
    scenario.flows.iter().filter(|group| is_foreign(&group.congestion_control))
}

/// Number of flows in the run. Each client of a population is a flow.
fn flows(scenario: &Scenario) -> f64 {
    scenario.flows.iter().map(|group| group.members() as f64).sum()
}

/// Maximum number of links in the run, counting both directions. Access links, egress links and clients' paths belong
/// to one flow each.
fn links(scenario: &Scenario, flows: f64) -> f64 {
    let network = &scenario.network;
    let shape = [&network.access, &network.bottleneck, &network.egress];
    let back = [&network.reverse.access, &network.reverse.bottleneck, &network.reverse.egress];
    // one in each direction
    let both = |(there, back): (&Option<LinkParams>, &Option<LinkParams>)| there.is_some() || back.is_some();
    let shared = 2.0 * network.links.len() as f64
        + 2.0 * shape.into_iter().zip(back).filter(|of| both(*of)).count() as f64;
    match scenario.network.topology {
        Topology::Chain | Topology::Graph => {
            let own = scenario.flows.iter().filter(|g| g.workload.params().has_own_path());
            shared + own.map(|_| 4.0 * flows).sum::<f64>()
        }
        Topology::Dumbbell | Topology::Wishbone => shared + 4.0 * flows,
    }
}

/// Minimum round-trip time of a chain, ns; 0 for other topologies, in which paths differ.
fn least_rtt_ns(scenario: &Scenario) -> f64 {
    let network = &scenario.network;
    let shape = [&network.access, &network.bottleneck, &network.egress];
    let back = [&network.reverse.access, &network.reverse.bottleneck, &network.reverse.egress];
    let least = |link: &LinkParams| if link.capacity.is_some() { 0.0 } else { link.delay.0 as f64 };
    match network.topology {
        Topology::Chain => shape
            .into_iter()
            .zip(back)
            .map(|(there, back)| {
                there.as_ref().map_or(0.0, least) + back.as_ref().or(there.as_ref()).map_or(0.0, least)
            })
            .sum(),
        Topology::Dumbbell | Topology::Wishbone | Topology::Graph => 0.0,
    }
}

/// Maximum number of packets on the scenario's links at any time.
fn held(scenario: &Scenario) -> f64 {
    let network = &scenario.network;
    let shape = [&network.access, &network.bottleneck, &network.egress];
    let back = [&network.reverse.access, &network.reverse.bottleneck, &network.reverse.egress];
    let delay = |link: &LinkParams| link.longest_delay().0 as f64;
    let listed = || network.access_list.iter().chain(network.links.iter().map(|named| &named.link.0));
    let rtt_ns = shape.into_iter().flatten().map(delay).sum::<f64>()
        + shape.into_iter().zip(back).filter_map(|(f, b)| b.as_ref().or(f.as_ref())).map(delay).sum::<f64>()
        + listed().map(|link| 2.0 * delay(link)).sum::<f64>();

    // the other links contain only packets forwarded by the bottleneck, or those added per flow below
    let shared = [&network.bottleneck, &network.reverse.bottleneck].into_iter().flatten();
    // twice the packets for TCP, whose packets may be small
    let pcc = scenario.flows.iter().all(|group| is_pcc(&group.congestion_control));
    let times = if pcc { 1.0 } else { 2.0 };
    let shared: f64 = shared.chain(listed()).map(|link| capacity(link, rtt_ns, times)).sum();
    let own = |group: &FlowGroup| group.members() as f64 * group.workload.params().held();
    shared + scenario.flows.iter().map(own).sum::<f64>()
}

/// Datagrams from unlimited sources in excess of the bottleneck capacity. They are queued or dropped.
fn excess(scenario: &Scenario) -> f64 {
    let of = |group: &FlowGroup| {
        let workload = group.workload.params();
        match workload.asks(Span(scenario.duration_ns)) {
            Asks::Regardless(each) if !workload.has_own_path() => group.members() as f64 * each,
            _ => 0.0,
        }
    };
    let sent: f64 = scenario.flows.iter().map(of).sum();
    (sent - bottleneck(scenario)).max(0.0)
}

/// Datagrams that PCC sends before the first result is known. The rate doubles with each interval. With a queue of
/// many RTTs it doubles many times, until a window is outstanding. Measured: 78 per packet carried in the first
/// second.
fn blind(scenario: &Scenario) -> f64 {
    let rtt_ns = least_rtt_ns(scenario).max(1.0);
    let waits_ns = match &scenario.network.bottleneck {
        Some(link) => match (peak_bps(link), link.queue.as_ref().and_then(QueueConfig::limit)) {
            (Some(bps), Some(Limit::Packets(limit))) => limit as f64 / packets(bps, 1.0),
            (Some(bps), Some(Limit::Bytes(limit))) => limit as f64 / FULL_BYTES / packets(bps, 1.0),
            (None, _) => 0.0,
            (Some(_), None) => f64::INFINITY,
        },
        None => 0.0,
    };
    let window = f64::from(ackclock_pcc::Config::default().window);
    let of = |group: &FlowGroup| {
        let rtts = match group.congestion_control.as_str() {
            "pcc-allegro" | "pcc-allegro-herc" | "pcc-allegro-modong" => 1.5,
            _ => 1.0,
        };
        let doublings = 1.0 + (rtt_ns + waits_ns) / (rtts * rtt_ns);
        let asked = match group.workload.params().asks(Span(scenario.duration_ns)) {
            Asks::Everything => window,
            Asks::Packets(each) | Asks::Regardless(each) => each,
        };
        group.members() as f64 * (FIRST_DATAGRAMS * 2f64.powf(doublings)).min(window).min(asked)
    };
    scenario.flows.iter().filter(|group| is_pcc(&group.congestion_control)).map(of).sum()
}

/// Whether any link's queue is unlimited.
fn any_unlimited(scenario: &Scenario) -> bool {
    let network = &scenario.network;
    let shape = [&network.access, &network.bottleneck, &network.egress];
    let listed = network.access_list.iter().chain(network.links.iter().map(|named| &named.link.0));
    let unlimited = |link: &LinkParams| link.queue.as_ref().and_then(QueueConfig::limit).is_none();
    shape.into_iter().flatten().chain(listed).any(unlimited)
}

/// Maximum sustained rate of a link, bit/s; `None` = infinite.
fn peak_bps(link: &LinkParams) -> Option<u64> {
    let rate = link.greatest_rate();
    (rate != Rate::INFINITE).then_some(rate.0)
}

/// Packets queued at a link or in flight because of it: `times` BDPs plus the queue limit.
fn capacity(link: &LinkParams, rtt_ns: f64, times: f64) -> f64 {
    let bdp = packets(peak_bps(link).unwrap_or(FASTEST_BPS), rtt_ns);
    let waiting = match link.queue.as_ref().and_then(QueueConfig::limit) {
        Some(Limit::Packets(limit)) => limit as f64,
        Some(Limit::Bytes(limit)) => limit as f64 / LEAST_BYTES,
        None => 2.0 * bdp,
    };
    times * bdp + waiting
}

/// Maximum number of data packets in the run: as many as the bottleneck passes, or as the applications send.
fn carried(scenario: &Scenario) -> f64 {
    of_all(scenario, scenario.flows.iter().map(|group| (group, group.members())))
}

/// Data packets of these groups. Groups that share the bottleneck together send no more than it can carry.
fn of_all<'a>(scenario: &Scenario, groups: impl Iterator<Item = (&'a FlowGroup, u64)>) -> f64 {
    let shared = scenario.network.topology != Topology::Graph;
    let (mut regardless, mut sum, mut most) = (0.0, 0.0, 0.0f64);
    for (group, flows) in groups {
        let workload = group.workload.params();
        let carried = carried_by(scenario, group, flows);
        match workload.asks(Span(scenario.duration_ns)) {
            Asks::Everything | Asks::Packets(_) if shared && !workload.has_own_path() => {
                sum += carried;
                most = most.max(bottleneck(scenario) * (FULL_BYTES / size(group)).max(1.0) + flows as f64);
            }
            _ => regardless += carried,
        }
    }
    regardless + sum.min(most)
}

/// Recorded groups, each with the number of its recorded flows: none, the group of flow 0, or all.
fn followed(scenario: &Scenario, level: TraceLevel) -> impl Iterator<Item = (&FlowGroup, u64)> {
    let groups = match level {
        TraceLevel::None => 0,
        TraceLevel::Flow => 1,
        TraceLevel::All => scenario.flows.len(),
    };
    let of = move |group: &FlowGroup| match level {
        TraceLevel::Flow => group.workload.params().flows(),
        TraceLevel::None | TraceLevel::All => group.members(),
    };
    scenario.flows.iter().take(groups).map(move |group| (group, of(group)))
}

/// Maximum number of PCC's monitor intervals. Each covers ten or more packets, most of which may be lost. Measured
/// with many flows on a slow link: 0.31 per packet carried.
fn intervals(scenario: &Scenario, group: &FlowGroup, flows: u64) -> f64 {
    let by_packets = carried_by(scenario, group, flows) / 2.0;
    // at least one RTT, or half an RTT with an option; one interval in ten is cut short
    let shortest_ns = match group.congestion_control_options.contains_key("interval_rtts") {
        true => 0.45 * least_rtt_ns(scenario),
        false => 0.9 * least_rtt_ns(scenario),
    };
    by_packets.min(flows as f64 * (scenario.duration_ns as f64 / shortest_ns + 8.0))
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

/// Size of a group's full packet, bytes.
fn size(group: &FlowGroup) -> f64 {
    group.stack.smss.map_or(FULL_BYTES, |smss| smss as f64 + HEADER_BYTES)
}

/// Number of full packets that can pass the bottleneck during the run.
fn bottleneck(scenario: &Scenario) -> f64 {
    let network = &scenario.network;
    let slowest = network.bottleneck.iter().filter_map(peak_bps).min();
    let graph = network.links.iter().filter_map(|l| peak_bps(&l.link.0)).max();
    packets(slowest.or(graph).unwrap_or(FASTEST_BPS), scenario.duration_ns as f64)
}

/// Memory for the workloads' rows and open connections, bytes.
fn workloads(scenario: &Scenario) -> f64 {
    let of = |(index, group): (usize, &FlowGroup)| {
        let workload = group.workload.params();
        let rows = group.members() as f64 * workload.rows(Span(scenario.duration_ns)) * COPIES;
        rows + workload.memory(&scenario.place(index))
    };
    scenario.flows.iter().enumerate().map(of).sum()
}

/// Size of the IP and TCP headers with timestamps, bytes.
const HEADER_BYTES: f64 = 52.0;
/// Bytes that a capture adds to a packet: Ethernet header, options, and the file format's block.
const CAPTURE_BYTES: f64 = 60.0;

/// CPU time per data packet and its ACK, over all links, ns. Measured: 160 for one flow, three times that for many.
const PACKET_NS: f64 = 1000.0;
/// Additional CPU time per QUIC packet and its ACK in both ends' stacks, ns. Measured: 3000.
const QUIC_PACKET_NS: f64 = 4000.0;
/// Memory per QUIC packet, bytes: its content and both ends' records.
const QUIC_PACKET_BYTES: f64 = 2500.0;
/// Memory of both ends of a QUIC connection, excluding packets, bytes. Measured: 60 kB.
const QUIC_CONNECTION_BYTES: f64 = 100_000.0;
/// Maximum number of packets waiting at a receiver for earlier ones: twice the number of allowed gaps.
const QUIC_GAPS: f64 = 2048.0;
/// CPU time per link change, ns. Measured: 27 if the capacity is random.
const CHANGE_NS: f64 = 40.0;
/// CPU time per row of a periodic record, ns.
const ROW_NS: f64 = 100.0;

/// Memory per lost datagram in PCC's sender and receiver, bytes.
const PIECE_BYTES: f64 = 64.0;
/// Number of datagrams in PCC's first interval.
const FIRST_DATAGRAMS: f64 = 10.0;
/// Size of a packet without payload, bytes.
const LEAST_BYTES: f64 = 40.0;
/// Memory for program, tables and allocator, bytes. Measured: 3.5 MB for any run.
const BASE_BYTES: f64 = (4 << 20) as f64;
const LINK_BYTES: f64 = 1024.0;
/// Memory per flow for histograms and slices, bytes.
const PERFORMANCE_BYTES: f64 = 262_144.0;
/// Memory per packet in flight in its sender and receiver, bytes.
const SCOREBOARD_BYTES: f64 = 256.0;
/// Memory per queued datagram, bytes. Its ring buffer may be twice as large, and [`crate::scenario::bounds`] counts
/// it twice.
const DATAGRAM_BYTES: f64 = 4.0 * (size_of::<Packet>() + 8) as f64;
/// Growth factor of ring buffers: twice the needed size, and three times while the buffer is copied.
const GROWTH: f64 = 3.0;
