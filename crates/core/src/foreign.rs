//! Ends of foreign transports: the interface that the simulator requires of any such stack, and the storage
//! of their datagrams' bytes while these are in flight.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::datagram::{DatagramEndpoint, Opaque};
use crate::packet::Ecn;
use crate::rng::Stream;
use crate::time::{Span, Time};

/// Why a connection ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Failure {
    /// Nothing arrived for the idle timeout.
    TimedOut = 1,
    /// The receiver's stack allows no more gaps between the received pieces of a stream.
    Gaps = 2,
    /// The stack found another error.
    Error = 3,
    /// The peer's stack gave up.
    ByPeer = 4,
    /// The connection could not be opened.
    Refused = 5,
}

impl Failure {
    /// Names by number; 0 means none.
    pub const NAMES: [&'static str; 6] =
        ["", "idle timeout", "too many gaps", "error of the stack", "closed by the peer", "refused"];

    /// Return the failure of this name; any other name is an error of the stack.
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

/// Counts of an end.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    /// Packets sent, all kinds.
    pub sent: u64,
    /// Packets considered lost, without those that probe for a larger size.
    pub lost: u64,
    /// Bytes sent after the UDP header.
    pub sent_bytes: u64,
    /// ACKs received.
    pub acks: u64,
    /// Times that the window was reduced.
    pub reductions: u64,
    /// Sum of the round-trip times of the newest packet of each ACK, ns.
    pub rtt_sum_ns: u128,
    /// Number of them.
    pub rtt_samples: u64,
    /// Minimum of these times.
    pub min_rtt: Span,
}

/// State of an end.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Congestion window, bytes; 0 if the stack does not report it.
    pub window: u64,
    /// Bytes in flight after the last ACK.
    pub in_flight: u64,
    /// Slow-start threshold, bytes; none: not set, or the controller has none.
    pub ssthresh: Option<u64>,
    /// Smoothed round-trip time.
    pub srtt: Span,
    /// Payload of a full datagram, bytes.
    pub mtu: u16,
}

/// Bytes that an end wrote and received, to be compared with its peer's reports.
#[derive(Clone, Copy, Debug)]
pub struct Accounts {
    /// Bytes that its application wrote; `None`: writes never end, or have stopped.
    pub written: Option<u64>,
    /// The end writes no more.
    pub closes: bool,
    /// The end gave up.
    pub failed: bool,
    /// Bytes of the datagrams that arrived.
    pub arrived: u64,
    /// Received bytes of the application, as the stack reports.
    pub received: u64,
}

/// A line of an end's trace: an ACK that was processed, or a datagram with data that left.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Time.
    pub t: Time,
    /// Whether a datagram left; otherwise an ACK arrived.
    pub is_sent: bool,
    /// Number of the datagram of this end; its bytes.
    pub number: u64,
    /// See `number`.
    pub len: u32,
    /// ACKs received so far.
    pub acks: u64,
    /// Packets newly taken as lost.
    pub lost: u64,
    /// Congestion window before the ACK, bytes.
    pub window_before: u64,
    /// State of the end afterwards.
    pub sample: Sample,
    /// Minimum round-trip time so far.
    pub min_rtt: Span,
}

/// One end. The cost of boxed calls is negligible compared with such a stack's work per packet.
pub trait Foreign: DatagramEndpoint + Send {
    /// Open the connection.
    fn connect(&mut self, now: Time);
    /// Hand over this many bytes.
    fn write(&mut self, now: Time, bytes: u64);
    /// Make data available without end from now on.
    fn write_forever(&mut self, now: Time);
    /// Everything is written: finish afterwards.
    fn close(&mut self, now: Time);
    /// Write nothing beyond the sent data.
    fn stop_writing(&mut self, now: Time);
    /// A datagram of the peer arrived, marked so.
    fn arrive(&mut self, now: Time, datagram: &Opaque, ecn: Ecn);

    /// The handshake is complete at this end.
    fn is_established(&self) -> bool;
    /// Written bytes that the peer is known to have, as far as the stack reports.
    fn acked(&self) -> u64;
    /// Bytes read by the application.
    fn received(&self) -> u64;
    /// Whether all data of the peer has arrived, or the peer has closed.
    fn peer_closed(&self) -> bool;
    /// The application has closed this end.
    fn is_closing(&self) -> bool;
    /// Whether everything has finished.
    fn is_done(&self) -> bool;
    /// Why it gave up, if it did.
    fn failure(&self) -> Option<Failure>;
    /// Whether the peer opened the connection.
    fn is_responder(&self) -> bool;

    /// Counts.
    fn stats(&self) -> Stats;
    /// State of the end, once there is a connection.
    fn sample(&self) -> Option<Sample>;
    /// Round-trip times of this end: their sum in ns, and their number.
    fn rtt_samples(&self) -> (u128, u64);
    /// Keep a row of each ACK and each datagram with data that leaves, or no longer.
    fn set_trace(&mut self, on: bool);
    /// The rows kept so far.
    fn take_trace(&mut self) -> Vec<Row>;

    /// Accounts for comparison with the peer's reports; `None`: the reports of this stack are trusted.
    fn accounts(&self) -> Option<Accounts> {
        None
    }
    /// The connection has ended: compare this end's reports with its peer's, and accuse it if they contradict
    /// each other.
    fn hold_against(&self, _peer: &Accounts) {}
}

/// Part of a copy of a whole world, which is refused if there is such an end.
impl Clone for Box<dyn Foreign> {
    fn clone(&self) -> Box<dyn Foreign> {
        unreachable!("invariant: no world with an end that others have written is copied")
    }
}

/// Maker of the ends of a flow.
pub trait Maker {
    /// The stack; random streams of its ends are named after it.
    fn stack(&self) -> &str;
    /// Window at the start, packets.
    fn initial_window(&self) -> u32;
    /// An end that opens the connection, or waits for it; its random numbers are those of `stream`, and the bytes of its datagrams wait
    /// in `carried`. Data of a client goes `one_way`, or the server answers.
    fn end(&self, opens: bool, one_way: bool, stream: Stream, carried: &Carried) -> Box<dyn Foreign>;
}

/// Bytes on their way, of all flows of a run. Packets of the network are small and copied; they carry the number of the place where
/// their bytes wait. A place keeps its memory for the next datagram.
#[derive(Clone, Default)]
pub struct Carried(Arc<Mutex<Places>>);

#[derive(Default)]
struct Places {
    places: Vec<Vec<u8>>,
    free: Vec<u32>,
    fault: Option<String>,
}

impl Carried {
    /// Only one thread at a time plays a run.
    fn all(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keep these bytes; returns their place.
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

    /// The datagram has arrived: return the content of its bytes.
    pub fn take<T>(&self, datagram: &Opaque, read: impl FnOnce(&[u8]) -> T) -> T {
        let mut all = self.all();
        all.free.push(datagram.place);
        read(&all.places[datagram.place as usize])
    }

    /// The datagram will not arrive.
    pub fn lose(&self, datagram: &Opaque) {
        self.all().free.push(datagram.place);
    }

    /// The datagram is duplicated: this copy has its own bytes from now on.
    pub fn copy(&self, datagram: &mut Opaque) {
        let bytes = self.all().places[datagram.place as usize].clone();
        datagram.place = self.put(&bytes);
    }

    /// A stack reported something impossible, which ends the run; the first such report is kept.
    pub fn accuse(&self, said: String) {
        self.all().fault.get_or_insert(said);
    }

    /// First reported fault.
    pub fn fault(&self) -> Option<String> {
        self.all().fault.clone()
    }

    /// Datagrams on their way.
    pub fn held(&self) -> usize {
        let all = self.all();
        all.places.len() - all.free.len()
    }
}

/// Hash bytes for digests: four lanes, so that it takes about a cycle per word.
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
