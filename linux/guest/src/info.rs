//! TCP_INFO: the kernel's view of a connection.

use std::io::Result;
use std::os::fd::RawFd;

use crate::sys;

/// TCP_INFO fields used by the tables.
#[derive(Clone, Copy, Default, Debug)]
pub struct Info {
    pub ca_state: u8,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub srtt_us: u32,
    pub ssthresh: u32,
    pub cwnd: u32,
    pub total_retrans: u32,
    bytes_acked: u64,
    /// Payload sent for the first time.
    bytes_new: u64,
    pub segs_in: u32,
    pub min_rtt_us: u32,
    pub data_segs_out: u32,
    pub dsack_dups: u32,
    pub total_rto: u16,
    pub busy_us: u64,
    pub rwnd_limited_us: u64,
    pub sndbuf_limited_us: u64,
    pub snd_wnd: u32,
    pub mss: u32,
    pub notsent: u32,
    /// Payload sent, including retransmissions, and the retransmitted part of it, bytes.
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
}

impl Info {
    /// Read TCP_INFO of a connection.
    pub fn of(fd: RawFd) -> Result<Info> {
        let mut raw = [0; 280];
        sys::get_option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut raw)?;
        Ok(Info::parse(&raw))
    }

    /// Offsets follow `struct tcp_info` (include/uapi/linux/tcp.h), which only grows at its end.
    fn parse(raw: &[u8; 280]) -> Info {
        let u32_at =
            |at: usize| u32::from_ne_bytes(raw[at..at + 4].try_into().expect("invariant: four bytes"));
        let u64_at =
            |at: usize| u64::from_ne_bytes(raw[at..at + 8].try_into().expect("invariant: eight bytes"));
        Info {
            ca_state: raw[1],
            unacked: u32_at(24),
            sacked: u32_at(28),
            lost: u32_at(32),
            retrans: u32_at(36),
            srtt_us: u32_at(68),
            ssthresh: u32_at(76),
            cwnd: u32_at(80),
            total_retrans: u32_at(100),
            bytes_acked: u64_at(120),
            bytes_new: u64_at(200).saturating_sub(u64_at(208)),
            segs_in: u32_at(140),
            min_rtt_us: u32_at(148),
            data_segs_out: u32_at(156),
            dsack_dups: u32_at(216),
            total_rto: u16::from_ne_bytes([raw[240], raw[241]]),
            busy_us: u64_at(168),
            rwnd_limited_us: u64_at(176),
            sndbuf_limited_us: u64_at(184),
            snd_wnd: u32_at(228),
            mss: u32_at(16),
            notsent: u32_at(144),
            bytes_sent: u64_at(200),
            bytes_retrans: u64_at(208),
        }
    }

    /// Acknowledged payload, bytes. The kernel also counts the FIN as a byte and, at an end that `connected`, the SYN.
    pub fn payload_acked(&self, connected: bool) -> u64 {
        self.bytes_acked.saturating_sub(connected.into()).min(self.bytes_new)
    }

    /// Segments in flight as estimated by the sender (RFC 6675's pipe).
    pub fn in_flight(&self) -> u32 {
        (self.unacked + self.retrans).saturating_sub(self.sacked + self.lost)
    }
}
