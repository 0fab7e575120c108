//! RTT statistics per round trip, as in Vegas and its successors: the minimum RTT of the connection and of the round
//! (Linux `struct vegas`). Times are in us, plus one so that none is zero.

use ackclock_core::trace::CaState;

use super::Arrival;

/// Sentinel for "no sample".
pub(super) const NONE: u32 = 0x7fff_ffff;

/// Measurement state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// The round ends when this offset is acknowledged.
    pub beg_snd_nxt: u64,
    /// Whether the congestion state is Open, in which delays are meaningful.
    pub on: bool,
    /// Number of samples in this round.
    pub cnt_rtt: u32,
    /// Minimum RTT of this round, us.
    pub min_rtt: u32,
    /// Minimum RTT of the connection, us.
    pub base_rtt: u32,
}

impl Default for Rounds {
    fn default() -> Rounds {
        Rounds { beg_snd_nxt: 0, on: true, cnt_rtt: 0, min_rtt: NONE, base_rtt: NONE }
    }
}

impl Rounds {
    #[inline]
    pub fn on_sample(&mut self, ack: &Arrival) {
        let Some(rtt) = ack.rtt else { return };
        let rtt = (rtt.as_us() as u32).saturating_add(1).min(NONE);
        self.base_rtt = self.base_rtt.min(rtt);
        self.min_rtt = self.min_rtt.min(rtt);
        self.cnt_rtt += 1;
    }

    /// Process a change of state: a round starts when the state returns to Open.
    pub fn on_state(&mut self, state: CaState, snd_nxt: u64) {
        self.on = state == CaState::Open;
        if self.on {
            self.start(snd_nxt);
        }
    }

    /// Start a round.
    pub fn start(&mut self, snd_nxt: u64) {
        self.beg_snd_nxt = snd_nxt;
        self.cnt_rtt = 0;
        self.min_rtt = NONE;
    }
}
