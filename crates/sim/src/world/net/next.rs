//! The next hop of packets behind a link.

use ackclock_core::prefetch::prefetch;

use super::MAX_LINKS;

/// Next hops behind a link, by path: twice the flow, plus one if forward. Packets carry no position.
#[derive(Clone)]
pub(super) struct Next {
    /// All paths lead there; or they diverge, and it is the number of a table.
    same: Hop,
    /// A path ends here.
    pub(super) ends: bool,
    /// See [`Link::passes_ahead`](ackclock_net::Link::passes_ahead).
    pub(super) ahead: bool,
    /// Whether its queue holds packets that go on to links which take them ahead of time: see
    /// `LinkSlot::due`.
    pub(super) told_late: bool,
}

/// Next hop by path at a link where paths diverge. Few links have such a table.
pub(super) type Tables = Vec<Vec<Hop>>;

impl Next {
    /// No way leads here yet.
    pub(super) fn none(ahead: bool) -> Next {
        Next { same: Hop::NOWHERE, ends: false, ahead, told_late: false }
    }

    #[inline]
    pub(super) fn of(&self, way: usize, tables: &Tables) -> Hop {
        match self.table() {
            None => self.same,
            Some(table) => tables[table][way],
        }
    }

    /// Prefetch `way`, which is looked up next.
    #[inline]
    pub(super) fn prefetch(&self, way: usize, tables: &Tables) {
        let hop = self.table().and_then(|table| tables[table].get(way));
        hop.into_iter().for_each(prefetch);
    }

    #[inline]
    fn table(&self) -> Option<usize> {
        (self.same.0 & PARTS != 0).then_some((self.same.0 & (PARTS - 1)) as usize)
    }

    /// Set the next hop of `way`.
    pub(super) fn learn(&mut self, way: usize, next: Hop, tables: &mut Tables) {
        self.ends |= next == Hop::ARRIVED;
        if self.same.link() == Hop::NOWHERE.link() {
            self.same = next;
        } else if let Some(table) = self.table() {
            tables[table].resize(way, Hop::ARRIVED);
            tables[table].push(next);
        } else if self.same.link() != next.link() {
            // earlier paths through this link continue to `same`
            let mut table = vec![self.same; way];
            table.push(next);
            self.same = Hop(PARTS | tables.len() as u32);
            tables.push(table);
        }
    }

    pub(super) fn hops<'a>(&'a mut self, tables: &'a mut Tables) -> impl Iterator<Item = &'a mut Hop> {
        let table = self.table().map(|table| tables[table].iter_mut());
        table.into_iter().flatten().chain([&mut self.same])
    }
}

/// The next link, or the end of the path; and how a packet continues.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Hop(pub(super) u32);

impl Hop {
    /// End of the path.
    pub(super) const ARRIVED: Hop = Hop(PARTS - 1);
    /// No way leads on.
    pub(super) const NOWHERE: Hop = Hop(PARTS - 2);

    pub(super) fn is_link(self) -> bool {
        self.link() < MAX_LINKS as u32
    }

    #[inline]
    pub(super) fn link(self) -> u32 {
        self.0 & (MEETS - 1)
    }

    /// Each packet has an event of its own.
    #[inline]
    pub(super) fn is_alone(self) -> bool {
        self.0 & ALONE != 0
    }

    /// Packets of several links are gathered there: see `junction`.
    #[inline]
    pub(super) fn meets(self) -> bool {
        self.0 & MEETS != 0
    }

    /// Whether a packet may be passed on ahead of time.
    #[inline]
    pub(super) fn is_ahead(self) -> bool {
        self.0 & AHEAD != 0
    }
}

pub(super) const AHEAD: u32 = 1 << 31;
pub(super) const ALONE: u32 = 1 << 30;
/// Whether packets of several links merge there.
pub(super) const MEETS: u32 = 1 << 29;
/// No link: use a table.
const PARTS: u32 = 1 << 28;
