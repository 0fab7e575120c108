//! Linux rate halving: cwnd shrinks by one segment on every second ACK and is clamped to one segment above the data in
//! flight. At most one segment is therefore sent per ACK, and cwnd never grows in recovery. As a drawback, losses
//! beyond half of the window are not made up for, and a flow with nothing to send leaves recovery with a window of 1 to
//! 3 segments.
//!
//! Sources: behaviour of Linux 2.6 to 3.1 (`tcp_cwnd_down`, `tcp_complete_cwr`, `tcp_moderate_cwnd`); Hoe (1996); Mathis
//! and Mahdavi, "TCP Rate-Halving with Bounding Parameters" (1997).
//!
//! | variable | meaning |
//! |---|---|
//! | `cwnd_cnt` | 1 after an odd number of ACKs (Linux `snd_cwnd_cnt`) |
//! | `min_cwnd` | cwnd is not decremented at or below this: ssthresh, or Reno's ssthresh / 2 |
//!
//! Differs from Mathis and Mahdavi: none of their adjustments at the end of the episode.

use ackclock_core::trace::{Branch, RuleVars};

use super::{RecoveryAck, RecoveryEntry, RecoveryExit, RecoveryRule};

/// Maximum burst after recovery, segments (Linux `tcp_max_burst`, the default reordering metric).
const MAX_BURST: u32 = 3;

/// Reduce by one segment on every second ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateHalving {
    cwnd_cnt: u32,
    min_cwnd: u32,
    branch: Branch,
    sndcnt: u32,
}

impl RecoveryRule for RateHalving {
    fn enter(&mut self, entry: &RecoveryEntry) {
        *self = RateHalving { min_cwnd: entry.min_cwnd, ..RateHalving::default() };
    }

    fn on_ack(&mut self, ack: &RecoveryAck) -> u32 {
        let mut cwnd = ack.cwnd;
        self.branch = Branch::Hold;
        if ack.progress {
            let decr = self.cwnd_cnt + 1;
            self.cwnd_cnt = decr & 1;
            if decr >> 1 != 0 && cwnd > self.min_cwnd {
                cwnd -= decr >> 1;
                self.branch = Branch::Decrement;
            }
            if cwnd > ack.pipe + 1 {
                cwnd = ack.pipe + 1;
                self.branch = Branch::Clamp;
            }
        }
        self.sndcnt = cwnd.saturating_sub(ack.pipe);
        cwnd
    }

    fn on_sent(&mut self, _segments: u32) {}

    /// An undone episode ends in the same way: Linux moderates the restored window as well, and caps it at the
    /// restored ssthresh.
    fn exit(&mut self, exit: &RecoveryExit) -> u32 {
        exit.cwnd.min(exit.ssthresh).min(exit.pipe + MAX_BURST)
    }

    fn vars(&self) -> RuleVars {
        RuleVars { branch: self.branch, sndcnt: self.sndcnt, ..RuleVars::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(min_cwnd: u32) -> RateHalving {
        let mut rule = RateHalving::default();
        rule.enter(&RecoveryEntry {
            cwnd: 20,
            ssthresh: 10,
            flight_size: 22,
            sacked: 3,
            newly_sacked: 1,
            newly_acked: 0,
            min_cwnd,
        });
        rule
    }

    fn ack(cwnd: u32, pipe: u32) -> RecoveryAck {
        RecoveryAck {
            delivered: 1,
            pipe,
            cwnd,
            ssthresh: 10,
            una_advanced: false,
            newly_lost: 0,
            entering: false,
            progress: true,
        }
    }

    #[test]
    fn every_second_ack_takes_one_away_down_to_the_minimum() {
        let mut rule = entered(10);
        let mut cwnd = 14;
        let seen: Vec<u32> = (0..12)
            .map(|_| {
                cwnd = rule.on_ack(&ack(cwnd, 30));
                cwnd
            })
            .collect();
        assert_eq!(seen, [14, 13, 13, 12, 12, 11, 11, 10, 10, 10, 10, 10]);
    }

    #[test]
    fn an_ack_without_progress_changes_nothing() {
        let mut rule = entered(10);
        for _ in 0..3 {
            assert_eq!(rule.on_ack(&RecoveryAck { progress: false, ..ack(14, 2) }), 14);
        }
        assert_eq!(rule.vars().branch, Branch::Hold);
        assert_eq!(rule.on_ack(&ack(14, 2)), 3);
        assert_eq!(rule.vars().branch, Branch::Clamp);
    }

    #[test]
    fn exits_moderated_even_when_undone() {
        let mut rule = entered(10);
        let exit = RecoveryExit { cwnd: 12, ssthresh: 10, pipe: 20, undone: false };
        assert_eq!(rule.exit(&exit), 10);
        assert_eq!(rule.exit(&RecoveryExit { pipe: 0, ..exit }), 3);
        assert_eq!(rule.exit(&RecoveryExit { cwnd: 20, ssthresh: 15, pipe: 14, undone: true }), 15);
        assert_eq!(rule.exit(&RecoveryExit { cwnd: 20, ssthresh: 40, pipe: 14, undone: true }), 17);
    }
}
