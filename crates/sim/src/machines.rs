//! From the scenario's hosts to machines, and which flow's ends live on which.

use std::collections::BTreeMap;
use std::rc::Rc;

use ackclock_net::host::HostParams;
use ackclock_net::HostConfig;

use crate::error::Error;
use crate::flow::Flow;
use crate::spec::FlowGroup;
use crate::world::MAX_HOSTS;

/// The machines of a run, made as flows come to live on them.
pub struct Machines<'a> {
    specs: &'a [HostParams],
    /// Machines, in order of their numbers.
    pub made: Vec<HostConfig>,
    /// By flow: machines of the sending and of the receiving end; empty if there are no hosts.
    pub of: Vec<[Option<u32>; 2]>,
    numbers: BTreeMap<String, u32>,
}

impl<'a> Machines<'a> {
    /// No machine yet, or what is wrong with the hosts.
    pub fn new(specs: &'a [HostParams]) -> Result<Machines<'a>, Error> {
        for (i, spec) in specs.iter().enumerate() {
            if specs[..i].iter().any(|other| other.name == spec.name) {
                let found = format!("{:?} twice", spec.name);
                return Err(Error::value("hosts", found, "a name of its own for each host"));
            }
            spec.machine(spec.name.clone())
                .map_err(|refusal| Error::refused(format_args!("hosts.{i}"), refusal))?;
        }
        let emulators: Vec<&HostParams> = specs.iter().filter(|spec| spec.emulates_links).collect();
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
                Error::value(format_args!("flows.{index}.{key}"), format_args!("{name:?}"), names.join(", "))
            })?;
            let machine = if spec.shared { name.clone() } else { format!("{name}.{flow}") };
            let next = self.made.len() as u32;
            let number = *self.numbers.entry(machine.clone()).or_insert(next);
            if number == next {
                self.made.push(spec.machine(machine).expect("invariant: checked above"));
            }
            ends[end] = Some(number);
        }
        if self.made.len() > MAX_HOSTS {
            return Err(Error::value("hosts", self.made.len(), format_args!("{MAX_HOSTS} machines")));
        }
        self.of.push(ends);
        Ok(())
    }

    /// By flow, numbers of the hosts of its sending and its receiving end: machines, and where none is described, one for the
    /// ends of a group on either side.
    pub fn addresses(&self, flows: &[Flow]) -> Rc<[[u32; 2]]> {
        let of = |flow: &Flow| {
            let described = self.of.get(flow.id as usize).copied().unwrap_or_default();
            let groups = self.made.len() as u32 + 2 * flow.group;
            [described[0].unwrap_or(groups), described[1].unwrap_or(groups + 1)]
        };
        flows.iter().map(of).collect()
    }
}
