//! What the flows of a group of transactions share: sizes, limits, the mix of initial windows, and how often clients
//! come, be it given as a rate or as a share of the bottleneck.

use std::cell::Cell;
use std::rc::Rc;

use ackclock_core::rng::threshold;
use ackclock_core::{Distribution, Span};
use ackclock_tcp::Config;

use super::super::arrivals::Process;
use crate::error::Error;
use crate::spec::{self, CloseFirst, FlowGroup, Network};
use crate::tally::Tally;

/// What all flows of a group share.
#[derive(Debug)]
pub struct Plan {
    /// Bytes of a response.
    pub bytes: Distribution,
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Connections that a client opens at once.
    pub batch: u32,
    /// Requests on each connection, if responses are not shared out.
    pub requests: u32,
    /// Responses that the connections of a client share out among them.
    pub objects: Option<u32>,
    /// The connections of a client ask at the same time: the next request waits for all responses.
    pub together: bool,
    /// Seconds between a response and the next request.
    pub think_s: Distribution,
    /// Who closes first.
    pub close: CloseFirst,
    /// What a connection may begin with.
    pub mix: Vec<Start>,
    /// All connections of a client begin with the same.
    pub mix_by_batch: bool,
    /// Most open connections.
    pub max_open: u32,
    /// Connections open now.
    pub open: Cell<u32>,
    /// Connections still to come.
    pub left: Cell<u64>,
    wire: Wire,
}

/// Settings of a connection's hosts, one of a mix.
#[derive(Debug)]
pub struct Start {
    /// Random bits below it choose this one, unless an earlier one was chosen.
    pub threshold: u64,
    /// The settings.
    pub config: Rc<Config>,
    /// Where its transactions are counted.
    pub tally: u32,
}

/// Where a group stands in the scenario.
pub struct Place<'a> {
    /// The group.
    pub group: &'a FlowGroup,
    /// Its position.
    pub index: usize,
    /// The network.
    pub network: &'a Network,
}

impl Place<'_> {
    fn key(&self, field: &str) -> String {
        format!("flows[{}].workload.{field}", self.index)
    }
}

/// What packets take on the links.
#[derive(Clone, Copy, Debug)]
struct Wire {
    /// Payload of a full segment.
    payload: u32,
    /// What a data packet has on top of it.
    headers: u32,
    /// Packets of the data direction other than data: SYN-ACK, ACK of the request, FIN, and ACK of the client's FIN.
    others: u32,
}

impl Wire {
    fn new(config: &Config, framing: u32) -> Wire {
        let stamp = 12 * config.timestamps as u32;
        let syn_options = 8 + if config.timestamps { 12 } else { 4 * config.sack as u32 };
        let headers = 40 + stamp + framing;
        Wire { payload: config.payload(), headers, others: 40 + syn_options + framing + 3 * headers }
    }

    fn data(&self, bytes: f64) -> f64 {
        bytes + libm::ceil(bytes / self.payload as f64) * self.headers as f64
    }

    /// Mean over a distribution of sizes; of continuous ones the last packet is half full in the mean.
    fn mean(&self, bytes: &Distribution) -> f64 {
        let smooth = |mean: f64| mean + (mean / self.payload as f64 + 0.5) * self.headers as f64;
        match bytes {
            &Distribution::Constant { value } => self.data(value),
            Distribution::Choice { values } => {
                values.iter().map(|&v| self.data(v)).sum::<f64>() / values.len() as f64
            }
            _ => smooth(bytes.mean()),
        }
    }
}

impl Plan {
    /// Read the group's plan, add its tallies, and note what it offers.
    pub fn lay(
        spec: &spec::Transactions,
        place: &Place,
        config: &Rc<Config>,
        tallies: &mut Vec<Tally>,
        offered: &mut Offered,
    ) -> Result<(Rc<Plan>, Process), Error> {
        check(spec, place)?;
        let wire = Wire::new(config, place.network.framing_bytes);
        let process = process(spec, place, &wire, offered)?;
        let mut tally = |config: &Rc<Config>, threshold: u64| {
            tallies.push(Tally::new(place.index as u32, config.iw));
            Start { threshold, config: config.clone(), tally: tallies.len() as u32 - 1 }
        };
        let mut mix = Vec::new();
        let mut below = 0.0;
        for &(iw, share) in &spec.initial_window_mix {
            below += share;
            mix.push(tally(&Rc::new(Config { iw, ..Config::clone(config) }), threshold(below)));
        }
        if mix.is_empty() {
            mix.push(tally(config, u64::MAX));
        }
        let plan = Plan {
            bytes: Distribution::from(&spec.bytes),
            request_bytes: spec.request_bytes,
            batch: spec.batch,
            requests: spec.requests,
            objects: spec.objects,
            together: spec.together,
            think_s: Distribution::from(&spec.think_s),
            close: spec.close,
            mix,
            mix_by_batch: spec.mix_by_batch,
            max_open: spec.max_open.unwrap_or(u32::MAX),
            open: Cell::new(0),
            left: Cell::new(spec.count.unwrap_or(u64::MAX)),
            wire,
        };
        Ok((Rc::new(plan), process))
    }

    /// Whether the connections of a client know of each other.
    pub fn knows_client(&self) -> bool {
        self.objects.is_some() || self.together
    }

    /// What the data packets of a response take on the links, each sent once.
    pub fn on_the_wire(&self, bytes: u64) -> u64 {
        bytes + bytes.div_ceil(self.wire.payload as u64) * self.wire.headers as u64
    }
}

/// When clients of one flow of the group come.
fn process(
    spec: &spec::Transactions,
    place: &Place,
    wire: &Wire,
    offered: &mut Offered,
) -> Result<Process, Error> {
    let flows = place.group.count as f64;
    let responses = spec.objects.unwrap_or(spec.batch.saturating_mul(spec.requests)) as f64;
    let connections = spec.batch.min(spec.objects.unwrap_or(u32::MAX)) as f64;
    let data_bits = 8.0 * responses * wire.mean(&Distribution::from(&spec.bytes));
    let bottleneck = place.network.bottleneck_bps(place.group.path.as_deref()).map(|bps| bps as f64);
    let (process, rate) = match &spec.arrivals {
        spec::Arrivals::At { times_ns } => return Ok(Process::At { times: times_ns.clone().into() }),
        &spec::Arrivals::Periodic { interval_ns } => {
            (Process::Periodic { interval: Span(interval_ns) }, flows * 1e9 / interval_ns as f64)
        }
        &spec::Arrivals::Poisson { rate_per_s, load, count_all_packets } => {
            let rate = match (rate_per_s, load, bottleneck) {
                (Some(rate), None, _) => rate,
                (None, Some(load), Some(bps)) => {
                    let others = if count_all_packets { 8.0 * connections * wire.others as f64 } else { 0.0 };
                    load * bps / (data_bits + others)
                }
                (None, Some(load), None) => {
                    let allowed = "a rate of arrivals; the path has no rate to take a share of";
                    return Err(Error::value(place.key("arrivals.load"), load, allowed));
                }
                _ => {
                    let found = if load.is_some() { "both rate and load" } else { "neither rate nor load" };
                    return Err(Error::value(place.key("arrivals"), found, "one of them"));
                }
            };
            if !(rate > 0.0 && rate <= MOST_PER_S) {
                let found = format_args!("{rate} clients per second");
                let allowed = format_args!("more than 0, up to {MOST_PER_S}");
                return Err(Error::value(place.key("arrivals"), found, allowed));
            }
            (Process::Poisson { mean_ns: flows * 1e9 / rate }, rate)
        }
    };
    if let Some(bps) = bottleneck {
        offered.groups.push((place.key("max_open"), rate * data_bits / bps, spec.max_open.is_some()));
    }
    Ok(process)
}

fn check(spec: &spec::Transactions, place: &Place) -> Result<(), Error> {
    let positive = |field: &str, value: u64| match value {
        0 => Err(Error::value(place.key(field), 0, "at least 1")),
        _ => Ok(()),
    };
    positive("request_bytes", spec.request_bytes)?;
    positive("batch", spec.batch as u64)?;
    positive("requests", spec.requests as u64)?;
    positive("objects", spec.objects.unwrap_or(1) as u64)?;
    positive("count", spec.count.unwrap_or(1))?;
    positive("max_open", spec.max_open.unwrap_or(1) as u64)?;
    if let spec::Arrivals::Periodic { interval_ns } = spec.arrivals {
        positive("arrivals.interval_ns", interval_ns)?;
    }
    if let spec::Arrivals::At { times_ns } = &spec.arrivals {
        if !times_ns.is_sorted() {
            return Err(Error::value(place.key("arrivals.times"), "times out of order", "a rising list"));
        }
    }
    for (field, distribution, least) in [("bytes", &spec.bytes, 1.0), ("think", &spec.think_s, 0.0)] {
        let distribution = &Distribution::from(distribution);
        let at_least = match distribution {
            &Distribution::Constant { value } => value,
            Distribution::Choice { values } => values.iter().copied().fold(f64::INFINITY, f64::min),
            _ => least,
        };
        if !distribution.is_drawable() || at_least < least {
            let allowed = format!("finite values of at least {least}");
            return Err(Error::value(place.key(field), format_args!("{distribution:?}"), allowed));
        }
    }
    let mix = &spec.initial_window_mix;
    let sum: f64 = mix.iter().map(|(_, share)| share).sum();
    let fine = mix.iter().all(|(iw, share)| *iw > 0 && *share >= 0.0);
    let whole = fine && (sum - 1.0).abs() < 1e-9;
    if !mix.is_empty() && !whole {
        let found = format_args!("{mix:?}");
        return Err(Error::value(place.key("initial_window_mix"), found, "windows and shares that sum to 1"));
    }
    Ok(())
}

/// What the groups of a run offer to their bottlenecks.
#[derive(Default)]
pub struct Offered {
    /// By group: key of its limit, load, whether it has one.
    groups: Vec<(String, f64, bool)>,
}

impl Offered {
    /// Beyond a load of 1 open connections pile up without end, unless somebody turns clients away.
    pub fn check(&self) -> Result<(), Error> {
        let load: f64 = self.groups.iter().map(|(_, load, _)| load).sum();
        let open_ended = self.groups.iter().find(|(_, _, limited)| !limited);
        match open_ended {
            Some((key, ..)) if load > 1.0 => {
                let found = format!("nothing, at an offered load of {load:.4}");
                Err(Error::value(key, found, "a limit; without one the run diverges above a load of 1"))
            }
            _ => Ok(()),
        }
    }
}

/// Most clients per second.
const MOST_PER_S: f64 = 1e7;
