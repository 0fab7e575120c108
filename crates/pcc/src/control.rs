//! Rate control: chooses the rate of each interval and processes its result. Each algorithm has its own file; this file
//! contains the contract, the closed set of algorithms and the common parts.

mod allegro;
mod registry;
mod vivace;

use ackclock_core::{Span, Stream, Time};

use crate::interval::Measured;
use crate::utility::{Kind, Utility};
pub use allegro::{Allegro, AllegroParams, Exit, FirstMove, Growth, Length, Start};
pub use registry::{build, Recipe, ENTRIES, REGISTRY};
pub use vivace::{Vivace, VivaceParams};

/// Path properties that a controller may use to plan an interval.
#[derive(Clone, Copy, Debug)]
pub struct PathView {
    /// Current time.
    pub now: Time,
    /// Smoothed RTT.
    pub srtt: Span,
    /// Minimum RTT.
    pub min_rtt: Span,
    /// IP packet size of a full datagram, bytes.
    pub packet_bytes: u32,
}

impl PathView {
    /// IP packet size of a full datagram, bits.
    pub fn packet_bits(&self) -> f64 {
        self.packet_bytes as f64 * 8.0
    }
}

/// Plan of the next interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// Rate of IP packets, bit/s.
    pub rate: f64,
    /// Minimum length: the interval ends with the first transmission at or after this time.
    pub length: Span,
    /// Value returned to the controller with the interval's result.
    pub purpose: u32,
}

/// The contract of a rate controller. Intervals follow one another without gaps. The result of each arrives about one
/// RTT after its end, in order. Further intervals are planned in the meantime, so a controller must return a rate
/// while waiting.
pub trait RateControl {
    /// Plan the interval that begins now.
    fn begin(&mut self, path: &PathView) -> Plan;

    /// Process the result of an interval, its utility, and the purpose for which it was planned. Return whether the
    /// rate has changed, in which case the current interval ends at once.
    fn on_result(&mut self, measured: &Measured, utility: f64, purpose: u32) -> bool;

    /// Rate of an interval starting now, bit/s.
    fn rate(&self) -> f64;

    /// Controller state, for tables.
    fn state(&self) -> &'static str;
}

/// Consequences of an interval's result.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    /// Whether the rate has changed.
    pub changed: bool,
    /// Utility of the interval; NaN if it was not evaluated.
    pub utility: f64,
    /// Controller state before the result.
    pub state: &'static str,
}

/// All algorithms.
#[derive(Clone)]
#[allow(missing_docs, reason = "each variant holds the algorithm of its name")]
pub enum Algorithm {
    Allegro(Box<Allegro>),
    Vivace(Box<Vivace>),
}

/// An algorithm with its utility function.
#[derive(Clone)]
pub struct Controller {
    algorithm: Algorithm,
    utility: Kind,
    before: Option<Measured>,
}

impl Controller {
    /// Reason why the controller cannot be copied; `None` if it can.
    pub fn cannot_copy(&self) -> Option<String> {
        matches!(self.utility, Kind::Custom(_)).then(|| "found a user's own utility".to_string())
    }

    /// Create a controller of `algorithm` and `utility`.
    pub fn new(algorithm: Algorithm, utility: Kind) -> Controller {
        Controller { algorithm, utility, before: None }
    }

    /// Plan an interval.
    pub fn begin(&mut self, path: &PathView) -> Plan {
        match &mut self.algorithm {
            Algorithm::Allegro(a) => a.begin(path),
            Algorithm::Vivace(v) => v.begin(path),
        }
    }

    /// Evaluate the result of an interval.
    pub fn on_result(&mut self, measured: &Measured, purpose: u32) -> Result<Judged, String> {
        let state = self.state();
        if measured.sent == 0 {
            return Ok(Judged { changed: false, utility: f64::NAN, state });
        }
        let mut measured = *measured;
        if let Algorithm::Vivace(v) = &mut self.algorithm {
            v.filter(&mut measured);
        }
        let measured = &measured;
        let utility = self.utility.of(measured, self.before.as_ref())?;
        if utility.is_nan() {
            return Err("it gave no number (NaN)".to_string());
        }
        self.before = Some(*measured);
        let changed = match &mut self.algorithm {
            Algorithm::Allegro(a) => a.on_result(measured, utility, purpose),
            Algorithm::Vivace(v) => v.on_result(measured, utility, purpose),
        };
        Ok(Judged { changed, utility, state })
    }

    /// Rate of an interval starting now, bit/s.
    pub fn rate(&self) -> f64 {
        match &self.algorithm {
            Algorithm::Allegro(a) => a.rate(),
            Algorithm::Vivace(v) => v.rate(),
        }
    }

    /// Controller state.
    pub fn state(&self) -> &'static str {
        match &self.algorithm {
            Algorithm::Allegro(a) => a.state(),
            Algorithm::Vivace(v) => v.state(),
        }
    }
}

/// Return the length of an interval: the time of `packets` datagrams at `rate` or `rtts` RTTs, whichever is longer.
fn length(rate: f64, packets: f64, packet_bits: f64, rtts: f64, rtt: Span) -> Span {
    let sending = packets * packet_bits * 1e9 / rate;
    // minus half an inter-packet gap, so that rounding never adds a datagram
    let sending = sending - 0.5 * packet_bits * 1e9 / rate;
    Span(sending.max(rtts * rtt.0 as f64) as u64)
}

/// Flip a coin.
fn heads(stream: &mut Stream) -> bool {
    stream.below(2) == 1
}
