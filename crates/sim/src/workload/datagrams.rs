//! Plain datagram traffic: constant rate, on-off, voice. The source sends on a schedule. The workload starts and
//! stops it, and adds a row with the sink's counters at the end of the run.

use ackclock_core::datagram::UDP_IP_BYTES;
use ackclock_core::schema::{Takes, DURATION, RATE};
use ackclock_core::{choice, table, Rate, Span};

use super::{Asks, Carried, Context, Driver, Make, Params, Place, Site, Workload};
use crate::error::Error;
use crate::transport::udp::{OnOff, Periods, SourceParams};
use crate::transport::TransportConfig;
use crate::world::{ConnId, RECEIVER, SENDER};

table! {
    /// Sends UDP datagrams of one size at a constant rate, until the flow stops.
    pub struct ConstantRateParams "constant-rate" {
        /// Rate of the IP packets, including their headers.
        rate: Rate = RATE;
        /// UDP payload of each datagram.
        payload: u32 = PAYLOAD, 1472;
    }
}

table! {
    /// Sends UDP datagrams at a constant rate in on-periods that are separated by silence. The flow begins with an
    /// on-period.
    pub struct OnOffParams "on-off" {
        /// Rate of the IP packets during an on-period, including their headers.
        rate: Rate = RATE;
        /// Mean length of an on-period.
        on: Span = DURATION;
        /// Mean length of a silence.
        off: Span = DURATION;
        /// Distribution of both lengths: exponential, or constant at the mean.
        periods: Periods = Periods::TAKES, Periods::Exponential;
        /// UDP payload of each datagram.
        payload: u32 = PAYLOAD, 1472;
    }
}

table! {
    /// A telephone call over UDP.
    /// The defaults are those of G.711 over RTP: 160 bytes of speech every 20 ms.
    pub struct VoiceParams "voice" {
        /// Time between datagrams.
        interval: Span = DURATION, Span(20_000_000);
        /// UDP payload of each datagram: speech and RTP header.
        payload: u32 = PAYLOAD, 172;
    }
}

/// Maximum IP packet of 65535 bytes, minus the headers.
const PAYLOAD: Takes = Takes::Size(1, 65_507);

choice!(Periods: Exponential "exponential", Fixed "fixed");

/// Declare datagram workloads, each defined by its source.
macro_rules! plain {
    ($($params:ident: $source:expr;)*) => {
        $(impl Params for $params {
            fn carried() -> Carried {
                Carried::ByDatagrams
            }

            fn source(&self) -> Option<SourceParams> {
                let source: fn(&$params) -> SourceParams = $source;
                Some(source(self))
            }
            fn asks(&self, duration: Span) -> Asks {
                let source = self.source().expect("invariant: made above");
                let each = (source.payload as f64 + UDP_IP_BYTES as f64) * 8e9;
                Asks::Regardless(source.rate.0 as f64 * duration.0 as f64 / each)
            }
            fn lay(&self, _: &Place, _: &TransportConfig, _: &mut Site) -> Result<Make, Error> {
                Ok(Box::new(|_, _| Driver::Datagrams(Datagrams::default())))
            }
        })*
    };
}

plain! {
    ConstantRateParams: |p| SourceParams { payload: p.payload, rate: p.rate, on_off: None };
    OnOffParams: |p| {
        let on_off = Some(OnOff { on: p.on, off: p.off, periods: p.periods });
        SourceParams { payload: p.payload, rate: p.rate, on_off }
    };
    VoiceParams: |p| SourceParams::every(p.interval, p.payload);
}

/// State of a plain datagram flow.
#[derive(Clone, Default)]
pub struct Datagrams {
    conn: Option<ConnId>,
}

impl Workload for Datagrams {
    fn start(&mut self, cx: &mut Context) {
        let conn = cx.connect(SENDER, 0);
        cx.world.watch(conn, SENDER, false);
        cx.world.watch(conn, RECEIVER, false);
        self.conn = Some(conn);
        cx.wake(cx.flow.stop);
    }

    fn wake(&mut self, cx: &mut Context) {
        // the connection stays open so that packets in flight are counted; the goodput covers the time until the stop
        if let Some(conn) = self.conn {
            cx.flow.acked_at_stop = Some(cx.flow.acked(cx.world));
            cx.world.act(conn, SENDER, |source, now| source.stop_writing(now));
        }
    }

    fn progress(&mut self, _cx: &mut Context, _conn: ConnId, _host: usize) {}
}
