//! Proportional Rate Reduction. While pipe is above ssthresh, ssthresh / RecoverFS segments are sent per segment
//! delivered, so that cwnd reaches ssthresh as recovery ends. Below ssthresh a bound limits how fast pipe is rebuilt.
//! One arithmetic, five choices ([`PrrParams`]): RFC 6937 with each of its bounds, RFC 9937, Linux 3.2, Linux 6.
//!
//! Sources: RFC 6937 §3; RFC 9937 §6; behaviour of Linux 3.2 and 6 (`tcp_cwnd_reduction`).
//!
//! | variable | meaning, segments |
//! |---|---|
//! | `prr_delivered` | delivered since entry, the entering ACK included |
//! | `prr_out` | sent since entry, new and retransmitted |
//! | `recover_fs` | denominator of the proportional part: RecoverFS, or Linux's prior_cwnd |
//! | `snd_cnt` | segments that may be sent on this ACK; cwnd = pipe + snd_cnt |
//!
//! | | RFC 6937 | RFC 9937 | Linux 3.2 | Linux 6 |
//! |---|---|---|---|---|
//! | denominator | FlightSize | FlightSize less segments SACKed before | cwnd at entry | cwnd at entry |
//! | bound | UB, CRB or SSRB | delivered, + 1 on a SafeACK | SSRB | as RFC 9937 |
//! | forced retransmission | never | while prr_out = 0 | entering ACK | while prr_out = 0 |
//! | ACK that delivers nothing | is counted | is skipped | is counted | is skipped |
//! | cwnd at exit | left alone | ssthresh | ssthresh | ssthresh |
//!
//! Differs: counts are segments instead of bytes. snd_cnt is rounded up to a whole segment, which corresponds to
//! sending a segment as soon as snd_cnt > 0 bytes. The property tests compare this form with one in bytes.

use ackclock_core::trace::{Branch, RuleVars};

use super::{RecoveryAck, RecoveryEntry, RecoveryExit, RecoveryRule};
use crate::window::Window;

/// Denominator of the proportional part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoverFs {
    /// RFC 6937: snd_nxt - snd_una at entry, limited-transmit segments included.
    FlightSize,
    /// RFC 9937 §6.1: FlightSize less the segments SACKed before the entering ACK, plus those that this ACK
    /// acknowledged.
    FlightSizeLessSacked,
    /// Linux: cwnd at entry.
    PriorCwnd,
    /// A fixed number of segments, for experiments.
    Fixed(u32),
}

/// Reduction bound: number of segments that may be sent while pipe is at or below ssthresh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrrBound {
    /// Unlimited: all of ssthresh - pipe at once, as in RFC 6675.
    Ub,
    /// Conservative: at most the number delivered.
    Crb,
    /// Slow start: one segment more than delivered, on every ACK.
    Ssrb,
    /// RFC 9937 and Linux since 2015: the number delivered, plus one on an ACK that advances snd_una without new
    /// losses.
    SafeAck,
}

/// Condition under which a segment may be sent although snd_cnt is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForcedRetransmit {
    /// Never.
    Never,
    /// On the ACK that enters recovery.
    EnteringAck,
    /// On any ACK until a segment has been sent.
    UntilSent,
}

/// cwnd at the end of recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrrExit {
    /// cwnd as set on the last ACK.
    Keep,
    /// ssthresh.
    Ssthresh,
}

/// Parameters that define a variant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrrParams {
    /// Denominator of the proportional part.
    pub recover_fs: RecoverFs,
    /// Reduction bound below ssthresh.
    pub bound: PrrBound,
    /// Condition of the forced retransmission.
    pub forced: ForcedRetransmit,
    /// Whether an ACK that delivers nothing leaves cwnd unchanged.
    pub skip_undelivering: bool,
    /// cwnd at the end of recovery.
    pub exit: PrrExit,
}

impl PrrParams {
    /// RFC 6937 with the conservative reduction bound.
    pub const CRB: PrrParams = PrrParams {
        recover_fs: RecoverFs::FlightSize,
        bound: PrrBound::Crb,
        forced: ForcedRetransmit::Never,
        skip_undelivering: false,
        exit: PrrExit::Keep,
    };
    /// RFC 6937 with the slow-start reduction bound, which it recommends.
    pub const SSRB: PrrParams = PrrParams { bound: PrrBound::Ssrb, ..PrrParams::CRB };
    /// RFC 6937 with the unlimited bound, for reference.
    pub const UB: PrrParams = PrrParams { bound: PrrBound::Ub, ..PrrParams::CRB };
    /// RFC 9937.
    pub const RFC9937: PrrParams = PrrParams {
        recover_fs: RecoverFs::FlightSizeLessSacked,
        bound: PrrBound::SafeAck,
        forced: ForcedRetransmit::UntilSent,
        skip_undelivering: true,
        exit: PrrExit::Ssthresh,
    };
    /// Linux 3.2, the first kernel with PRR.
    pub const LINUX_3_2: PrrParams = PrrParams {
        recover_fs: RecoverFs::PriorCwnd,
        bound: PrrBound::Ssrb,
        forced: ForcedRetransmit::EnteringAck,
        skip_undelivering: false,
        exit: PrrExit::Ssthresh,
    };
    /// Linux 6 and 7.
    pub const LINUX_6: PrrParams = PrrParams { recover_fs: RecoverFs::PriorCwnd, ..PrrParams::RFC9937 };
}

/// PRR, with the parameters of one variant.
#[derive(Clone, Copy, Debug)]
pub struct Prr {
    /// Parameters of the variant.
    pub params: PrrParams,
    prr_delivered: u64,
    prr_out: u64,
    recover_fs: u64,
    snd_cnt: u64,
    branch: Branch,
}

impl Prr {
    /// Create a rule before its first episode.
    pub fn new(params: PrrParams) -> Prr {
        Prr { params, prr_delivered: 0, prr_out: 0, recover_fs: 1, snd_cnt: 0, branch: Branch::None }
    }

    fn bounded(&self, ack: &RecoveryAck) -> u64 {
        let room = u64::from(ack.ssthresh - ack.pipe);
        let banked = self.prr_delivered.saturating_sub(self.prr_out);
        let delivered = u64::from(ack.delivered);
        let safe_ack = ack.una_advanced && ack.newly_lost == 0;
        let limit = match self.params.bound {
            PrrBound::Ub => room,
            PrrBound::Crb => banked,
            PrrBound::Ssrb => banked.max(delivered) + 1,
            PrrBound::SafeAck => banked.max(delivered) + u64::from(safe_ack),
        };
        room.min(limit)
    }
}

impl RecoveryRule for Prr {
    fn enter(&mut self, entry: &RecoveryEntry) {
        *self = Prr::new(self.params);
        let fs = match self.params.recover_fs {
            RecoverFs::FlightSize => entry.flight_size,
            RecoverFs::FlightSizeLessSacked => {
                (entry.flight_size + entry.newly_sacked + entry.newly_acked).saturating_sub(entry.sacked)
            }
            RecoverFs::PriorCwnd => entry.cwnd,
            RecoverFs::Fixed(segments) => segments,
        };
        self.recover_fs = u64::from(fs.max(1));
    }

    fn on_ack(&mut self, ack: &RecoveryAck) -> u32 {
        if ack.delivered == 0 && self.params.skip_undelivering {
            self.branch = Branch::Hold;
            self.snd_cnt = u64::from(ack.cwnd.saturating_sub(ack.pipe));
            return ack.cwnd;
        }
        self.prr_delivered += u64::from(ack.delivered);
        if ack.pipe > ack.ssthresh {
            self.branch = Branch::Proportional;
            let due = (self.prr_delivered * u64::from(ack.ssthresh)).div_ceil(self.recover_fs);
            self.snd_cnt = due.saturating_sub(self.prr_out);
        } else {
            self.branch = Branch::Bound;
            self.snd_cnt = self.bounded(ack);
        }
        let force = match self.params.forced {
            ForcedRetransmit::Never => false,
            ForcedRetransmit::EnteringAck => ack.entering,
            ForcedRetransmit::UntilSent => self.prr_out == 0,
        };
        if force && self.snd_cnt == 0 {
            self.branch = Branch::Forced;
            self.snd_cnt = 1;
        }
        u32::try_from(u64::from(ack.pipe) + self.snd_cnt).unwrap_or(u32::MAX)
    }

    #[inline]
    fn on_sent(&mut self, segments: u32) {
        self.prr_out += segments as u64;
    }

    fn exit(&mut self, exit: &RecoveryExit) -> u32 {
        let keep = exit.undone || self.params.exit == PrrExit::Keep || exit.ssthresh >= Window::INFINITE;
        if keep {
            exit.cwnd
        } else {
            exit.ssthresh
        }
    }

    fn vars(&self) -> RuleVars {
        let u32 = |n| u32::try_from(n).unwrap_or(u32::MAX);
        RuleVars {
            branch: self.branch,
            sndcnt: u32(self.snd_cnt),
            prr_delivered: u32(self.prr_delivered),
            prr_out: u32(self.prr_out),
            recover_fs: u32(self.recover_fs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: RecoveryEntry = RecoveryEntry {
        cwnd: 20,
        ssthresh: 10,
        flight_size: 22,
        sacked: 3,
        newly_sacked: 1,
        newly_acked: 0,
        min_cwnd: 10,
    };

    fn ack(delivered: u32, pipe: u32) -> RecoveryAck {
        RecoveryAck {
            delivered,
            pipe,
            cwnd: 20,
            ssthresh: 10,
            una_advanced: false,
            newly_lost: 0,
            entering: false,
            progress: true,
        }
    }

    fn entered(params: PrrParams) -> Prr {
        let mut prr = Prr::new(params);
        prr.enter(&ENTRY);
        prr
    }

    #[test]
    fn denominators() {
        assert_eq!(entered(PrrParams::SSRB).recover_fs, 22);
        assert_eq!(entered(PrrParams::RFC9937).recover_fs, 20); // 22 - 3 + 1
        assert_eq!(entered(PrrParams::LINUX_6).recover_fs, 20);
        assert_eq!(entered(PrrParams { recover_fs: RecoverFs::Fixed(7), ..PrrParams::UB }).recover_fs, 7);
    }

    #[test]
    fn bounds_below_ssthresh() {
        for (params, una_advanced, newly_lost, want) in [
            (PrrParams::UB, false, 0, 6),
            (PrrParams::CRB, true, 0, 2),
            (PrrParams::SSRB, false, 5, 3),
            (PrrParams::RFC9937, false, 0, 2),
            (PrrParams::RFC9937, true, 0, 3),
            (PrrParams::RFC9937, true, 1, 2),
        ] {
            let a = RecoveryAck { una_advanced, newly_lost, ..ack(2, 4) };
            assert_eq!(entered(params).on_ack(&a), 4 + want, "{params:?}");
        }
    }

    #[test]
    fn forced_retransmission() {
        // pipe = ssthresh allows no transmission on the entering ACK
        let entering = RecoveryAck { entering: true, ..ack(1, 10) };
        for (params, first, second) in [
            (PrrParams::SSRB, 0, 0),
            (PrrParams::LINUX_3_2, 1, 0),
            (PrrParams::RFC9937, 1, 1),
            (PrrParams::LINUX_6, 1, 1),
        ] {
            let mut prr = entered(params);
            assert_eq!(prr.on_ack(&entering), 10 + first, "{params:?}");
            assert_eq!(prr.on_ack(&ack(1, 10)), 10 + second, "{params:?}, nothing sent");
            prr.on_sent(1);
            assert_eq!(prr.on_ack(&ack(1, 10)), 10, "{params:?}, sent");
        }
    }

    #[test]
    fn an_ack_that_delivers_nothing() {
        let mut prr = entered(PrrParams::LINUX_6);
        assert_eq!(prr.on_ack(&ack(0, 4)), 20);
        assert_eq!(prr.vars().branch, Branch::Hold);
        // Linux 3.2 allows one more segment below ssthresh
        let mut prr = entered(PrrParams::LINUX_3_2);
        assert_eq!(prr.on_ack(&ack(0, 4)), 5);
    }

    #[test]
    fn what_was_not_sent_is_banked() {
        let mut prr = entered(PrrParams::CRB);
        for delivered in 1..=4 {
            assert_eq!(prr.on_ack(&ack(1, 5)), (5 + delivered).min(10));
        }
    }

    #[test]
    fn exits() {
        let exit = RecoveryExit { cwnd: 5, ssthresh: 10, pipe: 4, undone: false };
        assert_eq!(entered(PrrParams::SSRB).exit(&exit), 5);
        assert_eq!(entered(PrrParams::LINUX_3_2).exit(&exit), 10);
        assert_eq!(entered(PrrParams::RFC9937).exit(&exit), 10);
        assert_eq!(entered(PrrParams::RFC9937).exit(&RecoveryExit { cwnd: 20, undone: true, ..exit }), 20);
        let infinite = RecoveryExit { ssthresh: Window::INFINITE, ..exit };
        assert_eq!(entered(PrrParams::LINUX_6).exit(&infinite), 5);
    }

    /// packetdrill gtests/net/tcp/fast_recovery, prr-ss with segments 0 to 3 and the retransmission of 1 lost: cwnd 10,
    /// ssthresh 7, two segments sent by limited transmit.
    #[test]
    fn linux_6_as_packetdrill_expects() {
        let mut prr = Prr::new(PrrParams::LINUX_6);
        prr.enter(&RecoveryEntry { cwnd: 10, ssthresh: 7, flight_size: 12, ..ENTRY });
        let mut pipe = 12 - 2 - 4; // 4 and 5 were SACKed before, 0-3 are lost on the entering ACK
                                   // columns: segments delivered, whether snd_una advances, retransmissions found lost;
                                   // then segments sent
        for (delivered, una_advanced, newly_lost, want) in [
            (1, false, 0, 1), // SACK 6: R0 (its four losses are already out of pipe)
            (1, false, 0, 1), // SACK 7: R1
            (1, false, 0, 1), // SACK 8: R2
            (1, false, 0, 1), // SACK 9: R3
            (1, false, 0, 1), // SACK 10: N12
            (1, false, 0, 1), // SACK 11: N13
            (1, true, 0, 2),  // ACK 1: N14 N15, slow start on a SafeACK
            (2, false, 1, 2), // SACK 2-3, R1 lost again: R1 N16
            (1, false, 0, 1), // SACK 12: N17
            (1, false, 0, 1), // SACK 13: N18
        ] {
            pipe -= delivered + newly_lost;
            let a = RecoveryAck { delivered, pipe, ssthresh: 7, una_advanced, newly_lost, ..ack(0, 0) };
            let sent = prr.on_ack(&a) - pipe;
            assert_eq!(sent, want, "{:?}", prr.vars());
            prr.on_sent(sent);
            pipe += sent;
        }
        assert_eq!(prr.exit(&RecoveryExit { cwnd: 6, ssthresh: 7, pipe: 5, undone: false }), 7);
    }

    #[test]
    fn large_windows_do_not_overflow() {
        let mut prr = Prr::new(PrrParams::LINUX_6);
        prr.enter(&RecoveryEntry { cwnd: 3_000_000, ..ENTRY });
        let a = RecoveryAck { ssthresh: 2_100_000, ..ack(2_900_000, 2_200_000) };
        assert_eq!(prr.on_ack(&a), 2_200_000 + 2_030_000);
    }
}
