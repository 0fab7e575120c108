//! Transmission times without a division per packet, and sums with a single count per packet. Full segments and pure ACKs are
//! almost all of the traffic on a link. So a link remembers the last three loads, each with its number of packets, two with their
//! transmission times, and works out the sums only when they are read. Most links of a crowd never see a fourth.

use ackclock_core::packet::Load;
use ackclock_core::{Rate, Span};

/// Traffic that a link has transmitted. The caller passes its rate, which never changes: it is needed only
/// for a new load.
#[repr(C)]
#[derive(Clone, Default)]
pub(crate) struct Transmitter {
    recent: [Tally; 2],
    /// Third load back and its number of packets; its transmission time is not kept.
    third: (Load, u64),
    /// Sums of packets of all other loads.
    others: Option<Box<Counted>>,
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

    /// Count one more arrival and transmission.
    #[inline]
    pub(crate) fn count(&mut self) {
        self.packets += 1;
    }
}

/// Return the sums since the start of the run, in which a packet of several segments counts as that many.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted {
    /// Packets offered, by class.
    pub(crate) arrivals: [u64; 4],
    /// Packets whose transmission has ended or is fixed, with their bytes and transmission times.
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

    /// Add the packets of a tally, which arrived and were sent.
    fn add(&mut self, tally: &Tally) {
        let segments = tally.packets * tally.load.segments() as u64;
        self.arrivals[tally.load.class()] += segments;
        self.sent += segments;
        self.bytes_sent += tally.packets * tally.load.bytes() as u64;
        self.transmission = self.transmission + tally.tx * tally.packets;
    }
}

impl Transmitter {
    /// The longer one of the times that are remembered.
    pub(crate) fn longest(&self) -> Span {
        self.recent[0].tx.max(self.recent[1].tx)
    }

    /// Time to put a packet on the wire.
    #[inline]
    pub(crate) fn time(&mut self, rate: &Rate, load: Load) -> Span {
        self.tally(rate, load).tx
    }

    /// Return the tally of packets of this load.
    #[inline(always)]
    pub(crate) fn tally(&mut self, rate: &Rate, load: Load) -> &mut Tally {
        if self.recent[0].load == load {
            return &mut self.recent[0];
        }
        if self.recent[1].load != load {
            self.remember(rate, load);
            return &mut self.recent[0];
        }
        &mut self.recent[1]
    }

    /// Count the oldest tally and reuse it for the first packet of this load; or the next one, if it was this
    /// load's.
    #[cold]
    #[inline(never)]
    fn remember(&mut self, rate: &Rate, load: Load) {
        let ([newest, older], (third, mut packets)) = (self.recent, self.third);
        if third != load {
            if packets > 0 {
                let tally = self.third_of(rate);
                self.others().add(&tally);
            }
            packets = 0;
        }
        self.recent = [Tally { load, tx: rate.tx_time(load.bytes()), packets }, newest];
        self.third = (older.load, older.packets);
    }

    /// The third load's, with its time.
    fn third_of(&self, rate: &Rate) -> Tally {
        let (load, packets) = self.third;
        Tally { load, tx: rate.tx_time(load.bytes()), packets }
    }

    /// Sums of packets without a tally.
    #[inline]
    pub(crate) fn others(&mut self) -> &mut Counted {
        self.others.get_or_insert_default()
    }

    /// The sums of everything.
    pub(crate) fn counted(&self, rate: &Rate) -> Counted {
        let mut counted = self.others.as_deref().copied().unwrap_or_default();
        self.recent.iter().chain([&self.third_of(rate)]).for_each(|tally| counted.add(tally));
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
        let mut transmitter = Transmitter::default();
        let mut sums = Counted::default();
        for (class, segments, bytes) in
            [(3, 1, 1514), (0, 1, 66), (0, 1, 78), (3, 1, 1514), (3, 2, 3028), (0, 1, 78), (3, 1, 78)]
        {
            let load = Load::new(if class == 3 { Class::Data } else { Class::Other }, segments, bytes);
            assert_eq!(transmitter.time(&rate, load), rate.tx_time(bytes));
            transmitter.tally(&rate, load).count();
            sums.arrivals[class] += segments as u64;
            sums.sent += segments as u64;
            sums.bytes_sent += bytes as u64;
            sums.transmission = sums.transmission + rate.tx_time(bytes);
            let counted = transmitter.counted(&rate);
            assert_eq!((counted.arrivals, counted.sent), (sums.arrivals, sums.sent));
            assert_eq!((counted.bytes_sent, counted.transmission), (sums.bytes_sent, sums.transmission));
        }
        let load = Load::new(Class::Data, 1, 1514);
        assert_eq!(Transmitter::default().time(&Rate::INFINITE, load), Span::ZERO);
    }
}
