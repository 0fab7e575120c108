"""Descriptions of a run's tables: every column with its type and unit, and the meaning of null."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from ackclock import _engine

__all__ = ["Column", "Table", "tables"]

TYPES = {
    "f8": "Float64",
    "i8": "Int64",
    "u4": "UInt32",
    "n4": "UInt32",
    "u1": "UInt8",
    "bool": "Boolean",
    "str": "String",
}
"""Engine's name for a type -> polars' name."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name
        Name in the frame and in the Parquet file.
    type
        Name of the polars type: "Float64", "Int64", "UInt32", "UInt8", "Boolean", "String".
    unit
        Unit of its values; empty for names, counts, fractions and booleans.
    meaning
        Meaning of the column.
    null
        Meaning of null; empty if there are no nulls.
    """

    name: str
    type: str
    unit: str
    meaning: str
    null: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of a run.

    Parameters
    ----------
    name
        Attribute of a run, and name of the Parquet file.
    about
        Meaning of a row, and the condition under which rows exist.
    columns
        Columns by name, in order.
    """

    name: str
    about: str
    columns: Mapping[str, Column]


_ADDED = {
    "flows": {
        "group": Column(name="name", type="String", unit="", meaning="Name of the group.", null=""),
        "name": Column(
            name="congestion_control",
            type="String",
            unit="",
            meaning="Controller, as the scenario names it.",
            null="the workload has none (UDP)",
        ),
    },
    "performance": {
        "number": Column(
            name="name", type="String", unit="", meaning="Name of the group.", null="the row is about the run"
        )
    },
}
"""Frame columns missing from the engine's tables: table -> preceding column -> column."""


MESSAGES = Table(
    name="messages",
    about="A line that a controller in C said by `printk`; of a single run, not of a batch.",
    columns=MappingProxyType(
        {
            "t_s": Column(name="t_s", type="Float64", unit="s", meaning="Simulated time.", null=""),
            "text": Column(name="text", type="String", unit="", meaning="The line.", null=""),
        }
    ),
)
"""Table that does not come from the engine."""


@cache
def tables() -> Mapping[str, Table]:
    """All tables that a run can have, in order.

    The tables of a batch (`ackclock.run_batch`) start with an additional column, `seed`.

    Returns
    -------
    mapping of str to Table
        Tables by name.
    """
    found = {}
    for table, about, described in _engine.columns():
        columns = {}
        for name, kind, unit, meaning, null in described:
            columns[name] = Column(name=name, type=TYPES[kind], unit=unit, meaning=meaning, null=null)
            behind, last = _ADDED.get(table, {}), name
            while (added := behind.get(last)) is not None:
                columns[added.name] = added
                last = added.name
        found[table] = Table(name=table, about=about, columns=MappingProxyType(columns))
    found[MESSAGES.name] = MESSAGES
    return MappingProxyType(found)
