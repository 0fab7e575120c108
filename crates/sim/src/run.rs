//! One run: scenario and seed in, tables out.

use ackclock_core::{Digest, Time};

use crate::build::build;
use crate::capture::Captured;
use crate::error::Error;
use crate::output;
use crate::spec::Scenario;
use crate::table::Table;

/// What a run produced.
pub struct Output {
    /// Digest of every packet that reached a host.
    pub digest: Digest,
    /// All tables, in a fixed order; those that were not asked for have no rows.
    pub tables: Vec<Table>,
    /// Packets seen at the hosts, if a capture was asked for.
    pub captured: Vec<Captured>,
}

impl Output {
    /// The table called `name`.
    pub fn table(&self, name: &str) -> &Table {
        self.tables.iter().find(|t| t.name == name).expect("invariant: the set of tables is fixed")
    }
}

/// Run the scenario with this seed. A pure function: same arguments, same bits.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Output, Error> {
    let mut built = build(scenario, seed)?;
    built.app.begin(&mut built.world);
    built.world.run(&mut built.app, Time(scenario.duration_ns));
    built.app.finish(&mut built.world);
    Ok(Output {
        digest: built.world.digest(),
        captured: built.world.take_captured(),
        tables: output::tables(built),
    })
}

/// Read a scenario.
pub fn parse(json: &str) -> Result<Scenario, Error> {
    Ok(serde_json::from_str(json)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_connections_are_used_again() {
        let json = r#"{"duration_ns": 300000000000, "network": {"topology": "chain",
            "bottleneck": {"rate_bps": 10000000, "delay_ns": 5000000, "loss": {"kind": "bernoulli", "p": 0.02}}},
            "flows": [{"profile": "linux-6", "congestion_control": "cubic",
                       "workload": {"kind": "fetch", "bytes": 3000, "count": 5000}}]}"#;
        let scenario = parse(json).expect("reads");
        let mut built = build(&scenario, 1).expect("valid");
        built.app.begin(&mut built.world);
        built.world.run(&mut built.app, Time(scenario.duration_ns));
        let fetches = built.app.journal.fetches.len();
        let (open, slots) = built.world.occupancy();
        assert!(fetches > 1000, "{fetches}");
        assert!(open < 50 && slots < 50, "{open} of {slots}");
    }
}
