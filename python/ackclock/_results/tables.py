"""Meaning of the tables of a run: every column with its type, its unit and what null stands for."""

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
"""The engine's name of a type -> that of polars."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name
        In the frame and in the Parquet file.
    type
        As polars calls it: "Float64", "Int64", "UInt32", "UInt8", "Boolean", "String".
    unit
        Of its values; empty for names, numbers of things, shares and truth values.
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
        The attribute of a run, and the name of the Parquet file.
    about
        What a row is, and when there are any.
    columns
        By name, in order.
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
"""Columns that the frames have and the engine's tables do not: table -> column behind which it stands -> column."""


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
"""The table that is not the engine's."""


@cache
def tables() -> Mapping[str, Table]:
    """All tables that a run can leave, in order.

    The tables of a batch (`ackclock.run_batch`) begin with a further column, `seed`.

    Returns
    -------
    mapping of str to Table
        By name.
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
