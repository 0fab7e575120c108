//! From the scenario's hosts to machines, and which flow's ends live on which.

use std::collections::BTreeMap;

use ackclock_core::{CatchUp, HostPacing, Span};
use ackclock_net::host::{Batching, CpuConfig, GateConfig};
use ackclock_net::HostConfig;

use crate::error::Error;
use crate::spec::{self, FlowGroup};
use crate::world::MAX_HOSTS;

/// The machines of a run, made as flows come to live on them.
pub struct Machines<'a> {
    specs: &'a [spec::Host],
    /// Machines, in order of their numbers.
    pub made: Vec<HostConfig>,
    /// By flow: machines of the sending and of the receiving end; empty if there are no hosts.
    pub of: Vec<[Option<u32>; 2]>,
    numbers: BTreeMap<String, u32>,
}

impl<'a> Machines<'a> {
    /// No machine yet, or what is wrong with the hosts.
    pub fn new(specs: &'a [spec::Host]) -> Result<Machines<'a>, Error> {
        for (i, spec) in specs.iter().enumerate() {
            if specs[..i].iter().any(|other| other.name == spec.name) {
                let found = format!("{:?} twice", spec.name);
                return Err(Error::value("hosts", found, "a name of its own for each host"));
            }
            check(spec)?;
        }
        let emulators: Vec<&spec::Host> = specs.iter().filter(|spec| spec.emulates_links).collect();
        if emulators.len() > 1 || emulators.iter().any(|spec| !spec.shared) {
            let found = format_args!("{} that emulate the links", emulators.len());
            return Err(Error::value("hosts", found, "one such host, and shared"));
        }
        Ok(Machines { specs, made: Vec::new(), of: Vec::new(), numbers: BTreeMap::new() })
    }

    /// The next flow, a member of the `index`-th group, comes to live.
    pub fn add(&mut self, group: &FlowGroup, index: usize) -> Result<(), Error> {
        if self.specs.is_empty() && group.host.is_none() && group.peer_host.is_none() {
            return Ok(());
        }
        let flow = self.of.len();
        let mut ends = [None; 2];
        for (end, name, key) in [(0, &group.host, "host"), (1, &group.peer_host, "peer_host")] {
            let Some(name) = name else { continue };
            let spec = self.specs.iter().find(|spec| spec.name == *name).ok_or_else(|| {
                let names: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
                Error::value(format_args!("flows[{index}].{key}"), format_args!("{name:?}"), names.join(", "))
            })?;
            let machine = if spec.shared { name.clone() } else { format!("{name}.{flow}") };
            let next = self.made.len() as u32;
            let number = *self.numbers.entry(machine.clone()).or_insert(next);
            if number == next {
                self.made.push(machine_of(spec, machine));
            }
            ends[end] = Some(number);
        }
        if self.made.len() > MAX_HOSTS {
            return Err(Error::value("hosts", self.made.len(), format_args!("{MAX_HOSTS} machines")));
        }
        self.of.push(ends);
        Ok(())
    }
}

fn check(spec: &spec::Host) -> Result<(), Error> {
    let place = |key: &str| format!("hosts.{}.{key}", spec.name);
    if let Some(gate) = &spec.gate {
        for (key, times) in [("gate.on", &gate.on_s), ("gate.off", &gate.off_s)] {
            if times.mean() <= 0.0 {
                return Err(Error::value(place(key), format_args!("{times:?}"), "times above zero"));
            }
        }
    }
    for (key, batching) in [("receive", spec.receive), ("transmit", spec.transmit)] {
        if batching.packets == 0 || (batching.packets > 1 && batching.flush_ns == 0) {
            return Err(Error::value(
                place(key),
                batching.packets,
                "packets, and a time after which they go",
            ));
        }
    }
    if spec.emulates_links && spec.gate.is_none() {
        return Err(Error::value(place("emulates_links"), "no gate", "a host with a gate"));
    }
    match spec.cpu {
        Some(cpu) if cpu.cores > 1024 || cpu.slice_ns == 0 => {
            Err(Error::value(place("cpu"), cpu.cores, "up to 1024 cores and a positive slice"))
        }
        _ => Ok(()),
    }
}

fn machine_of(spec: &spec::Host, name: String) -> HostConfig {
    let batching = |b: spec::Batching| Batching {
        interval: Span(b.interval_ns),
        packets: b.packets,
        flush: Span(b.flush_ns),
    };
    HostConfig {
        name: format!("host.{name}"),
        gate: spec.gate.as_ref().map(|gate| GateConfig { on: gate.on_s.clone(), off: gate.off_s.clone() }),
        receives_on: spec.receives_on,
        emulates_links: spec.emulates_links,
        cpu: spec.cpu.map(|cpu| CpuConfig {
            cores: cpu.cores,
            slice: Span(cpu.slice_ns),
            send: Span(cpu.send_ns),
            receive: Span(cpu.receive_ns),
            busy_wait: cpu.busy_wait,
        }),
        receive: batching(spec.receive),
        transmit: batching(spec.transmit),
        pacer: HostPacing {
            tick: Span(spec.tick_ns),
            catch_up: match spec.catch_up {
                None => CatchUp::Full,
                Some(0) => CatchUp::None,
                Some(packets) => CatchUp::Burst(packets),
            },
        },
    }
}
