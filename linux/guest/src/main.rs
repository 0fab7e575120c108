//! PID 1 of the guest kernel, and its only program. It reads a job, builds hosts and network, lets the flows run in
//! virtual time, writes the tables of the simulator, and switches the machine off.
//!
//! The root of the guest is the folder of the run: `job.json` in; `tables.bin`, `capture.pcapng`, `report.json` out, and what programs of the user's
//! leave (`programs`). Or a
//! packet script is to be played: `script.json` in, `outcome.json` out. Or nothing is in: the report names the kernel's
//! controllers.

mod acks;
mod capture;
mod flows;
mod info;
mod job;
mod netlink;
mod network;
mod observe;
mod packet;
mod performance;
mod programs;
mod qdisc;
mod relay;
mod script;
mod sockets;
mod sys;
mod tables;
mod trace;
mod transactions;
mod wire;

use std::io::Result;

/// Pages of memory that all connections together never need.
const NO_BOUND: &str = "1000000000";
/// Parameters from which our BBR draws (`linux/modules/ackclock_bbr.c`); absent in kernels without it.
const DRAWS: &str = "/sys/module/ackclock_bbr/parameters";

fn main() {
    let outcome = run();
    let error = outcome.err().map(|error| error.to_string());
    let controllers = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let controllers: Vec<String> =
        controllers.unwrap_or_default().split_whitespace().map(str::to_string).collect();
    let has = asked().then(features);
    let report = serde_json::json!({ "error": error, "release": sys::release(), "controllers": controllers, "has": has });
    // The report says that the run came to its end; if it cannot be written, its absence says so.
    let _ = std::fs::write("/out/report.json", report.to_string());
    sys::power_off();
}

/// Nothing is to be run: the report is all that is wanted.
fn asked() -> bool {
    !["/script.json", "/job.json"].iter().any(|file| std::path::Path::new(file).exists())
}

/// Features of this kernel in which kernels differ.
fn features() -> serde_json::Value {
    let mut sysctls: Vec<String> = std::fs::read_dir("/proc/sys/net/ipv4")
        .map(|files| files.flatten().map(|file| file.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    sysctls.sort();
    // only a write shows whether the kernel has accurate ECN
    let accecn = std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "3").is_ok();
    serde_json::json!({ "sysctls": sysctls, "accecn": accecn, "events": trace::events() })
}

fn run() -> Result<()> {
    // The kernel has mounted /dev by itself.
    for (kind, target) in [("proc", "/proc"), ("sysfs", "/sys"), ("tracefs", "/sys/kernel/tracing")] {
        sys::mount(kind, target)?;
    }
    sys::exact_timers()?;
    sys::allow_files(1 << 17)?;
    if std::path::Path::new("/script.json").exists() {
        return script::run();
    }
    if asked() {
        return Ok(());
    }
    let mut job: job::Job = serde_json::from_slice(&std::fs::read("/job.json")?)?;
    if job.live.as_ref().is_some_and(|live| live.alone) {
        job.scenario.flows.clear();
    }
    // Hosts have separate memory: full buffers of one put no other under pressure (`tcp_under_memory_pressure`).
    std::fs::write("/proc/sys/net/ipv4/tcp_mem", [NO_BOUND; 3].join(" "))?;
    if std::path::Path::new(DRAWS).exists() {
        std::fs::write(format!("{DRAWS}/seed"), job.seed.to_string())?;
    }
    let tables = observe::run(&job)?;
    tables::write("/out/tables.bin", &tables)
}
