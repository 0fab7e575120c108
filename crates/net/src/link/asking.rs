//! A link with an adversary that decides about its packets.

use ackclock_core::packet::Ecn;
use ackclock_core::Time;

use super::extras::Extras;
use super::{Crowd, Link};
use crate::adversary::Fate;
use crate::pool::{PacketId, Pool};

impl Link {
    /// Let an adversary decide about each packet from now on.
    pub fn ask_adversary(&mut self) {
        self.ask_for_everything();
        let extras = self.extras_or_none();
        (extras.asks, extras.adversary) = (true, true);
    }

    /// Number of packets dropped by the queue so far.
    pub fn dropped_by_queue(&self) -> u64 {
        self.rest
            .as_ref()
            .and_then(|rest| rest.crowd.rare_if_any())
            .map_or(0, |rare| rare.dropped.iter().sum())
    }
}

/// Decide at random whether the packet is duplicated, unless duplication has already been drawn and saved it from
/// loss (`saved`), then ask the adversary. Returns whether the packet is lost.
pub(super) fn ask(
    extras: &mut Extras,
    crowd: &mut Crowd,
    pool: &mut Pool,
    now: Time,
    id: PacketId,
    saved: bool,
) -> bool {
    if !saved && extras.doubles() {
        extras.owe(now, pool[id]);
    }
    if !extras.adversary {
        return false;
    }
    let fate = pool.ask(now, id);
    match fate {
        None => {}
        Some(Fate::Lost) => return true,
        Some(Fate::Marked) => {
            crowd.rare().marked += pool[id].segments() as u64;
            pool[id].ecn = Ecn::Ce;
        }
        Some(Fate::Late(span)) => extras.late = Some(span),
    }
    false
}
