//! The guest kernel as the host of a script. A separate, higher-priority thread makes the calls: when control comes
//! back, the call has either returned or blocked. Virtual time advances only in [`Machine::step`].

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::{channel, Receiver, Sender};

use ackclock_core::{Flags, Span, Time};
use ackclock_script::ast::{Action, Call, Expr, Packet, Script};
use ackclock_script::runner::lateness::{shown, Lateness};
use ackclock_script::runner::{unsupported, Answer, Machine, Stop, Tap, START};
use ackclock_script::{Options, Setup};

use super::call::{Context, Descriptors, Request, PORT};
use super::host::Host;
use super::wire::{number_of, ports_of, Ends, OFFLOAD};
use super::{info, FIRST};
use crate::sys::raw::{self, Returned};
use crate::sys::{self, Poll};

const TIMER: u64 = 0;
const DEVICE: u64 = 1;
const BELL: u64 = 2;

/// First port of peers; each new peer uses the next one.
const FIRST_PEER: u16 = 40_000;

/// Kernel under test, and the state of the script's connection.
pub struct Kernel {
    host: Option<Host>,
    ends: Ends,
    fds: Descriptors,
    tap: Tap,
    now: Time,
    poll: Poll,
    timer: OwnedFd,
    bell: OwnedFd,
    work: Sender<Request>,
    done: Receiver<Returned>,
    /// Result of the blocking call; `None` while it blocks.
    returned: Option<Returned>,
    options: Options,
    wall: u64,
    /// Whether a socket has started to listen since the last connection began.
    listening: bool,
    /// The kernel's oldest unacknowledged sequence number.
    una: u32,
    /// The script's descriptor of the connection.
    subject: Option<i64>,
    connects: bool,
    lateness: Lateness,
}

fn io(line: u32, error: std::io::Error) -> Stop {
    Stop::Unsupported { line, what: format!("this on the kernel: {error}") }
}

impl Kernel {
    /// Create the backend; no device or socket is open yet.
    pub fn new() -> std::io::Result<Kernel> {
        let (work, requests) = channel::<Request>();
        let (replies, done) = channel();
        let (poll, timer, bell) = (Poll::new()?, sys::timer()?, raw::bell()?);
        poll.add(timer.as_raw_fd(), TIMER)?;
        poll.add(bell.as_raw_fd(), BELL)?;
        let ring = bell.as_raw_fd();
        std::thread::Builder::new().spawn(move || {
            let ready = sys::exact_timers().and_then(|()| raw::go_first());
            if let Err(error) = ready {
                eprintln!("thread: {error}");
            }
            for request in requests {
                let returned = raw::call(request.number, &request.args);
                let told = replies.send(returned).is_ok() && sys::write(ring, &1u64.to_ne_bytes()).is_ok();
                if !told {
                    return;
                }
            }
        })?;
        let ends = Ends { v6: false, local: PORT, remote: FIRST_PEER - 1, first: (0, 0), written: 0 };
        Ok(Kernel {
            host: None,
            ends,
            fds: BTreeMap::new(),
            tap: Tap::default(),
            now: START,
            poll,
            timer,
            bell,
            work,
            done,
            returned: None,
            options: Options::default(),
            wall: 0,
            listening: false,
            una: 0,
            subject: None,
            connects: false,
            lateness: Lateness::default(),
        })
    }

    fn device(&self) -> i32 {
        self.host.as_ref().expect("invariant: begun").device()
    }

    fn context(&mut self) -> Context<'_> {
        Context { fds: &mut self.fds, v6: self.ends.v6, wall: self.wall, tolerance: self.options.tolerance }
    }

    /// Collect the packets sent by the kernel.
    fn collect(&mut self) -> std::io::Result<bool> {
        let mut buffer = vec![0; 70_000];
        let mut any = false;
        while let Some(n) = sys::read(self.device(), &mut buffer)? {
            let Some(bytes) = buffer.get(OFFLOAD..n) else { continue };
            let Some((from, to)) = ports_of(bytes) else { continue };
            if self.connects && to == PORT {
                (self.ends.local, self.ends.remote) = (from, to);
            }
            let Some((packet, _)) = self.ends.read(bytes) else { continue };
            if packet.flags.bits.has(Flags::SYN) {
                self.ends.first.0 = number_of(bytes).unwrap_or(0);
                self.una = self.ends.first.0;
            }
            let Some((packet, ecn)) = self.ends.read(bytes) else { continue };
            self.tap.capture(self.now, packet, ecn);
            any = true;
        }
        Ok(any)
    }

    /// Reset the state for a new connection.
    fn restart(&mut self) {
        self.tap.restart();
        (self.ends.first, self.ends.written, self.una) = ((0, 0), 0, 0);
        (self.listening, self.subject) = (false, None);
    }

    fn conclude(&mut self, line: u32, call: &Call, done: &Returned) -> Result<Answer, Stop> {
        let answer = self.context().conclude(line, call, done)?;
        let first = call.args.first().and_then(Expr::number);
        match (call.name.as_str(), &answer) {
            ("listen", Ok(_)) => self.listening = true,
            ("accept" | "accept4", Ok(fd)) => self.subject = Some(*fd),
            ("close", Ok(_)) if self.subject == first => self.subject = None,
            _ => {}
        }
        Ok(answer)
    }
}

impl Machine for Kernel {
    fn begin(&mut self, script: &Script, setup: Setup, options: &Options) -> Result<(), Stop> {
        survey(script)?;
        if !matches!(setup.sysctls.profile.as_str(), "" | "linux-6") {
            return unsupported(1, format!("profile '{}' on the kernel", setup.sysctls.profile));
        }
        self.options = options.clone();
        self.ends.v6 = options.ipv6;
        let host = Host::new(setup).map_err(|e| io(1, e))?;
        self.poll.add(host.device(), DEVICE).map_err(|e| io(1, e))?;
        self.host = Some(host);
        sys::sleep_until(FIRST);
        self.wall = sys::realtime() - (sys::monotonic() - FIRST);
        Ok(())
    }

    fn now(&self) -> Time {
        self.now
    }

    fn step(&mut self, until: Time) -> Result<(), Stop> {
        let mut ready = Vec::new();
        let failed = |error| io(0, error);
        sys::arm(self.timer.as_raw_fd(), FIRST + until.since(START).0).map_err(failed)?;
        loop {
            self.poll.wait(&mut ready).map_err(failed)?;
            let since = Span(sys::monotonic() - FIRST);
            self.now = self.now.max(shown(START + since).min(until));
            let sent = ready.contains(&DEVICE) && self.collect().map_err(failed)?;
            let returned = ready.contains(&BELL);
            if returned {
                self.returned = self.done.try_recv().ok();
                sys::read(self.bell.as_raw_fd(), &mut [0; 8]).map_err(failed)?;
            }
            if ready.contains(&TIMER) {
                self.now = until;
                return Ok(());
            }
            if sent || returned {
                return Ok(());
            }
        }
    }

    fn tap(&mut self) -> &mut Tap {
        &mut self.tap
    }

    fn inject(&mut self, line: u32, packet: &Packet) -> Result<(), Stop> {
        let bytes = match packet {
            Packet::Tcp(p) => {
                let syn = p.flags.bits.has(Flags::SYN);
                if syn && !p.flags.bits.has(Flags::ACK) && self.listening {
                    self.restart();
                    self.ends.remote = (self.ends.remote + 1).max(FIRST_PEER);
                    self.ends.local = PORT;
                }
                if syn {
                    self.ends.first.1 = p.seq.start;
                    self.tap.first_numbers.1 = p.seq.start;
                }
                self.ends.written = self.tap.first_numbers.0;
                // Echoing a timestamp that was never sent is a script error, reported before the packet is built.
                let mut echo = 0;
                if let ackclock_script::ast::TcpOptions::Exactly(list) = &p.options {
                    for option in list {
                        if let ackclock_script::ast::TcpOption::Timestamps { ecr, .. } = option {
                            echo = self.tap.echoed(line, *ecr, p.ack.is_some(), &self.options)?;
                        }
                    }
                }
                if let Some(ack) = p.ack.filter(|_| !syn) {
                    self.una = self.ends.first.0.wrapping_add(ack);
                }
                self.ends.segment(p, |_| echo, self.options.gro_mss)
            }
            Packet::Icmp(p) => match self.ends.icmp(p, self.una) {
                Some(bytes) => bytes,
                None => return unsupported(line, format!("ICMP message '{}'", p.kind)),
            },
            Packet::Udp(_) => return unsupported(line, "a packet of another protocol"),
        };
        let late = self.lateness.next(self.now);
        sys::sleep_until(FIRST + (self.now.since(START) + late).0);
        sys::write(self.device(), &bytes).map_err(|e| io(line, e))?;
        Ok(())
    }

    fn call(&mut self, line: u32, call: &Call) -> Result<Option<Answer>, Stop> {
        if call.name == "connect" {
            let nth = call.args.first().and_then(Expr::number);
            if self.subject != nth {
                self.restart();
                (self.subject, self.connects) = (nth, true);
            }
        }
        let Some(request) = self.context().request(line, call)? else { return Ok(Some(Ok(0))) };
        self.returned = None;
        if self.work.send(request).is_err() {
            return unsupported(line, "a call after the thread of calls ended");
        }
        // The other thread has run until its call returned or blocked.
        self.returned = self.done.try_recv().ok();
        if self.returned.is_some() {
            sys::read(self.bell.as_raw_fd(), &mut [0; 8]).map_err(|e| io(line, e))?;
        }
        self.answer(line, call)
    }

    fn answer(&mut self, line: u32, call: &Call) -> Result<Option<Answer>, Stop> {
        match self.returned.take() {
            Some(done) => self.conclude(line, call, &done).map(Some),
            None => Ok(None),
        }
    }

    fn setup(&self) -> &Setup {
        &self.host.as_ref().expect("invariant: begun").setup
    }

    fn change(&mut self, line: u32, setup: Setup) -> Result<(), Stop> {
        let host = self.host.as_mut().expect("invariant: begun");
        host.change(setup, false).map_err(|e| io(line, e))
    }

    fn names(&mut self) -> Result<Vec<(&'static str, i64)>, Stop> {
        let fd = self.subject.and_then(|fd| self.fds.get(&fd).copied());
        let Some(fd) = fd else { return Ok(Vec::new()) };
        let mut raw = [0; info::SIZE];
        match sys::get_option(fd as i32, libc::IPPROTO_TCP, libc::TCP_INFO, &mut raw) {
            Ok(len) => Ok(info::names(&raw[..len.min(info::SIZE)])),
            Err(error) => Err(io(0, error)),
        }
    }
}

/// Reject unplayable parts before anything is played.
fn survey(script: &Script) -> Result<(), Stop> {
    for event in &script.events {
        let line = event.at.line;
        match &event.action {
            Action::Inject(Packet::Tcp(p)) | Action::Expect(Packet::Tcp(p)) if p.ports.is_some() => {
                return unsupported(line, "ports on a packet");
            }
            Action::Expect(Packet::Icmp(_) | Packet::Udp(_)) | Action::Inject(Packet::Udp(_)) => {
                return unsupported(line, "packets other than TCP")
            }
            _ => {}
        }
    }
    Ok(())
}
