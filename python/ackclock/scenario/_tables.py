"""The classes of the tables that the engine describes; `make docs` writes their types to `_tables.pyi`."""

from __future__ import annotations

from ackclock.scenario import _rules
from ackclock.scenario._described import family, one_of

_QUEUES = family("queues", _rules.QUEUES)
Queue = one_of(_QUEUES)

_ALL = {**_QUEUES}
globals().update(_ALL)
__all__ = list(_ALL)
