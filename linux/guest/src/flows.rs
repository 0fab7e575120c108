//! Applications on the hosts: one thread for each end of a flow, with blocking calls. A blocked thread costs no
//! virtual time, and a receiver that discards its data inside the kernel needs no system call per segment.

mod books;
mod datagram;
mod fetch;
mod program;
mod stream;

use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::mpsc::channel;
use std::sync::{Arc, MutexGuard};

use ackclock_sim::scenario::spec::{TraceLevel, WorkloadConfig};

use crate::job::{Host, Job};
use crate::network::{host_ip, Wiring};
use crate::sys;

pub use books::{Fetched, Flow, PccSums, Restart, Shared, State, Sums, MOST_FLOWS};
pub use datagram::is_plain;

/// First port of the sending hosts: that of flow n listens on, or binds to, this number plus n.
pub const SENDER_PORT: u16 = 10_000;
/// First port of the receiving hosts: that of flow n listens on, or binds to, this number plus n.
pub const RECEIVER_PORT: u16 = 20_000;

/// Start the threads of every flow; each waits for the flow's start.
pub fn launch(job: &Job, wiring: &Wiring, shared: &Arc<Shared>) -> Result<()> {
    for flow in &shared.flows {
        let spec = &job.scenario.flows[flow.group];
        if matches!(spec.workload, WorkloadConfig::Transactions(_) | WorkloadConfig::Conversation(_)) {
            continue; // transactions and conversations need no threads
        }
        let end = End {
            id: flow.id,
            group: flow.group,
            start: flow.start,
            stop: flow.stop,
            stops: flow.stop < job.scenario.duration_ns,
            controller: job.hosts[flow.group].congestion_control.clone(),
            mss: job.hosts[flow.group].mss,
            max_pacing_rate: job.hosts[flow.group].max_pacing_rate,
            pushing: [job.hosts[flow.group].nodelay, job.hosts[flow.group].cork],
            send_buffer: job.hosts[flow.group].send_buffer,
            write: job.write,
            namespace: [wiring.hosts[flow.group][0].fd(), wiring.hosts[flow.group][1].fd()],
            shared: shared.clone(),
        };
        let trace = match job.scenario.record.controller {
            TraceLevel::None => false,
            TraceLevel::Flow => flow.id == 0,
            TraceLevel::All => true,
        };
        if let Some(program) = &job.program {
            end.launch_program(program, &job.hosts[flow.group])?;
            continue;
        }
        if let Some(ends) = datagram::Ends::new(spec, flow.group, flow.id, job.seed, trace)? {
            end.launch_datagrams(spec, &ends)?;
            continue;
        }
        let side = usize::from(flow.fetches.is_none());
        sys::enter(end.namespace[side])?;
        let listener = end.listener(side, &job.hosts[flow.group])?;
        if let Some((fetches, pace)) = &flow.fetches {
            let (server, asked, pace) = (end.clone(), fetches.clone(), *pace);
            let (tell, closed) = channel();
            thread(move || server.serve(&listener, &asked, pace, &tell))?;
            let fetches = fetches.clone();
            thread(move || end.fetch(&fetches, &closed))?;
            continue;
        }
        let (sink, pace) = (end.clone(), spec.reader.as_ref().and_then(|reader| reader.pace(side)));
        thread(move || sink.swallow(&listener, pace))?;
        let workload = spec.clone();
        thread(move || end.stream(&workload))?;
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

/// Set the socket options that decide when data is sent: TCP_NODELAY, TCP_CORK.
pub fn set_pushing(fd: RawFd, [nodelay, cork]: [bool; 2]) -> Result<()> {
    for (name, on) in [(libc::TCP_NODELAY, nodelay), (libc::TCP_CORK, cork)] {
        if on {
            sys::set_option(fd, libc::IPPROTO_TCP, name, &1i32)?;
        }
    }
    Ok(())
}

const STACK: usize = 128 << 10;

/// Both ends of a flow, as needed by its threads.
#[derive(Clone)]
struct End {
    id: u32,
    group: usize,
    start: u64,
    stop: u64,
    /// Whether `stop` is within the run.
    stops: bool,
    controller: String,
    mss: u32,
    max_pacing_rate: u64,
    /// Values of TCP_NODELAY and TCP_CORK.
    pushing: [bool; 2],
    send_buffer: u32,
    /// Size of a bulk sender's writes, bytes.
    write: usize,
    namespace: [RawFd; 2],
    shared: Arc<Shared>,
}

impl End {
    /// Open a socket on the sending host (side 0) or the receiving host. With BBR the receiver keeps its host's
    /// controller: Google's BBRv3 makes its own end acknowledge every segment at once (`fast_ack_mode`). DCTCP must run
    /// at both ends, and a user's module may need that too.
    fn socket(&self, side: usize) -> Result<OwnedFd> {
        let fd = sys::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        let raw = fd.as_raw_fd();
        sys::set_option(raw, libc::SOL_SOCKET, libc::SO_REUSEADDR, &1i32)?;
        if side == 0 || !self.controller.starts_with("bbr") {
            sys::set_option_text(raw, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &self.controller)?;
        }
        if self.mss > 0 {
            sys::set_option(raw, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &self.mss)?;
        }
        if self.max_pacing_rate > 0 {
            sys::set_option(raw, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &self.max_pacing_rate)?;
        }
        set_pushing(raw, self.pushing)?;
        if self.send_buffer > 0 {
            sys::set_option(raw, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &(self.send_buffer / 2))?;
            // the kernel doubles this value
        }
        Ok(fd)
    }

    fn port(&self, side: usize) -> u16 {
        [SENDER_PORT, RECEIVER_PORT][side] + self.id as u16
    }

    fn listener(&self, side: usize, host: &Host) -> Result<OwnedFd> {
        let fd = self.socket(side)?;
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
}
