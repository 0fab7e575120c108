//! Trains: runs of segments that share one header (see `sender/train.rs`).

use ackclock_core::{Flags, Segment, Time};

use super::{Connection, State};

impl Connection {
    /// Number of segments of new data that may be sent back to back without further checks. 0: no
    /// train, so send each segment by [`Connection::transmit_into`], as after a train.
    #[inline(always)]
    pub fn train_length(&self, now: Time) -> u32 {
        let Some(sender) = self.sender.now() else { return 0 };
        match sender.train_length(now) {
            0 => 0,
            // after SACK blocks, the payload returns to its full size before the next segment
            _ if self.cramped
                || !self.plain && self.state != State::Established
                || !self.receiver.stamps_alike() =>
            {
                0
            }
            length => {
                debug_assert!(!self.ack_first, "it leaves before the first data");
                length
            }
        }
    }

    /// Write into `seg` the fields that all segments of a train share.
    #[inline(always)]
    pub fn begin_train(&mut self, now: Time, length: u32, seg: &mut Segment) {
        if let Some(sender) = self.sender.now_mut() {
            let common = sender.begin_train(now, length);
            self.receiver.on_data_sent(now);
            self.write_header(now, common, seg);
        }
    }

    /// Write the next segment of the train over the previous one or over the common header.
    #[inline(always)]
    pub fn next_of_train(&mut self, seg: &mut Segment) {
        if let Some(sender) = self.sender.now_mut() {
            let (seq, seg_no, pushes) = sender.next_of_train();
            (seg.seq, seg.seg_no) = (seq, seg_no);
            if pushes {
                seg.flags |= Flags::PSH;
            }
        }
    }

    /// Record the end of a train. Return true if there is nothing more to send for now.
    #[inline(always)]
    pub fn ends_with_train(&mut self, now: Time) -> bool {
        let ends = self.sender.now_mut().is_some_and(|sender| sender.ends_with_train(now));
        ends && (self.plain || self.keeper.is_none()) && !self.receiver.ack_due()
    }
}
