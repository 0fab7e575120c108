//! NewReno's window rule as in FreeBSD 4: cwnd is ssthresh during recovery, and recovery ends without a burst.
//!
//! Sources: FreeBSD 4 `tcp_input`, the full ACK of `tcp_newreno`: if ssthresh exceeds the data in flight, so that a
//! burst would follow, cwnd becomes the data in flight plus one segment and grows again by slow start. RFC 6582 §3.2
//! step 3 allows the same as its option (1). State: none beyond cwnd. Differs: RFC 6582 assumes at least one segment in
//! flight, so that cwnd ends at two segments where FreeBSD's ends at one. The inflation of cwnd by duplicate ACKs is
//! represented by the sender's pipe, which counts a duplicate ACK as a segment that has left the network.

use super::{RecoveryAck, RecoveryEntry, RecoveryExit, RecoveryRule};

/// cwnd = ssthresh, then min(ssthresh, in flight + 1).
#[derive(Clone, Copy, Debug, Default)]
pub struct FreeBsd4;

impl RecoveryRule for FreeBsd4 {
    fn enter(&mut self, _entry: &RecoveryEntry) {}

    fn on_ack(&mut self, ack: &RecoveryAck) -> u32 {
        ack.ssthresh
    }

    fn on_sent(&mut self, _segments: u32) {}

    fn exit(&mut self, exit: &RecoveryExit) -> u32 {
        match exit.undone {
            true => exit.cwnd,
            false => exit.ssthresh.min(exit.pipe + 1),
        }
    }

    fn forces_first_retransmit(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_ends_at_what_is_in_flight_plus_one_segment_and_never_above_ssthresh() {
        let exit =
            |ssthresh, pipe| FreeBsd4.exit(&RecoveryExit { cwnd: ssthresh, ssthresh, pipe, undone: false });
        assert_eq!(exit(828, 454), 455);
        assert_eq!(exit(10, 454), 10);
        assert_eq!(exit(10, 0), 1);
        assert_eq!(FreeBsd4.exit(&RecoveryExit { cwnd: 30, ssthresh: 20, pipe: 3, undone: true }), 30);
    }
}
