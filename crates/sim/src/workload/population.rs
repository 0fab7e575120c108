//! Population: clients, each alone on a path of its own, with round-trip time, rate, loss and response size drawn
//! once from distributions. Each client is a flow that fetches one response after another.
//!
//! A client's values come from the stream `population.<flow>`, always in the same order, so that another number of
//! clients or another response size leaves the others' values as they are.

use ackclock_core::{FlowId, Rate, Span, Stream};
use ackclock_net::{LinkConfig, LossConfig, QueueConfig};

use super::fetch::{FetchParams, Pace};
use crate::error::Error;
use crate::flow::ClientRow;
use crate::spec::{Distribution, Workload};
use crate::topology::Layout;

/// A population.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "keys of a scenario, documented in docs/reference/scenario.md")]
pub struct Population<'a> {
    pub requests: u32,
    pub rtt_s: &'a Distribution,
    pub rate_bps: &'a Distribution,
    pub loss: &'a Distribution,
    pub bytes: &'a Distribution,
    pub queue_packets: u32,
    pub throttle: Option<f64>,
}

impl Population<'_> {
    /// The population that a workload is, if it is one.
    pub fn of(workload: &Workload) -> Option<Population<'_>> {
        let Workload::Population { requests, rtt_s, rate_bps, loss, bytes, queue_packets, throttle, .. } =
            workload
        else {
            return None;
        };
        Some(Population {
            requests: *requests,
            rtt_s,
            rate_bps,
            loss,
            bytes,
            queue_packets: *queue_packets,
            throttle: *throttle,
        })
    }

    /// Refuse distributions that cannot be drawn from.
    pub fn check(&self, place: &str) -> Result<(), Error> {
        let all =
            [("rtt_s", self.rtt_s), ("rate_bps", self.rate_bps), ("loss", self.loss), ("bytes", self.bytes)];
        for (name, distribution) in all {
            if !drawable(distribution) {
                let place = format!("{place}.{name}");
                return Err(Error::value(
                    place,
                    format_args!("{distribution:?}"),
                    "finite, positive parameters",
                ));
            }
        }
        Ok(())
    }

    /// Draw the client that is flow `flow`, and lay its path.
    pub fn client(&self, flow: FlowId, seed: u64, layout: &mut Layout) -> (ClientRow, FetchParams) {
        let mut stream = Stream::new(seed, &format!("population.{flow}"));
        let rtt = Span((draw(self.rtt_s, &mut stream).clamp(0.0, 3600.0) * 1e9) as u64);
        let rate_bps = (draw(self.rate_bps, &mut stream) as u64).max(1);
        let loss = draw(self.loss, &mut stream).clamp(0.0, 1.0);
        let bytes = (draw(self.bytes, &mut stream) as u64).max(1);

        let mut lay = |direction: &str, delay: Span| {
            layout.add(LinkConfig {
                queue: QueueConfig::packets(self.queue_packets),
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
        let params = FetchParams {
            bytes,
            request_bytes: REQUEST_BYTES,
            count: self.requests,
            pause: Span::ZERO,
            timeout: None,
            common_random_numbers: false,
            pace,
        };
        (ClientRow { flow, rtt, rate_bps, loss, bytes }, params)
    }
}

fn drawable(distribution: &Distribution) -> bool {
    ackclock_core::Distribution::from(distribution).is_drawable()
}

fn draw(distribution: &Distribution, stream: &mut Stream) -> f64 {
    ackclock_core::Distribution::from(distribution).draw(stream)
}

/// As for a plain fetch.
const REQUEST_BYTES: u64 = 100;
/// Ours: video servers write blocks of this order.
const CHUNK_BYTES: u64 = 65_536;
/// Ours: what a throttled server writes at once, in time at its own rate.
const INITIAL_BURST: Span = Span::from_secs(5);
