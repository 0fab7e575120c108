//! Snapshot of an endpoint, modelled on TCP_INFO.

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::{Connection, State};
use crate::ledger::Ledger;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::stats::Times;

/// Snapshot modelled on TCP_INFO. Windows are in segments.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields of Linux's `struct tcp_info`, by name")]
pub struct Info {
    pub state: State,
    pub ca_state: CaState,
    pub cwnd: u32,
    pub ssthresh: u32,
    pub srtt: Span,
    pub rttvar: Span,
    /// Mean deviation (Linux `mdev_us`, which TCP_INFO calls rttvar).
    pub mdev: Span,
    pub rto: Span,
    pub min_rtt: Span,
    pub in_flight: u32,
    /// Outstanding segments (packets_out).
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub bytes_acked: u64,
    pub total_retrans: u64,
    pub reordering: u32,
    pub reorderings: u64,
    pub snd_wnd: u32,
    pub smss: u32,
    pub backoff: u8,
    /// Consecutive retransmission timeouts.
    pub retransmits: u32,
    /// Consecutive window probes.
    pub probes: u8,
    /// Segments delivered.
    pub delivered: u64,
    /// Bytes written and not yet sent.
    pub unsent: u64,
    /// Pacing rate and its upper bound, bytes/s; `u64::MAX`: unlimited.
    pub pacing_rate: u64,
    pub max_pacing_rate: u64,
    /// Delayed-ACK timeout (ATO).
    pub ato: Span,
    /// The receiver's own RTT estimate, and the bytes read by the application in one RTT.
    pub rcv_rtt: Span,
    pub rcv_space: u64,
    /// State number in the kernel (`tcpi_state`).
    pub tcp_state: u8,
}

/// State numbers in the kernel (Linux `tcp_states.h`).
mod tcp_state {
    pub const ESTABLISHED: u8 = 1;
    pub const SYN_SENT: u8 = 2;
    pub const SYN_RECV: u8 = 3;
    pub const FIN_WAIT1: u8 = 4;
    pub const FIN_WAIT2: u8 = 5;
    pub const TIME_WAIT: u8 = 6;
    pub const CLOSE: u8 = 7;
    pub const CLOSE_WAIT: u8 = 8;
    pub const LAST_ACK: u8 = 9;
    pub const LISTEN: u8 = 10;
    pub const CLOSING: u8 = 11;
}

impl Connection {
    /// Return a snapshot of the connection.
    pub fn info(&self) -> Info {
        self.sender.ask(|sender| self.info_of(sender))
    }

    fn info_of(&self, s: &Sender) -> Info {
        let (ato, rcv_rtt, rcv_space) = self.receiver.ask(Receiver::pace);
        Info {
            state: self.state,
            ca_state: s.ca_state,
            cwnd: s.window.cwnd,
            ssthresh: s.window.ssthresh,
            srtt: s.rtt.srtt(),
            rttvar: s.rtt.rttvar(),
            mdev: s.rtt.mdev(),
            rto: s.rtt.rto(),
            min_rtt: s.rtt.min_rtt(),
            in_flight: s.board.pipe(),
            unacked: s.board.packets_out(),
            sacked: s.board.sacked_out,
            lost: s.board.lost_out,
            retrans: s.board.retrans_out,
            bytes_acked: s.acked(),
            total_retrans: s.stats.retransmissions,
            reordering: s.dupthresh.degree(),
            reorderings: s.stats.reorderings.into(),
            snd_wnd: s.snd_wnd.min(u32::MAX as u64) as u32,
            smss: s.smss,
            backoff: s.rtt.backoff().max(s.window_probes.backoff()),
            retransmits: s.patience.timeouts,
            probes: s.window_probes.unanswered(),
            delivered: s.delivered,
            unsent: s.unsent(),
            pacing_rate: s.pacing_rate().0,
            max_pacing_rate: s.pacing_rate().1,
            ato,
            rcv_rtt,
            rcv_space,
            tcp_state: self.tcp_state(),
        }
    }

    /// Time spent so far under each cause that limits the sender, if it sends from buffers; zero otherwise.
    pub fn times(&self, now: Time) -> Times {
        let (busy, rwnd_limited, sndbuf_limited) = self.sender.ask(|sender| sender.limits(now));
        Times { busy, rwnd_limited, sndbuf_limited }
    }

    /// Ledger of the connection; `None` if it is not kept.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    fn tcp_state(&self) -> u8 {
        use tcp_state::*;
        match self.state {
            State::Closed | State::Failed => return CLOSE,
            State::Listen => return LISTEN,
            State::SynSent => return SYN_SENT,
            State::SynReceived => return SYN_RECV,
            State::Established | State::Done => {}
        }
        let (closed, acked) = (self.is_closing(), self.sender.fin_acked());
        match (closed, self.receiver.fin_received()) {
            (false, false) => ESTABLISHED,
            (false, true) => CLOSE_WAIT,
            (true, false) if acked => FIN_WAIT2,
            (true, false) => FIN_WAIT1,
            (true, true) if self.closed_last => {
                if acked {
                    CLOSE
                } else {
                    LAST_ACK
                }
            }
            (true, true) if acked => TIME_WAIT,
            (true, true) => CLOSING,
        }
    }
}
