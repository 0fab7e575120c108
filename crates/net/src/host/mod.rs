//! Imperfect hosts: a processor that is taken away or too slow, a NIC that coalesces interrupts, clocks with coarse
//! ticks. A host that is not described is perfect and costs nothing.
//!
//! | file | mechanism |
//! |---|---|
//! | `config.rs` | configuration of a host in a scenario |
//! | `gate.rs` | the processor is taken away (virtual machines) |
//! | `cpu.rs` | n processes on k cores, CPU time per packet |
//! | `nic.rs` | interrupt coalescing for received packets, batching of sent packets |
//! | `gro.rs` | merging of received packets (GRO) |
//! | `device.rs` | the host's own queue and line for sent packets |
//! | `fq.rs` | fair, pacing discipline for that queue |
//! | `departures.rs` | resulting noise in the departures |
//!
//! [`ackclock_core::HostPacing`] describes how a paced sender makes up for lateness. Several senders and receivers
//! can run on one host: they then stall together and share its cores and its NIC.

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

/// Direction of packets through the NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the NIC to the processes.
    In,
    /// From the processes to the line.
    Out,
}

/// Time at which a process may do its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permit {
    /// At once.
    Now,
    /// At this time or later.
    At(Time),
    /// When the scheduler runs the process.
    InTurn,
}

/// Host measurements.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostSums {
    /// Total time without the processor.
    pub stalled: Span,
    /// Number of stalls.
    pub stalls: u64,
    /// Length of the longest stall.
    pub longest_stall: Span,
    /// Total time that processes waited for a core.
    pub waited: Span,
    /// Interrupts of a NIC that coalesces interrupts or merges packets.
    pub interrupts: RingSums,
    /// Batches of departing packets.
    pub batches: RingSums,
    /// Device counters.
    pub device: DeviceSums,
}

/// State of a host. Processes are identified by number; the owner of the host must obtain a permit before each step
/// of a process.
#[derive(Clone)]
pub struct Host {
    name: String,
    gate: Option<Gate>,
    scheduler: Option<Cpu>,
    cpu: CpuConfig,
    rings: [Option<Ring>; 2],
    /// Device of the host in front of the network; `None` = packets never wait there.
    pub device: Option<Box<Device>>,
    pacer: HostPacing,
    receives_on: bool,
    emulates_links: bool,
    cuts: bool,
}

impl Host {
    /// Return a host at the start of a run. The gate's random stream is named `<name>.gate` and derived from `seed`.
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

    /// Host name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How much lateness a paced sender makes up for.
    pub fn pacer(&self) -> HostPacing {
        self.pacer
    }

    /// Processor settings, including the CPU time per packet.
    pub fn cpu(&self) -> &CpuConfig {
        &self.cpu
    }

    /// Whether multi-segment packets are split before they leave the host's processes. A device of the host splits
    /// them itself.
    pub fn cuts(&self) -> bool {
        self.cuts && self.device.is_none()
    }

    /// Whether packets are received while the gate is closed.
    pub fn receives_on(&self) -> bool {
        self.receives_on
    }

    /// Whether `process`, which has work, may do it now.
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

    /// Record that `process` has no work left or has ended. Returns the process that replaces it on its core, if any.
    pub fn release(&mut self, now: Time, process: u32) -> Option<u32> {
        self.scheduler.as_mut().and_then(|cpu| cpu.release(now, process))
    }

    /// Time at which [`Host::rotate`] must be called; `Time::NEVER` if no process waits for a core.
    pub fn slice_end(&self) -> Time {
        self.scheduler.as_ref().map_or(Time::NEVER, Cpu::due)
    }

    /// End slices that have expired by `now`. Returns a process that starts to run; call again until `None`.
    pub fn rotate(&mut self, now: Time) -> Option<u32> {
        self.scheduler.as_mut().and_then(|cpu| cpu.rotate(now))
    }

    /// Time at which the network's links resume; `None` if they are not paused.
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

    /// Whether packets in this direction wait in the NIC.
    pub fn batches(&self, direction: Direction) -> bool {
        self.rings[direction as usize].is_some()
    }

    /// Hand a packet to the NIC. Returns the time at which [`Host::hand_over`] must be called, if it has changed.
    pub fn push(&mut self, now: Time, direction: Direction, packet: Packet) -> Option<Time> {
        self.ring(direction).push(now, packet)
    }

    /// Start a hand-over at `now`. Returns the number of packets that the NIC hands over, and the time of the next
    /// hand-over, if known.
    pub fn hand_over(&mut self, now: Time, direction: Direction) -> (u32, Option<Time>) {
        self.rings[direction as usize].as_mut().map_or((0, None), |ring| ring.begin(now))
    }

    /// Take the next packet of the hand-over.
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
