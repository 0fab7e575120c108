//! Isolation of a run from the wall clock and the system's random numbers.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use ackclock_core::{Span, Stream, Time};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid, TimeSource};

/// Converts virtual time to the stack's `Instant`. An `Instant` cannot be made from a number, but the stack uses only
/// differences.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Instant,
}

impl Default for Clock {
    fn default() -> Clock {
        static BASE: OnceLock<Instant> = OnceLock::new();
        #[allow(
            clippy::disallowed_methods,
            reason = "only differences to it are used; nothing depends on what it is"
        )]
        let base = *BASE.get_or_init(Instant::now);
        Clock { base }
    }
}

impl Clock {
    /// Return a clock with a different base; a run must not depend on the base.
    pub fn shifted(self, by: Span) -> Clock {
        Clock { base: self.base + Duration::from_nanos(by.0) }
    }

    pub(crate) fn instant(self, t: Time) -> Instant {
        self.base + Duration::from_nanos(t.0)
    }

    pub(crate) fn time(self, instant: Instant) -> Time {
        Time(u64::try_from(instant.saturating_duration_since(self.base).as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Stopped wall clock for tokens.
pub(crate) struct Still;

impl TimeSource for Still {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Connection IDs drawn from the seed.
pub(crate) struct Ids {
    stream: Stream,
}

const ID_BYTES: usize = 8;

impl Ids {
    pub fn new(stream: Stream) -> Ids {
        Ids { stream }
    }
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.stream.next_u64().to_le_bytes())
    }

    fn validate(&self, _: &ConnectionId) -> Result<(), InvalidCid> {
        Ok(())
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// Return the client's initial destination connection ID: 20 bytes, as in the stack itself.
pub(crate) fn first_id(stream: &mut Stream) -> Arc<dyn Fn() -> ConnectionId + Send + Sync> {
    let bytes: Vec<u8> = (0..3).flat_map(|_| stream.next_u64().to_le_bytes()).take(20).collect();
    let id = ConnectionId::new(&bytes);
    Arc::new(move || id)
}

/// Draw the seed of the stack's random number generator.
pub(crate) fn seed(stream: &mut Stream) -> [u8; 32] {
    let mut seed = [0; 32];
    seed.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&stream.next_u64().to_le_bytes()));
    seed
}
