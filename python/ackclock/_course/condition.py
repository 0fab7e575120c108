"""Task conditions: requirements on the run of an answer, such as `flows.0.goodput_bps > 3 * flows.1.goodput_bps`.

Conditions are data, so that third-party lessons cannot execute code. The page evaluates the same conditions in
`web/lessons.js`.
"""

from __future__ import annotations

import math
import operator
import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError, one_of, quote

if TYPE_CHECKING:
    from ackclock._results.result import Run

FORM = 'TABLE.ROW.COLUMN, TABLE.max.COLUMN (or min, mean, sum) or a number, "<", "<=", ">", ">=" or "==", and another; a factor before it, as in "3 * flows.1.goodput_bps"'
"""Form of a condition, for messages."""

COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
TABLES = ("flows", "links", "recoveries", "conversations", "fetches", "chunks", "datagrams", "transaction_summary")
"""Tables that lessons run in the browser (`web/worker.js`) can also use. Per-packet tables are excluded."""
OVER: Mapping[str, Callable[[list[Any]], float]] = {"max": max, "min": min, "mean": statistics.fmean, "sum": math.fsum}
"""Words allowed in place of a row index: a function over all rows, which skips missing values."""

_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?"
_TERM = re.compile(
    rf"(?:(?P<factor>{_NUMBER}) ?\* ?)?(?P<table>[a-z_]+)\.(?P<row>[0-9]{{1,6}}|[a-z]+)\.(?P<column>[a-z0-9_]+)|(?P<number>{_NUMBER})"
)


@dataclass(frozen=True, slots=True)
class Term:
    """One side of a condition: a number if no table is named, otherwise a multiple of a value from the run."""

    factor: float
    table: str = ""
    row: int | str = 0
    column: str = ""

    def of(self, run: Run) -> float:
        """Return the value of the term in a run; NaN if there is none."""
        if not self.table:
            return self.factor
        values = [row[self.column] for row in run.rows(self.table)]
        if isinstance(self.row, int):
            value = values[self.row] if self.row < len(values) else None
        else:
            known = [value for value in values if value is not None]
            value = OVER[self.row](known) if known else None
        return math.nan if value is None else self.factor * float(value)

    def in_python(self) -> str:
        """Return the term as an expression for a notebook, where the run is a variable."""
        if not self.table:
            return f"{self.factor:.12g}"
        row = f"[{self.row}]" if isinstance(self.row, int) else f".{self.row}()"
        return f'{"" if self.factor == 1 else f"{self.factor:.12g} * "}run.{self.table}["{self.column}"]{row}'


@dataclass(frozen=True, slots=True)
class Condition:
    """Comparison of two terms."""

    text: str
    left: Term
    sign: str
    right: Term

    def holds(self, run: Run) -> bool:
        """Return whether the run meets the condition; a missing value never does."""
        return COMPARED[self.sign](self.left.of(run), self.right.of(run))

    def found(self, run: Run) -> str:
        """Return the condition in words, with the values from the run."""
        values = [f"{side.of(run) / side.factor:.6g}" for side in (self.left, self.right) if side.table]
        return f"{self.text} (found {' and '.join('no value' if value == 'nan' else value for value in values)})"

    def in_python(self) -> str:
        """Return the condition as an expression for a notebook, where the run is a variable."""
        return f"{self.left.in_python()} {self.sign} {self.right.in_python()}"

    def for_page(self) -> list[Any]:
        """Return the condition in the form read by `web/lessons.js`."""
        sides = [[side.factor, side.table, side.row, side.column] for side in (self.left, self.right)]
        return [sides[0], self.sign, sides[1]]


def read(text: object) -> Condition:
    """Parse a condition.

    Raises
    ------
    InputError
        If it is invalid, or uses an unknown name; the message begins with what was found.

    Examples
    --------
    >>> read("flows.0.goodput_bps > 3 * flows.1.goodput_bps").in_python()
    'run.flows["goodput_bps"][0] > 3 * run.flows["goodput_bps"][1]'
    """
    if not isinstance(text, str):
        raise InputError(f"found {quote(text)}; allowed: {FORM}")
    for sign in COMPARED:
        left, found, right = text.partition(sign)
        if found:
            sides = [_TERM.fullmatch(side.strip()) for side in (left, right)]
            if sides[0] is None or sides[1] is None:
                break
            made = Condition(text, _term(sides[0]), sign, _term(sides[1]))
            if made.left.table or made.right.table:
                return made
            break
    raise InputError(f"found {quote(text)}; allowed: {FORM}")


def _term(found: re.Match[str]) -> Term:
    from ackclock._results.tables import tables

    if found["number"]:
        return Term(float(found["number"]))
    table, row, column = found["table"], found["row"], found["column"]
    if table not in TABLES:
        raise InputError(f"found the table {quote(table)}; allowed: {one_of(table, TABLES)}")
    held = tables()[table]
    if not row.isdigit() and row not in OVER:
        raise InputError(f"found the row {quote(row)}; allowed: a number from 0, or one of {', '.join(OVER)}")
    known = [name for name, kind in held.columns.items() if kind.type != "String"]
    if column not in known:
        raise InputError(f"found the column {quote(column)}; allowed: {one_of(column, known)}")
    return Term(float(found["factor"] or 1), table, int(row) if row.isdigit() else row, column)
