//! Datagrams: payloads of transports over UDP, and the contract of their endpoints. Plain traffic (constant rate,
//! voice) only sends data. A rate-based transport (PCC) also receives reports.

use crate::packet::Ecn;
use crate::time::{Span, Time};

/// Bytes of the IPv4 and UDP headers.
pub const UDP_IP_BYTES: u32 = 28;

/// A datagram.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Datagram {
    /// Data from the sending end, or a request from the receiving end.
    Data(Data),
    /// Arrival report, from the receiving end.
    Report(Report),
    /// Datagram of an external stack. Only its size is known here.
    Opaque(Opaque),
}

/// Datagram whose bytes are stored elsewhere until it arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Opaque {
    /// Datagram number at this end, counted from 1.
    pub number: u64,
    /// Hash of the bytes.
    pub hash: u64,
    /// Index of the stored bytes, see [`Carried`](crate::foreign::Carried).
    pub place: u32,
    /// Bytes that follow the headers counted in `header`.
    pub len: u32,
    /// Ordinal among this end's datagrams with application data, counted from 1; 0 if this one carries none.
    pub piece: u32,
    /// ECN mark set by the stack.
    pub ecn: Ecn,
    /// Header bytes in front of the payload: 28 for IPv4 and UDP, 20 for IPv4 alone if the payload is a TCP
    /// segment.
    pub header: u8,
}

/// Data datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Data {
    /// Datagram number, counted from 0 in transmission order; never reused.
    pub number: u64,
    /// Chunk number, counted from 0. A retransmission carries the same chunk under a new `number`.
    pub chunk: u64,
    /// Transmission time, by the sender's clock.
    pub sent: Time,
    /// Payload bytes.
    pub len: u32,
    /// Length of the transport's own header, which follows the UDP header, bytes.
    pub header: u16,
    /// Transmission number of the chunk: 0 for the original, 1 for the first retransmission.
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
    /// The last chunk of payload.
    Last = 1,
    /// Opens a connection; no payload.
    Hello = 2,
    /// Tells a receiver that already has all data that the transfer is complete; no payload.
    Close = 3,
    /// Sent on the return path: requests data from the sending end. `chunk` counts the bytes requested so far,
    /// including this request.
    Request = 4,
}

/// Number of words in [`Report::received`].
pub const REPORT_WORDS: usize = 4;

/// Arrival report, similar to SACK. It covers the [`Report::SPAN`] numbers below the largest, and so repeats
/// earlier reports that may have been lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// All chunks below this number have arrived.
    pub next_chunk: u64,
    /// Largest datagram number that arrived.
    pub largest: u64,
    /// Time between the arrival of `largest` and the transmission of this report.
    pub held: Span,
    /// Bitmap of arrivals: bit `i % 64` of word `i / 64` is set if datagram `largest - 1 - i` arrived.
    pub received: [u64; REPORT_WORDS],
    /// Number of datagrams not covered by any earlier report.
    pub fresh: u32,
    /// Payload bytes after the UDP header.
    pub len: u32,
}

impl Report {
    /// Number of datagrams below the largest covered by a report.
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

    /// Two words identifying the datagram in the run's digest.
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

/// One end of a transport over datagrams. Time is an argument; the caller polls for datagrams and for the next
/// deadline. A busy host may call later than the deadline, and the endpoint decides how to handle the delay.
pub trait DatagramEndpoint {
    /// Process a datagram from the peer.
    fn on_packet(&mut self, now: Time, datagram: &Datagram);

    /// Process the expired deadline.
    fn on_timer(&mut self, now: Time);

    /// Return the next datagram to send now. Called until it returns `None`.
    fn poll_transmit(&mut self, now: Time) -> Option<Datagram>;

    /// Time at which [`on_timer`](Self::on_timer) must be called; `Time::NEVER` if no timer is armed.
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
