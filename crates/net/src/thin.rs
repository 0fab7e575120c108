//! Thinned ACKs: a new ACK replaces an older one of the same connection that is still queued, as modems and cable
//! headends do when the return path is slow (RFC 3449 §5.2.1, ACK filtering). ACKs that carry more than an ACK number
//! are kept: those with SACK blocks or other flags, duplicates, and those that shrink the window.

use ackclock_core::packet::{Class, Flags, Header, Segment};
use ackclock_core::{Packet, Time};

use crate::pool::{PacketId, Pool};

/// Waiting ACKs, at most one per connection and direction.
#[derive(Clone)]
pub(crate) struct Thinner {
    most: u32,
    waiting: Vec<Waiting>,
}

#[derive(Clone)]
struct Waiting {
    id: PacketId,
    start: Time,
    stands_for: u32,
}

impl Thinner {
    /// Return a thinner in which one ACK replaces up to `most` ACKs; `None` if ACKs are never replaced.
    pub(crate) fn new(most: u32) -> Option<Thinner> {
        (most > 1).then(|| Thinner { most, waiting: Vec::new() })
    }

    /// Whether a packet that arrives now replaces a waiting one. If so, `id` afterwards refers to the older packet,
    /// which must be dropped.
    pub(crate) fn replaces(&mut self, pool: &mut Pool, now: Time, id: PacketId) -> bool {
        self.waiting.retain(|w| w.start > now);
        let Some(newer) = pure_ack(&pool[id]) else { return false };
        let (conn, forward, bytes) = (pool[id].conn, pool[id].forward, pool[id].bytes);
        let same = |w: &&mut Waiting| pool[w.id].conn == conn && pool[w.id].forward == forward;
        let Some(before) = self.waiting.iter_mut().find(same) else { return false };
        let older = pure_ack(&pool[before.id]).expect("invariant: no others are kept");
        let goes_on = newer.ack > older.ack && newer.flags == older.flags;
        let as_wide = newer.ack + u64::from(newer.wnd) >= older.ack + u64::from(older.wnd);
        if before.stands_for >= self.most || !goes_on || !as_wide || bytes != pool[before.id].bytes {
            return false;
        }
        before.stands_for += 1;
        let packet = pool[id];
        pool[id] = std::mem::replace(&mut pool[before.id], packet);
        true
    }

    /// Record an accepted packet whose transmission starts at `start`.
    pub(crate) fn note(&mut self, pool: &Pool, now: Time, id: PacketId, start: Time) {
        if start > now && pure_ack(&pool[id]).is_some() {
            let packet = &pool[id];
            self.waiting.retain(|w| pool[w.id].conn != packet.conn || pool[w.id].forward != packet.forward);
            self.waiting.push(Waiting { id, start, stands_for: 1 });
        }
    }
}

fn pure_ack(packet: &Packet) -> Option<&Segment> {
    match &packet.header {
        Header::Tcp(seg)
            if packet.class() == Class::Other && seg.flags.has(Flags::ACK) && seg.sack.is_empty() =>
        {
            Some(seg)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkConfig, SoleLink};
    use ackclock_core::packet::SackBlock;
    use ackclock_core::{Rate, Span};

    fn ack(conn: u32, ack: u64) -> Packet {
        let seg = Segment { ack, wnd: 1000, flags: Flags::ACK, ..Segment::default() };
        Packet { header: seg.into(), conn, bytes: 1000, ..Packet::default() }
    }

    fn changed(packet: Packet, change: impl Fn(&mut Segment)) -> Packet {
        let mut packet = packet;
        change(packet.header.tcp_mut());
        packet
    }

    /// Offer ACKs together, behind a packet that takes 1 us. Returns the connection and number of those delivered.
    fn left(most: u32, came: &[Packet]) -> Vec<(u32, u64)> {
        let config = LinkConfig { thin_acks: most, ..LinkConfig::new("l", Rate(8_000_000_000), Span::ZERO) };
        let mut link = SoleLink::new(&config, 1);
        let _first = link.offer(Time::ZERO, ack(9, 0));
        let refused = came.iter().filter(|&&p| link.offer(Time(10), p).is_err()).count();
        let mut left = Vec::new();
        while link.next_event() != Time::NEVER {
            let at = link.next_event();
            while let Some(packet) = link.poll(at) {
                let Header::Tcp(seg) = packet.header else { unreachable!() };
                left.push((packet.conn, seg.ack));
            }
        }
        assert_eq!(left.remove(0), (9, 0));
        assert_eq!(left.len() + refused, came.len());
        assert_eq!(link.counters(Time(1 << 40)).dropped_queue as usize, refused);
        left
    }

    #[test]
    fn the_newest_stands_for_those_that_wait() {
        let came: Vec<Packet> = (1..=7).map(|n| ack(1, n * 100)).collect();
        assert_eq!(left(1, &came).len(), 7);
        assert_eq!(left(3, &came), [(1, 300), (1, 600), (1, 700)]);
        assert_eq!(left(100, &came), [(1, 700)]);
        let two: Vec<Packet> = (1..=4).flat_map(|n| [ack(1, n * 100), ack(2, n)]).collect();
        assert_eq!(left(100, &two), [(1, 400), (2, 4)]);
    }

    #[test]
    fn the_older_one_is_refused() {
        let config = LinkConfig { thin_acks: 9, ..LinkConfig::new("l", Rate(8_000_000_000), Span::ZERO) };
        let mut link = SoleLink::new(&config, 1);
        let refused: Vec<_> = [ack(9, 0), ack(1, 100), ack(1, 200), ack(1, 300)]
            .into_iter()
            .filter_map(|packet| link.refuse(Time::ZERO, packet))
            .map(|(packet, _)| pure_ack(&packet).expect("no other was offered").ack)
            .collect();
        assert_eq!(refused, [100, 200]);
    }

    #[test]
    fn what_says_more_stays() {
        let block = SackBlock { start: 500, end: 600 };
        for (second, why) in [
            (ack(1, 100), "a duplicate"),
            (changed(ack(1, 200), |seg| seg.sack.push(block)), "SACK"),
            (changed(ack(1, 200), |seg| seg.flags |= Flags::ECE), "a mark"),
            (changed(ack(1, 200), |seg| seg.wnd = 800), "a window that closes"),
            (changed(ack(1, 200), |seg| seg.len = 10), "data"),
        ] {
            assert_eq!(left(100, &[ack(1, 100), second]).len(), 2, "{why}");
        }
        let fits = changed(ack(1, 200), |seg| seg.wnd = 900);
        assert_eq!(left(100, &[ack(1, 100), fits]), [(1, 200)], "the window's end stays where it was");
    }
}
