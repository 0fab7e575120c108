//! Workloads: the behaviour of a flow's application. Each has its own file with its parameters, their consequences
//! for the run, and its behaviour. This file contains the two contracts and the closed sets.

mod arrivals;
mod bulk;
mod bursts;
pub mod conversation;
mod datagrams;
mod fetch;
pub mod flow;
mod media;
pub mod needs;
mod one_way;
pub mod population;
mod reader;
mod throttled;
pub mod transactions;
mod transfer;
pub mod video;
mod writes;

use std::rc::Rc;

use ackclock_core::{family, FlowId, Span, Time};
use ackclock_tcp::{Config, DestinationMetrics};

use crate::error::Error;
use crate::tables::tally::{Tally, TransactionLevel};
use crate::transport::udp::SourceParams;
use crate::transport::TransportConfig;
use crate::workload::flow::{ClientRow, Flow, Journal};
use crate::world::layout::Layout;
use crate::world::{ConnId, World, SENDER};
pub use ackclock_tcp::ReadingPace;
pub use arrivals::{Arrivals, ArrivalsConfig};
use bulk::{Bulk, BulkParams};
use bursts::{Bursts, BurstsParams};
pub use conversation::{Conversation, ConversationParams};
use datagrams::{ConstantRateParams, Datagrams, OnOffParams, VoiceParams};
pub use fetch::{Fetch, FetchParams, Pace};
use media::{Media, MediaParams};
use population::PopulationParams;
pub use reader::{ReaderParams, SlowEnd};
pub use throttled::{Throttled, ThrottledParams};
pub use transactions::{Offered, Transactions, TransactionsParams};
pub use transfer::{Transfer, TransferParams};
pub use video::{Video, VideoParams};
use writes::{Writes, WritesParams};

/// Declare the workloads: each one's parameters, and the drivers that implement them.
macro_rules! workloads {
    (params $($variant:ident($params:ident)),+; drivers $($driver:ident($state:ty)),+;) => {
        family! {
            /// Behaviour of a flow's application.
            pub enum WorkloadConfig "workloads" { $($variant($params),)+ }
        }

        impl WorkloadConfig {
            /// Workload parameters.
            pub fn params(&self) -> &dyn Params {
                match self {
                    $(WorkloadConfig::$variant(params) => params,)+
                }
            }

            /// Name in a scenario.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(WorkloadConfig::$variant(_) => $params::TABLE.kind,)+
                }
            }

            /// Kinds of workloads with flows that may use these protocols.
            pub fn carried_by(by: Carried) -> Vec<&'static str> {
                let all = [$(($params::TABLE.kind, $params::carried())),+];
                all.iter().filter(|(_, carried)| *carried == by).map(|(kind, _)| *kind).collect()
            }
        }

        impl WorkloadConfig {
            /// Kinds of workloads that QUIC can carry.
            pub fn carried_by_quic() -> Vec<&'static str> {
                let all = [$(($params::TABLE.kind, $params::over_quic())),+];
                all.iter().filter(|(_, carried)| *carried).map(|(kind, _)| *kind).collect()
            }

            /// Kinds of workloads whose data an application may read slowly.
            pub fn read_slowly() -> Vec<&'static str> {
                let all = [$(($params::TABLE.kind, $params::may_read_slowly())),+];
                all.iter().filter(|(_, may)| *may).map(|(kind, _)| *kind).collect()
            }
        }

        /// Workload state of a single flow. A population consists of many `Fetch` flows.
        #[derive(Clone)]
        #[allow(missing_docs, reason = "each variant holds the workload of its name")]
        pub enum Driver {
            $($driver($state),)+
        }

        impl Driver {
            /// Whether clients arrive and depart. The flow's stop then does not affect clients that have
            /// already arrived.
            pub fn keeps_no_stop(&self) -> bool {
                matches!(self, Driver::Fetch(_) | Driver::Transactions(_))
            }
        }

        impl Workload for Driver {
            fn start(&mut self, cx: &mut Context) {
                match self { $(Driver::$driver(w) => w.start(cx),)+ }
            }
            fn wake(&mut self, cx: &mut Context) {
                match self { $(Driver::$driver(w) => w.wake(cx),)+ }
            }
            #[inline]
            fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
                match self { $(Driver::$driver(w) => w.progress(cx, conn, host),)+ }
            }
            fn finish(&mut self, cx: &mut Context) {
                match self { $(Driver::$driver(w) => w.finish(cx),)+ }
            }
        }
    };
}

workloads! {
    params
        Bulk(BulkParams), Transfer(TransferParams), Fetch(FetchParams), Throttled(ThrottledParams),
        Population(PopulationParams), ConstantRate(ConstantRateParams), OnOff(OnOffParams), Voice(VoiceParams),
        Transactions(TransactionsParams), Video(VideoParams), Bursts(BurstsParams), Media(MediaParams), Writes(WritesParams),
        Conversation(ConversationParams);
    drivers
        Bulk(Bulk), Transfer(Transfer), Fetch(Box<Fetch>), Throttled(Box<Throttled>), Datagrams(Datagrams),
        Transactions(Box<Transactions<ConnId>>), Video(Box<Video>), Bursts(Box<Bursts>), Media(Box<Media>), Writes(Box<Writes>),
        Conversation(Box<Conversation<ConnId>>);
}

/// Contract of a workload's parameters: their consequences for a run.
pub trait Params {
    /// Protocols that can carry the flows.
    fn carried() -> Carried
    where
        Self: Sized,
    {
        Carried::ByTcp
    }

    /// Whether QUIC may also carry the flows.
    fn over_quic() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Whether an application may read the data slowly.
    fn may_read_slowly() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Datagrams of the source; `None` unless the workload consists of plain datagrams.
    fn source(&self) -> Option<SourceParams> {
        None
    }

    /// Number of flows into which each flow of the group expands.
    fn flows(&self) -> u64 {
        1
    }

    /// Whether each flow has its own path instead of one through the network.
    fn has_own_path(&self) -> bool {
        false
    }

    /// Maximum number of data packets sent by a flow in `duration`.
    fn asks(&self, duration: Span) -> Asks;

    /// Maximum number of packets on the links of a flow's own path at any time.
    fn held(&self) -> f64 {
        OWN_PATH_PACKETS
    }

    /// Maximum memory for the rows of a flow, bytes.
    fn rows(&self, _duration: Span) -> f64 {
        0.0
    }

    /// Additional memory for all flows of the group, bytes.
    fn memory(&self, _place: &Place) -> f64 {
        0.0
    }

    /// Return the driver factory for the group's flows, or the error in the scenario.
    fn lay(&self, place: &Place, transport: &TransportConfig, site: &mut Site) -> Result<Make, Error>;
}

/// Protocols that can carry a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// TCP only: the workload needs both directions.
    ByTcp,
    /// TCP or PCC: data flows one way, or requests fit into datagrams.
    ByTcpOrPcc,
    /// Plain datagrams.
    ByDatagrams,
}

/// Number of data packets a flow wants to send.
#[derive(Clone, Copy, Debug)]
pub enum Asks {
    /// The number that the bottleneck can carry.
    Everything,
    /// This number, or fewer if the bottleneck carries fewer.
    Packets(f64),
    /// This number, regardless of the capacity of the bottleneck.
    Regardless(f64),
}

impl Asks {
    /// Upper estimate of the packets for this many bytes of payload.
    pub fn bytes(bytes: u64) -> Asks {
        Asks::Packets(bytes as f64 / 1000.0 + 10.0)
    }
}

/// Driver factory for a group's flows.
pub type Make = Box<dyn Fn(&Member, &mut Site) -> Driver>;

/// Member of a group of flows.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Flow number.
    pub id: FlowId,
    /// Seed of the run.
    pub seed: u64,
    /// Start time of the flow.
    pub start: Time,
}

/// Facts about a group needed by its workload.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Bottleneck rate of the group's path, bit/s; `None` for a path without a bottleneck.
    pub bottleneck_bps: Option<u64>,
    /// Framing bytes that links add to each packet.
    pub framing_bytes: u32,
    /// Number of flows in the group.
    pub count: u32,
    /// Duration of the run.
    pub duration: Span,
    /// Group index.
    pub index: usize,
    /// Level of detail in the transaction record.
    pub transactions: TransactionLevel,
}

impl Place {
    /// Full name of a key of the group's workload, for error messages.
    pub fn key(&self, key: &str) -> String {
        format!("flows.{}.workload.{key}", self.index)
    }
}

/// State accumulated while the groups' workloads are set up.
pub struct Site<'a> {
    /// Links and paths.
    pub layout: &'a mut Layout,
    /// Population clients, with the values drawn for them.
    pub clients: &'a mut Vec<ClientRow>,
    /// Transaction tallies.
    pub tallies: &'a mut Vec<Tally>,
    /// Loads offered by groups to their bottlenecks.
    pub offered: &'a mut Offered,
}

/// Our choice: packets on the links of a flow's own path, beyond those in the queue.
pub const OWN_PATH_PACKETS: f64 = 200.0;

/// Contract of a workload's behaviour. A workload acts on its connections through the world, and sees only the
/// information available to an application.
pub trait Workload {
    /// Called when the flow starts.
    fn start(&mut self, cx: &mut Context);

    /// Called when the last wake-up set by [`Context::wake`] is due.
    fn wake(&mut self, cx: &mut Context);

    /// Called when a packet has arrived or a timer has expired at one end of a connection of this flow.
    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize);

    /// Called at the end of the run.
    fn finish(&mut self, _cx: &mut Context) {}
}

/// The world, flow and journal that a workload acts on.
pub struct Context<'a> {
    /// Network and connections.
    pub world: &'a mut World,
    /// The flow that the workload drives.
    pub flow: &'a mut Flow,
    /// Journal for the workload's rows.
    pub journal: &'a mut Journal,
}

impl Context<'_> {
    /// Current time.
    pub fn now(&self) -> Time {
        self.world.now()
    }

    /// Open a connection from host `initiator` for fetch number `idx` (0 if the flow has only one fetch), and send
    /// the SYN.
    pub fn connect(&mut self, initiator: usize, idx: u32) -> ConnId {
        let config = self.flow.config.clone();
        self.open(&config, initiator, idx)
    }

    /// Open a TCP connection with settings that differ from the flow's.
    pub fn connect_with(&mut self, config: &Rc<Config>, initiator: usize, idx: u32) -> ConnId {
        self.open(&TransportConfig::Tcp(config.clone()), initiator, idx)
    }

    fn open(&mut self, config: &TransportConfig, initiator: usize, idx: u32) -> ConnId {
        let flow = &mut *self.flow;
        let conn = self.world.open(flow.id, initiator, config, flow.traced);
        self.world.notes(conn).place = flow.open.len() as u32;
        flow.open.push((conn, idx));
        if let Some(reader) = flow.reader.clone() {
            self.world.read_slowly(conn, |host| reader.pace(host));
        }
        let flow = &mut *self.flow;
        if flow.limits {
            flow.overlaps |= flow.open.len() > 1;
            let now = self.world.now();
            self.world.set_up(conn, SENDER, |transport| {
                if let Some(tcp) = transport.tcp_mut() {
                    tcp.keep_limits(now);
                }
            });
        }
        let draws = config.tcp().is_some_and(|tcp| tcp.sending.controller.needs().seed);
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

    /// Cached metrics of the flow's destination; `None` if its hosts have no cache.
    fn remembered(&mut self) -> Option<&mut DestinationMetrics> {
        let destination = self.flow.destination?;
        Some(&mut self.journal.destinations[destination as usize].1)
    }

    /// Set the flow's only wake-up, which replaces an earlier one.
    pub fn wake(&mut self, at: Time) {
        self.flow.wake_at = at.max(self.now());
        self.world.wake(self.flow.id, self.flow.wake_at);
    }

    /// Record the time at which the flow's first connection was established.
    pub fn note_established(&mut self, conn: ConnId, host: usize) {
        if self.flow.established == Time::NEVER && self.world.transport(conn, host).is_established() {
            self.flow.established = self.now();
        }
    }

    /// Remove a connection from the world and keep its results.
    pub fn retire(&mut self, conn: ConnId) {
        let at = self.world.notes(conn).place as usize;
        let (removed, idx) = self.flow.open.swap_remove(at);
        debug_assert_eq!(removed, conn);
        if let Some(&(moved, _)) = self.flow.open.get(at) {
            self.world.notes(moved).place = at as u32;
        }
        let now = self.now();
        let [sender, receiver] = self.world.both(conn);
        if let (Some(destination), Some(tcp)) = (self.flow.destination, sender.tcp()) {
            if tcp.stats().data_segments_sent > 0 {
                let info = tcp.info();
                let (_, cache) = &mut self.journal.destinations[destination as usize];
                cache.save(now, info.cwnd, info.ssthresh, info.ca_state);
            }
        }
        if let Some(tcp) = sender.tcp_mut() {
            tcp.end_limits(now);
        }
        self.flow.closed.get_or_insert_default().add(sender, receiver);
        self.flow.failed |= sender.has_failed() || receiver.has_failed();
        self.journal.keep(now, self.flow.id, idx, sender, receiver);
        self.world.retire(conn);
    }
}
