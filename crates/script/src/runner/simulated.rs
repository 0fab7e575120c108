//! The simulated stack as the host of a script: one connection, its sockets, and virtual time.

mod call;
mod host;
mod icmp;
mod info;
mod notices;
mod socket;
mod stack;
mod wire;

use ackclock_core::Time;

use super::lateness::Lateness;
use super::tap::Tap;
use super::{unsupported, Answer, Machine, Profile, Stop, START};
use crate::ast::{Action, Call, Packet, Script};
use crate::options::Options;
use crate::setup::{Qdisc, Setup};
use socket::Sockets;
use stack::Stack;

/// Simulated host.
pub struct Simulated<'a> {
    profile: &'a Profile,
    stack: Stack,
    sockets: Sockets,
    options: Options,
    /// Start of the current call.
    call_began: Time,
    /// Time at which the blocked call must be checked, regardless of events.
    wake: Time,
    lateness: Lateness,
}

impl Simulated<'_> {
    /// Return a host without open sockets.
    pub fn new(profile: &Profile) -> Simulated<'_> {
        Simulated {
            profile,
            stack: Stack::new(START),
            sockets: Sockets::default(),
            options: Options::default(),
            call_began: START,
            wake: Time::NEVER,
            lateness: Lateness::default(),
        }
    }

    /// Report the outcome of writes after the stack has acted.
    fn settle(&mut self) {
        if let Some(conn) = &self.stack.conn {
            self.sockets.notices.update(self.stack.now, conn);
        }
    }
}

impl Machine for Simulated<'_> {
    fn begin(&mut self, script: &Script, setup: Setup, options: &Options) -> Result<(), Stop> {
        self.options = options.clone();
        self.stack.host = host::Host::new(setup, self.profile)?;
        self.stack.segment_limit = options.gro_mss.map_or(u32::MAX, u32::from);
        survey(script)
    }

    #[allow(
        clippy::misnamed_getters,
        reason = "the script's clock; a packet reaches the stack a little later"
    )]
    fn now(&self) -> Time {
        self.stack.at
    }

    fn step(&mut self, until: Time) -> Result<(), Stop> {
        let wake = if self.wake > self.stack.at { self.wake } else { Time::NEVER };
        self.stack.step(until.min(wake));
        self.settle();
        Ok(())
    }

    fn tap(&mut self) -> &mut Tap {
        &mut self.stack.tap
    }

    fn inject(&mut self, line: u32, packet: &Packet) -> Result<(), Stop> {
        let late = self.lateness.next(self.stack.at);
        self.stack.pass(self.stack.at + late);
        match packet {
            Packet::Icmp(p) => self.icmp(line, p)?,
            Packet::Tcp(p) => {
                let segment = wire::inbound(line, p, &mut self.stack, &self.options)?;
                self.sockets.deliver(line, &mut self.stack, p, segment)?;
            }
            Packet::Udp(_) => return unsupported(line, "a packet of another protocol"),
        }
        self.settle();
        Ok(())
    }

    fn call(&mut self, line: u32, call: &Call) -> Result<Option<Answer>, Stop> {
        (self.call_began, self.wake) = (self.stack.now, Time::NEVER);
        self.answer(line, call)
    }

    fn answer(&mut self, line: u32, call: &Call) -> Result<Option<Answer>, Stop> {
        let answer = self.carry_out(line, call)?;
        if answer.is_some() {
            self.wake = Time::NEVER;
        }
        self.settle();
        Ok(answer)
    }

    fn setup(&self) -> &Setup {
        &self.stack.host.setup
    }

    fn change(&mut self, line: u32, setup: Setup) -> Result<(), Stop> {
        let qdisc = setup.qdisc;
        // Device settings and the AccECN option may change at any time, all other settings only before a connection
        // begins.
        let (tso, gso, gro, files) = (setup.tso, setup.gso, setup.gro, setup.files.clone());
        let mut before = Setup { qdisc, tso, gso, gro, files, ..self.stack.host.setup.clone() };
        let option = setup.sysctls.tcp_ecn_option;
        before.sysctls.tcp_ecn_option = option;
        let changes = setup != before;
        self.stack.host.change(setup, line)?;
        if changes && self.stack.conn.is_some() && !self.sockets.is_between() {
            return unsupported(line, "a change of parameters after the connection began");
        }
        self.stack.act(|conn| {
            conn.set_refused(qdisc == Qdisc::DropAll);
            conn.set_accecn_option(option as u8);
        });
        self.settle();
        Ok(())
    }

    fn names(&mut self) -> Result<Vec<(&'static str, i64)>, Stop> {
        Ok(self.stack.conn.as_ref().map(|c| info::names(c, &self.stack)).unwrap_or_default())
    }
}

/// Reject constructs that cannot be played, before any event is played.
fn survey(script: &Script) -> Result<(), Stop> {
    for event in &script.events {
        let line = event.at.line;
        match &event.action {
            Action::Inject(Packet::Tcp(p)) => wire::survey(line, p, true)?,
            Action::Expect(Packet::Tcp(p)) => wire::survey(line, p, false)?,
            Action::Inject(Packet::Icmp(p)) => icmp::survey(line, p)?,
            Action::Inject(_) | Action::Expect(_) => return unsupported(line, "packets other than TCP"),
            Action::Call(call) => call::survey(line, call)?,
            Action::Command(_) | Action::Code(_) => {}
        }
    }
    Ok(())
}
