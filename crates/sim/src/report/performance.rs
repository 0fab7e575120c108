//! Performance of each flow after the warm-up: goodput and share, losses, round-trip times and one-way delays. Memory
//! does not depend on the length of the run: sums and two histograms per flow ([`crate::world::gauges`]), plus
//! [`SLICES`] counters.

use std::borrow::Cow;

use ackclock_core::{FlowId, Span, Time};

use crate::tables::columns::columns;
use crate::tables::table::Table;
use crate::workload::flow::Flow;
use crate::world::gauges::{Gauge, Gauges};
use crate::world::{World, SENDER};

/// Number of equal slices of the run. Each flow's bytes are counted per slice.
pub const SLICES: usize = 128;
/// Number of slices over which goodput is averaged before it is compared with an equal share: 1/32 of the run.
const WINDOW: usize = 4;
/// Fraction of an equal share that a flow has to reach.
const REACHED: f64 = 0.9;

/// Per-flow counters at the hosts, read at the end of the warm-up and at the end of each slice.
#[derive(Clone)]
pub struct Meter {
    from: Time,
    /// Length of a slice.
    pub slice: Span,
    /// Per-flow counters at the end of the warm-up.
    before: Vec<Counts>,
    /// For each flow, bytes acknowledged by the end of each slice.
    acked: Vec<Vec<u64>>,
}

/// A flow's counters since its start.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// Bytes acknowledged.
    pub acked: u64,
    /// Data packets sent, including retransmissions.
    pub sent: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub rtos: u64,
}

impl Counts {
    /// Read a flow's counters.
    pub fn now(flow: &Flow, world: &World) -> Counts {
        let closed = flow.sums();
        let mut counts = Counts {
            acked: flow.acked(world),
            sent: closed.sent_packets,
            retransmissions: closed.retransmissions,
            rtos: closed.rtos,
        };
        for &(conn, _) in &flow.open {
            let sender = world.transport(conn, SENDER);
            let (sent, retransmissions) = sender.sent();
            counts.sent += sent;
            counts.retransmissions += retransmissions;
            counts.rtos += sender.tcp().map_or(0, |tcp| tcp.stats().rtos.into());
        }
        counts
    }
}

impl Meter {
    /// Return a meter for a run of this length whose warm-up ends at `from`.
    pub fn new(duration: Span, from: Time, flows: usize) -> Meter {
        Meter {
            from,
            slice: Span(duration.0 / SLICES as u64),
            before: vec![Counts::default(); flows],
            acked: vec![Vec::with_capacity(SLICES); flows],
        }
    }

    /// Record the counters at the end of the warm-up.
    pub fn begin(&mut self, counts: impl Iterator<Item = Counts>) {
        self.before = counts.collect();
    }

    /// Record the bytes acknowledged at the end of a slice.
    pub fn note(&mut self, acked: impl Iterator<Item = u64>) {
        for (acked, noted) in acked.zip(&mut self.acked) {
            noted.push(acked);
        }
    }

    /// Time from each flow's start until it first reaches its equal share, s: within [`WINDOW`] slices, [`REACHED`]
    /// times the mean goodput of all flows that run throughout them. NaN if it never does, or never runs together
    /// with another flow.
    fn times_to_share(&self, flows: &[Whole]) -> Vec<f64> {
        let mut times = vec![f64::NAN; flows.len()];
        let noted = self.acked.first().map_or(0, Vec::len);
        for end in WINDOW..=noted {
            let (since, until) = (self.slice * (end - WINDOW) as u64, self.slice * end as u64);
            let running = |flow: &Whole| flow.start <= Time(since.0) && flow.stop >= Time(until.0);
            let got = |f: usize| {
                let acked = &self.acked[f];
                acked[end - 1] - if end > WINDOW { acked[end - WINDOW - 1] } else { 0 }
            };
            let there: Vec<usize> = (0..flows.len()).filter(|&f| running(&flows[f])).collect();
            let equal = there.iter().map(|&f| got(f)).sum::<u64>() as f64 / there.len() as f64;
            for &f in there.iter().filter(|_| there.len() > 1 && equal > 0.0) {
                if times[f].is_nan() && got(f) as f64 >= REACHED * equal {
                    times[f] = Time(until.0).since(flows[f].start).as_secs();
                }
            }
        }
        times
    }
}

/// Flow state at the end of the run.
#[derive(Clone)]
pub struct Whole {
    /// Flow number.
    pub id: FlowId,
    /// Flow group.
    pub group: u32,
    /// Start time of the flow.
    pub start: Time,
    /// Time at which the application stopped.
    pub stop: Time,
    /// Bytes acknowledged at `stop`.
    pub acked_at_stop: u64,
    /// Final counters.
    pub counts: Counts,
}

impl Whole {
    fn of(flow: &Flow) -> Whole {
        let closed = flow.sums();
        Whole {
            id: flow.id,
            group: flow.group,
            start: flow.start,
            stop: flow.stop,
            acked_at_stop: flow.acked_at_stop.unwrap_or(closed.acked),
            counts: Counts {
                acked: closed.acked,
                sent: closed.sent_packets,
                retransmissions: closed.retransmissions,
                rtos: closed.rtos,
            },
        }
    }
}

/// Row for a flow, a group, or the whole run.
#[derive(Clone, Default)]
struct Row<'a> {
    /// Index in [`OF`].
    of: u32,
    number: u32,
    group: Option<u32>,
    flows: u32,
    /// Bytes acknowledged after the warm-up, each flow's until it stopped.
    until_stop: u64,
    /// Time after the warm-up from the first start to the last stop; `None` if no flow ran then.
    window: Option<(Time, Time)>,
    counts: Counts,
    gauge: Cow<'a, Gauge>,
    /// NaN unless all flows in the row have reached their share.
    time_to_share_s: f64,
}

const OF: [&str; 3] = ["flow", "group", "run"];

impl<'a> Row<'a> {
    fn empty(of: u32, number: u32, group: Option<u32>) -> Row<'a> {
        Row { of, number, group, ..Row::default() }
    }

    /// Bytes divided by the window's length; NaN if there is no window.
    fn goodput_bps(&self) -> f64 {
        let Some((since, until)) = self.window else { return f64::NAN };
        self.until_stop as f64 * 8.0 / until.since(since).as_secs()
    }

    fn add(&mut self, flow: &Row<'a>) {
        self.time_to_share_s = match self.flows {
            0 => flow.time_to_share_s,
            _ if self.time_to_share_s.is_nan() || flow.time_to_share_s.is_nan() => f64::NAN,
            _ => self.time_to_share_s.max(flow.time_to_share_s),
        };
        self.flows += 1;
        if let Some((since, until)) = flow.window {
            self.until_stop += flow.until_stop;
            let (first, last) = self.window.unwrap_or((since, until));
            self.window = Some((first.min(since), last.max(until)));
        }
        let (sum, more) = (&mut self.counts, &flow.counts);
        sum.acked += more.acked;
        sum.sent += more.sent;
        sum.retransmissions += more.retransmissions;
        sum.rtos += more.rtos;
        if self.flows == 1 {
            self.gauge = flow.gauge.clone(); // borrowed until a second flow is added
            return;
        }
        let (sum, more) = (self.gauge.to_mut(), &flow.gauge);
        sum.rtt.merge(&more.rtt);
        sum.delay.merge(&more.delay);
        sum.dropped += more.dropped;
        sum.arrived += more.arrived;
    }
}

/// Performance table of a simulated run.
pub fn performance(flows: &[Flow], meter: Option<&Meter>, gauges: Option<&Gauges>) -> Table {
    let flows: Vec<Whole> = flows.iter().map(Whole::of).collect();
    table(&flows, meter.zip(gauges))
}

columns! {
    /// One row for each flow, then one for each group, then one for the run; no rows unless performance is measured.
    pub fn table(flows: &[Whole], measured: Option<(&Meter, &Gauges)>) as PERFORMANCE "performance"
    "One row per flow, then one per group, then one for the whole run, all after the warm-up; requires `record.performance`."
    {
        let rows = measured.map_or(Vec::new(), |(meter, gauges)| rows(flows, meter, gauges));
        let all = rows.last().map_or(0, |row| row.counts.acked) as f64;
        let rows = || rows.iter();
        let share = |part: f64, whole: f64| if whole == 0.0 { f64::NAN } else { part / whole };
        let rtts: Vec<_> = rows().map(|r| r.gauge.rtt.quantiles()).collect();
        let delays: Vec<_> = rows().map(|r| r.gauge.delay.quantiles()).collect();
        let rtt = |at: usize| rtts.iter().map(move |spans| spans[at]);
        let delay = |at: usize| delays.iter().map(move |spans| spans[at]);
        let lost = |g: &Gauge| share(g.dropped as f64, (g.dropped + g.arrived) as f64);
    }
    text(&OF) of = rows().map(|r| r.of), "Subject of the row: a \"flow\", a \"group\" or the \"run\".";
    u4 number = rows().map(|r| r.number), "Number of the flow or of the group; 0 for the run.";
    n4 group = rows().map(|r| r.group), "Number of the group.", or "the row describes the run";
    u4 flows = rows().map(|r| r.flows), "Number of flows that the row covers.";
    f8 goodput_bps ["bit/s"] = rows().map(Row::goodput_bps),
        "Payload acknowledged after the warm-up and until the flow's `stop_s`, divided by the time that the flow ran after the warm-up; for groups and the run, that payload of all their flows, divided by the time after the warm-up from the first start to the last `stop_s`.", or "no flow had time after the warm-up";
    f8 share = rows().map(|r| share(r.counts.acked as f64, all)), "Share of the run's `bytes_acked`, 0 to 1.", or "nothing was delivered";
    i8 bytes_acked ["bytes"] = rows().map(|r| r.counts.acked), "Payload acknowledged.";
    i8 sent_packets ["packets"] = rows().map(|r| r.counts.sent), "Segments or datagrams with data that were sent, including retransmissions.";
    i8 retransmissions ["packets"] = rows().map(|r| r.counts.retransmissions), "Retransmissions among `sent_packets`.";
    f8 retransmission_share = rows().map(|r| share(r.counts.retransmissions as f64, r.counts.sent as f64)),
        "Retransmissions divided by packets sent, 0 to 1.", or "nothing was sent";
    i8 rtos = rows().map(|r| r.counts.rtos), "Retransmission timeouts of data.";
    i8 dropped_packets ["packets"] = rows().map(|r| r.gauge.dropped), "Data packets that links and their queues dropped.";
    f8 loss_share = rows().map(|r| lost(&r.gauge)),
        "Dropped data packets divided by all data packets that were dropped or arrived, 0 to 1.", or "there was no such packet";
    f8 mean_rtt_s ["s"] = rows().map(|r| r.gauge.rtt.mean_s()), "Mean of all RTT samples.", or "there was no sample";
    span p50_rtt_s ["s"] = rtt(0), "Median RTT, accurate to 0.4 %.", or "there was no sample";
    span p95_rtt_s ["s"] = rtt(1), "95th percentile of the RTT, accurate to 0.4 %.", or "there was no sample";
    span p99_rtt_s ["s"] = rtt(2), "99th percentile of the RTT, accurate to 0.4 %.", or "there was no sample";
    f8 mean_delay_s ["s"] = rows().map(|r| r.gauge.delay.mean_s()), "Mean one-way delay of data packets between the hosts.", or "no packet arrived";
    span p50_delay_s ["s"] = delay(0), "Median one-way delay, accurate to 0.4 %.", or "no packet arrived";
    span p95_delay_s ["s"] = delay(1), "95th percentile of the one-way delay, accurate to 0.4 %.", or "no packet arrived";
    span p99_delay_s ["s"] = delay(2), "99th percentile of the one-way delay, accurate to 0.4 %.", or "no packet arrived";
    f8 time_to_share_s ["s"] = rows().map(|r| r.time_to_share_s),
        "Time from the start of the flow until its goodput, measured over 1/32 of the run, first reached 90 % of an equal share of the goodput of all flows.", or "the flow never reached it or ran alone, or the row does not describe a flow";
}

fn rows<'a>(flows: &[Whole], meter: &Meter, gauges: &'a Gauges) -> Vec<Row<'a>> {
    let reached = meter.times_to_share(flows);
    let mut rows = Vec::new();
    for (at, flow) in flows.iter().enumerate() {
        let (whole, before) = (&flow.counts, &meter.before[at]);
        let until_stop = flow.acked_at_stop.saturating_sub(before.acked);
        let since = flow.start.max(meter.from);
        rows.push(Row {
            flows: 1,
            until_stop,
            window: (flow.stop > since).then_some((since, flow.stop)),
            counts: Counts {
                acked: whole.acked - before.acked,
                sent: whole.sent - before.sent,
                retransmissions: whole.retransmissions - before.retransmissions,
                rtos: whole.rtos.saturating_sub(before.rtos),
            },
            gauge: Cow::Borrowed(&gauges.flows[at].0),
            time_to_share_s: reached[at],
            ..Row::empty(0, flow.id, Some(flow.group))
        });
    }
    let groups = flows.last().map_or(0, |flow| flow.group + 1);
    let mut sums: Vec<Row<'_>> = (0..groups).map(|g| Row::empty(1, g, Some(g))).collect();
    let mut all = Row::empty(2, 0, None);
    for row in &rows {
        sums[row.group.unwrap_or(0) as usize].add(row);
        all.add(row);
    }
    rows.extend(sums);
    rows.push(all);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::build::build;
    use crate::runs::run::parse;
    use crate::scenario::hosts::Customs;
    use crate::world::gauges::{OnTheWay, Spread};

    /// Packets are conserved for every queue that holds, drops or reorders them: each packet that left its host has
    /// arrived, was dropped, or is still in flight. Delays are no shorter than the path delay.
    #[test]
    fn every_packet_is_found_again() {
        for link in [
            r#""queue": {"kind": "drop-tail", "limit": {"packets": 20}}"#,
            r#""queue": {"kind": "codel"}, "loss": {"kind": "bernoulli", "p": 0.01}"#,
            r#""queue": {"kind": "fq-codel", "limit": 60}"#,
            r#""queue": {"kind": "choke", "limit": 60, "min": 5.0, "max": 30.0, "max_p": 0.1}"#,
            r#""queue": {"kind": "drop-tail", "limit": {"packets": 40}}, "jitter": 3000000"#,
        ] {
            let json = format!(
                r#"{{"duration_ns": 20000000000, "network": {{"topology": "chain",
                    "bottleneck": {{"rate": 10000000, "delay": 10000000, {link}}}}},
                    "flows": [{{"profile": "linux-6", "congestion_control": "cubic", "count": 3, "workload": {{"kind": "bulk"}}}}]}}"#
            );
            let scenario = parse(&json).expect("reads");
            let mut built = build(&scenario, 1, &Customs::new(), crate::Shortcuts::ALL).expect("valid");
            built.measure(&scenario);
            built.app.begin(&mut built.world);
            built.world.run(&mut built.app, Time(scenario.duration_ns), u32::MAX);
            let sent: u64 = built.app.flows.iter().map(|flow| Counts::now(flow, &built.world).sent).sum();
            let gauges = built.world.gauges().expect("measured");
            let sum = |of: fn(&(Gauge, OnTheWay)) -> u64| gauges.flows.iter().map(of).sum::<u64>();
            let (arrived, dropped) = (sum(|f| f.0.arrived), sum(|f| f.0.dropped));
            let left = sum(|f| f.1 .0.len() as u64);
            assert_eq!(arrived + dropped + left, sent, "{link}");
            assert!(arrived > 10_000 && dropped > 0, "{link}: {arrived} {dropped}");
            assert!(left < 200, "{link}: {left}");
            for (gauge, _) in &gauges.flows {
                let least = |spread: &Spread| spread.histogram.bins().next().map(|(_, above, _)| above);
                assert!(least(&gauge.delay) > Some(Span::from_ms(10)), "{link}");
                assert!(least(&gauge.rtt) > Some(Span::from_ms(20)), "{link}");
            }
        }
    }
}
