//! Playback: buffered data, and times when the picture stood still.
//!
//! Variables: `level`, the buffer in time of playing; `stalled`, time in which playback had begun and the buffer was empty.

use ackclock_core::{Span, Time};

/// State of a player.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Fills the buffer before playback begins.
    Buffering,
    /// Plays.
    Playing,
    /// Empty buffer: playback waits until it is filled.
    Stalled,
}

/// Buffer and its history.
#[derive(Clone, Debug)]
pub struct Playback {
    /// Buffer at which playback starts, and continues after a stall.
    threshold: Span,
    state: State,
    level: Span,
    /// Time at which `level` was valid.
    at: Time,
    stalled: Span,
    stalls: u32,
    /// No more chunks: an empty buffer then means the end.
    complete: bool,
}

impl Playback {
    /// Playback without any data.
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

    /// Time passes.
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

    /// A chunk of this length arrives; `last`: nothing follows it.
    pub fn add(&mut self, now: Time, chunk: Span, last: bool) {
        self.advance(now);
        self.level = self.level + chunk;
        self.complete = last;
        if last || self.level >= self.threshold {
            self.state = State::Playing;
        }
    }

    /// Buffer at the time of the last update.
    pub fn level(&self) -> Span {
        self.level
    }

    /// State at the last update.
    pub fn state(&self) -> State {
        self.state
    }

    /// Time for which the picture stood still, until then.
    pub fn stalled(&self) -> Span {
        self.stalled
    }

    /// Time when the buffer will have fallen to `goal`; now if it has, or if playback waits for more.
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
        // chunks of 4 s, playback from 8 s on; they arrive at 1, 3, 14 and 16 s
        let mut p = Playback::new(S * 8);
        p.add(at(1), S * 4, false);
        assert_eq!((p.state(), p.level()), (State::Buffering, S * 4));
        p.add(at(3), S * 4, false);
        assert_eq!((p.state(), p.level(), p.falls_to(S * 6)), (State::Playing, S * 8, at(5)));
        p.add(at(14), S * 4, false); // dry since 11 s
        assert_eq!((p.state(), p.level(), p.stalled()), (State::Stalled, S * 4, S * 3));
        assert_eq!(p.falls_to(S), at(14));
        p.add(at(16), S * 4, true);
        assert_eq!((p.state(), p.level(), p.stalled()), (State::Playing, S * 8, S * 5));
        p.advance(at(30)); // the end is not a stall
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
        /// Oracle: a player that updates its buffer at every step of a second.
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
