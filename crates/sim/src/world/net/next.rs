//! Where a packet goes on behind a link.

use super::MAX_LINKS;

/// Where packets go behind a link, by way: twice the flow, plus one if forward. Packets carry no position.
pub(super) struct Next {
    /// All ways lead there, if there is no table.
    same: Hop,
    /// Some way ends here.
    pub(super) ends: bool,
    /// Where ways part.
    table: Vec<Hop>,
}

impl Next {
    /// No way leads here yet.
    pub(super) const NONE: Next = Next { same: Hop::NOWHERE, ends: false, table: Vec::new() };

    #[inline]
    pub(super) fn of(&self, way: usize) -> Hop {
        match self.table.is_empty() {
            true => self.same,
            false => self.table[way],
        }
    }

    /// `way` goes on to `next`.
    pub(super) fn learn(&mut self, way: usize, next: Hop) {
        self.ends |= next == Hop::ARRIVED;
        if self.same.link() == Hop::NOWHERE.link() {
            self.same = next;
        } else if !self.table.is_empty() || self.same.link() != next.link() {
            // ways before this one that come here at all go on to `same`
            let earlier = if self.table.is_empty() { self.same } else { Hop::ARRIVED };
            self.table.resize(way, earlier);
            self.table.push(next);
        }
    }

    pub(super) fn hops(&mut self) -> impl Iterator<Item = &mut Hop> {
        self.table.iter_mut().chain([&mut self.same])
    }
}

/// The next link, or the end of the way; and how a packet goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Hop(pub(super) u32);

impl Hop {
    /// End of the way.
    pub(super) const ARRIVED: Hop = Hop(ALONE - 1);
    /// No way leads on.
    pub(super) const NOWHERE: Hop = Hop(ALONE - 2);

    pub(super) fn is_link(self) -> bool {
        self.link() < MAX_LINKS as u32
    }

    #[inline]
    pub(super) fn link(self) -> u32 {
        self.0 & (ALONE - 1)
    }

    /// Each packet has an event of its own.
    #[inline]
    pub(super) fn is_alone(self) -> bool {
        self.0 & ALONE != 0
    }

    /// A packet may be passed on ahead of time.
    #[inline]
    pub(super) fn is_ahead(self) -> bool {
        self.0 & AHEAD != 0
    }
}

pub(super) const AHEAD: u32 = 1 << 31;
pub(super) const ALONE: u32 = 1 << 30;
