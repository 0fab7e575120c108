//! The bytes of datagrams that are on their way. Packets of the network are small and copied; they carry the number of the place where
//! their bytes wait.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ackclock_core::datagram::Opaque;
use bytes::BytesMut;

/// Bytes on their way, of all flows of a run.
#[derive(Clone, Default)]
pub struct Carried(Arc<Mutex<Places>>);

#[derive(Default)]
struct Places {
    places: Vec<BytesMut>,
    free: Vec<u32>,
}

impl Carried {
    /// One thread at a time plays a run.
    fn all(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keep these bytes; where they wait.
    pub fn put(&self, bytes: &[u8]) -> u32 {
        let mut all = self.all();
        let place = all.free.pop().unwrap_or_else(|| {
            all.places.push(BytesMut::new());
            all.places.len() as u32 - 1
        });
        all.places[place as usize] = BytesMut::from(bytes);
        place
    }

    /// The datagram has arrived, or never will: its bytes.
    pub fn take(&self, datagram: &Opaque) -> BytesMut {
        let mut all = self.all();
        all.free.push(datagram.place);
        std::mem::take(&mut all.places[datagram.place as usize])
    }

    /// Datagrams on their way.
    pub fn held(&self) -> usize {
        let all = self.all();
        all.places.len() - all.free.len()
    }
}

/// Tells bytes from others, for digests: four lanes, so that it takes a cycle or so for each word.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
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
        let (first, second) = (carried.put(b"one"), carried.put(b"two"));
        assert_eq!((first, second, carried.held()), (0, 1, 2));
        assert_eq!(&carried.take(&of(first))[..], b"one");
        assert_eq!((carried.put(b"three"), carried.held()), (0, 2));
        assert_eq!(&carried.take(&of(0))[..], b"three");
        assert_eq!(&carried.take(&of(1))[..], b"two");
        assert_eq!(carried.held(), 0);
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
}
