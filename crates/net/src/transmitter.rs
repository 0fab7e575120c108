//! Transmission times without a division per packet, and sums for which each packet increments a single counter.
//! Nearly all packets on a link are full segments and pure ACKs. A link therefore remembers the last three loads with
//! their packet counts, two of them with transmission times, and computes its sums only when they are read. Most
//! links of many flows never see a fourth load.

use ackclock_core::packet::Load;
use ackclock_core::{Rate, Span};

/// Traffic transmitted by a link. The caller passes the link's rate, which never changes; it is needed only for
/// a new load.
#[repr(C)]
#[derive(Clone, Default)]
pub(crate) struct Transmitter {
    recent: [Tally; 2],
    /// Third most recent load and its packet count; its transmission time is not stored.
    third: (Load, u64),
    /// Sums over packets of all other loads.
    others: Option<Box<Counted>>,
}

/// Packet count for one load.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    load: Load,
    tx: Span,
    packets: u64,
}

impl Tally {
    /// Transmission time of a packet of this load.
    #[inline]
    pub(crate) fn tx(&self) -> Span {
        self.tx
    }

    /// Count one arrival and transmission.
    #[inline]
    pub(crate) fn count(&mut self) {
        self.packets += 1;
    }
}

/// Sums since the start of the run. A multi-segment packet counts as that many packets.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted {
    /// Packets offered, by class.
    pub(crate) arrivals: [u64; 4],
    /// Packets whose transmission has ended or is scheduled, with their bytes and transmission times.
    pub(crate) sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) transmission: Span,
}

impl Counted {
    /// Count an arrival.
    #[inline]
    pub(crate) fn arrive(&mut self, load: Load) {
        self.arrivals[load.class()] += load.segments() as u64;
    }

    /// Count a transmission that takes `tx`.
    #[inline]
    pub(crate) fn send(&mut self, load: Load, tx: Span) {
        self.sent += load.segments() as u64;
        self.bytes_sent += load.bytes() as u64;
        self.transmission = self.transmission + tx;
    }

    /// Add the packets of a tally, all of which arrived and were sent.
    fn add(&mut self, tally: &Tally) {
        let segments = tally.packets * tally.load.segments() as u64;
        self.arrivals[tally.load.class()] += segments;
        self.sent += segments;
        self.bytes_sent += tally.packets * tally.load.bytes() as u64;
        self.transmission = self.transmission + tally.tx * tally.packets;
    }
}

impl Transmitter {
    /// Longer of the two stored transmission times.
    pub(crate) fn longest(&self) -> Span {
        self.recent[0].tx.max(self.recent[1].tx)
    }

    /// Transmission time of a packet of this load.
    #[inline]
    pub(crate) fn time(&mut self, rate: &Rate, load: Load) -> Span {
        self.tally(rate, load).tx
    }

    /// Return the tally for packets of this load.
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

    /// Make this load the most recent one. The third tally is added to the sums, unless it is for this load and can
    /// be resumed.
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

    /// Tally of the third load, with its transmission time.
    fn third_of(&self, rate: &Rate) -> Tally {
        let (load, packets) = self.third;
        Tally { load, tx: rate.tx_time(load.bytes()), packets }
    }

    /// Sums over packets without a tally.
    #[inline]
    pub(crate) fn others(&mut self) -> &mut Counted {
        self.others.get_or_insert_default()
    }

    /// Return the sums over all packets.
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
