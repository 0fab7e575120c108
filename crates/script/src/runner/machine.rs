//! The host that a script is played on: the simulated stack, or a real kernel.

use ackclock_core::Time;

use super::tap::Tap;
use super::{Answer, Stop};
use crate::ast::{Call, Packet, Script};
use crate::options::Options;
use crate::setup::Setup;

/// A host with sockets, one peer, and a clock that advances only in [`Machine::step`].
pub trait Machine {
    /// Make it ready. What the script asks for and the machine does not have makes the script unsupported, before
    /// anything is played.
    fn begin(&mut self, script: &Script, setup: Setup, options: &Options) -> Result<(), Stop>;

    /// Time of the script, from [`super::START`] on.
    fn now(&self) -> Time;

    /// Let the next thing happen: a packet is sent, a waiting call returns, a timer expires. Nothing after `until`.
    fn step(&mut self, until: Time) -> Result<(), Stop>;

    /// Packets that the machine sent.
    fn tap(&mut self) -> &mut Tap;

    /// The network delivers a packet.
    fn inject(&mut self, line: u32, packet: &Packet) -> Result<(), Stop>;

    /// The application makes a call. `None`: it waits, which at most one call does.
    fn call(&mut self, line: u32, call: &Call) -> Result<Option<Answer>, Stop>;

    /// Result of the waiting call; `None`: it still waits.
    fn answer(&mut self, line: u32, call: &Call) -> Result<Option<Answer>, Stop>;

    /// Parameters in their present state.
    fn setup(&self) -> &Setup;

    /// Parameters change while the script is played.
    fn change(&mut self, line: u32, setup: Setup) -> Result<(), Stop>;

    /// TCP_INFO of the socket: `tcpi_*` in the kernel's names and units.
    fn names(&mut self) -> Result<Vec<(&'static str, i64)>, Stop>;
}
