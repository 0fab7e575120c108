//! What a link needs once a packet waits.

use ackclock_core::packet::Class;
use ackclock_core::{Span, Time};

use crate::queue::backlog::Backlog;
use crate::queue::instants::Instants;

/// What a link needs from the moment on at which a packet has to wait, is marked or is lost: few of the access links of
/// many flows ever do.
#[derive(Default)]
pub(super) struct Crowd {
    pub(super) backlog: Backlog,
    /// Whole seconds at which packets waited.
    pub(super) instants: Instants,
    pub(super) max_wait: Span,
    pub(super) dropped: [u64; 4],
    pub(super) dropped_loss: u64,
    pub(super) refused: u64,
    pub(super) marked: u64,
    /// In a queue that holds its packets: those transmitted, their time there, and since when it is not empty.
    pub(super) served: u64,
    pub(super) waited: u128,
    pub(super) occupied: Time,
}

impl Crowd {
    /// The queue refuses a packet.
    pub(super) fn refuse(&mut self, class: Class, segments: u32) {
        self.refused += segments as u64;
        self.dropped[class as usize] += segments as u64;
    }
}

#[inline]
pub(super) fn crowd_of(crowd: &mut Option<Box<Crowd>>) -> &mut Crowd {
    crowd.get_or_insert_with(first_crowd)
}

#[cold]
#[inline(never)]
fn first_crowd() -> Box<Crowd> {
    Box::default()
}
