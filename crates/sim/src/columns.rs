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
    flows: "One row per flow, in every run. Counts cover the whole run, the warm-up included (table `performance` has what was after it), and are taken at the host that sends the data." {
        flow: "Number of the flow, from 0, group after group.";
        group: "Number of its group in the scenario, from 0.";
        start_s ["s"]: "When the flow starts.";
        established_s ["s"]: "When the end that opened the flow's first connection completed the handshake.", or "no handshake was completed, or the transport has none";
        stop_s ["s"]: "When the application stops: at the scenario's `stop`, when its last byte is acknowledged, or at the end of the run.";
        completion_s ["s"]: "Time from the start of the flow until all its data was acknowledged or its last response was complete.", or "the flow did not complete";
        bytes_acked ["bytes"]: "Payload acknowledged to the sending host. Without acknowledgments (UDP): payload received.";
        goodput_bps ["bit/s"]: "Payload acknowledged until `stop_s`, divided by the time from `start_s` to `stop_s`.", or "the flow did not run";
        sent_packets ["packets"]: "Segments or datagrams with data that were sent, including retransmissions.";
        retransmissions ["packets"]: "Of these, retransmissions.";
        rtos: "Retransmission timeouts of data: the sum of the next four.";
        rtos_open: "Timeouts in state Open; of PCC, all.";
        rtos_disorder: "Timeouts in state Disorder.";
        rtos_recovery: "Timeouts in state Recovery.";
        rtos_loss: "Timeouts in state Loss, that is, repeated timeouts.";
        tlps: "Tail loss probes (RFC 8985 §7).";
        recoveries: "Episodes of fast recovery.";
        lost_retransmits ["segments"]: "Retransmissions that the sender marked lost.";
        undos: "Window reductions that the sender undid.";
        spurious_rtos: "Timeouts that proved spurious (F-RTO, RFC 5682).";
        dsacks: "ACKs with a DSACK (RFC 2883) that the sender received.";
        syn_retransmissions: "Retransmissions of SYN and SYN-ACK by either end.";
        acks_received: "ACKs that the sender received; for PCC, reports.";
        mean_rtt_s ["s"]: "Mean of all RTT samples.", or "there was no sample";
        min_rtt_s ["s"]: "Minimum of all RTT samples.", or "there was no sample";
        slow_start_end_s ["s"]: "When the flow's first slow start ended.", or "slow start did not end, or the transport has none";
        slow_start_by: "Why it ended: \"rule\" (the slow-start algorithm ended it), \"loss\", \"mark\", \"timeout\", \"threshold\" (cwnd reached an ssthresh that was set before, or the controller set one); empty if it did not end.";
        slow_start_cwnd ["segments"]: "cwnd at the end of slow start, before any reduction.", or "slow start did not end";
        slow_start_ssthresh ["segments"]: "ssthresh after slow start.", or "slow start did not end";
        slow_start_lost ["segments"]: "Segments marked lost within two round trips after slow start.", or "slow start did not end";
        send_rate_bps ["bit/s"]: "PCC: rate of the payload sent from `start_s` to `stop_s`, including retransmissions.", or "it is not a PCC flow";
        lost_packets ["packets"]: "PCC: datagrams that the sender considered lost.", or "it is not a PCC flow";
        intervals: "PCC: number of monitor intervals.", or "it is not a PCC flow";
        failed: "Whether a connection gave up.";
        departure_cv: "Coefficient of variation of the times between departures of data packets from the host; 0 means evenly spaced.", or "there were fewer than two such times, or all packets left at once";
        largest_burst ["packets"]: "Maximum number of packets sent back to back: each was sent before the first link had finished transmitting the previous one.";
        busy_s ["s"]: "Time with data to send or to be acknowledged, as the kernel's `tcpi_busy_time` counts it.", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
        rwnd_limited_s ["s"]: "Of it, the receiver's window stopped the next segment (`tcpi_rwnd_limited`).", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
        sndbuf_limited_s ["s"]: "Of it, the send buffer was too small (`tcpi_sndbuf_limited`).", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
        limit_handshake_s ["s"]: "What held the sender back: these nine add up to the time from `start_s` to `stop_s`. The first connection was not established yet.", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
        limit_application_s ["s"]: "Data was outstanding, and the application had written no more.", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
        limit_rwnd_s ["s"]: "The receiver's window was the limit.", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
        limit_sndbuf_s ["s"]: "The application had more, and the send buffer, or the host's queue, had no room.", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
        limit_cwnd_s ["s"]: "cwnd was the limit.", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
        limit_pacing_s ["s"]: "The next segment waited for its time.", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
        limit_recovery_s ["s"]: "Losses were repaired (states Recovery and Loss).", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
        limit_timeout_s ["s"]: "The sender waited for its retransmission timer, which then expired: since the last ACK or transmission.", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
        limit_idle_s ["s"]: "All data was acknowledged, and there was nothing to send.", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
    }
    performance: "One row per flow, then one per group, then one for the whole run, all after the warm-up; requires `record.performance`." {
        of: "What the row describes: a \"flow\", a \"group\" or the \"run\".";
        number: "Number of the flow or of the group; 0 for the run.";
        group: "Number of the group.", or "the row describes the run";
        flows: "Number of flows that the row covers.";
        goodput_bps ["bit/s"]: "Payload acknowledged after the warm-up, divided by the time that the flow ran after it; for groups and the run, the sum of their flows.", or "the flow had no time after the warm-up";
        share: "Share of the run's goodput, 0 to 1.", or "nothing was delivered";
        bytes_acked ["bytes"]: "Payload acknowledged.";
        sent_packets ["packets"]: "Segments or datagrams with data that were sent, including retransmissions.";
        retransmissions ["packets"]: "Of these, retransmissions.";
        retransmission_share: "Retransmissions divided by packets sent, 0 to 1.", or "nothing was sent";
        rtos: "Retransmission timeouts of data.";
        dropped_packets ["packets"]: "Data packets that links and their queues dropped.";
        loss_share: "Dropped data packets divided by all that were dropped or arrived, 0 to 1.", or "there was no such packet";
        mean_rtt_s ["s"]: "Mean of all RTT samples.", or "there was no sample";
        p50_rtt_s ["s"]: "Median RTT, accurate to 0.4 %.", or "there was no sample";
        p95_rtt_s ["s"]: "95th percentile of the RTT, accurate to 0.4 %.", or "there was no sample";
        p99_rtt_s ["s"]: "99th percentile of the RTT, accurate to 0.4 %.", or "there was no sample";
        mean_delay_s ["s"]: "Mean one-way delay of data packets between the hosts.", or "no packet arrived";
        p50_delay_s ["s"]: "Median one-way delay, accurate to 0.4 %.", or "no packet arrived";
        p95_delay_s ["s"]: "95th percentile of the one-way delay, accurate to 0.4 %.", or "no packet arrived";
        p99_delay_s ["s"]: "99th percentile of the one-way delay, accurate to 0.4 %.", or "no packet arrived";
        time_to_share_s ["s"]: "Time from the start of the flow until its goodput, measured over 1/32 of the run, first reached 90 % of an equal share of the goodput of all flows.", or "it never reached it, it ran alone, or the row does not describe a flow";
    }
    fetches: "One row per fetch, burst or video frame, with the workloads `fetch`, `population`, `bursts` and `media`. Retransmissions and timeouts are counted until the client's FIN reaches the server." {
        flow: "Number of the flow.";
        idx: "Number of the fetch, burst or frame within the flow, from 0.";
        start_s ["s"]: "When the fetch or burst began, or the frame was made.";
        connect_s ["s"]: "Time from the start until the client completed the handshake.", or "it did not, or an existing connection was used";
        first_byte_s ["s"]: "Time from the start to the first byte of the response.", or "none arrived";
        total_s ["s"]: "Time from the start to the last byte of the response.", or "it did not arrive";
        bytes ["bytes"]: "Size of the response.";
        done: "Whether the response arrived completely.";
        syn_retransmissions: "Retransmissions of the client's SYN.";
        synack_retransmissions: "Retransmissions of the server's SYN-ACK.";
        request_retransmissions ["segments"]: "Retransmissions of the request by the client.";
        data_retransmissions ["segments"]: "Retransmissions of the response by the server.";
        data_rtos: "Retransmission timeouts of the response.";
        rtos_open: "Timeouts in state Open.";
        rtos_disorder: "Timeouts in state Disorder.";
        rtos_recovery: "Timeouts in state Recovery.";
        rtos_loss: "Timeouts in state Loss.";
        data_segments_sent ["segments"]: "Segments of the response that were sent, including retransmissions.";
        lost_retransmits ["segments"]: "Retransmissions that the sender marked lost.";
        recoveries: "Episodes of fast recovery.";
        tlps: "Tail loss probes.";
        undos: "Window reductions that the sender undid.";
        dsacks: "ACKs with a DSACK that the server received (RFC 2883).";
        cwnd_end ["segments"]: "cwnd of the server at the end of the fetch.";
        ssthresh_end ["segments"]: "ssthresh of the server at the end of the fetch.", or "not set";
    }
    recoveries: "One row per episode of fast recovery, in every run." {
        flow: "Number of the flow.";
        idx: "Number of the fetch or transaction within the flow; 0 if the flow has only one connection.";
        responder: "Whether the sender accepted the connection (the other end opened it).";
        t_enter_s ["s"]: "When recovery began.";
        t_exit_s ["s"]: "When recovery ended.";
        pipe_enter ["segments"]: "pipe when recovery began, before the recovery rule acts.";
        ssthresh ["segments"]: "ssthresh, the window at which the rule aims.", or "not set";
        cwnd_enter ["segments"]: "cwnd just before recovery.";
        losses ["segments"]: "Segments marked lost during recovery.";
        retransmits ["segments"]: "Retransmissions sent during recovery.";
        lost_retransmits ["segments"]: "Of these, retransmissions that were themselves lost.";
        max_burst ["segments"]: "Maximum number of segments sent on one ACK.";
        acks: "ACKs processed during recovery.";
        cwnd_before_exit ["segments"]: "cwnd before the recovery rule's final adjustment.";
        cwnd_after_exit ["segments"]: "cwnd after this adjustment.";
        pipe_exit ["segments"]: "pipe at the end of recovery, before anything is sent.";
        srtt_s ["s"]: "Smoothed RTT when recovery began.";
        cause: "Why recovery ended: \"full_ack\" (the recovery point was acknowledged), \"rto\", \"undo\", \"run_end\".";
    }
    links: "One row per link and direction, in every run; each link has one queue. Counting, means, maxima and waits begin at the end of the warm-up; table `flows` covers the whole run. A packet of several segments (`tso`) counts as that many packets." {
        link: "Number of the link, from 0.";
        name: "Name of the link and its direction.";
        arrivals ["packets"]: "Packets that arrived at the link.";
        arrivals_data ["packets"]: "Of these, packets with data.";
        arrivals_syn_fin ["packets"]: "Of these, SYNs and FINs.";
        dropped_loss ["packets"]: "Packets that the loss model dropped.";
        dropped_queue ["packets"]: "Packets that the queue dropped, because it was full or by its own rule.";
        dropped_queue_data ["packets"]: "Of these, packets with data.";
        dropped_queue_syn_fin ["packets"]: "Of these, SYNs and FINs.";
        dropped_before ["packets"]: "Packets that loss model and queue dropped during the warm-up; no other column counts them.";
        delivered ["packets"]: "Packets that reached the far end of the link. `arrivals` + `held_before` = `delivered` + `dropped_loss` + `dropped_queue` + `held`.";
        held ["packets"]: "Packets in the link at the end of the run: waiting, in transmission or propagating.";
        held_before ["packets"]: "Packets in the link when counting began.";
        marked ["packets"]: "Packets that the queue marked CE.";
        bytes_delivered ["bytes"]: "Bytes of IP packets that reached the far end of the link.";
        mean_packets ["packets"]: "Mean number of waiting packets over time.", or "the backend cannot see it";
        max_packets ["packets"]: "Maximum number of waiting packets.";
        mean_wait_s ["s"]: "Mean time that packets waited before transmission.", or "the backend cannot see it";
        max_wait_s ["s"]: "Maximum time that a packet waited before transmission.", or "the backend cannot see it";
        seconds_queued: "Number of whole seconds of the run at which packets were waiting.";
        busy_s ["s"]: "Time that the link spent transmitting; 0 on a link that follows a trace.", or "the backend cannot see it";
        opportunities: "Delivery opportunities of a link that follows a trace.";
        opportunities_used: "Delivery opportunities that were used, at least in part.";
    }
    hosts: "One row per host that the scenario describes; perfect hosts have no row." {
        host: "Name of the host.";
        stalled_share: "Fraction of the run in which the host had no processor, 0 to 1.";
        stalls: "Number of such stalls.";
        longest_stall_s ["s"]: "Duration of the longest stall.";
        cpu_wait_s ["s"]: "Total time that all processes waited for a core.";
        interrupts: "Interrupts of a NIC that coalesces interrupts or merges packets.";
        interrupt_packets ["packets"]: "Packets that arrived with these interrupts.";
        largest_interrupt ["packets"]: "Maximum number of packets per interrupt.";
        merged_packets ["packets"]: "Packets that the transports received from these interrupts; fewer if the NIC merges them (`gro`).";
        batches: "Batches sent by a NIC that collects packets before it sends them.";
        batch_packets ["packets"]: "Packets sent in these batches.";
        largest_batch ["packets"]: "Maximum number of packets per batch.";
        device_packets ["packets"]: "Packets that left the host's own device (`line_rate`, `queue`).";
        device_refused ["packets"]: "Packets that the device refused because its queue was full.";
        device_marked ["packets"]: "Packets that the device marked CE.";
        device_max_packets ["packets"]: "Maximum number of packets that waited in the device; a packet of several segments counts once.";
        device_mean_wait_s ["s"]: "Mean time that packets waited in the device.", or "no packet left the device";
    }
    destinations: "One row per destination that hosts remember (`stack.metrics_cache`), with the state at the end of the run." {
        destination: "Name of the destination.";
        ssthresh_segments ["segments"]: "ssthresh with which the next connection would start.", or "no value is remembered";
        cwnd_segments ["segments"]: "Remembered cwnd. No connection starts with it.", or "no value is remembered";
        saved_s ["s"]: "When the entry was last updated.";
    }
    goodput: "One row per flow and interval; requires `record.goodput_interval`." {
        t_s ["s"]: "End of the interval.";
        flow: "Number of the flow.";
        goodput_bps ["bit/s"]: "Payload acknowledged in the interval, divided by its length. It is acknowledged in order: when a gap is filled, all that waited behind it counts at once.";
        delivered_bps ["bit/s"]: "Payload that reached the receiving host in the interval for the first time, in order or not, divided by its length.";
    }
    queue_samples: "One row per link and interval; requires `record.queue_interval`." {
        t_s ["s"]: "Time of the sample.";
        link: "Number of the link.";
        packets ["packets"]: "Waiting packets, without the one in transmission.";
    }
    samples: "One row per open flow and interval; requires `record.sample_interval`." {
        t_s ["s"]: "Time of the sample.";
        flow: "Number of the flow.";
        cwnd ["segments"]: "Congestion window.";
        ssthresh ["segments"]: "Slow-start threshold.", or "not set yet";
        srtt_s ["s"]: "Smoothed RTT.";
        in_flight ["segments"]: "pipe: segments that the sender considers in flight.";
        ca_state: "Congestion state: \"Open\", \"Disorder\", \"CWR\", \"Recovery\", \"Loss\".";
        bytes_acked ["bytes"]: "Payload acknowledged so far.";
        retransmissions ["segments"]: "Retransmissions so far.";
        rwnd ["bytes"]: "The receiver's window.";
        busy_s ["s"]: "Time with data to send or to be acknowledged, as the kernel's `tcpi_busy_time` counts it.", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
        rwnd_limited_s ["s"]: "Of it, the receiver's window stopped the next segment (`tcpi_rwnd_limited`).", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
        sndbuf_limited_s ["s"]: "Of it, the send buffer was too small (`tcpi_sndbuf_limited`).", or "nobody asked for it (`record.limits_interval`), it is no TCP, or several connections were open at a time";
    }
    limits: "One row per flow of TCP and interval; requires `record.limits_interval`. What held the sender back: the nine columns add up to the part of the interval in which the flow lived." {
        t_s ["s"]: "End of the interval.";
        flow: "Number of the flow.";
        limit_handshake_s ["s"]: "The first connection was not established yet.";
        limit_application_s ["s"]: "Data was outstanding, and the application had written no more.";
        limit_rwnd_s ["s"]: "The receiver's window was the limit.";
        limit_sndbuf_s ["s"]: "The application had more, and the send buffer, or the host's queue, had no room.";
        limit_cwnd_s ["s"]: "cwnd was the limit.";
        limit_pacing_s ["s"]: "The next segment waited for its time.";
        limit_recovery_s ["s"]: "Losses were repaired (states Recovery and Loss).";
        limit_timeout_s ["s"]: "The sender waited for its retransmission timer, which then expired: since the last ACK or transmission.";
        limit_idle_s ["s"]: "All data was acknowledged, and there was nothing to send.";
    }
    drops: "One row per packet that a link dropped; requires `record.drops`." {
        t_s ["s"]: "Time of the event.";
        link: "Number of the link.";
        flow: "Number of the flow.";
        seg_no: "Number of the segment or datagram within its connection; 0 for a packet without data.";
        rexmit: "Which transmission of the segment: 0 is the first.";
        forward: "Whether the packet travelled in the forward direction, that of the data.";
        bytes ["bytes"]: "Size of the IP packet.";
        reason: "\"loss\" (the loss model), \"queue\" (full), \"aqm\" (the queue's own rule).";
    }
    acks: "One row per ACK, transmission and timer event at a sender, those of a connection in order of time; requires `record.trace`. Values are those after the event unless stated otherwise; of a transmission that waits in the host's own `fq`, those when the sender handed it over." {
        t_s ["s"]: "Time of the event; of a transmission, when it leaves the host, after the wait in its `fq`.";
        t_ns ["ns"]: "The same, exact.";
        flow: "Number of the flow.";
        responder: "Whether the sender accepted the connection (the other end opened it).";
        event: "\"ack\"; \"send\" (a new segment) and \"rtx\" (a retransmission); \"rto\", \"tlp\", \"reo_timer\" (timers); \"enter\" and \"exit\" (fast recovery); \"undo\".";
        ack_no: "Number of ACKs received so far, including this one.";
        seq ["bytes"]: "Acknowledgment number, or offset of the first byte sent.";
        len ["bytes"]: "Bytes sent, or bytes newly acknowledged cumulatively.";
        seg_no: "Number of the data segment sent; for ACKs, of the segment at SND.UNA.";
        rexmit: "Which transmission of the segment: 0 is the first.";
        sack_blocks: "Number of SACK blocks in the ACK.";
        sack0_start ["bytes"]: "First SACK block: offset of its first byte; 0 if there is no block.";
        sack0_end ["bytes"]: "First SACK block: offset after its last byte; 0 if there is no block.";
        sack1_start ["bytes"]: "Second SACK block: offset of its first byte.";
        sack1_end ["bytes"]: "Second SACK block: offset after its last byte.";
        sack2_start ["bytes"]: "Third SACK block: offset of its first byte.";
        sack2_end ["bytes"]: "Third SACK block: offset after its last byte.";
        dsack: "Whether the ACK carries a DSACK.";
        is_dup: "Whether the ACK is a duplicate ACK (RFC 6675 §2).";
        newly_sacked ["segments"]: "Segments that the ACK SACKs for the first time.";
        delivered ["segments"]: "DeliveredData of this ACK.";
        newly_lost ["segments"]: "Segments marked lost on this ACK.";
        lost_retransmits ["segments"]: "Retransmissions marked lost on this ACK.";
        safe_ack: "SafeACK (RFC 9937 §6.2).";
        cwnd_before ["segments"]: "cwnd before the event.";
        cwnd ["segments"]: "cwnd after the event.";
        ssthresh ["segments"]: "Slow-start threshold.", or "not set yet";
        pipe_before ["segments"]: "pipe before the ACK was processed.";
        pipe ["segments"]: "pipe after the event, before anything is sent.";
        flight_size ["segments"]: "SND.NXT - SND.UNA.";
        sacked_out ["segments"]: "Segments marked SACKed.";
        lost_out ["segments"]: "Segments believed lost.";
        retrans_out ["segments"]: "Retransmissions in flight.";
        rwnd ["bytes"]: "The peer's receive window.";
        ca_state: "Congestion state: \"Open\", \"Disorder\", \"CWR\", \"Recovery\", \"Loss\".";
        recovery_point ["bytes"]: "RecoveryPoint (RFC 6675; Linux high_seq).";
        reordering ["segments"]: "Degree of reordering that the sender assumes (DupThresh).";
        branch: "Branch of the recovery rule that set cwnd: \"prop\", \"bound\", \"forced\" (PRR); \"rh_dec\", \"rh_clamp\" (rate halving); \"hold\"; empty outside recovery.";
        sndcnt ["segments"]: "PRR: segments that this ACK allows to be sent (sndcnt).";
        prr_delivered ["segments"]: "PRR: segments delivered since recovery began.";
        prr_out ["segments"]: "PRR: segments sent since recovery began.";
        recover_fs ["segments"]: "PRR: RecoverFS (Linux prior_cwnd).";
        rto_s ["s"]: "Retransmission timeout in force.";
        backoff: "Number of times that the retransmission timeout was doubled.";
        srtt_s ["s"]: "Smoothed RTT.";
        rttvar_s ["s"]: "RTT variation as used in the timeout: 4 * RTTVAR of RFC 6298.";
        min_rtt_s ["s"]: "Minimum RTT.", or "there was no RTT sample yet";
        reo_wnd_s ["s"]: "RACK's reordering window.";
        deadline_s ["s"]: "When the sender's timer expires next.", or "no timer is armed";
        idx: "Number of the fetch or transaction within the flow; 0 if the flow has only one connection.";
    }
    clients: "One row per client of a population, with the values it drew." {
        flow: "Number of the flow.";
        rtt_s ["s"]: "Round-trip propagation delay.";
        rate_bps ["bit/s"]: "Rate of the client's link.";
        loss: "Probability that the client's link loses a packet, 0 to 1.";
        bytes ["bytes"]: "Size of the client's response.";
    }
    controllers: "Variables of the congestion controllers, one row per ACK or interval; requires `record.controller`. The table has a column for a variable only if a controller of the run has it." {
        t_s ["s"]: "Time of the event.";
        flow: "Number of the flow.";
        idx: "Number of the fetch or transaction within the flow; 0 if the flow has only one connection.";
        ack_no: "Number of ACKs received so far.";
        cwnd ["segments"]: "Congestion window.";
        ssthresh ["segments"]: "Slow-start threshold.", or "not set yet";
        pacing_bps ["bit/s"]: "Pacing rate.", or "the sender does not pace";
        estimate_bps ["bit/s"]: "Rate that the controller estimates the path to offer (BBR's bw, Westwood's estimate).", or "the flow's controller has no such variable";
        rtt_min_s ["s"]: "Westwood: minimum RTT.", or "no sample yet, or no such variable";
        base_rtt_s ["s"]: "Delay-based controllers: their estimate of the RTT without queueing.", or "no sample yet, or no such variable";
        avg_rtt_s ["s"]: "FAST: mean RTT.", or "no sample yet, or no such variable";
        queued_packets ["packets"]: "FAST, Vegas: the controller's estimate of its packets in queues.", or "no sample yet, or no such variable";
        target_segments ["segments"]: "FAST: the window at which it aims.", or "no sample yet, or no such variable";
        sample_bps ["bit/s"]: "Westwood: latest rate sample.", or "the flow's controller has no such variable";
        interval_s ["s"]: "Westwood: interval over which the rate sample was taken.", or "none yet, or no such variable";
        tau_s ["s"]: "Westwood: time constant of its filter.", or "none yet, or no such variable";
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
    datagrams: "One row per flow of UDP datagrams, in every run." {
        flow: "Number of the flow.";
        sent ["packets"]: "Datagrams sent.";
        received ["packets"]: "Datagrams that arrived.";
        lost ["packets"]: "Datagrams missing below the largest sequence number that arrived.";
        loss_rate: "Lost datagrams divided by the largest sequence number that arrived, 0 to 1.", or "no packet arrived";
        reordered ["packets"]: "Datagrams that arrived after one with a larger sequence number.";
        bytes_received ["bytes"]: "Payload that arrived.";
        mean_delay_s ["s"]: "Mean one-way delay.", or "no packet arrived";
        min_delay_s ["s"]: "Minimum one-way delay.", or "no packet arrived";
        p50_delay_s ["s"]: "Median one-way delay, accurate to 1/64.", or "no packet arrived";
        p95_delay_s ["s"]: "95th percentile of the one-way delay, accurate to 1/64.", or "no packet arrived";
        p99_delay_s ["s"]: "99th percentile of the one-way delay, accurate to 1/64.", or "no packet arrived";
        max_delay_s ["s"]: "Maximum one-way delay.", or "no packet arrived";
        mean_delay_variation_s ["s"]: "Mean difference between the one-way delays of consecutive datagrams.", or "fewer than two datagrams arrived";
        jitter_s ["s"]: "Interarrival jitter at the end, by the estimator of RFC 3550 §6.4.1.", or "no packet arrived";
    }
    intervals: "One row per monitor interval of PCC, in the order in which they ended; requires `record.controller`." {
        flow: "Number of the flow.";
        interval: "Number of the monitor interval, from 0.";
        start_s ["s"]: "Time of the first transmission.";
        end_s ["s"]: "Time of the first transmission of the next interval.";
        known_s ["s"]: "When the sender knew the fate of all datagrams of the interval.";
        state: "What the controller was doing: \"starting\", \"decision\", \"adjusting\", \"probing\".";
        rate_bps ["bit/s"]: "Rate that the controller set, of IP packets.";
        send_rate_bps ["bit/s"]: "Rate at which the datagrams left, the x of the utility function.";
        sent ["packets"]: "Datagrams sent.";
        lost ["packets"]: "Of these, lost.";
        utility: "Value of the utility function.", or "the controller did not evaluate the interval";
        mean_rtt_s ["s"]: "Mean RTT.", or "there was no sample";
        rtt_gradient: "dRTT/dt, by least squares; 0 if there are fewer than two samples.";
        rtt_deviation_s ["s"]: "Standard deviation of the RTT.";
        limited: "Whether the sender had nothing to send during part of the interval; such an interval says nothing about the path.";
    }
    chunks: "One row per chunk that a video player requested; with the workload `video`." {
        flow: "Number of the flow.";
        idx: "Number of the chunk, from 0.";
        request_s ["s"]: "When the player requested the chunk.";
        first_byte_s ["s"]: "When the first byte arrived.", or "none arrived";
        finish_s ["s"]: "When the last byte arrived.", or "it did not arrive";
        level: "Index of the bitrate on the ladder; 0 is the lowest.";
        bitrate_bps ["bit/s"]: "Bitrate of the chunk.";
        bytes ["bytes"]: "Size of the chunk.";
        estimate_bps ["bit/s"]: "Throughput that the player expected when it chose the bitrate.", or "the player had no estimate yet";
        buffer_s ["s"]: "Playing time in the buffer, including the chunk.", or "it did not arrive";
        stall_s ["s"]: "Time that playback stalled while the player waited for the chunk.";
        playing: "Whether playback had begun when the chunk arrived.";
    }
    transactions: "One row per transaction; with the workload `transactions`, unless `record.transactions` is \"summary\". Durations are measured from the client's arrival." {
        flow: "Number of the flow.";
        idx: "Number of the transaction within the flow, from 0.";
        batch: "Number of the client; all connections that it opens at once have this number.";
        request: "Number of the request within its connection, from 0.";
        initial_window ["segments"]: "Initial window of the responder.";
        arrival_s ["s"]: "When the client arrived, or sent its next request.";
        connect_s ["s"]: "Time until the client completed the handshake.", or "it did not, or this is not the connection's first request";
        first_byte_s ["s"]: "Time until the first byte of the response.", or "none arrived";
        total_s ["s"]: "Time until the last byte of the response.", or "it did not arrive";
        bytes ["bytes"]: "Size of the response.";
        done: "Whether the response arrived completely.";
        failed: "Whether the connection gave up.";
        segments_sent ["segments"]: "Segments of the response that were sent, including retransmissions.";
        retransmissions ["segments"]: "Of these, retransmissions.";
        rtos: "Retransmission timeouts.";
        syn_retransmissions: "Retransmissions of the client's SYN.";
        synack_retransmissions: "Retransmissions of the server's SYN-ACK.";
    }
    transaction_summary: "One row per group and initial window; with the workload `transactions`. Counting starts after the warm-up." {
        group: "Number of the group.";
        initial_window ["segments"]: "Initial window of the responders.";
        started: "Transactions that started.";
        completed: "Of these, transactions that completed.";
        failed: "Of these, transactions whose connection gave up.";
        incomplete: "Of these, transactions that were still open at the end of the run.";
        refused: "Connections refused because `max_open` connections were open.";
        max_open: "Maximum number of transactions open at the same time.";
        bytes ["bytes"]: "Payload of the completed responses.";
        offered_bytes ["bytes"]: "Bytes that the data packets of all requested responses take on the wire when each is sent once.";
        mean_s ["s"]: "Mean completion time of transactions.", or "no transaction completed";
        std_s ["s"]: "Standard deviation of the completion times.", or "fewer than two transactions completed";
        min_s ["s"]: "Minimum completion time.", or "no transaction completed";
        p50_s ["s"]: "Median completion time, accurate to 0.4 %.", or "no transaction completed";
        p95_s ["s"]: "95th percentile of the completion times, accurate to 0.4 %.", or "no transaction completed";
        p99_s ["s"]: "99th percentile of the completion times, accurate to 0.4 %.", or "no transaction completed";
        p999_s ["s"]: "99.9th percentile of the completion times, accurate to 0.4 %.", or "no transaction completed";
        max_s ["s"]: "Maximum completion time.", or "no transaction completed";
        mean_connect_s ["s"]: "Mean time to complete the handshake.", or "no handshake completed";
        segments_sent ["segments"]: "Segments of responses that were sent, including retransmissions.";
        retransmissions ["segments"]: "Of these, retransmissions.";
        rtos: "Retransmission timeouts.";
        syn_retransmissions: "Retransmissions of SYN by clients.";
        synack_retransmissions: "Retransmissions of SYN-ACK by servers.";
    }
    transaction_times: "Histogram of completion times per group and initial window, one row per non-empty bin; with the workload `transactions`." {
        group: "Number of the group.";
        initial_window ["segments"]: "Initial window of the responders.";
        low_s ["s"]: "Lower bound of the bin, inclusive.";
        high_s ["s"]: "Upper bound of the bin, exclusive.";
        count: "Transactions in the bin.";
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
