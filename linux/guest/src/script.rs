//! Plays a packet script against this kernel: the player is the simulator's, the host is the real stack.

mod call;
mod host;
mod info;
mod kernel;
mod wire;

use std::io::{Error, Result};

use ackclock_core::Span;
use ackclock_script::{Limits, Outcome, Profile, Verdict};
use serde::Deserialize;

/// Start of every script on CLOCK_MONOTONIC, ns: between two ticks, and at a tick whose number (which is 300 s below
/// 2^32 at boot) is a multiple of the timer wheel's coarsest buckets.
const FIRST: u64 = 1_348_576_500_000;

/// Script to play, as written by the host side (`ackclock.linux._script`).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    text: String,
    defines: Vec<(String, String)>,
    sysctls: Vec<(String, String)>,
    tolerance_us: Option<u64>,
    strict: bool,
}

/// Play `/script.json`; the result is written to `/out/outcome.json`.
pub fn run() -> Result<()> {
    let job: Job = serde_json::from_slice(&std::fs::read("/script.json")?)?;
    crate::sys::mount("tmpfs", "/tmp")?;
    let outcome = match play(&job)? {
        Ok(outcome) => told(outcome),
        Err(ackclock_script::Error::Unsupported { at, what }) => told(Outcome {
            verdict: Verdict::Unsupported { line: at.line, what },
            blocks: Vec::new(),
            deviation: Span::ZERO,
            trace: Vec::new(),
        }),
        Err(error) => serde_json::json!({ "invalid": error.to_string() }),
    };
    std::fs::write("/out/outcome.json", outcome.to_string())
}

type Played = std::result::Result<Outcome, ackclock_script::Error>;

fn play(job: &Job) -> Result<Played> {
    let profile = Profile {
        tolerance: job.tolerance_us.map(Span::from_us),
        sysctls: job.sysctls.clone(),
        strict: job.strict,
        ..Profile::default()
    };
    let mut machine = kernel::Kernel::new().map_err(|e| Error::new(e.kind(), format!("player: {e}")))?;
    Ok(ackclock_script::parse(&job.text, &job.defines, &Limits::default())
        .and_then(|script| ackclock_script::play_on(&mut machine, &script, &profile)))
}

/// Outcome in the form used by the Python binding.
fn told(outcome: Outcome) -> serde_json::Value {
    let (verdict, line, expected, actual, unsupported) = match outcome.verdict {
        Verdict::Pass => ("pass", 0, None, None, None),
        Verdict::Fail { line, expected, actual } => ("fail", line, Some(expected), Some(actual), None),
        Verdict::Unsupported { line, what } => ("unsupported", line, None, None, Some(what)),
    };
    let blocks: Vec<_> = outcome
        .blocks
        .into_iter()
        .map(|block| {
            let names: serde_json::Map<_, _> =
                block.names.into_iter().map(|(name, value)| (name.to_string(), value.into())).collect();
            (block.line, block.text, names)
        })
        .collect();
    serde_json::json!({
        "verdict": verdict,
        "line": line,
        "expected": expected,
        "actual": actual,
        "unsupported": unsupported,
        "blocks": blocks,
        "deviation_s": outcome.deviation.as_secs(),
        "trace": outcome.trace,
    })
}
