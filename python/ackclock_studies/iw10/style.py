"""Appearance of links, arms and modes of opening in every figure."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import median
from ackclock.plot import OKABE_ITO, new
from ackclock.study import (
    Tables,
)
from ackclock_studies.iw10.loaded import cells, link, times
from ackclock_studies.iw10.testbed import ARMS, FIVE, IW3, IW10, MIX, MODES, RATES, SINGLE

COLOUR = {IW3: OKABE_ITO["blue"], MIX: OKABE_ITO["green"], IW10: OKABE_ITO["vermilion"]}
MARKER = {IW3: "o", MIX: "s", IW10: "^"}
HATCH = {IW3: "", MIX: "///", IW10: "..."}
MODE_TITLE = {SINGLE: "single opens", FIVE: "five opens at once"}


def percent(load: float) -> str:
    """Format a load as text."""
    return f"{100 * load:g} %"


def panels(height: float = 4.8) -> tuple[Any, Any]:
    """One panel per link rate (columns) and mode of opening (rows)."""
    figure, axes = new(7.8, height, nrows=len(MODES), ncols=len(RATES))
    for row, mode in enumerate(MODES):
        for column, rate in enumerate(RATES):
            axes[row][column].set_title(f"{rate}, {MODE_TITLE[mode]}")
    return figure, axes


def estimates(tables: Tables, column: str, *, of_link: bool) -> pl.DataFrame:
    """Medians of a column over seeds, with intervals, for each cell and arm."""
    rows = []
    for rate, mode, load in cells(tables):
        for arm in ARMS:
            pick = link if of_link else times
            e = median(pick(tables, rate, mode, load, arm, column))
            rows.append(
                {"rate": rate, "mode": mode, "load": load, "arm": arm, "value": e.value, "low": e.low, "high": e.high}
            )
    return pl.DataFrame(rows)


def bars(ax: Any, table: pl.DataFrame, rate: str, mode: str, factor: float) -> None:
    """Bars for every arm at every load, with intervals."""
    own = table.filter((pl.col("rate") == rate) & (pl.col("mode") == mode))
    at = own["load"].unique().sort().to_list()
    for i, arm in enumerate(ARMS):
        rows = own.filter(pl.col("arm") == arm).sort("load")
        x = np.arange(len(at)) + 0.27 * (i - 1)
        value = factor * rows["value"].to_numpy()
        error = np.abs(factor * rows.select("low", "high").to_numpy().T - value)
        error[~np.isfinite(error)] = 0.0
        ax.bar(x, value, 0.25, color=COLOUR[arm], hatch=HATCH[arm], edgecolor="white", lw=0, label=arm)
        ax.errorbar(x, value, yerr=error, fmt="none", ecolor="#222222", lw=0.9)
    ax.set_xticks(range(len(at)), [percent(x) for x in at])
    ax.grid(axis="x", visible=False)
