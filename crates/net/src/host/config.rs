//! Host configuration: as described in a scenario, and as used by the host.

use ackclock_core::schema::{Rules, Takes, COUNT, DURATION, DURATION_OR_ZERO, FLAG, RATE};
use ackclock_core::{choice, table, CatchUp, Distribution, HostPacing, Rate, Span};

use super::cpu::CpuConfig;
use super::device::{DeviceConfig, DisciplineConfig};
use super::gate::{GateConfig, TimesParams, SLICE};
use super::gro::GroConfig;
use super::nic::Batching;

table! {
    /// A host to which groups of flows refer by name. A host that is not described is perfect.
    ///
    /// All senders and receivers that name the same host stall together and share its cores and its NIC.
    pub struct HostParams "host" {
        /// Name by which groups of flows refer to the host.
        name: String = Takes::Text;
        /// One machine for all flows that name the host; if false, one machine per flow.
        shared: bool = FLAG, true;
        /// Sets several of these keys at once. Keys that you also give take precedence.
        preset: Option<Preset> = Preset::TAKES;
        /// Periods during which the host has no processor: it receives and sends nothing, and no timer fires. Default:
        /// none.
        gate: Option<GateConfig> = Takes::OneOf(GateConfig::FAMILY);
        /// The gate stops only sending and timers, as when the sending thread is delayed but the receiving thread is
        /// not.
        receives_on: bool = FLAG, false;
        /// This machine also emulates the network. While the gate is closed, the links transmit nothing; when it opens,
        /// overdue packets are sent at once.
        emulates_links: bool = FLAG, false;
        /// Number of cores. If there are more processes, they take turns. Default: as many cores as needed.
        cores: Option<u32> = Takes::Whole(1, 1024);
        /// Maximum time for which a process runs while others wait for its core.
        slice: Span = DURATION, Span::from_ms(3);
        /// A sender of datagrams never yields its core voluntarily while its flow is open (busy waiting). Default: the
        /// preset's value, or false.
        busy_wait: Option<bool> = FLAG;
        /// CPU time of a process for each packet it sends.
        send_cost: Span = DURATION_OR_ZERO, Span::ZERO;
        /// CPU time of a process for each packet it receives.
        receive_cost: Span = DURATION_OR_ZERO, Span::ZERO;
        /// Minimum time between two interrupts of the NIC; packets wait for the next one. Default: every packet causes
        /// an interrupt.
        receive_interval: Option<Span> = DURATION;
        /// Maximum number of interrupts per second (ITR), as another way to give `receive_interval`.
        interrupt_rate: Option<u32> = Takes::Whole(1, 10_000_000);
        /// Generic receive offload: consecutive segments of one interrupt reach TCP as one packet, and TCP acknowledges
        /// them once. Default: the preset's value, or false.
        gro: Option<bool> = FLAG;
        /// With `gro`: time after which the kernel polls the NIC again without an interrupt; until then GRO may hold
        /// packets (Linux `gro_flush_timeout`).
        gro_flush_timeout: Span = DURATION_OR_ZERO, Span::ZERO;
        /// With `gro_flush_timeout`: number of consecutive empty polls after which the NIC may interrupt again (Linux
        /// `napi_defer_hard_irqs`).
        napi_defer_hard_irqs: u32 = Takes::Whole(0, 1_000_000), 0;
        /// TCP segmentation offload: the NIC splits the packets of `stack.tso` into single segments, as on a real wire.
        /// Default: the preset's value, or false.
        cuts_packets: Option<bool> = FLAG;
        /// Rate of the host's own network device, in front of the network. Default: infinite; without `queue`, the host
        /// has no device.
        line_rate: Option<Rate> = RATE;
        /// Queueing discipline of this device. TCP limits the data that it queues there (TCP small queues). Default
        /// with a device: first in, first out, up to 1000 packets.
        queue: Option<DisciplineConfig> = DisciplineConfig::TAKES;
        /// Minimum time between two batches of outgoing packets; the packets of a batch are sent back to back. Default:
        /// each packet is sent at once.
        transmit_interval: Option<Span> = DURATION;
        /// Number of packets that the host collects before it sends them together.
        batch: u32 = COUNT, 1;
        /// Maximum time for which the oldest packet waits for the batch to fill.
        batch_flush: Span = DURATION, Span::from_ms(1);
        /// Period of the clock that wakes paced senders. Default: senders wake exactly on time.
        tick: Option<Span> = DURATION;
        /// Part of a paced sender's delay beyond one tick that it makes up for with packets sent back to back: none, at
        /// most `burst` packets, or all.
        catch_up: Repaid = Repaid::TAKES, Repaid::None;
        /// With `catch_up = "burst"`: maximum number of packets sent back to back.
        burst: u32 = COUNT, BURST;
    }
    rules HostParams::judge
}

/// Predefined kinds of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// A perfect host.
    Clean,
    /// Half of a processor, in turns of one slice: two busy machines share the processor.
    XenShared,
    /// Occasional interruptions by other work: 5 ms after 100 ms on average.
    Light,
    /// A tenth of a processor, the average share of the smallest rented machines.
    Micro,
    /// One core for all processes: senders that busy-wait share it with every other process of the host.
    SingleCore,
    /// A modern server on a real wire: its NIC interrupts at most every 50 us, merges received segments (`gro`) and
    /// splits sent packets (`cuts_packets`).
    Modern,
}

choice! {
    Preset: Clean "clean", XenShared "xen-shared", Light "light", Micro "micro", SingleCore "single-core", Modern "modern"
}

/// Default maximum number of packets sent to make up for lateness.
const BURST: u32 = 10;

/// Minimum time between two interrupts of a modern NIC.
const MODERN_INTERVAL: Span = Span::from_us(50);

impl Preset {
    fn gate(self) -> Option<TimesParams> {
        let constant = |value| Distribution::Constant { value };
        let (on, off) = match self {
            Preset::XenShared => (constant(SLICE), constant(SLICE)),
            Preset::Light => (Distribution::Exponential { mean: 0.1 }, constant(0.005)),
            Preset::Micro => (constant(SLICE), constant(0.27)),
            Preset::Clean | Preset::SingleCore | Preset::Modern => return None,
        };
        Some(TimesParams { on, off })
    }
}

/// How much lateness a paced sender makes up for; see [`CatchUp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Repaid {
    None,
    Burst,
    Full,
}

choice! { Repaid: None "none", Burst "burst", Full "full" }

/// Configuration of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// Name, unique in the run: random streams are derived from it.
    pub name: String,
    /// When the host loses its processor; `None` = never.
    pub gate: Option<TimesParams>,
    /// Whether the gate stops only sending and timers, so that incoming packets are still received.
    pub receives_on: bool,
    /// Whether the network's links pause while the gate is closed, because this machine emulates them.
    pub emulates_links: bool,
    /// Processor; `None` = as many cores as needed, and no cost per packet.
    pub cpu: Option<CpuConfig>,
    /// Batching from the NIC to the processes.
    pub receive: Batching,
    /// Batching from the processes to the line.
    pub transmit: Batching,
    /// Whether the NIC splits multi-segment packets.
    pub cuts: bool,
    /// Device of the host in front of the network; `None` = packets never wait there.
    pub device: Option<DeviceConfig>,
    /// Extent to which a paced sender catches up after being late.
    pub pacer: HostPacing,
}

impl HostParams {
    /// Reject keys that contradict each other or have no effect.
    fn judge(&self, rules: &mut Rules) {
        if let (Some(_), Some(rate)) = (self.receive_interval, self.interrupt_rate) {
            rules.refuse_as(
                "interrupt_rate",
                format_args!("{rate} beside receive_interval"),
                "one of the two",
            );
        }
        if self.emulates_links && !self.shared {
            rules.refuse_as("shared", "false with emulates_links = true", true);
        }
        if self.emulates_links && self.gate().is_none() {
            rules.refuse_as("emulates_links", "true without a gate", "a gate, or a preset that has one");
        }
        if self.catch_up != Repaid::Burst && rules.given("burst").unwrap_or(self.burst != BURST) {
            let found = format!("{} with catch_up = {}", self.burst, rules.shown("catch_up"));
            rules.refuse_as("burst", found, "catch_up = \"burst\"");
        }
        if !self.merges() && self.gro_flush_timeout > Span::ZERO {
            let found = format!("{} without gro", rules.shown("gro_flush_timeout"));
            rules.refuse_as("gro_flush_timeout", found, "a host with gro");
        }
        if self.napi_defer_hard_irqs > 0 && self.gro_flush_timeout == Span::ZERO {
            rules.refuse("napi_defer_hard_irqs", "0 without gro_flush_timeout");
        }
        if (self.line_rate.is_some() || self.queue.is_some())
            && (self.batch > 1 || self.transmit_interval.is_some())
        {
            let key = if self.batch > 1 { "batch" } else { "transmit_interval" };
            rules.refuse_as(key, "packets that leave together", "none beside line_rate and queue");
        }
    }

    fn gate(&self) -> Option<TimesParams> {
        self.gate.as_ref().map(GateConfig::times).or_else(|| self.preset.and_then(Preset::gate))
    }

    /// Whether the host schedules its processes, so that packets may wait for them. Otherwise an application runs as
    /// soon as the kernel has processed the packets.
    pub fn runs_processes(&self) -> bool {
        self.gate().is_some() || self.cpu().is_some() || self.interrupts() > Span::ZERO || self.merges()
    }

    /// Whether the host's NIC splits multi-segment packets.
    pub fn cuts(&self) -> bool {
        self.cuts_packets.unwrap_or(self.preset == Some(Preset::Modern))
    }

    fn merges(&self) -> bool {
        self.gro.unwrap_or(self.preset == Some(Preset::Modern))
    }

    /// Return the configuration of a host of this kind.
    pub fn machine(&self, name: String) -> HostConfig {
        let cuts = self.cuts();
        let device = (self.line_rate.is_some() || self.queue.is_some()).then(|| DeviceConfig {
            queue: self.queue.clone().unwrap_or(DisciplineConfig::USUAL),
            rate: self.line_rate.unwrap_or(Rate::INFINITE),
            cuts,
        });
        HostConfig {
            name: format!("host.{name}"),
            gate: self.gate(),
            receives_on: self.receives_on,
            emulates_links: self.emulates_links,
            cpu: self.cpu(),
            receive: Batching {
                interval: self.interrupts(),
                gro: self.merges().then_some(GroConfig {
                    flush_timeout: self.gro_flush_timeout,
                    defer_hard_irqs: self.napi_defer_hard_irqs,
                }),
                ..Batching::NONE
            },
            transmit: Batching {
                interval: self.transmit_interval.unwrap_or(Span::ZERO),
                packets: self.batch,
                flush: if self.batch > 1 { self.batch_flush } else { Span::ZERO },
                gro: None,
            },
            cuts,
            device,
            pacer: HostPacing {
                tick: self.tick.unwrap_or(Span::ZERO),
                catch_up: match self.catch_up {
                    Repaid::None => CatchUp::None,
                    Repaid::Burst => CatchUp::Burst(self.burst),
                    Repaid::Full => CatchUp::Full,
                },
            },
        }
    }

    fn cpu(&self) -> Option<CpuConfig> {
        let single = self.preset == Some(Preset::SingleCore);
        let cores = self.cores.or(single.then_some(1));
        let costs = self.send_cost > Span::ZERO || self.receive_cost > Span::ZERO;
        (cores.is_some() || costs).then(|| CpuConfig {
            cores: cores.unwrap_or(0),
            slice: self.slice,
            send: self.send_cost,
            receive: self.receive_cost,
            busy_wait: self.busy_wait.unwrap_or(single),
        })
    }

    /// Minimum time between two interrupts; zero = no minimum.
    fn interrupts(&self) -> Span {
        let of = |rate: u32| Span((libm::rint(1e9 / rate as f64) as u64).max(1));
        let modern = (self.preset == Some(Preset::Modern)).then_some(MODERN_INTERVAL);
        self.interrupt_rate.map(of).or(self.receive_interval).or(modern).unwrap_or(Span::ZERO)
    }
}
