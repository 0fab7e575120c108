//! What applications do, as the engine reads it.

use serde::Deserialize;

use super::{one_flow, Video};

/// A distribution to draw from.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs, reason = "keys of a scenario, documented in docs/reference/scenario.md")]
pub enum Distribution {
    Constant {
        value: f64,
    },
    Uniform {
        low: f64,
        high: f64,
    },
    /// ln X normal; `median` = exp(mu).
    Lognormal {
        median: f64,
        sigma: f64,
    },
    Exponential {
        mean: f64,
    },
    /// Each value equally likely.
    Choice {
        values: Vec<f64>,
    },
}

impl From<&Distribution> for ackclock_core::Distribution {
    fn from(spec: &Distribution) -> ackclock_core::Distribution {
        use ackclock_core::Distribution as Core;
        match spec {
            &Distribution::Constant { value } => Core::Constant { value },
            &Distribution::Uniform { low, high } => Core::Uniform { low, high },
            &Distribution::Lognormal { median, sigma } => Core::Lognormal { median, sigma },
            &Distribution::Exponential { mean } => Core::Exponential { mean },
            Distribution::Choice { values } => Core::Choice { values: values.clone() },
        }
    }
}

/// What the application does.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// As much as the connection takes, until the flow's stop.
    Bulk,
    /// This many bytes, then close.
    Transfer {
        /// Bytes.
        bytes: u64,
    },
    /// Client at the receiving end: connect, request, response of `bytes`, close; `count` times, one after another,
    /// each `pause_ns` after the last byte of the one before.
    Fetch {
        /// Response bytes.
        bytes: u64,
        /// Request bytes.
        #[serde(default = "request_bytes")]
        request_bytes: u64,
        /// Fetches.
        #[serde(default = "one_flow")]
        count: u32,
        /// Pause between them, ns.
        #[serde(default)]
        pause_ns: u64,
        /// Give up a fetch after this long, ns.
        #[serde(default)]
        timeout_ns: Option<u64>,
        /// Every fetch meets links as if it were the first: loss streams restart from (seed, fetch number), so that
        /// two arms of a comparison meet the same losses fetch by fetch.
        #[serde(default)]
        common_random_numbers: bool,
    },
    /// Writes `chunk_bytes` every chunk/rate, as video servers do; `bytes` in all (absent = until stop).
    Throttled {
        /// bit/s of the application.
        rate_bps: u64,
        /// Bytes of one write.
        chunk_bytes: u64,
        /// Bytes written at once at the start.
        #[serde(default)]
        initial_bytes: u64,
        /// Total.
        #[serde(default)]
        bytes: Option<u64>,
    },
    /// UDP datagrams at a constant rate until the flow's stop.
    ConstantRate {
        /// bit/s of IP packets.
        rate_bps: u64,
        /// UDP payload, bytes.
        payload_bytes: u32,
    },
    /// As constant-rate, in on-periods separated by silence.
    OnOff {
        /// bit/s of IP packets in an on-period.
        rate_bps: u64,
        /// UDP payload, bytes.
        payload_bytes: u32,
        /// Mean length of an on-period, ns.
        on_ns: u64,
        /// Mean length of the silence, ns.
        off_ns: u64,
        /// Exponentially distributed lengths; else all equal.
        #[serde(default)]
        exponential: bool,
    },
    /// A datagram of `payload_bytes` every `interval_ns`, until the flow's stop.
    Voice {
        /// Between datagrams, ns.
        interval_ns: u64,
        /// UDP payload, bytes.
        payload_bytes: u32,
    },
    /// `clients` clients, each alone on a path of its own with RTT, rate, loss and response size drawn once; each
    /// does one fetch at a time, `requests` in all on one connection each.
    Population {
        /// Clients.
        clients: u32,
        /// Requests of each client.
        #[serde(default = "one_flow")]
        requests: u32,
        /// Seconds.
        rtt_s: Distribution,
        /// bit/s.
        rate_bps: Distribution,
        /// Probability, each direction.
        loss: Distribution,
        /// Bytes.
        bytes: Distribution,
        /// Bottleneck buffer of each client, packets.
        #[serde(default = "population_queue")]
        queue_packets: u32,
        /// If set, the server writes at this many times the client's rate after an initial burst (video).
        #[serde(default)]
        throttle: Option<f64>,
    },
    /// Clients come and go: see [`Transactions`].
    Transactions(Box<Transactions>),
    /// A player that adapts its bitrate: see [`Video`].
    Video(Video),
}

/// Clients at the receiving end come, open `batch` connections at once, ask, read, close. The group's flows are
/// client-server pairs that share arrivals, limits and number of transactions equally.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transactions {
    /// Bytes of a response.
    pub bytes: Distribution,
    /// Bytes of a request.
    pub request_bytes: u64,
    /// When clients come.
    pub arrivals: Arrivals,
    /// Connections that a client opens at once.
    #[serde(default = "one_flow")]
    pub batch: u32,
    /// Requests on each connection, one after another.
    #[serde(default = "one_flow")]
    pub requests: u32,
    /// From the end of a response to the next request on the connection, s.
    #[serde(default = "no_time")]
    pub think_s: Distribution,
    /// Responses that the connections of a client fetch together, whoever is free taking the next; replaces
    /// `requests`.
    #[serde(default)]
    pub objects: Option<u32>,
    /// The connections of a client ask at the same time: the next request waits for all responses.
    #[serde(default)]
    pub together: bool,
    /// Connections of the group in all; absent = until the flows stop.
    #[serde(default)]
    pub count: Option<u64>,
    /// Most connections of the group that are open at a time; a client who comes then is turned away.
    #[serde(default)]
    pub max_open: Option<u32>,
    /// Initial windows to draw from, with their probabilities; empty = the stack's.
    #[serde(default)]
    pub initial_window_mix: Vec<(u32, f64)>,
    /// Whether all connections of a client draw the same initial window.
    #[serde(default)]
    pub mix_by_batch: bool,
    /// Which end closes first.
    #[serde(default)]
    pub close: CloseFirst,
}

/// When clients of [`Transactions`] come.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrivals {
    /// Intervals are exponential. Either is given.
    Poisson {
        /// Clients per second, over all flows of the group.
        #[serde(default)]
        rate_per_s: Option<f64>,
        /// Share of the bottleneck that the responses ask for.
        #[serde(default)]
        load: Option<f64>,
        /// Whether all packets of the data direction count in `load`, or data packets alone.
        #[serde(default)]
        count_all_packets: bool,
    },
    /// At equal intervals, the first at the flow's start.
    Periodic {
        /// Interval, ns.
        interval_ns: u64,
    },
    /// At these times after the flow's start, in order, ns.
    At {
        /// The times.
        times_ns: Vec<u64>,
    },
}

/// Which end of a connection closes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloseFirst {
    /// The server, as soon as it has written the last response.
    #[default]
    Server,
    /// The client, as soon as it has read the last response.
    Client,
}

fn no_time() -> Distribution {
    Distribution::Constant { value: 0.0 }
}

fn request_bytes() -> u64 {
    100
}
fn population_queue() -> u32 {
    100
}
