"""Rows of the evaluation, in the order of the RFC's sections, one file per kind of question."""

from __future__ import annotations

from ackclock.evaluate.rows import collapse, datacentre, harm, paths, queues, search, sharing, short, text
from ackclock.evaluate.situation import Row


def rows() -> tuple[Row, ...]:
    """Return every row, in order."""
    found = {
        row.id: row
        for module in (collapse, queues, sharing, short, harm, paths, datacentre, search, text)
        for row in module.ROWS
    }
    return tuple(found[key] for key in sorted(found, key=_order))


def _order(key: str) -> tuple[bool, int]:
    return (not key.isdecimal(), int(key.lstrip("x")))
