//! Machines for the scenario's hosts, and their assignment to the ends of flows.

use std::collections::BTreeMap;
use std::rc::Rc;

use ackclock_net::host::HostParams;
use ackclock_net::HostConfig;

use crate::error::Error;
use crate::scenario::spec::FlowGroup;
use crate::workload::flow::Flow;
use crate::world::MAX_HOSTS;

/// Machines of a run. Each is created when a flow first uses it.
pub struct Machines<'a> {
    specs: &'a [HostParams],
    /// Machines, by number.
    pub made: Vec<HostConfig>,
    /// Machines of each flow's sending and receiving end; empty if no hosts are described.
    pub of: Vec<[Option<u32>; 2]>,
    numbers: BTreeMap<String, u32>,
}

impl<'a> Machines<'a> {
    /// Return an empty set of machines for these host descriptions.
    pub fn new(specs: &'a [HostParams]) -> Machines<'a> {
        Machines { specs, made: Vec::new(), of: Vec::new(), numbers: BTreeMap::new() }
    }

    /// Assign machines to the ends of the next flow, a member of `group`.
    pub fn add(&mut self, group: &FlowGroup) -> Result<(), Error> {
        if self.specs.is_empty() && group.host.is_none() && group.peer_host.is_none() {
            return Ok(());
        }
        let flow = self.of.len();
        let mut ends = [None; 2];
        for (end, name) in [&group.host, &group.peer_host].into_iter().enumerate() {
            let Some(name) = name else { continue };
            let spec = self.specs.iter().find(|spec| spec.name == *name);
            let spec = spec.expect("invariant: judged with the scenario");
            let machine = if spec.shared { name.clone() } else { format!("{name}.{flow}") };
            let next = self.made.len() as u32;
            let number = *self.numbers.entry(machine.clone()).or_insert(next);
            if number == next {
                self.made.push(spec.machine(machine));
            }
            ends[end] = Some(number);
        }
        if self.made.len() > MAX_HOSTS {
            return Err(Error::value("hosts", self.made.len(), format_args!("{MAX_HOSTS} machines")));
        }
        self.of.push(ends);
        Ok(())
    }

    /// Host numbers of each flow's sending and receiving ends, for queues that distinguish hosts. If no hosts are
    /// described, all senders of a group share one host, and so do all receivers.
    pub fn addresses(&self, flows: &[Flow]) -> Rc<[[u32; 2]]> {
        let of = |flow: &Flow| {
            let described = self.of.get(flow.id as usize).copied().unwrap_or_default();
            let groups = self.made.len() as u32 + 2 * flow.group;
            [described[0].unwrap_or(groups), described[1].unwrap_or(groups + 1)]
        };
        flows.iter().map(of).collect()
    }
}
