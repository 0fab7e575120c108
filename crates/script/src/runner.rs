//! Plays a script against a host in virtual time: packets are injected and calls are made at their times. Packets
//! sent by the host are queued, and each expectation consumes the next one. Scripts that cannot be played are
//! `unsupported`, never a pass.

mod calls;
mod compare;
pub mod constant;
pub mod control;
pub mod lateness;
mod machine;
mod report;
mod simulated;
mod tap;

use ackclock_core::{Span, Time};

use crate::ast::{Action, Event, Packet, Script, TcpPacket, When};
use crate::error::{Error, Pos};
use crate::options::Options;
use crate::setup::{Refused, Setup};
pub use calls::Answer;
pub use machine::Machine;
pub use report::{Outcome, Snapshot, Verdict};
use simulated::Simulated;
pub use tap::{Captured, Tap};

/// Start time of scripts: late enough for every time difference computed by the stack, and a multiple of the
/// coarsest timer-wheel granularity.
pub const START: Time = Time(1_024_000_000_000);
/// Time for which an expected packet is awaited beyond its due time.
const PATIENCE: Span = Span::from_secs(2);
/// Time limit of a script: ten times its longest single step.
const MAX_LENGTH: Span = Span::from_secs(10_000_000);
/// Maximum number of packets that the stack may send in one script.
const MAX_PACKETS: usize = 100_000;

/// Host profile and command-line options.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// Host profile.
    pub name: String,
    /// Ticks per second.
    pub hz: u32,
    /// Tolerance that replaces the script's; `None` = the script's.
    pub tolerance: Option<Span>,
    /// Kernel parameters set after the script's own.
    pub sysctls: Vec<(String, String)>,
    /// Whether every unexpected packet is a failure, even after the last expectation.
    pub strict: bool,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile { name: "linux-6".into(), hz: 1000, tolerance: None, sysctls: Vec::new(), strict: false }
    }
}

/// Reason why a script stops before its end.
#[derive(Debug)]
#[allow(missing_docs, reason = "line, expected and actual say what they are")]
pub enum Stop {
    /// A packet or result differs from the script.
    Fail { line: u32, expected: String, actual: String },
    /// A construct cannot be played.
    Unsupported { line: u32, what: String },
    /// The script is invalid.
    Invalid(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        match error {
            Error::Unsupported { at, what } => Stop::Unsupported { line: at.line, what },
            other => Stop::Invalid(other),
        }
    }
}

/// Return an error about a construct that cannot be played.
pub fn unsupported<T>(line: u32, what: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Unsupported { line, what: what.into() })
}

/// Return an error about a difference from the script.
pub fn fail<T>(line: u32, expected: impl ToString, actual: impl ToString) -> Result<T, Stop> {
    Err(Stop::Fail { line, expected: expected.to_string(), actual: actual.to_string() })
}

/// Play a script against the simulated stack. An error means that one of the script's options or parameters is out
/// of range.
pub fn play(script: &Script, profile: &Profile) -> Result<Outcome, Error> {
    play_on(&mut Simulated::new(profile), script, profile)
}

/// Play a script against any host. Only the player's own settings are taken from the profile.
pub fn play_on<M: Machine>(machine: &mut M, script: &Script, profile: &Profile) -> Result<Outcome, Error> {
    let mut player = Player {
        machine,
        options: Options::default(),
        blocks: Vec::new(),
        previous: START,
        finished: START,
        after_injection: false,
        deviation: Span::ZERO,
        pending: None,
    };
    let result = player.play(script, profile);
    let verdict = match result {
        Ok(()) => Verdict::Pass,
        Err(Stop::Fail { line, expected, actual }) => Verdict::Fail { line, expected, actual },
        Err(Stop::Unsupported { line, what }) => Verdict::Unsupported { line, what },
        Err(Stop::Invalid(error)) => return Err(error),
    };
    let (blocks, deviation) = (player.blocks, player.deviation);
    let trace = std::mem::take(&mut machine.tap().trace);
    Ok(Outcome { verdict, blocks, deviation, trace })
}

struct Player<'a, M> {
    machine: &'a mut M,
    options: Options,
    blocks: Vec<Snapshot>,
    /// Scheduled time of the previous event.
    previous: Time,
    /// End of the previous event.
    finished: Time,
    after_injection: bool,
    deviation: Span,
    /// Call that has not returned yet.
    pending: Option<calls::Blocking>,
}

/// Times at which an event is due.
#[derive(Clone, Copy)]
struct Due {
    from: Time,
    to: Time,
    tolerance: Span,
    any: bool,
}

impl<M: Machine> Player<'_, M> {
    fn play(&mut self, script: &Script, profile: &Profile) -> Result<(), Stop> {
        self.options = Options::of(&script.options)?;
        if let Some(tolerance) = profile.tolerance {
            self.options.tolerance = tolerance;
        }
        let setup = set_up(script, profile, &self.options)?;
        self.machine.begin(script, setup, &self.options)?;
        for event in &script.events {
            self.event(event)?;
            if self.machine.tap().sent > MAX_PACKETS {
                return unsupported(event.at.line, format!("more than {MAX_PACKETS} packets"));
            }
        }
        self.finish_call()?;
        match self.machine.tap().queue.front().filter(|_| profile.strict) {
            None => Ok(()),
            Some(left) => {
                let line = script.events.last().map_or(1, |e| e.at.line);
                fail(line, "no packet after the last one", format!("{} at {}", left.packet, clock(left.at)))
            }
        }
    }

    fn due(&self, time: When) -> Due {
        let base = if self.after_injection { self.previous } else { self.finished };
        let (from, to, any) = match time {
            When::At(t) => (START + t, START + t, false),
            When::After(t) => (base + t, base + t, false),
            When::Between(a, b) => (START + a, START + b, false),
            When::AfterBetween(a, b) => (base + a, base + b, false),
            When::Any => (self.finished, self.finished, true),
        };
        let distance = match time {
            When::After(t) | When::AfterBetween(t, _) => t,
            _ => from.since(self.previous),
        };
        let share = Span((distance.0 as u128 * self.options.tolerance_permille as u128 / 1000) as u64);
        Due { from, to, tolerance: share.max(self.options.tolerance), any }
    }

    fn event(&mut self, event: &Event) -> Result<(), Stop> {
        let line = event.at.line;
        let due = self.due(event.time);
        if due.to.since(START) > MAX_LENGTH {
            return unsupported(line, format!("a script of more than {} s", MAX_LENGTH.0 / 1_000_000_000));
        }
        let mut injected = false;
        match &event.action {
            Action::Expect(Packet::Tcp(p)) => {
                self.expect(line, p, due)?;
                self.previous = due.from;
                self.finished = self.machine.now();
                self.after_injection = false;
                return Ok(());
            }
            Action::Call(_) => {
                self.finish_call()?;
                self.wait(due.from)?;
            }
            _ => self.wait(due.from)?,
        }
        self.in_time(line, due, self.machine.now(), &event.action)?;
        match &event.action {
            Action::Inject(packet) => {
                if let Packet::Tcp(p) = packet {
                    let now = self.machine.now();
                    self.machine.tap().note(now, '<', p);
                }
                self.machine.inject(line, packet)?;
                injected = true;
            }
            Action::Call(call) => self.call(line, call, event.time)?,
            Action::Command(text) => {
                // A command within a script may only change settings, and only those that the machine can still
                // change.
                let mut setup = self.machine.setup().clone();
                setup.apply(text, event.at)?;
                self.machine.change(line, setup)?;
            }
            Action::Code(text) => {
                let names = self.machine.names()?;
                self.blocks.push(Snapshot { line, text: text.clone(), names });
            }
            Action::Expect(_) => return unsupported(line, "a packet of another protocol"),
        }
        self.poll_call()?;
        self.previous = due.from;
        self.finished = self.machine.now();
        self.after_injection = injected;
        Ok(())
    }

    fn in_time(&mut self, line: u32, due: Due, at: Time, what: &Action) -> Result<(), Stop> {
        if at <= due.to + due.tolerance {
            return Ok(());
        }
        let shown = match what {
            Action::Code(_) => "code block".to_string(),
            Action::Command(_) => "command".to_string(),
            Action::Call(call) => call.to_string(),
            Action::Inject(p) | Action::Expect(p) => p.to_string(),
        };
        fail(line, format!("{shown} at {}", clock(due.from)), format!("at {}", clock(at)))
    }

    /// Advance the host to its next event, but not beyond `until`, and check whether a blocking call has returned.
    fn step(&mut self, until: Time) -> Result<(), Stop> {
        self.machine.step(until)?;
        self.poll_call()
    }

    /// Advance the host to `until`. A blocking call may return meanwhile.
    fn wait(&mut self, until: Time) -> Result<(), Stop> {
        while self.machine.now() < until {
            self.step(until)?;
            if self.machine.tap().sent > MAX_PACKETS {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Take the next packet, joined with later ones as far as the expectation covers them, regardless of their times.
    fn take(&mut self, wanted: &TcpPacket, give_up: Time) -> Result<Captured, Stop> {
        let queue = &mut self.machine.tap().queue;
        let mut taken = compare::Taken::first(queue).expect("invariant: the caller saw a packet");
        while !self.options.strict_segments && taken.wants_more(wanted) {
            while self.machine.tap().queue.is_empty() && self.machine.now() < give_up {
                self.step(give_up)?;
            }
            if !taken.join(&mut self.machine.tap().queue, wanted) {
                break;
            }
        }
        Ok(taken.whole)
    }

    fn expect(&mut self, line: u32, wanted: &TcpPacket, due: Due) -> Result<(), Stop> {
        let give_up = due.to.max(self.machine.now()) + PATIENCE;
        while self.machine.tap().queue.is_empty() && self.machine.now() < give_up {
            self.step(give_up)?;
            if self.machine.tap().sent > MAX_PACKETS {
                break;
            }
        }
        if self.machine.tap().queue.is_empty() {
            return fail(line, format!("{wanted} at {}", clock(due.from)), "nothing was sent");
        }
        let taken = self.take(wanted, give_up)?;
        let shown = format!("{} at {}", taken.packet, clock(taken.at));
        let differs = compare::differs(wanted, &taken);
        if let Some(what) = differs {
            return fail(line, format!("{wanted} at {}", clock(due.from)), format!("{shown} ({what})"));
        }
        let off = match due.any {
            true => Span::ZERO,
            false => due.from.since(taken.at).max(taken.at.since(due.to)),
        };
        if off > due.tolerance {
            let window = if due.from == due.to { String::new() } else { format!("~{}", clock(due.to)) };
            return fail(
                line,
                format!("{wanted} at {}{window}, within {}", clock(due.from), seconds(due.tolerance)),
                format!("{shown} (off by {})", seconds(off)),
            );
        }
        self.deviation = self.deviation.max(off);
        if wanted.flags.bits.has(ackclock_core::Flags::SYN) {
            self.machine.tap().first_numbers.0 = wanted.seq.start;
        }
        compare::timestamps(line, wanted, &taken, self.machine.tap(), &self.options)
    }
}

/// Play everything before the first event, and return the host's parameters.
fn set_up(script: &Script, profile: &Profile, options: &Options) -> Result<Setup, Stop> {
    // Public suites start with their defaults script, through an option or a command. Scripts that name none use
    // the same defaults.
    let mut setup = Setup::suite();
    if options.ipv6 {
        (setup.ip_header, setup.mtu) = (40, 1520);
    }
    if let Some(mtu) = options.mtu {
        setup.mtu = mtu;
    }
    if let Some(init) = &script.init {
        setup.apply(&init.text, init.at)?;
    }
    for path in &options.init_scripts {
        if path.rsplit('/').next() != Some("defaults.sh") {
            return unsupported(1, format!("init script '{path}'"));
        }
    }
    for (name, value) in &profile.sysctls {
        if let Err(refused) = setup.set(name, value) {
            let at = Pos { line: 0, column: 0 };
            return match refused {
                Refused::Unknown(what) => unsupported(0, what),
                Refused::Value { what, found, allowed } => {
                    Err(Error::value(at, &what, found, allowed).into())
                }
            };
        }
    }
    Ok(setup)
}

/// Format a script time.
fn clock(at: Time) -> String {
    seconds(at.since(START))
}

fn seconds(span: Span) -> String {
    format!("{} s", crate::parser::seconds(span))
}
