//! Host on which a script is played: the simulated stack, or a real kernel.

use ackclock_core::Time;

use super::tap::Tap;
use super::{Answer, Stop};
use crate::ast::{Call, Packet, Script};
use crate::options::Options;
use crate::setup::Setup;

/// A host with sockets, one peer, and a clock that advances only in [`Machine::step`].
pub trait Machine {
    /// Prepare the machine. If the script uses features that the machine lacks, it is unsupported before any
    /// event is played.
    fn begin(&mut self, script: &Script, setup: Setup, options: &Options) -> Result<(), Stop>;

    /// Current script time, starting at [`super::START`].
    fn now(&self) -> Time;

    /// Advance to the next event (a packet is sent, a blocking call returns, a timer expires), but not beyond
    /// `until`.
    fn step(&mut self, until: Time) -> Result<(), Stop>;

    /// Tap that captures packets sent by the machine.
    fn tap(&mut self) -> &mut Tap;

    /// Deliver a packet from the network.
    fn inject(&mut self, line: u32, packet: &Packet) -> Result<(), Stop>;

    /// Make a socket call for the application. Returns `None` if the call blocks; only one call can block at a time.
    fn call(&mut self, line: u32, call: &Call) -> Result<Option<Answer>, Stop>;

    /// Result of the blocking call; `None` while it is blocked.
    fn answer(&mut self, line: u32, call: &Call) -> Result<Option<Answer>, Stop>;

    /// Current parameters.
    fn setup(&self) -> &Setup;

    /// Change parameters while the script is played.
    fn change(&mut self, line: u32, setup: Setup) -> Result<(), Stop>;

    /// TCP_INFO of the socket: `tcpi_*` in the kernel's names and units.
    fn names(&mut self) -> Result<Vec<(&'static str, i64)>, Stop>;
}
