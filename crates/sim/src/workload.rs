//! Workloads: what the application of a flow does. One file each, with its parameters, what they mean for a run, and its
//! behaviour; this one holds the two contracts and the closed sets.

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
pub use arrivals::{Arrivals, ArrivalsConfig};
use bulk::{Bulk, BulkParams};
use bursts::{Bursts, BurstsParams};
pub use conversation::{Conversation, ConversationParams};
use datagrams::{ConstantRateParams, Datagrams, OnOffParams, VoiceParams};
pub use fetch::{Fetch, FetchParams, Pace};
use media::{Media, MediaParams};
use population::PopulationParams;
pub use throttled::{Throttled, ThrottledParams};
pub use transactions::{Offered, Transactions, TransactionsParams};
pub use transfer::{Transfer, TransferParams};
pub use video::{Video, VideoParams};
use writes::{Writes, WritesParams};

/// The workloads: a line for the parameters of each, and one for each behaviour.
macro_rules! workloads {
    (params $($variant:ident($params:ident)),+; drivers $($driver:ident($state:ty)),+;) => {
        family! {
            /// Behaviour of a flow's application.
            pub enum WorkloadConfig "workloads" { $($variant($params),)+ }
        }

        impl WorkloadConfig {
            /// Parameters of the workload.
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

            /// The kinds that are carried so.
            pub fn carried_by(by: Carried) -> Vec<&'static str> {
                let all = [$(($params::TABLE.kind, $params::carried())),+];
                all.iter().filter(|(_, carried)| *carried == by).map(|(kind, _)| *kind).collect()
            }
        }

        impl WorkloadConfig {
            /// The kinds that QUIC carries.
            pub fn carried_by_quic() -> Vec<&'static str> {
                let all = [$(($params::TABLE.kind, $params::over_quic())),+];
                all.iter().filter(|(_, carried)| *carried).map(|(kind, _)| *kind).collect()
            }
        }

        /// Every workload of a single flow. A population is many `Fetch` flows.
        #[derive(Clone)]
        #[allow(missing_docs, reason = "each variant holds the workload of its name")]
        pub enum Driver {
            $($driver($state),)+
        }

        impl Driver {
            /// Whether clients come and go: the stop then spares those already there.
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
    /// Protocol that must carry the flows.
    fn carried() -> Carried
    where
        Self: Sized,
    {
        Carried::ByTcp
    }

    /// Whether QUIC supports them, too.
    fn over_quic() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Datagrams that the source sends, if plain datagrams carry the workload.
    fn source(&self) -> Option<SourceParams> {
        None
    }

    /// Number of flows that each flow of the group stands for.
    fn flows(&self) -> u64 {
        1
    }

    /// Whether each flow lays a path of its own instead of the network's.
    fn has_own_path(&self) -> bool {
        false
    }

    /// Maximum number of data packets that a flow sends in `duration`.
    fn asks(&self, duration: Span) -> Asks;

    /// Maximum number of packets at a time on links of a flow's own.
    fn held(&self) -> f64 {
        OWN_PATH_PACKETS
    }

    /// Bytes of the rows that a flow leaves at most.
    fn rows(&self, _duration: Span) -> f64 {
        0.0
    }

    /// Bytes that all flows of the group need beyond that.
    fn memory(&self, _place: &Place) -> f64 {
        0.0
    }

    /// Maker of the drivers of the group's flows, or the error in the scenario.
    fn lay(&self, place: &Place, transport: &TransportConfig, site: &mut Site) -> Result<Make, Error>;
}

/// Protocols that can carry a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// TCP: the workload needs both of its directions.
    ByTcp,
    /// TCP or PCC: data flows one way, or requests are datagrams.
    ByTcpOrPcc,
    /// Plain datagrams.
    ByDatagrams,
}

/// Number of data packets that a flow sends.
#[derive(Clone, Copy, Debug)]
pub enum Asks {
    /// Everything that the bottleneck carries.
    Everything,
    /// This number, as far as the bottleneck carries it.
    Packets(f64),
    /// This number, regardless of the bottleneck.
    Regardless(f64),
}

impl Asks {
    /// Packets for this many bytes of payload.
    pub fn bytes(bytes: u64) -> Asks {
        Asks::Packets(bytes as f64 / 1000.0 + 10.0)
    }
}

/// Makes the driver of a flow.
pub type Make = Box<dyn Fn(&Member, &mut Site) -> Driver>;

/// A flow of a group.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The flow.
    pub id: FlowId,
    /// The run's seed.
    pub seed: u64,
    /// Starting time.
    pub start: Time,
}

/// Facts on the scenario that a workload needs to know about its group.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Rate of the bottleneck of the group's path, bit/s; `None` for a path without one.
    pub bottleneck_bps: Option<u64>,
    /// Bytes that links add to each packet.
    pub framing_bytes: u32,
    /// Flows of the group.
    pub count: u32,
    /// Length of the run.
    pub duration: Span,
    /// Position of the group.
    pub index: usize,
    /// Rows kept of each transaction.
    pub transactions: TransactionLevel,
}

impl Place {
    /// A key of its workload.
    pub fn key(&self, key: &str) -> String {
        format!("flows.{}.workload.{key}", self.index)
    }
}

/// State that grows as workloads are laid out.
pub struct Site<'a> {
    /// Links and ways.
    pub layout: &'a mut Layout,
    /// Clients of populations, as drawn.
    pub clients: &'a mut Vec<ClientRow>,
    /// Counters of transactions.
    pub tallies: &'a mut Vec<Tally>,
    /// Loads that groups offer to their bottlenecks.
    pub offered: &'a mut Offered,
}

/// Our choice: packets that links of a flow's own hold in addition to their queue.
pub const OWN_PATH_PACKETS: f64 = 200.0;

/// Contract of a workload. It acts on its connections through the world, and sees only what an application
/// would see.
pub trait Workload {
    /// The flow starts.
    fn start(&mut self, cx: &mut Context);

    /// The wake-up set last by [`Context::wake`] is due.
    fn wake(&mut self, cx: &mut Context);

    /// Something arrived at, or expired at, one end of a connection of this flow.
    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize);

    /// End of the run.
    fn finish(&mut self, _cx: &mut Context) {}
}

/// World, flow and journal that a workload acts on.
pub struct Context<'a> {
    /// Network and connections.
    pub world: &'a mut World,
    /// The flow it drives.
    pub flow: &'a mut Flow,
    /// Destination of its rows.
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

    /// Open a connection over TCP with other settings than the flow's.
    pub fn connect_with(&mut self, config: &Rc<Config>, initiator: usize, idx: u32) -> ConnId {
        self.open(&TransportConfig::Tcp(config.clone()), initiator, idx)
    }

    fn open(&mut self, config: &TransportConfig, initiator: usize, idx: u32) -> ConnId {
        let flow = &mut *self.flow;
        let conn = self.world.open(flow.id, initiator, config, flow.traced);
        self.world.notes(conn).place = flow.open.len() as u32;
        flow.open.push((conn, idx));
        if flow.limits {
            flow.overlaps |= flow.open.len() > 1;
            let now = self.world.now();
            self.world.set_up(conn, SENDER, |transport| {
                if let Some(tcp) = transport.tcp_mut() {
                    tcp.keep_limits(now);
                }
            });
        }
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

    /// Cached metrics of the flow's destination, if its hosts keep them.
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

    /// Take a connection out of the world and keep its results.
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
