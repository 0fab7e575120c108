//! Scalable TCP: grows by one segment per hundred acknowledged and gives up an eighth of the window on a loss, so that
//! recovery takes the same time at any window.
//!
//! Sources: Kelly, "Scalable TCP: improving performance in highspeed wide area networks" (CCR 2003); Linux
//! `tcp_scalable`. No state.

use super::{AckSample, CongestionControl};
use crate::window::Window;

/// Number of acknowledged segments per segment of growth.
pub(super) const AI_CNT: u32 = 100;

/// Scalable TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scalable;

impl CongestionControl for Scalable {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        let Some(acked) = window.past_slow_start(ack) else { return };
        window.additive_increase(window.cwnd.min(AI_CNT), acked);
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        (window.cwnd - (window.cwnd >> 3)).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::sample;

    #[test]
    fn one_percent_up_and_an_eighth_down() {
        let mut w = Window { ssthresh: 2, ..Window::new(1000) };
        for _ in 0..1000 {
            Scalable.on_ack(&mut w, &sample(0, 1));
        }
        assert_eq!(w.cwnd, 1010);
        assert_eq!(Scalable.ssthresh(&w, 1010), 884);
    }
}
