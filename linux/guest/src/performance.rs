//! Table `performance`, in the simulator's form. Counts come from the kernel's sockets; a client's connection is
//! counted when it closes. Delays and drops come from the relay. With the kernel's own disciplines they are null,
//! because packets cannot be assigned to flows there.
//!
//! Differs: round-trip times are the kernel's smoothed ones, read every [`LOOK`] ns, while the simulator records every
//! sample.

use ackclock_core::{Span, Time};
use ackclock_sim::report::performance::{table, Counts, Meter, Whole};
pub use ackclock_sim::world::gauges::Gauges;
use ackclock_sim::Table;

use crate::flows::{Shared, State, Sums};
use crate::info::Info;
use crate::job::Job;

/// Interval between two reads of the sockets, ns.
pub const LOOK: u64 = 10_000_000;

/// Measurements made during the run.
pub struct Performance {
    /// Meter of the sockets' counters.
    pub meter: Meter,
    /// Gauges for RTTs, and for delays if the relay does not measure them.
    pub gauges: Gauges,
}

impl Performance {
    /// Create the measurements if the job requests them.
    pub fn new(job: &Job, flows: usize) -> Option<Performance> {
        let from = Time(job.scenario.record.warm_up_ns);
        job.scenario.record.measures().then(|| Performance {
            meter: Meter::new(Span(job.scenario.duration_ns), from, flows),
            gauges: Gauges::new(from, flows),
        })
    }

    /// Sample the RTT of every flow that has one.
    pub fn look(&mut self, now: u64, shared: &Shared, gauges: Option<&mut Gauges>) {
        let gauges = gauges.unwrap_or(&mut self.gauges);
        for flow in &shared.flows {
            let info = shared.state(flow.id).open.and_then(|fd| Info::of(fd).ok());
            if let Some(info) = info.filter(|info| info.srtt_us > 0) {
                gauges.sample(Time(now), flow.id, Span::from_us(info.srtt_us as u64));
            }
        }
    }

    /// Build the table at the end of the run; `relay` has the delays.
    pub fn table(&self, shared: &Shared, relay: Option<&Gauges>) -> Table {
        let flows: Vec<Whole> = shared
            .flows
            .iter()
            .map(|flow| {
                let state = shared.state(flow.id);
                let counts = sums(&state.closed); // all connections are closed by now
                Whole {
                    id: flow.id,
                    group: flow.group as u32,
                    start: Time(flow.start),
                    stop: Time(state.completed.map_or(flow.stop, |t| t.min(flow.stop))),
                    acked_at_stop: state.acked_at_stop.unwrap_or(counts.acked),
                    counts,
                }
            })
            .collect();
        let mut made = table(&flows, Some((&self.meter, relay.unwrap_or(&self.gauges))));
        if relay.is_none() {
            made.columns.retain(|(name, _)| *name != "dropped_packets");
        }
        made
    }
}

/// Sums of a flow so far, without its open client connections.
pub fn counts(state: &State) -> Counts {
    let open = state.open.and_then(|fd| Info::of(fd).ok());
    let mut sums = open.map_or(state.closed, |info| state.with(&info));
    if let Some(ends) = &state.datagrams {
        ends.add_to(&mut sums);
    }
    self::sums(&sums)
}

fn sums(sums: &Sums) -> Counts {
    Counts {
        acked: sums.acked,
        sent: sums.data_segs_out,
        retransmissions: sums.retransmissions,
        rtos: sums.rtos,
    }
}
