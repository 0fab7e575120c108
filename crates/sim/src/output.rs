//! The tables of a run, one function each. Times in seconds from the start of the run, windows in segments, sizes in
//! bytes; NaN = did not happen.
//!
//! Length: a list of columns; a table is looked up here, not read through.

use std::borrow::Borrow;

use ackclock_cc::Window;
use ackclock_core::packet::Class;
use ackclock_core::trace::{Branch, CaState, Event, ExitCause, Record, RecoverySummary};
use ackclock_core::{FlowId, Span, Time};
use ackclock_net::{Counters, Refused};
use ackclock_pcc::IntervalRow;
use ackclock_tcp::{DestinationMetrics, Held, SlowStartEnd, SlowStartExit, Times, VarsRow, VarsTrace};

use crate::build::Built;
use crate::flow::{ClientRow, DatagramRow, FetchRow, Flow, Sums};
use crate::observe::{GoodputRow, LimitRow, QueueRow, SampleRow};
use crate::performance::performance;
use crate::table::{seconds, Table};
use crate::tally::{Tally, TransactionRow};
use crate::udp::Received;
use crate::workload::video::chunks;
use crate::world::{Dropped, World};

/// The tables that are wanted, in a fixed order. Most runs of a sweep want few of them, and empty ones cost time too.
pub(crate) fn tables(mut built: Built, wanted: impl Fn(&str) -> bool) -> Vec<Table> {
    let journal = &mut built.app.journal;
    journal.fetches.sort_by_key(|f| (f.flow, f.idx));
    journal.transactions.rows.sort_by_key(|t| (t.flow, t.idx));
    journal.vars.sort_by_key(|(flow, idx, _)| (*flow, *idx));
    journal.records.sort_by_key(|(idx, records)| (records[0].flow, *idx));
    // `fq` releases a segment after the sender has gone on to the next events.
    for (_, records) in journal.records.iter_mut().filter(|(_, records)| !records.is_sorted_by_key(|r| r.t)) {
        records.sort_by_key(|r| r.t);
    }
    let observer = &built.app.observer;
    let drops = built.world.take_drops();
    let (mut counters, mut names) = Default::default();
    if wanted("links") {
        (counters, names) = (built.world.link_counters(), built.world.link_names());
    }
    built.world.forget_links();
    let mut found = Vec::new();
    macro_rules! keep {
        ($($name:literal: $table:expr,)*) => { $(if wanted($name) { found.push($table); })* };
    }
    keep! {
        "flows": flows(&built.app.flows, &built.world),
        "performance": performance(&built.app.flows, observer.meter.as_ref(), built.world.gauges()),
        "fetches": fetches(&journal.fetches),
        "recoveries": recoveries(&journal.recoveries),
        "links": links(&std::mem::take(&mut counters), std::mem::take(&mut names)),
        "hosts": hosts(&mut built.world),
        "destinations": destinations(&journal.destinations),
        "goodput": goodput(&observer.goodput),
        "queue_samples": queue_samples(&observer.queues),
        "samples": samples(&observer.samples),
        "limits": limits(&observer.limits),
        "drops": drop_rows(&drops),
        "acks": acks(&journal.records),
        "clients": clients(&built.clients),
        "controllers": controllers(&built.app.flows, &journal.vars),
        "datagrams": datagrams(&mut journal.datagrams),
        "intervals": intervals(&mut journal.intervals),
        "chunks": chunks(&mut journal.chunks),
        "transactions": transactions(&journal.transactions.rows),
        "transaction_summary": transaction_summary(&journal.transactions.tallies),
        "transaction_times": transaction_times(&journal.transactions.tallies),
    }
    found
}

fn flows(flows: &[Flow], world: &World) -> Table {
    let rows = || flows.iter();
    let sums = || flows.iter().map(Flow::sums);
    let goodput = |f: &Flow| {
        let acked = f.acked_at_stop.unwrap_or(f.sums().acked);
        acked as f64 * 8.0 / f.stop.since(f.start).as_secs()
    };
    let elapsed = |f: &Flow, t: Time| if t == Time::NEVER { f64::NAN } else { t.since(f.start).as_secs() };
    let mean_rtt = |sum: u128, n: u64| if n == 0 { f64::NAN } else { sum as f64 / n as f64 * 1e-9 };
    let of_start = |s: &Sums, of: fn(SlowStartExit) -> f64| s.slow_start.map_or(f64::NAN, of);
    // what only PCC has
    let of_pcc = |f: &Flow, n: u64| if f.config.is_pcc() { n as f64 } else { f64::NAN };
    let send_rate = |f: &Flow| of_pcc(f, f.sums().sent_bytes) * 8.0 / f.stop.since(f.start).as_secs();
    let mut table = Table::new("flows")
        .u4("flow", rows().map(|f| f.id))
        .u4("group", rows().map(|f| f.group))
        .time("start_s", rows().map(|f| f.start))
        .time("established_s", rows().map(|f| f.established))
        .time("stop_s", rows().map(|f| f.stop))
        .f8("completion_s", rows().map(|f| elapsed(f, f.completed)))
        .i8("bytes_acked", sums().map(|s| s.acked))
        .f8("goodput_bps", rows().map(goodput))
        .i8("sent_packets", sums().map(|s| s.sent_packets))
        .i8("retransmissions", sums().map(|s| s.retransmissions))
        .i8("rtos", sums().map(|s| s.rtos))
        .i8("rtos_open", sums().map(|s| s.rtos_open))
        .i8("rtos_disorder", sums().map(|s| s.rtos_disorder))
        .i8("rtos_recovery", sums().map(|s| s.rtos_recovery))
        .i8("rtos_loss", sums().map(|s| s.rtos_loss))
        .i8("tlps", sums().map(|s| s.tlps))
        .i8("recoveries", sums().map(|s| s.recoveries))
        .i8("lost_retransmits", sums().map(|s| s.lost_retransmits))
        .i8("undos", sums().map(|s| s.undos))
        .i8("spurious_rtos", sums().map(|s| s.spurious_rtos))
        .i8("dsacks", sums().map(|s| s.dsacks))
        .i8("syn_retransmissions", sums().map(|s| s.syn_retransmissions))
        .i8("acks_received", sums().map(|s| s.acks_received))
        .f8("mean_rtt_s", sums().map(|s| mean_rtt(s.rtt_sum_ns, s.rtt_samples)))
        .span("min_rtt_s", sums().map(|s| s.min_rtt))
        .f8("slow_start_end_s", sums().map(|s| of_start(s, |exit| exit.at.as_secs())))
        .text(
            "slow_start_by",
            &SlowStartEnd::NAMES,
            sums().map(|s| s.slow_start.map_or(0, |exit| exit.by as u32)),
        )
        .f8("slow_start_cwnd", sums().map(|s| of_start(s, |exit| f64::from(exit.cwnd))))
        .f8("slow_start_ssthresh", sums().map(|s| of_start(s, |exit| f64::from(exit.ssthresh))))
        .f8("slow_start_lost", sums().map(|s| of_start(s, |exit| exit.lost as f64)))
        .f8("send_rate_bps", rows().map(send_rate))
        .f8("lost_packets", rows().map(|f| of_pcc(f, f.sums().lost_packets)))
        .f8("intervals", rows().map(|f| of_pcc(f, f.sums().intervals)))
        .flag("failed", rows().map(|f| f.failed))
        .f8("departure_cv", rows().map(|f| world.departures(f.id).variation()))
        .u4("largest_burst", rows().map(|f| world.departures(f.id).largest_burst()));
    let held: Vec<Option<(Held, Times)>> = rows().map(Flow::held_in_all).collect();
    let told = |of: fn(&Times) -> Span| held.iter().map(move |h| h.as_ref().map_or(Span::MAX, |h| of(&h.1)));
    table = table
        .span("busy_s", told(|t| t.busy))
        .span("rwnd_limited_s", told(|t| t.rwnd_limited))
        .span("sndbuf_limited_s", told(|t| t.sndbuf_limited));
    for (cause, name) in LIMITS.iter().enumerate() {
        table = table.span(name, held.iter().map(|h| h.as_ref().map_or(Span::MAX, |h| h.0[cause])));
    }
    table
}

/// What held flows back, over intervals.
fn limits(rows: &[LimitRow]) -> Table {
    let mut table =
        Table::new("limits").time("t_s", rows.iter().map(|r| r.t)).u4("flow", rows.iter().map(|r| r.flow));
    for (cause, name) in LIMITS.iter().enumerate() {
        table = table.span(name, rows.iter().map(|r| r.held[cause]));
    }
    table
}

/// Columns of time by cause, in the order of [`ackclock_tcp::Hold`].
const LIMITS: [&str; 9] = [
    "limit_handshake_s",
    "limit_application_s",
    "limit_rwnd_s",
    "limit_sndbuf_s",
    "limit_cwnd_s",
    "limit_pacing_s",
    "limit_recovery_s",
    "limit_timeout_s",
    "limit_idle_s",
];

fn fetches(fetches: &[FetchRow]) -> Table {
    let rows = || fetches.iter();
    let counts = || fetches.iter().map(|f| &f.counts);
    let stats = || fetches.iter().map(|f| &f.counts.server);
    let elapsed = |f: &FetchRow, t: Time| if t == Time::NEVER { f64::NAN } else { (t - f.start).as_secs() };
    Table::new("fetches")
        .u4("flow", rows().map(|f| f.flow))
        .u4("idx", rows().map(|f| f.idx))
        .time("start_s", rows().map(|f| f.start))
        .f8("connect_s", rows().map(|f| elapsed(f, f.connected)))
        .f8("first_byte_s", rows().map(|f| elapsed(f, f.first_byte)))
        .f8("total_s", rows().map(|f| elapsed(f, f.completed)))
        .i8("bytes", rows().map(|f| f.bytes))
        .flag("done", rows().map(|f| f.completed != Time::NEVER))
        .i8("syn_retransmissions", counts().map(|c| c.syn_retransmissions))
        .i8("synack_retransmissions", counts().map(|c| c.synack_retransmissions))
        .i8("request_retransmissions", counts().map(|c| c.request_retransmissions))
        .i8("data_retransmissions", stats().map(|s| s.retransmissions))
        .i8("data_rtos", stats().map(|s| s.rtos))
        .i8("rtos_open", stats().map(|s| s.rtos_open))
        .i8("rtos_disorder", stats().map(|s| s.rtos_disorder))
        .i8("rtos_recovery", stats().map(|s| s.rtos_recovery))
        .i8("rtos_loss", stats().map(|s| s.rtos_loss))
        .i8("data_segments_sent", stats().map(|s| s.data_segments_sent))
        .i8("lost_retransmits", stats().map(|s| s.lost_retransmits))
        .i8("recoveries", stats().map(|s| s.recoveries))
        .i8("tlps", stats().map(|s| s.tlps))
        .i8("undos", stats().map(|s| s.undos))
        .i8("dsacks", stats().map(|s| s.dsacks_received))
        .u4("cwnd_end", counts().map(|c| c.cwnd_end))
        .ssthresh("ssthresh_end", counts().map(|c| c.ssthresh_end))
}

fn recoveries(recoveries: &[(u32, Vec<RecoverySummary>)]) -> Table {
    let all = recoveries.iter().flat_map(|(idx, of_connection)| of_connection.iter().map(move |r| (*idx, r)));
    let mut all: Vec<(u32, &RecoverySummary)> = all.collect();
    all.sort_by_key(|(idx, r)| (r.flow, *idx, r.t_enter));
    let rows = || all.iter().map(|(_, r)| r);
    Table::new("recoveries")
        .u4("flow", rows().map(|r| r.flow))
        .u4("idx", all.iter().map(|(idx, _)| *idx))
        .flag("responder", rows().map(|r| r.responder))
        .time("t_enter_s", rows().map(|r| r.t_enter))
        .time("t_exit_s", rows().map(|r| r.t_exit))
        .u4("pipe_enter", rows().map(|r| r.pipe_enter))
        .ssthresh("ssthresh", rows().map(|r| r.ssthresh))
        .u4("cwnd_enter", rows().map(|r| r.cwnd_enter))
        .u4("losses", rows().map(|r| r.losses))
        .u4("retransmits", rows().map(|r| r.retransmits))
        .u4("lost_retransmits", rows().map(|r| r.lost_retransmits))
        .u4("max_burst", rows().map(|r| r.max_burst))
        .u4("acks", rows().map(|r| r.acks))
        .u4("cwnd_before_exit", rows().map(|r| r.cwnd_before_exit))
        .u4("cwnd_after_exit", rows().map(|r| r.cwnd_after_exit))
        .u4("pipe_exit", rows().map(|r| r.pipe_exit))
        .span("srtt_s", rows().map(|r| r.srtt))
        .text("cause", &ExitCause::NAMES, rows().map(|r| r.cause as u32))
}

/// What passed the links.
pub fn links(counters: &[impl Borrow<Counters>], names: Vec<String>) -> Table {
    let rows = || counters.iter().map(Borrow::borrow);
    let sum = |classes: &[u64; 4], of: &[Class]| of.iter().map(|&class| classes[class as usize]).sum();
    const SET_UP: [Class; 2] = [Class::Syn, Class::Fin];
    Table::new("links")
        .u4("link", 0..counters.len() as u32)
        .names("name", names)
        .i8("arrivals", rows().map(|c| c.arrivals))
        .i8("arrivals_data", rows().map(|c| sum(&c.arrivals_by_class, &[Class::Data])))
        .i8("arrivals_syn_fin", rows().map(|c| sum(&c.arrivals_by_class, &SET_UP)))
        .i8("dropped_loss", rows().map(|c| c.dropped_loss))
        .i8("dropped_queue", rows().map(|c| c.dropped_queue))
        .i8("dropped_queue_data", rows().map(|c| sum(&c.dropped_by_class, &[Class::Data])))
        .i8("dropped_queue_syn_fin", rows().map(|c| sum(&c.dropped_by_class, &SET_UP)))
        .i8("dropped_before", rows().map(|c| c.dropped_before))
        .i8("delivered", rows().map(|c| c.delivered))
        .i8("held", rows().map(|c| c.held))
        .i8("held_before", rows().map(|c| c.held_before))
        .i8("marked", rows().map(|c| c.marked))
        .i8("bytes_delivered", rows().map(|c| c.bytes_delivered))
        .f8("mean_packets", rows().map(|c| c.mean_packets))
        .u4("max_packets", rows().map(|c| c.max_packets))
        .f8("mean_wait_s", rows().map(|c| c.mean_wait_s))
        .span("max_wait_s", rows().map(|c| c.max_wait))
        .i8("seconds_queued", rows().map(|c| c.seconds_queued))
        .span("busy_s", rows().map(|c| c.busy))
        .i8("opportunities", rows().map(|c| c.opportunities))
        .i8("opportunities_used", rows().map(|c| c.opportunities_used))
}

fn hosts(world: &mut World) -> Table {
    let end = world.now();
    let (names, sums): (Vec<String>, Vec<_>) = world.host_sums().into_iter().unzip();
    let names = names.iter().map(|name| name.trim_start_matches("host.").to_string()).collect();
    let rows = || sums.iter();
    Table::new("hosts")
        .names("host", names)
        .f8("stalled_share", rows().map(|s| s.stalled.as_secs() / end.as_secs()))
        .i8("stalls", rows().map(|s| s.stalls))
        .span("longest_stall_s", rows().map(|s| s.longest_stall))
        .span("cpu_wait_s", rows().map(|s| s.waited))
        .i8("interrupts", rows().map(|s| s.interrupts.times))
        .i8("interrupt_packets", rows().map(|s| s.interrupts.packets))
        .u4("largest_interrupt", rows().map(|s| s.interrupts.largest))
        .i8("merged_packets", rows().map(|s| s.interrupts.merged))
        .i8("batches", rows().map(|s| s.batches.times))
        .i8("batch_packets", rows().map(|s| s.batches.packets))
        .u4("largest_batch", rows().map(|s| s.batches.largest))
        .i8("device_packets", rows().map(|s| s.device.sent))
        .i8("device_refused", rows().map(|s| s.device.refused))
        .i8("device_marked", rows().map(|s| s.device.marked))
        .u4("device_max_packets", rows().map(|s| s.device.most))
        .f8("device_mean_wait_s", rows().map(|s| s.device.mean_wait_s()))
}

fn destinations(known: &[(String, DestinationMetrics)]) -> Table {
    let set = |segments: u32| if segments == 0 { f64::NAN } else { segments as f64 };
    let rows = || known.iter().map(|(_, cache)| cache);
    Table::new("destinations")
        .names("destination", known.iter().map(|(name, _)| name.clone()).collect())
        .f8("ssthresh_segments", rows().map(|c| set(c.ssthresh)))
        .f8("cwnd_segments", rows().map(|c| set(c.cwnd)))
        .time("saved_s", rows().map(|c| c.saved))
}

fn goodput(rows: &[GoodputRow]) -> Table {
    Table::new("goodput")
        .time("t_s", rows.iter().map(|r| r.t))
        .u4("flow", rows.iter().map(|r| r.flow))
        .f8("goodput_bps", rows.iter().map(|r| r.bps))
        .f8("delivered_bps", rows.iter().map(|r| r.delivered_bps))
}

fn queue_samples(rows: &[QueueRow]) -> Table {
    Table::new("queue_samples")
        .time("t_s", rows.iter().map(|r| r.t))
        .u4("link", rows.iter().map(|r| r.link))
        .u4("packets", rows.iter().map(|r| r.packets))
}

fn samples(samples: &[SampleRow]) -> Table {
    let rows = || samples.iter();
    let told = |of: fn(&Times) -> Span| samples.iter().map(move |r| r.times.as_ref().map_or(Span::MAX, of));
    Table::new("samples")
        .time("t_s", rows().map(|r| r.t))
        .u4("flow", rows().map(|r| r.flow))
        .u4("cwnd", rows().map(|r| r.cwnd))
        .ssthresh("ssthresh", rows().map(|r| r.ssthresh))
        .span("srtt_s", rows().map(|r| r.srtt))
        .u4("in_flight", rows().map(|r| r.in_flight))
        .text("ca_state", &CaState::NAMES, rows().map(|r| r.ca_state as u32))
        .i8("bytes_acked", rows().map(|r| r.bytes_acked))
        .i8("retransmissions", rows().map(|r| r.retransmissions))
        .i8("rwnd", rows().map(|r| u64::from(r.rwnd)))
        .span("busy_s", told(|t| t.busy))
        .span("rwnd_limited_s", told(|t| t.rwnd_limited))
        .span("sndbuf_limited_s", told(|t| t.sndbuf_limited))
}

fn drop_rows(drops: &[Dropped]) -> Table {
    let rows = || drops.iter();
    let reason = |d: &Dropped| match d.reason {
        Refused::Loss => 0,
        Refused::QueueFull => 1,
        Refused::Aqm => 2,
    };
    Table::new("drops")
        .time("t_s", rows().map(|d| d.t))
        .u4("link", rows().map(|d| d.link))
        .u4("flow", rows().map(|d| d.packet.flow))
        .u4("seg_no", rows().map(|d| d.packet.header.ordinal().0))
        .u1("rexmit", rows().map(|d| d.packet.header.ordinal().1))
        .flag("forward", rows().map(|d| d.packet.forward))
        .u4("bytes", rows().map(|d| d.packet.bytes))
        .text("reason", &["loss", "queue", "aqm"], rows().map(reason))
}

fn acks(records: &[(u32, Vec<Record>)]) -> Table {
    let rows = || records.iter().flat_map(|(_, records)| records);
    let idx = records.iter().flat_map(|(idx, records)| std::iter::repeat_n(*idx, records.len()));
    let edge = |r: &Record, block: usize, end: bool| if end { r.sack[block].1 } else { r.sack[block].0 };
    // NaN where a deadline or a length of time is not set
    let when = |t: Time| seconds(t);
    Table::new("acks")
        .time("t_s", rows().map(|r| r.t))
        .i8("t_ns", rows().map(|r| r.t.0))
        .u4("flow", rows().map(|r| r.flow))
        .flag("responder", rows().map(|r| r.responder))
        .text("event", &Event::NAMES, rows().map(|r| r.event as u32))
        .u4("ack_no", rows().map(|r| r.ack_no))
        .i8("seq", rows().map(|r| r.seq))
        .u4("len", rows().map(|r| r.len))
        .u4("seg_no", rows().map(|r| r.seg_no))
        .u1("rexmit", rows().map(|r| r.rexmit))
        .u1("sack_blocks", rows().map(|r| r.sack_blocks))
        .i8("sack0_start", rows().map(|r| edge(r, 0, false)))
        .i8("sack0_end", rows().map(|r| edge(r, 0, true)))
        .i8("sack1_start", rows().map(|r| edge(r, 1, false)))
        .i8("sack1_end", rows().map(|r| edge(r, 1, true)))
        .i8("sack2_start", rows().map(|r| edge(r, 2, false)))
        .i8("sack2_end", rows().map(|r| edge(r, 2, true)))
        .flag("dsack", rows().map(|r| r.dsack))
        .flag("is_dup", rows().map(|r| r.is_dup))
        .u4("newly_sacked", rows().map(|r| r.newly_sacked))
        .u4("delivered", rows().map(|r| r.delivered))
        .u4("newly_lost", rows().map(|r| r.newly_lost))
        .u4("lost_retransmits", rows().map(|r| r.lost_retransmits))
        .flag("safe_ack", rows().map(|r| r.safe_ack))
        .u4("cwnd_before", rows().map(|r| r.cwnd_before))
        .u4("cwnd", rows().map(|r| r.cwnd))
        .ssthresh("ssthresh", rows().map(|r| r.ssthresh))
        .u4("pipe_before", rows().map(|r| r.pipe_before))
        .u4("pipe", rows().map(|r| r.pipe))
        .u4("flight_size", rows().map(|r| r.flight_size))
        .u4("sacked_out", rows().map(|r| r.sacked_out))
        .u4("lost_out", rows().map(|r| r.lost_out))
        .u4("retrans_out", rows().map(|r| r.retrans_out))
        .u4("rwnd", rows().map(|r| r.rwnd))
        .text("ca_state", &CaState::NAMES, rows().map(|r| r.ca_state as u32))
        .i8("recovery_point", rows().map(|r| r.recovery_point))
        .u4("reordering", rows().map(|r| r.reordering))
        .text("branch", &Branch::NAMES, rows().map(|r| r.rule.branch as u32))
        .u4("sndcnt", rows().map(|r| r.rule.sndcnt))
        .u4("prr_delivered", rows().map(|r| r.rule.prr_delivered))
        .u4("prr_out", rows().map(|r| r.rule.prr_out))
        .u4("recover_fs", rows().map(|r| r.rule.recover_fs))
        .span("rto_s", rows().map(|r| r.rto))
        .u1("backoff", rows().map(|r| r.backoff))
        .span("srtt_s", rows().map(|r| r.srtt))
        .span("rttvar_s", rows().map(|r| r.rttvar))
        .span("min_rtt_s", rows().map(|r| r.min_rtt))
        .span("reo_wnd_s", rows().map(|r| r.reo_wnd))
        .f8("deadline_s", rows().map(|r| when(r.deadline)))
        .u4("idx", idx)
}

/// The controllers' variables: one column for each name that any of them has, NaN in the rows of the others.
fn controllers(flows: &[Flow], traces: &[(FlowId, u32, VarsTrace)]) -> Table {
    let rows =
        || traces.iter().flat_map(|(flow, idx, trace)| trace.rows.iter().map(move |r| (*flow, *idx, r)));
    let pacing = |r: &VarsRow| match r.pacing_rate {
        Window::UNPACED => f64::NAN,
        rate => rate as f64 * 8.0,
    };
    let mut table = Table::new("controllers")
        .time("t_s", rows().map(|(_, _, r)| r.t))
        .u4("flow", rows().map(|(flow, _, _)| flow))
        .u4("idx", rows().map(|(_, idx, _)| idx))
        .u4("ack_no", rows().map(|(_, _, r)| r.ack_no))
        .u4("cwnd", rows().map(|(_, _, r)| r.cwnd))
        .ssthresh("ssthresh", rows().map(|(_, _, r)| r.ssthresh))
        .f8("pacing_bps", rows().map(|(_, _, r)| pacing(r)));
    let mut names: Vec<&'static str> = Vec::new();
    let recorded = flows.iter().filter(|f| f.controller_trace.is_some()).filter_map(|f| f.config.tcp());
    for name in recorded.flat_map(|config| config.controller.needs().vars) {
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

/// PCC's monitor intervals in order of their results.
pub fn intervals(flows: &mut [(FlowId, Vec<IntervalRow>)]) -> Table {
    flows.sort_by_key(|(flow, _)| *flow);
    let rows = || flows.iter().flat_map(|(flow, rows)| rows.iter().map(move |row| (*flow, row)));
    let measured = || rows().map(|(_, row)| &row.measured);
    Table::new("intervals")
        .u4("flow", rows().map(|(flow, _)| flow))
        .u4("interval", measured().map(|m| m.id))
        .time("start_s", measured().map(|m| m.start))
        .time("end_s", measured().map(|m| m.end))
        .time("known_s", measured().map(|m| m.known))
        .text("state", &STATES, rows().map(|(_, row)| state(row.state)))
        .f8("rate_bps", measured().map(|m| m.rate))
        .f8("send_rate_bps", measured().map(|m| m.rate_mbps() * 1e6))
        .u4("sent", measured().map(|m| m.sent))
        .u4("lost", measured().map(|m| m.lost))
        .f8("utility", rows().map(|(_, row)| row.utility))
        .f8("mean_rtt_s", measured().map(|m| if m.rtt_mean > 0.0 { m.rtt_mean } else { f64::NAN }))
        .f8("rtt_gradient", measured().map(|m| m.rtt_gradient))
        .f8("rtt_deviation_s", measured().map(|m| m.rtt_deviation))
        .flag("limited", measured().map(|m| m.limited))
}

const STATES: [&str; 4] = ["starting", "decision", "adjusting", "probing"];

fn state(name: &str) -> u32 {
    STATES.iter().position(|s| *s == name).expect("invariant: states of its controllers") as u32
}

/// Plain datagram flows.
pub fn datagrams(flows: &mut [DatagramRow]) -> Table {
    flows.sort_by_key(|row| row.flow);
    let rows = || flows.iter();
    let received = || flows.iter().map(|row| &row.received);
    let share = |n: u64, of: u64| if of == 0 { f64::NAN } else { n as f64 / of as f64 };
    let mean = |sum: u128, n: u64| if n == 0 { f64::NAN } else { sum as f64 / n as f64 * 1e-9 };
    let seen = |r: &Received, delay: Span| if r.packets == 0 { f64::NAN } else { delay.as_secs() };
    let quantile = |r: &Received, share: f64| r.delay_quantile(share).map_or(f64::NAN, Span::as_secs);
    Table::new("datagrams")
        .u4("flow", rows().map(|row| row.flow))
        .i8("sent", rows().map(|row| row.sent))
        .i8("received", received().map(|r| r.packets))
        .i8("lost", received().map(Received::lost))
        .f8("loss_rate", received().map(|r| share(r.lost(), r.expected)))
        .i8("reordered", received().map(|r| r.reordered))
        .i8("bytes_received", received().map(|r| r.bytes))
        .f8("mean_delay_s", received().map(|r| mean(r.delay_sum_ns, r.packets)))
        .f8("min_delay_s", received().map(|r| seen(r, r.delay_min)))
        .f8("p50_delay_s", received().map(|r| quantile(r, 0.5)))
        .f8("p95_delay_s", received().map(|r| quantile(r, 0.95)))
        .f8("p99_delay_s", received().map(|r| quantile(r, 0.99)))
        .f8("max_delay_s", received().map(|r| seen(r, r.delay_max)))
        .f8(
            "mean_delay_variation_s",
            received().map(|r| mean(r.variation_sum_ns, r.packets.saturating_sub(1))),
        )
        .f8("jitter_s", received().map(|r| seen(r, r.jitter())))
}

/// Clients of populations, as drawn.
pub fn clients(clients: &[ClientRow]) -> Table {
    let rows = || clients.iter();
    Table::new("clients")
        .u4("flow", rows().map(|c| c.flow))
        .span("rtt_s", rows().map(|c: &ClientRow| -> Span { c.rtt }))
        .i8("rate_bps", rows().map(|c| c.rate_bps))
        .f8("loss", rows().map(|c| c.loss))
        .i8("bytes", rows().map(|c| c.bytes))
}

/// A row for each transaction.
pub fn transactions(transactions: &[TransactionRow]) -> Table {
    let rows = || transactions.iter();
    let since =
        |r: &TransactionRow, t: Time| if t == Time::NEVER { f64::NAN } else { (t - r.arrival).as_secs() };
    let connect = |r: &TransactionRow| if r.request > 0 { f64::NAN } else { since(r, r.connected) };
    Table::new("transactions")
        .u4("flow", rows().map(|r| r.flow))
        .u4("idx", rows().map(|r| r.idx))
        .u4("batch", rows().map(|r| r.batch))
        .u4("request", rows().map(|r| r.request))
        .u4("initial_window", rows().map(|r| r.iw))
        .time("arrival_s", rows().map(|r| r.arrival))
        .f8("connect_s", rows().map(connect))
        .f8("first_byte_s", rows().map(|r| since(r, r.first_byte)))
        .f8("total_s", rows().map(|r| since(r, r.completed)))
        .i8("bytes", rows().map(|r| r.bytes))
        .flag("done", rows().map(|r| r.completed != Time::NEVER))
        .flag("failed", rows().map(|r| r.failed))
        .i8("segments_sent", rows().map(|r| r.counts.segments_sent))
        .i8("retransmissions", rows().map(|r| r.counts.retransmissions))
        .i8("rtos", rows().map(|r| r.counts.rtos))
        .i8("syn_retransmissions", rows().map(|r| r.counts.syn_retransmissions))
        .i8("synack_retransmissions", rows().map(|r| r.counts.synack_retransmissions))
}

/// Sums and quantiles by group and initial window.
pub fn transaction_summary(tallies: &[Tally]) -> Table {
    let rows = || tallies.iter();
    // the middle of a bin may lie beyond the extremes
    let quantile =
        |p: f64| rows().map(move |t| t.times.quantile(p).map_or(Span::MAX, |s| s.clamp(t.least, t.most)));
    let ended = |t: &Tally, span: Span| if t.completed == 0 { Span::MAX } else { span };
    Table::new("transaction_summary")
        .u4("group", rows().map(|t| t.group))
        .u4("initial_window", rows().map(|t| t.iw))
        .i8("started", rows().map(|t| t.started))
        .i8("completed", rows().map(|t| t.completed))
        .i8("failed", rows().map(|t| t.failed))
        .i8("incomplete", rows().map(|t| t.incomplete()))
        .i8("refused", rows().map(|t| t.refused))
        .u4("max_open", rows().map(|t| t.max_open))
        .i8("bytes", rows().map(|t| t.bytes))
        .i8("offered_bytes", rows().map(|t| t.offered_bytes))
        .f8("mean_s", rows().map(|t| t.mean_s()))
        .f8("std_s", rows().map(|t| t.deviation_s()))
        .span("min_s", rows().map(|t| t.least))
        .span("p50_s", quantile(0.5))
        .span("p95_s", quantile(0.95))
        .span("p99_s", quantile(0.99))
        .span("p999_s", quantile(0.999))
        .span("max_s", rows().map(|t| ended(t, t.most)))
        .f8("mean_connect_s", rows().map(|t| t.mean_connect_s()))
        .i8("segments_sent", rows().map(|t| t.counts.segments_sent))
        .i8("retransmissions", rows().map(|t| t.counts.retransmissions))
        .i8("rtos", rows().map(|t| t.counts.rtos))
        .i8("syn_retransmissions", rows().map(|t| t.counts.syn_retransmissions))
        .i8("synack_retransmissions", rows().map(|t| t.counts.synack_retransmissions))
}

/// Histograms of the times that transactions took.
pub fn transaction_times(tallies: &[Tally]) -> Table {
    let bins: Vec<_> = tallies.iter().flat_map(|t| t.times.bins().map(move |bin| (t, bin))).collect();
    let rows = || bins.iter();
    Table::new("transaction_times")
        .u4("group", rows().map(|(t, _)| t.group))
        .u4("initial_window", rows().map(|(t, _)| t.iw))
        .span("low_s", rows().map(|(_, bin)| bin.0))
        .span("high_s", rows().map(|(_, bin)| bin.1))
        .i8("count", rows().map(|(_, bin)| bin.2))
}
