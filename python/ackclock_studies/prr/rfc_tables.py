"""The ideal path: every rule, ACK by ACK, with the rows printed in the RFCs. Fully deterministic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ackclock.report import Block, Prose, Table, TableCell, items, paragraph
from ackclock.study import (
    Chapter,
    Data,
    Experiment,
    Plan,
    Tables,
)
from ackclock_studies.prr.published import (
    GENERAL_REMARKS,
    PATTERNS,
    SLIDE_ROWS,
    TABLES,
    Pattern,
    PublishedRule,
    PublishedTable,
    SlideRow,
)


def ideal(
    rule: str,
    *,
    window: int,
    lost: tuple[int, ...],
    ssthresh: int | None = None,
    recover_fs: int | None = None,
    more_data: bool = True,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Run one episode on the ideal path.

    Parameters
    ----------
    rule
        Registry name.
    window
        cwnd = FlightSize = pipe at the start, segments.
    lost
        0-based numbers of the lost segments.
    ssthresh
        Target window; half of `window` if not given.
    recover_fs
        PRR's denominator, if it is not the rule's.
    more_data
        Whether there is new data to send.

    Returns
    -------
    tuple
        One row per ACK, and the episode's summary.
    """
    from ackclock import _engine

    table = _engine.ideal_path(rule, window, list(lost), ssthresh, recover_fs, more_data)
    return pl.DataFrame(table["rows"]), dict(table["summary"])


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Row of a published table, and its computed counterpart."""

    rule: PublishedRule
    name: str
    printed: tuple[str, ...]
    computed: tuple[str, ...]

    @property
    def differs(self) -> list[bool]:
        """Printed and computed rows, cell by cell."""
        return [a != b for a, b in zip(self.printed, self.computed, strict=True)]


def compare(table: PublishedTable) -> Iterator[Row]:
    """Compute every row of a published table."""
    for rule in table.rules:
        rows, _ = ideal(
            rule.rule,
            window=table.window,
            lost=table.lost,
            ssthresh=table.ssthresh,
            recover_fs=table.recover_fs if rule.rule.startswith("prr") else None,
        )
        by_ack = {row["ack"]: row for row in rows.iter_rows(named=True)}
        for name, printed in rule.rows.items():
            computed = tuple((str(by_ack[ack][name]) or "·") if ack in by_ack else "" for ack in table.acks)
            yield Row(rule=rule, name=name, printed=printed, computed=computed)


def in_order(cells: Sequence[str], row: Sequence[str]) -> bool:
    """Return whether the cells occur in a row in this order, with any cells between them."""
    rest = iter(row)
    return all(cell in rest for cell in cells)


@dataclass(frozen=True, kw_only=True, slots=True)
class Slide:
    """A row on the slides and its counterpart in RFC 6937, printed and computed."""

    row: SlideRow
    printed: bool
    computed: bool


def slides() -> list[Slide]:
    """Rows on the slides: whether the cells occur in order in the RFC's row, as printed and as computed here."""
    found = []
    for slide in SLIDE_ROWS:
        own = next(row for row in compare(slide.table) if (row.rule.rule, row.name) == (slide.rule, slide.row))
        found.append(
            Slide(row=slide, printed=in_order(slide.cells, own.printed), computed=in_order(slide.cells, own.computed))
        )
    return found


def slides_table() -> Table:
    """The slides' rows."""
    found = slides()
    agree = sum(s.printed for s in found)
    return Table(
        caption=(
            f"IETF-84 slides, algorithm comparisons: {agree} of {len(found)} rows, as far as the slides' text can be read, are those of RFC 6937 as printed, cell by cell in order. The text has lost the columns, "
            "and some cells. Where a row is that of the RFC but not the computed one, the slides have the RFC's misprint."
        ),
        header=("losses", "rule", "row", "the slides' cells", "as the RFC prints", "as computed here"),
        rows=tuple(
            (
                TableCell(text=s.row.table.title, kind="head"),
                TableCell(text=s.row.rule, kind="text"),
                s.row.row,
                TableCell(text=" ".join(s.row.cells), kind="text"),
                *(
                    TableCell(text="yes" if ok else "no", kind="agrees" if ok else "differs")
                    for ok in (s.printed, s.computed)
                ),
            )
            for s in found
        ),
        dense=True,
    )


def episode(rule: str, pattern: Pattern) -> dict[str, Any]:
    """Summary of one rule under one loss pattern."""
    _, summary = ideal(rule, window=pattern.window, lost=pattern.lost, more_data=pattern.more_data)
    return summary


ASKED = {
    "rtts": "recovery_rtts",
    "pipe_at_exit": "pipe_at_exit",
    "cwnd_before_exit": "cwnd_before_exit",
    "cwnd_after_exit": "cwnd_after_exit",
    "max_burst": "max_burst",
    "burst_at_entry": "burst_at_entry",
}
"""Golden number -> summary key."""


def run(plan: Plan) -> Data:
    """Compute all tables.

    Returns
    -------
    Data
        `tables.cells`: place, title, rule, row, ack, printed, computed. `tables.episodes`: pattern, rule, quantity,
        golden, computed. `tables.acks`: the rows behind the figure of the ideal path.
    """
    cells = []
    for table in TABLES:
        for row in compare(table):
            for ack, printed, here in zip(table.acks, row.printed, row.computed, strict=True):
                cells.append(
                    {
                        "place": table.place,
                        "title": table.title,
                        "rule": row.rule.rule,
                        "row": row.name,
                        "ack": ack,
                        "printed": printed,
                        "computed": here,
                    }
                )
    plan.report("published tables", 0.5)
    episodes = []
    for pattern in PATTERNS:
        for golden in pattern.episodes:
            summary = episode(golden.rule, pattern)
            for field, key in ASKED.items():
                exact = float(summary[key])
                golden_value = getattr(golden, field)
                episodes.append(
                    {
                        "pattern": pattern.name,
                        "rule": golden.rule,
                        "quantity": field,
                        "golden": None if golden_value is None else float(golden_value),
                        # Golden durations have one-RTT resolution; one segment more or less ahead of the last one
                        # changes them by 1/W.
                        "computed": float(round(exact)) if field == "rtts" else exact,
                        "exact": exact,
                    }
                )
    acks = []
    for rule in ("rate-halving", "rfc6675", "prr-crb", "prr-ssrb", "prr-linux-3.2", "prr-rfc9937"):
        for lost in (1, 15):
            rows, _ = ideal(rule, window=20, lost=tuple(range(lost)))
            acks.append(
                rows.select(
                    pl.lit(rule).alias("rule"),
                    pl.lit(lost).alias("losses"),
                    "time_rtts",
                    "ack",
                    "delivered",
                    "cwnd",
                    "pipe",
                    (pl.col("sent_new") + pl.col("sent_retransmissions")).alias("sent_segments"),
                    "sent",
                    "state",
                )
            )
    plan.report("ideal path", 1.0)
    return Data(
        tables={
            "tables.cells": pl.DataFrame(cells),
            "tables.episodes": pl.DataFrame(episodes),
            "tables.acks": pl.concat(acks),
        }
    )


def text() -> str:
    """All tables as plain text, for `ackclock study show prr --tables`."""
    lines: list[str] = []
    for table in TABLES:
        setting = f"ssthresh {table.ssthresh}" + (f", RecoverFS {table.recover_fs}" if table.recover_fs else "")
        title = f"{table.place}: {table.title} ({setting})"
        lines += ["", title, "-" * len(title)]
        width = max(3, *(len(c) + 1 for row in compare(table) for c in (*row.printed, *row.computed)))
        lines.append(f"{'ack#':<26}" + "".join(f"{ack:>{width}}" for ack in table.acks))
        remarks: list[str] = []
        shown = ""
        for row in compare(table):
            name = row.rule.name if row.rule.name != shown else ""
            shown = row.rule.name
            lines.append(f"{name:<14}{row.name:<5}{'printed':<7}" + "".join(f"{c:>{width}}" for c in row.printed))
            lines.append(f"{'':<19}{'here':<7}" + "".join(f"{c:>{width}}" for c in row.computed))
            if any(row.differs):
                marks = "".join(f"{'^' if d else '':>{width}}" for d in row.differs)
                lines.append(f"{'':<19}{'differs':<7}" + marks.rstrip())
                remarks.append(f"{row.rule.name}: {row.rule.remark}")
        for remark in dict.fromkeys(remarks):
            lines += ["", *_wrapped(remark)]
    lines += ["", "Setting of the tables", "---------------------"]
    for remark in GENERAL_REMARKS:
        lines += _wrapped(remark)
    lines += ["", "Whole episodes (ssthresh = W/2, three duplicate ACKs)", "-" * 53]
    for pattern in PATTERNS:
        lines += [
            "",
            pattern.name,
            f"  {'rule':<15}{'RTTs':>6}{'pipe at exit':>14}{'cwnd before':>13}{'cwnd after':>12}"
            f"{'largest burst':>15}{'burst at entry':>16}",
        ]
        for golden in pattern.episodes:
            s = episode(golden.rule, pattern)
            lines.append(
                f"  {golden.rule:<15}{s['recovery_rtts']:>6.2f}{s['pipe_at_exit']:>14}{s['cwnd_before_exit']:>13}"
                f"{s['cwnd_after_exit']:>12}{s['max_burst']:>15}{s['burst_at_entry']:>16}"
            )
    return "\n".join(lines).lstrip("\n") + "\n"


def _wrapped(paragraph: str) -> list[str]:
    import textwrap

    return textwrap.wrap(paragraph, 100, initial_indent="  * ", subsequent_indent="    ")


def golden_blocks(table: PublishedTable) -> list[Table | Prose]:
    """A published table with computed rows inserted, and its remarks."""
    rows: list[tuple[TableCell | str, ...]] = []
    remarks: list[str] = []
    compared = list(compare(table))
    for rule in table.rules:
        own = [row for row in compared if row.rule is rule]
        for i, row in enumerate(own):
            head = (TableCell(text=rule.name, kind="head", span=2 * len(own)),) if i == 0 else ()
            printed = (TableCell(text=c, kind="faint") for c in row.printed)
            computed = (
                TableCell(text=c, kind="differs" if d else "") for c, d in zip(row.computed, row.differs, strict=True)
            )
            rows.append((*head, TableCell(text=f"{row.name}, printed", kind="head faint"), *printed))
            rows.append((TableCell(text=f"{row.name}, here", kind="head"), *computed))
            if any(row.differs):
                remarks.append(f"{rule.name}: {rule.remark}")
    setting = f"ssthresh {table.ssthresh}" + (f", RecoverFS {table.recover_fs}" if table.recover_fs else "")
    cells = sum(len(row.printed) for row in compared)
    differing = sum(sum(row.differs) for row in compared)
    made: list[Table | Prose] = [
        Table(
            caption=f"{table.place}, {table.title} of W = {table.window}; {setting}. {cells - differing} of {cells} cells agree.",
            header=("rule", "row", *(str(ack) for ack in table.acks)),
            rows=tuple(rows),
            dense=True,
        )
    ]
    if remarks:
        made.append(items(list(dict.fromkeys(remarks))))
    return made


def blocks(_: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        paragraph(
            "Each row as printed, and below it as computed here from the algorithm's text. Cells that differ are marked; the "
            "reason stands below the table."
        ),
        *(block for table in TABLES for block in golden_blocks(table)),
        slides_table(),
        items(GENERAL_REMARKS),
    )


CHAPTER = Chapter(
    title="The tables of the RFCs",
    experiments=(
        Experiment(name="tables", title="every rule on the ideal path, beside the rows of the RFCs", run=run, weight=1),
    ),
    blocks=blocks,
)
