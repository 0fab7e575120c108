//! The tables of a run: name, unit, value and meaning of each column. Times are in seconds from the start of the run,
//! windows in segments, sizes in bytes. NaN means that an event did not occur.
//!
//! Length: a list of columns; a table is looked up here, not read through.

use std::borrow::Borrow;

use ackclock_cc::Window;
use ackclock_core::packet::Class;
use ackclock_core::trace::{Branch, CaState, Event, ExitCause, RecoverySummary};
use ackclock_core::{FlowId, Span, Time};
use ackclock_net::{Counters, Refused};
use ackclock_pcc::IntervalRow;
use ackclock_tcp::{
    DestinationMetrics, Held, Hold, Record, SlowStartEnd, SlowStartExit, Times, VarsRow, VarsTrace,
};

use crate::memory;
use crate::report::observe::Observer;
use crate::report::performance::performance;
use crate::tables::columns::columns;
use crate::tables::samples::{GoodputRow, LimitRow, QueueRow, SampleRow};
use crate::tables::table::{seconds, Table};
use crate::tables::tally::{MessageRow, Tally, TransactionRow};
use crate::transport::udp::Received;
use crate::workload::flow::{ClientRow, DatagramRow, FetchRow, Flow, Journal, Sums};
use crate::workload::video::chunks;
use crate::world::{Dropped, World};

/// Minimum number of flows for which freed memory is returned to the system before the tables are built. With fewer
/// flows, the columns fit into the memory of closed connections.
const CROWD: usize = 10_000;

/// A finished run, from which the tables are built.
pub(crate) struct Ended {
    /// Network and connections.
    pub world: World,
    /// Flows, by number.
    pub flows: Vec<Flow>,
    /// Records written by the flows.
    pub journal: Journal,
    /// Samples taken at intervals.
    pub observer: Observer,
    /// Population clients, with the values drawn for them.
    pub clients: Vec<ClientRow>,
}

/// Build the requested tables, in a fixed order. Most runs of a sweep need few tables, and even empty ones take time.
/// `traced`: columns of table `acks` to build; all if empty.
pub(crate) fn tables(
    mut ended: Ended,
    wanted: impl Fn(&str) -> bool,
    traced: &'static [&'static str],
) -> Vec<Table> {
    let journal = &mut ended.journal;
    journal.fetches.sort_by_key(|f| (f.flow, f.idx));
    journal.transactions.rows.sort_by_key(|t| (t.flow, t.idx));
    journal.vars.sort_by_key(|(flow, idx, _)| (*flow, *idx));
    journal.records.sort_by_key(|(idx, records)| (records[0].event.flow, *idx));
    // with `fq`, a segment may be sent after later events of its sender
    for (_, records) in
        journal.records.iter_mut().filter(|(_, records)| !records.is_sorted_by_key(|r| r.event.t))
    {
        records.sort_by_key(|r| r.event.t);
    }
    let observer = &ended.observer;
    let drops = ended.world.take_drops();
    // links first, so that other tables may use the memory freed by counters and names
    let counted = wanted("links").then(|| (ended.world.link_counters(), ended.world.link_names()));
    ended.world.forget_links();
    let mut of_links = counted.map(|(counters, names)| links(&counters, names));
    if ended.flows.len() >= CROWD {
        memory::give_back(); // columns do not fit into the heap gaps that closed connections leave
    }
    let mut found = Vec::new();
    macro_rules! keep {
        ($($name:literal: $table:expr,)*) => { $(if wanted($name) { found.push($table); })* };
    }
    keep! {
        "flows": flows(&ended.flows, &ended.world),
        "performance": performance(&ended.flows, observer.meter.as_ref(), ended.world.gauges()),
        "fetches": fetches(&journal.fetches),
        "recoveries": recoveries(&journal.recoveries),
        "links": of_links.take().expect("invariant: asked for once"),
        "hosts": hosts(&mut ended.world),
        "destinations": destinations(&journal.destinations),
        "goodput": goodput(&observer.goodput),
        "queue_samples": queue_samples(&observer.queues),
        "samples": samples(&observer.samples),
        "limits": limits(&observer.limits),
        "drops": drop_rows(&drops),
        "acks": acks(&journal.records, traced),
        "clients": clients(&ended.clients),
        "controllers": controllers(&ended.flows, &journal.vars),
        "datagrams": datagrams(&mut journal.datagrams),
        "intervals": intervals(&mut journal.intervals),
        "chunks": chunks(&mut journal.chunks),
        "transactions": transactions(&journal.transactions.rows),
        "transaction_summary": transaction_summary(&journal.transactions.tallies),
        "transaction_times": transaction_times(&journal.transactions.tallies),
        "conversations": conversations(&journal.transactions.messages),
    }
    found
}

/// Failure names, by number.
const FAILURES: &[&str] = &ackclock_core::foreign::Failure::NAMES;

columns! {
    fn flows(flows: &[Flow], world: &World) as FLOWS "flows"
    "One row per flow, in every run. Counts cover the whole run including the warm-up (table `performance` covers the time after it), and are taken at the host that sends the data."
    {
        let rows = || flows.iter();
        let sums = || flows.iter().map(Flow::sums);
        let goodput = |f: &Flow| {
            let acked = f.acked_at_stop.unwrap_or(f.sums().acked);
            acked as f64 * 8.0 / f.stop.since(f.start).as_secs()
        };
        let elapsed = |f: &Flow, t: Time| if t == Time::NEVER { f64::NAN } else { t.since(f.start).as_secs() };
        let mean_rtt = |sum: u128, n: u64| if n == 0 { f64::NAN } else { sum as f64 / n as f64 * 1e-9 };
        let of_start = |s: &Sums, of: fn(SlowStartExit) -> f64| s.slow_start.map_or(f64::NAN, of);
        // counters that only some transports have
        let of_stack = |f: &Flow, n: u64| if f.config.is_pcc() || f.config.is_foreign() { n as f64 } else { f64::NAN };
        let of_pcc = |f: &Flow, n: u64| if f.config.is_pcc() { n as f64 } else { f64::NAN };
        let send_rate = |f: &Flow| of_stack(f, f.sums().sent_bytes) * 8.0 / f.stop.since(f.start).as_secs();
        let held: Vec<Option<(Held, Times)>> = rows().map(Flow::held_in_all).collect();
        let told = |of: fn(&Times) -> Span| held.iter().map(move |h| h.as_ref().map_or(Span::MAX, |h| of(&h.1)));
        let by = |hold: Hold| held.iter().map(move |h| h.as_ref().map_or(Span::MAX, |h| h.0[hold as usize]));
    }
    u4 flow = rows().map(|f| f.id), "Number of the flow, from 0, group after group.";
    u4 group = rows().map(|f| f.group), "Number of the flow's group in the scenario, from 0.";
    time start_s ["s"] = rows().map(|f| f.start), "Time when the flow starts.";
    time established_s ["s"] = rows().map(|f| f.established),
        "Time when the end that opened the flow's first connection completed the handshake.", or "no handshake was completed, or the transport has none";
    time stop_s ["s"] = rows().map(|f| f.stop),
        "Time when the application stops: at the scenario's `stop`, when the flow is complete, or at the end of the run, whichever comes first.";
    f8 completion_s ["s"] = rows().map(|f| elapsed(f, f.completed)),
        "Time from the start of the flow to its completion: all its data and the FIN were acknowledged to the sending host, or the client had received the last response.", or "it did not complete";
    i8 bytes_acked ["bytes"] = sums().map(|s| s.acked), "Payload acknowledged to the sending host. Without acknowledgments (UDP): payload received.";
    f8 goodput_bps ["bit/s"] = rows().map(goodput),
        "Payload acknowledged until `stop_s`, or all of it if the flow is complete, divided by the time from `start_s` to `stop_s`.", or "the flow did not run";
    i8 sent_packets ["packets"] = sums().map(|s| s.sent_packets), "Segments or datagrams with data that were sent, including retransmissions; for QUIC, all packets.";
    i8 retransmissions ["packets"] = sums().map(|s| s.retransmissions), "Retransmissions among `sent_packets`; for QUIC, packets considered lost, whose data is retransmitted.";
    i8 rtos = sums().map(|s| s.rtos), "Retransmission timeouts of data: the sum of the next four columns.";
    i8 rtos_open = sums().map(|s| s.rtos_open), "Timeouts in state Open; for PCC, all timeouts.";
    i8 rtos_disorder = sums().map(|s| s.rtos_disorder), "Timeouts in state Disorder.";
    i8 rtos_recovery = sums().map(|s| s.rtos_recovery), "Timeouts in state Recovery.";
    i8 rtos_loss = sums().map(|s| s.rtos_loss), "Timeouts in state Loss, that is, repeated timeouts.";
    i8 tlps = sums().map(|s| s.tlps), "Tail loss probes (RFC 8985 §7).";
    i8 recoveries = sums().map(|s| s.recoveries), "Episodes of fast recovery; for QUIC, reductions of the window.";
    i8 lost_retransmits ["segments"] = sums().map(|s| s.lost_retransmits), "Retransmissions that the sender marked lost.";
    i8 undos = sums().map(|s| s.undos), "Window reductions that the sender undid.";
    i8 spurious_rtos = sums().map(|s| s.spurious_rtos), "Timeouts that proved spurious (F-RTO, RFC 5682).";
    i8 dsacks = sums().map(|s| s.dsacks), "ACKs with a DSACK (RFC 2883) that the sender received.";
    i8 syn_retransmissions = sums().map(|s| s.syn_retransmissions), "Retransmissions of SYN and SYN-ACK by either end.";
    i8 acks_received = sums().map(|s| s.acks_received), "ACKs that the sender received; for PCC, reports; for QUIC, ACK frames.";
    f8 mean_rtt_s ["s"] = sums().map(|s| mean_rtt(s.rtt_sum_ns, s.rtt_samples)), "Mean of all RTT samples.", or "there was no sample";
    span min_rtt_s ["s"] = sums().map(|s| s.min_rtt), "Minimum of all RTT samples.", or "there was no sample";
    f8 slow_start_end_s ["s"] = sums().map(|s| of_start(s, |exit| exit.at.as_secs())),
        "Time when the flow's first slow start ended.", or "slow start did not end, or the transport has none";
    text(&SlowStartEnd::NAMES) slow_start_by = sums().map(|s| s.slow_start.map_or(0, |exit| exit.by as u32)),
        "Reason why the first slow start ended: \"rule\" (the slow-start algorithm ended it), \"loss\", \"mark\", \"timeout\", \"threshold\" (cwnd reached an ssthresh that was set before, or the controller set one); empty if it did not end.";
    f8 slow_start_cwnd ["segments"] = sums().map(|s| of_start(s, |exit| f64::from(exit.cwnd))),
        "cwnd at the end of slow start, before any reduction.", or "slow start did not end";
    f8 slow_start_ssthresh ["segments"] = sums().map(|s| of_start(s, |exit| f64::from(exit.ssthresh))),
        "ssthresh after slow start.", or "slow start did not end";
    f8 slow_start_lost ["segments"] = sums().map(|s| of_start(s, |exit| exit.lost as f64)),
        "Segments marked lost within two round trips after slow start.", or "slow start did not end";
    f8 send_rate_bps ["bit/s"] = rows().map(send_rate),
        "PCC: rate of the payload sent from `start_s` to `stop_s`, including retransmissions; QUIC: rate of the UDP payload.", or "the flow is TCP or plain datagrams";
    f8 lost_packets ["packets"] = rows().map(|f| of_stack(f, f.sums().lost_packets)),
        "PCC and QUIC: datagrams that the sender considered lost.", or "the flow is TCP or plain datagrams";
    f8 intervals = rows().map(|f| of_pcc(f, f.sums().intervals)), "PCC: number of monitor intervals.", or "the flow is not PCC";
    flag failed = rows().map(|f| f.failed), "Whether a connection gave up.";
    text(FAILURES) failure = sums().map(|s| s.failure),
        "QUIC: reason why a connection gave up: \"idle timeout\", \"too many gaps\" (the receiving stack closes the connection when the data that has arrived has 1,024 gaps), \"error of the stack\", \"closed by the peer\", \"refused\"; empty if no connection failed, or the transport reports no reason.";
    f8 departure_cv = rows().map(|f| world.departures(f.id).variation()),
        "Coefficient of variation of the times between departures of data packets from the host; 0 means evenly spaced.", or "there were fewer than two such times, or all packets left at once";
    u4 largest_burst ["packets"] = rows().map(|f| world.departures(f.id).largest_burst()),
        "Maximum number of packets sent back to back: each was sent before the first link had finished transmitting the previous one.";
    span busy_s ["s"] = told(|t| t.busy), "Time with unsent or unacknowledged data, counted in timer ticks of the host like the kernel's `tcpi_busy_time`.",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
    span rwnd_limited_s ["s"] = told(|t| t.rwnd_limited), "Part of `busy_s` during which the receiver's window blocked the next segment (`tcpi_rwnd_limited`).",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
    span sndbuf_limited_s ["s"] = told(|t| t.sndbuf_limited), "Part of `busy_s` during which the send buffer was too small (`tcpi_sndbuf_limited`).",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
    span limit_handshake_s ["s"] = by(Hold::Handshake),
        "Time before the first connection was established. The nine `limit_` columns add up to the time from `start_s` to `stop_s`.",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
    span limit_application_s ["s"] = by(Hold::Application),
        "Time during which data was outstanding and the application had written no further data.",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
    span limit_rwnd_s ["s"] = by(Hold::Receiver),
        "Time during which the receiver's window limited the sender.",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
    span limit_sndbuf_s ["s"] = by(Hold::SendBuffer),
        "Time during which the application had more data, but the send buffer or the host's queue was full.",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
    span limit_cwnd_s ["s"] = by(Hold::Window),
        "Time during which cwnd limited the sender.",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
    span limit_pacing_s ["s"] = by(Hold::Pacing),
        "Time during which the next segment waited for its departure time.",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
    span limit_recovery_s ["s"] = by(Hold::Recovery),
        "Time during which losses were being repaired (states Recovery and Loss).",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
    span limit_timeout_s ["s"] = by(Hold::Timeout),
        "Time during which the sender waited for a retransmission timer that then expired, counted from the last ACK or transmission.",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
    span limit_idle_s ["s"] = by(Hold::Idle),
        "Time during which all data was acknowledged and there was nothing to send.",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
}

columns! {
    fn fetches(fetches: &[FetchRow]) as FETCHES "fetches"
    "One row per fetch, burst or video frame, with the workloads `fetch`, `population`, `bursts` and `media`. Retransmissions and timeouts are counted until the client's FIN reaches the server."
    {
        let rows = || fetches.iter();
        let counts = || fetches.iter().map(|f| &f.counts);
        let stats = || fetches.iter().map(|f| &f.counts.server);
        let elapsed = |f: &FetchRow, t: Time| if t == Time::NEVER { f64::NAN } else { (t - f.start).as_secs() };
    }
    u4 flow = rows().map(|f| f.flow), "Number of the flow.";
    u4 idx = rows().map(|f| f.idx), "Number of the fetch, burst or frame within the flow, from 0.";
    time start_s ["s"] = rows().map(|f| f.start), "Time when the fetch or burst began, or the frame was generated.";
    f8 connect_s ["s"] = rows().map(|f| elapsed(f, f.connected)),
        "Time from the start until the client completed the handshake.", or "the handshake was not completed, or an existing connection was used";
    f8 first_byte_s ["s"] = rows().map(|f| elapsed(f, f.first_byte)), "Time from the start to the first byte of the response.", or "none arrived";
    f8 total_s ["s"] = rows().map(|f| elapsed(f, f.completed)), "Time from the start to the last byte of the response.", or "it did not arrive";
    i8 bytes ["bytes"] = rows().map(|f| f.bytes), "Size of the response.";
    flag done = rows().map(|f| f.completed != Time::NEVER), "Whether the response arrived completely.";
    i8 syn_retransmissions = counts().map(|c| c.syn_retransmissions), "Retransmissions of the client's SYN.";
    i8 synack_retransmissions = counts().map(|c| c.synack_retransmissions), "Retransmissions of the server's SYN-ACK.";
    i8 request_retransmissions ["segments"] = counts().map(|c| c.request_retransmissions), "Retransmissions of the request by the client.";
    i8 data_retransmissions ["segments"] = stats().map(|s| s.retransmissions), "Retransmissions of the response by the server.";
    i8 data_rtos = stats().map(|s| s.rtos.into()), "Retransmission timeouts of the response.";
    i8 rtos_open = stats().map(|s| s.rtos_open.into()), "Timeouts in state Open.";
    i8 rtos_disorder = stats().map(|s| s.rtos_disorder.into()), "Timeouts in state Disorder.";
    i8 rtos_recovery = stats().map(|s| s.rtos_recovery.into()), "Timeouts in state Recovery.";
    i8 rtos_loss = stats().map(|s| s.rtos_loss.into()), "Timeouts in state Loss.";
    i8 data_segments_sent ["segments"] = stats().map(|s| s.data_segments_sent), "Segments of the response that were sent, including retransmissions.";
    i8 lost_retransmits ["segments"] = stats().map(|s| s.lost_retransmits.into()), "Retransmissions that the sender marked lost.";
    i8 recoveries = stats().map(|s| s.recoveries.into()), "Episodes of fast recovery.";
    i8 tlps = stats().map(|s| s.tlps.into()), "Tail loss probes.";
    i8 undos = stats().map(|s| s.undos.into()), "Window reductions that the sender undid.";
    i8 dsacks = stats().map(|s| s.dsacks_received.into()), "ACKs with a DSACK that the server received (RFC 2883).";
    u4 cwnd_end ["segments"] = counts().map(|c| c.cwnd_end), "cwnd of the server at the end of the fetch.";
    ssthresh ssthresh_end ["segments"] = counts().map(|c| c.ssthresh_end), "ssthresh of the server at the end of the fetch.", or "not set";
}

columns! {
    fn recoveries(recoveries: &[(u32, Vec<RecoverySummary>)]) as RECOVERIES "recoveries"
    "One row per episode of fast recovery, in every run."
    {
        let all = recoveries.iter().flat_map(|(idx, of_connection)| of_connection.iter().map(move |r| (*idx, r)));
        let mut all: Vec<(u32, &RecoverySummary)> = all.collect();
        all.sort_by_key(|(idx, r)| (r.flow, *idx, r.t_enter));
        let rows = || all.iter().map(|(_, r)| r);
    }
    u4 flow = rows().map(|r| r.flow), "Number of the flow.";
    u4 idx = all.iter().map(|(idx, _)| *idx), "Number of the fetch or transaction within the flow; 0 if the flow has only one connection.";
    flag responder = rows().map(|r| r.responder), "Whether the sender accepted the connection (the other end opened it).";
    time t_enter_s ["s"] = rows().map(|r| r.t_enter), "Time when recovery began.";
    time t_exit_s ["s"] = rows().map(|r| r.t_exit), "Time when recovery ended.";
    u4 pipe_enter ["segments"] = rows().map(|r| r.pipe_enter), "pipe when recovery began, before the recovery rule acts.";
    ssthresh ssthresh ["segments"] = rows().map(|r| r.ssthresh), "ssthresh, the target window of the recovery rule.", or "not set";
    u4 cwnd_enter ["segments"] = rows().map(|r| r.cwnd_enter), "cwnd just before recovery.";
    u4 losses ["segments"] = rows().map(|r| r.losses), "Segments marked lost during recovery.";
    u4 retransmits ["segments"] = rows().map(|r| r.retransmits), "Retransmissions sent during recovery.";
    u4 lost_retransmits ["segments"] = rows().map(|r| r.lost_retransmits), "Retransmissions among `retransmits` that were lost themselves.";
    u4 max_burst ["segments"] = rows().map(|r| r.max_burst), "Maximum number of segments sent on one ACK.";
    u4 acks = rows().map(|r| r.acks), "ACKs processed during recovery.";
    u4 cwnd_before_exit ["segments"] = rows().map(|r| r.cwnd_before_exit), "cwnd before the recovery rule's final adjustment.";
    u4 cwnd_after_exit ["segments"] = rows().map(|r| r.cwnd_after_exit), "cwnd after this adjustment.";
    u4 pipe_exit ["segments"] = rows().map(|r| r.pipe_exit), "pipe at the end of recovery, before anything is sent.";
    span srtt_s ["s"] = rows().map(|r| r.srtt), "Smoothed RTT when recovery began.";
    text(&ExitCause::NAMES) cause = rows().map(|r| r.cause as u32),
        "Reason why recovery ended: \"full_ack\" (the recovery point was acknowledged), \"rto\", \"undo\", \"run_end\".";
}

columns! {
    /// Counters of each link.
    pub fn links(counters: &[impl Borrow<Counters>], names: Vec<String>) as LINKS "links"
    "One row per link and direction, in every run; each link has one queue. Counting, means, maxima and waits begin at the end of the warm-up; table `flows` covers the whole run. A packet of several segments (`tso`) counts as that many packets."
    {
        let rows = || counters.iter().map(Borrow::borrow);
        let sum = |classes: &[u64; 4], of: &[Class]| of.iter().map(|&class| classes[class as usize]).sum();
        const SET_UP: [Class; 2] = [Class::Syn, Class::Fin];
    }
    u4 link = 0..counters.len() as u32, "Number of the link, from 0.";
    names name = names, "Name of the link and its direction.";
    i8 arrivals ["packets"] = rows().map(|c| c.arrivals), "Packets that arrived at the link.";
    i8 arrivals_data ["packets"] = rows().map(|c| sum(&c.arrivals_by_class, &[Class::Data])), "Packets with data among `arrivals`.";
    i8 arrivals_syn_fin ["packets"] = rows().map(|c| sum(&c.arrivals_by_class, &SET_UP)), "SYNs and FINs among `arrivals`.";
    i8 dropped_loss ["packets"] = rows().map(|c| c.dropped_loss), "Packets that the loss model dropped.";
    i8 dropped_queue ["packets"] = rows().map(|c| c.dropped_queue), "Packets that the queue dropped, because it was full or by its own rule.";
    i8 dropped_queue_data ["packets"] = rows().map(|c| sum(&c.dropped_by_class, &[Class::Data])), "Packets with data among `dropped_queue`.";
    i8 dropped_queue_syn_fin ["packets"] = rows().map(|c| sum(&c.dropped_by_class, &SET_UP)), "SYNs and FINs among `dropped_queue`.";
    i8 dropped_before ["packets"] = rows().map(|c| c.dropped_before),
        "Packets that the loss model and the queue dropped during the warm-up, which no other column counts.";
    i8 delivered ["packets"] = rows().map(|c| c.delivered),
        "Packets that reached the far end of the link. `arrivals` + `held_before` = `delivered` + `dropped_loss` + `dropped_queue` + `held`.";
    i8 held ["packets"] = rows().map(|c| c.held), "Packets in the link at the end of the run: waiting, in transmission or propagating.";
    i8 held_before ["packets"] = rows().map(|c| c.held_before), "Packets in the link when counting began.";
    i8 marked ["packets"] = rows().map(|c| c.marked), "Packets that the queue marked CE.";
    i8 bytes_delivered ["bytes"] = rows().map(|c| c.bytes_delivered), "Bytes of IP packets that reached the far end of the link.";
    f8 mean_packets ["packets"] = rows().map(|c| c.mean_packets), "Mean over time of the number of waiting packets.", or "the backend cannot measure it";
    u4 max_packets ["packets"] = rows().map(|c| c.max_packets), "Maximum number of waiting packets.";
    f8 mean_wait_s ["s"] = rows().map(|c| c.mean_wait_s), "Mean time that packets waited before transmission.", or "the backend cannot measure it";
    span max_wait_s ["s"] = rows().map(|c| c.max_wait), "Maximum time that a packet waited before transmission.", or "the backend cannot measure it";
    i8 seconds_queued = rows().map(|c| c.seconds_queued), "Number of whole seconds of the run at which packets were waiting.";
    span busy_s ["s"] = rows().map(|c| c.busy),
        "Time that the link spent transmitting; 0 on a link that follows a trace.", or "the backend cannot measure it";
    i8 opportunities = rows().map(|c| c.opportunities), "Delivery opportunities of a link that follows a trace.";
    i8 opportunities_used = rows().map(|c| c.opportunities_used), "Delivery opportunities that were used, at least in part.";
}

columns! {
    fn hosts(world: &mut World) as HOSTS "hosts"
    "One row per host that the scenario describes; perfect hosts have no row."
    {
        let end = world.now();
        let (names, sums): (Vec<String>, Vec<_>) = world.host_sums().into_iter().unzip();
        let names = names.iter().map(|name| name.trim_start_matches("host.").to_string()).collect();
        let rows = || sums.iter();
    }
    names host = names, "Name of the host.";
    f8 stalled_share = rows().map(|s| s.stalled.as_secs() / end.as_secs()), "Fraction of the run during which the host had no processor, 0 to 1.";
    i8 stalls = rows().map(|s| s.stalls), "Number of periods during which the host had no processor.";
    span longest_stall_s ["s"] = rows().map(|s| s.longest_stall), "Duration of the longest stall.";
    span cpu_wait_s ["s"] = rows().map(|s| s.waited), "Total time that all processes waited for a core.";
    i8 interrupts = rows().map(|s| s.interrupts.times), "Interrupts of a NIC that coalesces interrupts or merges packets.";
    i8 interrupt_packets ["packets"] = rows().map(|s| s.interrupts.packets), "Packets that arrived with these interrupts.";
    u4 largest_interrupt ["packets"] = rows().map(|s| s.interrupts.largest), "Maximum number of packets per interrupt.";
    i8 merged_packets ["packets"] = rows().map(|s| s.interrupts.merged),
        "Packets that these interrupts delivered to the transports; fewer than `interrupt_packets` if the NIC merges packets (`gro`).";
    i8 batches = rows().map(|s| s.batches.times), "Batches sent by a NIC that collects packets before it sends them.";
    i8 batch_packets ["packets"] = rows().map(|s| s.batches.packets), "Packets sent in these batches.";
    u4 largest_batch ["packets"] = rows().map(|s| s.batches.largest), "Maximum number of packets per batch.";
    i8 device_packets ["packets"] = rows().map(|s| s.device.sent), "Packets that left the host's own device (`line_rate`, `queue`).";
    i8 device_refused ["packets"] = rows().map(|s| s.device.refused), "Packets that the device refused because its queue was full.";
    i8 device_marked ["packets"] = rows().map(|s| s.device.marked), "Packets that the device marked CE.";
    u4 device_max_packets ["packets"] = rows().map(|s| s.device.most),
        "Maximum number of packets that waited in the device; a packet of several segments counts once.";
    f8 device_mean_wait_s ["s"] = rows().map(|s| s.device.mean_wait_s()),
        "Mean time that packets waited in the device.", or "no packet left the device";
}

columns! {
    fn destinations(known: &[(String, DestinationMetrics)]) as DESTINATIONS "destinations"
    "One row per destination that hosts remember (`stack.metrics_cache`), with the state at the end of the run."
    {
        let set = |segments: u32| if segments == 0 { f64::NAN } else { segments as f64 };
        let rows = || known.iter().map(|(_, cache)| cache);
    }
    names destination = known.iter().map(|(name, _)| name.clone()).collect(), "Name of the destination.";
    f8 ssthresh_segments ["segments"] = rows().map(|c| set(c.ssthresh)),
        "ssthresh with which the next connection would start.", or "no value is remembered";
    f8 cwnd_segments ["segments"] = rows().map(|c| set(c.cwnd)), "Remembered cwnd. No connection starts with it.", or "no value is remembered";
    time saved_s ["s"] = rows().map(|c| c.saved), "Time when the entry was last updated.";
}

columns! {
    fn goodput(rows: &[GoodputRow]) as GOODPUT "goodput"
    "One row per flow and interval; requires `record.goodput_interval`."
    {
    }
    time t_s ["s"] = rows.iter().map(|r| r.t), "End of the interval.";
    u4 flow = rows.iter().map(|r| r.flow), "Number of the flow.";
    f8 goodput_bps ["bit/s"] = rows.iter().map(|r| r.bps),
        "Payload acknowledged during the interval, divided by the length of the interval. Data is acknowledged in order: when a gap is filled, all data received beyond it counts at once.";
    f8 delivered_bps ["bit/s"] = rows.iter().map(|r| r.delivered_bps),
        "Payload that first arrived at the receiving host during the interval, in order or not, divided by the length of the interval.";
}

columns! {
    fn queue_samples(rows: &[QueueRow]) as QUEUE_SAMPLES "queue_samples"
    "One row per link and interval; requires `record.queue_interval`."
    {
    }
    time t_s ["s"] = rows.iter().map(|r| r.t), "Time of the sample.";
    u4 link = rows.iter().map(|r| r.link), "Number of the link.";
    u4 packets ["packets"] = rows.iter().map(|r| r.packets), "Number of waiting packets, excluding the one in transmission.";
}

columns! {
    fn samples(samples: &[SampleRow]) as SAMPLES "samples"
    "One row per open flow and interval; requires `record.sample_interval`."
    {
        let rows = || samples.iter();
        let told = |of: fn(&Times) -> Span| samples.iter().map(move |r| r.times.as_ref().map_or(Span::MAX, of));
    }
    time t_s ["s"] = rows().map(|r| r.t), "Time of the sample.";
    u4 flow = rows().map(|r| r.flow), "Number of the flow.";
    u4 cwnd ["segments"] = rows().map(|r| r.cwnd), "Congestion window.";
    ssthresh ssthresh ["segments"] = rows().map(|r| r.ssthresh), "Slow-start threshold.", or "not set yet";
    span srtt_s ["s"] = rows().map(|r| r.srtt), "Smoothed RTT.";
    u4 in_flight ["segments"] = rows().map(|r| r.in_flight), "pipe: segments that the sender considers in flight.";
    text(&CaState::NAMES) ca_state = rows().map(|r| r.ca_state as u32), "Congestion state: \"Open\", \"Disorder\", \"CWR\", \"Recovery\", \"Loss\".";
    i8 bytes_acked ["bytes"] = rows().map(|r| r.bytes_acked), "Payload acknowledged so far.";
    i8 retransmissions ["segments"] = rows().map(|r| r.retransmissions), "Retransmissions so far.";
    i8 rwnd ["bytes"] = rows().map(|r| u64::from(r.rwnd)), "The peer's receive window.";
    span busy_s ["s"] = told(|t| t.busy), "Time with unsent or unacknowledged data, counted in timer ticks of the host like the kernel's `tcpi_busy_time`.",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
    span rwnd_limited_s ["s"] = told(|t| t.rwnd_limited), "Part of `busy_s` during which the receiver's window blocked the next segment (`tcpi_rwnd_limited`).",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
    span sndbuf_limited_s ["s"] = told(|t| t.sndbuf_limited), "Part of `busy_s` during which the send buffer was too small (`tcpi_sndbuf_limited`).",
        or "`record.limits_interval` is not set, the flow is not TCP, or it had several connections open at once";
}

columns! {
    fn limits(rows: &[LimitRow]) as LIMITS "limits"
    "One row per TCP flow and interval; requires `record.limits_interval`. Time by cause of waiting: the nine columns add up to the part of the interval during which the flow existed."
    {
        let by = |hold: Hold| rows.iter().map(move |r| r.held[hold as usize]);
    }
    time t_s ["s"] = rows.iter().map(|r| r.t), "End of the interval.";
    u4 flow = rows.iter().map(|r| r.flow), "Number of the flow.";
    span limit_handshake_s ["s"] = by(Hold::Handshake), "Time before the first connection was established.";
    span limit_application_s ["s"] = by(Hold::Application), "Time during which data was outstanding and the application had written no further data.";
    span limit_rwnd_s ["s"] = by(Hold::Receiver), "Time during which the receiver's window limited the sender.";
    span limit_sndbuf_s ["s"] = by(Hold::SendBuffer), "Time during which the application had more data, but the send buffer or the host's queue was full.";
    span limit_cwnd_s ["s"] = by(Hold::Window), "Time during which cwnd limited the sender.";
    span limit_pacing_s ["s"] = by(Hold::Pacing), "Time during which the next segment waited for its departure time.";
    span limit_recovery_s ["s"] = by(Hold::Recovery), "Time during which losses were being repaired (states Recovery and Loss).";
    span limit_timeout_s ["s"] = by(Hold::Timeout), "Time during which the sender waited for a retransmission timer that then expired, counted from the last ACK or transmission.";
    span limit_idle_s ["s"] = by(Hold::Idle), "Time during which all data was acknowledged and there was nothing to send.";
}

columns! {
    fn drop_rows(drops: &[Dropped]) as DROPS "drops"
    "One row per packet that a link dropped; requires `record.drops`."
    {
        let rows = || drops.iter();
        let reason = |d: &Dropped| match d.reason {
            Refused::Loss => 0,
            Refused::QueueFull => 1,
            Refused::Aqm => 2,
        };
    }
    time t_s ["s"] = rows().map(|d| d.t), "Time of the event.";
    u4 link = rows().map(|d| d.link), "Number of the link.";
    u4 flow = rows().map(|d| d.packet.flow), "Number of the flow.";
    u4 seg_no = rows().map(|d| d.packet.header.ordinal().0), "Number of the segment or datagram within its connection; 0 for a packet without data.";
    u1 rexmit = rows().map(|d| d.packet.header.ordinal().1), "Number of the segment's transmission; 0 for the first.";
    flag forward = rows().map(|d| d.packet.forward), "Whether the packet travelled in the forward direction, the direction of the data.";
    u4 bytes ["bytes"] = rows().map(|d| d.packet.bytes), "Size of the IP packet.";
    text(&["loss", "queue", "aqm"]) reason = rows().map(reason), "Cause of the drop: \"loss\" (the loss model), \"queue\" (the queue was full), \"aqm\" (the queue's own rule).";
}

columns! {
    fn acks(records: &[(u32, Vec<Record>)], only: &'static [&'static str]) as ACKS "acks", only
    "One row per ACK, transmission and timer event at a sender, in chronological order within a connection; requires `record.trace`. For QUIC, one row per ACK and per datagram with data, with cwnd, ssthresh, data in flight (in full datagrams), losses and RTTs; the other columns are 0. Values are those after the event unless stated otherwise; for a transmission that waits in the host's own `fq`, those at the time when the sender passed it to `fq`."
    {
        // flatten once: all fifty columns iterate over this list
        let all: Vec<&Record> = records.iter().flat_map(|(_, records)| records).collect();
        let rows = || all.iter().copied();
        let idx = records.iter().flat_map(|(idx, records)| std::iter::repeat_n(*idx, records.len()));
        let edge = |r: &Record, block: usize, end: bool| if end { r.ack.sack[block].1 } else { r.ack.sack[block].0 };
        // NaN if a deadline or a duration is not set
        let when = |t: Time| seconds(t);
    }
    time t_s ["s"] = rows().map(|r| r.event.t), "Time of the event; for a transmission, the time when it leaves the host, after any wait in the host's `fq`.";
    i8 t_ns ["ns"] = rows().map(|r| r.event.t.0), "Exact time of the event.";
    u4 flow = rows().map(|r| r.event.flow), "Number of the flow.";
    flag responder = rows().map(|r| r.event.responder), "Whether the sender accepted the connection (the other end opened it).";
    text(&Event::NAMES) event = rows().map(|r| r.event.kind as u32),
        "Kind of event: \"ack\"; \"send\" (a new segment) and \"rtx\" (a retransmission); \"rto\", \"tlp\", \"reo_timer\" (timers); \"enter\" and \"exit\" (fast recovery); \"undo\".";
    u4 ack_no = rows().map(|r| r.ack.ack_no), "Number of ACKs received so far, including this one.";
    i8 seq ["bytes"] = rows().map(|r| r.event.seq), "Acknowledgment number, or offset of the first byte sent.";
    u4 len ["bytes"] = rows().map(|r| r.event.len), "Bytes sent, or bytes newly acknowledged cumulatively.";
    u4 seg_no = rows().map(|r| r.event.seg_no), "Number of the data segment sent; for ACKs, of the segment at SND.UNA.";
    u1 rexmit = rows().map(|r| r.event.rexmit), "Number of the segment's transmission; 0 for the first.";
    u1 sack_blocks = rows().map(|r| r.ack.sack_blocks), "Number of SACK blocks in the ACK.";
    i8 sack0_start ["bytes"] = rows().map(|r| edge(r, 0, false)), "First SACK block: offset of its first byte; 0 if there is no block.";
    i8 sack0_end ["bytes"] = rows().map(|r| edge(r, 0, true)), "First SACK block: offset after its last byte; 0 if there is no block.";
    i8 sack1_start ["bytes"] = rows().map(|r| edge(r, 1, false)), "Second SACK block: offset of its first byte.";
    i8 sack1_end ["bytes"] = rows().map(|r| edge(r, 1, true)), "Second SACK block: offset after its last byte.";
    i8 sack2_start ["bytes"] = rows().map(|r| edge(r, 2, false)), "Third SACK block: offset of its first byte.";
    i8 sack2_end ["bytes"] = rows().map(|r| edge(r, 2, true)), "Third SACK block: offset after its last byte.";
    flag dsack = rows().map(|r| r.ack.dsack), "Whether the ACK carries a DSACK.";
    flag is_dup = rows().map(|r| r.ack.is_dup), "Whether the ACK is a duplicate ACK (RFC 6675 §2).";
    u4 newly_sacked ["segments"] = rows().map(|r| r.ack.newly_sacked), "Segments newly SACKed by the ACK.";
    u4 delivered ["segments"] = rows().map(|r| r.ack.delivered), "DeliveredData of this ACK.";
    u4 newly_lost ["segments"] = rows().map(|r| r.ack.newly_lost), "Segments marked lost on this ACK; for QUIC and stacks, packets declared lost since the flow's previous row, by an ACK or a timer.";
    u4 lost_retransmits ["segments"] = rows().map(|r| r.ack.lost_retransmits), "Retransmissions marked lost on this ACK.";
    flag safe_ack = rows().map(|r| r.ack.safe_ack), "SafeACK (RFC 9937 §6.2).";
    u4 cwnd_before ["segments"] = rows().map(|r| r.window.cwnd_before), "cwnd before the event.";
    u4 cwnd ["segments"] = rows().map(|r| r.window.cwnd), "cwnd after the event.";
    ssthresh ssthresh ["segments"] = rows().map(|r| r.window.ssthresh), "Slow-start threshold.", or "not set yet";
    u4 pipe_before ["segments"] = rows().map(|r| r.window.pipe_before), "pipe before the ACK was processed.";
    u4 pipe ["segments"] = rows().map(|r| r.window.pipe), "pipe after the event, before anything is sent.";
    u4 flight_size ["segments"] = rows().map(|r| r.window.flight_size), "SND.NXT - SND.UNA.";
    u4 sacked_out ["segments"] = rows().map(|r| r.window.sacked_out), "Segments marked SACKed.";
    u4 lost_out ["segments"] = rows().map(|r| r.window.lost_out), "Segments considered lost.";
    u4 retrans_out ["segments"] = rows().map(|r| r.window.retrans_out), "Retransmissions in flight.";
    u4 rwnd ["bytes"] = rows().map(|r| r.window.rwnd), "The peer's receive window.";
    text(&CaState::NAMES) ca_state = rows().map(|r| r.event.ca_state as u32), "Congestion state: \"Open\", \"Disorder\", \"CWR\", \"Recovery\", \"Loss\".";
    i8 recovery_point ["bytes"] = rows().map(|r| r.repair.recovery_point), "RecoveryPoint (RFC 6675; Linux high_seq).";
    u4 reordering ["segments"] = rows().map(|r| r.repair.reordering), "Degree of reordering that the sender assumes (DupThresh).";
    text(&Branch::NAMES) branch = rows().map(|r| r.repair.rule.branch as u32),
        "Branch of the recovery rule that set cwnd: \"prop\", \"bound\", \"forced\" (PRR); \"rh_dec\", \"rh_clamp\" (rate halving); \"hold\"; empty outside recovery.";
    u4 sndcnt ["segments"] = rows().map(|r| r.repair.rule.sndcnt), "PRR: number of segments that may be sent on this ACK (sndcnt).";
    u4 prr_delivered ["segments"] = rows().map(|r| r.repair.rule.prr_delivered), "PRR: segments delivered since recovery began.";
    u4 prr_out ["segments"] = rows().map(|r| r.repair.rule.prr_out), "PRR: segments sent since recovery began.";
    u4 recover_fs ["segments"] = rows().map(|r| r.repair.rule.recover_fs), "PRR: RecoverFS (Linux prior_cwnd).";
    span rto_s ["s"] = rows().map(|r| r.timers.rto), "Current retransmission timeout.";
    u1 backoff = rows().map(|r| r.timers.backoff), "Number of times that the retransmission timeout was doubled.";
    span srtt_s ["s"] = rows().map(|r| r.timers.srtt), "Smoothed RTT.";
    span rttvar_s ["s"] = rows().map(|r| r.timers.rttvar), "RTT variation as used in the timeout: 4 * RTTVAR of RFC 6298.";
    span min_rtt_s ["s"] = rows().map(|r| r.timers.min_rtt), "Minimum RTT.", or "there was no RTT sample yet";
    span reo_wnd_s ["s"] = rows().map(|r| r.timers.reo_wnd), "RACK's reordering window.";
    f8 deadline_s ["s"] = rows().map(|r| when(r.timers.deadline)), "Next expiry of the sender's timer.", or "no timer is armed";
    u4 idx = idx, "Number of the fetch or transaction within the flow; 0 if the flow has only one connection.";
}

columns! {
    fn variables(traces: &[(FlowId, u32, VarsTrace)]) as CONTROLLERS "controllers"
    "Variables of the congestion controllers, one row per ACK or interval; requires `record.controller`. The table has a column for a variable only if a controller of the run has it."
    {
        let rows =
            || traces.iter().flat_map(|(flow, idx, trace)| trace.rows.iter().map(move |r| (*flow, *idx, r)));
        let pacing = |r: &VarsRow| match r.pacing_rate {
            Window::UNPACED => f64::NAN,
            rate => rate as f64 * 8.0,
        };
    }
    time t_s ["s"] = rows().map(|(_, _, r)| r.t), "Time of the event.";
    u4 flow = rows().map(|(flow, _, _)| flow), "Number of the flow.";
    u4 idx = rows().map(|(_, idx, _)| idx), "Number of the fetch or transaction within the flow; 0 if the flow has only one connection.";
    u4 ack_no = rows().map(|(_, _, r)| r.ack_no), "Number of ACKs received so far.";
    u4 cwnd ["segments"] = rows().map(|(_, _, r)| r.cwnd), "Congestion window.";
    ssthresh ssthresh ["segments"] = rows().map(|(_, _, r)| r.ssthresh), "Slow-start threshold.", or "not set yet";
    f8 pacing_bps ["bit/s"] = rows().map(|(_, _, r)| pacing(r)), "Pacing rate.", or "the sender does not pace";
    + {
        estimate_bps ["bit/s"]: "Controller's estimate of the rate of the path (BBR's bw, Westwood's estimate).", or "the flow's controller has no such variable";
        delta ["1/segments"]: "Copa: delta, the weight of the queueing delay; the target is 1/delta segments in the queue.", or "the flow's controller has no such variable";
        velocity: "Copa: velocity, the factor by which changes of the window are accelerated.", or "the flow's controller has no such variable";
        queued_s ["s"]: "Copa: measured queueing delay.", or "no sample yet, or no such variable";
        rtt_min_s ["s"]: "Westwood: minimum RTT.", or "no sample yet, or no such variable";
        base_rtt_s ["s"]: "Delay-based controllers: estimated RTT without queueing.", or "no sample yet, or no such variable";
        avg_rtt_s ["s"]: "FAST: mean RTT.", or "no sample yet, or no such variable";
        queued_packets ["packets"]: "FAST, Vegas: estimated number of the flow's packets in queues.", or "no sample yet, or no such variable";
        target_segments ["segments"]: "FAST: target window.", or "no sample yet, or no such variable";
        sample_bps ["bit/s"]: "Westwood: latest rate sample.", or "the flow's controller has no such variable";
        interval_s ["s"]: "Westwood: interval over which the rate sample was taken.", or "none yet, or no such variable";
        tau_s ["s"]: "Westwood: time constant of the filter.", or "none yet, or no such variable";
        u_bps ["bit/s"]: "Westwood, ABSE: U, the variation of the samples.", or "the flow's controller has no such variable";
        u_max_bps ["bit/s"]: "Westwood, ABSE: the recent maximum of U.", or "the flow's controller has no such variable";
        sample_rtt_s ["s"]: "Westwood: latest RTT sample.", or "no sample yet, or no such variable";
        min_rtt_s ["s"]: "BBR: minimum RTT of the last ten seconds.", or "no sample yet, or no such variable";
        mode: "BBR: 0 Startup, 1 Drain, 2 ProbeBW (version 3: 2.0 to 2.3, its phases DOWN, CRUISE, REFILL, UP), 3 ProbeRTT.", or "the flow's controller has no such variable";
        pacing_gain: "BBR: gain of the pacing rate.", or "the flow's controller has no such variable";
        cwnd_gain: "BBR: gain of cwnd.", or "the flow's controller has no such variable";
        inflight_longterm ["segments"]: "BBR version 3: long-term bound on the data in flight, learnt from losses.", or "not set yet, or no such variable";
        inflight_shortterm ["segments"]: "BBR version 3: short-term bound on the data in flight, learnt from losses.", or "not set yet, or no such variable";
        delay_s ["s"]: "LEDBAT++: queueing delay.", or "no such variable";
        delay_window_segments ["segments"]: "Compound: the delay-based part of the window.", or "no such variable";
        alpha: "DCTCP, Prague: estimated fraction of marked packets, 0 to 1.", or "no such variable";
        frac_cwnd ["segments"]: "Prague: fractional window, which cwnd approaches by one segment per ACK.", or "no such variable";
    }
}

/// Controller variables: one column per variable of any controller, NaN in the rows of other controllers.
fn controllers(flows: &[Flow], traces: &[(FlowId, u32, VarsTrace)]) -> Table {
    let mut table = variables(traces);
    let mut names: Vec<&'static str> = Vec::new();
    let recorded = flows.iter().filter(|f| f.controller_trace.is_some()).filter_map(|f| f.config.tcp());
    for name in recorded.flat_map(|config| config.sending.controller.needs().vars) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    for name in names {
        let column = traces.iter().flat_map(|(_, _, trace)| {
            let at = trace.names.iter().position(|n| *n == name);
            trace.rows.iter().map(move |r| at.map_or(f64::NAN, |at| r.values[at]))
        });
        table = table.f8(name, column);
    }
    table
}

columns! {
    /// PCC's monitor intervals, in the order in which their results arrived.
    pub fn intervals(flows: &mut [(FlowId, Vec<IntervalRow>)]) as INTERVALS "intervals"
    "One row per monitor interval of PCC, in chronological order within a flow; requires `record.controller`."
    {
        flows.sort_by_key(|(flow, _)| *flow);
        let rows = || flows.iter().flat_map(|(flow, rows)| rows.iter().map(move |row| (*flow, row)));
        let measured = || rows().map(|(_, row)| &row.measured);
    }
    u4 flow = rows().map(|(flow, _)| flow), "Number of the flow.";
    u4 interval = measured().map(|m| m.id), "Number of the monitor interval, from 0.";
    time start_s ["s"] = measured().map(|m| m.start), "Time of the first transmission.";
    time end_s ["s"] = measured().map(|m| m.end), "Time of the first transmission of the next interval.";
    time known_s ["s"] = measured().map(|m| m.known), "Time when all datagrams of the interval were known to be delivered or lost.";
    text(&STATES) state = rows().map(|(_, row)| state(row.state)),
        "Phase of the controller: \"starting\", \"decision\", \"adjusting\", \"probing\".";
    f8 rate_bps ["bit/s"] = measured().map(|m| m.rate), "Rate set by the controller, including IP headers.";
    f8 send_rate_bps ["bit/s"] = measured().map(|m| m.rate_mbps() * 1e6), "Sending rate x of the utility function: the rate at which datagrams were sent or, with `nominal_rate`, the rate that was set.";
    u4 sent ["packets"] = measured().map(|m| m.sent), "Datagrams sent.";
    u4 lost ["packets"] = measured().map(|m| m.lost), "Datagrams among `sent` that were lost.";
    f8 utility = rows().map(|(_, row)| row.utility), "Value of the utility function.", or "the controller did not evaluate the interval";
    f8 mean_rtt_s ["s"] = measured().map(|m| if m.rtt_mean > 0.0 { m.rtt_mean } else { f64::NAN }), "Mean RTT.", or "there was no sample";
    f8 rtt_gradient = measured().map(|m| m.rtt_gradient), "dRTT/dt, by least squares; 0 if there are fewer than two samples.";
    f8 rtt_deviation_s ["s"] = measured().map(|m| m.rtt_deviation), "Standard deviation of the RTT.";
    flag limited = measured().map(|m| m.limited),
        "Whether the sender had nothing to send during part of the interval; such an interval gives no information about the path.";
}

const STATES: [&str; 4] = ["starting", "decision", "adjusting", "probing"];

fn state(name: &str) -> u32 {
    STATES.iter().position(|s| *s == name).expect("invariant: states of its controllers") as u32
}

columns! {
    /// Plain datagram flows.
    pub fn datagrams(flows: &mut [DatagramRow]) as DATAGRAMS "datagrams"
    "One row per flow of UDP datagrams, in every run."
    {
        flows.sort_by_key(|row| row.flow);
        let rows = || flows.iter();
        let received = || flows.iter().map(|row| &row.received);
        let share = |n: u64, of: u64| if of == 0 { f64::NAN } else { n as f64 / of as f64 };
        let mean = |sum: u128, n: u64| if n == 0 { f64::NAN } else { sum as f64 / n as f64 * 1e-9 };
        let seen = |r: &Received, delay: Span| if r.packets == 0 { f64::NAN } else { delay.as_secs() };
        let quantile = |r: &Received, share: f64| r.delay_quantile(share).map_or(f64::NAN, Span::as_secs);
    }
    u4 flow = rows().map(|row| row.flow), "Number of the flow.";
    i8 sent ["packets"] = rows().map(|row| row.sent), "Datagrams sent.";
    i8 received ["packets"] = received().map(|r| r.packets), "Datagrams that arrived.";
    i8 lost ["packets"] = received().map(Received::lost), "Datagrams missing below the largest sequence number that arrived.";
    f8 loss_rate = received().map(|r| share(r.lost(), r.expected)),
        "Lost datagrams divided by the largest sequence number that arrived, 0 to 1.", or "no packet arrived";
    i8 reordered ["packets"] = received().map(|r| r.reordered), "Datagrams that arrived after one with a larger sequence number.";
    i8 bytes_received ["bytes"] = received().map(|r| r.bytes), "Payload that arrived.";
    f8 mean_delay_s ["s"] = received().map(|r| mean(r.delay_sum_ns, r.packets)), "Mean one-way delay.", or "no packet arrived";
    f8 min_delay_s ["s"] = received().map(|r| seen(r, r.delay_min)), "Minimum one-way delay.", or "no packet arrived";
    f8 p50_delay_s ["s"] = received().map(|r| quantile(r, 0.5)), "Median one-way delay, accurate to 1/64.", or "no packet arrived";
    f8 p95_delay_s ["s"] = received().map(|r| quantile(r, 0.95)), "95th percentile of the one-way delay, accurate to 1/64.", or "no packet arrived";
    f8 p99_delay_s ["s"] = received().map(|r| quantile(r, 0.99)), "99th percentile of the one-way delay, accurate to 1/64.", or "no packet arrived";
    f8 max_delay_s ["s"] = received().map(|r| seen(r, r.delay_max)), "Maximum one-way delay.", or "no packet arrived";
    f8 mean_delay_variation_s ["s"] = received().map(|r| mean(r.variation_sum_ns, r.packets.saturating_sub(1))),
        "Mean difference between the one-way delays of consecutive datagrams.", or "fewer than two datagrams arrived";
    f8 jitter_s ["s"] = received().map(|r| seen(r, r.jitter())),
        "Interarrival jitter at the end, by the estimator of RFC 3550 §6.4.1.", or "no packet arrived";
}

columns! {
    /// Population clients, each with the values it drew.
    pub fn clients(clients: &[ClientRow]) as CLIENTS "clients"
    "One row per client of a population, with the values it drew."
    {
        let rows = || clients.iter();
    }
    u4 flow = rows().map(|c| c.flow), "Number of the flow.";
    span rtt_s ["s"] = rows().map(|c: &ClientRow| -> Span { c.rtt }), "Round-trip propagation delay.";
    i8 rate_bps ["bit/s"] = rows().map(|c| c.rate_bps), "Rate of the client's link.";
    f8 loss = rows().map(|c| c.loss), "Probability that the client's link loses a packet, 0 to 1.";
    i8 bytes ["bytes"] = rows().map(|c| c.bytes), "Size of the client's response.";
}

columns! {
    /// One row per transaction.
    pub fn transactions(transactions: &[TransactionRow]) as TRANSACTIONS "transactions"
    "One row per transaction; with the workload `transactions`, unless `record.transactions` is \"summary\". Durations are measured from the client's arrival."
    {
        let rows = || transactions.iter();
        let since =
            |r: &TransactionRow, t: Time| if t == Time::NEVER { f64::NAN } else { (t - r.arrival).as_secs() };
        let connect = |r: &TransactionRow| if r.request > 0 { f64::NAN } else { since(r, r.connected) };
    }
    u4 flow = rows().map(|r| r.flow), "Number of the flow.";
    u4 idx = rows().map(|r| r.idx), "Number of the transaction within the flow, from 0.";
    u4 batch = rows().map(|r| r.batch), "Number of the client; all connections that it opens at once have this number.";
    u4 request = rows().map(|r| r.request), "Number of the request within its connection, from 0.";
    u4 initial_window ["segments"] = rows().map(|r| r.iw), "Initial window of the responder.";
    time arrival_s ["s"] = rows().map(|r| r.arrival), "Time when the client arrived or, for later requests of a connection, sent the request.";
    f8 connect_s ["s"] = rows().map(connect),
        "Time until the client completed the handshake.", or "the handshake was not completed, or this is not the connection's first request";
    f8 first_byte_s ["s"] = rows().map(|r| since(r, r.first_byte)), "Time until the first byte of the response.", or "none arrived";
    f8 total_s ["s"] = rows().map(|r| since(r, r.completed)), "Time until the last byte of the response.", or "it did not arrive";
    i8 bytes ["bytes"] = rows().map(|r| r.bytes), "Size of the response.";
    flag done = rows().map(|r| r.completed != Time::NEVER), "Whether the response arrived completely.";
    flag failed = rows().map(|r| r.failed), "Whether the connection gave up.";
    i8 segments_sent ["segments"] = rows().map(|r| r.counts.segments_sent), "Segments of the response that were sent, including retransmissions.";
    i8 retransmissions ["segments"] = rows().map(|r| r.counts.retransmissions), "Retransmissions among `segments_sent`.";
    i8 rtos = rows().map(|r| r.counts.rtos), "Retransmission timeouts.";
    i8 syn_retransmissions = rows().map(|r| r.counts.syn_retransmissions), "Retransmissions of the client's SYN.";
    i8 synack_retransmissions = rows().map(|r| r.counts.synack_retransmissions), "Retransmissions of the server's SYN-ACK.";
}

columns! {
    /// One row per message.
    pub fn conversations(messages: &[MessageRow]) as CONVERSATIONS "conversations"
    "One row per message of a conversation, in the order of their first writes; with the workload `conversation`. Durations are measured from the first write."
    {
        let rows = || messages.iter();
        let since = |r: &MessageRow, t: Time| if t == Time::NEVER { f64::NAN } else { (t - r.start).as_secs() };
    }
    u4 flow = rows().map(|r| r.flow), "Number of the flow.";
    u4 stream = rows().map(|r| r.stream), "Number of the conversation on its connection, from 0.";
    u4 round = rows().map(|r| r.round), "Number of the round through the steps, from 0.";
    u4 step = rows().map(|r| r.step), "Number of the step, from 0.";
    u4 message = rows().map(|r| r.message), "Number of the message within the step, from 0; always 0 unless each write is a separate message (`separate`).";
    text(&["server", "client"]) writer = rows().map(|r| r.writer), "Writer of the message: \"server\" (the sending host) or \"client\" (the receiving host).";
    i8 bytes ["bytes"] = rows().map(|r| r.bytes), "Bytes of the message that were written.";
    u4 writes = rows().map(|r| r.writes), "Number of writes of the message.";
    time start_s ["s"] = rows().map(|r| r.start), "Time of the first write of the message.";
    f8 first_byte_s ["s"] = rows().map(|r| since(r, r.first_byte)), "Time until the first byte was read at the other end.", or "none arrived";
    f8 latency_s ["s"] = rows().map(|r| since(r, r.arrived)), "Time until the last byte was read at the other end.", or "it did not arrive";
    flag done = rows().map(|r| r.arrived != Time::NEVER), "Whether the message arrived completely.";
}

columns! {
    /// Sums and quantiles by group and initial window.
    pub fn transaction_summary(tallies: &[Tally]) as TRANSACTION_SUMMARY "transaction_summary"
    "One row per group and initial window; with the workload `transactions`. Counting starts after the warm-up."
    {
        let rows = || tallies.iter();
        // the middle of a bin may lie outside the observed range
        let quantile =
            |p: f64| rows().map(move |t| t.times.quantile(p).map_or(Span::MAX, |s| s.clamp(t.least, t.most)));
        let ended = |t: &Tally, span: Span| if t.completed == 0 { Span::MAX } else { span };
    }
    u4 group = rows().map(|t| t.group), "Number of the group.";
    u4 initial_window ["segments"] = rows().map(|t| t.iw), "Initial window of the responders.";
    i8 started = rows().map(|t| t.started), "Transactions that started.";
    i8 completed = rows().map(|t| t.completed), "Transactions among `started` that completed.";
    i8 failed = rows().map(|t| t.failed), "Transactions among `started` whose connection gave up.";
    i8 incomplete = rows().map(|t| t.incomplete()), "Transactions among `started` that were still open at the end of the run.";
    i8 refused = rows().map(|t| t.refused), "Connections refused because `max_open` connections were open.";
    u4 max_open = rows().map(|t| t.max_open), "Maximum number of transactions open at the same time.";
    i8 bytes ["bytes"] = rows().map(|t| t.bytes), "Payload of the completed responses.";
    i8 offered_bytes ["bytes"] = rows().map(|t| t.offered_bytes),
        "Bytes that the data packets of all requested responses take on the wire when each is sent once.";
    f8 mean_s ["s"] = rows().map(|t| t.mean_s()), "Mean completion time of transactions.", or "no transaction completed";
    f8 std_s ["s"] = rows().map(|t| t.deviation_s()), "Standard deviation of the completion times.", or "fewer than two transactions completed";
    span min_s ["s"] = rows().map(|t| t.least), "Minimum completion time.", or "no transaction completed";
    span p50_s ["s"] = quantile(0.5), "Median completion time, accurate to 0.4 %.", or "no transaction completed";
    span p95_s ["s"] = quantile(0.95), "95th percentile of the completion times, accurate to 0.4 %.", or "no transaction completed";
    span p99_s ["s"] = quantile(0.99), "99th percentile of the completion times, accurate to 0.4 %.", or "no transaction completed";
    span p999_s ["s"] = quantile(0.999), "99.9th percentile of the completion times, accurate to 0.4 %.", or "no transaction completed";
    span max_s ["s"] = rows().map(|t| ended(t, t.most)), "Maximum completion time.", or "no transaction completed";
    f8 mean_connect_s ["s"] = rows().map(|t| t.mean_connect_s()), "Mean time to complete the handshake.", or "no handshake completed";
    i8 segments_sent ["segments"] = rows().map(|t| t.counts.segments_sent), "Segments of responses that were sent, including retransmissions.";
    i8 retransmissions ["segments"] = rows().map(|t| t.counts.retransmissions), "Retransmissions among `segments_sent`.";
    i8 rtos = rows().map(|t| t.counts.rtos), "Retransmission timeouts.";
    i8 syn_retransmissions = rows().map(|t| t.counts.syn_retransmissions), "Retransmissions of SYN by clients.";
    i8 synack_retransmissions = rows().map(|t| t.counts.synack_retransmissions), "Retransmissions of SYN-ACK by servers.";
}

columns! {
    /// Histograms of transaction completion times.
    pub fn transaction_times(tallies: &[Tally]) as TRANSACTION_TIMES "transaction_times"
    "Histogram of completion times per group and initial window, one row per non-empty bin; with the workload `transactions`."
    {
        let bins: Vec<_> = tallies.iter().flat_map(|t| t.times.bins().map(move |bin| (t, bin))).collect();
        let rows = || bins.iter();
    }
    u4 group = rows().map(|(t, _)| t.group), "Number of the group.";
    u4 initial_window ["segments"] = rows().map(|(t, _)| t.iw), "Initial window of the responders.";
    span low_s ["s"] = rows().map(|(_, bin)| bin.0), "Lower bound of the bin, inclusive.";
    span high_s ["s"] = rows().map(|(_, bin)| bin.1), "Upper bound of the bin, exclusive.";
    i8 count = rows().map(|(_, bin)| bin.2), "Transactions in the bin.";
}
