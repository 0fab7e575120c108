//! Workloads: what the application of a flow does. One file each; this one holds the contract, the closed set and the
//! registry of names.

mod arrivals;
mod bulk;
mod datagrams;
mod fetch;
mod one_way;
pub mod population;
mod throttled;
pub mod transactions;
mod transfer;
pub mod video;

use std::rc::Rc;

use ackclock_core::Time;
use ackclock_tcp::{Config, DestinationMetrics};

use crate::flow::{Flow, Journal};
use crate::transport::{Transport, TransportConfig};
use crate::world::{ConnId, World, SENDER};
pub use arrivals::Arrivals;
pub use bulk::Bulk;
pub use datagrams::Datagrams;
pub use fetch::{Fetch, FetchParams, Pace};
pub use throttled::{Throttled, ThrottledParams};
pub use transactions::Transactions;
pub use transfer::Transfer;
pub use video::{Video, VideoParams};

/// Name and one line for each workload.
pub const REGISTRY: &[(&str, &str)] = &[
    ("bulk", "as much as the connection takes, until the flow stops"),
    ("transfer", "a given number of bytes, then close"),
    ("fetch", "connect, request, response, close, one after another; the client sits at the receiving end"),
    ("throttled", "a chunk of bytes at fixed intervals, as video servers write"),
    ("constant-rate", "UDP datagrams of one size at a constant rate"),
    ("on-off", "UDP datagrams at a constant rate in periods separated by silence"),
    ("voice", "a telephone call over UDP: 50 small packets per second"),
    (
        "population",
        "clients, each on its own path drawn from distributions, that fetch one after another",
    ),
    (
        "transactions",
        "clients who come and go: Poisson, periodic or given arrivals, one connection each or several at once",
    ),
    ("video", "a player at the receiving end that fetches chunks at a bitrate of its choice and plays them"),
];

/// The contract of a workload. It acts on its connections through the world, and sees of them only what an
/// application would.
pub trait Workload {
    /// The flow's start has come.
    fn start(&mut self, cx: &mut Context);

    /// The wake-up set last by [`Context::wake`] is due.
    fn wake(&mut self, cx: &mut Context);

    /// Something arrived at, or expired at, one end of a connection of this flow.
    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize);

    /// The run is over.
    fn finish(&mut self, _cx: &mut Context) {}
}

/// What a workload acts on.
pub struct Context<'a> {
    /// Network and connections.
    pub world: &'a mut World,
    /// The flow it drives.
    pub flow: &'a mut Flow,
    /// Where it leaves rows.
    pub journal: &'a mut Journal,
}

impl Context<'_> {
    /// The time.
    pub fn now(&self) -> Time {
        self.world.now()
    }

    /// Open a connection from host `initiator`, for fetch `idx` (0 if the flow has only one), and send the SYN.
    pub fn connect(&mut self, initiator: usize, idx: u32) -> ConnId {
        let config = self.flow.config.clone();
        self.open(&config, initiator, idx)
    }

    /// The same over TCP with other settings than the flow's.
    pub fn connect_with(&mut self, config: &Rc<Config>, initiator: usize, idx: u32) -> ConnId {
        self.open(&TransportConfig::Tcp(config.clone()), initiator, idx)
    }

    fn open(&mut self, config: &TransportConfig, initiator: usize, idx: u32) -> ConnId {
        let flow = &mut *self.flow;
        let conn = self.world.open(flow.id, initiator, config, flow.traced);
        self.world.notes(conn).place = flow.open.len() as u32;
        flow.open.push((conn, idx));
        let draws = config.tcp().is_some_and(|tcp| tcp.controller.needs().seed);
        if flow.controller_trace.is_some() || draws {
            let seed = self.world.seed_of(&format!("controller.{}.{idx}", flow.id));
            let trace = flow.controller_trace;
            self.world.set_up(conn, SENDER, |transport| {
                let Some(tcp) = transport.tcp_mut() else { return transport.trace_intervals() };
                tcp.seed_controller(seed);
                if let Some(interval) = trace {
                    tcp.trace_controller(interval);
                }
            });
        }
        let now = self.now();
        if let Some(ssthresh) = self.remembered().and_then(|cache| cache.ssthresh(now)) {
            self.world.act(conn, SENDER, |transport, _| {
                if let Some(tcp) = transport.tcp_mut() {
                    tcp.start_at(ssthresh);
                }
            });
        }
        self.world.act(conn, initiator, |tcp, now| tcp.connect(now));
        conn
    }

    /// What the flow's hosts remember of their destination, if they do.
    fn remembered(&mut self) -> Option<&mut DestinationMetrics> {
        let destination = self.flow.destination?;
        Some(&mut self.journal.destinations[destination as usize].1)
    }

    /// Set the flow's only wake-up; an earlier setting is void.
    pub fn wake(&mut self, at: Time) {
        self.flow.wake_at = at.max(self.now());
        self.world.wake(self.flow.id, self.flow.wake_at);
    }

    /// Note the first establishment.
    pub fn note_established(&mut self, conn: ConnId, host: usize) {
        if self.flow.established == Time::NEVER && self.world.transport(conn, host).is_established() {
            self.flow.established = self.now();
        }
    }

    /// Take a connection out of the world and keep what it left.
    pub fn retire(&mut self, conn: ConnId) {
        let at = self.world.notes(conn).place as usize;
        let (removed, idx) = self.flow.open.swap_remove(at);
        debug_assert_eq!(removed, conn);
        if let Some(&(moved, _)) = self.flow.open.get(at) {
            self.world.notes(moved).place = at as u32;
        }
        let mut ends = self.world.retire(conn);
        let now = self.now();
        if let (Some(cache), Some(tcp)) = (self.remembered(), ends[SENDER].tcp()) {
            let info = tcp.info();
            if tcp.stats().data_segments_sent > 0 {
                cache.save(now, info.cwnd, info.ssthresh, info.ca_state);
            }
        }
        self.flow.closed.add(&ends[0], &ends[1]);
        self.flow.failed |= ends.iter().any(Transport::has_failed);
        self.journal.keep(self.world.now(), self.flow.id, idx, &mut ends);
    }
}

/// Every workload of a single flow. A population is many `Fetch` flows.
#[allow(missing_docs, reason = "each variant holds the workload of its name")]
pub enum Driver {
    Bulk(Bulk),
    Transfer(Transfer),
    Fetch(Fetch),
    Throttled(Throttled),
    Datagrams(Datagrams),
    Transactions(Box<Transactions<ConnId>>),
    Video(Box<Video>),
}

macro_rules! dispatch {
    ($self:ident, $w:ident => $e:expr) => {
        match $self {
            Driver::Bulk($w) => $e,
            Driver::Transfer($w) => $e,
            Driver::Fetch($w) => $e,
            Driver::Throttled($w) => $e,
            Driver::Datagrams($w) => $e,
            Driver::Transactions($w) => $e,
            Driver::Video($w) => $e,
        }
    };
}

impl Workload for Driver {
    fn start(&mut self, cx: &mut Context) {
        dispatch!(self, w => w.start(cx))
    }
    fn wake(&mut self, cx: &mut Context) {
        dispatch!(self, w => w.wake(cx))
    }
    #[inline]
    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
        dispatch!(self, w => w.progress(cx, conn, host))
    }
    fn finish(&mut self, cx: &mut Context) {
        dispatch!(self, w => w.finish(cx))
    }
}
