//! Books of the flows' ends for the observer: state of the flows, fetches, sums of connections.

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

/// More would run into the next range of ports.
pub const MOST_FLOWS: usize = 10_000;

/// Counters of connections that are closed, and of the open one when the run ends.
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
    /// Connections that are over, and what the kernel's stop watches said of them.
    pub connections: u64,
    pub busy_us: u64,
    pub rwnd_limited_us: u64,
    pub sndbuf_limited_us: u64,
    pub pcc: Option<PccSums>,
}

/// Counters of PCC alone, and its round-trip times, which it samples itself.
#[derive(Clone, Copy)]
pub struct PccSums {
    pub sent_bytes: u64,
    pub lost_packets: u64,
    pub intervals: u64,
    pub mean_rtt_s: f64,
    pub min_rtt_s: f64,
}

impl Sums {
    /// Add a connection.
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

/// A flow as it stands. Times are ns of the run.
#[derive(Default)]
pub struct State {
    /// The sending host's socket of the connection now open.
    pub open: Option<RawFd>,
    /// The application writes into the open connection, and is told when the flow stops.
    pub writing: bool,
    /// The sending end opens connections; a server accepts them.
    pub connects: bool,
    /// Endpoints of a flow over datagrams.
    pub datagrams: Option<Arc<Ends>>,
    pub established: Option<u64>,
    pub completed: Option<u64>,
    pub acked_at_stop: Option<u64>,
    pub failed: bool,
    pub closed: Sums,
}

impl State {
    /// Sums of the flow with those of a connection. What a SYN repeats before it is answered is no data's.
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

    /// The connection is over: read its counters.
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

/// A fetch. Times are ns of the run.
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

/// A flow, as the run lays it out.
pub struct Flow {
    pub id: u32,
    pub group: usize,
    pub start: u64,
    pub stop: u64,
    /// Fetches of its client, if there are any, and how the server paces responses.
    pub fetches: Option<(FetchParams, Option<Pace>)>,
}

/// The losses of a flow begin anew with a fetch.
#[derive(Clone, Copy)]
pub struct Restart {
    pub t: u64,
    pub flow: u32,
    pub idx: u32,
}

/// State that threads and observer share.
pub struct Shared {
    /// Monotonic time of the start of the run.
    pub zero: u64,
    /// CLOCK_REALTIME at the start of the run, ns.
    pub wall: u64,
    /// Flows by number.
    pub flows: Vec<Flow>,
    /// Clients of populations, as drawn.
    pub clients: Vec<ClientRow>,
    states: Vec<Mutex<State>>,
    fetches: Mutex<Vec<Fetched>>,
    restarts: Mutex<Vec<Restart>>,
}

impl Shared {
    /// Every flow of the job, none started.
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

    /// A flow's state.
    pub fn state(&self, flow: u32) -> MutexGuard<'_, State> {
        self.states[flow as usize].lock().expect("invariant: no thread panics")
    }

    /// All fetches so far.
    pub fn fetches(&self) -> MutexGuard<'_, Vec<Fetched>> {
        self.fetches.lock().expect("invariant: no thread panics")
    }

    /// Let the losses of a fetch begin anew.
    pub fn restart(&self, flow: u32, idx: u32) {
        self.restarts.lock().expect("invariant: no thread panics").push(Restart { t: self.now(), flow, idx });
    }

    /// Fetches whose losses are to begin anew, in order of time.
    pub fn take_restarts(&self) -> Vec<Restart> {
        std::mem::take(&mut self.restarts.lock().expect("invariant: no thread panics"))
    }

    /// Time of the run, ns.
    pub fn now(&self) -> u64 {
        sys::monotonic() - self.zero
    }

    /// Wait until this time of the run.
    pub fn sleep_until(&self, t: u64) {
        sys::sleep_until(self.zero + t);
    }
}
