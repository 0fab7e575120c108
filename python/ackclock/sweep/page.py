"""Report of a sweep: figures, a table of the cells, and failures."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from ackclock import report
from ackclock._files import OWN, parquet, remove, staged
from ackclock.own import named, short
from ackclock.plot import Figure
from ackclock.plot.figure import FORMATS
from ackclock.sweep.axes import label
from ackclock.sweep.look import by_group, warmed_up
from ackclock.sweep.measures import SAME
from ackclock.sweep.results import Results
from ackclock.sweep.store import Store
from ackclock.sweep.sweep import Sweep
from ackclock.sweep.task import engine_identity
from ackclock.sweep.wording import metric_unit, metric_words, scaled, span, titled, words
from ackclock.text import share

MOST_ROWS = 200
"""Maximum number of cells in the page's table."""


def page(results: Results, store: Store, figures: Sequence[Figure], *, metric: str) -> report.Page:
    """Build the report, without writing it."""
    sweep = results.sweep
    counts = store.counts(sweep.name)
    total = sum(counts.values())
    state = ", ".join(f"{n:,} {name}" for name, n in counts.items() if n)
    sections = [report.Section(title="Figures", blocks=tuple(figures)), _cells(results, metric)]
    sections += _groups(results)
    failures = store.failures(sweep.name, MOST_ROWS)
    if failures:
        cells = {cell.hash: sweep.told(i) for i, cell in enumerate(sweep.cells)}
        rows = tuple((cells.get(h, h[:12]), str(seed), why) for h, seed, why in failures)
        table = report.Table(caption="Runs that failed.", header=("cell", "seed", "error"), rows=rows)
        sections.append(report.Section(title="Failures", blocks=(table,)))
    axes = "; ".join(
        f"{axis.key}: {', '.join(short(v) if named(v) else label(v) for v in axis.values)}" for axis in sweep.axes
    )
    return report.Page(
        title=f"Sweep {sweep.name}",
        summary=f"{len(sweep.points):,} cells, {total:,} runs: {state}.",
        sections=tuple(sections),
        scenarios={sweep.scenario.name or "base": _portable(sweep)},
        facts={
            "axes": axes or "none",
            "seeds": f"{len(sweep.seeds)} of each cell"
            + (", more where a precision asked for them" if _more(results) else ""),
            "engine": engine_identity().replace("+", ", build "),
        },
        command=shlex.join(["ackclock", "sweep", "resume", str(store.folder), *trusting(sweep)]),
        beside="The folder figures/ has the numbers behind each figure; table.parquet has all runs.",
    )


def trusting(sweep: Sweep) -> tuple[str, ...]:
    """Return the option that a sweep with user controllers requires."""
    return ("--own-code",) if any(named(name) for _, name in sweep.controllers()) else ()


def _portable(sweep: Sweep) -> str:
    """Return the scenario as text, with user controllers named relative to their file's folder."""
    text = sweep.scenario.to_toml()
    for _, name in sweep.scenario.controllers():
        if named(name):
            text = text.replace(name, short(name))
    return text


def write(
    results: Results,
    store: Store,
    figures: Sequence[Figure],
    folder: Path,
    *,
    metric: str,
    formats: Collection[str] = (),
    name: str = "report",
) -> Path:
    """Write `report.html`, or a page with a different name, and `figures/` (SVG, data, and `formats`). Either all files
    are written or none.

    A figure with the same name in a different format is removed, because it belongs to an earlier plot.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    with staged(folder, marks=OWN) as part:
        parquet(results.performance, part / "performance.parquet")
        drawn = {f.name: made["svg"] for f in figures if (made := f.write(part / "figures", {"svg", *formats}))}
        report.write(page(results, store, figures, metric=metric), part / f"{name}.html", drawn=drawn)
        written = {file.name for file in (part / "figures").iterdir()}
    drawable = (f"{figure.name}.{kind}" for figure in figures for kind in FORMATS)
    # files of an earlier plot with this name may show other data
    remove((folder / "figures" / name for name in drawable if name not in written), str(folder))
    return folder / f"{name}.html"


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
                f"{row['n']:,}" + (f" of {row['n'] + row['without']:,}" if row["without"] else ""),
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
    of_time = f" {found}" if (found := span(metric)) and warmed_up(results.sweep) else ""
    gaps = sum(1 for n in table["without"] if n)
    some = f" {gaps:,} cells have runs without a number: their mean is of the others." if gaps else ""
    same = len(results.same)
    alike = f" All seeds of {same:,} of {table.height:,} cells gave one and the same run: {SAME}." if same else ""
    return report.Section(
        title="Cells",
        blocks=(
            report.Table(
                caption=f"Mean of {shown}{of_time}, with its 95 % interval.{some}{alike}{more}",
                header=(*(words(axis.name or axis.key) for axis in results.sweep.axes), "runs", shown, "95 % interval"),
                rows=tuple(rows),
            ),
        ),
    )


_COLUMNS = (
    ("goodput_bps", "goodput", 1e-6, "Mbit/s"),
    ("share", "share", 100.0, "%"),
    ("p50_rtt_s", "median RTT", 1e3, "ms"),
    ("p95_rtt_s", "95 % of RTT", 1e3, "ms"),
    ("p95_delay_s", "95 % of one-way delay", 1e3, "ms"),
    ("loss_share", "dropped", 100.0, "%"),
    ("retransmission_share", "retransmitted", 100.0, "%"),
    ("time_to_share_s", "time to share", 1.0, "s"),
)
"""Columns of the group table: column, head, factor, unit."""


def _cell(value: float | None, factor: float, unit: str) -> str:
    if value is None:
        return "–"
    text = f"{value * factor:.3g}"
    return share(value, 2).removesuffix(" %") if unit == "%" and text == "100" else text


def _groups(results: Results) -> list[report.Section]:
    """Return each flow group's values, if runs have several groups."""
    import polars as pl

    seen = by_group(results)
    if seen is None:
        return []
    keys = list(seen.axes)
    means = seen.runs.group_by("cell", *keys, maintain_order=True).agg(pl.col(c).mean() for c, *_ in _COLUMNS)
    rows = []
    for row in means.head(MOST_ROWS).iter_rows(named=True):
        rows.append((*(row[c] for c in keys), *(_cell(row[c], factor, unit) for c, _, factor, unit in _COLUMNS)))
    more = f" The first {MOST_ROWS} of {means.height:,} rows." if means.height > MOST_ROWS else ""
    table = report.Table(
        caption=f"What each group of flows got after the warm-up, means over the seeds; performance.parquet has every flow of every run.{more}",
        header=(*(seen.words(c) for c in keys), *(titled(head, unit) for _, head, _, unit in _COLUMNS)),
        rows=tuple(rows),
    )
    return [report.Section(title="Groups of flows", blocks=(table,))]


def _more(results: Results) -> bool:
    return bool(results.runs.filter(~results.runs["seed"].is_in(list(results.sweep.seeds))).height)
