"""The sweep compared with an independent implementation: a prototype's table of goodput over capacity, cell by cell.
The prototype is also packet-level: one flow, tail drop, perfect reports for each packet, no retransmissions, 30 s,
two seeds. In two seeds of 30 s, its long, rare stalls occur only a few times.
"""

from __future__ import annotations

import polars as pl

from ackclock.report import Table, TableCell
from ackclock.study import Tables
from ackclock_studies.pcc import sweep
from ackclock_studies.pcc.testbed import IDEAL, LONG, MININET, NO_CATCH_UP, OFTEN, PCC, RARE, TENTH, TESTBED

WITHIN = 0.08
"""Required agreement between the two."""

SIZES = (5, 10, 20, 30, 50, 60, 100, 150, 275)
FOUND: dict[str, tuple[float, ...]] = {
    IDEAL: (0.99,) * 9,
    MININET: (0.07, 0.15, 0.31, 0.46, 0.77, 0.91, 0.98, 0.98, 0.99),
    RARE: (0.77, 0.78, 0.87, 0.95, 0.98, 0.98, 0.98, 0.99, 0.99),
    OFTEN: (0.19, 0.29, 0.53, 0.74, 0.98, 0.98, 0.98, 0.98, 0.98),
    TENTH: (0.30, 0.65, 0.63, 0.82, 0.85, 0.91, 0.98, 0.98, 0.98),
    LONG: (0.04, 0.06, 0.28, 0.26, 0.32, 0.34, 0.50, 0.89, 0.98),
    "H1: 30 ms / 1 s": (0.92, 0.92, 0.93, 0.92, 0.93, 0.93, 0.94, 0.96, 0.98),
    NO_CATCH_UP: (0.89, 0.88, 0.90, 0.91, 0.91, 0.93, 0.96, 0.96, 0.97),
    "H2: 30 ms / 100 ms": (0.69, 0.70, 0.70, 0.71, 0.72, 0.73, 0.73, 0.75, 0.84),
}
"""Goodput over capacity by size."""
CLOCK_SIZES = (1, 2, 3, 4, 6, 10, 15)
CLOCK = (0.23, 0.35, 0.46, 0.58, 0.81, 0.98, 0.98)
"""Goodput over capacity with a 1 ms clock, by `CLOCK_SIZES`."""


def cells(tables: Tables) -> pl.DataFrame:
    """Cells in both tables: model, buffer, our value, their value, difference."""
    theirs = [(model, q, x) for model, row in FOUND.items() for q, x in zip(SIZES, row, strict=True)]
    theirs += [(TESTBED, q, x) for q, x in zip(CLOCK_SIZES, CLOCK, strict=True)]
    table = pl.DataFrame(theirs, schema={"model": pl.String, "buffer": pl.Int64, "theirs": pl.Float64}, orient="row")
    ours = sweep.means(tables).filter(pl.col("cc") == PCC).select("model", pl.col("buffer").cast(pl.Int64), "share")
    joined = table.join(ours, on=["model", "buffer"], how="inner", maintain_order="left")
    return joined.rename({"share": "ours"}).with_columns(difference=pl.col("ours") - pl.col("theirs"))


def table(tables: Tables) -> Table:
    """Table with both implementations side by side."""
    found = cells(tables)
    sizes = sorted(found["buffer"].unique().to_list())
    rows: list[tuple[TableCell | str, ...]] = []
    for (model,), own in found.group_by("model", maintain_order=True):
        by_size = {r["buffer"]: r for r in own.iter_rows(named=True)}
        shown: list[TableCell | str] = [TableCell(text=str(model), kind="head")]
        for q in sizes:
            if q not in by_size:
                shown.append("")
                continue
            r = by_size[q]
            text = f"{r['ours']:.2f} ({r['theirs']:.2f})"
            far = abs(r["difference"]) > WITHIN
            shown.append(TableCell(text=text, kind="differs") if far else text)
        rows.append(tuple(shown))
    far = found.filter(pl.col("difference").abs() > WITHIN).height
    return Table(
        caption=(
            f"PCC's share of the link, in brackets that of an independent prototype (30 s, two seeds). {found.height - far} of {found.height} "
            f"cells agree within {WITHIN}; the others are marked."
        ),
        header=("model", *(f"{q} packets" for q in sizes)),
        rows=tuple(rows),
        dense=True,
    )
