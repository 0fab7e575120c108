//! CPU clocks, to measure the engine itself. Nothing simulated reads them.

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

/// User CPU seconds of this process, over all threads.
#[cfg(unix)]
pub fn user_seconds() -> f64 {
    getrusage(UsageWho::RUSAGE_SELF)
        .map_or(f64::NAN, |u| u.user_time().tv_sec() as f64 + u.user_time().tv_usec() as f64 * 1e-6)
}

/// Always NaN: this system (a web page, for instance) does not report CPU time.
#[cfg(not(unix))]
pub fn thread_seconds() -> f64 {
    f64::NAN
}

/// Always NaN: this system does not report CPU time.
#[cfg(not(unix))]
pub fn user_seconds() -> f64 {
    f64::NAN
}

/// Peak resident set size of this process, bytes; 0 if the system does not report it.
pub fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    kib.and_then(|v| v.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}
