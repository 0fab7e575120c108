//! Who waits in a FIFO link whose departure times are computed on arrival. Only packets that have to wait are entered;
//! each may leave the ring when its transmission starts, so the count at any instant costs O(1), amortised. Until
//! somebody must know ([`Backlog::advance`]), those who have gone count too.

use ackclock_core::Time;

#[derive(Clone, Copy)]
struct Waiting {
    start: Time,
    bytes: u32,
    segments: u32,
}

/// The packets that wait, in order of the start of their transmission. One of several segments counts as so many: where a
/// limit counts packets, it holds what it would hold of packets of one segment.
#[derive(Default)]
pub(crate) struct Backlog {
    /// As many as a power of two, or none yet. Places are counted on and on, the first that waits and the next that is free.
    ring: Vec<Waiting>,
    first: usize,
    end: usize,
    bytes: u64,
    packets: u32,
    max: u32,
    /// Packets x ns, as if everybody who waits now had waited to the end already.
    area: u128,
}

impl Backlog {
    /// Let those go whose transmission starts at or before `now`.
    #[inline(never)]
    pub(crate) fn advance(&mut self, now: Time) {
        while self.first != self.end {
            let first = self.ring[self.place(self.first)];
            if first.start > now {
                return;
            }
            self.bytes -= first.bytes as u64;
            self.packets -= first.segments;
            self.first += 1;
        }
    }

    #[inline]
    fn place(&self, n: usize) -> usize {
        n & (self.ring.len() - 1)
    }

    /// There may be more than ever.
    #[inline(never)]
    fn make_room(&mut self, now: Time, segments: u32) {
        self.advance(now);
        self.max = self.max.max(self.packets + segments);
        if self.end - self.first == self.ring.len() {
            self.grow();
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let room = (2 * self.ring.len()).max(4);
        let mut ring = vec![Waiting { start: Time::ZERO, bytes: 0, segments: 0 }; room];
        for n in self.first..self.end {
            ring[n & (room - 1)] = self.ring[self.place(n)];
        }
        self.ring = ring;
    }

    /// A packet starts to wait at `now`, until `start`.
    #[inline]
    pub(crate) fn push(&mut self, now: Time, start: Time, bytes: u32, segments: u32) {
        if self.packets + segments > self.max || self.end - self.first == self.ring.len() {
            self.make_room(now, segments);
        }
        let place = self.place(self.end);
        self.ring[place] = Waiting { start, bytes, segments };
        self.end += 1;
        self.packets += segments;
        self.bytes += bytes as u64;
        self.area += (start - now).0 as u128 * segments as u128;
    }

    /// Packets that waited when [`Backlog::advance`] was called last, and came since.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.packets
    }

    /// The same, where one of several segments counts once.
    pub(crate) fn whole(&self) -> u32 {
        (self.end - self.first) as u32
    }

    /// Their bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Most packets that ever waited.
    pub(crate) fn max(&self) -> u32 {
        self.max
    }

    /// Start the search for the greatest number anew.
    pub(crate) fn forget_max(&mut self) {
        self.max = self.len();
    }

    /// Packets x ns of all who ever came, up to the end of their wait.
    pub(crate) fn waited(&self) -> u128 {
        self.area
    }

    /// Packets x ns up to `now`: the integral of the number that waited.
    pub(crate) fn area(&self, now: Time) -> u128 {
        let waiting = (self.first..self.end).map(|n| self.ring[self.place(n)]);
        let still_to_wait: u128 = waiting.map(|w| w.start.since(now).0 as u128 * w.segments as u128).sum();
        self.area - still_to_wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_until_the_start_and_integrates_up_to_now() {
        let mut backlog = Backlog::default();
        backlog.push(Time(0), Time(10), 100, 1);
        backlog.push(Time(5), Time(20), 50, 1);
        assert_eq!((backlog.len(), backlog.bytes(), backlog.area(Time(5))), (2, 150, 5));
        backlog.advance(Time(10));
        assert_eq!((backlog.len(), backlog.bytes(), backlog.area(Time(10))), (1, 50, 15));
        backlog.advance(Time(25));
        assert_eq!((backlog.len(), backlog.bytes(), backlog.area(Time(25)), backlog.max()), (0, 0, 25, 2));
    }
}
