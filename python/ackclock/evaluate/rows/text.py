"""Rows that only the author can answer, and rows that do not apply. Rows 11 and 24."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ackclock.evaluate.situation import Row

STATEMENTS = {
    "5.3.1": "clearly explain any deviations from [RFC2914] and [RFC7141]",
    "5.3.2": "discuss whether it allows for incremental deployment",
    "8": "security considerations",
}
"""RFC section -> topic to be addressed by the author."""

ROWS = (
    Row(
        id="11", section="5.3", level="MUST", title="The author's statements",
        quote="clearly explain any deviations … discuss whether it allows for incremental deployment",
        applies="text that only its author can write",
    ),
    Row(
        id="24", section="7.10", level="MUST", title="Multipath",
        quote="MUST evaluate the harm to performance resulting from a change in the path",
        applies="no multipath transport is here; row 23 changes the path below a flow",
    ),
)  # fmt: skip


def answered(row: Row, sections: Sequence[str]) -> Row:
    """Return the row for the author's statements, which lists missing ones."""
    if row.id != "11":
        return row
    missing = [f"§{s}" for s in STATEMENTS if s not in sections]
    if not missing:
        return replace(row, applies="the author has answered all of it, below; no measurement can judge that")
    return replace(row, applies=f"{row.applies}; missing: {', '.join(missing)}; --statement FILE")
