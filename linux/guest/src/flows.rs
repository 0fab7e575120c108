//! What runs on the hosts: a thread per end of a flow, with blocking calls. A thread that waits costs nothing in virtual
//! time, and a receiver that throws its data away inside the kernel costs no system call per segment.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard};

use ackclock_sim::spec::{FlowGroup, Workload};

use crate::info::Info;
use crate::job::{Host, Job};
use crate::network::{host_ip, Wiring};
use crate::sys;

/// The sending host of flow n listens or binds here + n.
pub const SENDER_PORT: u16 = 10_000;
/// The receiving host, if it is the one that listens.
pub const RECEIVER_PORT: u16 = 20_000;
/// More would run into the next range of ports.
pub const MOST_FLOWS: usize = 10_000;

/// Counters of connections that are closed, and of the open one when the run ends.
#[derive(Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Sums {
    pub acked: u64,
    pub data_segs_out: u64,
    pub retransmissions: u64,
    pub rtos: u64,
    pub dsacks: u64,
    pub acks_received: u64,
    pub min_rtt_us: Option<u32>,
    pub syn_retransmissions: u64,
}

impl Sums {
    /// Add a connection.
    pub fn add(&mut self, info: &Info) {
        self.acked += info.bytes_acked.saturating_sub(1); // the SYN counts as one
        self.data_segs_out += info.data_segs_out as u64;
        self.retransmissions += info.total_retrans as u64;
        self.rtos += info.total_rto as u64;
        self.dsacks += info.dsack_dups as u64;
        self.acks_received += info.segs_in as u64;
        if info.min_rtt_us != u32::MAX && info.data_segs_out > 0 {
            self.min_rtt_us = Some(self.min_rtt_us.map_or(info.min_rtt_us, |m| m.min(info.min_rtt_us)));
        }
    }
}

/// A flow as it stands. Times are ns of the run.
#[derive(Default)]
#[allow(missing_docs)]
pub struct State {
    /// The sending host's socket of the connection now open.
    pub open: Option<RawFd>,
    pub established: Option<u64>,
    pub completed: Option<u64>,
    pub acked_at_stop: Option<u64>,
    pub failed: bool,
    pub closed: Sums,
}

impl State {
    /// The connection is over: read its counters.
    fn close(&mut self, fd: RawFd) -> Option<Info> {
        let info = Info::of(fd).ok();
        if let Some(info) = &info {
            self.closed.add(info);
        }
        if self.open == Some(fd) {
            self.open = None;
        }
        info
    }
}

/// A fetch. Times are ns of the run.
#[derive(Clone, Default)]
#[allow(missing_docs)]
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

/// One flow, as the run lays it out.
#[allow(missing_docs)]
pub struct Flow {
    pub id: u32,
    pub group: usize,
    pub start: u64,
    pub stop: u64,
}

/// What threads and observer share.
pub struct Shared {
    /// Monotonic time of the start of the run.
    pub zero: u64,
    /// Flows by number.
    pub flows: Vec<Flow>,
    states: Vec<Mutex<State>>,
    fetches: Mutex<Vec<Fetched>>,
    restarts: Mutex<Vec<(u32, u32)>>,
}

impl Shared {
    /// Every flow of the job, none started.
    pub fn new(job: &Job) -> Result<Shared> {
        let mut flows = Vec::new();
        for (group, spec) in job.scenario.flows.iter().enumerate() {
            let stop = spec.stop_ns.map_or(job.scenario.duration_ns, |s| s.min(job.scenario.duration_ns));
            for i in 0..spec.count as u64 {
                let start = spec.start_ns + i * spec.stagger_ns;
                flows.push(Flow { id: flows.len() as u32, group, start, stop: stop.max(start) });
            }
        }
        if flows.len() > MOST_FLOWS {
            return Err(Error::other(format!("{} flows; allowed: {MOST_FLOWS}", flows.len())));
        }
        Ok(Shared {
            zero: job.start_ns,
            states: flows.iter().map(|_| Mutex::default()).collect(),
            flows,
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

    /// Fetches whose losses are to begin anew: (flow, number of the fetch).
    pub fn take_restarts(&self) -> Vec<(u32, u32)> {
        std::mem::take(&mut self.restarts.lock().expect("invariant: no thread panics"))
    }

    fn now(&self) -> u64 {
        sys::monotonic() - self.zero
    }

    fn sleep_until(&self, t: u64) {
        sys::sleep_until(self.zero + t);
    }
}

/// Let every flow wait for its start.
pub fn launch(job: &Job, wiring: &Wiring, shared: &Arc<Shared>) -> Result<()> {
    for flow in &shared.flows {
        let spec = &job.scenario.flows[flow.group];
        let end = End {
            id: flow.id,
            group: flow.group,
            start: flow.start,
            stop: flow.stop,
            controller: job.hosts[flow.group].congestion_control.clone(),
            mss: job.hosts[flow.group].mss,
            namespace: [wiring.hosts[flow.group][0].fd(), wiring.hosts[flow.group][1].fd()],
            shared: shared.clone(),
        };
        let side = usize::from(!matches!(spec.workload, Workload::Fetch { .. }));
        sys::enter(end.namespace[side])?;
        let listener = end.listener(side, &job.hosts[flow.group])?;
        let workload = spec.clone();
        match spec.workload {
            Workload::Fetch { .. } => {
                let server = end.clone();
                let asked = workload.clone();
                thread(move || server.serve(&listener, &asked))?;
                thread(move || end.fetch(&workload))?;
            }
            _ => {
                let sink = end.clone();
                let asked = workload.clone();
                thread(move || sink.swallow(&listener, &asked))?;
                thread(move || end.stream(&workload))?;
            }
        }
    }
    Ok(())
}

fn thread(work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
    let run = move || {
        if let Err(error) = sys::exact_timers().and_then(|()| work()) {
            eprintln!("thread: {error}");
        }
    };
    std::thread::Builder::new().stack_size(STACK).spawn(run).map(drop)
}

const STACK: usize = 128 << 10;
/// Bytes of one write of a sender that always has data.
const WRITE: usize = 256 << 10;

/// One flow's ends.
#[derive(Clone)]
struct End {
    id: u32,
    group: usize,
    start: u64,
    stop: u64,
    controller: String,
    mss: u32,
    namespace: [RawFd; 2],
    shared: Arc<Shared>,
}

impl End {
    fn socket(&self) -> Result<OwnedFd> {
        let fd = sys::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        let raw = fd.as_raw_fd();
        sys::set_option(raw, libc::SOL_SOCKET, libc::SO_REUSEADDR, &1i32)?;
        sys::set_option_text(raw, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &self.controller)?;
        if self.mss > 0 {
            sys::set_option(raw, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &self.mss)?;
        }
        Ok(fd)
    }

    fn port(&self, side: usize) -> u16 {
        [SENDER_PORT, RECEIVER_PORT][side] + self.id as u16
    }

    fn listener(&self, side: usize, host: &Host) -> Result<OwnedFd> {
        let fd = self.socket()?;
        if side == 1 && host.window_clamp > 0 {
            sys::set_option(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, &host.window_clamp)?;
        }
        sys::bind(fd.as_raw_fd(), host_ip(side, self.group), self.port(side))?;
        sys::listen(fd.as_raw_fd())?;
        Ok(fd)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state(self.id)
    }

    /// The receiving end of a stream. It knows how long a transfer is and closes first: a sender that has closed is no
    /// longer Established, and the kernel traces the ACKs of Established connections only.
    fn swallow(&self, listener: &OwnedFd, spec: &FlowGroup) -> Result<()> {
        let socket = sys::accept(listener.as_raw_fd())?;
        let mut left = match spec.workload {
            Workload::Transfer { bytes } => bytes,
            Workload::Throttled { bytes, .. } => bytes.unwrap_or(u64::MAX),
            _ => u64::MAX,
        };
        while left > 0 {
            match sys::swallow(socket.as_raw_fd(), left.min(1 << 30) as usize)? {
                0 => break,
                n => left -= n as u64,
            }
        }
        Ok(())
    }

    /// The sending end of a stream: connect at the start, write as the workload says.
    fn stream(&self, spec: &FlowGroup) -> Result<()> {
        sys::enter(self.namespace[0])?;
        let socket = self.socket()?;
        let fd = socket.as_raw_fd();
        sys::bind(fd, host_ip(0, self.group), self.port(0))?;
        self.shared.sleep_until(self.start);
        self.state().open = Some(fd);
        if sys::connect(fd, host_ip(1, self.group), self.port(1)).is_err() {
            let mut state = self.state();
            state.close(fd);
            state.failed = true;
            return Ok(());
        }
        {
            let syns = Info::of(fd)?.total_retrans as u64;
            let mut state = self.state();
            state.established = Some(self.shared.now());
            state.closed.syn_retransmissions += syns;
            state.closed.retransmissions = state.closed.retransmissions.wrapping_sub(syns);
            // counted apart
        }
        match spec.workload {
            Workload::Transfer { bytes } => self.write(fd, bytes)?,
            Workload::Throttled { rate_bps, chunk_bytes, initial_bytes, bytes } => {
                self.throttled(fd, rate_bps, chunk_bytes, initial_bytes, bytes.unwrap_or(u64::MAX))?;
                if bytes.is_none() {
                    return self.stay(socket);
                }
            }
            _ => {
                self.write(fd, u64::MAX)?;
                return self.stay(socket);
            }
        }
        let failed = sys::swallow(fd, 1).is_err(); // the receiver closes when it has everything
        let mut state = self.state();
        state.failed |= failed;
        if !failed {
            state.completed = Some(self.shared.now());
        }
        state.close(fd);
        Ok(())
    }

    /// The connection stays open to the end of the run.
    fn stay(&self, socket: OwnedFd) -> Result<()> {
        std::mem::forget(socket);
        Ok(())
    }

    /// Write so many bytes, or until the flow's stop.
    fn write(&self, fd: RawFd, mut bytes: u64) -> Result<()> {
        let block = vec![0; WRITE];
        while bytes > 0 {
            let now = self.shared.now();
            if now >= self.stop {
                break;
            }
            sys::set_timeout(fd, true, self.stop - now)?;
            match sys::send(fd, &block[..bytes.min(WRITE as u64) as usize]) {
                Ok(sent) => bytes -= sent as u64,
                Err(_) => {
                    self.state().failed = true;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Write `initial` at once, then `chunk` at the pace of `rate`.
    fn throttled(&self, fd: RawFd, rate: u64, chunk: u64, initial: u64, mut left: u64) -> Result<()> {
        let first = initial.min(left);
        self.write(fd, first)?;
        left -= first;
        let interval = (chunk as u128 * 8 * 1_000_000_000 / rate as u128) as u64;
        let mut due = self.shared.now();
        while left > 0 && due < self.stop {
            let bytes = chunk.min(left);
            self.write(fd, bytes)?;
            left -= bytes;
            due += interval;
            self.shared.sleep_until(due.min(self.stop));
        }
        Ok(())
    }

    /// The client of fetches: connect, request, read, close; again.
    fn fetch(&self, spec: &FlowGroup) -> Result<()> {
        let Workload::Fetch { bytes, request_bytes, count, pause_ns, timeout_ns, common_random_numbers } =
            spec.workload
        else {
            unreachable!("invariant: the caller looked")
        };
        sys::enter(self.namespace[1])?;
        let mut due = self.start;
        for idx in 0..count {
            self.shared.sleep_until(due);
            if self.shared.now() >= self.stop {
                return Ok(());
            }
            if common_random_numbers {
                self.shared.restarts.lock().expect("invariant: no thread panics").push((self.id, idx));
            }
            self.one_fetch(idx, bytes, request_bytes, timeout_ns)?;
            due = self.shared.now() + pause_ns;
        }
        let mut state = self.state();
        state.completed = Some(due - pause_ns).filter(|_| !state.failed);
        Ok(())
    }

    fn one_fetch(&self, idx: u32, bytes: u64, request: u64, timeout: Option<u64>) -> Result<()> {
        let socket = self.socket()?;
        let fd = socket.as_raw_fd();
        let start = self.shared.now();
        let row = {
            let mut fetches = self.shared.fetches();
            fetches.push(Fetched { flow: self.id, idx, start, bytes, ..Fetched::default() });
            fetches.len() - 1
        };
        let patience = || timeout.map(|t| t.saturating_sub(self.shared.now() - start).max(1));
        if let Some(left) = patience() {
            sys::set_timeout(fd, true, left)?;
        }
        sys::bind(fd, host_ip(1, self.group), 0)?;
        let port = sys::local_port(fd)?;
        self.shared.fetches()[row].port = port;
        if sys::connect(fd, host_ip(0, self.group), self.port(0)).is_err() {
            self.state().failed = true;
            return Ok(());
        }
        let syns = Info::of(fd)?.total_retrans;
        let connected = self.shared.now();
        {
            let mut fetches = self.shared.fetches();
            fetches[row].connected = Some(connected);
            fetches[row].syn_retransmissions = syns;
            let mut state = self.state();
            state.established.get_or_insert(connected);
            state.closed.syn_retransmissions += syns as u64;
        }
        sys::send(fd, &vec![0; request as usize])?;
        let mut got = 0;
        while got < bytes {
            if let Some(left) = patience() {
                sys::set_timeout(fd, false, left)?;
            }
            // One byte first: the time of the first byte. What comes with it stays in the buffer for no time at all.
            let want = if got == 0 { 1 } else { (bytes - got).min(1 << 30) };
            match sys::swallow(fd, want as usize) {
                Ok(0) | Err(_) => {
                    self.state().failed = true;
                    return Ok(());
                }
                Ok(n) => {
                    if got == 0 {
                        self.shared.fetches()[row].first_byte = Some(self.shared.now());
                    }
                    got += n as u64;
                }
            }
        }
        let retransmitted = Info::of(fd)?.total_retrans - syns;
        let mut fetches = self.shared.fetches();
        fetches[row].completed = Some(self.shared.now());
        fetches[row].request_retransmissions = retransmitted;
        Ok(())
    }

    /// The server of fetches: a thread for each connection.
    fn serve(&self, listener: &OwnedFd, spec: &FlowGroup) -> Result<()> {
        let Workload::Fetch { bytes, request_bytes, .. } = spec.workload else {
            unreachable!("invariant: the caller looked")
        };
        loop {
            let socket = sys::accept(listener.as_raw_fd())?;
            let end = self.clone();
            thread(move || end.respond(&socket, request_bytes, bytes))?;
        }
    }

    /// One response: read the request, write, wait for the client to close, count.
    fn respond(&self, socket: &OwnedFd, request: u64, bytes: u64) -> Result<()> {
        let fd = socket.as_raw_fd();
        let port = sys::peer_port(fd)?;
        let synacks = Info::of(fd)?.total_retrans;
        self.state().open = Some(fd);
        sys::swallow(fd, request as usize)?;
        let block = vec![0; WRITE.min(bytes as usize)];
        let mut left = bytes;
        while left > 0 {
            match sys::send(fd, &block[..left.min(WRITE as u64) as usize]) {
                Ok(n) => left -= n as u64,
                Err(_) => break,
            }
        }
        sys::swallow(fd, 1)?; // the client's FIN
        let mut state = self.state();
        let Some(mut info) = state.close(fd) else { return Ok(()) };
        state.closed.retransmissions -= synacks as u64;
        drop(state);
        info.total_retrans -= synacks;
        let mut fetches = self.shared.fetches();
        if let Some(row) = fetches.iter_mut().rev().find(|f| f.flow == self.id && f.port == port) {
            row.server = Some(info);
            row.synack_retransmissions = synacks;
        }
        Ok(())
    }
}
