//! State shared by the flows of a group of transactions: sizes, limits, the mix of initial windows, and the arrival
//! rate, specified directly or as a fraction of the bottleneck rate.

use std::cell::Cell;
use std::mem::size_of;
use std::rc::Rc;

use ackclock_core::rng::{threshold, Family};
use ackclock_core::schema::{words::significant, Rules, Takes, Unit, COUNT, FLAG, SIZE};
use ackclock_core::{choice, table, Distribution, Span, Stream};
use ackclock_tcp::{Config, Connection};

use super::super::arrivals::{Arrivals, ArrivalsConfig, LoadCounts, PoissonParams, Process, MOST_PER_S};
use super::super::{Asks, Driver, Make, Params, Place, Site};
use super::Transactions;
use crate::error::Error;
use crate::tables::tally::{Tally, TransactionLevel, TransactionRow};
use crate::transport::TransportConfig;
use crate::workload::needs::{CONNECTION_BYTES, COPIES, FASTEST_BPS};

table! {
    /// Clients arrive at the receiving end. Each opens a connection, requests responses, and closes the connection.
    ///
    /// Each flow of the group is a pair of client and server. `arrivals`, `count` and `max_open` apply to the whole
    /// group. The values that the k-th transaction of a flow draws depend only on the seed, so compared scenarios have
    /// the same clients.
    pub struct TransactionsParams "transactions" {
        /// Size of a response: a size, or a distribution of sizes.
        bytes: Distribution = Takes::DrawnOr(Unit::Size, 1);
        /// Size of a request.
        request: u64 = SIZE, 200;
        /// Arrival process of the clients.
        arrivals: ArrivalsConfig = Takes::OneOf(ArrivalsConfig::FAMILY);
        /// Number of connections that a client opens at once.
        batch: u32 = COUNT, 1;
        /// Number of requests on each connection, one after another (keep-alive).
        requests: u32 = COUNT, 1;
        /// Time from the end of a response to the next request: a duration, or a distribution of durations.
        think: Distribution = Takes::DrawnOr(Unit::Duration, 0), Distribution::Constant { value: 0.0 };
        /// A Web page: number of responses that the client fetches over all its connections; each connection that
        /// becomes free fetches the next one. Replaces `requests`.
        objects: Option<u32> = COUNT;
        /// Incast: a client sends its requests on all its connections at the same time, and the next ones when the last
        /// connection has its response.
        together: bool = FLAG, false;
        /// Total number of connections; with one request each, this is the number of transactions. Default: clients
        /// arrive until the flows stop.
        count: Option<u64> = Takes::Whole(1, 1_000_000_000);
        /// Maximum number of open connections. A client that arrives while this many are open is refused. Required for
        /// a load above 1.
        max_open: Option<u32> = COUNT;
        /// Initial windows from which connections draw, with probabilities. Default: all connections use
        /// `stack.initial_window`.
        initial_window_mix: Vec<InitialWindow> = Takes::List(&Takes::Table(InitialWindow::TABLE), 0), Vec::new();
        /// Whether each connection draws an initial window ("transaction"), or each client draws one for all its
        /// connections ("batch").
        mix_by: MixBy = MixBy::TAKES, MixBy::Transaction;
        /// Which side closes first: the server when it has written the last response, or the client when it has read
        /// it.
        close: CloseFirst = CloseFirst::TAKES, CloseFirst::Server;
    }
    rules TransactionsParams::judge_keys
}

table! {
    /// An initial window of a mix, with its probability.
    pub struct InitialWindow "initial-window" {
        /// Initial window, segments.
        segments: u32 = Takes::Whole(1, 65_535);
        /// Probability that a connection draws this window.
        share: f64 = Takes::Share;
    }
}

/// Scope of a drawn initial window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MixBy {
    /// Each connection draws its own.
    Transaction,
    /// Each client draws one for all its connections.
    Batch,
}

choice!(MixBy: Transaction "transaction", Batch "batch");

/// End that closes a connection first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseFirst {
    /// The server, as soon as it has written the last response.
    Server,
    /// The client, as soon as it has read the last response.
    Client,
}

choice!(CloseFirst: Server "server", Client "client");

impl Params for TransactionsParams {
    fn over_quic() -> bool {
        true
    }

    fn asks(&self, _duration: Span) -> Asks {
        Asks::Everything
    }

    /// Memory for the rows and the open connections.
    fn memory(&self, place: &Place) -> f64 {
        let duration_s = place.duration.0 as f64 * 1e-9;
        let bps = place.bottleneck_bps.unwrap_or(FASTEST_BPS) as f64;
        let count = place.count as f64;
        let each = self.objects.map_or(self.batch as f64 * self.requests as f64, f64::from);
        let clients_per_s = match &self.arrivals {
            &ArrivalsConfig::Poisson(PoissonParams { rate: Some(rate), .. }) => rate,
            ArrivalsConfig::Poisson(poisson) => {
                poisson.load.unwrap_or(1.0) * bps / (8.0 * each * self.bytes.mean().max(1.0))
            }
            ArrivalsConfig::Periodic(periodic) => count * 1e9 / periodic.interval.0 as f64,
            ArrivalsConfig::At(at) => count * at.times.len() as f64 / duration_s,
        };
        let most = self.count.map_or(f64::INFINITY, |count| count as f64 * each / self.batch as f64);
        let all = (clients_per_s * each * duration_s).min(most);
        let rows = match place.transactions {
            TransactionLevel::Rows => all * size_of::<TransactionRow>() as f64 * COPIES,
            TransactionLevel::Summary => 0.0,
        };
        let limit = self.max_open.map_or(f64::INFINITY, f64::from);
        let open = (clients_per_s * self.batch as f64 * OPEN_S).min(all).min(limit);
        rows + open * (2.0 * size_of::<Connection>() as f64 + CONNECTION_BYTES)
    }

    fn lay(&self, place: &Place, transport: &TransportConfig, site: &mut Site) -> Result<Make, Error> {
        let quic;
        let config = match transport {
            TransportConfig::Tcp(config) => config,
            other => {
                // the initial window is the only TCP setting in use
                let any = Config::profile("rfc").expect("invariant: a profile of that name");
                quic = Rc::new(any.with(|set| set.sending.iw = other.initial_window()));
                &quic
            }
        };
        let framing = place.framing_bytes;
        let wire = match transport {
            TransportConfig::Tcp(config) => Wire::new(config, framing),
            _ => Wire::of_quic(framing),
        };
        let (plan, process) = Plan::lay(self, place, config, wire, site.tallies, site.offered)?;
        Ok(Box::new(move |member, _| {
            let stream = format!("transactions.{}", member.id);
            let arrivals = Stream::new(member.seed, &format!("{stream}.arrivals"));
            let arrivals = Arrivals::new(process.clone(), arrivals, member.start);
            let draws = Family::new(member.seed, &stream);
            Driver::Transactions(Box::new(Transactions::new(plan.clone(), arrivals, draws)))
        }))
    }
}

/// Our choice: lifetime of a transaction's connection on the slowest paths of our studies, s.
const OPEN_S: f64 = 30.0;

/// State shared by all flows of a group.
#[derive(Debug)]
pub struct Plan {
    /// Parameters from the scenario.
    pub params: TransactionsParams,
    /// Connection settings and their probabilities.
    pub mix: Vec<Start>,
    /// Maximum number of open connections.
    pub max_open: u32,
    /// Number of open connections.
    pub open: Cell<u32>,
    /// Number of connections that may still be opened.
    pub left: Cell<u64>,
    wire: Wire,
}

/// Settings of a connection's hosts, an entry of the mix.
#[derive(Debug)]
pub struct Start {
    /// Upper bound of the random numbers that select this entry, unless they select an earlier one.
    pub threshold: u64,
    /// Settings for both hosts.
    pub config: Rc<Config>,
    /// Index of the tally of its transactions.
    pub tally: u32,
}

/// Packet sizes on the links, bytes.
#[derive(Clone, Copy, Debug)]
struct Wire {
    /// Payload of a full segment.
    payload: u32,
    /// Overhead of a data packet beyond its payload, bytes.
    headers: u32,
    /// Bytes of other packets in the data direction per connection: SYN-ACK, ACK of the request, FIN, and ACK of the
    /// client's FIN.
    others: u32,
}

impl Wire {
    fn new(config: &Config, framing: u32) -> Wire {
        let stamp = 12 * config.timestamps as u32;
        let syn_options = 8 + if config.timestamps { 12 } else { 4 * config.sack as u32 };
        let headers = 40 + stamp + framing;
        Wire { payload: config.payload(), headers, others: 40 + syn_options + framing + 3 * headers }
    }

    /// QUIC packets: full 1,452-byte datagrams with a short header, a tag, and a frame with offset and length. Other
    /// packets are the server's part of the handshake, in a datagram of at least 1,200 bytes, and some ACKs.
    fn of_quic(framing: u32) -> Wire {
        let headers = 28 + 1 + 8 + 2 + 16 + 12 + framing;
        Wire { payload: 1452 + 28 + framing - headers, headers, others: 1228 + 3 * 70 + 4 * framing }
    }

    fn data(&self, bytes: f64) -> f64 {
        bytes + libm::ceil(bytes / self.payload as f64) * self.headers as f64
    }

    /// Mean bytes on the wire over a distribution of sizes. For continuous distributions, the last packet is half
    /// full on average.
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
    /// Return the plan and the arrival process for a group of TCP flows. Adds the group's tallies and its offered
    /// load.
    pub fn of_tcp(
        params: &TransactionsParams,
        place: &Place,
        config: &Rc<Config>,
        tallies: &mut Vec<Tally>,
        offered: &mut Offered,
    ) -> Result<(Rc<Plan>, Process), Error> {
        let wire = Wire::new(config, place.framing_bytes);
        Plan::lay(params, place, config, wire, tallies, offered)
    }

    fn lay(
        params: &TransactionsParams,
        place: &Place,
        config: &Rc<Config>,
        wire: Wire,
        tallies: &mut Vec<Tally>,
        offered: &mut Offered,
    ) -> Result<(Rc<Plan>, Process), Error> {
        let process = process(params, place, &wire, offered)?;
        let mut tally = |config: &Rc<Config>, threshold: u64| {
            tallies.push(Tally::new(place.index as u32, config.sending.iw));
            Start { threshold, config: config.clone(), tally: tallies.len() as u32 - 1 }
        };
        let mut mix = Vec::new();
        let mut below = 0.0;
        for entry in &params.initial_window_mix {
            below += entry.share;
            let config = Config::clone(config).with(|set| set.sending.iw = entry.segments);
            mix.push(tally(&Rc::new(config), threshold(below)));
        }
        if mix.is_empty() {
            mix.push(tally(config, u64::MAX));
        }
        let plan = Plan {
            params: params.clone(),
            mix,
            max_open: params.max_open.unwrap_or(u32::MAX),
            open: Cell::new(0),
            left: Cell::new(params.count.unwrap_or(u64::MAX)),
            wire,
        };
        Ok((Rc::new(plan), process))
    }

    /// Whether the connections of a client share state.
    pub fn knows_client(&self) -> bool {
        self.params.objects.is_some() || self.params.together
    }

    /// Wire bytes of a response's data packets, each counted once.
    pub fn on_the_wire(&self, bytes: u64) -> u64 {
        bytes + bytes.div_ceil(self.wire.payload as u64) * self.wire.headers as u64
    }
}

/// Return the arrival process of one flow of the group.
fn process(
    params: &TransactionsParams,
    place: &Place,
    wire: &Wire,
    offered: &mut Offered,
) -> Result<Process, Error> {
    let flows = place.count as f64;
    let responses = params.objects.unwrap_or(params.batch.saturating_mul(params.requests)) as f64;
    let connections = params.batch.min(params.objects.unwrap_or(u32::MAX)) as f64;
    let data_bits = 8.0 * responses * wire.mean(&params.bytes);
    let bottleneck = place.bottleneck_bps.map(|bps| bps as f64);
    let (process, rate) = match &params.arrivals {
        ArrivalsConfig::At(at) => return Ok(Process::At { times: at.times.clone().into() }),
        ArrivalsConfig::Periodic(periodic) => {
            let interval = periodic.interval;
            (Process::Periodic { interval }, flows * 1e9 / interval.0 as f64)
        }
        &ArrivalsConfig::Poisson(PoissonParams { rate, load, load_counts }) => {
            let rate = match (rate, load, bottleneck) {
                (Some(rate), None, _) => rate,
                (None, Some(load), Some(bps)) => {
                    let others = match load_counts {
                        LoadCounts::Data => 0.0,
                        LoadCounts::All => 8.0 * connections * wire.others as f64,
                    };
                    load * bps / (data_bits + others)
                }
                (None, Some(load), None) => {
                    let allowed = "a rate of arrivals; the path has no rate to take a share of";
                    return Err(Error::value(place.key("arrivals.load"), load, allowed));
                }
                _ => unreachable!("invariant: judged with the scenario"),
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
        offered.groups.push((place.key("max_open"), rate * data_bits / bps, params.max_open.is_some()));
    }
    Ok(process)
}

impl TransactionsParams {
    /// Check that the probabilities of the initial windows sum to 1, and that `objects` is not combined with
    /// `requests` or `together`.
    fn judge_keys(&self, rules: &mut Rules) {
        let sum: f64 = self.initial_window_mix.iter().map(|entry| entry.share).sum();
        if !self.initial_window_mix.is_empty() && (sum - 1.0).abs() > 1e-9 {
            let found = format!("shares that sum to {}", significant(sum, 6));
            rules.refuse_as("initial_window_mix", found, "shares that sum to 1");
        }
        if self.objects.is_some() && self.requests > 1 {
            rules.refuse_as("objects", "a value with requests", "objects or requests");
        }
        if self.objects.is_some() && self.together {
            rules.refuse_as("objects", "a value with together", "objects or together");
        }
    }
}

/// Loads offered to the bottleneck by a run's groups.
#[derive(Default)]
pub struct Offered {
    /// For each group: key of its limit, offered load, whether it has a limit.
    groups: Vec<(String, f64, bool)>,
}

impl Offered {
    /// Reject a total load above 1 if any group does not limit its open connections: they would pile up without
    /// bound.
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
