//! Endpoints of external transports: the interface implemented by such a stack, and storage for the bytes of its
//! datagrams in flight.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::datagram::{DatagramEndpoint, Opaque};
use crate::packet::Ecn;
use crate::rng::Stream;
use crate::time::{Span, Time};

/// Reason why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Failure {
    /// Nothing arrived within the idle timeout.
    TimedOut = 1,
    /// The receiver's stack refused to track another gap in a stream.
    Gaps = 2,
    /// The stack reported another error.
    Error = 3,
    /// The peer's stack gave up.
    ByPeer = 4,
    /// The connection could not be opened.
    Refused = 5,
}

impl Failure {
    /// Names by discriminant; index 0 means no failure.
    pub const NAMES: [&'static str; 6] =
        ["", "idle timeout", "too many gaps", "error of the stack", "closed by the peer", "refused"];

    /// Return the failure with this name. An unknown name counts as a stack error.
    pub fn of(name: &str) -> Failure {
        match Failure::NAMES.iter().position(|known| *known == name) {
            Some(1) => Failure::TimedOut,
            Some(2) => Failure::Gaps,
            Some(4) => Failure::ByPeer,
            Some(5) => Failure::Refused,
            _ => Failure::Error,
        }
    }
}

/// Endpoint counters.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    /// Packets sent, of all kinds.
    pub sent: u64,
    /// Packets declared lost, except probes for a larger packet size.
    pub lost: u64,
    /// Bytes sent, without IP and UDP headers.
    pub sent_bytes: u64,
    /// ACKs received.
    pub acks: u64,
    /// Number of window reductions.
    pub reductions: u64,
    /// Sum of the RTT samples, one per ACK (that of its newest packet), ns.
    pub rtt_sum_ns: u128,
    /// Number of RTT samples.
    pub rtt_samples: u64,
    /// Minimum RTT sample.
    pub min_rtt: Span,
}

/// Endpoint state.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Congestion window, bytes; 0 if the stack does not report it.
    pub window: u64,
    /// Bytes in flight after the last ACK.
    pub in_flight: u64,
    /// Slow-start threshold, bytes; `None` if it is not set or the controller has none.
    pub ssthresh: Option<u64>,
    /// Smoothed RTT.
    pub srtt: Span,
    /// Payload of a full datagram, bytes.
    pub mtu: u16,
}

/// Bytes written and received by an endpoint, to be checked against its peer's reports.
#[derive(Clone, Copy, Debug)]
pub struct Accounts {
    /// Bytes written by the application; `None` if it writes endlessly or has stopped.
    pub written: Option<u64>,
    /// Whether the application has closed this end.
    pub closes: bool,
    /// Whether the connection has failed at this end.
    pub failed: bool,
    /// Bytes of all datagrams that arrived.
    pub arrived: u64,
    /// Application bytes received, as reported by the stack.
    pub received: u64,
}

/// Row of an endpoint trace: a processed ACK, or a transmitted data datagram.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Time of the event.
    pub t: Time,
    /// Whether a datagram was sent; otherwise an ACK arrived.
    pub is_sent: bool,
    /// Datagram number at this end; 0 in an ACK row.
    pub number: u64,
    /// Datagram size, bytes; 0 if unknown, and in an ACK row.
    pub len: u32,
    /// ACKs received so far.
    pub acks: u64,
    /// Packets declared lost since the previous row, by the ACK or a timer.
    pub lost: u64,
    /// Congestion window before the ACK, bytes.
    pub window_before: u64,
    /// Endpoint state after the event.
    pub sample: Sample,
    /// Minimum round-trip time so far.
    pub min_rtt: Span,
}

/// One endpoint. Dynamic dispatch costs little compared with such a stack's work per packet.
pub trait Foreign: DatagramEndpoint + Send {
    /// Open the connection.
    fn connect(&mut self, now: Time);
    /// Write `bytes` of application data.
    fn write(&mut self, now: Time, bytes: u64);
    /// Provide unlimited application data from now on.
    fn write_forever(&mut self, now: Time);
    /// Close after all written data has been sent.
    fn close(&mut self, now: Time);
    /// Stop writing: send nothing beyond the data already sent.
    fn stop_writing(&mut self, now: Time);
    /// Process a datagram from the peer that arrived with this ECN mark.
    fn arrive(&mut self, now: Time, datagram: &Opaque, ecn: Ecn);

    /// Whether the handshake is complete at this end.
    fn is_established(&self) -> bool;
    /// Written bytes that the peer is known to have, as far as the stack reports.
    fn acked(&self) -> u64;
    /// Bytes read by the application.
    fn received(&self) -> u64;
    /// Whether all of the peer's data has arrived, or the peer has closed.
    fn peer_closed(&self) -> bool;
    /// Whether the application has closed this end.
    fn is_closing(&self) -> bool;
    /// Whether the connection is finished at this end.
    fn is_done(&self) -> bool;
    /// Reason for the failure; `None` unless the connection has failed.
    fn failure(&self) -> Option<Failure>;
    /// Whether the peer opened the connection.
    fn is_responder(&self) -> bool;

    /// Counters of this end.
    fn stats(&self) -> Stats;
    /// State of this end; `None` until there is a connection.
    fn sample(&self) -> Option<Sample>;
    /// Sum of this end's RTT samples in ns, and their number.
    fn rtt_samples(&self) -> (u128, u64);
    /// Start or stop recording a row for each ACK and each transmitted data datagram.
    fn set_trace(&mut self, on: bool);
    /// Take the rows recorded so far.
    fn take_trace(&mut self) -> Vec<Row>;

    /// Byte counts to check the peer's reports against; `None` if the reports of this stack are trusted.
    fn accounts(&self) -> Option<Accounts> {
        None
    }
    /// Called when the connection has ended: compare this end's reports with the peer's byte counts, and report
    /// this stack as faulty if they contradict each other.
    fn hold_against(&self, _peer: &Accounts) {}
}

/// Required for copies of a whole world. A world with an external endpoint refuses to be copied.
impl Clone for Box<dyn Foreign> {
    fn clone(&self) -> Box<dyn Foreign> {
        unreachable!("invariant: no world with an end that others have written is copied")
    }
}

/// Factory for a flow's endpoints.
pub trait Maker {
    /// Name of the stack; the random streams of its endpoints are derived from it.
    fn stack(&self) -> &str;
    /// Initial window, packets.
    fn initial_window(&self) -> u32;
    /// Create an endpoint that opens the connection (`opens`) or waits for it. It draws random numbers from `stream`
    /// and stores the bytes of its datagrams in `carried`. If `one_way` is set, data flows only from the client to
    /// the server; otherwise the server responds.
    fn end(&self, opens: bool, one_way: bool, stream: Stream, carried: &Carried) -> Box<dyn Foreign>;
}

/// Bytes of the datagrams in flight, across all flows of a run. Simulated packets are small and are copied, so
/// they carry only the index of the stored bytes. A freed index and its memory are reused by the next
/// datagram.
#[derive(Clone, Default)]
pub struct Carried(Arc<Mutex<Places>>);

#[derive(Default)]
struct Places {
    places: Vec<Vec<u8>>,
    free: Vec<u32>,
    fault: Option<String>,
}

impl Carried {
    /// Uncontended: only one thread at a time runs a simulation.
    fn all(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Store these bytes and return their index.
    pub fn put(&self, bytes: &[u8]) -> u32 {
        let mut all = self.all();
        let place = all.free.pop().unwrap_or_else(|| {
            all.places.push(Vec::new());
            all.places.len() as u32 - 1
        });
        let kept = &mut all.places[place as usize];
        kept.clear();
        kept.extend_from_slice(bytes);
        place
    }

    /// Read the bytes of a datagram that has arrived, and free their storage.
    pub fn take<T>(&self, datagram: &Opaque, read: impl FnOnce(&[u8]) -> T) -> T {
        let mut all = self.all();
        all.free.push(datagram.place);
        read(&all.places[datagram.place as usize])
    }

    /// Free the bytes of a datagram that will not arrive.
    pub fn lose(&self, datagram: &Opaque) {
        self.all().free.push(datagram.place);
    }

    /// Store separate bytes for the copy of a duplicated datagram.
    pub fn copy(&self, datagram: &mut Opaque) {
        let bytes = self.all().places[datagram.place as usize].clone();
        datagram.place = self.put(&bytes);
    }

    /// Record that a stack reported something impossible, which ends the run. Only the first report is kept.
    pub fn accuse(&self, said: String) {
        self.all().fault.get_or_insert(said);
    }

    /// The first reported fault.
    pub fn fault(&self) -> Option<String> {
        self.all().fault.clone()
    }

    /// Number of datagrams in flight.
    pub fn held(&self) -> usize {
        let all = self.all();
        all.places.len() - all.free.len()
    }
}

/// Hash bytes for digests. Four independent lanes reduce the cost to about one cycle per word.
pub fn hash(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut lanes = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, bytes.len() as u64];
    let mut chunks = bytes.chunks_exact(32);
    for chunk in &mut chunks {
        for (lane, word) in lanes.iter_mut().zip(chunk.chunks_exact(8)) {
            let word = u64::from_le_bytes(word.try_into().expect("invariant: eight bytes"));
            *lane = (*lane ^ word).wrapping_mul(PRIME).rotate_left(29);
        }
    }
    for (at, byte) in chunks.remainder().iter().enumerate() {
        let lane = &mut lanes[at % 4];
        *lane = (*lane ^ u64::from(*byte)).wrapping_mul(PRIME).rotate_left(29);
    }
    lanes.iter().fold(0, |sum: u64, lane| (sum ^ lane).wrapping_mul(PRIME).rotate_left(31))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_when_its_bytes_are_taken() {
        let carried = Carried::default();
        let of = |place| Opaque { place, ..Opaque::default() };
        let take = |place| carried.take(&of(place), <[u8]>::to_vec);
        let (first, second) = (carried.put(b"one"), carried.put(b"two"));
        assert_eq!((first, second, carried.held()), (0, 1, 2));
        assert_eq!(take(first), b"one");
        assert_eq!((carried.put(b"three"), carried.held()), (0, 2));
        assert_eq!(take(0), b"three");
        let mut copy = of(carried.put(b"twice"));
        carried.copy(&mut copy);
        carried.lose(&of(1));
        assert_eq!((carried.held(), carried.take(&copy, <[u8]>::to_vec)), (2, b"twice".to_vec()));
    }

    #[test]
    fn every_byte_and_the_length_are_in_the_hash() {
        let bytes: Vec<u8> = (0..100).collect();
        let plain = hash(&bytes);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_ne!(hash(&other), plain, "byte {at}");
        }
        assert_ne!(hash(&[0; 64]), hash(&[0; 96]));
    }

    #[test]
    fn failures_have_their_names() {
        for name in &Failure::NAMES[1..] {
            assert_eq!(Failure::NAMES[Failure::of(name) as usize], *name);
        }
        assert_eq!(Failure::of("cosmic ray"), Failure::Error);
    }
}
