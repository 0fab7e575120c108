//! Transmission times without a division per packet, and sums with a single count per packet. Full segments and pure ACKs are
//! almost all of the traffic on a link. So a link remembers the last two loads, each with its transmission time and its number
//! of packets, and works out the sums only when they are read.

use ackclock_core::packet::Load;
use ackclock_core::{Rate, Span};

/// A link's rate, and what it transmitted.
#[repr(C)] // the rate is asked for only when a load is new
pub(crate) struct Transmitter {
    recent: [Tally; 2],
    rate: Rate,
    counted: Counted,
}

/// Packets of one load.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    load: Load,
    tx: Span,
    packets: u64,
}

impl Tally {
    /// Transmission time of such a packet.
    #[inline]
    pub(crate) fn tx(&self) -> Span {
        self.tx
    }

    /// One more arrived, and was sent.
    #[inline]
    pub(crate) fn count(&mut self) {
        self.packets += 1;
    }
}

/// Sums since the start of the run, in which a packet of several segments counts as so many.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted {
    /// Packets offered, by class.
    pub(crate) arrivals: [u64; 4],
    /// Packets whose transmission is over or fixed, with their bytes and transmission times.
    pub(crate) sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) transmission: Span,
}

impl Counted {
    /// A packet arrives.
    #[inline]
    pub(crate) fn arrive(&mut self, load: Load) {
        self.arrivals[load.class()] += load.segments() as u64;
    }

    /// A packet is sent, which takes `tx`.
    #[inline]
    pub(crate) fn send(&mut self, load: Load, tx: Span) {
        self.sent += load.segments() as u64;
        self.bytes_sent += load.bytes() as u64;
        self.transmission = self.transmission + tx;
    }

    /// So many packets of a load arrived and were sent.
    fn add(&mut self, tally: &Tally) {
        let segments = tally.packets * tally.load.segments() as u64;
        self.arrivals[tally.load.class()] += segments;
        self.sent += segments;
        self.bytes_sent += tally.packets * tally.load.bytes() as u64;
        self.transmission = self.transmission + tally.tx * tally.packets;
    }
}

impl Transmitter {
    pub(crate) fn new(rate: Rate) -> Transmitter {
        assert!(rate.0 > 0, "invariant: a link's rate is positive");
        Transmitter { recent: [Tally::default(); 2], rate, counted: Counted::default() }
    }

    /// The rate.
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// The longer one of the times that are remembered.
    pub(crate) fn longest(&self) -> Span {
        self.recent[0].tx.max(self.recent[1].tx)
    }

    /// Time to put a packet on the wire.
    #[inline]
    pub(crate) fn time(&mut self, load: Load) -> Span {
        self.tally(load).tx
    }

    /// What is remembered of packets of this load.
    #[inline(always)]
    pub(crate) fn tally(&mut self, load: Load) -> &mut Tally {
        if self.recent[0].load == load {
            return &mut self.recent[0];
        }
        if self.recent[1].load != load {
            self.remember(load);
            return &mut self.recent[0];
        }
        &mut self.recent[1]
    }

    /// The older one is counted, and gives way to the first packet of this load.
    #[cold]
    #[inline(never)]
    fn remember(&mut self, load: Load) {
        self.counted.add(&self.recent[1]);
        let tally = Tally { load, tx: self.rate.tx_time(load.bytes()), packets: 0 };
        self.recent = [tally, self.recent[0]];
    }

    /// The sums of what has no tally.
    #[inline]
    pub(crate) fn others(&mut self) -> &mut Counted {
        &mut self.counted
    }

    /// The sums of everything.
    pub(crate) fn counted(&self) -> Counted {
        let mut counted = self.counted;
        self.recent.iter().for_each(|tally| counted.add(tally));
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::packet::Class;

    #[test]
    fn remembered_times_and_sums_equal_computed_ones() {
        let rate = Rate(10_000_000);
        let mut transmitter = Transmitter::new(rate);
        let mut sums = Counted::default();
        for (class, segments, bytes) in
            [(3, 1, 1514), (0, 1, 66), (0, 1, 78), (3, 1, 1514), (3, 2, 3028), (0, 1, 78), (3, 1, 78)]
        {
            let load = Load::new(if class == 3 { Class::Data } else { Class::Other }, segments, bytes);
            assert_eq!(transmitter.time(load), rate.tx_time(bytes));
            transmitter.tally(load).count();
            sums.arrivals[class] += segments as u64;
            sums.sent += segments as u64;
            sums.bytes_sent += bytes as u64;
            sums.transmission = sums.transmission + rate.tx_time(bytes);
            let counted = transmitter.counted();
            assert_eq!((counted.arrivals, counted.sent), (sums.arrivals, sums.sent));
            assert_eq!((counted.bytes_sent, counted.transmission), (sums.bytes_sent, sums.transmission));
        }
        let load = Load::new(Class::Data, 1, 1514);
        assert_eq!(Transmitter::new(Rate::INFINITE).time(load), Span::ZERO);
    }
}
