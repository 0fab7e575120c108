//! Playback: buffered data, and stalls.
//!
//! Variables: `level`, playing time in the buffer; `stalled`, total time after the start of playback during which the
//! buffer was empty.

use ackclock_core::{Span, Time};

/// State of a player.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Filling the buffer before playback starts.
    Buffering,
    /// Playing.
    Playing,
    /// Stalled: the buffer has run empty, and playback waits until it has refilled.
    Stalled,
}

/// A player's buffer and its history.
#[derive(Clone, Debug)]
pub struct Playback {
    /// Playing time in the buffer for playback to start, and to resume after a stall.
    threshold: Span,
    state: State,
    level: Span,
    /// Time of the last update of `level`.
    at: Time,
    stalled: Span,
    stalls: u32,
    /// Whether the last chunk has arrived. An empty buffer then means the end of playback.
    complete: bool,
}

impl Playback {
    /// Return a player with an empty buffer.
    pub fn new(threshold: Span) -> Playback {
        Playback {
            threshold,
            state: State::Buffering,
            level: Span::ZERO,
            at: Time::ZERO,
            stalled: Span::ZERO,
            stalls: 0,
            complete: false,
        }
    }

    /// Advance playback to `now`.
    pub fn advance(&mut self, now: Time) {
        let passed = now.since(self.at);
        self.at = now;
        match self.state {
            State::Buffering => {}
            State::Stalled => self.stalled = self.stalled + passed,
            State::Playing if passed <= self.level => self.level = self.level - passed,
            State::Playing => {
                let dry = passed - self.level;
                self.level = Span::ZERO;
                if !self.complete {
                    self.state = State::Stalled;
                    self.stalls += 1;
                    self.stalled = self.stalled + dry;
                }
            }
        }
    }

    /// Add a chunk with this playing time; `last` marks the last chunk.
    pub fn add(&mut self, now: Time, chunk: Span, last: bool) {
        self.advance(now);
        self.level = self.level + chunk;
        self.complete = last;
        if last || self.level >= self.threshold {
            self.state = State::Playing;
        }
    }

    /// Playing time in the buffer at the last update.
    pub fn level(&self) -> Span {
        self.level
    }

    /// State at the last update.
    pub fn state(&self) -> State {
        self.state
    }

    /// Total stalled time at the last update.
    pub fn stalled(&self) -> Span {
        self.stalled
    }

    /// Time at which the buffer will have drained to `goal`; the time of the last update if it already has, or if
    /// playback is not running.
    pub fn falls_to(&self, goal: Span) -> Time {
        match self.state {
            State::Playing => self.at + self.level.saturating_sub(goal),
            State::Buffering | State::Stalled => self.at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: Span = Span::from_secs(1);

    fn at(s: u64) -> Time {
        Time::ZERO + S * s
    }

    #[test]
    fn a_stall_by_hand() {
        // 4 s chunks arrive at 1, 3, 14 and 16 s; playback starts with 8 s in the buffer
        let mut p = Playback::new(S * 8);
        p.add(at(1), S * 4, false);
        assert_eq!((p.state(), p.level()), (State::Buffering, S * 4));
        p.add(at(3), S * 4, false);
        assert_eq!((p.state(), p.level(), p.falls_to(S * 6)), (State::Playing, S * 8, at(5)));
        p.add(at(14), S * 4, false); // empty since 11 s
        assert_eq!((p.state(), p.level(), p.stalled()), (State::Stalled, S * 4, S * 3));
        assert_eq!(p.falls_to(S), at(14));
        p.add(at(16), S * 4, true);
        assert_eq!((p.state(), p.level(), p.stalled()), (State::Playing, S * 8, S * 5));
        p.advance(at(30)); // the end of playback is not a stall
        assert_eq!((p.stalled(), p.stalls, p.level()), (S * 5, 1, Span::ZERO));
    }

    #[test]
    fn a_buffer_that_is_empty_when_the_chunk_comes_did_not_stall() {
        let mut p = Playback::new(S);
        p.add(at(0), S * 4, false);
        p.add(at(4), S * 4, false);
        assert_eq!((p.stalls, p.stalled(), p.level()), (0, Span::ZERO, S * 4));
    }

    proptest! {
        /// Oracle: a player that updates its buffer every second.
        #[test]
        fn a_player_that_looks_each_second_sees_the_same(
            gaps in prop::collection::vec(0u64..9, 1..40), threshold in 1u64..10
        ) {
            let chunk = 3;
            let mut p = Playback::new(S * threshold);
            let (mut now, mut level, mut playing, mut begun, mut stalled) = (0, 0, false, false, 0);
            for gap in gaps {
                for _ in 0..gap {
                    match (playing, level) {
                        (true, 0) => (playing, stalled) = (false, stalled + 1),
                        (true, _) => level -= 1,
                        (false, _) => stalled += begun as u64,
                    }
                }
                now += gap;
                level += chunk;
                if level >= threshold {
                    (playing, begun) = (true, true);
                }
                p.add(at(now), S * chunk, false);
                prop_assert_eq!(p.level(), S * level);
                prop_assert_eq!(p.stalled(), S * stalled);
            }
        }
    }
}
