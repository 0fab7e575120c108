//! TCP_INFO of the socket, in the kernel's names and units. A script that uses a name missing here is unsupported.

use ackclock_core::trace::CaState;
use ackclock_core::Span;
use ackclock_tcp::{Connection, State};

use super::stack::Stack;

/// Linux TCPI_OPT_*.
const OPT_TIMESTAMPS: i64 = 1;
const OPT_SACK: i64 = 2;
const OPT_WSCALE: i64 = 4;

/// Linux TCP_TIME_WAIT, TCP_CLOSE.
const TIME_WAIT: u8 = 6;
const CLOSE: u8 = 7;

/// Return all names and their values.
pub fn names(conn: &Connection, stack: &Stack) -> Vec<(&'static str, i64)> {
    let (i, stats) = (conn.info(), conn.stats());
    let us = |s: Span| if s == Span::MAX { u32::MAX as i64 } else { s.as_us() as i64 };
    let agreed = &stack.agreed;
    let active = stack.active;
    let options = OPT_TIMESTAMPS * agreed.timestamps as i64
        + OPT_SACK * agreed.sack as i64
        + OPT_WSCALE * agreed.shift.is_some() as i64;
    let synchronized = !matches!(i.state, State::SynSent | State::SynReceived);
    let times = conn.times(stack.now);
    let books = conn.ledger().copied().unwrap_or_default();
    let ticks = |t: ackclock_core::Time| stack.host.ticks(t) as i64;
    let ms_since = |t: ackclock_core::Time| (ticks(stack.now) - ticks(t)) * 1_000 / stack.host.hz();
    let ticks_us = |s: Span| us(s) * stack.host.hz() / 1_000_000 * 1_000_000 / stack.host.hz();
    let mut names = vec![
        ("tcpi_rttvar", us(i.mdev)),
        ("tcpi_busy_time", ticks_us(times.busy)),
        ("tcpi_rwnd_limited", ticks_us(times.rwnd_limited)),
        ("tcpi_sndbuf_limited", ticks_us(times.sndbuf_limited)),
        ("tcpi_last_data_sent", ms_since(books.last_data_sent)),
        ("tcpi_last_data_recv", ms_since(books.last_data_recv)),
        ("tcpi_last_ack_recv", ms_since(books.last_ack_recv)),
        ("tcpi_last_ack_sent", 0), // never filled in by the kernel
        ("tcpi_segs_in", books.segs_in as i64),
        ("tcpi_segs_out", books.segs_out as i64),
        ("tcpi_data_segs_in", books.data_segs_in as i64),
        ("tcpi_bytes_sent", books.bytes_sent as i64),
        ("tcpi_bytes_retrans", books.bytes_retrans as i64),
        ("tcpi_bytes_received", (conn.received() + conn.peer_closed() as u64) as i64),
        ("tcpi_rcv_ooopack", books.rcv_ooopack as i64),
        ("tcpi_rcv_mss", conn.receiving().2 as i64),
        ("tcpi_rcv_ssthresh", conn.receiving().1 as i64),
        ("tcpi_rehash", stats.rtos as i64),
        ("tcpi_fastopen_client_fail", 0),
        ("tcpi_ato", us(i.ato)),
        ("tcpi_rcv_rtt", us(i.rcv_rtt)),
        ("tcpi_rcv_space", i.rcv_space as i64),
        ("tcpi_pmtu", stack.host.pmtu() as i64),
        // TIME_WAIT belongs to a separate socket; the application's socket is closed.
        ("tcpi_state", if i.tcp_state == TIME_WAIT { CLOSE } else { i.tcp_state } as i64),
        ("tcpi_ca_state", i.ca_state as i64),
        ("tcpi_retransmits", i.retransmits as i64),
        ("tcpi_probes", i.probes.max(conn.keepalive_probes()) as i64),
        ("tcpi_backoff", i.backoff as i64),
        ("tcpi_snd_wscale", agreed.peer_shift.filter(|_| agreed.shift.is_some()).unwrap_or(0) as i64),
        ("tcpi_rcv_wscale", agreed.shift.unwrap_or(0) as i64),
        ("tcpi_rto", us(i.rto)),
        ("tcpi_advmss", stack.advmss as i64),
        ("tcpi_fackets", 0), // since Linux 4.15
        ("tcpi_rtt", us(i.srtt)),
        ("tcpi_snd_ssthresh", i.ssthresh as i64),
        ("tcpi_snd_cwnd", i.cwnd as i64),
        ("tcpi_reordering", i.reordering as i64),
        ("tcpi_reord_seen", i.reorderings as i64),
        ("tcpi_total_retrans", (i.total_retrans + conn.syn_retransmissions()) as i64),
        ("tcpi_min_rtt", us(i.min_rtt)),
        ("tcpi_notsent_bytes", i.unsent as i64),
        ("tcpi_bytes_acked", (i.bytes_acked + active as u64) as i64),
        ("tcpi_dsack_dups", stats.dsacks_received as i64),
        ("tcpi_snd_wnd", i.snd_wnd as i64),
        ("tcpi_pacing_rate", i.pacing_rate as i64), // -1 = unlimited, as the kernel's 64 bits read
        ("tcpi_max_pacing_rate", i.max_pacing_rate as i64),
        ("tcpi_options", options),
    ];
    if synchronized {
        names.extend([
            ("tcpi_snd_mss", i.smss as i64),
            ("tcpi_unacked", i.unacked as i64),
            ("tcpi_sacked", i.sacked as i64),
            ("tcpi_lost", i.lost as i64),
            ("tcpi_retrans", i.retrans as i64),
            ("tcpi_delivered", i.delivered as i64),
            ("tcpi_data_segs_out", books.data_segs_out as i64),
            ("tcpi_total_rto", (u64::from(stats.rtos) + conn.syn_retransmissions()) as i64),
        ]);
    }
    if let Some(marks) = conn.accurate_marks() {
        let [e1, e0, ce] = marks.delivered_bytes;
        let [e1_in, e0_in, ce_in] = marks.received_bytes;
        names.extend([
            ("tcpi_delivered_ce", marks.delivered_ce as i64),
            ("tcpi_received_ce", marks.received_ce as i64),
            ("tcpi_delivered_e1_bytes", e1 as i64),
            ("tcpi_delivered_e0_bytes", e0 as i64),
            ("tcpi_delivered_ce_bytes", ce as i64),
            ("tcpi_received_e1_bytes", e1_in as i64),
            ("tcpi_received_e0_bytes", e0_in as i64),
            ("tcpi_received_ce_bytes", ce_in as i64),
        ]);
    }
    debug_assert!(CaState::Loss as i64 == 4, "the states have the kernel's numbers");
    names
}
