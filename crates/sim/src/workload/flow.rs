//! A flow of the run: its open connections, the sums over its closed ones, and its milestones.

use std::rc::Rc;

use ackclock_core::trace::RecoverySummary;
use ackclock_core::{FlowId, Span, Time};
use ackclock_pcc::IntervalRow;
use ackclock_tcp::{
    Connection, DestinationMetrics, Held, Hold, Record, SlowStartExit, Stats, Times, VarsTrace,
};
use smallvec::SmallVec;

use crate::tables::tally::TransactionLog;
use crate::transport::udp::Received;
use crate::transport::{DatagramEnd, Transport, TransportConfig};
use crate::workload::video::ChunkRow;
use crate::workload::ReaderParams;
use crate::world::{ConnId, World, RECEIVER, SENDER};

/// A flow.
#[derive(Clone)]
pub struct Flow {
    /// Flow number.
    pub id: FlowId,
    /// Flow group.
    pub group: u32,
    /// Transport, with the settings of both hosts.
    pub config: TransportConfig,
    /// Journal index of the destination cache of the flow's hosts; `None` without a cache.
    pub destination: Option<u32>,
    /// Slow reader at the connection's ends; `None`: data is read immediately.
    pub reader: Option<Rc<ReaderParams>>,
    /// Whether the sender records a trace.
    pub traced: bool,
    /// Whether limiting causes are recorded.
    pub limits: bool,
    /// Whether several connections were open at the same time.
    pub overlaps: bool,
    /// Minimum time between two rows of controller variables; `None` if they are not recorded.
    pub controller_trace: Option<Span>,
    /// Start time.
    pub start: Time,
    /// Whether the flow has started.
    pub started: bool,
    /// Time at which the application stops: the completion of a transfer, and at the latest the end of the run.
    pub stop: Time,
    /// Time at which the first connection was established at the end that opened it; `NEVER` before that.
    pub established: Time,
    /// Time at which all data had been acknowledged, or the last response was complete; `NEVER` before that.
    pub completed: Time,
    /// Whether a connection has failed.
    pub failed: bool,
    /// Bytes acknowledged at `stop`; `None` if the flow did not stop within the run.
    pub acked_at_stop: Option<u64>,
    /// Open connections, each with its fetch number, or 0.
    pub open: SmallVec<[(ConnId, u32); 2]>,
    /// Sums over closed connections; `None` before the first one closes.
    pub closed: Option<Box<Sums>>,
    /// Time of the pending wake-up. Wake-ups at other times have been replaced and are ignored.
    pub wake_at: Time,
}

impl Flow {
    /// Return a flow that has not started.
    pub fn new(id: FlowId, group: u32, config: TransportConfig, start: Time, stop: Time) -> Flow {
        Flow {
            id,
            group,
            config,
            destination: None,
            reader: None,
            traced: false,
            limits: false,
            overlaps: false,
            controller_trace: None,
            start,
            started: false,
            stop,
            established: Time::NEVER,
            completed: Time::NEVER,
            failed: false,
            acked_at_stop: None,
            open: SmallVec::new(),
            closed: None,
            wake_at: start,
        }
    }

    /// Sums over closed connections.
    pub fn sums(&self) -> &Sums {
        static NONE: Sums = Sums::NONE;
        self.closed.as_deref().unwrap_or(&NONE)
    }

    /// Time by limiting cause, and times as measured by the kernel, over all connections; the rest of the flow's
    /// lifetime counts as idle. `None` if the record is off, the flow is not TCP, or several connections were open at
    /// once.
    pub fn held(&self, world: &World, now: Time) -> Option<(Held, Times)> {
        let tcp = self.config.tcp().is_some();
        if !self.limits || self.overlaps || !tcp || !self.started {
            return None;
        }
        let mut sum = self.sums().held.as_deref().copied().unwrap_or_default();
        for &(conn, _) in &self.open {
            if let Some(held) = world.transport(conn, SENDER).tcp().and_then(|tcp| tcp.held(now)) {
                add(&mut sum, &held);
            }
        }
        Some(whole(sum, now.min(self.stop).since(self.start)))
    }

    /// A finished flow's time by limiting cause.
    pub fn held_in_all(&self) -> Option<(Held, Times)> {
        let tcp = self.config.tcp().is_some();
        if !(self.limits && !self.overlaps && tcp && self.started) {
            return None;
        }
        let sum = self.sums().held.as_deref().copied().unwrap_or_default();
        Some(whole(sum, self.stop.since(self.start)))
    }

    /// Bytes acknowledged so far, or received if the transport has no acknowledgements.
    pub fn acked(&self, world: &World) -> u64 {
        self.sums().acked + self.open.iter().map(|&(conn, _)| world.delivered(conn)).sum::<u64>()
    }

    /// Bytes that have arrived at the receiving host so far, including those after a gap.
    pub fn arrived(&self, world: &World) -> u64 {
        let open = self.open.iter().map(|&(conn, _)| world.transport(conn, RECEIVER).arrived());
        self.sums().acked + open.sum::<u64>()
    }

    /// Retransmissions by the sending host so far.
    pub fn retransmissions(&self, world: &World) -> u64 {
        let open = self.open.iter().map(|&(conn, _)| world.transport(conn, SENDER).sent().1);
        self.sums().retransmissions + open.sum::<u64>()
    }
}

fn add(sum: &mut (Held, Times), more: &(Held, Times)) {
    sum.0.iter_mut().zip(more.0).for_each(|(sum, more)| *sum = *sum + more);
    sum.1.busy = sum.1.busy + more.1.busy;
    sum.1.rwnd_limited = sum.1.rwnd_limited + more.1.rwnd_limited;
    sum.1.sndbuf_limited = sum.1.sndbuf_limited + more.1.sndbuf_limited;
}

/// Count the rest of the flow's lifetime as idle: the time between connections and after the last byte.
fn whole((mut held, times): (Held, Times), life: Span) -> (Held, Times) {
    let idle = Hold::Idle as usize;
    let others = held.iter().enumerate().filter(|(n, _)| *n != idle).map(|(_, span)| span.0).sum();
    held[idle] = life.saturating_sub(Span(others));
    (held, times)
}

/// Sums over connections: counters of the sending host, and SYN retransmissions of both.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "columns of table `flows`, by name")]
pub struct Sums {
    pub acked: u64,
    pub sent_packets: u64,
    pub retransmissions: u64,
    pub rtos: u64,
    pub rtos_open: u64,
    pub rtos_disorder: u64,
    pub rtos_recovery: u64,
    pub rtos_loss: u64,
    pub tlps: u64,
    pub recoveries: u64,
    pub lost_retransmits: u64,
    pub undos: u64,
    pub spurious_rtos: u64,
    pub dsacks: u64,
    pub syn_retransmissions: u64,
    pub acks_received: u64,
    pub rtt_sum_ns: u128,
    pub rtt_samples: u64,
    pub min_rtt: Span,
    /// End of the first slow start, from the first connection in which one ended.
    pub slow_start: Option<SlowStartExit>,
    /// PCC and external stacks: bytes sent, including retransmissions; packets declared lost; monitor intervals (PCC
    /// only).
    pub sent_bytes: u64,
    pub lost_packets: u64,
    pub intervals: u64,
    pub failed: bool,
    /// Reason why a connection failed, if the stack reports one; otherwise 0.
    pub failure: u32,
    /// Time by limiting cause; `None` unless recorded.
    pub held: Option<Box<(Held, Times)>>,
}

impl Default for Sums {
    fn default() -> Sums {
        Sums::NONE
    }
}

impl Sums {
    /// Sums over no connections.
    const NONE: Sums = Sums {
        acked: 0,
        sent_packets: 0,
        retransmissions: 0,
        rtos: 0,
        rtos_open: 0,
        rtos_disorder: 0,
        rtos_recovery: 0,
        rtos_loss: 0,
        tlps: 0,
        recoveries: 0,
        lost_retransmits: 0,
        undos: 0,
        spurious_rtos: 0,
        dsacks: 0,
        syn_retransmissions: 0,
        acks_received: 0,
        rtt_sum_ns: 0,
        rtt_samples: 0,
        min_rtt: Span::MAX,
        slow_start: None,
        sent_bytes: 0,
        lost_packets: 0,
        intervals: 0,
        failed: false,
        failure: 0,
        held: None,
    };

    /// Add the counters of a connection.
    pub fn add(&mut self, sender: &Transport, receiver: &Transport) {
        match (sender, receiver) {
            (Transport::Tcp(sender), Transport::Tcp(receiver)) => self.add_tcp(sender, receiver),
            _ => {
                self.acked += Transport::delivered([sender, receiver]);
                let (packets, retransmissions) = sender.sent();
                self.sent_packets += packets;
                self.retransmissions += retransmissions;
                if let Some(DatagramEnd::PccSender(sender)) = sender.datagram() {
                    self.add_pcc(sender);
                }
                if let [Some(DatagramEnd::Foreign(sender)), Some(DatagramEnd::Foreign(receiver))] =
                    [sender.datagram(), receiver.datagram()]
                {
                    self.add_foreign(&sender.stats());
                    if let (Some(one), Some(other)) = (sender.accounts(), receiver.accounts()) {
                        sender.hold_against(&other);
                        receiver.hold_against(&one);
                    }
                    // the end that detected the failure knows a more specific reason than its peer
                    let reasons = [receiver.failure(), sender.failure()];
                    self.failure = reasons
                        .into_iter()
                        .flatten()
                        .map(|reason| reason as u32)
                        .min()
                        .unwrap_or(self.failure);
                }
                self.failed |= sender.has_failed() || receiver.has_failed();
            }
        }
    }

    fn add_pcc(&mut self, sender: &ackclock_pcc::Sender) {
        let stats = sender.stats();
        self.sent_bytes += stats.sent_bytes;
        self.lost_packets += stats.lost;
        self.intervals += stats.intervals;
        self.acks_received += stats.reports;
        // PCC has no other congestion state.
        (self.rtos, self.rtos_open) = (self.rtos + stats.timeouts, self.rtos_open + stats.timeouts);
        self.rtt_sum_ns += stats.rtt_sum_ns;
        self.rtt_samples += stats.rtt_samples;
        self.min_rtt = self.min_rtt.min(stats.min_rtt);
    }

    fn add_foreign(&mut self, stats: &ackclock_core::foreign::Stats) {
        self.sent_bytes += stats.sent_bytes;
        self.lost_packets += stats.lost;
        self.recoveries += stats.reductions;
        self.acks_received += stats.acks;
        self.rtt_sum_ns += stats.rtt_sum_ns;
        self.rtt_samples += stats.rtt_samples;
        self.min_rtt = self.min_rtt.min(stats.min_rtt);
    }

    fn add_tcp(&mut self, sender: &Connection, receiver: &Connection) {
        let stats = sender.stats();
        if let Some(held) = sender.held(Time::ZERO) {
            add(self.held.get_or_insert_default(), &held); // the stopwatch has stopped
        }
        self.acked += sender.acked();
        self.sent_packets += stats.data_segments_sent;
        self.retransmissions += stats.retransmissions;
        self.rtos += u64::from(stats.rtos);
        self.rtos_open += u64::from(stats.rtos_open);
        self.rtos_disorder += u64::from(stats.rtos_disorder);
        self.rtos_recovery += u64::from(stats.rtos_recovery);
        self.rtos_loss += u64::from(stats.rtos_loss);
        self.tlps += u64::from(stats.tlps);
        self.recoveries += u64::from(stats.recoveries);
        self.lost_retransmits += u64::from(stats.lost_retransmits);
        self.undos += u64::from(stats.undos);
        self.spurious_rtos += u64::from(stats.spurious_rtos);
        self.dsacks += u64::from(stats.dsacks_received);
        self.syn_retransmissions += sender.syn_retransmissions() + receiver.syn_retransmissions();
        self.acks_received += stats.acks_received;
        self.rtt_sum_ns += u128::from(stats.rtt_sum_ns);
        self.rtt_samples += stats.rtt_samples;
        if stats.rtt_samples > 0 {
            self.min_rtt = self.min_rtt.min(sender.min_rtt());
        }
        self.slow_start = self.slow_start.or(stats.slow_start);
        self.failed |= sender.has_failed() || receiver.has_failed();
    }
}

/// Fetch row.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "columns of table `fetches`, by name")]
pub struct FetchRow {
    pub flow: FlowId,
    pub idx: u32,
    pub start: Time,
    pub connected: Time,
    pub first_byte: Time,
    pub completed: Time,
    pub bytes: u64,
    pub counts: FetchCounts,
}

/// Counters of a fetch, read when the client's FIN reaches the server or, if earlier, at the end of the connection.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "columns of table `fetches`, by name")]
pub struct FetchCounts {
    pub syn_retransmissions: u64,
    pub synack_retransmissions: u64,
    pub request_retransmissions: u64,
    pub server: Stats,
    pub cwnd_end: u32,
    pub ssthresh_end: u32,
}

impl FetchCounts {
    /// Read the counters. `request` is the number of request retransmissions, if it was recorded when the response
    /// was complete.
    pub fn read(world: &World, conn: ConnId, request: Option<u64>) -> FetchCounts {
        let ends = [SENDER, RECEIVER].map(|host| world.transport(conn, host));
        let [Some(server), Some(client)] = ends.map(Transport::tcp) else {
            let (data_segments_sent, retransmissions) = ends[SENDER].sent();
            return FetchCounts {
                request_retransmissions: request.unwrap_or(ends[RECEIVER].sent().1),
                server: Stats { data_segments_sent, retransmissions, ..Stats::default() },
                ..FetchCounts::default()
            };
        };
        let info = server.info();
        FetchCounts {
            syn_retransmissions: client.syn_retransmissions(),
            synack_retransmissions: server.syn_retransmissions(),
            request_retransmissions: request.unwrap_or(client.stats().retransmissions),
            server: server.stats().clone(),
            cwnd_end: info.cwnd,
            ssthresh_end: info.ssthresh,
        }
    }
}

/// A client of a population, with the values drawn for it.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "columns of table `clients`, by name")]
pub struct ClientRow {
    pub flow: FlowId,
    pub rtt: Span,
    pub rate_bps: u64,
    pub loss: f64,
    pub bytes: u64,
}

/// Records written by flows during the run.
#[derive(Clone, Default)]
pub struct Journal {
    /// Names and contents of the destination caches.
    pub destinations: Vec<(String, DestinationMetrics)>,
    /// Fetches, in order of their start.
    pub fetches: Vec<FetchRow>,
    /// Traces of closed connections, each with its fetch number.
    pub records: Vec<(u32, Vec<Record>)>,
    /// Controller variables of closed connections, each with its flow and fetch number.
    pub vars: Vec<(FlowId, u32, VarsTrace)>,
    /// Chunks of players, in the order in which they were requested.
    pub chunks: Vec<ChunkRow>,
    /// Recovery episodes of closed connections, each with its fetch number.
    pub recoveries: Vec<(u32, Vec<RecoverySummary>)>,
    /// Transactions and conversations.
    pub transactions: TransactionLog,
    /// Rows of plain datagram flows.
    pub datagrams: Vec<DatagramRow>,
    /// PCC's monitor intervals, by flow.
    pub intervals: Vec<(FlowId, Vec<IntervalRow>)>,
}

/// Counters of a plain datagram flow.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "columns of table `datagrams`, by name")]
pub struct DatagramRow {
    pub flow: FlowId,
    pub sent: u64,
    pub received: Received,
}

impl Journal {
    /// Store the records of a closed connection.
    pub fn keep(&mut self, now: Time, flow: FlowId, idx: u32, sender: &mut Transport, receiver: &Transport) {
        if let Some(sender) = sender.tcp_mut() {
            sender.finish(now);
            let records = sender.take_records();
            if !records.is_empty() {
                self.records.push((idx, records));
            }
            if let Some(vars) = sender.take_controller_trace() {
                self.vars.push((flow, idx, *vars));
            }
            let recoveries = sender.take_recoveries();
            if !recoveries.is_empty() {
                self.recoveries.push((idx, recoveries));
            }
        }
        let rows = sender.take_rows(flow);
        if !rows.is_empty() {
            self.records.push((idx, rows));
        }
        if let Some(rows) = sender.take_intervals().filter(|rows| !rows.is_empty()) {
            self.intervals.push((flow, rows));
        }
        let ends = [sender.datagram(), receiver.datagram()];
        if let [Some(DatagramEnd::Source(source)), Some(DatagramEnd::Sink(sink))] = ends {
            let row = DatagramRow { flow, sent: source.sent(), received: sink.received().clone() };
            self.datagrams.push(row);
        }
    }
}
