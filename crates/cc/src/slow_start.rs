//! Slow-start rules: the contract, the closed set, and their keys in a scenario. A rule can be combined with any
//! controller that begins with the slow start of RFC 5681. The rule determines how fast the window grows and ends slow
//! start by setting ssthresh; then the controller takes over.

mod careful_resume;
mod hystart;
mod hystart_plus_plus;
mod limited;
mod search;

use ackclock_core::{family, table, Span};

use crate::controller::{AckSample, Arrival};
use crate::window::Window;
pub use careful_resume::{CarefulResume, CarefulResumeParams};
pub use hystart::{HyStart, HyStartParams};
pub use hystart_plus_plus::{HyStartPlusPlus, HyStartPlusPlusParams};
pub use limited::{Limited, LimitedParams};
pub use search::{Search, SearchParams};

family! {
    /// A slow start and its parameters.
    pub enum SlowStartConfig "slow starts" {
        Classic(ClassicParams),
        HyStart(HyStartParams),
        HyStartPlusPlus(HyStartPlusPlusParams),
        Search(SearchParams),
        Limited(LimitedParams),
        CarefulResume(CarefulResumeParams),
    }
}

table! {
    /// Slow start of RFC 5681: cwnd grows by one segment per acknowledged segment, until ssthresh or a loss.
    pub struct ClassicParams "classic" {}
}

impl SlowStartConfig {
    /// Slow start until a loss.
    pub const CLASSIC: SlowStartConfig = SlowStartConfig::Classic(ClassicParams {});

    /// Rule name in a scenario.
    pub fn kind(&self) -> &'static str {
        match self {
            SlowStartConfig::Classic(_) => ClassicParams::TABLE.kind,
            SlowStartConfig::HyStart(_) => HyStartParams::TABLE.kind,
            SlowStartConfig::HyStartPlusPlus(_) => HyStartPlusPlusParams::TABLE.kind,
            SlowStartConfig::Search(_) => SearchParams::TABLE.kind,
            SlowStartConfig::Limited(_) => LimitedParams::TABLE.kind,
            SlowStartConfig::CarefulResume(_) => CarefulResumeParams::TABLE.kind,
        }
    }
}

/// The contract of a slow-start rule. All hooks have defaults, which implement RFC 5681 and need no state.
pub trait SlowStart {
    /// Process an ACK in any state, before loss detection. `rtt` is the ACK's RTT sample, if the controller uses it.
    /// The rule ends slow start by setting ssthresh.
    fn on_sample(&mut self, _window: &mut Window, _ack: &Arrival, _rtt: Option<Span>) {}

    /// Process an ACK that may let the window grow. Return the number of segments that count as acknowledged, or `None`
    /// if the rule controls the window and the controller is not to be called.
    fn growth(&mut self, _window: &mut Window, ack: &AckSample) -> Option<u32> {
        Some(ack.acked)
    }

    /// Process a congestion event. Return the controller's target window, or a smaller one.
    fn on_reduction(&mut self, _window: &mut Window, target: u32, _snd_nxt: u64) -> u32 {
        target
    }

    /// Upper bound of cwnd during recovery.
    fn most(&self) -> u32 {
        u32::MAX
    }

    /// Whether the rule paces the sender by [`Window::pacing_rate`].
    fn paces(&self) -> bool {
        false
    }

    /// Process a retransmission timeout: the window is about to be reset, and slow start begins again.
    fn on_rto(&mut self) {}
}

/// All built-in slow-start rules.
#[allow(missing_docs, reason = "each variant holds the rule of its name")]
#[derive(Clone, Debug)]
pub enum StartRule {
    Classic,
    HyStart(HyStart),
    HyStartPlusPlus(Box<HyStartPlusPlus>),
    Search(Box<Search>),
    Limited(Limited),
    CarefulResume(Box<CarefulResume>),
}

impl StartRule {
    /// Whether ACKs currently have no effect on the rule, because it has no hook or has completed its detection.
    #[inline]
    pub fn looks_away(&self) -> bool {
        match self {
            StartRule::Classic => true,
            StartRule::HyStart(hystart) => hystart.found(),
            _ => false,
        }
    }

    /// Create the state at the start of a connection with an initial window of `iw` segments.
    pub fn new(config: &SlowStartConfig, iw: u32) -> StartRule {
        match config {
            SlowStartConfig::Classic(_) => StartRule::Classic,
            SlowStartConfig::HyStart(params) => StartRule::HyStart(HyStart::new(params)),
            SlowStartConfig::HyStartPlusPlus(params) => {
                StartRule::HyStartPlusPlus(Box::new(HyStartPlusPlus::new(params)))
            }
            SlowStartConfig::Search(params) => StartRule::Search(Box::new(Search::new(params))),
            SlowStartConfig::Limited(params) => StartRule::Limited(Limited::new(params)),
            SlowStartConfig::CarefulResume(params) => {
                StartRule::CarefulResume(Box::new(CarefulResume::new(params, iw)))
            }
        }
    }
}

/// The classic rule implements no hook.
macro_rules! dispatch {
    ($self:ident, $classic:expr, $r:ident => $e:expr) => {
        match $self {
            StartRule::Classic => $classic,
            StartRule::HyStart($r) => $e,
            StartRule::HyStartPlusPlus($r) => $e,
            StartRule::Search($r) => $e,
            StartRule::Limited($r) => $e,
            StartRule::CarefulResume($r) => $e,
        }
    };
}

impl SlowStart for StartRule {
    #[inline]
    fn on_sample(&mut self, window: &mut Window, ack: &Arrival, rtt: Option<Span>) {
        dispatch!(self, (), r => r.on_sample(window, ack, rtt))
    }
    #[inline]
    fn growth(&mut self, window: &mut Window, ack: &AckSample) -> Option<u32> {
        dispatch!(self, Some(ack.acked), r => r.growth(window, ack))
    }
    fn on_reduction(&mut self, window: &mut Window, target: u32, snd_nxt: u64) -> u32 {
        dispatch!(self, target, r => r.on_reduction(window, target, snd_nxt))
    }
    fn most(&self) -> u32 {
        dispatch!(self, u32::MAX, r => r.most())
    }
    fn paces(&self) -> bool {
        dispatch!(self, false, r => r.paces())
    }
    fn on_rto(&mut self) {
        dispatch!(self, (), r => r.on_rto())
    }
}
