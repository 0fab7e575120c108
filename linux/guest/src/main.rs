//! PID 1 of the guest kernel, and its only program. It reads a job, builds hosts and network, runs the flows in virtual
//! time, writes the simulator's tables, and powers the machine off.
//!
//! The root of the guest is the folder of the run. Input is `job.json`; output is `tables.bin`, `capture.pcapng`,
//! `report.json`, and the files of the user's programs (`programs`). With `script.json` as input it plays a packet
//! script and writes `outcome.json`. Without input it writes only the report, which names the kernel's controllers.

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

/// Value of `tcp_mem`, pages: more than all connections can use together.
const NO_BOUND: &str = "1000000000";
/// Parameters of our BBR's random stream (`linux/modules/ackclock_bbr.c`); absent in kernels without that module.
const DRAWS: &str = "/sys/module/ackclock_bbr/parameters";

fn main() {
    let outcome = run();
    let error = outcome.err().map(|error| error.to_string());
    let controllers = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let controllers: Vec<String> =
        controllers.unwrap_or_default().split_whitespace().map(str::to_string).collect();
    let has = asked().then(features);
    let report = serde_json::json!({ "error": error, "release": sys::release(), "controllers": controllers, "has": has });
    // A report without an error means that the run completed, and a missing report that it did not, so a failed write
    // needs no handling.
    let _ = std::fs::write("/out/report.json", report.to_string());
    sys::power_off();
}

/// Whether only the report is wanted, because there is neither a script nor a job.
fn asked() -> bool {
    !["/script.json", "/job.json"].iter().any(|file| std::path::Path::new(file).exists())
}

/// Features that differ between kernels.
fn features() -> serde_json::Value {
    let mut sysctls: Vec<String> = std::fs::read_dir("/proc/sys/net/ipv4")
        .map(|files| files.flatten().map(|file| file.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    sysctls.sort();
    // only a write shows whether the kernel supports accurate ECN
    let accecn = std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "3").is_ok();
    serde_json::json!({ "sysctls": sysctls, "accecn": accecn, "events": trace::events() })
}

fn run() -> Result<()> {
    // /dev is already mounted by the kernel.
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
    // Remove the limit on TCP memory. Hosts do not share memory in the model, so full buffers on one must not put
    // another under memory pressure (`tcp_under_memory_pressure`).
    std::fs::write("/proc/sys/net/ipv4/tcp_mem", [NO_BOUND; 3].join(" "))?;
    if std::path::Path::new(DRAWS).exists() {
        std::fs::write(format!("{DRAWS}/seed"), job.seed.to_string())?;
    }
    let tables = observe::run(&job)?;
    tables::write("/out/tables.bin", &tables)
}
