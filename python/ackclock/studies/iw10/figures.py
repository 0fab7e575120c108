"""Figures of loss, completion times and queues in the loaded cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import GREY, OKABE_ITO, Figure, new
from ackclock.studies.iw10 import claims_time
from ackclock.studies.iw10.loaded import cells, link, loads, times
from ackclock.studies.iw10.testbed import ARMS, FAST, FIVE, HEAVY, IW3, IW10, MIX, MODES, RATES, SINGLE, SLOW
from ackclock.study import Tables
from ackclock.study.estimates import median

COLOUR = {IW3: OKABE_ITO["blue"], MIX: OKABE_ITO["green"], IW10: OKABE_ITO["vermilion"]}
MARKER = {IW3: "o", MIX: "s", IW10: "^"}
HATCH = {IW3: "", MIX: "///", IW10: "..."}
MODE_TITLE = {SINGLE: "single opens", FIVE: "five opens at once"}


def percent(load: float) -> str:
    """A load as text."""
    return f"{100 * load:g} %"


def panels(height: float = 4.8) -> tuple[Any, Any]:
    """A panel per link rate (columns) and mode of opening (rows)."""
    figure, axes = new(7.8, height, nrows=len(MODES), ncols=len(RATES))
    for row, mode in enumerate(MODES):
        for column, rate in enumerate(RATES):
            axes[row][column].set_title(f"{rate}, {MODE_TITLE[mode]}")
    return figure, axes


def estimates(tables: Tables, column: str, *, of_link: bool) -> pl.DataFrame:
    """Medians over seeds of a column, with intervals, for each cell and arm."""
    rows = []
    for rate, mode, load in cells(tables):
        for arm in ARMS:
            pick = link if of_link else times
            e = median(pick(tables, rate, mode, load, arm, column))
            rows.append(
                {"rate": rate, "mode": mode, "load": load, "arm": arm, "value": e.value, "low": e.low, "high": e.high}
            )
    return pl.DataFrame(rows)


def _bars(ax: Any, table: pl.DataFrame, rate: str, mode: str, factor: float) -> None:
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


def loss_rates(tables: Tables) -> Figure:
    """Packet loss rate in every cell."""
    table = estimates(tables, "plr", of_link=True)

    def draw() -> Any:
        figure, axes = panels()
        for row, mode in enumerate(MODES):
            for column, rate in enumerate(RATES):
                _bars(axes[row][column], table, rate, mode, 100.0)
            axes[row][0].set_ylabel("lost at the bottleneck (%)")
        for ax in axes[-1]:
            ax.set_xlabel("offered load")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    place = (SLOW, FIVE, HEAVY[SLOW])
    worst = {arm: 100 * float(np.median(link(tables, *place, arm, "plr"))) for arm in ARMS}
    return Figure(
        name="loss-rates",
        title=(
            f"Loss: at 64 kb/s, five opens and {percent(HEAVY[SLOW])}, {worst[IW3]:.1f} % with IW3, "
            f"{worst[MIX]:.1f} % in the mix, {worst[IW10]:.1f} % with IW10"
        ),
        caption=(
            "Packets dropped over packets that arrived at the bottleneck's queue, data direction, everything counted. Bars: median over "
            "seeds; lines: 95 % interval of the median. Mind the scales."
        ),
        draw=draw,
        data={"loss": table},
    )


def completion(tables: Tables) -> Figure:
    """Mean completion time of each arm in every cell."""
    table = estimates(tables, "mean_s", of_link=False)

    def draw() -> Any:
        figure, axes = panels()
        for row, mode in enumerate(MODES):
            for column, rate in enumerate(RATES):
                _bars(axes[row][column], table, rate, mode, 1.0)
            axes[row][0].set_ylabel("mean completion time (s)")
        for ax in axes[-1]:
            ax.set_xlabel("offered load")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    gains = [median(claims_time.gain(tables, *cell)).value for cell in cells(tables) if cell[2] <= 0.75]
    return Figure(
        name="completion-times",
        title=(
            f"Up to 75 % load IW10 takes {100 * min(gains):.0f} to {100 * max(gains):.0f} % of the time of IW3; at the highest loads "
            "losses decide"
        ),
        caption=(
            "Mean time from the SYN to the last byte of the response, connect included, of the transactions that completed. Bars: "
            "median over seeds; lines: its 95 % interval. Mind the scales."
        ),
        draw=draw,
        data={"completion": table},
    )


def ratios(tables: Tables) -> Figure:
    """Completion time with IW10 over that with IW3, against load, with and without SACK."""
    rows = []
    for rate, mode, load in cells(tables):
        for sack in (True, False):
            e = median(claims_time.gain(tables, rate, mode, load, sack=sack))
            rows.append(
                {"rate": rate, "mode": mode, "load": load, "sack": sack, "ratio": e.value, "low": e.low, "high": e.high}
            )
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, axes = new(7.8, 3.4, ncols=2, sharey=True)
        for ax, rate in zip(axes, RATES, strict=True):
            for mode, marker in ((SINGLE, "o"), (FIVE, "s")):
                for sack, colour in ((True, OKABE_ITO["blue"]), (False, OKABE_ITO["orange"])):
                    own = table.filter(
                        (pl.col("rate") == rate) & (pl.col("mode") == mode) & (pl.col("sack") == sack)
                    ).sort("load")
                    value = own["ratio"].to_numpy()
                    error = np.abs(own.select("low", "high").to_numpy().T - value)
                    error[~np.isfinite(error)] = 0.0
                    x = 100 * own["load"].to_numpy() + (0.6 if sack else -0.6)
                    ax.errorbar(
                        x,
                        value,
                        yerr=error,
                        marker=marker,
                        color=colour,
                        ls="-" if mode == SINGLE else "--",
                        label=f"{MODE_TITLE[mode]}, {'with' if sack else 'without'} SACK",
                    )
            ax.axhline(1.0, color=GREY, lw=0.9)
            ax.set(title=rate, xlabel="offered load (%)")
        axes[0].set_ylabel("mean completion time,\nIW10 / IW3")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    return Figure(
        name="completion-ratios",
        title="What IW10 gains depends on the link and the load, hardly on SACK",
        caption="Ratio of mean completion times under the same arrivals; below 1 IW10 is faster. Lines: 95 % interval of the median over seeds.",
        draw=draw,
        data={"ratios": table},
    )


def distributions(tables: Tables) -> Figure:
    """Complementary distribution of completion times at high load."""
    q = tables["loaded.quantiles"]
    places = [
        (SLOW, SINGLE, HEAVY[SLOW]),
        (SLOW, FIVE, HEAVY[SLOW]),
        (FAST, SINGLE, HEAVY[FAST]),
        (FAST, FIVE, HEAVY[FAST]),
    ]

    def draw() -> Any:
        figure, axes = new(7.8, 4.8, nrows=2, ncols=2)
        for ax, (rate, mode, load) in zip(axes.flat, places, strict=True):
            for arm in ARMS:
                own = q.filter(
                    (pl.col("rate") == rate)
                    & (pl.col("mode") == mode)
                    & (pl.col("load") == load)
                    & (pl.col("arm") == arm)
                    & (pl.col("iw") == 0)
                ).sort("quantile")
                ax.plot(
                    own["value_s"],
                    1 - own["quantile"],
                    color=COLOUR[arm],
                    label=arm,
                    ls={IW3: "-", MIX: "--", IW10: "-."}[arm],
                )
            ax.set(xscale="log", yscale="log", title=f"{rate}, {MODE_TITLE[mode]}, {percent(load)}")
            ax.set_ylim(5e-5, 1.2)
            ax.xaxis.set_minor_formatter("")
            ax.xaxis.set_major_formatter("{x:g}")
        for ax in axes[:, 0]:
            ax.set_ylabel("share of transactions\nthat take longer")
        for ax in axes[-1]:
            ax.set_xlabel("completion time (s)")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    tails = {arm: float(np.median(times(tables, FAST, FIVE, HEAVY[FAST], arm, "p99_s"))) for arm in (IW3, IW10)}
    return Figure(
        name="distributions",
        title=f"Tails at the highest loads: one in a hundred takes {tails[IW3]:.1f} s with IW3 and {tails[IW10]:.1f} s with IW10 (20 Mb/s, five opens)",
        caption="Complementary distribution over all seeds, completed transactions. Steps: initial RTO of the SYN, and timeouts doubling.",
        draw=draw,
        data={"quantiles": q.filter(pl.col("iw") == 0)},
    )


def queues(tables: Tables) -> Figure:
    """Queue over time in one stretch of two cells."""
    t = tables["traces.queue"]
    places = t.select("rate", "mode", "load").unique(maintain_order=True).rows()

    def draw() -> Any:
        figure, axes = new(7.8, 2.2 * len(places), nrows=len(places), squeeze=False)
        for ax, (rate, mode, load) in zip(axes[:, 0], places, strict=True):
            for arm in (IW10, IW3):
                own = t.filter((pl.col("rate") == rate) & (pl.col("mode") == mode) & (pl.col("arm") == arm))
                ax.plot(own["t_s"], own["packets"], color=COLOUR[arm], lw=0.9, label=arm, drawstyle="steps-post")
            ax.set(title=f"{rate}, {MODE_TITLE[mode]}, {percent(load)}", ylabel="queue (packets)")
        axes[-1][0].set_xlabel("time (s)")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    return Figure(
        name="queues",
        title="The same arrivals make higher peaks with IW10",
        caption="Packets waiting at the bottleneck, one seed, a stretch of the run. Limit: 40 packets at 64 kb/s, 500 at 20 Mb/s.",
        draw=draw,
        data={"queue": t},
    )


def mixes(tables: Tables) -> Figure:
    """Completion time in the mix over that among their like."""
    rows = []
    for rate, mode, load in cells(tables):
        for arm in (IW3, IW10):
            e = median(claims_time.in_mix(tables, rate, mode, load, arm))
            rows.append(
                {"rate": rate, "mode": mode, "load": load, "arm": arm, "ratio": e.value, "low": e.low, "high": e.high}
            )
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, axes = panels()
        for row, mode in enumerate(MODES):
            for column, rate in enumerate(RATES):
                ax = axes[row][column]
                at = loads(tables, rate)
                for i, arm in enumerate((IW3, IW10)):
                    own = table.filter(
                        (pl.col("rate") == rate) & (pl.col("mode") == mode) & (pl.col("arm") == arm)
                    ).sort("load")
                    value = own["ratio"].to_numpy()
                    error = np.abs(own.select("low", "high").to_numpy().T - value)
                    error[~np.isfinite(error)] = 0.0
                    x = np.arange(len(at)) + 0.16 * (2 * i - 1)
                    ax.errorbar(x, value, yerr=error, fmt=MARKER[arm], color=COLOUR[arm], label=arm, lw=1.1)
                ax.axhline(1.0, color=GREY, lw=0.9)
                ax.set_xticks(range(len(at)), [percent(x) for x in at])
            axes[row][0].set_ylabel("completion time,\nin the mix / alone")
        for ax in axes[-1]:
            ax.set_xlabel("offered load")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    return Figure(
        name="mix",
        title=_mix_title(table),
        caption="Mean completion time of the flows with one initial window in the mix, over the same where all have it. Below 1: better off in the mix.",
        draw=draw,
        data={"mix": table},
    )


def _mix_title(table: pl.DataFrame) -> str:
    def span(arm: str) -> str:
        ratio = table.filter(pl.col("arm") == arm)["ratio"].to_numpy()
        return f"{ratio.min():.2f} to {ratio.max():.2f}"

    return f"In the half-and-half mix IW3 takes {span(IW3)} times as long as alone, IW10 {span(IW10)} times"
