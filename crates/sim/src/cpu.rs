//! The CPU clock, for figures about the engine itself. Nothing that is simulated reads it.

#[cfg(unix)]
use nix::sys::resource::{getrusage, UsageWho};
#[cfg(unix)]
use nix::time::{clock_gettime, ClockId};

/// CPU seconds (user and system) used by the calling thread.
#[cfg(unix)]
pub fn thread_seconds() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map_or(f64::NAN, |t| t.tv_sec() as f64 + t.tv_nsec() as f64 * 1e-9)
}

/// User CPU seconds of this process, all threads together.
#[cfg(unix)]
pub fn user_seconds() -> f64 {
    getrusage(UsageWho::RUSAGE_SELF)
        .map_or(f64::NAN, |u| u.user_time().tv_sec() as f64 + u.user_time().tv_usec() as f64 * 1e-6)
}

/// Unknown on a system that does not count it, such as a page.
#[cfg(not(unix))]
pub fn thread_seconds() -> f64 {
    f64::NAN
}

/// Unknown on a system that does not count it, such as a page.
#[cfg(not(unix))]
pub fn user_seconds() -> f64 {
    f64::NAN
}

/// Largest resident set of this process so far, bytes; 0 if the system does not report it.
pub fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    kib.and_then(|v| v.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}
