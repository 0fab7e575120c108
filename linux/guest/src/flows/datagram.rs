//! Datagram flows: the simulator's own endpoints (PCC, plain traffic) behind real UDP sockets. An endpoint is
//! called with the time its timer was set to, not with the clock after the wake-up: in virtual time the two differ by
//! the cost of reading clocks, by which a paced sender would fall behind on every datagram.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

use ackclock_core::datagram::DatagramEndpoint;
use ackclock_core::Time;
use ackclock_pcc::IntervalRow;
use ackclock_sim::scenario::hosts::{self, Customs};
use ackclock_sim::scenario::spec::{FlowGroup, WorkloadConfig};
use ackclock_sim::transport::{DatagramEnd, Freight, Transport};
use ackclock_sim::workload::flow::DatagramRow;

use super::books::{PccSums, Sums};
use super::{thread, End};
use crate::network::host_ip;
use crate::sys::{self, Inbox, Poll};
use crate::wire;

/// Both endpoints of a flow, the sender first.
pub struct Ends([Mutex<DatagramEnd>; 2]);

impl Ends {
    /// Create the endpoints of a datagram flow; `None` for a TCP flow. In this job the host side calls every TCP
    /// controller "cubic".
    pub fn new(
        spec: &FlowGroup,
        group: usize,
        flow: u32,
        seed: u64,
        trace: bool,
    ) -> Result<Option<Arc<Ends>>> {
        if spec.congestion_control == "cubic" && !is_plain(&spec.workload) {
            return Ok(None);
        }
        let config = hosts::transport(spec, group, &[], &Customs::new(), &Freight::default())
            .map_err(|e| Error::other(e.to_string()))?;
        let ends = Transport::pair(&config, flow, 0, seed).map(|end| match end {
            Transport::Datagram(end) => Mutex::new(*end),
            Transport::Tcp(_) => unreachable!("invariant: a transport over datagrams"),
        });
        let ends = Ends(ends);
        if let (true, DatagramEnd::PccSender(sender)) = (trace, &mut *ends.end(0)) {
            sender.set_trace(true);
        }
        Ok(Some(Arc::new(ends)))
    }

    fn end(&self, side: usize) -> MutexGuard<'_, DatagramEnd> {
        self.0[side].lock().expect("invariant: no thread panics")
    }

    /// Payload delivered: acknowledged if the sender is PCC's, received if the receiver is a sink, bytes.
    pub fn delivered(&self) -> u64 {
        match (&*self.end(0), &*self.end(1)) {
            (DatagramEnd::PccSender(sender), _) => sender.acked(),
            (_, DatagramEnd::Sink(sink)) => sink.received().bytes,
            _ => 0,
        }
    }

    /// Add the flow's counters to `sums`.
    pub fn add_to(&self, sums: &mut Sums) {
        sums.acked += self.delivered();
        match &*self.end(0) {
            DatagramEnd::Source(source) => sums.data_segs_out += source.sent(),
            DatagramEnd::PccSender(sender) => {
                let stats = sender.stats();
                sums.data_segs_out += stats.sent;
                sums.retransmissions += stats.retransmissions;
                sums.acks_received += stats.reports;
                sums.rtos += stats.timeouts;
                let heard = stats.rtt_samples > 0;
                sums.pcc = Some(PccSums {
                    sent_bytes: stats.sent_bytes,
                    lost_packets: stats.lost,
                    intervals: stats.intervals,
                    mean_rtt_s: if heard {
                        stats.rtt_sum_ns as f64 / stats.rtt_samples as f64 * 1e-9
                    } else {
                        f64::NAN
                    },
                    min_rtt_s: if heard { stats.min_rtt.as_secs() } else { f64::NAN },
                });
            }
            _ => {}
        }
    }

    /// Row of a plain-traffic flow.
    pub fn row(&self, flow: u32) -> Option<DatagramRow> {
        match (&*self.end(0), &*self.end(1)) {
            (DatagramEnd::Source(source), DatagramEnd::Sink(sink)) => {
                Some(DatagramRow { flow, sent: source.sent(), received: sink.received().clone() })
            }
            _ => None,
        }
    }

    /// Rows of the monitor intervals.
    pub fn intervals(&self) -> Vec<IntervalRow> {
        match &mut *self.end(0) {
            DatagramEnd::PccSender(sender) => sender.take_rows(),
            _ => Vec::new(),
        }
    }
}

/// Whether a workload is plain datagram traffic.
pub fn is_plain(workload: &WorkloadConfig) -> bool {
    workload.params().source().is_some()
}

impl End {
    /// Start the threads of both ends; each waits for the flow's start.
    pub(super) fn launch_datagrams(self, spec: &FlowGroup, ends: &Arc<Ends>) -> Result<()> {
        self.state().datagrams = Some(ends.clone());
        let plain = is_plain(&spec.workload);
        for side in [1, 0] {
            sys::enter(self.namespace[side])?;
            let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
            let fd = socket.as_raw_fd();
            // more than can arrive at one instant: the threads read immediately
            sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &BUFFER)?;
            sys::set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &BUFFER)?;
            sys::bind(fd, host_ip(side, self.group), self.port(side))?;
            sys::connect(fd, host_ip(1 - side, self.group), self.port(1 - side))?;
            let (end, ends, spec) = (self.clone(), ends.clone(), spec.clone());
            thread(move || {
                let mut app = Application::new(&spec.workload, end.stop);
                let mut drive = Drive::new(&end, ends, socket, side, plain)?;
                if side == 1 {
                    return drive.run(None);
                }
                end.shared.sleep_until(end.start);
                drive.now = end.start;
                drive.run(Some(&mut app))
            })?;
        }
        Ok(())
    }
}

/// Application at the sending end, and the time of its next action.
struct Application {
    kind: Kind,
    stop: u64,
    wake: u64,
    started: bool,
    closed: bool,
}

enum Kind {
    Bulk,
    Plain,
    /// All data is written at once.
    Transfer(u64),
    /// Size of the first write, size of each further write, interval between writes in ns, bytes left.
    Throttled(u64, u64, u64, u64),
}

impl Application {
    fn new(workload: &WorkloadConfig, stop: u64) -> Application {
        let kind = match workload {
            WorkloadConfig::Transfer(transfer) => Kind::Transfer(transfer.bytes),
            WorkloadConfig::Throttled(p) => {
                Kind::Throttled(p.first(), p.chunk, p.interval().0, p.bytes.unwrap_or(u64::MAX))
            }
            _ if is_plain(workload) => Kind::Plain,
            _ => Kind::Bulk,
        };
        Application { kind, stop, wake: 0, started: false, closed: false }
    }

    /// Perform the action that is due.
    fn act(&mut self, now: u64, end: &mut DatagramEnd) {
        let first = !std::mem::replace(&mut self.started, true);
        match end {
            DatagramEnd::Source(source) if first => source.start(Time(now)),
            DatagramEnd::PccSender(sender) if first => sender.connect(Time(now)),
            _ => {}
        }
        if now >= self.stop && !first {
            self.wake = u64::MAX;
            match end {
                DatagramEnd::Source(source) => source.stop(),
                DatagramEnd::PccSender(sender) => {
                    sender.stop_writing();
                    sender.close();
                }
                _ => {}
            }
            self.closed = true;
            return;
        }
        self.wake = self.stop;
        let DatagramEnd::PccSender(sender) = end else { return };
        match &mut self.kind {
            Kind::Bulk => sender.write_forever(),
            Kind::Plain => {}
            Kind::Transfer(bytes) => {
                sender.write(Time(now), *bytes);
                sender.close();
                self.closed = true;
            }
            Kind::Throttled(first, chunk, apart, left) => {
                let bytes = std::mem::replace(first, *chunk).min(*left);
                sender.write(Time(now), bytes);
                *left -= bytes;
                if *left == 0 {
                    sender.close();
                    self.closed = true;
                } else {
                    self.wake = (now + *apart).min(self.stop);
                }
            }
        }
    }
}

/// One endpoint, its socket and its timer.
struct Drive<'a> {
    end: &'a End,
    ends: Arc<Ends>,
    socket: OwnedFd,
    timer: OwnedFd,
    poll: Poll,
    side: usize,
    plain: bool,
    /// Time of the event being handled, ns since the start of the run.
    now: u64,
    /// Expiry time of the timer, ns since the start of the run.
    armed: u64,
    outbox: Vec<u8>,
    inbox: Inbox,
}

impl<'a> Drive<'a> {
    fn new(end: &'a End, ends: Arc<Ends>, socket: OwnedFd, side: usize, plain: bool) -> Result<Drive<'a>> {
        let (poll, timer) = (Poll::new()?, sys::timer()?);
        poll.add(socket.as_raw_fd(), SOCKET)?;
        poll.add(timer.as_raw_fd(), TIMER)?;
        let (outbox, inbox) = (vec![0; LARGEST], Inbox::new(socket.as_raw_fd())?);
        Ok(Drive { end, ends, socket, timer, poll, side, plain, now: 0, armed: u64::MAX, outbox, inbox })
    }

    /// Run the endpoint until the flow is over; a receiving endpoint runs until the end of the run.
    fn run(&mut self, mut app: Option<&mut Application>) -> Result<()> {
        let mut ready = Vec::new();
        loop {
            if let Some(app) = app.as_deref_mut().filter(|app| app.wake <= self.now) {
                app.act(self.now, &mut self.ends.end(self.side));
            }
            self.flush()?;
            let mut next = self.ends.end(self.side).next_deadline().0;
            if let Some(app) = app.as_deref() {
                next = next.min(app.wake);
                if self.over(app.closed) {
                    return Ok(());
                }
            }
            self.wait(next, &mut ready)?;
        }
    }

    /// Send every datagram the endpoint currently allows.
    fn flush(&mut self) -> Result<()> {
        loop {
            let datagram = self.ends.end(self.side).poll_transmit(Time(self.now));
            let Some(datagram) = datagram else { return Ok(()) };
            let n = wire::encode(&datagram, &mut self.outbox);
            sys::send_datagram(self.socket.as_raw_fd(), &self.outbox[..n])?;
        }
    }

    /// Wait for the next deadline or datagram, and handle it.
    fn wait(&mut self, next: u64, ready: &mut Vec<u64>) -> Result<()> {
        let fd = self.socket.as_raw_fd();
        if next == u64::MAX {
            self.inbox.fill(fd, true)?;
            self.take_in(u64::MAX);
            return Ok(());
        }
        if next < self.now + SOON {
            self.end.shared.sleep_until(next);
            self.inbox.fill(fd, false)?;
            self.take_in(next);
            self.on_deadline(next);
            return Ok(());
        }
        if next != self.armed {
            sys::arm(self.timer.as_raw_fd(), self.end.shared.zero + next)?;
            self.armed = next;
        }
        self.poll.wait(ready)?;
        let expired = ready.contains(&TIMER);
        if ready.contains(&SOCKET) {
            self.inbox.fill(fd, false)?;
            self.take_in(if expired { next } else { u64::MAX });
        }
        if expired {
            self.armed = u64::MAX;
            self.on_deadline(next);
        }
        Ok(())
    }

    fn on_deadline(&mut self, t: u64) {
        self.now = self.now.max(t);
        let mut endpoint = self.ends.end(self.side);
        if endpoint.next_deadline().0 <= self.now {
            endpoint.on_timer(Time(self.now));
        }
    }

    /// Pass the inbox's datagrams that arrived by `limit` to the endpoint.
    fn take_in(&mut self, limit: u64) {
        let mut endpoint = self.ends.end(self.side);
        for received in self.inbox.each() {
            let t = received.t.saturating_sub(self.end.shared.wall).min(limit);
            self.now = self.now.max(t);
            if let Some(datagram) = wire::decode(received.head, received.len, self.plain) {
                endpoint.on_packet(Time(self.now), &datagram);
            }
        }
    }

    /// Record milestones; returns whether the flow is done.
    fn over(&self, closed: bool) -> bool {
        // one lock at a time, because the observer takes both, the state's lock first
        let (established, failed, done) = match &*self.ends.end(0) {
            DatagramEnd::PccSender(s) => (s.is_established(), s.failure().is_some(), s.is_done()),
            _ => return false,
        };
        let mut state = self.end.state();
        if established {
            state.established.get_or_insert(self.now);
        }
        state.failed |= failed;
        if closed && done && !failed {
            state.completed = Some(self.now);
        }
        failed || closed && done
    }
}

const SOCKET: u64 = 0;
const TIMER: u64 = 1;
/// Maximum datagram size, bytes.
const LARGEST: usize = 1 << 16;
/// Socket buffer size, bytes.
const BUFFER: i32 = 16 << 20;
/// Below this distance to the deadline, ns, the thread sleeps instead of polling. Datagrams that arrive in the meantime
/// are passed on afterwards, with their arrival times, which saves two system calls per datagram.
const SOON: u64 = 250_000;
