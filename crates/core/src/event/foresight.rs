//! Lookahead: upcoming events are announced so that their data can be prefetched into the caches.

use super::{Entries, EventQueue, Wheel, NONE};

/// Listener that prefetches the data of upcoming events.
pub trait Foresight {
    /// Event `id` is at most `FAR` slots ahead. It may also be a recently inserted event that reuses an entry.
    fn far_off(&self, id: u32);
    /// Event `id` is at most `SOON` slots ahead.
    fn soon(&self, id: u32);
    /// Event `id` is at most `NEXT` slots ahead.
    fn next(&self, id: u32);
    /// Event `id` is in the next slot.
    fn last(&self, id: u32);
}

/// Distances at which an event is announced, in slots ahead of the current slot.
const FAR: u64 = 16;
const SOON: u64 = 6;
const NEXT: u64 = 3;

/// Progress of the lookahead, see [`EventQueue::foresee`].
#[derive(Clone)]
pub(super) struct Foreseen {
    /// Next entry to announce in each of the `FAR` slots ahead.
    cursors: [u32; FAR as usize],
    turn: u64,
    /// Last slot whose entries were added to `cursors`.
    told: u64,
    soon: Wave,
    next: Wave,
    last: Wave,
}

impl Default for Foreseen {
    fn default() -> Self {
        let [soon, next, last] = [const { Wave { slot: 0, entry: NONE } }; 3];
        Foreseen { cursors: [NONE; FAR as usize], turn: 0, told: 0, soon, next, last }
    }
}

/// Next entry to announce, and its slot.
#[derive(Clone)]
struct Wave {
    slot: u64,
    entry: u32,
}

impl Wave {
    /// Announce up to three further events in the slots up to `at + ahead`.
    #[inline(always)]
    fn roll(&mut self, queue: (&Wheel, &Entries, u64), ahead: u64, announce: impl Fn(u32)) {
        let (fine, entries, at) = queue;
        if self.slot <= at {
            *self = Wave { slot: at, entry: NONE };
        }
        for _ in 0..3 {
            while self.entry == NONE {
                if self.slot == at + ahead {
                    return;
                }
                self.slot += 1;
                self.entry = fine.first_of(self.slot);
            }
            let event = &entries.all[self.entry as usize];
            self.entry = event.next;
            announce(event.id);
        }
    }
}

impl EventQueue {
    /// Announce the events of the next slots, usually up to four times each, so that the data can be prefetched step
    /// by step. Called after every few events; each call announces only a few.
    #[inline(never)]
    pub fn foresee(&mut self, foresight: &impl Foresight) {
        let Foreseen { cursors, turn, told, soon, next, last } = &mut self.foreseen;
        for _ in 0..3 {
            *turn = (*turn + 1) % FAR;
            let cursor = &mut cursors[*turn as usize];
            if let Some(event) = self.entries.all.get(*cursor as usize) {
                foresight.far_off(event.id);
                *cursor = event.next;
                self.entries.prefetch(event.next);
            }
        }
        for slot in (*told).max(self.at) + 1..=self.at + FAR {
            let first = self.fine.first_of(slot);
            cursors[(slot % FAR) as usize] = first;
            self.entries.prefetch(first);
        }
        *told = self.at + FAR;
        let queue = (&self.fine, &self.entries, self.at);
        soon.roll(queue, SOON, |id| foresight.soon(id));
        next.roll(queue, NEXT, |id| foresight.next(id));
        last.roll(queue, 1, |id| foresight.last(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FINE_BITS;
    use crate::Time;

    const FINE: u64 = 1 << FINE_BITS;

    /// Ids announced by `soon`, `next` and `last`.
    #[derive(Default)]
    struct Told([std::cell::RefCell<Vec<u32>>; 3]);

    impl Foresight for Told {
        fn far_off(&self, _: u32) {}
        fn soon(&self, id: u32) {
            self.0[0].borrow_mut().push(id);
        }
        fn next(&self, id: u32) {
            self.0[1].borrow_mut().push(id);
        }
        fn last(&self, id: u32) {
            self.0[2].borrow_mut().push(id);
        }
    }

    #[test]
    fn events_are_foreseen_three_times_before_they_come() {
        const EVENTS: u32 = 2000;
        let mut queue = EventQueue::default();
        for id in 0..EVENTS {
            queue.push(Time(FAR * FINE + 700 * id as u64), Time::ZERO, 0, id); // 12 events per slot
        }
        let (told, mut left) = (Told::default(), 0);
        while left < EVENTS {
            let before = [0, 1, 2].map(|wave| told.0[wave].borrow().len());
            queue.foresee(&told);
            for (wave, before) in before.into_iter().enumerate() {
                let told = told.0[wave].borrow();
                assert!(
                    told[before..].iter().all(|&id| id >= left),
                    "{wave} at {left}: {:?}",
                    &told[before..]
                );
            }
            for _ in 0..3 {
                left += queue.pop_until(Time::NEVER).is_some() as u32;
            }
        }
        for told in told.0 {
            let mut told = told.into_inner();
            told.sort_unstable();
            assert!(told.windows(2).all(|pair| pair[0] < pair[1]), "once");
            assert!(told.len() > EVENTS as usize * 9 / 10, "{}", told.len());
        }
    }
}
