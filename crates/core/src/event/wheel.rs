//! Timing wheels: slots of equal length, each with a linked list of its events.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Event, TURN};
use crate::prefetch::prefetch_all;

/// Slot number for "none".
pub(super) const NEVER: u64 = u64::MAX;

/// First entry of each slot of a wheel.
type First = Box<[u32; TURN as usize]>;

/// `TURN` consecutive slots, indexed by the low bits of the slot number.
pub(super) struct Wheel {
    first: First,
    /// Bitmap of the slots that contain entries.
    used: [u64; WORDS],
    /// Bitmap of the words of `used` that may be non-zero. The bit of a word that has become zero is cleared on the
    /// next search.
    words: [u64; WORDS / 64],
    /// Memory of discarded wheels for the next copy; `None` if memory is not shared.
    spare: Option<Spare>,
}

/// Number of words in the bitmap, one bit per slot.
const WORDS: usize = TURN as usize / 64;

impl Default for Wheel {
    fn default() -> Self {
        Wheel { first: empty(), used: [0; WORDS], words: [0; WORDS / 64], spare: None }
    }
}

fn empty() -> First {
    vec![NONE; TURN as usize].try_into().expect("as long")
}

impl Clone for Wheel {
    fn clone(&self) -> Wheel {
        let Some(spare) = &self.spare else {
            return Wheel { first: self.first.clone(), used: self.used, words: self.words, spare: None };
        };
        let mut first = spare.borrow_mut().pop().unwrap_or_else(empty);
        each_used(&self.used, &self.words, |i| first[i] = self.first[i]);
        Wheel { first, used: self.used, words: self.words, spare: Some(spare.clone()) }
    }
}

/// Call `each` with the index of every slot that contains entries.
fn each_used(used: &[u64; WORDS], words: &[u64; WORDS / 64], mut each: impl FnMut(usize)) {
    for (half, &words) in words.iter().enumerate() {
        let mut words = words;
        while words != 0 {
            let word = half * 64 + words.trailing_zeros() as usize;
            words &= words - 1;
            let mut used = used[word];
            while used != 0 {
                each(word * 64 + used.trailing_zeros() as usize);
                used &= used - 1;
            }
        }
    }
}

/// Slot arrays of discarded wheels, all empty.
type Spare = Rc<RefCell<Vec<First>>>;

impl Wheel {
    /// Let copies of this wheel reuse the memory of discarded wheels. `with` is the pool of another wheel to share.
    pub(super) fn share_memory(&mut self, with: Option<Spare>) -> Spare {
        self.spare.insert(with.unwrap_or_default()).clone()
    }

    /// Discard this wheel, and keep its memory if memory is shared.
    pub(super) fn give_back(self) {
        let Wheel { mut first, used, words, spare: Some(spare) } = self else { return };
        each_used(&used, &words, |i| first[i] = NONE);
        spare.borrow_mut().push(first);
    }

    #[inline]
    pub(super) fn put(&mut self, entries: &mut Entries, slot: u64, event: Event) {
        let i = (slot % TURN) as usize;
        self.first[i] = entries.add(event, self.first[i]);
        let used = &mut self.used[i / 64];
        if *used == 0 {
            self.words[i / 64 / 64] |= 1 << (i / 64 % 64);
        }
        *used |= 1 << (i % 64);
    }

    /// Return the first slot after `slot` that contains entries.
    #[inline]
    pub(super) fn next(&mut self, slot: u64) -> u64 {
        let from = ((slot + 1) % TURN) as usize;
        match self.used[from / 64] >> (from % 64) {
            0 => self.next_word(slot, from),
            rest => slot + 1 + rest.trailing_zeros() as u64,
        }
    }

    /// Continue the search of [`Wheel::next`] beyond the word that contains `from`: later words first, then from the
    /// start of the wheel.
    #[inline(never)]
    fn next_word(&mut self, slot: u64, from: usize) -> u64 {
        let (half, behind) = (from / 64 / 64, !1 << (from / 64 % 64));
        for (half, asked) in [(half, behind), (1 - half, !0), (half, !behind)] {
            let mut words = self.words[half] & asked;
            while words != 0 {
                let word = half * 64 + words.trailing_zeros() as usize;
                if self.used[word] != 0 {
                    let i = word * 64 + self.used[word].trailing_zeros() as usize;
                    return slot + 1 + (i.wrapping_sub(from) as u64 % TURN);
                }
                words &= words - 1;
                self.words[half] &= !(1 << (word % 64));
            }
        }
        NEVER
    }

    /// Events in the slots of this wheel.
    pub(super) fn entries<'a>(&'a self, entries: &'a Entries) -> impl Iterator<Item = &'a Event> {
        let get = |i: u32| entries.all.get(i as usize);
        self.first.iter().flat_map(move |&i| std::iter::successors(get(i), move |event| get(event.next)))
    }

    /// First entry of a slot.
    #[inline]
    pub(super) fn first_of(&self, slot: u64) -> u32 {
        self.first[(slot % TURN) as usize]
    }

    /// Empty a slot and return its first entry, which links to the others.
    #[inline]
    pub(super) fn take(&mut self, slot: u64) -> u32 {
        let i = (slot % TURN) as usize;
        self.used[i / 64] &= !(1 << (i % 64));
        std::mem::replace(&mut self.first[i], NONE)
    }
}

/// Entry index for "none".
pub(super) const NONE: u32 = u32::MAX;

/// Events in the slots of both wheels, with a free list.
#[derive(Clone)]
pub(super) struct Entries {
    pub(super) all: Vec<Event>,
    free: u32,
}

impl Default for Entries {
    fn default() -> Self {
        Entries { all: Vec::new(), free: NONE }
    }
}

impl Entries {
    #[inline]
    pub(super) fn add(&mut self, event: Event, next: u32) -> u32 {
        let event = Event { next, ..event };
        let i = self.free;
        match self.all.get_mut(i as usize) {
            Some(place) => {
                self.free = place.next;
                *place = event;
                i
            }
            None => {
                self.all.push(event);
                self.all.len() as u32 - 1
            }
        }
    }

    /// Prefetch an entry.
    #[inline]
    pub(super) fn prefetch(&self, i: u32) {
        self.all.get(i as usize).into_iter().for_each(prefetch_all);
    }

    /// Free an entry and return its event.
    #[inline]
    pub(super) fn free(&mut self, i: u32) -> Event {
        let place = &mut self.all[i as usize];
        let event = *place;
        place.next = std::mem::replace(&mut self.free, i);
        event
    }
}
