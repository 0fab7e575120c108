//! Handling of each segment that is marked lost: the volume in flight when the losses of a probe exceeded the threshold
//! (draft-ietf-ccwg-bbr §5.5.10.2; Linux `bbr_skb_marked_lost`, `bbr_run_loss_probe_recovery`).

use ackclock_core::Time;

use super::Bbr3;
use crate::window::Window;

/// A segment marked lost, with the sender's state when it was transmitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct LostSegment {
    /// Segments marked lost since its transmission, including the segment itself.
    pub lost: u32,
    /// Segments in flight just after its transmission.
    pub tx_in_flight: u32,
    /// Whether the sender was application-limited at that time.
    pub is_app_limited: bool,
}

impl Bbr3 {
    /// Return whether the losses of a flight exceed the threshold.
    pub(super) fn too_many_lost(&self, lost: u32, tx_in_flight: u32) -> bool {
        lost > 0 && tx_in_flight > 0 && lost > self.c.loss_thresh.of_volume(tx_in_flight)
    }

    /// BBRHandleLostPacket.
    pub(super) fn judge_lost(&mut self, window: &Window, now: Time, segment: LostSegment) {
        self.bounds.note_loss(self.rounds.delivered);
        if self.probe.samples && self.too_many_lost(segment.lost, segment.tx_in_flight) {
            let inflight = self.inflight_at_loss(segment);
            self.handle_too_high(window, now, inflight, segment.is_app_limited);
        }
    }

    /// Handle the loss of one segment that was never detected from ACKs and was repaired by a tail loss probe.
    pub(super) fn judge_repaired(&mut self, window: &Window, now: Time, is_app_limited: bool) {
        self.bounds.note_loss(self.rounds.delivered);
        let inflight = self.bounds.inflight_latest.saturating_add(1);
        if self.probe.samples && self.too_many_lost(1, inflight) {
            self.handle_too_high(window, now, inflight, is_app_limited);
        }
    }

    /// BBRInflightAtLoss: volume in flight at which the losses reached the threshold. The segment's prefix solves
    /// (`lost` + `prefix`) / (`in flight` + `prefix`) = threshold, with both counts taken before the segment.
    fn inflight_at_loss(&self, segment: LostSegment) -> u32 {
        let (before, lost) = (u64::from(segment.tx_in_flight - 1), u64::from(segment.lost - 1));
        let budget = self.c.loss_thresh.of_rounded_up(before);
        let prefix = self.c.loss_thresh.rest_of(budget.saturating_sub(lost));
        (before + prefix).min(u64::from(u32::MAX)) as u32
    }
}
