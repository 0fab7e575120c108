//! Samples at fixed intervals: TCP_INFO-like values of each flow, queue lengths, goodput. Each kind has one recurring
//! event, scheduled only if the kind is requested. Observation reads but never writes, so it cannot change a run.

use ackclock_core::foreign::Sample;
use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};
use ackclock_tcp::{Held, Hold};

use crate::report::performance::{Counts, Meter};
use crate::scenario::spec;
use crate::tables::samples::{GoodputRow, LimitRow, QueueRow, SampleRow};
use crate::transport::{foreign, DatagramEnd};
use crate::workload::flow::Flow;
use crate::world::{World, SENDER};

impl SampleRow {
    /// Convert an external stack's sample, from bytes to full datagrams. The stack reports neither a congestion state
    /// nor the peer's window.
    fn of_foreign(world: &World, flow: &Flow, sample: &Sample) -> SampleRow {
        let packets = |bytes| foreign::packets(sample, bytes);
        SampleRow {
            t: world.now(),
            flow: flow.id,
            cwnd: packets(sample.window),
            ssthresh: sample.ssthresh.map_or(u32::MAX, packets),
            srtt: sample.srtt,
            in_flight: packets(sample.in_flight),
            ca_state: CaState::Open,
            bytes_acked: flow.acked(world),
            retransmissions: flow.retransmissions(world),
            rwnd: 0,
            times: None,
        }
    }
}

/// The samplers of a run.
#[derive(Clone)]
pub struct Observer {
    /// Sampling interval of each kind; zero = off.
    intervals: [Span; 4],
    warm_up: Time,
    /// Next times at which link counters are read: for queue samples, and at the end of the warm-up.
    looks: [Time; 2],
    goodput_since: Time,
    /// For each flow, bytes acknowledged and bytes received by `goodput_since`.
    counted: Vec<[u64; 2]>,
    limits_since: Time,
    /// For each flow, time by limiting cause up to `limits_since`.
    held: Vec<Held>,
    /// Performance counters of each flow; `None` unless performance is measured.
    pub meter: Option<Meter>,
    /// Flow samples.
    pub samples: Vec<SampleRow>,
    /// Queue samples.
    pub queues: Vec<QueueRow>,
    /// Flow goodput, by interval.
    pub goodput: Vec<GoodputRow>,
    /// Time by limiting cause of flows, by interval.
    pub limits: Vec<LimitRow>,
}

impl Observer {
    /// Return the samplers requested by `record`.
    pub fn new(record: &spec::Record, flows: usize) -> Observer {
        let mut intervals = [Span::ZERO; 4];
        intervals[SAMPLES as usize] = Span(record.sample_interval_ns);
        intervals[QUEUES as usize] = Span(record.queue_interval_ns);
        intervals[GOODPUT as usize] = Span(record.goodput_interval_ns);
        intervals[LIMITS as usize] = Span(record.limits_interval_ns);
        Observer {
            intervals,
            warm_up: Time(record.warm_up_ns),
            looks: [Time::NEVER; 2],
            goodput_since: Time::ZERO,
            counted: vec![[0; 2]; flows],
            limits_since: Time::ZERO,
            held: vec![Held::default(); if record.limits_interval_ns > 0 { flows } else { 0 }],
            meter: None,
            samples: Vec::new(),
            queues: Vec::new(),
            goodput: Vec::new(),
            limits: Vec::new(),
        }
    }

    /// Schedule the first sample of each kind.
    pub fn begin(&mut self, world: &mut World) {
        if self.warm_up > Time::ZERO {
            self.looks[1] = self.warm_up;
        }
        for kind in [SAMPLES, QUEUES, GOODPUT, LIMITS] {
            self.schedule(world, kind);
        }
        if self.warm_up > Time::ZERO {
            world.tick(WARM_UP, self.warm_up);
        }
        self.schedule_slice(world);
        self.announce(world);
    }

    /// Take a sample of this kind and schedule the next one.
    pub fn tick(&mut self, world: &mut World, flows: &[Flow], kind: u32) {
        match kind {
            WARM_UP => {
                world.catch_up_with_links(Time::ZERO);
                world.count_links_from_now();
                if let Some(meter) = &mut self.meter {
                    meter.begin(flows.iter().map(|flow| Counts::now(flow, world)));
                }
                self.looks[1] = Time::NEVER;
                return self.announce(world);
            }
            SLICE => {
                if let Some(meter) = &mut self.meter {
                    meter.note(flows.iter().map(|flow| flow.acked(world)));
                }
                return self.schedule_slice(world);
            }
            SAMPLES => self.sample_flows(world, flows),
            QUEUES => self.sample_queues(world),
            LIMITS => self.tell_limits(world, flows),
            _ => self.measure_goodput(world, flows),
        }
        self.schedule(world, kind);
    }

    /// Complete the last intervals at the end of the run. They may be shorter than the others.
    pub fn finish(&mut self, world: &World, flows: &[Flow]) {
        if self.intervals[GOODPUT as usize] > Span::ZERO && world.now() > self.goodput_since {
            self.measure_goodput(world, flows);
        }
        if self.intervals[LIMITS as usize] > Span::ZERO && world.now() > self.limits_since {
            self.tell_limits(world, flows);
        }
    }

    fn schedule(&mut self, world: &mut World, kind: u32) {
        let interval = self.intervals[kind as usize];
        if interval > Span::ZERO {
            let next = world.now() + interval;
            world.tick(kind, next);
            if kind == QUEUES {
                self.looks[0] = next;
                self.announce(world);
            }
        }
    }

    fn schedule_slice(&self, world: &mut World) {
        if let Some(meter) = self.meter.as_ref().filter(|meter| meter.slice > Span::ZERO) {
            world.tick(SLICE, world.now() + meter.slice);
        }
    }

    fn announce(&self, world: &mut World) {
        world.look_at_links_next(self.looks[0].min(self.looks[1]));
    }

    fn sample_flows(&mut self, world: &World, flows: &[Flow]) {
        let t = world.now();
        for flow in flows {
            let Some(&(conn, _)) = flow.open.iter().max_by_key(|&&(_, idx)| idx) else { continue };
            if let Some(DatagramEnd::Foreign(end)) = world.transport(conn, SENDER).datagram() {
                if let Some(sample) = end.sample() {
                    self.samples.push(SampleRow::of_foreign(world, flow, &sample));
                }
                continue;
            }
            let Some(tcp) = world.transport(conn, SENDER).tcp() else { continue };
            let info = tcp.info();
            self.samples.push(SampleRow {
                t,
                flow: flow.id,
                cwnd: info.cwnd,
                ssthresh: info.ssthresh,
                srtt: info.srtt,
                in_flight: info.in_flight,
                ca_state: info.ca_state,
                bytes_acked: flow.acked(world),
                retransmissions: flow.retransmissions(world),
                rwnd: info.snd_wnd,
                times: flow.held(world, t).map(|(_, times)| times),
            });
        }
    }

    /// Record the limiting causes of the interval. A wait for the retransmission timer is recognised only at its end,
    /// so the part of it that earlier intervals attributed to another cause is then moved to the timeout there.
    fn tell_limits(&mut self, world: &World, flows: &[Flow]) {
        let t = world.now();
        for (flow, before) in flows.iter().zip(&mut self.held) {
            let Some((now, _)) = flow.held(world, t) else { continue };
            if flow.stop <= self.limits_since {
                continue;
            }
            let mut row = LimitRow { t, flow: flow.id, held: Held::default() };
            for (held, (now, before)) in row.held.iter_mut().zip(now.iter().zip(&*before)) {
                *held = now.saturating_sub(*before);
            }
            for cause in 0..now.len() {
                let mut moved = before[cause].saturating_sub(now[cause]);
                let waited = &mut row.held[Hold::Timeout as usize];
                let rows = self.limits.iter_mut().rev().filter(|row| row.flow == flow.id);
                for earlier in rows {
                    if moved == Span::ZERO {
                        break;
                    }
                    let part = moved.min(earlier.held[cause]);
                    earlier.held[cause] = earlier.held[cause].saturating_sub(part);
                    let there = &mut earlier.held[Hold::Timeout as usize];
                    *there = *there + part;
                    moved = moved.saturating_sub(part);
                    *waited = waited.saturating_sub(part);
                }
            }
            *before = now;
            self.limits.push(row);
        }
        self.limits_since = t;
    }

    fn sample_queues(&mut self, world: &mut World) {
        let t = world.now();
        world.catch_up_with_links(Time(t.0 - self.intervals[QUEUES as usize].0));
        for link in 0..world.links() {
            let packets = world.waiting(link);
            self.queues.push(QueueRow { t, link: link as u32, packets });
        }
    }

    fn measure_goodput(&mut self, world: &World, flows: &[Flow]) {
        let t = world.now();
        let seconds = (t - self.goodput_since).as_secs();
        let rate = |bytes: u64| bytes as f64 * 8.0 / seconds;
        for (flow, before) in flows.iter().zip(&mut self.counted) {
            if !flow.started {
                continue;
            }
            // bytes acknowledged on failed connections still count
            let now = [flow.acked(world), flow.arrived(world).max(before[1])];
            let [bps, delivered_bps] = [0, 1].map(|i| rate(now[i] - before[i]));
            self.goodput.push(GoodputRow { t, flow: flow.id, bps, delivered_bps });
            *before = now;
        }
        self.goodput_since = t;
    }
}

const SAMPLES: u32 = 0;
const QUEUES: u32 = 1;
const GOODPUT: u32 = 2;
const LIMITS: u32 = 3;
const WARM_UP: u32 = 4;
const SLICE: u32 = 5;
/// Recurring event: a flow with clients stops. Its goodput covers the time up to this point.
pub const STOP: u32 = 6;
