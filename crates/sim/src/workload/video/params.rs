//! From the scenario to the settings of players, checked.

use ackclock_core::Span;

use super::adaptation::AdaptationParams;
use super::festive::FestiveParams;
use super::rate_based::RateBasedParams;
use super::VideoParams;
use crate::error::Error;
use crate::spec::{self, FlowGroup};
use crate::transport::TransportConfig;

impl VideoParams {
    /// The settings of `group`, the `index`-th, over its transport.
    pub fn read(
        spec: &spec::Video,
        group: &FlowGroup,
        index: usize,
        transport: &TransportConfig,
    ) -> Result<VideoParams, Error> {
        let refuse = |field: &str, found: &dyn std::fmt::Display, allowed: &str| {
            Err(Error::value(format_args!("flows[{index}].workload.{field}"), found, allowed))
        };
        if spec.ladder_bps.is_empty() || spec.ladder_bps[0] == 0 {
            return refuse("ladder_bps", &format_args!("{:?}", spec.ladder_bps), "bitrates above zero");
        }
        if let Some(pair) = spec.ladder_bps.windows(2).find(|pair| pair[1] <= pair[0]) {
            let found = format_args!("{} after {}", pair[1], pair[0]);
            return refuse("ladder_bps", &found, "bitrates that ascend");
        }
        if spec.chunk_ns == 0 {
            return refuse("chunk_ns", &0, "at least 1");
        }
        if spec.chunks == Some(0) {
            return refuse("chunks", &0, "at least 1");
        }
        if spec.buffer_max_ns < spec.chunk_ns.saturating_add(spec.buffer_ns) {
            let allowed =
                format!("at least {}, the buffer and a chunk", spec.chunk_ns.saturating_add(spec.buffer_ns));
            return refuse("buffer_max_ns", &spec.buffer_max_ns, &allowed);
        }
        if !(1..=spec.buffer_ns).contains(&spec.startup_ns) {
            let allowed = format!("1 to {}, the buffer", spec.buffer_ns);
            return refuse("startup_ns", &spec.startup_ns, &allowed);
        }
        let largest = match transport {
            TransportConfig::Pcc(pcc) => pcc.recipe.config.payload as u64,
            _ => u32::MAX as u64,
        };
        if !(1..=largest).contains(&spec.request_bytes) {
            let allowed = format!("1 to {largest} bytes with {}", group.congestion_control);
            return refuse("request_bytes", &spec.request_bytes, &allowed);
        }
        if !(0.0..1.0).contains(&spec.size_variation) {
            return refuse("size_variation", &spec.size_variation, "0 to less than 1");
        }
        let adaptation = match spec.adaptation {
            spec::Adaptation::Festive { window, safety, alpha, horizon, randomised, gradual, delayed } => {
                if window == 0 || window > MOST {
                    return refuse("adaptation.window", &window, "1 to 10000 chunks");
                }
                if horizon > MOST {
                    return refuse("adaptation.horizon", &horizon, "up to 10000 chunks");
                }
                if !(alpha.is_finite() && alpha >= 0.0) {
                    return refuse("adaptation.alpha", &alpha, "a number, not negative");
                }
                AdaptationParams::Festive(FestiveParams {
                    window,
                    safety,
                    alpha,
                    horizon,
                    randomised,
                    gradual,
                    delayed,
                })
            }
            spec::Adaptation::RateBased { weight, safety } => {
                if !(weight > 0.0 && weight <= 1.0) {
                    return refuse("adaptation.weight", &weight, "above 0 and up to 1");
                }
                AdaptationParams::RateBased(RateBasedParams { weight, safety })
            }
        };
        let (AdaptationParams::Festive(FestiveParams { safety, .. })
        | AdaptationParams::RateBased(RateBasedParams { safety, .. })) = adaptation;
        if !(safety.is_finite() && safety > 0.0) {
            return refuse("adaptation.safety", &safety, "a number above 0");
        }
        Ok(VideoParams {
            ladder: spec.ladder_bps.clone(),
            chunk: Span(spec.chunk_ns),
            chunks: spec.chunks,
            target: Span(spec.buffer_ns),
            most: Span(spec.buffer_max_ns),
            startup: Span(spec.startup_ns),
            request_bytes: spec.request_bytes,
            variation: spec.size_variation,
            adaptation,
        })
    }
}

/// Chunks that a player remembers.
const MOST: u32 = 10_000;
