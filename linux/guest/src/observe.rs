//! The run: one loop that waits for the next sample, for the relay's next event, or for a new packet.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use ackclock_core::Time;
use ackclock_net::Counters;
use ackclock_sim::{report::output, Table};

use crate::capture::Capture;
use crate::flows::{self, Shared};
use crate::info::Info;
use crate::job::{Job, Network};
use crate::network::Wiring;
use crate::performance::{self, Performance};
use crate::programs::Programs;
use crate::relay::Relay;
use crate::sys::{self, Poll};
use crate::trace::Trace;
use crate::transactions::Clients;
use crate::{acks, qdisc, tables};

/// Sample of a flow whose connection is open.
pub struct Sample {
    pub t: u64,
    pub flow: u32,
    pub info: Info,
    pub bytes_acked: u64,
    pub retransmissions: u64,
}

/// Records collected by the loop.
#[derive(Default)]
pub struct Notes {
    pub samples: Vec<Sample>,
    /// Queue lengths: (time, link, packets).
    pub queues: Vec<(u64, u32, u32)>,
    /// Goodput: (time, flow, bit/s).
    pub goodput: Vec<(u64, u32, f64)>,
}

/// Run the job; returns its tables.
pub fn run(job: &Job) -> Result<Vec<Table>> {
    let mut wiring = Wiring::new(job)?;
    let shared = Arc::new(Shared::new(job)?);
    let mut relay = match job.network {
        Network::Relay { ahead, .. } => Some(Relay::new(job, &mut wiring, &shared, ahead)?),
        Network::Qdisc { .. } => None,
    };
    let links = match (&relay, &job.network) {
        (Some(relay), _) => relay.names.clone(),
        (None, Network::Qdisc { links, .. }) => links.clone(),
        _ => unreachable!("invariant: one of them"),
    };
    // programs come first, while the process is single-threaded
    let programs = job.live.as_ref().map(|live| Programs::new(job, live, &wiring)).transpose()?;
    let trace = Trace::new(job.scenario.record.trace)?;
    let capture = Capture::new(job, &wiring, shared.wall, "/out/capture.pcapng")?;
    let clients = Clients::new(job, &wiring, &shared)?;
    flows::launch(job, &wiring, &shared)?;
    if sys::monotonic() >= job.start_ns {
        return Err(Error::other("setting up took longer than the time set aside for it"));
    }
    sys::sleep_until(job.start_ns - HALF_A_TICK);
    for (stage, router, device) in &wiring.stages {
        qdisc::renew(&wiring.routers[*router].netlink, *device, &stage.qdisc)?;
    }
    let acked = vec![0; shared.flows.len()];
    let measured = Performance::new(job, shared.flows.len());
    if let (Some(relay), true) = (&mut relay, measured.is_some()) {
        let from = Time(job.scenario.record.warm_up_ns);
        relay.gauges = Some(performance::Gauges::new(from, shared.flows.len()));
    }
    let mut world = World {
        job,
        wiring,
        shared,
        relay,
        clients,
        trace,
        capture,
        notes: Notes::default(),
        measured,
        before: Vec::new(),
        goodput: (0, acked),
        programs,
    };
    let end = world.loop_to_the_end()?;
    world.finish(links, end)
}

struct World<'a> {
    job: &'a Job,
    wiring: Wiring,
    shared: Arc<Shared>,
    relay: Option<Relay>,
    clients: Clients,
    trace: Trace,
    capture: Capture,
    notes: Notes,
    measured: Option<Performance>,
    /// Counters of the disciplines at the end of the warm-up, which are subtracted from the final ones.
    before: Vec<qdisc::Stats>,
    /// Start of the current goodput interval, ns, and each flow's acknowledged bytes at that time.
    goodput: (u64, Vec<u64>),
    /// The user's programs; `None` if the job has none.
    programs: Option<Programs<'a>>,
}

const TIMER: u64 = 0;
const RING: u64 = 1;
const CLIENTS: u64 = 2;
const RELAY: u64 = 3;
const CHILDREN: u64 = 4;
/// How long before the start disciplines are set up again, ns; long enough that they see the last tick before the
/// start.
const HALF_A_TICK: u64 = 500_000;
/// Interval between two reads of the trace buffer, ns.
const TRACE_INTERVAL: u64 = 50_000_000;
/// Time for which the loop continues after the end, ns, so that everything at the last instant is processed.
const LINGER: u64 = 1_000;

impl World<'_> {
    /// Run until the end; returns the end time, ns.
    fn loop_to_the_end(&mut self) -> Result<u64> {
        let mut end = self.job.scenario.duration_ns;
        let record = &self.job.scenario.record;
        let timer = sys::timer()?;
        let poll = self.poll(timer.as_raw_fd())?;
        let every =
            |interval: u64| Recurring { interval, due: if interval == 0 { u64::MAX } else { interval } };
        let mut samples = every(record.sample_interval_ns);
        let mut queues = every(record.queue_interval_ns);
        let mut goodput = every(record.goodput_interval_ns);
        let mut traces = every(TRACE_INTERVAL);
        let slice = self.measured.as_ref().map_or(0, |measured| measured.meter.slice.0);
        let mut slices = every(slice);
        let mut looks = every(if self.measured.is_some() { performance::LOOK } else { 0 });
        let mut stops: Vec<(u64, u32)> =
            self.shared.flows.iter().filter(|f| f.stop < end).map(|f| (f.stop, f.id)).collect();
        stops.sort_unstable_by(|a, b| b.cmp(a));

        let mut warm_up = if record.warm_up_ns == 0 { u64::MAX } else { record.warm_up_ns };

        let mut armed = u64::MAX;
        let mut ready = Vec::new();
        loop {
            let stop = stops.last().map_or(u64::MAX, |(t, _)| *t);
            let programs = self.programs.as_ref().map_or(u64::MAX, Programs::next_event);
            end = end.min(self.programs.as_ref().and_then(Programs::over).unwrap_or(u64::MAX));
            let due = [
                samples.due,
                queues.due,
                goodput.due,
                traces.due,
                slices.due,
                looks.due,
                warm_up,
                stop,
                programs,
                end,
            ];
            let due = due.into_iter().min().expect("invariant: not empty");
            let relay = match &mut self.relay {
                Some(relay) => {
                    relay.tell_ahead(due)?; // no later: counters are read at that time
                    relay.next_event()
                }
                None => u64::MAX,
            };
            let next = relay.min(due).min(self.clients.next_event());
            if next != armed {
                sys::arm(timer.as_raw_fd(), self.shared.zero + next)?;
                armed = next;
            }
            poll.wait(&mut ready)?;
            if ready.contains(&RING) {
                self.capture.drain(false)?;
            }
            if let Some(relay) =
                self.relay.as_mut().filter(|_| ready.contains(&RELAY) || ready.contains(&TIMER))
            {
                relay.collect(&self.shared, due)?;
            }
            if ready.contains(&CLIENTS) {
                self.clients.collect(&self.shared)?;
            }
            if let Some(programs) = self.programs.as_mut().filter(|_| ready.contains(&CHILDREN)) {
                programs.collect(self.shared.now())?;
            }
            if !ready.contains(&TIMER) {
                continue;
            }
            armed = u64::MAX;
            if let Some(relay) = &mut self.relay {
                relay.advance(next)?;
            }
            self.clients.advance(next, &self.shared)?;
            if let Some(programs) = self.programs.as_mut().filter(|programs| programs.next_event() <= next) {
                programs.advance(next, self.relay.as_ref().map_or(0, |relay| relay.entered))?;
            }
            if warm_up <= next {
                warm_up = u64::MAX;
                self.count_from(next)?;
            }
            if traces.take(next) {
                self.trace.drain()?;
            }
            self.measure(looks.take(next), slices.take(next), next);
            if samples.take(next) {
                self.sample(next);
            }
            if queues.take(next) {
                self.sample_queues(next)?;
            }
            if goodput.take(next) {
                self.measure_goodput(next);
            }
            while let Some((_, flow)) = stops.pop_if(|(t, _)| *t <= next) {
                self.stop(flow);
            }
            if next >= end {
                return Ok(end);
            }
        }
    }

    /// Register the descriptors awaited by the loop.
    fn poll(&self, timer: RawFd) -> Result<Poll> {
        let poll = Poll::new()?;
        poll.add(timer, TIMER)?;
        if let Some(relay) = &self.relay {
            poll.add(relay.fd(), RELAY)?;
        }
        poll.add(self.clients.fd(), CLIENTS)?;
        if let Some(programs) = &self.programs {
            poll.add(programs.fd(), CHILDREN)?;
        }
        for fd in self.capture.fds() {
            poll.add(fd, RING)?;
        }
        Ok(poll)
    }

    /// Stop a flow: record its acknowledged bytes, and shut down the connection that it is writing to.
    fn stop(&self, flow: u32) {
        let acked = self.acked(flow);
        let mut state = self.shared.state(flow);
        state.acked_at_stop = Some(acked);
        if let Some(fd) = state.open.filter(|_| state.writing) {
            sys::shut(fd);
        }
    }

    /// Record RTTs and acknowledged bytes for the table `performance`.
    fn measure(&mut self, look: bool, slice: bool, now: u64) {
        let acked: Vec<u64> = match slice && self.measured.is_some() {
            true => (0..self.shared.flows.len() as u32).map(|flow| self.acked(flow)).collect(),
            false => Vec::new(),
        };
        let Some(measured) = &mut self.measured else { return };
        if look {
            measured.look(now, &self.shared, self.relay.as_mut().and_then(|relay| relay.gauges.as_mut()));
        }
        if slice {
            measured.meter.note(acked.into_iter());
        }
    }

    /// End the warm-up: counters of links and flows restart.
    fn count_from(&mut self, now: u64) -> Result<()> {
        if let Some(measured) = &mut self.measured {
            let shared = &self.shared;
            let counts = shared.flows.iter().map(|flow| performance::counts(&shared.state(flow.id)));
            measured.meter.begin(counts);
        }
        match &mut self.relay {
            Some(relay) => (0..relay.names.len()).for_each(|i| relay.link(i).count_from(Time(now))),
            None => self.before = self.qdisc_stats()?,
        }
        Ok(())
    }

    /// Bytes of a flow acknowledged to its sending host so far.
    fn acked(&self, flow: u32) -> u64 {
        let state = self.shared.state(flow);
        let open = state.open.and_then(|fd| Info::of(fd).ok()).map_or(0, |i| i.payload_acked(state.connects));
        let datagrams = state.datagrams.as_ref().map_or(0, |ends| ends.delivered());
        state.closed.acked + open + datagrams + self.clients.acked(flow)
    }

    fn sample(&mut self, t: u64) {
        for flow in &self.shared.flows {
            let state = self.shared.state(flow.id);
            let Some(info) = state.open.and_then(|fd| Info::of(fd).ok()) else { continue };
            self.notes.samples.push(Sample {
                t,
                flow: flow.id,
                bytes_acked: state.with(&info).acked,
                retransmissions: state.with(&info).retransmissions,
                info,
            });
        }
    }

    fn sample_queues(&mut self, t: u64) -> Result<()> {
        if let Some(relay) = &mut self.relay {
            for link in 0..relay.names.len() {
                let waiting = relay.link(link).waiting(Time(t));
                self.notes.queues.push((t, link as u32, waiting));
            }
            return Ok(());
        }
        let held = self.qdisc_stats()?;
        for ((stage, _, _), stats) in self.wiring.stages.iter().zip(held) {
            if stage.queues {
                // netem's queue includes the packet in transmission
                let own = u32::from(stage.qdisc.shaper.is_none() && stage.qdisc.leaf.kind == "netem");
                self.notes.queues.push((t, stage.link, stats.held.saturating_sub(own)));
            }
        }
        Ok(())
    }

    /// Counters of the stages, in stage order.
    fn qdisc_stats(&self) -> Result<Vec<qdisc::Stats>> {
        let mut by_router = Vec::new();
        for router in &self.wiring.routers {
            by_router.push(qdisc::stats(&router.netlink)?);
        }
        let of = |router: usize, device: u32| {
            by_router[router]
                .iter()
                .find(|(index, _)| *index == device)
                .map_or_else(Default::default, |(_, s)| *s)
        };
        Ok(self.wiring.stages.iter().map(|(_, router, device)| of(*router, *device)).collect())
    }

    fn measure_goodput(&mut self, t: u64) {
        let seconds = (t - self.goodput.0) as f64 / 1e9;
        for flow in 0..self.shared.flows.len() {
            if self.shared.flows[flow].start >= t {
                continue;
            }
            let acked = self.acked(flow as u32);
            let bps = (acked - self.goodput.1[flow]) as f64 * 8.0 / seconds;
            self.notes.goodput.push((t, flow as u32, bps));
            self.goodput.1[flow] = acked;
        }
        self.goodput.0 = t;
    }

    fn finish(mut self, links: Vec<String>, end: u64) -> Result<Vec<Table>> {
        if self.job.scenario.record.goodput_interval_ns > 0 && end > self.goodput.0 {
            self.measure_goodput(end);
        }
        self.clients.finish(end, &self.shared);
        // Counters are read before the linger time, which is not part of the run.
        let (mut datagrams, mut intervals) = (Vec::new(), Vec::new());
        for flow in &self.shared.flows {
            let mut state = self.shared.state(flow.id);
            if let Some(ends) = state.datagrams.clone() {
                ends.add_to(&mut state.closed);
                datagrams.extend(ends.row(flow.id));
                intervals.push((flow.id, ends.intervals()));
                continue;
            }
            if let Some(mut info) = state.open.and_then(|fd| state.close(fd)) {
                let mut fetches = self.shared.fetches();
                if let Some(row) = fetches.iter_mut().rev().find(|f| f.flow == flow.id && f.server.is_none())
                {
                    info.total_retrans -= row.synack_retransmissions;
                    row.server = Some(info);
                }
            }
        }
        let relayed = self.relay.as_ref().and_then(|relay| relay.gauges.as_ref());
        let got = self.measured.as_ref().map(|measured| measured.table(&self.shared, relayed));
        let links = match &mut self.relay {
            Some(relay) => {
                let counters: Vec<_> = (0..links.len()).map(|i| relay.link(i).counters(Time(end))).collect();
                output::links(&counters, links)
            }
            None => tables::links(&links, &self.link_counters(links.len())?),
        };
        self.trace.drain()?;
        sys::sleep_until(self.shared.zero + end + LINGER);
        self.capture.finish()?;
        if let Some(programs) = &mut self.programs {
            programs.finish(end)?;
        }
        self.trace.lines.retain(|line| line.us * 1000 < self.shared.zero + end + 1000);
        self.capture.rows.retain(|row| row.t <= end);
        let traced = acks::Acks::new(&self.trace.lines, &self.capture.rows, self.shared.zero);
        let drops = self.relay.and_then(|mut relay| relay.drops.take()).unwrap_or_default();
        let mut made = tables::all(&self.shared, &self.notes, &drops, &traced, end);
        made.push(tables::growths(&self.trace.growths, self.shared.zero));
        made.extend(got);
        if self.job.program.is_some() {
            made.push(tables::clocks(&self.notes.samples));
        }
        let log = &self.clients.log;
        made.extend([
            links,
            output::clients(&self.shared.clients),
            output::transactions(&log.rows),
            output::transaction_summary(&log.tallies),
            output::transaction_times(&log.tallies),
            output::conversations(&log.messages),
            output::datagrams(&mut datagrams),
            output::intervals(&mut intervals),
        ]);
        Ok(made)
    }

    /// Counters of each link, summed over its stages.
    fn link_counters(&self, links: usize) -> Result<Vec<Counters>> {
        let mut counters = vec![Counters::default(); links];
        let mut seen = vec![false; links];
        for (i, ((stage, _, _), stats)) in self.wiring.stages.iter().zip(self.qdisc_stats()?).enumerate() {
            let before = self.before.get(i).copied().unwrap_or_default();
            let stats = stats.since(&before);
            let c = &mut counters[stage.link as usize];
            c.held_before += before.held as u64;
            c.dropped_before += before.drops as u64;
            if !std::mem::replace(&mut seen[stage.link as usize], true) {
                c.arrivals = stats.packets + stats.drops as u64 + stats.held as u64 - before.held as u64;
            }
            if stage.loses {
                c.dropped_loss += stats.drops as u64;
            } else {
                c.dropped_queue += stats.drops as u64;
            }
            (c.delivered, c.bytes_delivered) = (stats.packets, stats.bytes);
            c.marked += stats.marked as u64;
        }
        for c in &mut counters {
            c.held =
                (c.arrivals + c.held_before).saturating_sub(c.delivered + c.dropped_loss + c.dropped_queue);
            c.mean_packets = f64::NAN;
        }
        Ok(counters)
    }
}

/// A recurring event.
struct Recurring {
    interval: u64,
    due: u64,
}

impl Recurring {
    /// Whether the event is due; if so, the next one is scheduled.
    fn take(&mut self, now: u64) -> bool {
        let due = self.due <= now;
        if due {
            self.due += self.interval;
        }
        due
    }
}
