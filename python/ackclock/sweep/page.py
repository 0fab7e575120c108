"""The report of a sweep: figures, a table of the cells, what failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from ackclock import report
from ackclock._files import refused, staged
from ackclock.plot import Figure
from ackclock.sweep.figures import metric_unit, metric_words, scaled, titled, words
from ackclock.sweep.results import Results, label
from ackclock.sweep.store import Store
from ackclock.sweep.task import engine_identity

MOST_ROWS = 200
"""Cells in the table of the page."""


def page(results: Results, store: Store, figures: Sequence[Figure], *, metric: str) -> report.Page:
    """The report as a value."""
    sweep = results.sweep
    counts = store.counts(sweep.name)
    total = sum(counts.values())
    state = ", ".join(f"{n:,} {name}" for name, n in counts.items() if n)
    sections = [report.Section(title="Figures", blocks=tuple(figures)), _cells(results, metric)]
    failures = store.failures(sweep.name, MOST_ROWS)
    if failures:
        rows = tuple((h[:12], str(seed), why) for h, seed, why in failures)
        table = report.Table(caption="Runs that failed.", header=("scenario", "seed", "error"), rows=rows)
        sections.append(report.Section(title="Failures", blocks=(table,)))
    axes = "; ".join(f"{axis.key}: {', '.join(label(v) for v in axis.values)}" for axis in sweep.axes)
    return report.Page(
        title=f"Sweep {sweep.name}",
        summary=f"{len(sweep.points):,} cells, {total:,} runs: {state}.",
        sections=tuple(sections),
        scenarios={sweep.scenario.name or "base": sweep.scenario.to_toml()},
        facts={
            "axes": axes or "none",
            "seeds": f"{len(sweep.seeds)} of each cell"
            + (", more where a precision asked for them" if _more(results) else ""),
            "engine": engine_identity().partition("+")[0],
        },
        command=f"ackclock sweep run {sweep.name}.toml --out {store.folder}",
        beside="The folder figures/ has the numbers behind each figure; table.parquet has all runs.",
    )


def write(results: Results, store: Store, figures: Sequence[Figure], folder: Path, *, metric: str) -> Path:
    """Write `report.html` and `figures/` (PDF, PNG, SVG and data); all of them or none.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    try:
        with staged(folder) as part:
            drawn = {figure.name: figure.write(part / "figures")["svg"] for figure in figures}
            report.write(page(results, store, figures, metric=metric), part / "report.html", drawn=drawn)
    except OSError as error:
        raise refused(error, str(folder)) from None
    return folder / "report.html"


def _cells(results: Results, metric: str) -> report.Section:
    table = results.cells(metric)
    factor, unit = scaled(metric_unit(metric), table["mean"].drop_nulls().to_list())
    rows = []
    for row in table.head(MOST_ROWS).iter_rows(named=True):
        mean, low, high = (row[c] / factor for c in ("mean", "low", "high"))
        known = math.isfinite(low) and math.isfinite(high)
        rows.append(
            (
                *(label(row[c]) for c in results.columns),
                f"{row['n']:,}",
                f"{mean:.4g}" if math.isfinite(mean) else "–",
                f"{low:.4g} to {high:.4g}" if known else "–",
            )
        )
    more = (
        f" The first {MOST_ROWS} of {table.height:,} cells; all are in table.parquet."
        if table.height > MOST_ROWS
        else ""
    )
    shown = titled(metric_words(metric), unit)
    return report.Section(
        title="Cells",
        blocks=(
            report.Table(
                caption=f"Mean of {shown} with its 95 % interval.{more}",
                header=(*(words(c) for c in results.columns), "runs", shown, "95 % interval"),
                rows=tuple(rows),
            ),
        ),
    )


def _more(results: Results) -> bool:
    return bool(results.runs.filter(~results.runs["seed"].is_in(list(results.sweep.seeds))).height)
