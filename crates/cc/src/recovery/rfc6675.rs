//! The window rule of RFC 6675 (and of RFC 3517 before it): cwnd becomes ssthresh at once, and the sender transmits
//! while pipe < cwnd. After a light loss the sender is silent until pipe has drained, for part of a round trip. After a
//! heavy loss it sends ssthresh - pipe segments in one burst.
//!
//! Sources: RFC 6675 §5, steps 4.2, 4.3 and (C). State: none beyond cwnd. Differs: only in counting segments instead of
//! bytes. The sender selects the segment to send (NextSeg).

use super::{RecoveryAck, RecoveryEntry, RecoveryExit, RecoveryRule};

/// cwnd = ssthresh from entry to exit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rfc6675;

impl RecoveryRule for Rfc6675 {
    fn enter(&mut self, _entry: &RecoveryEntry) {}

    fn on_ack(&mut self, ack: &RecoveryAck) -> u32 {
        ack.ssthresh
    }

    fn on_sent(&mut self, _segments: u32) {}

    fn exit(&mut self, exit: &RecoveryExit) -> u32 {
        if exit.undone {
            exit.cwnd
        } else {
            exit.ssthresh
        }
    }

    fn forces_first_retransmit(&self) -> bool {
        true
    }
}
