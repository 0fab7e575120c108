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
