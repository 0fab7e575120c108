//! What the tables of a run mean: each table and each column, with its unit and with what it means that a row has nothing there.
//! `ackclock tables` and the reference are made of it, and a test compares it with what [`output`](crate::output) hands out,
//! so that no column is without its line.
//!
//! Length: a list; a column is looked up here, not read through.

use crate::run::{parse, run};
use crate::table::Column;

/// A table of a run.
#[derive(Clone, Copy, Debug)]
pub struct TableAbout {
    /// Its name.
    pub name: &'static str,
    /// What a row is, and when there are any.
    pub about: &'static str,
    /// Its columns in order; of `controllers` those that any controller has.
    pub columns: &'static [ColumnAbout],
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct ColumnAbout {
    /// Its name.
    pub name: &'static str,
    /// Unit of its values; empty for names, numbers of things and truth values.
    pub unit: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// What it means that there is nothing; empty: that does not occur.
    pub null: &'static str,
}

/// The types of a table's columns, in order, as the engine hands them out: taken from a run in which nothing happens.
pub fn types() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    let scenario = parse(
        r#"{"duration_ns": 1, "network": {"topology": "chain", "bottleneck": {"rate": 1000000}},
        "flows": [{"profile": "linux-6", "congestion_control": "reno", "workload": {"kind": "bulk"}}]}"#,
    );
    let output = scenario.and_then(|scenario| run(&scenario, 0)).expect("invariant: a scenario of ours");
    let typed = |(name, column): &(&'static str, Column)| (*name, column.kind());
    output.tables.iter().map(|table| (table.name, table.columns.iter().map(typed).collect())).collect()
}

/// `table: "about" { column [unit]: "meaning", or "what null means"; }`
macro_rules! tables {
    ($($table:ident: $about:literal { $($column:ident $([$unit:literal])?: $meaning:literal $(, or $null:literal)?;)* })*) => {
        /// All tables, in the order in which a run hands them out.
        pub const TABLES: &[TableAbout] = &[$(TableAbout {
            name: stringify!($table),
            about: $about,
            columns: &[$(ColumnAbout {
                name: stringify!($column),
                unit: concat!($($unit)?),
                meaning: $meaning,
                null: concat!($($null)?),
            }),*],
        }),*];
    };
}

tables! {
    flows: "One row per flow, always. What it counts, it counts over the whole run, at the host that sends the data." {
        flow: "Number of the flow: from 0, through the groups in order.";
        group: "Number of its group in the scenario, from 0.";
        start_s ["s"]: "When it starts.";
        established_s ["s"]: "When the handshake of its first connection was complete at the end that opened it.", or "no handshake was completed, or the transport has none";
        stop_s ["s"]: "When its application stops: as the scenario says, with its last byte acknowledged, or at the end of the run.";
        completion_s ["s"]: "From its start until all its data was acknowledged, or its last response complete.", or "it did not complete";
        bytes_acked ["bytes"]: "Payload acknowledged to the sending host; received, where nobody acknowledges.";
        goodput_bps ["bit/s"]: "Payload acknowledged until `stop_s`, over the time from `start_s` to `stop_s`.", or "the flow did not take place";
        sent_packets ["packets"]: "Segments or datagrams with data that were sent, retransmissions included.";
        retransmissions ["packets"]: "Of these, retransmissions.";
        rtos: "Retransmission timeouts that struck data.";
        rtos_open: "Of these, in state Open.";
        rtos_disorder: "In state Disorder.";
        rtos_recovery: "In state Recovery.";
        rtos_loss: "In state Loss: one timeout after another.";
        tlps: "Tail loss probes (RFC 8985 §7).";
        recoveries: "Episodes of fast recovery.";
        lost_retransmits ["segments"]: "Retransmissions that were found lost in turn.";
        undos: "Reductions of the window that were taken back.";
        spurious_rtos: "Timeouts that proved needless (F-RTO, RFC 5682).";
        dsacks: "ACKs with a DSACK (RFC 2883) that the sender received.";
        syn_retransmissions: "SYNs and SYN-ACKs sent again by either end.";
        acks_received: "ACKs that the sender received; of PCC, reports.";
        mean_rtt_s ["s"]: "Mean of all samples of the RTT.", or "there was no sample";
        min_rtt_s ["s"]: "The least of them.", or "there was no sample";
        slow_start_end_s ["s"]: "When its first slow start ended.", or "it did not end, or the transport has none";
        slow_start_by: "Why: \"rule\" (the slow start said so), \"loss\", \"mark\", \"timeout\", \"threshold\" (cwnd came to an ssthresh that was set before, or the controller set one); empty: it did not end.";
        slow_start_cwnd ["segments"]: "cwnd then, before it was reduced.", or "it did not end";
        slow_start_ssthresh ["segments"]: "ssthresh from then on.", or "it did not end";
        slow_start_lost ["segments"]: "Segments marked lost up to two round trips later.", or "it did not end";
        send_rate_bps ["bit/s"]: "PCC: payload sent, retransmissions included, from `start_s` to `stop_s`.", or "it is not a PCC flow";
        lost_packets ["packets"]: "PCC: datagrams taken as lost.", or "it is not a PCC flow";
        intervals: "PCC: monitor intervals.", or "it is not a PCC flow";
        failed: "Whether a connection gave up.";
        departure_cv: "Coefficient of variation of the gaps between the departures of its data from the host: 0 is even.", or "there were fewer than two gaps, or all packets left at once";
        largest_burst ["packets"]: "Most packets that left back to back, each by the time that the first link had sent the one before.";
    }
    performance: "One row for each flow, then for each group, then for the whole run, all after the warm-up; with `record.performance`." {
        of: "What the row is about: \"flow\", \"group\" or \"run\".";
        number: "Number of the flow or of the group; 0 for the run.";
        group: "Number of the group.", or "the row is about the run";
        flows: "How many flows it is about.";
        goodput_bps ["bit/s"]: "Payload acknowledged after the warm-up, over the time that the flow ran in it; of groups and the run, the sum.", or "the flow had no time after the warm-up";
        share: "Its part of the run's goodput, 0 to 1.", or "nothing was delivered";
        bytes_acked ["bytes"]: "Payload acknowledged.";
        sent_packets ["packets"]: "Segments or datagrams with data that were sent, retransmissions included.";
        retransmissions ["packets"]: "Of these, retransmissions.";
        retransmission_share: "Retransmissions by packets sent, 0 to 1.", or "nothing was sent";
        rtos: "Retransmission timeouts that struck data.";
        dropped_packets ["packets"]: "Data packets that links or queues dropped.";
        loss_share: "These, of all data packets that were dropped or arrived, 0 to 1.", or "there was none";
        mean_rtt_s ["s"]: "Mean of all samples of the RTT.", or "there was no sample";
        p50_rtt_s ["s"]: "Their median, to within 0.4 %.", or "there was no sample";
        p95_rtt_s ["s"]: "Their 95th percentile, to within 0.4 %.", or "there was no sample";
        p99_rtt_s ["s"]: "Their 99th percentile, to within 0.4 %.", or "there was no sample";
        mean_delay_s ["s"]: "Mean time that data packets spent between the hosts, one way.", or "none arrived";
        p50_delay_s ["s"]: "Median of these times, to within 0.4 %.", or "none arrived";
        p95_delay_s ["s"]: "Their 95th percentile, to within 0.4 %.", or "none arrived";
        p99_delay_s ["s"]: "Their 99th percentile, to within 0.4 %.", or "none arrived";
        time_to_share_s ["s"]: "From the flow's start until its goodput over 1/32 of the run first reached 90 % of an equal share of what all flows had.", or "it never did, it ran alone, or the row is not about a flow";
    }
    fetches: "One row per fetch or burst; with the workloads `fetch`, `population` and `bursts`. What went wrong is counted until the client's FIN reached the server." {
        flow: "Number of the flow.";
        idx: "Number of the fetch within the flow, from 0.";
        start_s ["s"]: "When it began.";
        connect_s ["s"]: "From the start until the connection was set up at the client.", or "it was not, or the fetch used one that stood";
        first_byte_s ["s"]: "From the start until the first byte of the response.", or "none came";
        total_s ["s"]: "From the start until the last byte of the response.", or "it did not come";
        bytes ["bytes"]: "Size of the response.";
        done: "Whether all of it came.";
        syn_retransmissions: "SYNs that the client sent again.";
        synack_retransmissions: "SYN-ACKs that the server sent again.";
        request_retransmissions ["segments"]: "Retransmissions of the client's request.";
        data_retransmissions ["segments"]: "Retransmissions of the response.";
        data_rtos: "Retransmission timeouts that struck the response.";
        rtos_open: "Of these, in state Open.";
        rtos_disorder: "In state Disorder.";
        rtos_recovery: "In state Recovery.";
        rtos_loss: "In state Loss.";
        data_segments_sent ["segments"]: "Segments of the response that were sent, retransmissions included.";
        lost_retransmits ["segments"]: "Retransmissions that were found lost in turn.";
        recoveries: "Episodes of fast recovery.";
        tlps: "Tail loss probes.";
        undos: "Reductions of the window that were taken back.";
        dsacks: "ACKs with a DSACK that the server received.";
        cwnd_end ["segments"]: "The server's cwnd at the end.";
        ssthresh_end ["segments"]: "Its ssthresh at the end.", or "none was set";
    }
    recoveries: "One row per episode of fast recovery, always." {
        flow: "Number of the flow.";
        idx: "Number of the fetch or transaction within the flow; 0 where there is one connection.";
        responder: "Whether the sender is the end that was connected to.";
        t_enter_s ["s"]: "When it began.";
        t_exit_s ["s"]: "When it ended.";
        pipe_enter ["segments"]: "pipe when it began, before the recovery rule acts.";
        ssthresh ["segments"]: "The window that it aims at.", or "none was set";
        cwnd_enter ["segments"]: "cwnd just before it.";
        losses ["segments"]: "Segments marked lost in it.";
        retransmits ["segments"]: "Retransmissions sent in it.";
        lost_retransmits ["segments"]: "Of these, found lost in turn.";
        max_burst ["segments"]: "Most segments sent on one ACK.";
        acks: "ACKs processed in it.";
        cwnd_before_exit ["segments"]: "cwnd before what the rule does at the end.";
        cwnd_after_exit ["segments"]: "cwnd after it.";
        pipe_exit ["segments"]: "pipe at the end, before anything is sent.";
        srtt_s ["s"]: "Smoothed RTT when it began.";
        cause: "Why it ended: \"full_ack\" (the recovery point was acknowledged), \"rto\", \"undo\", \"run_end\".";
    }
    links: "One row per link and direction, always; each link has one queue. Counted after the warm-up, if the scenario has one. A packet of several segments (`tso`) counts as so many." {
        link: "Number of the link, from 0.";
        name: "Its name, with the direction.";
        arrivals ["packets"]: "Packets offered.";
        arrivals_data ["packets"]: "Of these, with data.";
        arrivals_syn_fin ["packets"]: "Of these, SYNs and FINs.";
        dropped_loss ["packets"]: "Packets that the loss model dropped.";
        dropped_queue ["packets"]: "Packets that the queue dropped: because it was full, or by its own rule.";
        dropped_queue_data ["packets"]: "Of these, with data.";
        dropped_queue_syn_fin ["packets"]: "Of these, SYNs and FINs.";
        delivered ["packets"]: "Packets that left the far end. `arrivals` + `held_before` = `delivered` + `dropped_loss` + `dropped_queue` + `held`.";
        held ["packets"]: "Packets in the link at the end: waiting, in transmission or under way.";
        held_before ["packets"]: "The same when the counting began.";
        marked ["packets"]: "Packets that the queue marked CE.";
        bytes_delivered ["bytes"]: "Bytes that left the far end, as IP packets.";
        mean_packets ["packets"]: "Mean over time of the packets that wait.", or "the backend cannot see it";
        max_packets ["packets"]: "Most packets that waited.";
        mean_wait_s ["s"]: "Mean time that packets waited before their transmission.", or "the backend cannot see it";
        max_wait_s ["s"]: "The longest.", or "the backend cannot see it";
        seconds_queued: "Whole seconds of the run at which packets waited.";
        busy_s ["s"]: "Time spent transmitting; 0 on a link that follows a trace.", or "the backend cannot see it";
        opportunities: "Delivery opportunities of a link that follows a trace.";
        opportunities_used: "Those of which at least a part was used.";
    }
    hosts: "One row per host that the scenario describes; perfect hosts have none." {
        host: "Its name.";
        stalled_share: "Part of the run for which it had no processor, 0 to 1.";
        stalls: "How often that was.";
        longest_stall_s ["s"]: "The longest of them.";
        cpu_wait_s ["s"]: "Time for which processes waited for a core, all together.";
        interrupts: "Interrupts of a card that coalesces them or merges packets.";
        interrupt_packets ["packets"]: "Packets that came with them.";
        largest_interrupt ["packets"]: "Most packets of one interrupt.";
        merged_packets ["packets"]: "Packets that reached the transports with them: fewer where the card merges them (`gro`).";
        batches: "Batches in which a card that gathers packets sent them.";
        batch_packets ["packets"]: "Packets that left in them.";
        largest_batch ["packets"]: "Most packets of one batch.";
        device_packets ["packets"]: "Packets that left its own device (`line_rate`, `queue`).";
        device_refused ["packets"]: "Packets that found the queue of that device full.";
        device_marked ["packets"]: "Packets that it marked CE.";
        device_max_packets ["packets"]: "Most packets that waited there, as TCP hands them down.";
        device_mean_wait_s ["s"]: "Mean time that packets waited there.", or "none left it";
    }
    destinations: "One row per destination that hosts remember (`stack.metrics_cache`), as at the end of the run." {
        destination: "Its name.";
        ssthresh_segments ["segments"]: "ssthresh with which the next connection starts.", or "none is remembered";
        cwnd_segments ["segments"]: "cwnd that is remembered; no connection starts with it.", or "none is remembered";
        saved_s ["s"]: "When the entry was saved last.";
    }
    goodput: "One row per flow and interval; with `record.goodput_interval`." {
        t_s ["s"]: "End of the interval.";
        flow: "Number of the flow.";
        goodput_bps ["bit/s"]: "Payload acknowledged in the interval, by its length.";
    }
    queue_samples: "One row per link and interval; with `record.queue_interval`." {
        t_s ["s"]: "When the queue was looked at.";
        link: "Number of the link.";
        packets ["packets"]: "Packets that wait, without the one in transmission.";
    }
    samples: "One row per open flow and interval; with `record.sample_interval`." {
        t_s ["s"]: "When the sample was taken.";
        flow: "Number of the flow.";
        cwnd ["segments"]: "Congestion window.";
        ssthresh ["segments"]: "Slow-start threshold.", or "none is set yet";
        srtt_s ["s"]: "Smoothed RTT.";
        in_flight ["segments"]: "pipe: segments that the sender believes on the way.";
        ca_state: "Congestion state: \"Open\", \"Disorder\", \"CWR\", \"Recovery\", \"Loss\".";
        bytes_acked ["bytes"]: "Payload acknowledged so far.";
        retransmissions ["segments"]: "Retransmissions so far.";
    }
    drops: "One row per packet that a link dropped; with `record.drops`." {
        t_s ["s"]: "When.";
        link: "Number of the link.";
        flow: "Number of the flow.";
        seg_no: "Number of the segment or datagram within its connection; of a packet without data, 0.";
        rexmit: "Which transmission of it: 0 the first.";
        forward: "Whether the packet went the way of the data.";
        bytes ["bytes"]: "Size of its IP packet.";
        reason: "\"loss\" (the loss model), \"queue\" (full), \"aqm\" (the queue's own rule).";
    }
    acks: "One row per ACK, transmission and timer event at a sender; with `record.trace`. Values are those after the event unless said otherwise." {
        t_s ["s"]: "When.";
        t_ns ["ns"]: "The same, exactly.";
        flow: "Number of the flow.";
        responder: "Whether the sender is the end that was connected to.";
        event: "\"ack\"; \"send\" and \"rtx\" (a new segment, a retransmission); \"rto\", \"tlp\", \"reo_timer\" (timers); \"enter\", \"exit\" (of fast recovery); \"undo\".";
        ack_no: "ACKs received so far, this one included.";
        seq ["bytes"]: "ACK number, or offset of the first byte sent.";
        len ["bytes"]: "Bytes sent, or newly acknowledged cumulatively.";
        seg_no: "Number of the data segment sent; of ACKs, that of the segment at snd_una.";
        rexmit: "Which transmission of it: 0 the first.";
        sack_blocks: "SACK blocks of the ACK.";
        sack0_start ["bytes"]: "First SACK block: offset of its first byte; 0 where there is none.";
        sack0_end ["bytes"]: "Offset behind its last byte; 0 where there is none.";
        sack1_start ["bytes"]: "Second SACK block.";
        sack1_end ["bytes"]: "Its end.";
        sack2_start ["bytes"]: "Third SACK block.";
        sack2_end ["bytes"]: "Its end.";
        dsack: "Whether the ACK carries a DSACK.";
        is_dup: "Whether it is a duplicate ACK (RFC 6675 §2).";
        newly_sacked ["segments"]: "Segments that it SACKs for the first time.";
        delivered ["segments"]: "DeliveredData of this ACK.";
        newly_lost ["segments"]: "Segments marked lost on it.";
        lost_retransmits ["segments"]: "Retransmissions found lost on it.";
        safe_ack: "SafeACK (RFC 9937 §6.2).";
        cwnd_before ["segments"]: "cwnd before the event.";
        cwnd ["segments"]: "cwnd after it.";
        ssthresh ["segments"]: "Slow-start threshold.", or "none is set yet";
        pipe_before ["segments"]: "pipe before the ACK was applied.";
        pipe ["segments"]: "pipe after it, before anything is sent.";
        flight_size ["segments"]: "snd_nxt - snd_una.";
        sacked_out ["segments"]: "Segments marked SACKed.";
        lost_out ["segments"]: "Segments believed lost.";
        retrans_out ["segments"]: "Retransmissions on the way.";
        rwnd ["bytes"]: "The peer's receive window.";
        ca_state: "Congestion state: \"Open\", \"Disorder\", \"CWR\", \"Recovery\", \"Loss\".";
        recovery_point ["bytes"]: "RecoveryPoint (RFC 6675; Linux high_seq).";
        reordering ["segments"]: "Degree of reordering now assumed (DupThresh).";
        branch: "Which branch of its recovery rule set cwnd: \"prop\", \"bound\", \"forced\" (PRR); \"rh_dec\", \"rh_clamp\" (rate halving); \"hold\"; empty outside recovery.";
        sndcnt ["segments"]: "PRR: what this ACK may send.";
        prr_delivered ["segments"]: "PRR: delivered since recovery began.";
        prr_out ["segments"]: "PRR: sent since recovery began.";
        recover_fs ["segments"]: "PRR: RecoverFS (Linux prior_cwnd).";
        rto_s ["s"]: "Retransmission timeout in force.";
        backoff: "How often it was doubled.";
        srtt_s ["s"]: "Smoothed RTT.";
        rttvar_s ["s"]: "Variation of the RTT as the timeout uses it: 4 RTTVAR of RFC 6298.";
        min_rtt_s ["s"]: "Least RTT.", or "there was no sample yet";
        reo_wnd_s ["s"]: "RACK's reordering window.";
        deadline_s ["s"]: "When the sender's timer expires next.", or "it is not armed";
        idx: "Number of the fetch or transaction within the flow; 0 where there is one connection.";
    }
    clients: "One row per client of a population: what it drew." {
        flow: "Number of the flow.";
        rtt_s ["s"]: "Round-trip propagation delay.";
        rate_bps ["bit/s"]: "Rate of its link.";
        loss: "Probability that its link loses a packet, 0 to 1.";
        bytes ["bytes"]: "Size of its response.";
    }
    controllers: "The controllers' own variables, a row per ACK or interval; with `record.controller`. A variable is a column only if a controller of the run has it." {
        t_s ["s"]: "When.";
        flow: "Number of the flow.";
        idx: "Number of the fetch or transaction within the flow; 0 where there is one connection.";
        ack_no: "ACKs received so far.";
        cwnd ["segments"]: "Congestion window.";
        ssthresh ["segments"]: "Slow-start threshold.", or "none is set yet";
        pacing_bps ["bit/s"]: "Pacing rate.", or "the sender does not pace";
        estimate_bps ["bit/s"]: "Rate that the controller takes the path to give it (BBR's bw, Westwood's estimate).", or "the flow's controller has no such variable";
        rtt_min_s ["s"]: "Westwood: least RTT.", or "no sample yet, or no such variable";
        base_rtt_s ["s"]: "Delay-based controllers: RTT without queues, as far as they know.", or "no sample yet, or no such variable";
        avg_rtt_s ["s"]: "FAST: mean RTT.", or "no sample yet, or no such variable";
        queued_packets ["packets"]: "FAST, Vegas: packets that the controller takes to wait in queues.", or "no sample yet, or no such variable";
        target_segments ["segments"]: "FAST: the window that it steers to.", or "no sample yet, or no such variable";
        sample_bps ["bit/s"]: "Westwood: latest sample of the rate.", or "the flow's controller has no such variable";
        interval_s ["s"]: "Westwood: interval over which it was taken.", or "none yet, or no such variable";
        tau_s ["s"]: "Westwood: time constant of its filter.", or "none yet, or no such variable";
        u_bps ["bit/s"]: "Westwood, ABSE: U, how much the samples vary.", or "the flow's controller has no such variable";
        u_max_bps ["bit/s"]: "Westwood, ABSE: the greatest U of late.", or "the flow's controller has no such variable";
        sample_rtt_s ["s"]: "Westwood: latest RTT.", or "no sample yet, or no such variable";
        min_rtt_s ["s"]: "BBR: least RTT of the last ten seconds.", or "no sample yet, or no such variable";
        mode: "BBR: 0 Startup, 1 Drain, 2 ProbeBW (version 3: 2.0 to 2.3, its phases DOWN, CRUISE, REFILL, UP), 3 ProbeRTT.", or "the flow's controller has no such variable";
        pacing_gain: "BBR: gain of the pacing rate.", or "the flow's controller has no such variable";
        cwnd_gain: "BBR: gain of cwnd.", or "the flow's controller has no such variable";
        inflight_longterm ["segments"]: "BBR version 3: bound learnt from losses, long term.", or "no bound yet, or no such variable";
        inflight_shortterm ["segments"]: "BBR version 3: bound learnt from losses, short term.", or "no bound yet, or no such variable";
        delay_s ["s"]: "LEDBAT++: queueing delay.", or "no such variable";
        delay_window_segments ["segments"]: "Compound: the part of the window that delay controls.", or "no such variable";
        alpha: "DCTCP and Prague: estimated share of marked packets, 0 to 1.", or "no such variable";
        frac_cwnd ["segments"]: "Prague: the window with its fraction, which cwnd follows by a segment per ACK.", or "no such variable";
    }
    datagrams: "One row per flow of plain datagrams, always." {
        flow: "Number of the flow.";
        sent ["packets"]: "Datagrams sent.";
        received ["packets"]: "Datagrams that arrived.";
        lost ["packets"]: "Numbers below the largest that arrived which did not arrive.";
        loss_rate: "These, of all numbers up to the largest that arrived, 0 to 1.", or "none arrived";
        reordered ["packets"]: "Arrivals behind one with a larger number.";
        bytes_received ["bytes"]: "Payload that arrived.";
        mean_delay_s ["s"]: "Mean one-way delay.", or "none arrived";
        min_delay_s ["s"]: "The least.", or "none arrived";
        p50_delay_s ["s"]: "The median, to within 1/64.", or "none arrived";
        p95_delay_s ["s"]: "The 95th percentile, to within 1/64.", or "none arrived";
        p99_delay_s ["s"]: "The 99th percentile, to within 1/64.", or "none arrived";
        max_delay_s ["s"]: "The greatest.", or "none arrived";
        mean_delay_variation_s ["s"]: "Mean difference of the delays of one arrival and the next.", or "fewer than two arrived";
        jitter_s ["s"]: "Interarrival jitter at the end, by the estimator of RFC 3550 §6.4.1.", or "none arrived";
    }
    intervals: "One row per monitor interval of PCC, in the order in which they ended; with `record.controller`." {
        flow: "Number of the flow.";
        interval: "Number of the interval, from 0.";
        start_s ["s"]: "First transmission.";
        end_s ["s"]: "First transmission of the next interval.";
        known_s ["s"]: "When all its datagrams were accounted for.";
        state: "What the controller was doing: \"starting\", \"decision\", \"adjusting\", \"probing\".";
        rate_bps ["bit/s"]: "Rate that was set, of IP packets.";
        send_rate_bps ["bit/s"]: "Rate at which datagrams left: the x of the utility.";
        sent ["packets"]: "Datagrams sent.";
        lost ["packets"]: "Of these, lost.";
        utility: "Value of the utility function.", or "the interval was not judged";
        mean_rtt_s ["s"]: "Mean RTT.", or "there was no sample";
        rtt_gradient: "dRTT/dt, by least squares; 0 with fewer than two samples.";
        rtt_deviation_s ["s"]: "Standard deviation of the RTT.";
        limited: "Whether the sender had nothing to send for a part of it: it says nothing about the path.";
    }
    chunks: "One row per chunk of a video player that was asked for; with the workload `video`." {
        flow: "Number of the flow.";
        idx: "Number of the chunk, from 0.";
        request_s ["s"]: "When it was asked for.";
        first_byte_s ["s"]: "When its first byte came.", or "none came";
        finish_s ["s"]: "When its last byte came.", or "it did not come";
        level: "Number of its bitrate, from 0, the least.";
        bitrate_bps ["bit/s"]: "That bitrate.";
        bytes ["bytes"]: "Size.";
        estimate_bps ["bit/s"]: "Throughput that the player expected when it chose.", or "it had nothing to go by";
        buffer_s ["s"]: "Playing time in the buffer, the chunk included.", or "it did not come";
        stall_s ["s"]: "Time for which the picture stood still while the chunk was waited for.";
        playing: "Whether playback had begun by the time that the chunk was there.";
    }
    transactions: "One row per transaction, unless `record.transactions` is \"summary\"; with the workload `transactions`. Times count from the client's arrival." {
        flow: "Number of the flow.";
        idx: "Number of the transaction within the flow, from 0.";
        batch: "Number of the client; the connections that it opens at once share it.";
        request: "Position among the requests of its connection, from 0.";
        initial_window ["segments"]: "Initial window of the responder.";
        arrival_s ["s"]: "When the client came, or asked again.";
        connect_s ["s"]: "Until the connection was set up at the client.", or "it was not, or this is not the connection's first request";
        first_byte_s ["s"]: "Until the first byte of the response.", or "none came";
        total_s ["s"]: "Until its last byte.", or "it did not come";
        bytes ["bytes"]: "Size of the response.";
        done: "Whether all of it came.";
        failed: "Whether the connection gave up.";
        segments_sent ["segments"]: "Segments of the response that were sent, retransmissions included.";
        retransmissions ["segments"]: "Of these, retransmissions.";
        rtos: "Retransmission timeouts.";
        syn_retransmissions: "SYNs that the client sent again.";
        synack_retransmissions: "SYN-ACKs that the server sent again.";
    }
    transaction_summary: "One row per group and initial window; with the workload `transactions`. Counted after the warm-up, if the scenario has one." {
        group: "Number of the group.";
        initial_window ["segments"]: "Initial window of the responders.";
        started: "Transactions begun.";
        completed: "Of these, completed.";
        failed: "Of these, with a connection that gave up.";
        incomplete: "Of these, neither at the end of the run.";
        refused: "Connections that the limit on open ones turned away.";
        max_open: "Most transactions open at once.";
        bytes ["bytes"]: "Payload of the completed responses.";
        offered_bytes ["bytes"]: "What the data packets of all responses asked for take on the wire, each sent once.";
        mean_s ["s"]: "Mean completion time.", or "none was completed";
        std_s ["s"]: "Standard deviation of the completion times.", or "fewer than two were completed";
        min_s ["s"]: "The least.", or "none was completed";
        p50_s ["s"]: "The median, to within 0.4 %.", or "none was completed";
        p95_s ["s"]: "The 95th percentile, to within 0.4 %.", or "none was completed";
        p99_s ["s"]: "The 99th percentile, to within 0.4 %.", or "none was completed";
        p999_s ["s"]: "The 99.9th percentile, to within 0.4 %.", or "none was completed";
        max_s ["s"]: "The greatest.", or "none was completed";
        mean_connect_s ["s"]: "Mean time to set up the connection.", or "none was set up";
        segments_sent ["segments"]: "Segments of responses that were sent, retransmissions included.";
        retransmissions ["segments"]: "Of these, retransmissions.";
        rtos: "Retransmission timeouts.";
        syn_retransmissions: "SYNs that clients sent again.";
        synack_retransmissions: "SYN-ACKs that servers sent again.";
    }
    transaction_times: "Histogram of completion times per group and initial window: a row per bin that is not empty; with the workload `transactions`." {
        group: "Number of the group.";
        initial_window ["segments"]: "Initial window of the responders.";
        low_s ["s"]: "Lower bound of the bin, included.";
        high_s ["s"]: "Upper bound, excluded.";
        count: "Transactions in it.";
    }
}

#[cfg(test)]
mod tests {
    use ackclock_cc::CongestionControl;

    use super::*;

    fn names(table: &TableAbout) -> Vec<&'static str> {
        table.columns.iter().map(|column| column.name).collect()
    }

    #[test]
    fn every_column_that_a_run_hands_out_is_described_and_no_other() {
        let types = types();
        assert_eq!(
            types.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            TABLES.iter().map(|table| table.name).collect::<Vec<_>>()
        );
        for ((name, columns), table) in types.iter().zip(TABLES) {
            let handed_out: Vec<_> = columns.iter().map(|(column, _)| *column).collect();
            let described = names(table);
            let fixed = if *name == "controllers" { handed_out.len() } else { described.len() };
            assert_eq!(handed_out, described[..fixed], "{name}");
        }
    }

    #[test]
    fn every_variable_of_every_controller_is_described() {
        let own: Vec<&str> = ackclock_cc::controller::ENTRIES
            .iter()
            .flat_map(|entry| {
                let made =
                    ackclock_cc::Controller::build(entry.name, &Default::default(), Default::default());
                made.expect("invariant: controllers can be made without options").needs().vars
            })
            .copied()
            .collect();
        let table = TABLES.iter().find(|table| table.name == "controllers").expect("it is one of the tables");
        let described = names(table);
        let fixed = types().iter().find(|(name, _)| *name == "controllers").map_or(0, |(_, all)| all.len());
        for name in &own {
            assert!(described[fixed..].contains(name), "{name}: no line in `tables!`");
        }
        for name in &described[fixed..] {
            assert!(own.contains(name), "{name}: no controller has it");
        }
    }

    #[test]
    fn units_and_nulls_fit_the_types() {
        for ((table, columns), about) in types().iter().zip(TABLES) {
            for ((name, kind), column) in columns.iter().zip(about.columns) {
                let can_be_null = ["f8", "n4"].contains(kind);
                assert!(column.null.is_empty() || can_be_null, "{table}.{name}: {kind} is never null");
                assert!(*kind != "n4" || !column.null.is_empty(), "{table}.{name}: when is it null?");
                let unit = [("_s", "s"), ("_ns", "ns"), ("_bps", "bit/s"), ("_segments", "segments")];
                for (_, unit) in unit.iter().filter(|(end, _)| name.ends_with(end)) {
                    assert_eq!(&column.unit, unit, "{table}.{name}");
                }
                assert!(column.meaning.ends_with(['.', '"']), "{table}.{name}: a sentence");
            }
        }
    }
}
