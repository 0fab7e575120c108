//! Meaning of a run's tables: each table and each column, with its unit and the meaning of an empty cell. A
//! column is declared once, with its value (`columns!`); `ackclock tables` and the reference are generated from these
//! declarations.

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

/// Declare a table: the function that builds it, the type of its rows, and for each column its type, name, unit,
/// value, meaning and the meaning of null. The table's name may be followed by an expression that selects columns. A
/// `+` precedes columns present only in some runs.
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
        pub(crate) const $about: $crate::tables::columns::TableAbout = $crate::tables::columns::TableAbout {
            name: $table,
            about: $holds,
            columns: &[
                $($crate::tables::columns::ColumnAbout {
                    name: stringify!($column),
                    kind: $crate::tables::columns::handed_out!($kind),
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
}
pub(crate) use columns;

/// Type in which values of a declared column type are returned.
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
pub(crate) use handed_out;
