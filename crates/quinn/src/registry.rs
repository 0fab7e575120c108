//! Names of the stack's controllers, and the stack's settings.

use std::sync::Arc;
use std::time::Duration;

use ackclock_cc::controller as cc;
use ackclock_cc::slow_start::SlowStartConfig;
use ackclock_core::foreign::{Carried, Foreign, Maker};
use ackclock_core::options::{self, usual, Options};
use ackclock_core::schema::{Described, Refusal, Table, Takes, Value, FLAG};
use ackclock_core::{choice, table, Stream};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::end::End;
use crate::null::Sizes;
use crate::ours::Ours;
use crate::seal::Clock;
use crate::traced::{Log, Tracing};

/// Registry entry of a controller.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name in a scenario.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Option table.
    pub options: &'static Table,
    /// Default options.
    pub usual: fn() -> Value,
    algorithm: Algorithm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Cubic,
    NewReno,
    Bbr,
    /// A controller of this simulator, selected by name.
    Ours(&'static str),
}

const fn entry(name: &'static str, about: &'static str, algorithm: Algorithm) -> Entry {
    Entry { name, about, options: QuinnOptions::TABLE, usual: || usual::<QuinnOptions>().write(), algorithm }
}

/// All controllers of the stack.
pub const ENTRIES: &[Entry] = &[
    entry(
        "quinn:cubic",
        "CUBIC of quinn-proto 0.11.19 (QUIC), after RFC 8312, without HyStart",
        Algorithm::Cubic,
    ),
    entry("quinn:newreno", "NewReno of quinn-proto 0.11.19 (QUIC), RFC 9002", Algorithm::NewReno),
    entry(
        "quinn:bbr",
        "BBR v1 of quinn-proto 0.11.19 (QUIC); its pacing rate is not used by the stack",
        Algorithm::Bbr,
    ),
    entry("quinn:ours-reno", "Reno of this simulator inside quinn-proto", Algorithm::Ours("reno")),
    entry(
        "quinn:ours-cubic",
        "CUBIC of this simulator, as in Linux with HyStart, inside quinn-proto",
        Algorithm::Ours("cubic"),
    ),
    entry(
        "quinn:ours-cubic-rfc9438",
        "CUBIC of this simulator, as in RFC 9438, inside quinn-proto",
        Algorithm::Ours("cubic-rfc9438"),
    ),
];

/// Name and one-line description of each controller.
pub const REGISTRY: &[(&str, &str)] = &{
    let mut out = [("", ""); ENTRIES.len()];
    let mut i = 0;
    while i < ENTRIES.len() {
        out[i] = (ENTRIES[i].name, ENTRIES[i].about);
        i += 1;
    }
    out
};

table! {
    /// Settings of quinn's stack; the defaults are quinn's.
    struct QuinnOptions "quinn" {
        /// initial congestion window, bytes; default: the stack's, 12000
        initial_window: Option<u32> = Takes::Whole(2400, 10_000_000);
        /// search for a packet size above 1200 bytes; if false, packets have `mtu` bytes from the start
        mtu_discovery: bool = FLAG, true;
        /// maximum payload of a datagram, bytes
        mtu: u32 = Takes::Whole(1200, 9000), 1452;
        /// maximum amount of data by which a stream may be ahead of its reader, bytes
        receive_window: u32 = Takes::Whole(10_000, 1_000_000_000), 1_250_000;
        /// maximum amount of unacknowledged data, bytes
        send_window: u32 = Takes::Whole(10_000, 1_000_000_000), 10_000_000;
        /// number of packets after which the receiver sends an ACK at once (draft ACK frequency); default: 2
        ack_every: Option<u32> = Takes::Whole(2, 1000);
        /// RTT assumed before the first sample, ms
        initial_rtt_ms: u32 = Takes::Whole(1, 10_000), 333;
        /// time without a received packet after which a connection is closed, s; 0: never
        idle_timeout_s: u32 = Takes::Whole(0, 100_000), 30;
        /// number of newer packets acknowledged before a packet counts as lost
        packet_threshold: u32 = Takes::Whole(3, 1000), 3;
        /// age, in RTTs, beyond which a packet counts as lost once a newer one was acknowledged
        time_threshold: f64 = Takes::Number(1.0, 10.0), 1.125;
        /// size of the server's part of the handshake, mostly certificates, bytes; more than three times the bytes sent
        /// by the client require another round trip
        certificate: u32 = Takes::Whole(100, 50_000), 1000;
        /// slow start of a controller of this simulator; default: the controller's own. The stack's own controllers
        /// support only "classic"
        slow_start: Option<Opening> = Opening::TAKES;
    }
}

/// Slow start used with a controller of this simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    Classic,
    HyStart,
    HyStartPlusPlus,
}

choice! { Opening: Classic "classic", HyStart "hystart", HyStartPlusPlus "hystart++" }

impl Opening {
    fn config(self) -> SlowStartConfig {
        match self {
            Opening::Classic => SlowStartConfig::CLASSIC,
            Opening::HyStart => SlowStartConfig::HyStart(usual()),
            Opening::HyStartPlusPlus => SlowStartConfig::HyStartPlusPlus(usual()),
        }
    }
}

/// Configuration of both ends of a flow.
#[derive(Clone)]
pub struct Recipe {
    options: Arc<QuinnOptions>,
    algorithm: Algorithm,
}

/// Return the recipe for a controller by name, or an error about the name or the options.
pub fn build(name: &str, options: &Options) -> Result<Recipe, Refusal> {
    let Some(entry) = ENTRIES.iter().find(|entry| entry.name == name) else {
        let allowed = REGISTRY.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return Err(Refusal::new(format_args!("{name:?}"), allowed));
    };
    let given = options::named(name, options, entry.options)?;
    let options = usual::<QuinnOptions>().over(&given)?;
    if let (Some(start), false) = (options.slow_start, matches!(entry.algorithm, Algorithm::Ours(_))) {
        if start != Opening::Classic {
            let found = format_args!("{} with {name}", start.write());
            return Err(
                Refusal::new(found, "\"classic\", or a controller quinn:ours-NAME").within("slow_start")
            );
        }
    }
    Ok(Recipe { options: Arc::new(options), algorithm: entry.algorithm })
}

impl Maker for Recipe {
    fn stack(&self) -> &str {
        "quinn"
    }

    fn initial_window(&self) -> u32 {
        self.options.initial_window.unwrap_or(12_000) / 1200 // QUIC's initial datagram size
    }

    fn end(&self, opens: bool, one_way: bool, stream: Stream, carried: &Carried) -> Box<dyn Foreign> {
        Box::new(End::new(self, opens, one_way, stream, carried.clone(), Clock::default()))
    }
}

impl Recipe {
    pub(crate) fn sizes(&self) -> Sizes {
        Sizes { flight: self.options.certificate as usize, ..Sizes::default() }
    }

    /// Return the settings of one end, with a controller that writes to `log`.
    pub(crate) fn transport(&self, log: &Arc<Log>, clock: Clock) -> Arc<TransportConfig> {
        let options = &*self.options;
        let mut config = TransportConfig::default();
        let ms = |ms: u32| Duration::from_millis(u64::from(ms));
        let idle = (options.idle_timeout_s > 0)
            .then(|| IdleTimeout::from(VarInt::from_u32(options.idle_timeout_s * 1000)));
        config
            .stream_receive_window(VarInt::from_u32(options.receive_window))
            .send_window(u64::from(options.send_window))
            .initial_rtt(ms(options.initial_rtt_ms))
            .max_idle_timeout(idle)
            .packet_threshold(options.packet_threshold)
            .time_threshold(options.time_threshold as f32);
        if options.mtu_discovery {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(options.mtu as u16);
            config.mtu_discovery_config(Some(discovery));
        } else {
            config.initial_mtu(options.mtu as u16).mtu_discovery_config(None);
        }
        if let Some(every) = options.ack_every {
            let mut frequency = AckFrequencyConfig::default();
            frequency.ack_eliciting_threshold(VarInt::from_u32(every - 1));
            config.ack_frequency_config(Some(frequency));
        }
        config.congestion_controller_factory(Arc::new(Tracing {
            inner: self.controller(clock),
            log: log.clone(),
        }));
        Arc::new(config)
    }

    fn controller(&self, clock: Clock) -> Arc<dyn ControllerFactory + Send + Sync> {
        let window = self.options.initial_window.map(u64::from);
        match self.algorithm {
            Algorithm::Ours(name) => {
                let recipe = cc::Recipe::by_name(name).expect("invariant: one of ours");
                let start = match self.options.slow_start {
                    None if recipe.needs().hystart => Opening::HyStart,
                    start => start.unwrap_or(Opening::Classic),
                };
                Arc::new(Ours { recipe, start: start.config(), window: self.initial_window(), clock })
            }
            Algorithm::Cubic => {
                let mut config = CubicConfig::default();
                window.map(|bytes| config.initial_window(bytes));
                Arc::new(config)
            }
            Algorithm::NewReno => {
                let mut config = NewRenoConfig::default();
                window.map(|bytes| config.initial_window(bytes));
                Arc::new(config)
            }
            Algorithm::Bbr => {
                let mut config = BbrConfig::default();
                window.map(|bytes| config.initial_window(bytes));
                Arc::new(config)
            }
        }
    }
}
