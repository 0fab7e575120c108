//! The packets of a run, in one slab. A packet is written once, where it enters the network, and read where it leaves
//! the network. Links pass only its index.

use std::ops::{Index, IndexMut};

use ackclock_core::prefetch::prefetch_all;
use ackclock_core::{Packet, Time};

use crate::adversary::{Adversary, Fate};

/// Index of a packet in the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketId(u32);

impl PacketId {
    /// Index of the packet, below [`PacketId::MOST`].
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }

    /// Return the packet with this index.
    #[inline]
    pub fn of(number: u32) -> PacketId {
        PacketId(number)
    }

    /// Maximum number of packets in a pool. Memory is exhausted before it is reached.
    pub const MOST: u32 = 1 << 29;
}

/// Slab of packets. Free slots are reused, the most recently freed one first, while they are still in the cache.
#[derive(Clone)]
pub struct Pool {
    slots: Vec<Slot>,
    free: u32,
    /// Adversary that decides about packets on links that ask it; `None` without one.
    adversary: Option<Box<Adversary>>,
}

/// A packet, with its links in the chain of the link that carries it (see `wire`).
#[derive(Clone)]
struct Slot {
    packet: Packet,
    /// Departure from the far end of the link.
    due: Time,
    /// Time at which the packet was offered to the link.
    offered: Time,
    /// Index of the next packet on the link, of the destination link, or of the next free slot.
    next: u32,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool { slots: Vec::new(), free: NONE, adversary: None }
    }
}

impl Pool {
    /// Set the adversary.
    pub fn set_adversary(&mut self, adversary: Adversary) {
        self.adversary = Some(Box::new(adversary));
    }

    /// The adversary; `None` without one.
    pub fn adversary(&mut self) -> Option<&mut Adversary> {
        self.adversary.as_deref_mut()
    }

    /// Ask the adversary about a packet; `None` if the packet is treated normally.
    pub(crate) fn ask(&mut self, now: Time, id: PacketId) -> Option<Fate> {
        let packet = &self.slots[id.0 as usize].packet;
        self.adversary.as_mut()?.ask(now, packet)
    }

    /// Return the next free slot, with stale content, for the caller to write a packet to. [`Pool::take_in`] then
    /// inserts the packet.
    #[inline]
    pub fn vacant(&mut self) -> &mut Packet {
        if self.free as usize >= self.slots.len() {
            self.grow();
        }
        &mut self.slots[self.free as usize].packet
    }

    /// Insert the packet in the vacant slot.
    #[inline]
    pub fn take_in(&mut self) -> PacketId {
        let id = PacketId(self.free);
        self.free = self.slots[id.0 as usize].next;
        id
    }

    /// Insert a packet.
    #[inline]
    pub fn insert(&mut self, packet: &Packet) -> PacketId {
        self.copy(packet).0
    }

    /// Insert a copy of a packet, for the caller to modify before it is sent on.
    #[inline(always)]
    pub fn copy(&mut self, packet: &Packet) -> (PacketId, &mut Packet) {
        let id = PacketId(self.free);
        let slot = match (self.free as usize) < self.slots.len() {
            true => &mut self.slots[id.0 as usize],
            false => return self.copy_and_grow(packet),
        };
        self.free = slot.next;
        slot.packet = *packet;
        (id, &mut slot.packet)
    }

    #[cold]
    #[inline(never)]
    fn copy_and_grow(&mut self, packet: &Packet) -> (PacketId, &mut Packet) {
        self.grow();
        self.copy(packet)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.free = self.slots.len() as u32;
        assert!(self.free < PacketId::MOST, "invariant: memory ends before numbers do");
        self.slots.push(Slot { packet: Packet::default(), due: Time::ZERO, offered: Time::ZERO, next: NONE });
    }

    /// Set the destination link of a packet that is in no chain.
    #[inline]
    pub fn send_to(&mut self, id: PacketId, link: u32) {
        self.slots[id.0 as usize].next = link;
    }

    /// Destination link of the packet.
    #[inline]
    pub fn goes_to(&self, id: PacketId) -> u32 {
        self.slots[id.0 as usize].next
    }

    /// Prefetch a packet that will be read soon.
    #[inline]
    pub fn prefetch(&self, id: PacketId) {
        self.slots.get(id.0 as usize).into_iter().for_each(prefetch_all);
    }

    /// Remove a packet whose content is no longer needed.
    #[inline]
    pub fn release(&mut self, id: PacketId) {
        self.slots[id.0 as usize].next = self.free;
        self.free = id.0;
    }

    /// Remove and return a packet.
    #[inline]
    pub fn remove(&mut self, id: PacketId) -> Packet {
        self.release(id);
        self[id]
    }
}

impl Index<PacketId> for Pool {
    type Output = Packet;
    #[inline]
    fn index(&self, id: PacketId) -> &Packet {
        &self.slots[id.0 as usize].packet
    }
}

impl IndexMut<PacketId> for Pool {
    #[inline]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.slots[id.0 as usize].packet
    }
}

/// Pool packets in delivery order, as a linked list.
#[derive(Clone)]
pub(crate) struct Chain {
    head: u32,
    tail: u32,
}

impl Default for Chain {
    fn default() -> Chain {
        Chain { head: NONE, tail: NONE }
    }
}

impl Chain {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// Due time of the first packet, and the time at which it was offered.
    #[inline]
    pub(crate) fn first(&self, pool: &Pool) -> Option<(Time, Time)> {
        pool.slots.get(self.head as usize).map(|slot| (slot.due, slot.offered))
    }

    /// Append a packet.
    #[inline]
    pub(crate) fn push(&mut self, pool: &mut Pool, id: PacketId, due: Time, offered: Time) {
        let slot = &mut pool.slots[id.0 as usize];
        (slot.due, slot.offered, slot.next) = (due, offered, NONE);
        match pool.slots.get_mut(self.tail as usize) {
            None => self.head = id.0,
            Some(last) => {
                debug_assert!(last.due <= due);
                last.next = id.0;
            }
        }
        self.tail = id.0;
    }

    /// Insert a packet behind `before`, or at the front if it is `None`.
    pub(crate) fn insert(
        &mut self,
        pool: &mut Pool,
        before: Option<PacketId>,
        id: PacketId,
        due: Time,
        offered: Time,
    ) {
        let next = match before {
            None => std::mem::replace(&mut self.head, id.0),
            Some(before) => std::mem::replace(&mut pool.slots[before.0 as usize].next, id.0),
        };
        let slot = &mut pool.slots[id.0 as usize];
        (slot.due, slot.offered, slot.next) = (due, offered, next);
        if next == NONE {
            self.tail = id.0;
        }
    }

    /// Remove the first packet.
    #[inline]
    pub(crate) fn pop(&mut self, pool: &Pool) -> Option<PacketId> {
        let id = self.head;
        self.head = pool.slots.get(id as usize)?.next;
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(PacketId(id))
    }

    /// Iterate over the packets and their due times, in order.
    pub(crate) fn iter<'a>(&self, pool: &'a Pool) -> impl Iterator<Item = (Time, &'a Packet)> + use<'a> {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let slot = pool.slots.get(at as usize)?;
            at = slot.next;
            Some((slot.due, &slot.packet))
        })
    }
}

/// Index meaning "no packet": beyond every slot, so that one comparison detects it.
const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_chains_keep_their_order() {
        let mut pool = Pool::default();
        let packet = |conn| Packet { conn, ..Packet::default() };
        let (mut a, mut b) = (Chain::default(), Chain::default());
        for conn in 0..6 {
            let id = pool.insert(&packet(conn));
            if conn % 2 == 0 { &mut a } else { &mut b }.push(&mut pool, id, Time(conn as u64), Time::ZERO);
        }
        assert_eq!(a.iter(&pool).map(|(t, p)| (t.0, p.conn)).collect::<Vec<_>>(), [(0, 0), (2, 2), (4, 4)]);
        let id = a.pop(&pool).expect("three");
        assert_eq!(pool.remove(id).conn, 0);
        let id = pool.insert(&packet(9));
        b.push(&mut pool, id, Time(9), Time(8));
        let order: Vec<u32> = std::iter::from_fn(|| b.pop(&pool)).map(|id| pool[id].conn).collect();
        assert_eq!(order, [1, 3, 5, 9]);
        assert!(b.is_empty() && b.first(&pool).is_none() && pool.slots.len() == 6);
        assert_eq!(a.first(&pool), Some((Time(2), Time(0))));
    }
}
