//! Transactions and conversations: the simulator's own workloads (arrival times, sizes, behaviour of clients) over
//! sockets of this kernel. All of them run in the run's single loop, without threads.
//!
//! The initial window of a connection is a metric of the server's route to the client, so each window of a mix has a
//! separate address on the client's host.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;

use ackclock_core::rng::Family;
use ackclock_core::{FlowId, Stream, Time};
use ackclock_sim::scenario::hosts::{self, Customs};
use ackclock_sim::scenario::spec::WorkloadConfig;
use ackclock_sim::tables::tally::{Counts, TransactionLog};
use ackclock_sim::transport::{Freight, TransportConfig};
use ackclock_sim::workload::transactions::{Carrier, End, Offered, Plan, Start};
use ackclock_sim::workload::{conversation, Arrivals, Conversation, ReadingPace, Transactions};

use crate::flows::{set_pushing, Shared, SENDER_PORT};
use crate::job::{Host, Job};
use crate::network::{client_ip, host_ip, Wiring};
use crate::sockets::{Event, Id, Owner, Sockets, CLIENT, SERVER};
use crate::{sys, DRAWS};

/// State of all transactions and conversations.
pub struct Clients {
    pairs: Vec<Pair>,
    sockets: Sockets,
    /// Transaction log.
    pub log: TransactionLog,
    error: Option<Error>,
}

/// A transaction or conversation flow: a client's host and its server.
struct Pair {
    work: Work,
    side: Side,
    started: bool,
}

/// Workload of a pair.
enum Work {
    Transactions(Transactions<Id>),
    Conversation(Conversation<Id>),
}

impl Work {
    fn start(&mut self, cx: &mut Now) {
        match self {
            Work::Transactions(work) => work.start(cx),
            Work::Conversation(work) => work.start(cx),
        }
    }
    fn wake(&mut self, cx: &mut Now) {
        match self {
            Work::Transactions(work) => work.wake(cx),
            Work::Conversation(work) => work.wake(cx),
        }
    }
    fn progress(&mut self, cx: &mut Now, conn: Id, host: usize) {
        match self {
            Work::Transactions(work) => work.progress(cx, conn, host),
            Work::Conversation(work) => work.progress(cx, conn, host),
        }
    }
    fn finish(&mut self, cx: &mut Now) {
        if let Work::Transactions(work) = self {
            work.finish(cx);
        }
    }
}

/// Fixed properties of a pair: flow, group, stop and next wake-up.
struct Side {
    flow: FlowId,
    group: usize,
    number: usize,
    stop: u64,
    wake_at: u64,
    namespaces: [RawFd; 2],
    controller: String,
    mss: u32,
    /// Values of TCP_NODELAY and TCP_CORK.
    pushing: [bool; 2],
    quickack: bool,
    /// Read pace of each host's application.
    paces: [Option<ReadingPace>; 2],
    /// Initial windows of the mix, in the order of the client's addresses.
    windows: Vec<u32>,
    listener: OwnedFd,
}

impl Clients {
    /// Set up the clients, none of which has arrived yet.
    pub fn new(job: &Job, wiring: &Wiring, shared: &Shared) -> Result<Clients> {
        let refused = |e: ackclock_sim::Error| Error::other(e.to_string());
        let record = &job.scenario.record;
        let log = TransactionLog {
            level: record.transactions,
            from: Time(record.warm_up_ns),
            ..TransactionLog::default()
        };
        let mut clients = Clients { pairs: Vec::new(), sockets: Sockets::new()?, log, error: None };
        let mut offered = Offered::default();
        for (index, group) in job.scenario.flows.iter().enumerate() {
            if !matches!(group.workload, WorkloadConfig::Transactions(_) | WorkloadConfig::Conversation(_)) {
                continue;
            }
            let config = match hosts::transport(group, index, &[], &Customs::new(), &Freight::default())
                .map_err(refused)?
            {
                TransportConfig::Tcp(config) => config,
                _ => return Err(Error::other("transactions and conversations need TCP")),
            };
            let place = job.scenario.place(index);
            let tallies = &mut clients.log.tallies;
            let (seed, mut windows) = (job.seed, Vec::new());
            let make: Box<dyn Fn(FlowId, u64) -> Work> = match &group.workload {
                WorkloadConfig::Conversation(params) => {
                    let start = Start { threshold: u64::MAX, config, tally: 0 };
                    let plan = Rc::new(conversation::Plan::new(params, start));
                    Box::new(move |flow, _| {
                        let draws = Family::new(seed, &format!("conversation.{flow}"));
                        Work::Conversation(Conversation::new(plan.clone(), draws))
                    })
                }
                WorkloadConfig::Transactions(params) => {
                    windows = params.initial_window_mix.iter().map(|entry| entry.segments).collect();
                    let (plan, process) =
                        Plan::of_tcp(params, &place, &config, tallies, &mut offered).map_err(refused)?;
                    Box::new(move |flow, start| {
                        let arrivals = Stream::new(seed, &format!("transactions.{flow}.arrivals"));
                        let arrivals = Arrivals::new(process.clone(), arrivals, Time(start));
                        let draws = Family::new(seed, &format!("transactions.{flow}"));
                        Work::Transactions(Transactions::new(plan.clone(), arrivals, draws))
                    })
                }
                _ => unreachable!("invariant: seen above"),
            };
            for flow in shared.flows.iter().filter(|f| f.group == index) {
                let namespaces = [0, 1].map(|side| wiring.hosts[index][side].fd());
                let host = &job.hosts[index];
                let number = clients.pairs.len();
                let listener = listener(host, namespaces[0], index, flow.id)?;
                clients.sockets.listen(listener.as_raw_fd(), number)?;
                let side = Side {
                    flow: flow.id,
                    group: index,
                    number,
                    stop: flow.stop,
                    wake_at: flow.start,
                    namespaces,
                    controller: host.congestion_control.clone(),
                    mss: host.mss,
                    pushing: [host.nodelay, host.cork],
                    quickack: host.quickack,
                    paces: [SERVER, CLIENT].map(|host| group.reader.as_ref()?.pace(host)),
                    windows: windows.clone(),
                    listener,
                };
                let work = make(flow.id, flow.start);
                clients.pairs.push(Pair { work, side, started: false });
            }
        }
        offered.check().map_err(refused)?;
        Ok(clients)
    }

    /// Descriptor that is readable when a socket has an event.
    pub fn fd(&self) -> RawFd {
        self.sockets.fd()
    }

    /// Time of the next arrival or of the end of the next wait, ns.
    pub fn next_event(&self) -> u64 {
        let wake = self.pairs.iter().map(|pair| pair.side.wake_at).min().unwrap_or(u64::MAX);
        wake.min(self.sockets.next_read())
    }

    /// Start the clients that are due up to `now`.
    pub fn advance(&mut self, now: u64, shared: &Shared) -> Result<()> {
        let Clients { pairs, sockets, log, error } = self;
        for Pair { work, side, started } in pairs.iter_mut().filter(|pair| pair.side.wake_at <= now) {
            side.wake_at = u64::MAX;
            let mut carrier = Now { now: Time(now), side, sockets, log, shared, error };
            if std::mem::replace(started, true) {
                work.wake(&mut carrier);
            } else {
                work.start(&mut carrier);
            }
        }
        while let Some((id, host)) = self.sockets.read_next(now)? {
            self.progress(id, host, Time(now), shared);
        }
        self.error.take().map_or(Ok(()), Err)
    }

    /// Handle ends with new events.
    pub fn collect(&mut self, shared: &Shared) -> Result<()> {
        let now = Time(shared.now());
        loop {
            let (events, more) = self.sockets.events(now.0)?;
            for event in events {
                match event {
                    Event::Listener(number) => {
                        let Clients { pairs, sockets, log, error } = self;
                        let Pair { work, side, .. } = &mut pairs[number];
                        let taken = sockets.accept(side.listener.as_raw_fd(), side.flow, now.0)?;
                        if let (Some(id), Work::Conversation(_)) = (taken, &work) {
                            // the server may send first
                            work.progress(&mut Now { now, side, sockets, log, shared, error }, id, SERVER);
                        }
                    }
                    Event::End(id, host) => self.progress(id, host, now, shared),
                }
            }
            if !more {
                return self.error.take().map_or(Ok(()), Err);
            }
        }
    }

    /// Report an event at an end to its workload.
    fn progress(&mut self, id: Id, host: usize, now: Time, shared: &Shared) {
        let Some(owner) = self.sockets.owner(id) else { return };
        let Clients { pairs, sockets, log, error } = self;
        let Pair { work, side, .. } = &mut pairs[owner.driver];
        work.progress(&mut Now { now, side, sockets, log, shared, error }, id, host);
    }

    /// Bytes acknowledged so far on a flow's open connections.
    pub fn acked(&self, flow: FlowId) -> u64 {
        let acked = |id| self.sockets.counts(id).0.payload_acked(false);
        self.sockets.open(flow).into_iter().map(acked).sum()
    }

    /// End every transaction and connection at the end of the run.
    pub fn finish(&mut self, end: u64, shared: &Shared) {
        let Clients { pairs, sockets, log, error } = self;
        for Pair { work, side, .. } in pairs {
            work.finish(&mut Now { now: Time(end), side, sockets, log, shared, error });
            for id in sockets.open(side.flow) {
                sockets.retire(id, &mut shared.state(side.flow).closed);
            }
        }
        log.rows.sort_by_key(|row| (row.flow, row.idx));
    }
}

/// Create a socket with the settings of a group's connections, in the namespace of the calling thread.
fn socket(controller: &str, mss: u32, pushing: [bool; 2]) -> Result<OwnedFd> {
    let fd = sys::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0)?;
    sys::set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, &1i32)?;
    sys::set_option_text(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, controller)?;
    if mss > 0 {
        sys::set_option(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_MAXSEG, &mss)?;
    }
    set_pushing(fd.as_raw_fd(), pushing)?;
    Ok(fd)
}

fn listener(host: &Host, namespace: RawFd, group: usize, flow: FlowId) -> Result<OwnedFd> {
    sys::enter(namespace)?;
    let fd = socket(&host.congestion_control, host.mss, [host.nodelay, host.cork])?;
    sys::bind(fd.as_raw_fd(), host_ip(0, group), SENDER_PORT + flow as u16)?;
    sys::listen(fd.as_raw_fd())?;
    Ok(fd)
}

/// A flow's hosts at one instant, as seen by the simulator's workload.
struct Now<'a> {
    now: Time,
    side: &'a mut Side,
    sockets: &'a mut Sockets,
    log: &'a mut TransactionLog,
    shared: &'a Shared,
    error: &'a mut Option<Error>,
}

impl Now<'_> {
    fn open(&mut self, iw: u32, idx: u32) -> Result<Id> {
        let Side { flow, group, number, .. } = *self.side;
        let window = self.side.windows.iter().position(|&w| w == iw);
        sys::enter(self.side.namespaces[1])?;
        let socket = socket(&self.side.controller, self.side.mss, self.side.pushing)?;
        let owner =
            Owner { driver: number, flow, place: 0, quickack: self.side.quickack, paces: self.side.paces };
        let to = (host_ip(0, group), SENDER_PORT + flow as u16);
        let id = self.sockets.connect(owner, socket, client_ip(group, window), to)?;
        if self.side.controller.ends_with("_drawn") {
            let number = format!("{} {} {idx}", to.1, self.sockets.client_port(id));
            std::fs::write(format!("{DRAWS}/number"), number)?;
        }
        Ok(id)
    }
}

impl Carrier for Now<'_> {
    type Conn = Id;

    fn now(&self) -> Time {
        self.now
    }
    fn flow(&self) -> FlowId {
        self.side.flow
    }
    fn stop(&self) -> Time {
        Time(self.side.stop)
    }
    fn has_room(&self) -> bool {
        true
    }
    fn log(&mut self) -> &mut TransactionLog {
        self.log
    }
    fn connect(&mut self, start: &Start, idx: u32) -> Id {
        match self.open(start.config.sending.iw, idx) {
            Ok(id) => id,
            Err(error) => {
                self.error.get_or_insert(error); // the error ends the run
                self.sockets.nothing()
            }
        }
    }
    fn number(conn: Id) -> u32 {
        conn.serial()
    }
    fn set_place(&mut self, conn: Id, place: u32) {
        self.sockets.set_place(conn, place);
    }
    fn place(&mut self, conn: Id) -> usize {
        self.sockets.owner(conn).expect("invariant: asked for open connections only").place as usize
    }
    fn end(&self, conn: Id, host: usize) -> End {
        self.sockets.end(conn, host)
    }
    fn counts(&self, conn: Id) -> Counts {
        let (server, synacks, syns) = self.sockets.counts(conn);
        Counts {
            segments_sent: server.data_segs_out as u64,
            retransmissions: server.total_retrans as u64,
            rtos: server.total_rto as u64,
            syn_retransmissions: syns,
            synack_retransmissions: synacks,
        }
    }
    fn write(&mut self, conn: Id, host: usize, bytes: u64) {
        self.sockets.write(conn, host, bytes);
    }
    fn cork(&mut self, conn: Id, host: usize, on: bool) {
        if let Err(error) = self.sockets.cork(conn, host, on) {
            self.error.get_or_insert(error);
        }
    }
    fn close(&mut self, conn: Id, host: usize) {
        self.sockets.close(conn, host);
    }
    fn note_established(&mut self, _conn: Id) {
        self.shared.state(self.side.flow).established.get_or_insert(self.now.0);
    }
    fn retire(&mut self, conn: Id) {
        let failed = [SERVER, CLIENT].into_iter().any(|host| self.sockets.end(conn, host).failed);
        let mut state = self.shared.state(self.side.flow);
        state.failed |= failed;
        self.sockets.retire(conn, &mut state.closed);
    }
    fn note_completed(&mut self, answered: Time) {
        self.shared.state(self.side.flow).completed = Some(answered.0);
    }
    fn wake(&mut self, at: Time) {
        self.side.wake_at = at.max(self.now).0;
    }
}
