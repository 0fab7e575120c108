//! Next hops after a link.

use ackclock_core::prefetch::prefetch;

use super::MAX_LINKS;

/// Next hops after a link, by path index (twice the flow, plus one if forward). Packets do not store their position.
#[derive(Clone)]
pub(super) struct Next {
    /// Next hop if it is the same for all paths; otherwise the number of a table.
    same: Hop,
    /// Whether a path ends after this link.
    pub(super) ends: bool,
    /// See [`Link::passes_ahead`](ackclock_net::Link::passes_ahead).
    pub(super) ahead: bool,
    /// Whether the link's queue may compute departures late, because every next link accepts packets ahead of time:
    /// see `LinkSlot::due`.
    pub(super) told_late: bool,
}

/// Next hop by path, for links after which paths diverge. Few links have such a table.
pub(super) type Tables = Vec<Vec<Hop>>;

impl Next {
    /// Return an entry for a link that is not on any path yet.
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

    /// Prefetch the table entry of `way`.
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
            // paths added earlier continue to `same`
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

/// Next link or end of the path, with flags for how packets are passed on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Hop(pub(super) u32);

impl Hop {
    /// End of the path.
    pub(super) const ARRIVED: Hop = Hop(PARTS - 1);
    /// No path uses the link.
    pub(super) const NOWHERE: Hop = Hop(PARTS - 2);

    pub(super) fn is_link(self) -> bool {
        self.link() < MAX_LINKS as u32
    }

    #[inline]
    pub(super) fn link(self) -> u32 {
        self.0 & (MEETS - 1)
    }

    /// Whether each packet has its own event.
    #[inline]
    pub(super) fn is_alone(self) -> bool {
        self.0 & ALONE != 0
    }

    /// Whether the next link is a junction: see `junction`.
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
/// Flag: the next link is a junction.
pub(super) const MEETS: u32 = 1 << 29;
/// Flag: not a link, but the number of a table.
const PARTS: u32 = 1 << 28;
