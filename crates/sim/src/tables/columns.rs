//! Description of a run's tables: every table and every column, with its unit and the meaning of an empty cell. A
//! column is declared once, with its value (`columns!`); `ackclock tables` and the reference are generated from these
//! declarations. The linux backend fills the declared columns from its own rows; mismatches are compile-time errors.

/// A table of a run.
#[derive(Clone, Copy, Debug)]
pub struct TableAbout {
    /// Table name.
    pub name: &'static str,
    /// Meaning of a row, and the condition under which the table has rows.
    pub about: &'static str,
    /// Columns in order; for `controllers`, those common to all controllers.
    pub columns: &'static [ColumnAbout],
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct ColumnAbout {
    /// Column name.
    pub name: &'static str,
    /// Value type, as returned by the engine; empty for a numeric column present only in some runs.
    pub kind: &'static str,
    /// Value unit; empty for names, ordinals and truth values.
    pub unit: &'static str,
    /// Meaning of a value.
    pub meaning: &'static str,
    /// Meaning of an empty cell; empty if there is none.
    pub null: &'static str,
}

impl TableAbout {
    /// The declared column called `name`, or `None`.
    const fn column(&self, name: &str) -> Option<&ColumnAbout> {
        let mut at = 0;
        while at < self.columns.len() {
            if equal(self.columns[at].name, name) {
                return Some(&self.columns[at]);
            }
            at += 1;
        }
        None
    }

    /// Whether one of `tables` has this table's name.
    pub const fn is_one_of(&self, tables: &[TableAbout]) -> bool {
        let mut at = 0;
        while at < tables.len() {
            if equal(tables[at].name, self.name) {
                return true;
            }
            at += 1;
        }
        false
    }

    /// Whether column `name` is declared, with this type.
    pub const fn declares(&self, name: &str, kind: &str) -> bool {
        matches!(self.column(name), Some(column) if equal(column.kind, kind))
    }

    /// Whether `column` can be added to the declared ones: its name is new, and its meaning ends with a full stop.
    pub const fn admits(&self, column: &ColumnAbout) -> bool {
        matches!(column.meaning.as_bytes(), [.., b'.']) && self.column(column.name).is_none()
    }
}

const fn equal(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// Declare a table: the function that builds it, the type of its rows, and for each column its type, name, unit,
/// value, meaning and the meaning of null. The table's name may be followed by an expression that selects columns. A
/// `+` precedes columns present only in some runs.
///
/// With `of`, fill a declared table from other rows. Its columns have only type, name and value, and the compiler
/// refuses one that is not declared; a column with a meaning is one that only this backend has.
#[doc(hidden)]
#[macro_export]
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

        #[doc = concat!("Rows and columns of table `", $table, "`.")]
        pub const $about: $crate::tables::columns::TableAbout = $crate::tables::columns::TableAbout {
            name: $table,
            about: $holds,
            columns: &[
                $($crate::tables::columns::ColumnAbout {
                    name: stringify!($column),
                    kind: $crate::handed_out!($kind),
                    unit: concat!($($unit)?),
                    meaning: $meaning,
                    null: concat!($($null)?),
                },)*
                $($($crate::tables::columns::ColumnAbout {
                    name: stringify!($more),
                    kind: "",
                    unit: concat!($($more_unit)?),
                    meaning: $more_meaning,
                    null: concat!($($more_null)?),
                },)*)?
            ],
        };
    };
    (
        $(#[doc = $doc:literal])*
        $vis:vis fn $make:ident($($argument:ident: $type:ty),* $(,)?) of $about:path
        { $($before:tt)* }
        $($kind:ident $(($given:expr))? $column:ident $([$unit:literal])? = $value:expr $(, $meaning:literal)?;)*
    ) => {
        $(#[doc = $doc])*
        $vis fn $make($($argument: $type),*) -> $crate::tables::table::Table {
            $($crate::declared!($about, $kind $column $([$unit])? $(, $meaning)?);)*
            $($before)*
            $crate::tables::table::Table::new($about.name)$(.$kind(stringify!($column), $($given,)? $value))*
        }
    };
}
pub(crate) use columns;

/// Check a declared table's column at compile time.
#[doc(hidden)]
#[macro_export]
macro_rules! declared {
    ($about:path, $kind:ident $column:ident) => {
        const _: () = assert!(
            $about.declares(stringify!($column), $crate::handed_out!($kind)),
            concat!(stringify!($column), ": no column of this table has this name and type"),
        );
    };
    ($about:path, $kind:ident $column:ident $([$unit:literal])?, $meaning:literal) => {
        const _: () = assert!(
            $about.admits(&$crate::tables::columns::ColumnAbout {
                name: stringify!($column),
                kind: $crate::handed_out!($kind),
                unit: concat!($($unit)?),
                meaning: $meaning,
                null: "",
            }),
            concat!(stringify!($column), ": the table declares it, or its meaning is no sentence"),
        );
    };
}

/// Type in which values of a declared column type are returned.
#[doc(hidden)]
#[macro_export]
macro_rules! handed_out {
    (time) => {
        "f8"
    };
    (span) => {
        "f8"
    };
    (flag) => {
        "bool"
    };
    (text) => {
        "str"
    };
    (names) => {
        "str"
    };
    (ssthresh) => {
        "n4"
    };
    ($kind:ident) => {
        stringify!($kind)
    };
}
