//! Tests of the contract of `c/ackclock_stack.h`: two ends over a simple path. Each check should run in its own
//! process, because a library may end the process or never return.

use std::collections::VecDeque;

use ackclock_core::foreign::hash;
use ackclock_core::Stream;

use crate::audit::Audit;
use crate::library::{Instance, Library, State};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// Sizes of the transfers, bytes.
const LARGE: u64 = 10_000_000;
const SMALL: u64 = 500_000;
/// Number of junk datagrams.
const JUNK: u32 = 10_000;
/// Maximum number of steps per path; a transfer takes about 40,000.
const MOST_STEPS: u64 = 2_000_000;

/// Name and description of each check.
pub const CHECKS: &[(&str, &str)] = &[
    ("round-trips", "the handshake takes as many round trips as the library says"),
    ("capacity", "10 MB over a clean link, within 2 % of its capacity"),
    ("deadlines", "nothing leaves before the deadline, and the next deadline is later"),
    ("clock", "the same packets from another time on"),
    ("repeats", "the same packets in another process, with pauses of real time in between"),
    ("numbers", "what it reports is what the path carried"),
    ("instances", "the same packets beside other instances"),
    ("threads", "no threads"),
    ("junk", "10,000 datagrams of junk are survived"),
];

/// Run a check and return the measured value, or an error. For `repeats`, the value is a digest to be compared
/// between two processes, the second of which sets `pauses`.
pub fn check(
    library: &'static Library,
    controller: &str,
    what: &str,
    pauses: bool,
) -> Result<String, String> {
    let on = On { library, controller };
    match what {
        "round-trips" => on.round_trips(),
        "capacity" => on.capacity(),
        "deadlines" => on.deadlines(),
        "clock" => on.clock(),
        "repeats" => on.repeats(pauses),
        "numbers" => on.numbers(),
        "instances" => on.instances(),
        "threads" => on.threads(),
        "junk" => on.junk(),
        other => Err(format!("found the check {other:?}; allowed: {}", names())),
    }
}

fn names() -> String {
    CHECKS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// A link: rate in bit/s, one-way delay in ns, and one datagram lost in every `loses` (0 for none).
#[derive(Clone, Copy)]
struct Link {
    rate: u64,
    delay: u64,
    loses: u64,
}

struct On<'a> {
    library: &'static Library,
    controller: &'a str,
}

/// Two ends, client first, and the path between them.
struct Path {
    ends: [Instance; 2],
    link: Link,
    header: u64,
    now: u64,
    start: u64,
    free: [u64; 2],
    wire: [VecDeque<(u64, u8, Vec<u8>)>; 2],
    scratch: Vec<u8>,
    /// Number of datagrams sent by each end, and their bytes on the wire.
    sent: [u64; 2],
    bytes: [u64; 2],
    /// Digest of times, directions and lengths, and digest that also includes the bytes.
    shape: u64,
    digest: u64,
    steps: u64,
    /// Time from which on the client could send data, and error found by the deadline check.
    opened: Option<u64>,
    early: Option<String>,
    looks_early: bool,
    /// Both ends' audits, if their reports are checked.
    audits: Option<[Audit; 2]>,
    /// Whether the server, which writes nothing, has finished its direction.
    answered: bool,
}

impl On<'_> {
    fn open(&self, is_server: bool, seed: u8, now: u64) -> Result<Instance, String> {
        let seed = [seed; 32];
        Instance::open(self.library, is_server, self.controller, "{}", &seed, now)
            .map_err(|reason| format!("open: found a refusal ({reason}); allowed: an end, without options"))
    }

    fn path(&self, link: Link, start: u64, seed: u8) -> Result<Path, String> {
        Ok(Path {
            ends: [self.open(false, seed, start)?, self.open(true, seed.wrapping_add(100), start)?],
            link,
            header: u64::from(self.library.header),
            now: start,
            start,
            free: [start; 2],
            wire: Default::default(),
            scratch: Vec::new(),
            sent: [0; 2],
            bytes: [0; 2],
            shape: 0,
            digest: 0,
            steps: 0,
            opened: None,
            early: None,
            looks_early: false,
            audits: None,
            answered: false,
        })
    }

    fn transfer(&self, link: Link, start: u64, seed: u8, bytes: u64) -> Result<Path, String> {
        let mut path = self.path(link, start, seed)?;
        path.ends[0].write(start, bytes);
        path.ends[0].finish(start);
        Ok(path)
    }

    fn round_trips(&self) -> Result<String, String> {
        let rtt = 100 * MS;
        let mut path = self.transfer(Link { rate: 1_000_000_000, delay: rtt / 2, loses: 0 }, 0, 1, 1000)?;
        path.run(20 * SECOND, |path| path.opened.is_some())?;
        let took = path.opened.ok_or("found no connection after 20 s; allowed: an open one")?;
        let n = u64::from(self.library.round_trips);
        match took / rtt == n && took % rtt < rtt / 10 {
            true => Ok(format!("{n}: {} ms at a round-trip time of 100 ms", took / MS)),
            false => Err(format!(
                "found {} ms at a round-trip time of 100 ms; allowed: {n} round trips",
                took / MS
            )),
        }
    }

    fn capacity(&self) -> Result<String, String> {
        let rate = 20_000_000;
        let mut path = self.transfer(Link { rate, delay: 5 * MS, loses: 0 }, 0, 1, LARGE)?;
        path.run(20 * SECOND, |path| path.ends[1].received() >= LARGE)?;
        path.all_of(LARGE)?;
        let seconds = path.now as f64 / 1e9;
        let used = 100.0 * path.bytes[0] as f64 * 8.0 / (rate as f64 * seconds);
        let busy = (used * 10.0).floor() / 10.0; // 99.96 % is not printed as 100.0 %
        let extra = 100.0 * (path.bytes[0] as f64 / LARGE as f64 - 1.0);
        if extra > 10.0 {
            return Err(format!(
                "found {extra:.1} % more bytes on the wire than data; allowed: 10 %, where nothing is lost"
            ));
        }
        match busy >= 98.0 {
            true => Ok(format!("{seconds:.3} s, the link {busy:.1} % used, {extra:.1} % of headers")),
            false => Err(format!(
                "found {busy:.1} % of 20 Mbit/s used over {seconds:.3} s; allowed: 98 % and more"
            )),
        }
    }

    fn deadlines(&self) -> Result<String, String> {
        let mut path = self.transfer(LOSSY, 0, 1, SMALL)?;
        path.looks_early = true;
        path.settle()?;
        path.run(60 * SECOND, |path| path.ends[1].received() >= SMALL || path.early.is_some())?;
        if let Some(said) = path.early.take() {
            return Err(said);
        }
        path.all_of(SMALL)?;
        Ok(format!("{} steps", path.steps))
    }

    /// Run a lossy transfer that begins at `start`.
    fn lossy(&self, start: u64, seed: u8) -> Result<Path, String> {
        let mut path = self.transfer(LOSSY, start, seed, SMALL)?;
        path.run(60 * SECOND, |path| path.ends[1].received() >= SMALL)?;
        path.all_of(SMALL)?;
        Ok(path)
    }

    fn clock(&self) -> Result<String, String> {
        // whole seconds, which are also exact in us and ms
        let shapes: Vec<u64> = [0, 86_400 * SECOND, 1_000_000_007 * SECOND]
            .iter()
            .map(|&start| self.lossy(start, 1).map(|path| path.shape))
            .collect::<Result<_, _>>()?;
        match shapes.iter().all(|&shape| shape == shapes[0]) {
            true => Ok("from 0 s, a day and 32 years on".to_string()),
            false => Err("found other packets when the time begins elsewhere; allowed: the same".to_string()),
        }
    }

    fn repeats(&self, pauses: bool) -> Result<String, String> {
        let mut path = self.transfer(LOSSY, 0, 1, SMALL)?;
        for part in 1..=10 {
            path.run(60 * SECOND, |path| path.ends[1].received() >= SMALL / 10 * part)?;
            if pauses {
                #[allow(clippy::disallowed_methods, reason = "real time passes between the parts")]
                std::thread::sleep(std::time::Duration::from_millis(37));
            }
        }
        Ok(format!("{:016x}", path.digest))
    }

    /// Run a complete transfer with losses. Check both ends' reports at each step, and against each other at the end.
    fn numbers(&self) -> Result<String, String> {
        let mut path = self.transfer(LOSSY, 0, 1, SMALL)?;
        path.audits = Some([Audit::new(0), Audit::new(0)]);
        path.run(60 * SECOND, |path| path.ends[1].peer_finished())?;
        path.all_of(SMALL)?;
        if !path.ends[1].peer_finished() {
            return Err(format!(
                "peer_finished: found no end of {SMALL} bytes; allowed: one, when all are here"
            ));
        }
        // the server finishes as well: the client closes, and both ends' reports remain correct
        path.answered = true;
        path.ends[1].finish(path.now);
        path.run(120 * SECOND, |path| path.ends[0].state() == State::Closed)?;
        match (path.ends[1].peer_finished(), path.ends[0].sample().acked) {
            (false, _) => {
                Err("peer_finished: found that the end was taken back; allowed: it stays".to_string())
            }
            (_, acked) if acked != u64::MAX && acked != SMALL => Err(format!(
                "acked: found {acked} of {SMALL} bytes in the end; allowed: all, or ACK_STACK_NONE"
            )),
            _ => Ok(format!("{} steps, {SMALL} bytes", path.steps)),
        }
    }

    fn instances(&self) -> Result<String, String> {
        let alone = self.lossy(0, 1)?.digest;
        let mut paths = Vec::new();
        for seed in [1, 2, 3] {
            paths.push(self.transfer(LOSSY, 0, seed, SMALL)?);
        }
        for step in 1..=5000 {
            for path in &mut paths {
                path.run(step * 20 * MS, |path| path.ends[1].received() >= SMALL)?;
            }
            if paths.iter().all(|path| path.ends[1].received() >= SMALL) {
                break;
            }
        }
        match paths[0].digest == alone {
            true => Ok("three pairs at once".to_string()),
            false => Err("found other packets when two more pairs run; allowed: the same".to_string()),
        }
    }

    fn threads(&self) -> Result<String, String> {
        let before = threads();
        let mut path = self.transfer(LOSSY, 0, 1, SMALL)?;
        let mut most = threads();
        path.run(60 * SECOND, |path| {
            most = most.max(threads());
            path.ends[1].received() >= SMALL
        })?;
        match (before, most) {
            (None, _) | (_, None) => Ok("not looked at on this system".to_string()),
            (Some(before), Some(most)) if most > before => {
                Err(format!("found {} more; allowed: none", most - before))
            }
            _ => Ok("none".to_string()),
        }
    }

    fn junk(&self) -> Result<String, String> {
        let mut stream = Stream::new(1, "junk");
        let mut given = 0;
        let mut ended = 0;
        while given < JUNK {
            let until = stream.below(200) * MS;
            let mut path = self.transfer(LOSSY, 0, given as u8, SMALL)?;
            path.run(until, |_| false)?;
            for _ in 0..50 {
                let to = stream.below(2) as usize;
                let kept =
                    path.wire[to].iter().map(|(.., bytes)| bytes).nth(stream.below(4) as usize).cloned();
                let bytes = junk(&mut stream, kept);
                path.ends[to].datagram(path.now, stream.below(4) as u8, &bytes);
                given += 1;
                path.settle()?;
            }
            path.run(path.now + SECOND, |_| false)?;
            ended += u32::from(path.ends.iter().any(|end| matches!(end.state(), State::Failed(_))));
        }
        Ok(format!("{given} given; {ended} of {} connections ended of it", given / 50))
    }
}

/// A lossy path, where the stack must repair losses.
const LOSSY: Link = Link { rate: 10_000_000, delay: 10 * MS, loses: 53 };

/// Return random bytes, or a modified datagram from the stack.
fn junk(stream: &mut Stream, kept: Option<Vec<u8>>) -> Vec<u8> {
    let Some(mut bytes) = kept.filter(|bytes| !bytes.is_empty() && stream.below(2) == 0) else {
        return (0..stream.below(1600)).map(|_| stream.next_u64() as u8).collect();
    };
    match stream.below(3) {
        0 => bytes.truncate(stream.below(bytes.len() as u64) as usize),
        1 => bytes.extend((0..stream.below(100)).map(|_| 0)),
        _ => {
            for _ in 0..=stream.below(4) {
                let at = stream.below(bytes.len() as u64) as usize;
                bytes[at] ^= stream.next_u64() as u8;
            }
        }
    }
    bytes
}

/// Number of threads of this process, if the system reports it.
fn threads() -> Option<usize> {
    std::fs::read_dir("/proc/self/task").ok().map(Iterator::count)
}

impl Path {
    /// Transmit everything that both ends have to send now.
    fn settle(&mut self) -> Result<(), String> {
        for side in [0, 1] {
            while let Some((len, mark)) = self.ends[side].transmit(self.now, &mut self.scratch)? {
                self.put(side, len, mark);
                if let Some(audits) = &mut self.audits {
                    audits[side].leaves(self.now, len as u64 + self.header)?;
                }
                if self.wire[1 - side].len() > 100_000 {
                    return Err(
                        "transmit: found 100,000 datagrams at one time; allowed: what a window holds"
                            .to_string(),
                    );
                }
            }
            if self.opened.is_none() && side == 0 && self.ends[0].state() != State::Opening {
                self.opened = Some(self.now - self.start);
            }
        }
        self.audit()?;
        if self.looks_early {
            self.look_early(0)?;
            self.look_early(1)?;
        }
        Ok(())
    }

    /// Audit both ends' current reports, if audits are enabled.
    fn audit(&mut self) -> Result<(), String> {
        let Some(audits) = &mut self.audits else { return Ok(()) };
        for (audit, (end, who)) in audits.iter_mut().zip(self.ends.iter().zip(["client", "server"])) {
            let said = audit.look(end, &end.state(), &end.sample(), self.now, true);
            said.map_err(|said| format!("{who}, {said}"))?;
        }
        let [client, server] = &*audits;
        let wrote = client.accounts(Some(SMALL), true, matches!(self.ends[0].state(), State::Failed(_)));
        let read = server.accounts(Some(0), self.answered, matches!(self.ends[1].state(), State::Failed(_)));
        client.against(&wrote, &read).map_err(|said| format!("client, {said}"))?;
        server.against(&read, &wrote).map_err(|said| format!("server, {said}"))
    }

    /// Check that exactly `bytes` bytes have arrived.
    fn all_of(&self, bytes: u64) -> Result<(), String> {
        match self.ends[1].received() {
            received if received == bytes => Ok(()),
            received => {
                let ms = (self.now - self.start) / MS;
                Err(format!("found {received} bytes at the receiver after {ms} ms; allowed: the {bytes} that were written"))
            }
        }
    }

    fn put(&mut self, side: usize, len: usize, mark: u8) {
        self.sent[side] += 1;
        let bytes = len as u64 + self.header;
        self.bytes[side] += bytes;
        let begin = self.free[side].max(self.now);
        self.free[side] = begin + bytes * 8 * SECOND / self.link.rate;
        let sent = &self.scratch[..len];
        for (sum, with) in [(&mut self.shape, 0), (&mut self.digest, hash(sent))] {
            let words = [*sum, self.now - self.start, side as u64, len as u64, u64::from(mark), with];
            let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            *sum = hash(&words);
        }
        let lost = self.link.loses > 0 && self.sent[side] % self.link.loses == self.link.loses - 1;
        if !lost {
            self.wire[1 - side].push_back((self.free[side] + self.link.delay, mark & 3, sent.to_vec()));
        }
    }

    /// Check that nothing is sent between now and the deadline.
    fn look_early(&mut self, side: usize) -> Result<(), String> {
        let (deadline, next) = (self.ends[side].deadline(), self.next_arrival());
        let soon = deadline.min(next).min(self.now + SECOND);
        let between = self.now + soon.saturating_sub(self.now) / 2;
        if between <= self.now || between >= soon {
            return Ok(());
        }
        if let Some((len, mark)) = self.ends[side].transmit(between, &mut self.scratch)? {
            self.early.get_or_insert(format!(
                "found {len} bytes {} us before the deadline, {} ms after the start; allowed: nothing",
                (deadline - between) / 1000,
                (between - self.start) / MS
            ));
            self.now = between;
            self.put(side, len, mark);
        }
        self.now = between;
        Ok(())
    }

    fn next_arrival(&self) -> u64 {
        self.wire.iter().filter_map(|wire| wire.front().map(|(at, ..)| *at)).min().unwrap_or(u64::MAX)
    }

    /// Run until `until` (from the start), until there are no more events, or until `enough` returns true.
    fn run(&mut self, until: u64, mut enough: impl FnMut(&Path) -> bool) -> Result<(), String> {
        self.settle()?;
        while !enough(self) {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Err(format!("found no end after {MOST_STEPS} steps; allowed: progress"));
            }
            let timers = self.ends.iter().map(Instance::deadline).min().unwrap_or(u64::MAX);
            let next = timers.max(self.now).min(self.next_arrival());
            if next == u64::MAX || next - self.start > until {
                break;
            }
            self.now = next;
            for side in [0, 1] {
                while self.wire[side].front().is_some_and(|(at, ..)| *at <= self.now) {
                    let Some((_, ecn, bytes)) = self.wire[side].pop_front() else { break };
                    self.ends[side].datagram(self.now, ecn, &bytes);
                    if let Some(audits) = &mut self.audits {
                        audits[side].arrives(bytes.len());
                    }
                }
                if self.ends[side].deadline() <= self.now {
                    self.ends[side].timer(self.now);
                }
            }
            let before = self.now;
            self.settle()?;
            for (end, who) in self.ends.iter().zip(["client", "server"]) {
                let deadline = end.deadline();
                if deadline <= before {
                    return Err(format!(
                        "found the {who}'s deadline still at {deadline} ns after {before} ns, when its timer was called and nothing more leaves; allowed: a later one"
                    ));
                }
            }
        }
        Ok(())
    }
}
