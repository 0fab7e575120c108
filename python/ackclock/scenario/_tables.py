"""The classes of the tables that the engine describes; `make docs` writes their types to `_tables.pyi`."""

from __future__ import annotations

from ackclock.scenario import _rules
from ackclock.scenario._described import family, named, one_of, single

_QUEUES = family("queues", _rules.QUEUES)
_LOSSES = family("losses", _rules.LOSSES)
_CAPACITIES = family("capacities", _rules.CAPACITIES)
_WORKLOADS = family("workloads", _rules.WORKLOADS)
Queue = one_of(_QUEUES)
Loss = one_of(_LOSSES)
Capacity = one_of(_CAPACITIES)
Workload = one_of(_WORKLOADS)

_ALL = named(*_QUEUES, *_LOSSES, *_CAPACITIES, *_WORKLOADS, single("reorder"), single("stack", _rules.STACK))
globals().update(_ALL)
__all__ = list(_ALL)
