//! Columns of the simulator's tables that the kernel can fill, columns and tables that only the kernel has, and the file
//! that stores them: the length of a JSON index, the index (table -> columns: name, type, offset, bytes), the columns
//! as raw numbers.

use std::collections::BTreeMap;
use std::io::Result;

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};
use ackclock_net::{Counters, Refused};
use ackclock_sim::report::columns::TABLES;
use ackclock_sim::report::output::{
    ACKS, DROPS, FETCHES, FLOWS, GOODPUT, LINKS, QUEUE_SAMPLES, RECOVERIES, SAMPLES,
};
use ackclock_sim::{columns, Column, Table};

use crate::acks::{AckRow, Acks, Change, What};
use crate::flows::{Fetched, PccSums, Shared, State, Sums};
use crate::info::Info;
use crate::observe::{Notes, Sample};
use crate::relay::Dropped;
use crate::trace::Growth;

/// Build the tables that come from the kernel alone; the link and transaction tables are made elsewhere.
pub fn all(shared: &Shared, notes: &Notes, drops: &[Dropped], acks: &Acks, end: u64) -> Vec<Table> {
    vec![
        flows(shared, notes, &acks.changes, end),
        fetches(shared.fetches().as_slice(), &acks.changes),
        goodput(&notes.goodput),
        queue_samples(&notes.queues),
        samples(&notes.samples),
        drop_rows(drops),
        ack_rows(&acks.rows),
        recoveries(&acks.changes),
    ]
}

// tables that only the kernel has
const _: () = assert!(!CLOCKS.is_one_of(TABLES) && !RECEIVE_BUFFERS.is_one_of(TABLES));

/// Number of state changes of one flow or connection.
#[derive(Clone, Copy, Default)]
struct Changes {
    recoveries: u64,
    /// Timeouts by the preceding state: Open (or CWR), Disorder, Recovery.
    timeouts: [u64; 3],
}

impl Changes {
    fn count<'a>(changes: impl Iterator<Item = &'a Change>) -> Changes {
        let mut counted = Changes::default();
        for change in changes {
            match (change.from, change.to) {
                (_, RECOVERY) => counted.recoveries += 1,
                (OPEN | CWR, LOSS) => counted.timeouts[0] += 1,
                (DISORDER, LOSS) => counted.timeouts[1] += 1,
                (RECOVERY, LOSS) => counted.timeouts[2] += 1,
                _ => {}
            }
        }
        counted
    }

    /// All other timeouts: those in state Loss.
    fn in_loss(&self, all: u64) -> u64 {
        all.saturating_sub(self.timeouts.iter().sum())
    }
}

const OPEN: u8 = CaState::Open as u8;
const DISORDER: u8 = CaState::Disorder as u8;
const CWR: u8 = CaState::Cwr as u8;
const RECOVERY: u8 = CaState::Recovery as u8;
const LOSS: u8 = CaState::Loss as u8;

/// Whether a change occurred before the connection was established, where a timeout is that of the SYN.
fn of_handshake(state: &State, change: &Change) -> bool {
    state.connects && state.established.is_none_or(|at| change.t < at)
}

columns! {
    fn flows(shared: &Shared, notes: &Notes, changes: &[Change], end: u64) of FLOWS
    {
        struct Row {
            completed: Option<u64>,
            established: Option<u64>,
            stop: u64,
            goodput: f64,
            failed: bool,
            sums: Sums,
            changes: Changes,
            mean_rtt: f64,
        }
        let mut rtts: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for sample in notes.samples.iter().filter(|s| s.info.srtt_us > 0) {
            let (sum, n) = rtts.entry(sample.flow).or_default();
            *sum += sample.info.srtt_us as f64 * 1e-6;
            *n += 1.0;
        }
        let rows: Vec<Row> = shared
            .flows
            .iter()
            .map(|flow| {
                let state = shared.state(flow.id);
                let stop = state.completed.map_or(flow.stop, |t| t.min(flow.stop)).min(end);
                let acked = state.acked_at_stop.unwrap_or(state.closed.acked);
                Row {
                    completed: state.completed,
                    established: state.established,
                    stop,
                    goodput: acked as f64 * 8.0 / (stop.saturating_sub(flow.start) as f64 / 1e9),
                    failed: state.failed,
                    sums: state.closed,
                    changes: Changes::count(
                        changes.iter().filter(|c| c.flow == flow.id && !of_handshake(&state, c)),
                    ),
                    mean_rtt: match state.closed.pcc {
                        Some(pcc) => pcc.mean_rtt_s,
                        None => rtts.get(&flow.id).map_or(f64::NAN, |(sum, n)| sum / n),
                    },
                }
            })
            .collect();
        let sums = || rows.iter().map(|r| &r.sums);
        let timeouts = |i: usize| rows.iter().map(move |r| r.changes.timeouts[i]);
        let completion = |(row, flow): (&Row, &crate::flows::Flow)| {
            row.completed.map_or(f64::NAN, |t| (t - flow.start) as f64 / 1e9)
        };
        let of_pcc = |s: &Sums, what: fn(&PccSums) -> f64| s.pcc.as_ref().map_or(f64::NAN, what);
        let send_rate = |(row, flow): (&Row, &crate::flows::Flow)| {
            of_pcc(&row.sums, |pcc| pcc.sent_bytes as f64) * 8.0 / ((row.stop - flow.start) as f64 / 1e9)
        };
        let min_rtt = |s: &Sums| match &s.pcc {
            Some(pcc) => pcc.min_rtt_s,
            None => s.min_rtt_us.map_or(f64::NAN, |us| us as f64 * 1e-6),
        };
        let told = |s: &Sums, us: u64| if s.connections == 0 { Span::MAX } else { Span::from_us(us) };
    }
    u4 flow = shared.flows.iter().map(|f| f.id);
    u4 group = shared.flows.iter().map(|f| f.group as u32);
    time start_s = shared.flows.iter().map(|f| Time(f.start));
    time established_s = rows.iter().map(|r| time(r.established));
    time stop_s = rows.iter().map(|r| Time(r.stop));
    f8 completion_s = rows.iter().zip(&shared.flows).map(completion);
    i8 bytes_acked = sums().map(|s| s.acked);
    f8 goodput_bps = rows.iter().map(|r| r.goodput);
    i8 sent_packets = sums().map(|s| s.data_segs_out);
    i8 retransmissions = sums().map(|s| s.retransmissions);
    i8 rtos = sums().map(|s| s.rtos);
    i8 rtos_open = timeouts(0);
    i8 rtos_disorder = timeouts(1);
    i8 rtos_recovery = timeouts(2);
    i8 rtos_loss = rows.iter().map(|r| r.changes.in_loss(r.sums.rtos));
    i8 recoveries = rows.iter().map(|r| r.changes.recoveries);
    i8 dsacks = sums().map(|s| s.dsacks);
    i8 syn_retransmissions = sums().map(|s| s.syn_retransmissions);
    i8 acks_received = sums().map(|s| s.acks_received);
    f8 mean_rtt_s = rows.iter().map(|r| r.mean_rtt);
    f8 min_rtt_s = sums().map(min_rtt);
    f8 send_rate_bps = rows.iter().zip(&shared.flows).map(send_rate);
    f8 lost_packets = sums().map(|s| of_pcc(s, |pcc| pcc.lost_packets as f64));
    f8 intervals = sums().map(|s| of_pcc(s, |pcc| pcc.intervals as f64));
    flag failed = rows.iter().map(|r| r.failed);
    span busy_s = sums().map(|s| told(s, s.busy_us));
    span rwnd_limited_s = sums().map(|s| told(s, s.rwnd_limited_us));
    span sndbuf_limited_s = sums().map(|s| told(s, s.sndbuf_limited_us));
}

columns! {
    fn fetches(fetches: &[Fetched], changes: &[Change]) of FETCHES
    {
        let mut order: Vec<&Fetched> = fetches.iter().collect();
        order.sort_by_key(|f| (f.flow, f.idx));
        let counted: Vec<Changes> = order
            .iter()
            .map(|f| {
                Changes::count(changes.iter().filter(|c| (c.flow, c.peer) == (f.flow, f.port) && c.t >= f.start))
            })
            .collect();
        let rows = || order.iter();
        let server = || order.iter().map(|f| f.server.unwrap_or_default());
        let elapsed = |start: u64, t: Option<u64>| t.map_or(f64::NAN, |t| (t - start) as f64 / 1e9);
        let rtos = |i: Info| i.total_rto as u64;
    }
    u4 flow = rows().map(|f| f.flow);
    u4 idx = rows().map(|f| f.idx);
    time start_s = rows().map(|f| Time(f.start));
    f8 connect_s = rows().map(|f| elapsed(f.start, f.connected));
    f8 first_byte_s = rows().map(|f| elapsed(f.start, f.first_byte));
    f8 total_s = rows().map(|f| elapsed(f.start, f.completed));
    i8 bytes = rows().map(|f| f.bytes);
    flag done = rows().map(|f| f.completed.is_some());
    i8 syn_retransmissions = rows().map(|f| f.syn_retransmissions as u64);
    i8 synack_retransmissions = rows().map(|f| f.synack_retransmissions as u64);
    i8 request_retransmissions = rows().map(|f| f.request_retransmissions as u64);
    i8 data_retransmissions = server().map(|i| i.total_retrans as u64);
    i8 data_rtos = server().zip(rows()).map(|(i, f)| rtos(i).saturating_sub(f.synack_retransmissions as u64));
    i8 rtos_open = counted.iter().map(|c| c.timeouts[0]);
    i8 rtos_disorder = counted.iter().map(|c| c.timeouts[1]);
    i8 rtos_recovery = counted.iter().map(|c| c.timeouts[2]);
    i8 rtos_loss = counted
        .iter()
        .zip(server().zip(rows()))
        .map(|(c, (i, f))| c.in_loss(rtos(i).saturating_sub(f.synack_retransmissions as u64)));
    i8 data_segments_sent = server().map(|i| i.data_segs_out as u64);
    i8 recoveries = counted.iter().map(|c| c.recoveries);
    i8 dsacks = server().map(|i| i.dsack_dups as u64);
    u4 cwnd_end = server().map(|i| i.cwnd);
    ssthresh ssthresh_end = server().map(|i| i.ssthresh);
}

columns! {
    /// Table `links` from the counters of the kernel's disciplines.
    pub fn links(names: &[String], counters: &[Counters]) of LINKS
    {
        let rows = || counters.iter();
    }
    u4 link = 0..counters.len() as u32;
    names name = names.to_vec();
    i8 arrivals = rows().map(|c| c.arrivals);
    i8 dropped_loss = rows().map(|c| c.dropped_loss);
    i8 dropped_queue = rows().map(|c| c.dropped_queue);
    i8 dropped_before = rows().map(|c| c.dropped_before);
    i8 delivered = rows().map(|c| c.delivered);
    i8 held = rows().map(|c| c.held);
    i8 marked = rows().map(|c| c.marked);
    i8 bytes_delivered = rows().map(|c| c.bytes_delivered);
    f8 mean_packets = rows().map(|c| c.mean_packets);
    u4 max_packets = rows().map(|c| c.max_packets);
    span busy_s = rows().map(|c| c.busy);
}

columns! {
    fn goodput(rows: &[(u64, u32, f64)]) of GOODPUT
    {
    }
    time t_s = rows.iter().map(|r| Time(r.0));
    u4 flow = rows.iter().map(|r| r.1);
    f8 goodput_bps = rows.iter().map(|r| r.2);
}

columns! {
    fn queue_samples(rows: &[(u64, u32, u32)]) of QUEUE_SAMPLES
    {
    }
    time t_s = rows.iter().map(|r| Time(r.0));
    u4 link = rows.iter().map(|r| r.1);
    u4 packets = rows.iter().map(|r| r.2);
}

columns! {
    fn samples(samples: &[Sample]) of SAMPLES
    {
        let rows = || samples.iter();
    }
    time t_s = rows().map(|r| Time(r.t));
    u4 flow = rows().map(|r| r.flow);
    u4 cwnd = rows().map(|r| r.info.cwnd);
    ssthresh ssthresh = rows().map(|r| r.info.ssthresh);
    span srtt_s = rows().map(|r| Span::from_us(r.info.srtt_us as u64));
    u4 in_flight = rows().map(|r| r.info.in_flight());
    text(&CaState::NAMES) ca_state = rows().map(|r| (r.info.ca_state as u32).min(LOSS as u32));
    i8 bytes_acked = rows().map(|r| r.bytes_acked);
    i8 retransmissions = rows().map(|r| r.retransmissions);
    i8 rwnd = rows().map(|r| u64::from(r.info.snd_wnd));
    span busy_s = rows().map(|r| Span::from_us(r.info.busy_us));
    span rwnd_limited_s = rows().map(|r| Span::from_us(r.info.rwnd_limited_us));
    span sndbuf_limited_s = rows().map(|r| Span::from_us(r.info.sndbuf_limited_us));
}

columns! {
    /// TCP_INFO counters.
    pub fn clocks(samples: &[Sample]) as CLOCKS "clocks"
    "One row per sample of the program's sender: TCP_INFO, with the times by which the kernel says what limits the sender."
    {
        let rows = || samples.iter();
    }
    time t_s ["s"] = rows().map(|r| Time(r.t)), "Time of the sample.";
    u4 ca_state = rows().map(|r| u32::from(r.info.ca_state)), "Congestion state, by number: 0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss.";
    u4 unacked ["segments"] = rows().map(|r| r.info.unacked), "Segments sent and not acknowledged.";
    u4 sacked ["segments"] = rows().map(|r| r.info.sacked), "Segments marked SACKed.";
    u4 lost ["segments"] = rows().map(|r| r.info.lost), "Segments considered lost.";
    u4 retrans ["segments"] = rows().map(|r| r.info.retrans), "Retransmissions in flight.";
    u4 cwnd ["segments"] = rows().map(|r| r.info.cwnd), "Congestion window.";
    u4 mss ["bytes"] = rows().map(|r| r.info.mss), "Payload of a full segment.";
    u4 notsent ["bytes"] = rows().map(|r| r.info.notsent), "Bytes written and not yet sent.";
    u4 snd_wnd ["bytes"] = rows().map(|r| r.info.snd_wnd), "The peer's receive window.";
    u4 srtt_us ["us"] = rows().map(|r| r.info.srtt_us), "Smoothed RTT.";
    u4 total_retrans ["segments"] = rows().map(|r| r.info.total_retrans), "Retransmissions so far.";
    i8 bytes_acked ["bytes"] = rows().map(|r| r.info.payload_acked(false)), "Payload acknowledged so far.";
    i8 bytes_sent ["bytes"] = rows().map(|r| r.info.bytes_sent), "Payload sent so far, including retransmissions.";
    i8 bytes_retrans ["bytes"] = rows().map(|r| r.info.bytes_retrans), "Payload retransmitted so far.";
    i8 busy_us ["us"] = rows().map(|r| r.info.busy_us), "Time with unsent or unacknowledged data so far.";
    i8 rwnd_limited_us ["us"] = rows().map(|r| r.info.rwnd_limited_us), "Part of `busy_us` during which the receiver's window blocked the next segment.";
    i8 sndbuf_limited_us ["us"] = rows().map(|r| r.info.sndbuf_limited_us), "Part of `busy_us` during which the send buffer was too small.";
}

columns! {
    /// Growth of receive buffers; `zero` is the monotonic time at the start of the run, ns.
    pub fn growths(growths: &[Growth], zero: u64) as RECEIVE_BUFFERS "receive_buffers"
    "One row for each time that an application has read more in one RTT than ever before (tracepoint `tcp_rcvbuf_grow`): the receiver's values before its buffer grows."
    {
        let rows = || growths.iter();
    }
    time t_s ["s"] = rows().map(|g| Time((g.us * 1000).saturating_sub(zero))), "Time of the event.";
    u4 flow = rows().map(|g| g.flow), "Number of the flow.";
    span took_s ["s"] = rows().map(|g| Span::from_us(g.took_us.into())), "Time since the last measurement.";
    span rtt_s ["s"] = rows().map(|g| Span::from_us(g.rtt_us.into())), "The receiver's estimate of the RTT.";
    i8 copied ["bytes"] = rows().map(|g| u64::from(g.copied)), "Bytes read since the last measurement.";
    i8 queued ["bytes"] = rows().map(|g| u64::from(g.queued)), "Bytes received in order but not yet read.";
    i8 space ["bytes"] = rows().map(|g| u64::from(g.space)), "Bytes read in the previous RTT.";
    i8 beyond ["bytes"] = rows().map(|g| u64::from(g.beyond)), "Bytes up to the end of the out-of-order data.";
    i8 memory ["bytes"] = rows().map(|g| u64::from(g.memory)), "Memory of the buffer.";
    u4 share ["1/256"] = rows().map(|g| g.share), "Fraction of the memory that is payload.";
    i8 offered ["bytes"] = rows().map(|g| u64::from(g.offered)), "Advertised window.";
    i8 bound ["bytes"] = rows().map(|g| u64::from(g.bound)), "Upper bound of the advertised window.";
    i8 told ["bytes"] = rows().map(|g| u64::from(g.told)), "Window of the last ACK.";
}

columns! {
    fn drop_rows(drops: &[Dropped]) of DROPS
    {
        let rows = || drops.iter();
        let reason = |d: &Dropped| match d.reason {
            Refused::Loss => 0,
            Refused::QueueFull => 1,
            Refused::Aqm => 2,
        };
    }
    time t_s = rows().map(|d| Time(d.t));
    u4 link = rows().map(|d| d.link);
    u4 flow = rows().map(|d| d.packet.flow);
    u4 seg_no = rows().map(|d| d.packet.header.ordinal().0);
    u1 rexmit = rows().map(|d| d.packet.header.ordinal().1);
    flag forward = rows().map(|d| d.packet.forward);
    u4 bytes = rows().map(|d| d.packet.bytes);
    text(&["loss", "queue", "aqm"]) reason = rows().map(reason);
}

columns! {
    fn ack_rows(acks: &[AckRow]) of ACKS
    {
        let rows = || acks.iter();
        let edge = |r: &AckRow, block: usize, end: bool| {
            r.sack.get(block).map_or(0, |&(a, b)| (if end { b } else { a }).max(0) as u64)
        };
    }
    time t_s = rows().map(|r| Time(r.t));
    i8 t_ns = rows().map(|r| r.t);
    u4 flow = rows().map(|r| r.flow);
    text(&What::NAMES) event = rows().map(|r| r.what as u32);
    u4 ack_no = rows().map(|r| r.ack_no);
    i8 seq = rows().map(|r| r.seq);
    u4 len = rows().map(|r| r.len);
    u4 seg_no = rows().map(|r| r.seg_no);
    u1 rexmit = rows().map(|r| r.rexmit);
    u1 sack_blocks = rows().map(|r| r.sack.len() as u8);
    i8 sack0_start = rows().map(|r| edge(r, 0, false));
    i8 sack0_end = rows().map(|r| edge(r, 0, true));
    i8 sack1_start = rows().map(|r| edge(r, 1, false));
    i8 sack1_end = rows().map(|r| edge(r, 1, true));
    i8 sack2_start = rows().map(|r| edge(r, 2, false));
    i8 sack2_end = rows().map(|r| edge(r, 2, true));
    flag dsack = rows().map(|r| r.dsack);
    u4 cwnd_before = rows().map(|r| r.cwnd_before);
    u4 cwnd = rows().map(|r| r.cwnd);
    ssthresh current_ssthresh ["segments"] = rows().map(|r| r.ssthresh), "ssthresh as `tcp_current_ssthresh` returns it: outside recovery at least three quarters of cwnd.";
    u4 flight_bytes_before ["bytes"] = rows().map(|r| r.flight_bytes), "SND.NXT - SND.UNA before the event.";
    u4 rwnd = rows().map(|r| r.rwnd);
    text(&CaState::NAMES) ca_state = rows().map(|r| (r.ca_state as u32).min(LOSS as u32));
    span srtt_s = rows().map(|r| Span::from_us(r.srtt_us as u64));
    u4 peer_port = rows().map(|r| r.peer as u32), "Port of the peer, which tells the connections of a flow apart.";
}

columns! {
    fn recoveries(changes: &[Change]) of RECOVERIES
    {
        let mut episodes: Vec<(Change, Option<Change>)> = Vec::new();
        for change in changes {
            if change.from == RECOVERY {
                let open = episodes
                    .iter_mut()
                    .rev()
                    .find(|(e, end)| end.is_none() && (e.flow, e.peer) == (change.flow, change.peer));
                if let Some((_, end)) = open {
                    *end = Some(*change);
                }
            }
            if change.to == RECOVERY {
                episodes.push((*change, None));
            }
        }
        let rows = || episodes.iter();
        let cause = |end: &Option<Change>| match end {
            Some(change) if change.to == LOSS => 1,
            Some(_) => 0,
            None => 2,
        };
    }
    u4 flow = rows().map(|(e, _)| e.flow);
    time t_enter_s = rows().map(|(e, _)| Time(e.t));
    time t_exit_s = rows().map(|(_, end)| time(end.map(|c| c.t)));
    text(&["full_ack", "rto", "run_end"]) cause = rows().map(|(_, end)| cause(end));
}

fn time(t: Option<u64>) -> Time {
    t.map_or(Time::NEVER, Time)
}

/// Write tables to a file.
pub fn write(path: &str, tables: &[Table]) -> Result<()> {
    std::fs::write(path, encode(tables))
}

fn encode(tables: &[Table]) -> Vec<u8> {
    let mut data = Vec::new();
    let mut index = serde_json::Map::new();
    for table in tables {
        let mut columns = Vec::new();
        for (name, column) in &table.columns {
            let from = data.len();
            let mut names = None;
            let kind = match column {
                Column::F8(v) => numbers(&mut data, v.iter().map(|x| x.to_le_bytes()), "f8"),
                Column::I8(v) => numbers(&mut data, v.iter().map(|x| x.to_le_bytes()), "i8"),
                Column::U4(v) => numbers(&mut data, v.iter().map(|x| x.to_le_bytes()), "u4"),
                Column::N4(v) => numbers(&mut data, v.iter().map(|x| x.to_le_bytes()), "n4"),
                Column::U1(v) => numbers(&mut data, v.iter().map(|x| x.to_le_bytes()), "u1"),
                Column::Bool(v) => numbers(&mut data, v.iter().map(|x| x.to_le_bytes()), "bool"),
                Column::Text { codes, names: list } => {
                    names = Some(list);
                    numbers(&mut data, codes.iter().map(|x| x.to_le_bytes()), "str")
                }
            };
            columns.push(serde_json::json!([name, kind, from, data.len() - from, names]));
        }
        index.insert(table.name.to_string(), columns.into());
    }
    let index = serde_json::Value::from(index).to_string();
    [&(index.len() as u64).to_le_bytes(), index.as_bytes(), &data].concat()
}

fn numbers<const N: usize>(
    data: &mut Vec<u8>,
    values: impl Iterator<Item = [u8; N]>,
    kind: &'static str,
) -> &'static str {
    for value in values {
        data.extend_from_slice(&value);
    }
    kind
}
