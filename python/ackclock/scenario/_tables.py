"""The classes of the tables that the engine describes; `make docs` writes their types to `_tables.pyi`."""

from __future__ import annotations

from ackclock.scenario import _rules
from ackclock.scenario._described import family, made, one_of, single

Queue = one_of(family("queues", _rules.ALL))
Loss = one_of(family("losses", _rules.ALL))
Capacity = one_of(family("capacities", _rules.ALL))
Workload = one_of(family("workloads", _rules.ALL))
for _kind in ("reorder", "wifi-jitter", "ecn-fault", "link", "host", "stack"):
    single(_kind, _rules.ALL)

globals().update(made)
__all__ = list(made)
