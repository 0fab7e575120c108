//! What the tables of a run mean: each table and each column, with its unit and with what it means that a row has nothing there.
//! A column is declared once, with its value ([`output`]); `ackclock tables` and the reference are made of it.

use crate::report::{output, performance};
use crate::runs::run::{parse, run};
use crate::tables::table::Column;
use crate::workload::video::rows as chunks;

/// A table of a run.
#[derive(Clone, Copy, Debug)]
pub struct TableAbout {
    /// Its name.
    pub name: &'static str,
    /// What a row is, and when there are any.
    pub about: &'static str,
    /// Its columns in order; of `controllers` those that any controller has.
    pub columns: &'static [ColumnAbout],
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct ColumnAbout {
    /// Its name.
    pub name: &'static str,
    /// Unit of its values; empty for names, numbers of things and truth values.
    pub unit: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// What it means that there is nothing; empty: that does not occur.
    pub null: &'static str,
}

/// The types of a table's columns, in order, as the engine hands them out: taken from a run in which nothing happens.
pub fn types() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    let scenario = parse(
        r#"{"duration_ns": 1, "network": {"topology": "chain", "bottleneck": {"rate": 1000000}},
        "flows": [{"profile": "linux-6", "congestion_control": "reno", "workload": {"kind": "bulk"}}]}"#,
    );
    let output = scenario.and_then(|scenario| run(&scenario, 0)).expect("invariant: a scenario of ours");
    let typed = |(name, column): &(&'static str, Column)| (*name, column.kind());
    output.tables.iter().map(|table| (table.name, table.columns.iter().map(typed).collect())).collect()
}

/// A table: a function that makes it, what a row is, and of each column type, name, unit, value, what it says and what it means that there is
/// nothing. Behind the table's name stands which columns are wanted, if not all; behind `+`, columns that only some runs have.
macro_rules! columns {
    (
        $(#[doc = $doc:literal])*
        $vis:vis fn $make:ident($($argument:ident: $type:ty),*) as $about:ident $table:literal $(, $only:ident)?
        $holds:literal
        { $($before:tt)* }
        $($kind:ident $(($given:expr))? $column:ident $([$unit:literal])? = $value:expr, $meaning:literal $(, or $null:literal)?;)*
        $(+ { $($more:ident $([$more_unit:literal])?: $more_meaning:literal $(, or $more_null:literal)?;)* })?
    ) => {
        $(#[doc = $doc])*
        $vis fn $make($($argument: $type),*) -> $crate::tables::table::Table {
            $($before)*
            $crate::tables::table::Table::new($table)$(.only($only))?$(.$kind(stringify!($column), $($given,)? $value))*
        }

        #[doc = concat!("What table `", $table, "` holds.")]
        pub(crate) const $about: $crate::tables::columns::TableAbout = $crate::tables::columns::TableAbout {
            name: $table,
            about: $holds,
            columns: &[
                $($crate::tables::columns::ColumnAbout {
                    name: stringify!($column),
                    unit: concat!($($unit)?),
                    meaning: $meaning,
                    null: concat!($($null)?),
                },)*
                $($($crate::tables::columns::ColumnAbout {
                    name: stringify!($more),
                    unit: concat!($($more_unit)?),
                    meaning: $more_meaning,
                    null: concat!($($more_null)?),
                },)*)?
            ],
        };
    };
}
pub(crate) use columns;

/// All tables, in the order in which a run hands them out.
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
];

#[cfg(test)]
mod tests {
    use ackclock_cc::CongestionControl;

    use super::*;

    fn names(table: &TableAbout) -> Vec<&'static str> {
        table.columns.iter().map(|column| column.name).collect()
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
