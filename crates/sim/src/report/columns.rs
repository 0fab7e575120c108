//! All tables of a run. A column is declared once, with its value ([`output`]); `ackclock tables` and the reference
//! are generated from the declarations.

use super::{output, performance};
use crate::tables::columns::TableAbout;
use crate::workload::video::rows as chunks;

/// All tables, in the order in which a run returns them.
pub const TABLES: &[TableAbout] = &[
    output::FLOWS,
    performance::PERFORMANCE,
    output::FETCHES,
    output::RECOVERIES,
    output::LINKS,
    output::HOSTS,
    output::DESTINATIONS,
    output::GOODPUT,
    output::QUEUE_SAMPLES,
    output::SAMPLES,
    output::LIMITS,
    output::DROPS,
    output::ACKS,
    output::CLIENTS,
    output::CONTROLLERS,
    output::DATAGRAMS,
    output::INTERVALS,
    chunks::CHUNKS,
    output::TRANSACTIONS,
    output::TRANSACTION_SUMMARY,
    output::TRANSACTION_TIMES,
    output::CONVERSATIONS,
];

/// The column types of a table, in order, as returned by every run.
pub fn types() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    let typed = |table: &TableAbout| {
        let fixed = table.columns.iter().filter(|column| !column.kind.is_empty());
        (table.name, fixed.map(|column| (column.name, column.kind)).collect())
    };
    TABLES.iter().map(typed).collect()
}

#[cfg(test)]
mod tests {
    use ackclock_cc::CongestionControl;

    use super::*;
    use crate::{parse, run, Column};

    fn names(table: &TableAbout) -> Vec<&'static str> {
        table.columns.iter().map(|column| column.name).collect()
    }

    #[test]
    fn types_are_those_of_a_run() {
        let scenario = parse(
            r#"{"duration_ns": 1, "network": {"topology": "chain", "bottleneck": {"rate": 1000000}},
            "flows": [{"profile": "linux-6", "congestion_control": "reno", "workload": {"kind": "bulk"}}]}"#,
        );
        let output = run(&scenario.expect("a scenario"), 0).expect("a run");
        let typed = |(name, column): &(&'static str, Column)| (*name, column.kind());
        let of_run: Vec<(_, Vec<_>)> = output
            .tables
            .iter()
            .map(|table| (table.name, table.columns.iter().map(typed).collect()))
            .collect();
        assert_eq!(types(), of_run);
    }

    #[test]
    fn every_column_that_a_run_hands_out_is_described_and_no_other() {
        let types = types();
        assert_eq!(
            types.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            TABLES.iter().map(|table| table.name).collect::<Vec<_>>()
        );
        for ((name, columns), table) in types.iter().zip(TABLES) {
            let handed_out: Vec<_> = columns.iter().map(|(column, _)| *column).collect();
            let described = names(table);
            let fixed = if *name == "controllers" { handed_out.len() } else { described.len() };
            assert_eq!(handed_out, described[..fixed], "{name}");
        }
    }

    #[test]
    fn every_variable_of_every_controller_is_described() {
        let own: Vec<&str> = ackclock_cc::controller::ENTRIES
            .iter()
            .flat_map(|entry| {
                let made =
                    ackclock_cc::Controller::build(entry.name, &Default::default(), Default::default());
                made.expect("invariant: controllers can be made without options").needs().vars
            })
            .copied()
            .collect();
        let table = TABLES.iter().find(|table| table.name == "controllers").expect("it is one of the tables");
        let described = names(table);
        let fixed = types().iter().find(|(name, _)| *name == "controllers").map_or(0, |(_, all)| all.len());
        for name in &own {
            assert!(described[fixed..].contains(name), "{name}: no line in `tables!`");
        }
        for name in &described[fixed..] {
            assert!(own.contains(name), "{name}: no controller has it");
        }
    }

    #[test]
    fn units_and_nulls_fit_the_types() {
        for ((table, columns), about) in types().iter().zip(TABLES) {
            for ((name, kind), column) in columns.iter().zip(about.columns) {
                let can_be_null = ["f8", "n4"].contains(kind);
                assert!(column.null.is_empty() || can_be_null, "{table}.{name}: {kind} is never null");
                assert!(*kind != "n4" || !column.null.is_empty(), "{table}.{name}: when is it null?");
                let unit = [("_s", "s"), ("_ns", "ns"), ("_bps", "bit/s"), ("_segments", "segments")];
                for (_, unit) in unit.iter().filter(|(end, _)| name.ends_with(end)) {
                    assert_eq!(&column.unit, unit, "{table}.{name}");
                }
                assert!(column.meaning.ends_with(['.', '"']), "{table}.{name}: a sentence");
            }
        }
    }
}
