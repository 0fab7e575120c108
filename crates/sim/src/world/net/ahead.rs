//! Handling of packets after each link, determined once all paths have been added.

use super::next::{Hop, AHEAD, ALONE};
use super::{LinkSlot, Net};

impl Net {
    /// Determine for each hop how packets are passed on. Called once all paths have been added.
    pub(in crate::world) fn look_for_sources(&mut self, may_stand: bool) {
        if std::mem::replace(&mut self.knows_sources, true) {
            return;
        }
        let (sources, shortcuts) = (self.sources(), self.shortcuts);
        // all packets of the link come from one other link, and it accepts them ahead of time: see
        // `Link::takes_ahead`
        let takes_ahead = |(source, slot): (&Source, &LinkSlot)| {
            shortcuts.ahead && matches!(source, Source::Link(_)) && slot.link.takes_ahead()
        };
        let mut takes: Vec<bool> = sources.iter().zip(&self.links).map(takes_ahead).collect();
        self.look_for_queues_told_late(&sources, &mut takes);
        for slot in &mut self.links {
            let ahead = slot.next.ahead && !may_stand;
            for hop in slot.next.hops(&mut self.tables) {
                let how = match ahead {
                    true if hop.is_link() && takes[hop.link() as usize] => AHEAD,
                    true if shortcuts.events => ALONE,
                    _ => 0,
                };
                *hop = Hop(hop.link() | how);
            }
        }
        self.look_for_junctions(&sources);
    }

    /// Sources of each link's packets, over all paths.
    fn sources(&self) -> Vec<Source> {
        let mut sources = vec![Source::None; self.links.len()];
        for (flow, origin) in self.origins.iter().enumerate() {
            for direction in [0, 1] {
                let (mut hop, mut from) = (Hop(origin.first[direction]), Source::Hosts);
                while hop.is_link() {
                    let link = hop.link();
                    sources[link as usize].learn(from);
                    from = Source::Link(link);
                    hop = self.links[link as usize].next.of(2 * flow + direction, &self.tables);
                }
            }
        }
        sources
    }

    /// Find the queues that may compute departures late, starting from the ends of the paths. Add those of them that
    /// get packets from a single link to `takes`.
    fn look_for_queues_told_late(&mut self, sources: &[Source], takes: &mut [bool]) {
        let holds = |slot: &LinkSlot| slot.link.takes_ahead() && slot.link.holds();
        let mut open: Vec<usize> = (0..takes.len()).filter(|&link| holds(&self.links[link])).collect();
        open.iter().for_each(|&link| takes[link] = false);
        if !(self.shortcuts.told_late && self.shortcuts.ahead) {
            return;
        }
        loop {
            let before = open.len();
            open.retain(|&link| {
                let slot = &mut self.links[link];
                let goes_on =
                    slot.next.hops(&mut self.tables).all(|hop| !hop.is_link() || takes[hop.link() as usize]);
                slot.next.told_late = !slot.next.ends && goes_on;
                takes[link] = slot.next.told_late && matches!(sources[link], Source::Link(_));
                !slot.next.told_late
            });
            if open.len() == before {
                return;
            }
        }
    }
}

/// Source of a link's packets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    None,
    Link(u32),
    /// Several links.
    Links,
    /// At least one host, possibly links as well.
    Hosts,
}

impl Source {
    /// Add a source.
    pub(super) fn learn(&mut self, source: Source) {
        *self = match *self {
            Source::None => source,
            known if known == source => source,
            Source::Link(_) | Source::Links if source != Source::Hosts => Source::Links,
            _ => Source::Hosts,
        };
    }
}
