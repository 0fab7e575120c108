"""Classes for the tables described by the engine; `make docs` writes their types to `_tables.pyi`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

from ackclock.errors import UnavailableError
from ackclock.scenario._base import OLDER, Table, made, schema
from ackclock.scenario._parts import FlowsBase, NetworkBase

NAMES = {
    ("losses", "none"): "NoLoss",
    ("arrivals", "periodic"): "Regular",
    ("slow starts", "classic"): "ClassicSlowStart",
    ("slow starts", "hystart"): "HyStart",
    ("slow starts", "hystart++"): "HyStartPlusPlus",
    ("slow starts", "search"): "SearchSlowStart",
    ("slow starts", "limited"): "LimitedSlowStart",
}
"""Classes with a name that differs from their kind."""

BASES: Mapping[str, type[Table]] = {"flows": FlowsBase, "network": NetworkBase}
"""Tables that have properties in addition to their keys."""


def family(name: str) -> tuple[type[Table], ...]:
    """Return the classes of a family, one for each kind.

    Parameters
    ----------
    name
        Name in the engine's registry.
    """
    if name not in schema():
        raise UnavailableError(OLDER.format(name))
    return tuple(_class(name, entry) for entry in schema()[name])


def single(kind: str) -> type[Table]:
    """Return the class of a table outside families."""
    entry = next((entry for entry in schema()["tables"] if entry["kind"] == kind), None)
    if entry is None:
        raise UnavailableError(OLDER.format(kind))
    return _class(None, entry)


def _class(group: str | None, entry: Mapping[str, Any]) -> type[Table]:
    kind = entry["kind"]
    if (group, kind) not in made:
        keys = {key["name"]: key for key in entry["keys"]}
        if group is not None:
            keys = {"kind": {"name": "kind", "takes": {"takes": "kind"}, "absent": kind, "about": ""}, **keys}
        name = NAMES.get((group or "", kind)) or "".join(part.capitalize() for part in kind.split("-"))
        base = BASES.get(kind, Table) if group is None else Table
        about = {"__doc__": entry["about"], "__module__": "ackclock.scenario", "__slots__": ()}
        made[group, kind] = type(name, (base,), {**about, "kinds": (group, kind), "keys": keys})
    return made[group, kind]


FAMILIES = tuple(
    name for name, held in schema().items() if name not in ("tables", "pcc", "quinn", "datagrams") and held
)
Queue, Loss, Capacity, Workload, Distribution = (
    Union[family(name)]  # noqa: UP007 - made of a list
    for name in ("queues", "losses", "capacities", "workloads", "distributions")
)
for _name in FAMILIES:
    family(_name)
for _entry in schema()["tables"]:
    if _entry["kind"] != "scenario":
        single(_entry["kind"])

__all__ = [table.__name__ for table in made.values()]
globals().update({table.__name__: table for table in made.values()})
