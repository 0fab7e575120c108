//! Hosts that are not perfect: a processor that is taken away or too small, a card that interrupts now and then, clocks
//! that tick. A host that is not described is perfect and costs nothing.
//!
//! | file | mechanism |
//! |---|---|
//! | `config.rs` | what a scenario says of a host |
//! | `gate.rs` | the processor is taken away (virtual machines) |
//! | `cpu.rs` | n processes on k cores, cost of a packet |
//! | `nic.rs` | interrupt coalescing on the way in, batches on the way out |
//! | `gro.rs` | packets merged on the way in (GRO) |
//! | `device.rs` | a queue and a line of its own, on the way out |
//! | `fq.rs` | that queue paces and is fair |
//! | `departures.rs` | the noise that came of it |
//!
//! What a paced sender does about its lateness is [`ackclock_core::HostPacing`]. Several flows, senders and receivers, can
//! live on one host: then they freeze together and share its cores and its card.

mod config;
mod cpu;
mod departures;
pub mod device;
mod fq;
mod gate;
mod gro;
mod nic;

use ackclock_core::{HostPacing, Packet, Span, Stream, Time};

pub use config::{HostConfig, HostParams, Preset, Repaid};
pub use cpu::CpuConfig;
pub use departures::Departures;
pub use device::{Device, DeviceConfig, DeviceSums, DisciplineConfig};
pub use gate::{GateConfig, TimesParams, XenParams};
pub use gro::GroConfig;
pub use nic::{Batching, RingSums};

use cpu::Cpu;
use gate::Gate;
pub(crate) use nic::Ring;

/// A direction through the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Packets to the processes.
    In,
    /// Packets to the line.
    Out,
}

/// Whether a process may do something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permit {
    /// Now.
    Now,
    /// At this time at the earliest.
    At(Time),
    /// When the scheduler allows it.
    InTurn,
}

/// Measurements of a host.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostSums {
    /// Time without a processor.
    pub stalled: Span,
    /// Number of times that this happened.
    pub stalls: u64,
    /// Longest of the stalls.
    pub longest_stall: Span,
    /// Time that processes waited for a core, all together.
    pub waited: Span,
    /// Interrupts of a card that coalesces them or merges packets.
    pub interrupts: RingSums,
    /// Batches of departing packets.
    pub batches: RingSums,
    /// Counters of the host's own device.
    pub device: DeviceSums,
}

/// A host at work. Its processes are numbers; the owner of the host queries it before each step of a process.
#[derive(Clone)]
pub struct Host {
    name: String,
    gate: Option<Gate>,
    scheduler: Option<Cpu>,
    cpu: CpuConfig,
    rings: [Option<Ring>; 2],
    /// Device of the host in front of the network.
    pub device: Option<Box<Device>>,
    pacer: HostPacing,
    receives_on: bool,
    emulates_links: bool,
    cuts: bool,
}

impl Host {
    /// Return a host at the start of a run. The gate's random stream is that of `<name>.gate` in a run with
    /// this seed.
    pub fn new(config: &HostConfig, seed: u64) -> Host {
        let free = CpuConfig {
            cores: 0,
            slice: Span::ZERO,
            send: Span::ZERO,
            receive: Span::ZERO,
            busy_wait: false,
        };
        let cpu = config.cpu.unwrap_or(free);
        let stream = || Stream::new(seed, &format!("{}.gate", config.name));
        Host {
            name: config.name.clone(),
            gate: config.gate.clone().map(|gate| Gate::new(gate, stream())),
            scheduler: (cpu.cores > 0).then(|| Cpu::new(cpu.cores, cpu.slice)),
            cpu,
            rings: [Ring::new(config.receive), Ring::new(config.transmit)],
            device: config.device.as_ref().map(|device| Box::new(Device::new(device))),
            pacer: config.pacer,
            receives_on: config.receives_on,
            emulates_links: config.emulates_links,
            cuts: config.cuts,
        }
    }

    /// Name of the host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How much of a paced sender's lateness is made up.
    pub fn pacer(&self) -> HostPacing {
        self.pacer
    }

    /// Costs of packets.
    pub fn cpu(&self) -> &CpuConfig {
        &self.cpu
    }

    /// Whether packets of several segments leave the processes as segments: with a device of its own, they
    /// are cut up behind it.
    pub fn cuts(&self) -> bool {
        self.cuts && self.device.is_none()
    }

    /// Whether packets are received while the gate is closed.
    pub fn receives_on(&self) -> bool {
        self.receives_on
    }

    /// Whether `process`, which has work, may do it.
    pub fn permit(&mut self, now: Time, process: u32) -> Permit {
        if let Some(open) = self.gate.as_mut().and_then(|gate| gate.closed_until(now)) {
            return Permit::At(open);
        }
        let runs = self.scheduler.as_mut().is_none_or(|cpu| cpu.wake(now, process));
        if runs {
            Permit::Now
        } else {
            Permit::InTurn
        }
    }

    /// `process` has no work left, or has ended: returns the process that runs in its place, if any.
    pub fn release(&mut self, now: Time, process: u32) -> Option<u32> {
        self.scheduler.as_mut().and_then(|cpu| cpu.release(now, process))
    }

    /// Time at which [`Host::rotate`] has to be called; `Time::NEVER` if no process waits for a core.
    pub fn slice_end(&self) -> Time {
        self.scheduler.as_ref().map_or(Time::NEVER, Cpu::due)
    }

    /// A slice may be over. Returns a process that now runs instead of another; call it until it returns `None`.
    pub fn rotate(&mut self, now: Time) -> Option<u32> {
        self.scheduler.as_mut().and_then(|cpu| cpu.rotate(now))
    }

    /// End of the pause of the network's links.
    pub fn links_stand_until(&mut self, now: Time) -> Option<Time> {
        match &mut self.gate {
            Some(gate) if self.emulates_links => gate.closed_until(now),
            _ => None,
        }
    }

    /// Whether the network's links can pause.
    pub fn emulates_links(&self) -> bool {
        self.emulates_links && self.gate.is_some()
    }

    /// Whether packets in this direction wait in the card.
    pub fn batches(&self, direction: Direction) -> bool {
        self.rings[direction as usize].is_some()
    }

    /// A packet arrives at the card. Returns the time at which the card wants [`Host::hand_over`], if that is new.
    pub fn push(&mut self, now: Time, direction: Direction, packet: Packet) -> Option<Time> {
        self.ring(direction).push(now, packet)
    }

    /// Return the number of packets that the card hands over at `now`, and the time of its next hand-over, as
    /// far as known.
    pub fn hand_over(&mut self, now: Time, direction: Direction) -> (u32, Option<Time>) {
        self.rings[direction as usize].as_mut().map_or((0, None), |ring| ring.begin(now))
    }

    /// Take the next of these packets.
    pub fn take(&mut self, direction: Direction) -> Packet {
        self.ring(direction).take()
    }

    /// Measurements up to `now`.
    pub fn sums(&mut self, now: Time) -> HostSums {
        let (stalled, stalls, longest_stall) =
            self.gate.as_mut().map_or((Span::ZERO, 0, Span::ZERO), |gate| gate.stalled(now));
        let [interrupts, batches] =
            [0, 1].map(|i| self.rings[i].as_ref().map_or(RingSums::default(), Ring::sums));
        let waited = self.scheduler.as_ref().map_or(Span::ZERO, |cpu| cpu.waited(now));
        let device = self.device.as_ref().map_or(DeviceSums::default(), |device| device.sums());
        HostSums { stalled, stalls, longest_stall, waited, interrupts, batches, device }
    }

    fn ring(&mut self, direction: Direction) -> &mut Ring {
        self.rings[direction as usize].as_mut().expect("invariant: asked only where packets wait")
    }
}
