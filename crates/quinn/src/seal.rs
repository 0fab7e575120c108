//! Seal of a run: the wall clock and the system's random numbers stay outside.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use ackclock_core::{Span, Stream, Time};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid, TimeSource};

/// Virtual time as the stack takes it. An `Instant` cannot be made from a number; it only ever sees differences.
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
    /// The same, from another instant on: nothing may change.
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

/// The wall clock of tokens stands still.
pub(crate) struct Still;

impl TimeSource for Still {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Connection IDs that follow from the seed.
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

/// The client's first name for a server that it does not know: 20 bytes, as the stack's own.
pub(crate) fn first_id(stream: &mut Stream) -> Arc<dyn Fn() -> ConnectionId + Send + Sync> {
    let bytes: Vec<u8> = (0..3).flat_map(|_| stream.next_u64().to_le_bytes()).take(20).collect();
    let id = ConnectionId::new(&bytes);
    Arc::new(move || id)
}

/// The seed of the stack's own generator.
pub(crate) fn seed(stream: &mut Stream) -> [u8; 32] {
    let mut seed = [0; 32];
    seed.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&stream.next_u64().to_le_bytes()));
    seed
}
