//! Population: clients, each alone on its own path, whose round-trip time, rate, loss and response size are drawn
//! once from distributions. Each client is a flow that fetches one response after another.
//!
//! The values of a client come from the stream `population.<flow>`, always in the same order. Changing the number of
//! clients or the response size therefore does not change the values drawn for other clients.

use std::mem::size_of;

use ackclock_core::schema::{Takes, Unit, COUNT, MOST_BYTES, POSITIVE};
use ackclock_core::{table, Distribution, FlowId, Rate, Span, Stream};
use ackclock_net::{LinkConfig, LossConfig, QueueConfig};

use super::fetch::{Fetch, FetchParams, Pace};
use super::{Asks, Driver, Make, Params, Place, Site, OWN_PATH_PACKETS};
use crate::error::Error;
use crate::transport::TransportConfig;
use crate::workload::flow::{ClientRow, FetchRow};
use crate::world::layout::Layout;

table! {
    /// Clients, each alone on its own path, fetch one response at a time.
    /// Each client draws the properties of its path and the size of its responses once.
    pub struct PopulationParams "population" {
        /// Number of clients.
        clients: u32 = COUNT;
        /// Number of fetches of each client, each over a new connection.
        requests: u32 = COUNT, 1;
        /// Round-trip propagation delay of a client's path.
        rtt: Distribution = Takes::Drawn(Unit::Duration);
        /// Bottleneck rate of a client's path.
        rate: Distribution = Takes::Drawn(Unit::Rate);
        /// Loss probability in each direction of a client's path.
        loss: Distribution = Takes::Drawn(Unit::Share);
        /// Size of a client's responses.
        bytes: Distribution = Takes::Drawn(Unit::Size);
        /// Size of the bottleneck queue of each client.
        queue: u32 = Takes::Packets, 100;
        /// After an initial burst, the server writes at this multiple of the client's rate. Default: it writes as fast
        /// as it can.
        throttle: Option<f64> = POSITIVE;
    }
}

impl Params for PopulationParams {
    fn has_own_path(&self) -> bool {
        true
    }

    fn flows(&self) -> u64 {
        self.clients as u64
    }
    fn asks(&self, _duration: Span) -> Asks {
        Asks::Regardless(self.requests as f64 * self.response_packets())
    }
    fn held(&self) -> f64 {
        self.response_packets().min(self.queue as f64 + OWN_PATH_PACKETS)
    }
    fn rows(&self, _duration: Span) -> f64 {
        self.requests as f64 * size_of::<FetchRow>() as f64
    }
    fn lay(&self, _: &Place, _: &TransportConfig, _: &mut Site) -> Result<Make, Error> {
        let params = self.clone();
        Ok(Box::new(move |member, site| {
            let (client, fetches, pace) = params.client(member.id, member.seed, site.layout);
            site.clients.push(client);
            Driver::Fetch(Box::new(Fetch::new(fetches, pace)))
        }))
    }
}

impl PopulationParams {
    /// Upper estimate of the packets of one response, twice the mean.
    fn response_packets(&self) -> f64 {
        self.bytes.mean() / 500.0 + 10.0
    }

    /// Draw the client of flow `flow`, and add its path.
    pub fn client(
        &self,
        flow: FlowId,
        seed: u64,
        layout: &mut Layout,
    ) -> (ClientRow, FetchParams, Option<Pace>) {
        let mut stream = Stream::new(seed, &format!("population.{flow}"));
        let rtt = Span((self.rtt.draw(&mut stream).clamp(0.0, 3600.0) * 1e9) as u64);
        let rate_bps = (self.rate.draw(&mut stream) as u64).max(1);
        let loss = self.loss.draw(&mut stream).clamp(0.0, 1.0);
        let bytes = (self.bytes.draw(&mut stream) as u64).clamp(1, MOST_BYTES);

        let mut lay = |direction: &str, delay: Span| {
            layout.add(LinkConfig {
                queue: QueueConfig::packets(self.queue),
                loss: if loss > 0.0 { LossConfig::bernoulli(loss) } else { LossConfig::NONE },
                ..LinkConfig::new(&format!("client.{flow}.{direction}"), Rate(rate_bps), delay)
            })
        };
        let forward = lay("forward", Span(rtt.0 / 2));
        let backward = lay("backward", Span(rtt.0 - rtt.0 / 2));
        layout.routes.push([vec![forward], vec![backward]]);

        let pace = self.throttle.map(|times| {
            let rate = Rate(((rate_bps as f64 * times) as u64).max(1));
            Pace { rate, chunk: CHUNK_BYTES, initial: rate.bytes_in(INITIAL_BURST).max(CHUNK_BYTES) }
        });
        let fetches = FetchParams { count: self.requests, ..FetchParams::of_bytes(bytes) };
        (ClientRow { flow, rtt, rate_bps, loss, bytes }, fetches, pace)
    }
}

/// Our choice: bytes per write, similar to video servers' block sizes.
const CHUNK_BYTES: u64 = 65_536;
/// Our choice: size of the initial burst, as transmission time at the pacing rate.
const INITIAL_BURST: Span = Span::from_secs(5);
