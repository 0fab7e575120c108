//! Typed columns of a run's output. A table is built column by column from rows of plain structs.

use ackclock_cc::Window;
use ackclock_core::{Span, Time};

/// A column. Two columns are equal if their bits are identical, so NaN equals NaN.
#[derive(Clone, Debug)]
pub enum Column {
    /// Floats.
    F8(Vec<f64>),
    /// Signed integers.
    I8(Vec<i64>),
    /// Unsigned integers.
    U4(Vec<u32>),
    /// Unsigned integers; [`NOTHING`] marks a missing value.
    N4(Vec<u32>),
    /// Small unsigned integers.
    U1(Vec<u8>),
    /// Truth values, 0 or 1.
    Bool(Vec<u8>),
    /// Text: each row is an index into the names.
    Text {
        /// Index of each row's name.
        codes: Vec<u32>,
        /// The distinct names.
        names: Vec<String>,
    },
}

impl Column {
    /// Type name of the column.
    pub fn kind(&self) -> &'static str {
        match self {
            Column::F8(_) => "f8",
            Column::I8(_) => "i8",
            Column::U4(_) => "u4",
            Column::N4(_) => "n4",
            Column::U1(_) => "u1",
            Column::Bool(_) => "bool",
            Column::Text { .. } => "str",
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Column::F8(v) => v.len(),
            Column::I8(v) => v.len(),
            Column::U4(v) | Column::N4(v) => v.len(),
            Column::U1(v) | Column::Bool(v) => v.len(),
            Column::Text { codes, .. } => codes.len(),
        }
    }

    /// Whether the column has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Append the rows of another column of the same type.
    fn extend(&mut self, other: Column) {
        match (self, other) {
            (Column::F8(a), Column::F8(b)) => a.extend(b),
            (Column::I8(a), Column::I8(b)) => a.extend(b),
            (Column::U4(a), Column::U4(b)) | (Column::N4(a), Column::N4(b)) => a.extend(b),
            (Column::U1(a), Column::U1(b)) | (Column::Bool(a), Column::Bool(b)) => a.extend(b),
            (Column::Text { codes, names }, Column::Text { codes: more, names: new }) => {
                let recoded: Vec<u32> = new
                    .into_iter()
                    .map(|name| {
                        let at = names.iter().position(|n| *n == name).unwrap_or_else(|| {
                            names.push(name);
                            names.len() - 1
                        });
                        at as u32
                    })
                    .collect();
                codes.extend(more.into_iter().map(|c| recoded[c as usize]));
            }
            _ => unreachable!("invariant: one table, one type a column"),
        }
    }
}

impl PartialEq for Column {
    fn eq(&self, other: &Column) -> bool {
        match (self, other) {
            (Column::F8(a), Column::F8(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
            }
            (Column::I8(a), Column::I8(b)) => a == b,
            (Column::U4(a), Column::U4(b)) | (Column::N4(a), Column::N4(b)) => a == b,
            (Column::U1(a), Column::U1(b)) | (Column::Bool(a), Column::Bool(b)) => a == b,
            (Column::Text { codes, names }, Column::Text { codes: codes_b, names: names_b }) => {
                codes == codes_b && names == names_b
            }
            _ => false,
        }
    }
}

/// Marks a missing value in a column of counts.
pub const NOTHING: u32 = u32::MAX;

/// A named table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Table name.
    pub name: &'static str,
    /// Name and values of each column; all columns have the same length.
    pub columns: Vec<(&'static str, Column)>,
    /// Columns accepted by the table; all if empty.
    only: &'static [&'static str],
}

impl Table {
    /// Return a table without columns.
    pub fn new(name: &'static str) -> Table {
        Table::of(name, Vec::new())
    }

    /// Return a table with these columns.
    pub fn of(name: &'static str, columns: Vec<(&'static str, Column)>) -> Table {
        Table { name, columns, only: &[] }
    }

    /// Restrict the table to these columns; an empty list means no restriction. Values of other columns are never
    /// computed.
    pub fn only(self, only: &'static [&'static str]) -> Table {
        Table { only, ..self }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, c)| c.len())
    }

    /// The column called `name`, or `None`.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(n, _)| *n == name).map(|(_, c)| c)
    }

    /// The floats of column `name`; empty if there is no such column.
    pub fn floats(&self, name: &str) -> &[f64] {
        match self.column(name) {
            Some(Column::F8(v)) => v,
            _ => &[],
        }
    }

    /// The integers of column `name`; empty if there is no such column.
    pub fn integers(&self, name: &str) -> &[i64] {
        match self.column(name) {
            Some(Column::I8(v)) => v,
            _ => &[],
        }
    }

    fn with(mut self, name: &'static str, column: impl FnOnce() -> Column) -> Table {
        if self.only.is_empty() || self.only.contains(&name) {
            let column = column();
            debug_assert!(self.columns.is_empty() || column.len() == self.rows(), "{name}");
            self.columns.push((name, column));
        }
        self
    }

    /// Add a column of floats.
    pub fn f8(self, name: &'static str, values: impl Iterator<Item = f64>) -> Table {
        self.floats_of(name, &mut rows_of(values, 0.0))
    }

    /// Add a timestamp column, in seconds.
    pub fn time(self, name: &'static str, values: impl Iterator<Item = Time>) -> Table {
        self.times_of(name, &mut rows_of(values, Time::ZERO))
    }

    /// Add a column of durations in seconds.
    pub fn span(self, name: &'static str, values: impl Iterator<Item = Span>) -> Table {
        self.spans_of(name, &mut rows_of(values, Span::ZERO))
    }

    /// Add a column of signed integers.
    pub fn i8(self, name: &'static str, values: impl Iterator<Item = u64>) -> Table {
        self.integers_of(name, &mut rows_of(values, 0))
    }

    /// Add a column of counts.
    pub fn u4(self, name: &'static str, values: impl Iterator<Item = u32>) -> Table {
        self.counts_of(name, &mut rows_of(values, 0))
    }

    /// Add a column of counts that may be missing.
    pub fn n4(self, name: &'static str, values: impl Iterator<Item = Option<u32>>) -> Table {
        self.optional_of(name, &mut rows_of(values, None))
    }

    /// Add a column of slow-start thresholds; missing where none is set.
    pub fn ssthresh(self, name: &'static str, values: impl Iterator<Item = u32>) -> Table {
        self.thresholds_of(name, &mut rows_of(values, 0))
    }

    /// Add a column of small unsigned integers.
    pub fn u1(self, name: &'static str, values: impl Iterator<Item = u8>) -> Table {
        self.small_of(name, &mut rows_of(values, 0))
    }

    /// Add a column of truth values.
    pub fn flag(self, name: &'static str, values: impl Iterator<Item = bool>) -> Table {
        self.flags_of(name, &mut rows_of(values, false))
    }

    /// Add a column of text from a fixed list of names.
    pub fn text(self, name: &'static str, names: &[&str], codes: impl Iterator<Item = u32>) -> Table {
        self.text_of(name, names, &mut rows_of(codes, 0))
    }

    // One function body per type, because separate loops for four hundred columns took a quarter of the compile time.

    fn floats_of(self, name: &'static str, rows: Rows<f64>) -> Table {
        self.with(name, || Column::F8(rows()))
    }

    fn times_of(self, name: &'static str, rows: Rows<Time>) -> Table {
        self.with(name, || Column::F8(cells(rows, seconds)))
    }

    fn spans_of(self, name: &'static str, rows: Rows<Span>) -> Table {
        let seconds = |s: Span| if s == Span::MAX { f64::NAN } else { s.as_secs() };
        self.with(name, || Column::F8(cells(rows, seconds)))
    }

    fn integers_of(self, name: &'static str, rows: Rows<u64>) -> Table {
        self.with(name, || Column::I8(cells(rows, |v| v as i64)))
    }

    fn counts_of(self, name: &'static str, rows: Rows<u32>) -> Table {
        self.with(name, || Column::U4(rows()))
    }

    fn optional_of(self, name: &'static str, rows: Rows<Option<u32>>) -> Table {
        self.with(name, || Column::N4(cells(rows, |v| v.unwrap_or(NOTHING))))
    }

    fn thresholds_of(self, name: &'static str, rows: Rows<u32>) -> Table {
        self.with(name, || Column::N4(cells(rows, |v| if v < Window::INFINITE { v } else { NOTHING })))
    }

    fn small_of(self, name: &'static str, rows: Rows<u8>) -> Table {
        self.with(name, || Column::U1(rows()))
    }

    fn flags_of(self, name: &'static str, rows: Rows<bool>) -> Table {
        self.with(name, || Column::Bool(cells(rows, u8::from)))
    }

    fn text_of(self, name: &'static str, names: &[&str], rows: Rows<u32>) -> Table {
        let names = names.iter().map(|n| n.to_string()).collect();
        self.with(name, || Column::Text { codes: rows(), names })
    }

    /// Add a column of NaN with `rows` rows, unless a column of this name exists.
    pub fn fill(&mut self, name: &'static str, rows: usize) {
        if self.column(name).is_none() {
            self.columns.push((name, Column::F8(vec![f64::NAN; rows])));
        }
    }

    /// Append the rows of a table of the same name. A column present in only one of the tables is filled with NaN
    /// in the rows of the other (variables of different controllers).
    fn append(&mut self, other: Table) {
        let (rows, more) = (self.rows(), other.rows());
        for (name, column) in other.columns {
            self.fill(name, rows);
            let into = self.columns.iter_mut().find(|(n, _)| *n == name).expect("invariant: filled above");
            into.1.extend(column);
        }
        for (_, column) in &mut self.columns {
            if column.len() == rows && more > 0 {
                column.extend(Column::F8(vec![f64::NAN; more]));
            }
        }
    }

    /// Add a column of text with a different name in each row.
    pub fn names(self, name: &'static str, names: Vec<String>) -> Table {
        let codes = (0..names.len() as u32).collect();
        self.with(name, || Column::Text { codes, names })
    }
}

/// Source of the rows of a column.
type Rows<'a, T> = &'a mut dyn FnMut() -> Vec<T>;

fn rows_of<T: Copy>(rows: impl Iterator<Item = T>, blank: T) -> impl FnMut() -> Vec<T> {
    let mut rows = Some(rows);
    move || {
        let Some(rows) = rows.take() else { return Vec::new() };
        let (least, most) = rows.size_hint();
        if most != Some(least) {
            let mut column = Vec::with_capacity(least);
            rows.for_each(|row| column.push(row));
            return column;
        }
        // branch-free loop, for iterators of known length
        let mut column = vec![blank; least];
        column.iter_mut().zip(rows).for_each(|(cell, row)| *cell = row);
        column
    }
}

fn cells<T: Copy, U>(rows: Rows<T>, cell: impl Fn(T) -> U) -> Vec<U> {
    rows().into_iter().map(cell).collect()
}

/// Combine the tables of several runs, with rows in run order. The leading column `key` contains the
/// number given with each run.
pub fn concatenate(key: &'static str, runs: Vec<(u64, Vec<Table>)>) -> Vec<Table> {
    let mut all: Vec<Table> = Vec::new();
    for (number, tables) in runs {
        let seeded = tables.into_iter().map(|mut table| {
            table.columns.insert(0, (key, Column::I8(vec![number as i64; table.rows()])));
            table
        });
        if all.is_empty() {
            all.extend(seeded);
            continue;
        }
        for (into, table) in all.iter_mut().zip(seeded) {
            debug_assert_eq!(into.name, table.name);
            into.append(table);
        }
    }
    all
}

/// Seconds; NaN for `Time::NEVER`.
pub fn seconds(t: Time) -> f64 {
    if t == Time::NEVER {
        f64::NAN
    } else {
        t.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concatenation_recodes_text_and_keeps_the_order_of_the_runs() {
        let run = |names: &[&str], codes: [u32; 2]| {
            vec![Table::new("t").u4("n", [1, 2].into_iter()).text("s", names, codes.into_iter())]
        };
        let all = concatenate("seed", vec![(7, run(&["a", "b"], [0, 1])), (3, run(&["b", "c"], [0, 1]))]);
        assert_eq!(all[0].columns[0], ("seed", Column::I8(vec![7, 7, 3, 3])));
        let names = ["a", "b", "c"].map(String::from).to_vec();
        assert_eq!(all[0].column("s"), Some(&Column::Text { codes: vec![0, 1, 1, 2], names }));
    }
    #[test]
    fn columns_that_only_some_runs_have_are_empty_in_the_others() {
        let run = |name: &'static str, values: &[f64]| {
            vec![Table::new("t").u4("n", 1..1 + values.len() as u32).f8(name, values.iter().copied())]
        };
        let all =
            concatenate("seed", vec![(1, run("a", &[1.0, 2.0])), (2, run("b", &[3.0])), (3, run("b", &[]))]);
        let seen = |name| all[0].floats(name).iter().map(|v| v.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!((seen("a"), seen("b")), ("1 2 NaN".into(), "NaN NaN 3".into()));
        assert_eq!(all[0].rows(), 3);
    }
}
