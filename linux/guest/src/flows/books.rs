//! Bookkeeping of both ends of each flow, read by the observer: flow state, fetches, sums over connections.

use std::io::{Error, Result};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard};

use ackclock_sim::scenario::spec::WorkloadConfig;
use ackclock_sim::scenario::starts::Starts;
use ackclock_sim::workload::flow::ClientRow;
use ackclock_sim::workload::{FetchParams, Pace};
use ackclock_sim::world::layout::Layout;

use super::datagram::Ends;
use crate::info::Info;
use crate::job::Job;
use crate::sys;

/// Maximum number of flows: with more, their ports would run into the next range.
pub const MOST_FLOWS: usize = 10_000;

/// Sums of the counters of closed connections. The open connection is added at the end of the run.
#[derive(Clone, Copy, Default)]
pub struct Sums {
    pub acked: u64,
    pub data_segs_out: u64,
    pub retransmissions: u64,
    pub rtos: u64,
    pub dsacks: u64,
    pub acks_received: u64,
    pub min_rtt_us: Option<u32>,
    pub syn_retransmissions: u64,
    /// Finished connections, and sums of the kernel's busy and limited times over them, us.
    pub connections: u64,
    pub busy_us: u64,
    pub rwnd_limited_us: u64,
    pub sndbuf_limited_us: u64,
    pub pcc: Option<PccSums>,
}

/// PCC-specific counters and RTT samples.
#[derive(Clone, Copy)]
pub struct PccSums {
    pub sent_bytes: u64,
    pub lost_packets: u64,
    pub intervals: u64,
    pub mean_rtt_s: f64,
    pub min_rtt_s: f64,
}

impl Sums {
    /// Add the counters of a connection.
    pub fn add(&mut self, info: &Info, connected: bool) {
        self.acked += info.payload_acked(connected);
        self.data_segs_out += info.data_segs_out as u64;
        self.retransmissions = self.retransmissions.wrapping_add(info.total_retrans as u64);
        self.rtos = self.rtos.wrapping_add(info.total_rto as u64);
        self.dsacks += info.dsack_dups as u64;
        self.acks_received += info.segs_in as u64;
        self.connections += 1;
        self.busy_us += info.busy_us;
        self.rwnd_limited_us += info.rwnd_limited_us;
        self.sndbuf_limited_us += info.sndbuf_limited_us;
        if info.min_rtt_us != u32::MAX && info.data_segs_out > 0 {
            self.min_rtt_us = Some(self.min_rtt_us.map_or(info.min_rtt_us, |m| m.min(info.min_rtt_us)));
        }
    }
}

/// Current state of a flow. Times are ns since the start of the run.
#[derive(Default)]
pub struct State {
    /// Socket of the open connection at the sending host.
    pub open: Option<RawFd>,
    /// Whether the application is writing to the open connection, which is then shut down at the flow's stop time.
    pub writing: bool,
    /// Whether the sending end opens connections; false for a server, which accepts them.
    pub connects: bool,
    /// Endpoints of a datagram flow.
    pub datagrams: Option<Arc<Ends>>,
    pub established: Option<u64>,
    pub completed: Option<u64>,
    pub acked_at_stop: Option<u64>,
    pub failed: bool,
    pub closed: Sums,
}

impl State {
    /// Sums of the flow, including those of an open connection. Retransmissions of an unanswered SYN are left out,
    /// because they are not data.
    pub fn with(&self, info: &Info) -> Sums {
        let mut sums = self.closed;
        sums.add(info, self.connects);
        if self.is_connecting() {
            (sums.retransmissions, sums.rtos) = (self.closed.retransmissions, self.closed.rtos);
        }
        sums
    }

    fn is_connecting(&self) -> bool {
        self.connects && self.established.is_none()
    }

    /// Add the counters of a connection that has ended.
    pub fn close(&mut self, fd: RawFd) -> Option<Info> {
        let info = Info::of(fd).ok();
        if let Some(info) = &info {
            let mut sums = self.with(info);
            if self.is_connecting() {
                sums.syn_retransmissions += info.total_retrans as u64;
            }
            self.closed = sums;
        }
        if self.open == Some(fd) {
            (self.open, self.writing) = (None, false);
        }
        info
    }
}

/// A fetch. Times are ns since the start of the run.
#[derive(Clone, Default)]
pub struct Fetched {
    pub flow: u32,
    pub idx: u32,
    pub port: u16,
    pub start: u64,
    pub connected: Option<u64>,
    pub first_byte: Option<u64>,
    pub completed: Option<u64>,
    pub bytes: u64,
    pub syn_retransmissions: u32,
    pub request_retransmissions: u32,
    pub server: Option<Info>,
    pub synack_retransmissions: u32,
}

/// A flow: its number, its group, and its times.
pub struct Flow {
    pub id: u32,
    pub group: usize,
    pub start: u64,
    pub stop: u64,
    /// Fetch parameters of the client, and the pace of the server's responses; `None` without fetches.
    pub fetches: Option<(FetchParams, Option<Pace>)>,
}

/// Restart of a flow's loss process at a fetch.
#[derive(Clone, Copy)]
pub struct Restart {
    pub t: u64,
    pub flow: u32,
    pub idx: u32,
}

/// State shared by the flows' threads and the observer.
pub struct Shared {
    /// Monotonic time at the start of the run, ns.
    pub zero: u64,
    /// CLOCK_REALTIME at the start of the run, ns.
    pub wall: u64,
    /// Flows, indexed by number.
    pub flows: Vec<Flow>,
    /// Clients of populations, as drawn.
    pub clients: Vec<ClientRow>,
    states: Vec<Mutex<State>>,
    fetches: Mutex<Vec<Fetched>>,
    restarts: Mutex<Vec<Restart>>,
}

impl Shared {
    /// Create the state of every flow of the job; no flow has started yet.
    pub fn new(job: &Job) -> Result<Shared> {
        let (mut flows, mut clients) = (Vec::new(), Vec::new());
        let mut layout = Layout::default();
        for (group, spec) in job.scenario.flows.iter().enumerate() {
            let stop = spec.stop_ns.map_or(job.scenario.duration_ns, |s| s.min(job.scenario.duration_ns));
            let mut starts = Starts::new(spec, group, job.seed);
            for _ in 0..spec.members() {
                let (id, start) = (flows.len() as u32, starts.following().0);
                let fetches = match &spec.workload {
                    WorkloadConfig::Fetch(fetches) => Some((fetches.clone(), None)),
                    WorkloadConfig::Population(population) => {
                        let (client, fetches, pace) = population.client(id, job.seed, &mut layout);
                        clients.push(client);
                        Some((fetches, pace))
                    }
                    _ => None,
                };
                flows.push(Flow { id, group, start, stop: stop.max(start), fetches });
            }
        }
        if flows.len() > MOST_FLOWS {
            return Err(Error::other(format!("{} flows; allowed: {MOST_FLOWS}", flows.len())));
        }
        let (mono, real) = (sys::monotonic(), sys::realtime());
        Ok(Shared {
            zero: job.start_ns,
            wall: job.start_ns + (real - mono),
            states: flows.iter().map(|_| Mutex::default()).collect(),
            flows,
            clients,
            fetches: Mutex::default(),
            restarts: Mutex::default(),
        })
    }

    /// Lock the state of a flow.
    pub fn state(&self, flow: u32) -> MutexGuard<'_, State> {
        self.states[flow as usize].lock().expect("invariant: no thread panics")
    }

    /// Lock the list of fetches so far.
    pub fn fetches(&self) -> MutexGuard<'_, Vec<Fetched>> {
        self.fetches.lock().expect("invariant: no thread panics")
    }

    /// Request a restart of the loss process at a fetch.
    pub fn restart(&self, flow: u32, idx: u32) {
        self.restarts.lock().expect("invariant: no thread panics").push(Restart { t: self.now(), flow, idx });
    }

    /// Take the pending restarts, in time order.
    pub fn take_restarts(&self) -> Vec<Restart> {
        std::mem::take(&mut self.restarts.lock().expect("invariant: no thread panics"))
    }

    /// Time since the start of the run, ns.
    pub fn now(&self) -> u64 {
        sys::monotonic() - self.zero
    }

    /// Sleep until this time in the run, ns.
    pub fn sleep_until(&self, t: u64) {
        sys::sleep_until(self.zero + t);
    }
}
