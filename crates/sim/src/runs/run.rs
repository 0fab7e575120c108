//! One run: scenario and seed in, tables out.

use ackclock_core::schema::Described;
use ackclock_core::{Digest, Time};
use ackclock_net::capacity::MOST_PHASES;

use crate::capture::Captured;
use crate::error::Error;
use crate::report::output;
use crate::runs::build::build;
use crate::scenario::bounds::{Bounds, Guard, SLICE};
use crate::scenario::hosts::Customs;
use crate::scenario::spec::{value, Scenario};
use crate::tables::table::Table;
use crate::world::shortcuts::Shortcuts;

/// Results of a run.
pub struct Output {
    /// Digest of all packets that reached a host.
    pub digest: Digest,
    /// The requested tables, or all, in a fixed order. A table not recorded by the scenario has no rows.
    pub tables: Vec<Table>,
    /// Packets captured at a host; empty unless a capture was requested.
    pub captured: Vec<Captured>,
}

impl Output {
    /// Return the table called `name`.
    pub fn table(&self, name: &str) -> &Table {
        self.tables.iter().find(|t| t.name == name).expect("invariant: the set of tables is fixed")
    }
}

/// Run the scenario with this seed. The result is a pure function of the arguments: identical arguments
/// produce identical bits.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Output, Error> {
    run_with(scenario, seed, &Customs::new(), &Bounds::NONE)
}

/// Run with a user's own controllers, within bounds, and keep only the tables named by `wanted` (returns true).
pub fn run_for(
    scenario: &Scenario,
    seed: u64,
    customs: &Customs,
    bounds: &Bounds,
    wanted: impl Fn(&str) -> bool,
) -> Result<Output, Error> {
    play(scenario, seed, customs, bounds, Shortcuts::ALL, wanted, &[])
}

/// Run and keep all tables, with only these columns of `acks` if any are named. The table has fifty columns, and a
/// row per ACK and segment.
pub fn run_tracing(
    scenario: &Scenario,
    seed: u64,
    customs: &Customs,
    bounds: &Bounds,
    columns: &'static [&'static str],
) -> Result<Output, Error> {
    play(scenario, seed, customs, bounds, Shortcuts::ALL, |_| true, columns)
}

/// Run with a user's own controllers, within bounds.
pub fn run_with(scenario: &Scenario, seed: u64, customs: &Customs, bounds: &Bounds) -> Result<Output, Error> {
    run_taking(scenario, seed, customs, bounds, Shortcuts::ALL)
}

/// Run with only these shortcuts, which do not affect the result.
pub fn run_taking(
    scenario: &Scenario,
    seed: u64,
    customs: &Customs,
    bounds: &Bounds,
    shortcuts: Shortcuts,
) -> Result<Output, Error> {
    play(scenario, seed, customs, bounds, shortcuts, |_| true, &[])
}

fn play(
    scenario: &Scenario,
    seed: u64,
    customs: &Customs,
    bounds: &Bounds,
    shortcuts: Shortcuts,
    wanted: impl Fn(&str) -> bool,
    traced: &'static [&'static str],
) -> Result<Output, Error> {
    ackclock_core::calls::runs(seed);
    let mut guard = Guard::new(bounds);
    let mut built = build(scenario, seed, customs, shortcuts)?;
    if scenario.record.measures() && wanted("performance") {
        built.measure(scenario);
    }
    built.app.begin(&mut built.world);
    guard.check(&built.world)?;
    while !built.world.run(&mut built.app, Time(scenario.duration_ns), SLICE) {
        guard.check(&built.world)?;
    }
    if (bounds.stop)(built.world.now()) {
        return Err(Error::Stopped);
    }
    built.app.finish(&mut built.world);
    built.world.forget_ends();
    if let Some(said) = built.world.fault() {
        return Err(Error::Own(said));
    }
    if let Some(link) = built.world.lost_link() {
        let found =
            format!("a packet that met more than {MOST_PHASES} changes of the capacity of link {link}");
        return Err(Error::value("network", found, "changes that are further apart, or a greater rate"));
    }
    Ok(Output {
        digest: built.world.digest(),
        captured: built.world.take_captured(),
        tables: output::tables(built.end(), wanted, traced),
    })
}

/// Parse a scenario.
pub fn parse(json: &str) -> Result<Scenario, Error> {
    Scenario::read(&value(serde_json::from_str(json)?)).map_err(|refusal| Error::refused("", refusal))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of datagrams are freed whether the datagrams arrive, are lost, are refused by a queue, or arrive too
    /// late.
    #[cfg(feature = "quinn")]
    #[test]
    fn no_bytes_of_a_datagram_stay_behind() {
        for queue in [
            r#""drop-tail", "limit": {"packets": 10}"#,
            r#""codel", "limit": 10"#,
            r#""fq-codel", "limit": 10"#,
            r#""choke", "limit": 20, "min": 2, "max": 10"#,
        ] {
            let json = format!(
                r#"{{"duration_ns": 60000000000, "network": {{"topology": "chain",
                "bottleneck": {{"rate": 10000000, "delay": 5000000, "loss": {{"kind": "bernoulli", "p": 0.01}},
                                "queue": {{"kind": {queue}}}}}}},
                "flows": [{{"profile": "linux-6", "congestion_control": "quinn:cubic", "count": 2,
                           "workload": {{"kind": "transfer", "bytes": 2000000}}}}]}}"#
            );
            let scenario = parse(&json).expect("reads");
            let mut built = build(&scenario, 1, &Customs::new(), Shortcuts::ALL).expect("valid");
            built.app.begin(&mut built.world);
            built.world.run(&mut built.app, Time(2_000_000_000), u32::MAX);
            assert!(built.world.freight() > 0, "{queue}");
            built.world.run(&mut built.app, Time(scenario.duration_ns), u32::MAX);
            assert_eq!((built.world.freight(), built.world.occupancy().0), (0, 0), "{queue}");
        }
    }

    #[test]
    fn slots_of_connections_are_used_again() {
        let json = r#"{"duration_ns": 300000000000, "network": {"topology": "chain",
            "bottleneck": {"rate": 10000000, "delay": 5000000, "loss": {"kind": "bernoulli", "p": 0.02}}},
            "flows": [{"profile": "linux-6", "congestion_control": "cubic",
                       "workload": {"kind": "fetch", "bytes": 3000, "count": 5000}}]}"#;
        let scenario = parse(json).expect("reads");
        let mut built = build(&scenario, 1, &Customs::new(), Shortcuts::ALL).expect("valid");
        built.app.begin(&mut built.world);
        built.world.run(&mut built.app, Time(scenario.duration_ns), u32::MAX);
        let fetches = built.app.journal.fetches.len();
        let (open, slots) = built.world.occupancy();
        assert!(fetches > 1000, "{fetches}");
        assert!(open < 50 && slots < 50, "{open} of {slots}");
    }
}
