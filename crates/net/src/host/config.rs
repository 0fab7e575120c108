//! What a host is made of: as a scenario describes it, and as it works.

use ackclock_core::schema::{Refusal, Takes, COUNT, DURATION, DURATION_OR_ZERO, FLAG};
use ackclock_core::{choice, table, CatchUp, Distribution, HostPacing, Span};

use super::cpu::CpuConfig;
use super::gate::{GateConfig, TimesParams, SLICE};
use super::nic::Batching;

table! {
    /// A host that flow groups name; a host that is not described is perfect.
    ///
    /// Flows, senders and receivers alike, that name one host freeze together and share its cores and its card.
    pub struct HostParams "host" {
        /// Name that flow groups use.
        name: String = Takes::Text;
        /// One machine for all that name it; otherwise one for each flow.
        shared: bool = FLAG, true;
        /// Gate and cores at once; keys given beside it take precedence.
        preset: Option<Preset> = Preset::TAKES;
        /// When the processor is taken away: meanwhile nothing is received or sent, and no timer fires; absent: never.
        gate: Option<GateConfig> = Takes::OneOf(GateConfig::FAMILY);
        /// The gate stops sending and timers only, as when the thread that sends is held up and the one that receives is not.
        receives_on: bool = FLAG, false;
        /// The network is emulated in this machine: its links freeze with it, and what is overdue leaves them at once.
        emulates_links: bool = FLAG, false;
        /// Cores; processes beyond that number take turns; absent: as many as needed.
        cores: Option<u32> = Takes::Whole(1, 1024);
        /// Longest time that a process runs while others wait for its core.
        slice: Span = DURATION, Span::from_ms(3);
        /// A sender of datagrams never gives its core away while it is open; absent: false, or as the preset says.
        busy_wait: Option<bool> = FLAG;
        /// Work of a process for each packet it sends.
        send_cost: Span = DURATION_OR_ZERO, Span::ZERO;
        /// Work of a process for each packet it receives.
        receive_cost: Span = DURATION_OR_ZERO, Span::ZERO;
        /// Least time between two interrupts of the card; packets wait for the next one; absent: each interrupts.
        receive_interval: Option<Span> = DURATION;
        /// The same as interrupts per second (ITR).
        interrupt_rate: Option<u32> = Takes::Whole(1, 10_000_000);
        /// Least time between two hand-overs to the line; packets leave back to back; absent: each at once.
        transmit_interval: Option<Span> = DURATION;
        /// Packets that leave together (segmentation offload; reports in batches).
        batch: u32 = COUNT, 1;
        /// How long the oldest waits for that number.
        batch_flush: Span = DURATION, Span::from_ms(1);
        /// Period of the clock that wakes paced senders; absent: exact.
        tick: Option<Span> = DURATION;
        /// What of a paced sender's lateness beyond a tick is made up by packets back to back.
        catch_up: Repaid = Repaid::TAKES, Repaid::None;
        /// With catch_up = "burst": at most this many packets.
        burst: u32 = COUNT, 10;
    }
}

/// Gates and cores that go by a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Perfect.
    Clean,
    /// Half the processor in turns of a slice: two busy machines on one processor.
    XenShared,
    /// Now and then something else runs: 5 ms away after 100 ms on average.
    Light,
    /// A tenth of a processor, as the smallest rented machines have on average.
    Micro,
    /// One core for all: senders that wait busily share it with whoever else names this host.
    SingleCore,
}

choice! { Preset: Clean "clean", XenShared "xen-shared", Light "light", Micro "micro", SingleCore "single-core" }

impl Preset {
    fn gate(self) -> Option<TimesParams> {
        let constant = |value| Distribution::Constant { value };
        let (on, off) = match self {
            Preset::XenShared => (constant(SLICE), constant(SLICE)),
            Preset::Light => (Distribution::Exponential { mean: 0.1 }, constant(0.005)),
            Preset::Micro => (constant(SLICE), constant(0.27)),
            Preset::Clean | Preset::SingleCore => return None,
        };
        Some(TimesParams { on, off })
    }
}

/// How much of a paced sender's lateness is made up; see [`CatchUp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Repaid {
    None,
    Burst,
    Full,
}

choice! { Repaid: None "none", Burst "burst", Full "full" }

/// A host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// Name, unique in the run: random streams are derived from it.
    pub name: String,
    /// When the processor is taken away.
    pub gate: Option<TimesParams>,
    /// The gate stops sending and timers only: packets that come are taken in by somebody who goes on running.
    pub receives_on: bool,
    /// While it is, the links of the network stand still as well: they are emulated in the same machine.
    pub emulates_links: bool,
    /// Processor; `None` = as many cores as needed, and packets cost nothing.
    pub cpu: Option<CpuConfig>,
    /// From the card to the processes.
    pub receive: Batching,
    /// From the processes to the line.
    pub transmit: Batching,
    /// What becomes of the lateness of paced senders.
    pub pacer: HostPacing,
}

impl HostParams {
    /// A machine of this kind, or what does not fit.
    pub fn machine(&self, name: String) -> Result<HostConfig, Refusal> {
        let gate = match &self.gate {
            Some(gate) => Some(gate.times().map_err(|refusal| refusal.within("gate"))?),
            None => self.preset.and_then(Preset::gate),
        };
        if self.emulates_links && gate.is_none() {
            return Err(Refusal::new("true without a gate", "a host with a gate").within("emulates_links"));
        }
        Ok(HostConfig {
            name: format!("host.{name}"),
            gate,
            receives_on: self.receives_on,
            emulates_links: self.emulates_links,
            cpu: self.cpu(),
            receive: Batching { interval: self.interrupts(), ..Batching::NONE },
            transmit: Batching {
                interval: self.transmit_interval.unwrap_or(Span::ZERO),
                packets: self.batch,
                flush: if self.batch > 1 { self.batch_flush } else { Span::ZERO },
            },
            pacer: HostPacing {
                tick: self.tick.unwrap_or(Span::ZERO),
                catch_up: match self.catch_up {
                    Repaid::None => CatchUp::None,
                    Repaid::Burst => CatchUp::Burst(self.burst),
                    Repaid::Full => CatchUp::Full,
                },
            },
        })
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

    /// Least time between two interrupts.
    fn interrupts(&self) -> Span {
        let of = |rate: u32| Span((libm::rint(1e9 / rate as f64) as u64).max(1));
        self.interrupt_rate.map(of).or(self.receive_interval).unwrap_or(Span::ZERO)
    }
}
