//! Construction of a world and its applications from a scenario and a seed.

use std::rc::Rc;

use ackclock_core::{Span, Time};
use ackclock_net::QueueConfig;
use ackclock_tcp::DestinationMetrics;

use crate::error::Error;
use crate::report::observe::Observer;
use crate::report::output::Ended;
use crate::report::performance::Meter;
use crate::runs::app::App;
use crate::scenario::bounds::TAKES_TIME;
use crate::scenario::hosts::{self, Customs};
use crate::scenario::machines::Machines;
use crate::scenario::spec::{self, CapturePoint, FlowGroup, MetricsCache, Scenario, TraceLevel};
use crate::scenario::starts::Starts;
use crate::scenario::topology::Builder;
use crate::transport::{Freight, TransportConfig};
use crate::workload::flow::{ClientRow, Flow, Journal};
use crate::workload::{Driver, Member, Offered, Site};
use crate::world::layout::Layout;
use crate::world::shortcuts::Shortcuts;
use crate::world::{Sinks, World, MAX_LINKS, MAX_SLOTS, RECEIVER, SENDER};

/// A run that is ready to start.
#[derive(Clone)]
pub struct Built {
    /// Network and connections.
    pub world: World,
    /// Flows and their workloads.
    pub app: App,
    /// Population clients, with the values drawn for them.
    pub clients: Vec<ClientRow>,
}

impl Built {
    /// Measure the performance of each flow after the warm-up. Called before the run begins.
    pub fn measure(&mut self, scenario: &Scenario) {
        let from = Time(scenario.record.warm_up_ns);
        self.world.measure(from);
        let meter = Meter::new(Span(scenario.duration_ns), from, self.app.flows.len());
        self.app.observer.meter = Some(meter);
    }
}

impl Built {
    /// Return a copy in the same state, or the reason why it cannot be made.
    pub(crate) fn copied(&self) -> Result<Built, String> {
        let shares = |driver: &Driver| matches!(driver, Driver::Transactions(_));
        if self.app.drivers.iter().any(shares) {
            return Err("found transactions, whose flows share counts".to_string());
        }
        match self.world.cannot_copy() {
            Some(why) => Err(why),
            None => Ok(self.clone()),
        }
    }

    /// End the run and return the data for its tables.
    pub(crate) fn end(self) -> Ended {
        let Built { world, app: App { flows, journal, observer, .. }, clients } = self;
        Ended { world, flows, journal, observer, clients }
    }
}

/// Build the run, or report an error in the scenario.
pub fn build(
    scenario: &Scenario,
    seed: u64,
    customs: &Customs,
    shortcuts: Shortcuts,
) -> Result<Built, Error> {
    if let Some(refusal) = spec::check(scenario, None).into_iter().next() {
        return Err(Error::refused("", refusal));
    }
    let end = Time(scenario.duration_ns);
    let mut layout = Layout::default();
    let mut builder = Builder::new(&scenario.network);
    let mut clients = Vec::new();
    let mut machines = Machines::new(&scenario.hosts);
    let mut destinations = Vec::new();
    let members: u64 = scenario.flows.iter().map(FlowGroup::members).sum();
    let room = members.min(MAX_SLOTS as u64) as usize;
    let (mut flows, mut drivers) = (Vec::with_capacity(room), Vec::with_capacity(room));
    layout.routes.reserve_exact(room);
    let mut journal = Journal::default();
    journal.transactions.level = scenario.record.transactions;
    journal.transactions.from = Time(scenario.record.warm_up_ns);
    let mut offered = Offered::default();
    let freight = Freight::default();

    for (g, group) in scenario.flows.iter().enumerate() {
        let mut config = hosts::transport(group, g, &scenario.hosts, customs, &freight)?;
        shortcuts.apply(&mut config);
        let destination = group.stack.metrics_cache.as_ref().map(|cache| remember(&mut destinations, cache));
        let stop = end.min(group.stop_ns.map_or(end, Time));
        let reader = group.reader.clone().map(Rc::new);
        let members = group.members();
        let workload = group.workload.params();
        let mut site = Site {
            layout: &mut layout,
            clients: &mut clients,
            tallies: &mut journal.transactions.tallies,
            offered: &mut offered,
        };
        let make = workload.lay(&scenario.place(g), &config, &mut site)?;
        let mut starts = Starts::new(group, g, seed);
        for _ in 0..members {
            let id = flows.len() as u32;
            let start = starts.following();
            let mut flow = Flow::new(id, g as u32, config.clone(), start, stop.max(start));
            flow.destination = destination;
            flow.reader.clone_from(&reader);
            flow.traced = match scenario.record.trace {
                TraceLevel::None => false,
                TraceLevel::Flow => id == 0,
                TraceLevel::All => true,
            };
            let watched = match scenario.record.controller {
                TraceLevel::None => false,
                TraceLevel::Flow => id == 0,
                TraceLevel::All => true,
            };
            flow.limits = scenario.record.limits_interval_ns > 0;
            flow.controller_trace = watched.then_some(Span(scenario.record.controller_interval_ns));
            flows.push(flow);
            machines.add(group)?;
            if !workload.has_own_path() {
                builder.route(site.layout, group.path.as_deref());
            }
            drivers.push(make(&Member { id, seed, start }, &mut site));
        }
    }
    offered.check()?;
    if layout.links().len() > MAX_LINKS {
        return Err(Error::value("network", format_args!("{} links", layout.links().len()), MAX_LINKS));
    }

    let capture = match scenario.record.capture {
        CapturePoint::None => None,
        CapturePoint::Sender => Some(SENDER as u8),
        CapturePoint::Receiver => Some(RECEIVER as u8),
    };
    let sinks = Sinks { capture, drops: scenario.record.drops };
    check_ways(&layout, &flows)?;
    let shares_by_hosts = layout.kinds().any(|kind| matches!(kind.queue, QueueConfig::Cake(_)));
    let mut world = World::new(layout, scenario.network.framing_bytes, seed, sinks, shortcuts);
    world.carry(&freight);
    world.tell_groups(&flows.iter().map(|flow| flow.group).collect::<Vec<_>>());
    if shares_by_hosts {
        world.tell_hosts(&machines.addresses(&flows));
    }
    world.place(&machines.made, machines.of);
    let observer = Observer::new(&scenario.record, flows.len());
    journal.destinations = destinations;
    let app = App { flows, drivers, journal, observer };
    Ok(Built { world, app, clients })
}

/// Return the index of a destination cache. The first group that names the cache provides its initial content.
fn remember(known: &mut Vec<(String, DestinationMetrics)>, cache: &MetricsCache) -> u32 {
    let at = known.iter().position(|(name, _)| *name == cache.destination).unwrap_or_else(|| {
        let (ssthresh, cwnd) = (cache.ssthresh.unwrap_or(0), cache.cwnd.unwrap_or(0));
        known.push((cache.destination.clone(), DestinationMetrics { ssthresh, cwnd, saved: Time::ZERO }));
        known.len() - 1
    });
    at as u32
}

/// Check that a round trip takes nonzero time wherever an end waits for a response; otherwise simulated time
/// would not advance.
fn check_ways(layout: &Layout, flows: &[Flow]) -> Result<(), Error> {
    let mut last: Option<&[Vec<u32>; 2]> = None;
    for (flow, route) in flows.iter().zip(&layout.routes) {
        if matches!(flow.config, TransportConfig::Udp(_)) || last == Some(route) {
            continue;
        }
        last = Some(route);
        let takes = |link: &u32, bytes| layout.kind(*link).takes_time(bytes);
        if route[0].iter().any(|l| takes(l, FULL_BYTES)) || route[1].iter().any(|l| takes(l, ACK_BYTES)) {
            continue;
        }
        let names = |way: &[u32]| {
            let names: Vec<String> = way.iter().take(4).map(|&link| layout.name(link)).collect();
            names.join(", ")
        };
        let found =
            format!("a way that takes no time (there: {}; back: {})", names(&route[0]), names(&route[1]));
        return Err(Error::value(format_args!("flows.{}", flow.group), found, TAKES_TIME));
    }
    Ok(())
}

/// Full packet and ACK, bytes.
const FULL_BYTES: u32 = 1500;
const ACK_BYTES: u32 = 40;
