"""The part of a run's report on what limited each flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from ackclock._results.limits import CAUSES, held
from ackclock.plot.limits import LABELS, live_limits
from ackclock.report.page import Live, Section, Table, TableCell
from ackclock.text import seconds, share

if TYPE_CHECKING:
    from ackclock._results.result import Run

__all__ = ["limits_section"]

DRAWN = 3
"""Maximum number of flows for which limits are drawn over time."""

ROWS = 20
"""Maximum number of flows in the table."""


def limits_section(run: Run, names: Sequence[str]) -> list[Section]:
    """Return bands over time and a table of time fractions; nothing if the run recorded no limits."""
    rows = [(row, held(row)) for row in run.rows("flows")]
    told = [(row, found) for row, found in rows if found is not None]
    if not told:
        return []
    used = [name for name in CAUSES if any(found[name] > 0 for _, found in told)]
    table = Table(
        caption="Share of each flow's life, from its start to its stop. One cause at a time; they add up to all of it. The last three columns are what "
        "the kernel's tcp_info would say: they know fewer causes, and go on during recovery.",
        header=("flow", *(LABELS[name] for name in used), "busy", "rwnd_limited", "sndbuf_limited"),
        rows=tuple(_row(row, found, used, names) for row, found in told[:ROWS]),
    )
    return [Section(title="What was the limit", blocks=(*_bands(run, names), table))]


def _row(
    row: dict[str, Any], found: dict[str, float], used: Sequence[str], names: Sequence[str]
) -> tuple[TableCell | str, ...]:
    life = sum(found.values())
    return (
        TableCell(text=names[row["flow"]], kind="head"),
        *(share(found[name] / life) if life > 0 else "–" for name in used),
        *(seconds(row[f"{name}_s"]) for name in ("busy", "rwnd_limited", "sndbuf_limited")),
    )


def _bands(run: Run, names: Sequence[str]) -> list[Live]:
    limits = run.limits
    if limits.height < 2:
        return []
    made = []
    for flow in limits["flow"].unique(maintain_order=True).to_list()[:DRAWN]:
        own = limits.filter(pl.col("flow") == flow)
        if own.height < 2:
            continue
        made.append(
            Live(
                name=f"limits-{flow}",
                title=f"What held flow {names[flow]} back",
                caption="Of each interval: the share of time that each cause held the sender back.",
                figure=lambda own=own: _timed(live_limits(own)),  # type: ignore[misc]
            )
        )
    return made


def _timed(figure: dict[str, Any]) -> dict[str, Any]:
    figure["layout"]["meta"] = {"axis": "time"}
    return figure
