//! Datagrams: the contents of packets of transports over UDP, and the contract of their endpoints. Plain
//! traffic (constant rate, voice) sends data only; a rate-based transport (PCC) gets reports back.

use crate::packet::Ecn;
use crate::time::{Span, Time};

/// Bytes of the IPv4 and the UDP header.
pub const UDP_IP_BYTES: u32 = 28;

/// A datagram.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Datagram {
    /// From the side that sends the data; a request comes from the other one.
    Data(Data),
    /// A report of arrivals, from the other side.
    Report(Report),
    /// Datagram of a stack that others have written: only its size is known here.
    Opaque(Opaque),
}

/// A datagram whose bytes are kept elsewhere until it arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Opaque {
    /// Number of the datagram of this end, from 1.
    pub number: u64,
    /// Hash of the bytes.
    pub hash: u64,
    /// Index of the stored bytes.
    pub place: u32,
    /// Number of bytes, after the header that the simulator charges.
    pub len: u32,
    /// With an application's data, the number of such a datagram of this end, from 1; 0 without.
    pub piece: u32,
    /// ECN mark set by the stack.
    pub ecn: Ecn,
    /// Bytes of headers before them on the wire: 28 of IPv4 and UDP, 20 of IPv4 if the bytes are TCP's own
    /// segment.
    pub header: u8,
}

/// Payload on its way forward.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Data {
    /// Number of the datagram, counted from 0 in order of transmission; never used twice.
    pub number: u64,
    /// Number of the piece of data, counted from 0; a retransmission carries the same piece under a new number.
    pub chunk: u64,
    /// Time of sending, by the sender's clock.
    pub sent: Time,
    /// Payload bytes.
    pub len: u32,
    /// Bytes of the transport's own header after UDP's.
    pub header: u16,
    /// Number of the piece's transmission: 0 is the original.
    pub rexmit: u8,
    /// Purpose of the datagram.
    pub kind: DataKind,
}

/// Purposes of a data datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum DataKind {
    /// Payload.
    #[default]
    Payload = 0,
    /// The last piece of payload: nothing follows.
    Last = 1,
    /// Opens a connection, without payload.
    Hello = 2,
    /// Tells an end that already has all data that there is no more, without payload.
    Close = 3,
    /// On the return path: requests data from the sending end. `chunk` counts the bytes requested so far,
    /// including this request.
    Request = 4,
}

/// Words of [`Report::received`].
pub const REPORT_WORDS: usize = 4;

/// Arrivals, similar to SACK. A report covers the [`Report::SPAN`] numbers below the largest, so that it
/// repeats an earlier report, which may be lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Every piece of data below this one has arrived.
    pub next_chunk: u64,
    /// Largest datagram number that arrived.
    pub largest: u64,
    /// Time from the arrival of `largest` to this report.
    pub held: Span,
    /// Bit `i % 64` of word `i / 64`: datagram `largest - 1 - i` arrived.
    pub received: [u64; REPORT_WORDS],
    /// Datagrams that this report is the first to name.
    pub fresh: u32,
    /// Bytes after the UDP header.
    pub len: u32,
}

impl Report {
    /// Numbers below the largest that a report covers.
    pub const SPAN: u64 = 64 * REPORT_WORDS as u64;
}

impl Datagram {
    /// IPv4 packet size.
    #[inline]
    pub fn ip_bytes(&self) -> u32 {
        match self {
            Datagram::Data(data) => UDP_IP_BYTES + data.header as u32 + data.len,
            Datagram::Report(report) => UDP_IP_BYTES + report.len,
            Datagram::Opaque(opaque) => u32::from(opaque.header) + opaque.len,
        }
    }

    /// ECN mark set by the sender.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        match self {
            Datagram::Opaque(opaque) => opaque.ecn,
            Datagram::Data(_) | Datagram::Report(_) => Ecn::NotEct,
        }
    }

    /// Two words that distinguish it from others, for digests.
    #[inline]
    pub fn fingerprint(&self) -> [u64; 2] {
        match self {
            Datagram::Data(d) => [
                d.number ^ d.chunk.rotate_left(32),
                (d.len as u64) << 16 | (d.rexmit as u64) << 8 | d.kind as u64,
            ],
            Datagram::Report(r) => {
                let bits = r.received.iter().fold(0u64, |sum, &word| sum.rotate_left(13) ^ word);
                [r.largest ^ r.next_chunk.rotate_left(32), bits ^ (r.len as u64) << 48]
            }
            Datagram::Opaque(o) => [o.number ^ (o.len as u64) << 48, o.hash],
        }
    }
}

/// One end of a transport over datagrams. It gets the time as an argument, and is polled for datagrams and
/// for the next deadline. It may be called later than its deadline (a busy host), and decides itself how to
/// handle that.
pub trait DatagramEndpoint {
    /// A datagram of the peer arrived.
    fn on_packet(&mut self, now: Time, datagram: &Datagram);

    /// Process the deadline.
    fn on_timer(&mut self, now: Time);

    /// Return the next datagram to send now; called until there is none.
    fn poll_transmit(&mut self, now: Time) -> Option<Datagram>;

    /// Time at which [`on_timer`](Self::on_timer) has to be called; `Time::NEVER` if only an arrival can
    /// change anything.
    fn next_deadline(&self) -> Time;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_on_the_wire() {
        // PCC over UDT: 1500 bytes of IP = 20 + 8 + 16 + 1456; voice: 160 bytes of G.711 and 12 of RTP
        let pcc = Datagram::Data(Data { len: 1456, header: 16, ..Data::default() });
        assert_eq!(pcc.ip_bytes(), 1500);
        assert_eq!(Datagram::Data(Data { len: 172, ..Data::default() }).ip_bytes(), 200);
        assert_eq!(Datagram::Report(Report { len: 32, ..Report::default() }).ip_bytes(), 60);
    }
}
