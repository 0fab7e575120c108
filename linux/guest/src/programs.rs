//! The user's unmodified programs as processes on separate hosts (`ackclock live`). A host has a read-only view of the
//! machine's files, or of another folder instead. Writes to the folders in [`INNER`] go to memory and are copied into
//! the run's folder at the end. Programs run as root on their host, without the capabilities that would let them escape
//! from it.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::job::{Exec, Job, Live};
use crate::network::{program_ip, program_ip6, Wiring};
use crate::sys::process::{self, Command, Ended, View, Waiting};
use crate::sys::{self};

/// Folder in memory for the hosts' output.
const STORE: &str = "/tmp";
/// The machine's files, or the folder that replaces them.
const BASE: &str = "/tmp/base";
/// Mount options of that folder: its maximum size and its mode.
const ROOM: &str = "size=512m,mode=755";
/// Maximum number of processes and threads of all programs together.
const MOST_PROCESSES: &str = "1200";
/// Time after the end of the last awaited program, ns, for packets in flight to arrive and for the remaining programs
/// to exit on request.
const GRACE: u64 = 1_000_000_000;

/// All programs of a run.
pub struct Programs<'a> {
    live: &'a Live,
    children: OwnedFd,
    list: Vec<Running<'a>>,
    phase: Phase,
    quiet: Quiet,
}

struct Host {
    view: View,
    network: RawFd,
}

struct Running<'a> {
    spec: &'a Exec,
    waiting: Option<Waiting>,
    process: Option<i32>,
    started: Option<u64>,
    ended: Option<(u64, Ended)>,
    /// Whether the run asked the program to end, or killed it.
    asked: bool,
    failed: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Running,
    /// All awaited programs have ended; packets in flight may arrive until this time, ns.
    Draining(u64),
    /// The remaining programs have been asked to end; they are killed at this time, ns.
    Ending(u64),
    Over(u64),
}

/// Idle detector: time since a packet was last sent or a program last ran.
struct Quiet {
    look: u64,
    due: u64,
    seen: u64,
    since: u64,
}

impl<'a> Programs<'a> {
    /// Set up the hosts and their files, and prepare the programs without starting them. The process must still be
    /// single-threaded.
    pub fn new(job: &'a Job, live: &'a Live, wiring: &Wiring) -> Result<Programs<'a>> {
        fs::write("/proc/sys/kernel/randomize_va_space", "0")?;
        fs::write("/proc/sys/kernel/threads-max", MOST_PROCESSES)?;
        process::mount_with("none", STORE, "tmpfs", 0, ROOM)?;
        fs::create_dir(BASE)?;
        process::mount_with("none", BASE, "hostfs", libc::MS_RDONLY, &live.root)?;
        let mut table = String::from("127.0.0.1 localhost\n");
        for (i, name) in live.names().enumerate() {
            let [a, b, c, d] = program_ip(job, live, i);
            table += &format!("{a}.{b}.{c}.{d} {name}\n");
            if live.ipv6 {
                table += &format!("{} {name}\n", std::net::Ipv6Addr::from(program_ip6(job, live, i)));
            }
        }
        if live.ipv6 {
            table += "::1 localhost\n";
        }
        let mut hosts = Vec::new();
        for (i, name) in live.names().enumerate() {
            let network = wiring.programs[i].fd();
            let place = format!("{STORE}/{name}");
            let root = format!("{place}/root");
            let view =
                process::view(name, network, &root, || lay(name, &place, &root, &table, &live.folder))?;
            fs::create_dir_all(format!("/out/{name}"))?;
            hosts.push(Host { view, network });
        }
        let quiet = Quiet { look: live.quiet_ns / 8, due: live.quiet_ns / 8, seen: 0, since: 0 };
        let list = live.programs.iter().map(|spec| prepared(live, spec, &hosts)).collect::<Result<_>>()?;
        Ok(Programs { live, children: process::children()?, list, phase: Phase::Running, quiet })
    }

    /// Descriptor that is readable when a process has ended.
    pub fn fd(&self) -> RawFd {
        self.children.as_raw_fd()
    }

    /// Time by which [`Programs::advance`] must be called next, ns.
    pub fn next_event(&self) -> u64 {
        let starts = self.list.iter().filter(|one| one.waits()).map(|one| one.spec.start_ns);
        let phase = match self.phase {
            Phase::Running => u64::MAX,
            Phase::Draining(t) | Phase::Ending(t) | Phase::Over(t) => t,
        };
        starts.chain([phase, self.quiet.due]).min().unwrap_or(u64::MAX)
    }

    /// End of the run, ns, once it is known.
    pub fn over(&self) -> Option<u64> {
        match self.phase {
            Phase::Over(t) => Some(t),
            _ => None,
        }
    }

    /// Start programs that are due, and end those whose time is up. `packets` is the number of packets sent by hosts so
    /// far.
    pub fn advance(&mut self, now: u64, packets: u64) -> Result<()> {
        for i in 0..self.list.len() {
            if self.list[i].waits() && self.list[i].spec.start_ns <= now {
                self.start(i, now)?;
            }
        }
        match self.phase {
            Phase::Draining(t) if t <= now => {
                for one in self.list.iter_mut().filter(|one| one.ended.is_none()) {
                    one.asked = true;
                }
                process::signal_all(process::TERM);
                self.phase = Phase::Ending(now + GRACE);
            }
            Phase::Ending(t) if t <= now => self.phase = Phase::Over(now),
            _ => {}
        }
        if self.quiet.due <= now {
            self.quiet.due = now + self.quiet.look;
            let seen = packets + switches();
            if std::mem::replace(&mut self.quiet.seen, seen) != seen {
                self.quiet.since = now;
            } else if now - self.quiet.since >= self.live.quiet_ns && !self.list.iter().any(Running::waits) {
                self.phase = Phase::Over(now);
            }
        }
        self.settle(now);
        Ok(())
    }

    /// Collect the exit status of ended processes.
    pub fn collect(&mut self, now: u64) -> Result<()> {
        let mut signals = [0; 1024];
        while sys::read(self.fd(), &mut signals)?.is_some() {}
        while let Some((process, ended)) = process::reap() {
            if let Some(one) = self.list.iter_mut().find(|one| one.process == Some(process)) {
                one.ended = Some((now, ended));
            }
        }
        self.settle(now);
        Ok(())
    }

    /// Update the phase of the run, which continues until every awaited program has ended.
    fn settle(&mut self, now: u64) {
        let over = |one: &Running<'_>| one.ended.is_some() || one.failed.is_some();
        if self.list.iter().all(over) {
            if matches!(self.phase, Phase::Running) {
                self.phase = Phase::Over(now + GRACE); // packets in flight arrive
            } else if matches!(self.phase, Phase::Ending(_)) {
                self.phase = Phase::Over(now);
            }
        } else if self.phase == Phase::Running && self.list.iter().filter(|one| one.spec.counts).all(over) {
            self.phase = Phase::Draining(now + GRACE);
        }
    }

    fn start(&mut self, i: usize, now: u64) -> Result<()> {
        let one = &mut self.list[i];
        one.started = Some(now);
        match one.waiting.take().map(process::start) {
            Some(Ok(process)) => one.process = Some(process),
            Some(Err(error)) => one.failed = Some(error.to_string()),
            None => {}
        }
        self.tell(now)
    }

    /// Write the programs' state to the run's folder, where the host side reads it.
    fn tell(&self, end: u64) -> Result<()> {
        let of = |one: &Running<'_>| {
            let (code, signal) = match one.ended {
                Some((_, Ended::Exited(code))) => (Some(code), None),
                Some((_, Ended::Killed(signal))) => (None, Some(signal)),
                None => (None, None),
            };
            json!({
                "name": one.spec.name, "started_ns": one.started, "ended_ns": one.ended.map(|(t, _)| t), "code": code, "signal": signal,
                "asked": one.asked, "failed": one.failed, "process": one.process,
            })
        };
        let quiet = self.quiet.since;
        let list: Vec<_> = self.list.iter().map(of).collect();
        fs::write(
            "/out/programs.json",
            json!({ "end_ns": end, "quiet_since_ns": quiet, "programs": list }).to_string(),
        )
    }

    /// Kill running programs, and copy their output.
    pub fn finish(&mut self, end: u64) -> Result<()> {
        let still = |one: &&mut Running<'_>| one.ended.is_none() && one.failed.is_none();
        for one in self.list.iter_mut().filter(still) {
            one.asked = true;
        }
        process::signal_all(process::KILL);
        self.tell(end)?;
        for name in self.live.names() {
            keep(Path::new(&format!("{STORE}/{name}/files")), Path::new(&format!("/out/{name}/files")))?;
        }
        Ok(())
    }
}

impl Running<'_> {
    fn waits(&self) -> bool {
        self.started.is_none()
    }
}

/// Prepare a program that waits for its start.
fn prepared<'a>(live: &Live, spec: &'a Exec, hosts: &[Host]) -> Result<Running<'a>> {
    let host = &hosts[spec.host];
    let name = live.names().nth(spec.host).expect("invariant: hosts are named");
    let output = |kind: &str| File::create(format!("/out/{name}/{}.{kind}", spec.name)).map(OwnedFd::from);
    let command = Command {
        file: bytes(&spec.file)?,
        arguments: spec.argv.iter().map(|text| bytes(text)).collect::<Result<_>>()?,
        environment: spec.env.iter().map(|text| bytes(text)).collect::<Result<_>>()?,
        folder: bytes(&live.folder)?,
        outputs: [output("stdout")?, output("stderr")?],
    };
    let waiting = Some(process::prepare(&host.view, host.network, &command)?);
    Ok(Running { spec, waiting, process: None, started: None, ended: None, asked: false, failed: None })
}

/// Folders that a host may write to. Existing subfolders are present there, but empty.
const INNER: [&str; 6] = ["tmp", "run", "var/tmp", "var/log", "var/cache", "var/lib/nginx"];
/// Depth down to which subfolders are recreated.
const DEPTH: u32 = 3;

/// Mount a host's view at `root`. The programs' working directory is always visible, wherever it is.
fn lay(name: &str, place: &str, root: &str, table: &str, folder: &str) -> Result<()> {
    for folder in ["files", "low", "root"] {
        fs::create_dir_all(format!("{place}/{folder}"))?;
    }
    process::mount_with(BASE, root, "", libc::MS_BIND, "")?;
    for (file, text) in
        [("hosts", table), ("hostname", &*format!("{name}\n")), ("resolv.conf", ""), ("nsswitch.conf", NAMES)]
    {
        put(place, &format!("{root}/etc/{file}"), file, text)?;
    }
    process::mount_with("none", &format!("{root}/proc"), "proc", 0, "")?;
    process::mount_with("none", &format!("{root}/sys"), "sysfs", libc::MS_RDONLY, "")?;
    for (file, text) in [("cpuinfo", PROCESSOR), ("cmdline", "\n")] {
        put(place, &format!("{root}/proc/{file}"), file, text)?;
    }
    let settings = format!("{root}/proc/sys");
    process::mount_with(&settings, &settings, "", libc::MS_BIND, "")?;
    process::mount_with("none", &settings, "", libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY, "")?;
    for inner in INNER {
        let (kept, seen) = (format!("{place}/files/{inner}"), format!("{root}/{inner}"));
        if !fs::symlink_metadata(&seen).is_ok_and(|what| what.is_dir()) {
            continue; // a link that leads into another folder of the list
        }
        fs::create_dir_all(&kept)?;
        if inner.starts_with("var") {
            skeleton(Path::new(&seen), Path::new(&kept), DEPTH)?;
        }
        let mode = if inner.ends_with("tmp") { 0o1777 } else { 0o755 };
        fs::set_permissions(&kept, fs::Permissions::from_mode(mode))?;
        process::mount_with(&kept, &seen, "", libc::MS_BIND, "")?;
    }
    if INNER
        .iter()
        .any(|inner| Path::new(folder).strip_prefix(Path::new("/").join(inner)).is_ok_and(|rest| rest != ""))
    {
        let seen = format!("{root}{folder}");
        fs::create_dir_all(&seen)?;
        process::mount_with(&format!("{BASE}{folder}"), &seen, "", libc::MS_BIND, "")?;
    }
    let dev = format!("{root}/dev");
    process::mount_with("none", &dev, "tmpfs", 0, "size=64m,mode=755")?;
    for (file, major, minor) in
        [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0)]
    {
        process::device(&format!("{dev}/{file}"), major, minor)?;
    }
    for folder in ["shm", "pts"] {
        fs::create_dir(format!("{dev}/{folder}"))?;
    }
    fs::set_permissions(format!("{dev}/shm"), fs::Permissions::from_mode(0o1777))?;
    process::mount_with("none", &format!("{dev}/pts"), "devpts", 0, "newinstance,ptmxmode=0666,mode=620")?;
    for (link, to) in [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
    ] {
        std::os::unix::fs::symlink(to, format!("{dev}/{link}"))?;
    }
    Ok(())
}

/// Replace one of the machine's files by another, if it exists.
fn put(place: &str, seen: &str, name: &str, text: &str) -> Result<()> {
    if !fs::symlink_metadata(seen).is_ok_and(|what| what.is_file()) {
        return Ok(());
    }
    let ours = format!("{place}/low/{name}");
    fs::write(&ours, text)?;
    process::mount_with(&ours, seen, "", libc::MS_BIND, "")
}

/// Recreate the existing folders without their contents, except for unreadable ones.
fn skeleton(from: &Path, to: &Path, depth: u32) -> Result<()> {
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let made = to.join(entry.file_name());
        fs::create_dir_all(&made)?;
        fs::set_permissions(&made, fs::Permissions::from_mode(0o777))?;
        if depth > 1 {
            skeleton(&entry.path(), &made, depth - 1)?;
        }
    }
    Ok(())
}

/// Name service configuration: only local files are searched.
const NAMES: &str = "passwd: files\ngroup: files\nhosts: files\n";
/// Contents of /proc/cpuinfo for programs, independent of the real machine.
const PROCESSOR: &str =
    "processor\t: 0\nvendor_id\t: ackclock\nmodel name\t: one core that takes no time\n\n";

/// Copy regular files and the folders that contain them; links, devices and removed files are skipped.
fn keep(from: &Path, to: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            keep(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::create_dir_all(to)?;
            fs::write(&target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// Context switches of all program threads so far.
fn switches() -> u64 {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let number = |name: std::ffi::OsString| name.to_string_lossy().parse::<u32>().ok();
    let processes = processes.flatten().filter_map(|entry| number(entry.file_name())).filter(|id| *id > 1);
    let threads =
        processes.filter_map(|id| fs::read_dir(format!("/proc/{id}/task")).ok()).flat_map(Iterator::flatten);
    threads.map(|one| fs::read_to_string(one.path().join("status")).map_or(0, |text| of_status(&text))).sum()
}

/// Context switches in the status of a process; 0 for a kernel thread.
fn of_status(text: &str) -> u64 {
    if !text.contains("VmSize:") {
        return 0;
    }
    let waited = text.lines().filter_map(|line| line.split_once("ctxt_switches:"));
    waited.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

fn bytes(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::other(format!("a byte of zero in {text:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_the_kernels_own_does_not_count() {
        assert_eq!(
            of_status("Name:\tkworker\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t1\n"),
            0
        );
        let text =
            "Name:\tcurl\nVmSize:\t  100 kB\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t1\n";
        assert_eq!(of_status(text), 8);
    }

    #[test]
    fn files_are_kept_and_links_are_not() {
        let place = std::env::temp_dir().join(format!("ackclock-keep-{}", std::process::id()));
        let (from, to) = (place.join("from"), place.join("to"));
        fs::create_dir_all(from.join("a/b")).unwrap();
        fs::create_dir_all(from.join("empty")).unwrap();
        fs::write(from.join("a/b/c"), "text").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", from.join("link")).unwrap();
        keep(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("a/b/c")).unwrap(), "text");
        assert!(!to.join("link").exists() && !to.join("empty").exists());
        fs::remove_dir_all(place).unwrap();
    }
}
