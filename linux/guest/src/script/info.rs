//! TCP_INFO with the field names of scripts.

/// Name, offset and size of the fields of `struct tcp_info` (include/uapi/linux/tcp.h), which only grows at its end.
const FIELDS: &[(&str, usize, usize)] = &[
    ("tcpi_state", 0, 1),
    ("tcpi_ca_state", 1, 1),
    ("tcpi_retransmits", 2, 1),
    ("tcpi_probes", 3, 1),
    ("tcpi_backoff", 4, 1),
    ("tcpi_options", 5, 1),
    ("tcpi_rto", 8, 4),
    ("tcpi_ato", 12, 4),
    ("tcpi_snd_mss", 16, 4),
    ("tcpi_rcv_mss", 20, 4),
    ("tcpi_unacked", 24, 4),
    ("tcpi_sacked", 28, 4),
    ("tcpi_lost", 32, 4),
    ("tcpi_retrans", 36, 4),
    ("tcpi_fackets", 40, 4),
    ("tcpi_last_data_sent", 44, 4),
    ("tcpi_last_ack_sent", 48, 4),
    ("tcpi_last_data_recv", 52, 4),
    ("tcpi_last_ack_recv", 56, 4),
    ("tcpi_pmtu", 60, 4),
    ("tcpi_rcv_ssthresh", 64, 4),
    ("tcpi_rtt", 68, 4),
    ("tcpi_rttvar", 72, 4),
    ("tcpi_snd_ssthresh", 76, 4),
    ("tcpi_snd_cwnd", 80, 4),
    ("tcpi_advmss", 84, 4),
    ("tcpi_reordering", 88, 4),
    ("tcpi_rcv_rtt", 92, 4),
    ("tcpi_rcv_space", 96, 4),
    ("tcpi_total_retrans", 100, 4),
    ("tcpi_pacing_rate", 104, 8),
    ("tcpi_max_pacing_rate", 112, 8),
    ("tcpi_bytes_acked", 120, 8),
    ("tcpi_bytes_received", 128, 8),
    ("tcpi_segs_out", 136, 4),
    ("tcpi_segs_in", 140, 4),
    ("tcpi_notsent_bytes", 144, 4),
    ("tcpi_min_rtt", 148, 4),
    ("tcpi_data_segs_in", 152, 4),
    ("tcpi_data_segs_out", 156, 4),
    ("tcpi_delivery_rate", 160, 8),
    ("tcpi_busy_time", 168, 8),
    ("tcpi_rwnd_limited", 176, 8),
    ("tcpi_sndbuf_limited", 184, 8),
    ("tcpi_delivered", 192, 4),
    ("tcpi_delivered_ce", 196, 4),
    ("tcpi_bytes_sent", 200, 8),
    ("tcpi_bytes_retrans", 208, 8),
    ("tcpi_dsack_dups", 216, 4),
    ("tcpi_reord_seen", 220, 4),
    ("tcpi_rcv_ooopack", 224, 4),
    ("tcpi_snd_wnd", 228, 4),
    ("tcpi_rcv_wnd", 232, 4),
    ("tcpi_rehash", 236, 4),
    ("tcpi_total_rto", 240, 2),
    ("tcpi_total_rto_recoveries", 242, 2),
    ("tcpi_total_rto_time", 244, 4),
    ("tcpi_received_ce", 248, 4),
    ("tcpi_delivered_e1_bytes", 252, 4),
    ("tcpi_delivered_e0_bytes", 256, 4),
    ("tcpi_delivered_ce_bytes", 260, 4),
    ("tcpi_received_e1_bytes", 264, 4),
    ("tcpi_received_e0_bytes", 268, 4),
    ("tcpi_received_ce_bytes", 272, 4),
];

/// Size of a buffer that fits all fields, bytes.
pub const SIZE: usize = 280;

/// Fields of TCP_INFO by name; an older kernel returns fewer.
pub fn names(raw: &[u8]) -> Vec<(&'static str, i64)> {
    let number = |at: usize, size: usize| {
        let bytes = raw.get(at..at + size)?;
        let mut word = [0; 8];
        word[..size].copy_from_slice(bytes);
        Some(i64::from_le_bytes(word)) // -1 = unlimited, as the kernel's 64 bits read
    };
    let mut names: Vec<(&'static str, i64)> =
        FIELDS.iter().filter_map(|&(name, at, size)| Some((name, number(at, size)?))).collect();
    if let Some(shifts) = number(6, 1) {
        names.extend([("tcpi_snd_wscale", shifts & 15), ("tcpi_rcv_wscale", shifts >> 4)]);
    }
    if let Some(bits) = number(7, 1) {
        names.extend([
            ("tcpi_delivery_rate_app_limited", bits & 1),
            ("tcpi_fastopen_client_fail", bits >> 1 & 3),
        ]);
    }
    names
}
