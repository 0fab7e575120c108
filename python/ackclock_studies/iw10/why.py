"""Why does IW3 gain from IW10 in the mix at high load (I17)? The slides ask; three hypotheses are tested here.

(a) IW10 needs fewer round trips, so fewer transactions are open at a time. (b) IW10 loses the tail of its burst and
waits for a timeout, while IW3 has the queue to itself. (c) Survivorship: only completed transactions count.

Each is tested by removing its mechanism. For (b) tail losses are repaired without a timeout (RACK-TLP), or the first window is paced, so
that its tail is not lost. For (c), incomplete transactions also count, with their age.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, median
from ackclock.plot import GREY, OKABE_ITO, Figure, new
from ackclock.report import Block, Table, TableCell, paragraph
from ackclock.study import (
    Chapter,
    Data,
    Experiment,
    Plan,
    Tables,
)
from ackclock.study.cells import collect
from ackclock_studies.iw10 import loaded, testbed
from ackclock_studies.iw10.testbed import FAST, FIVE, HEAVY, IW3, MIX, SINGLE, SLOW, where

PLACES = ((SLOW, SINGLE), (SLOW, FIVE), (FAST, SINGLE), (FAST, FIVE))
AS_IS, QUICK_REPAIR, PACED = "as in the study", "tail losses repaired by RACK-TLP", "first window paced"

CHANGED: dict[str, dict[str, Any]] = {
    QUICK_REPAIR: {"profile": "linux-6"},
    PACED: {"pace_initial_window": True},
}

VARIANTS = (AS_IS, *CHANGED)

COLOUR = {AS_IS: OKABE_ITO["black"], QUICK_REPAIR: OKABE_ITO["blue"], PACED: OKABE_ITO["orange"]}
MARKER = {AS_IS: "o", QUICK_REPAIR: "s", PACED: "^"}


def run(plan: Plan) -> Data:
    """The highest load for each link and mode, with IW3 alone and with the mix, under each change.

    Returns
    -------
    Data
        `why.times`, `why.links`; keys variant, rate, mode, arm. Unchanged cells are in the tables of `loaded`.
    """
    cells = []
    for variant, settings in CHANGED.items():
        # no claim concerns the fast link, whose runs are the most expensive
        for rate, mode in PLACES[:2] if plan.scale == "quick" else PLACES:
            duration, warm_up = testbed.length(rate, plan.scale)
            for arm in (IW3, MIX):
                scenario = testbed.loaded(rate, mode, HEAVY[rate], arm, duration_s=duration, **settings)
                keys = {"variant": variant, "rate": rate, "mode": mode, "arm": arm}
                stream = f"why {rate} {mode}"
                cells.append(
                    loaded.cell(
                        scenario,
                        keys,
                        stream=stream,
                        seeds=plan.count(quick=12, paper=40 if rate == SLOW else 12),
                        warm_up_s=warm_up,
                    )
                )
    return collect("why", cells, plan)


def pick(tables: Tables, variant: str, rate: str, mode: str, arm: str, column: str, *, iw: int = 0) -> Array:
    """A summary column, one value per seed."""
    if variant == AS_IS:
        return loaded.times(tables, rate, mode, HEAVY[rate], arm, column, iw=iw)
    t = tables["why.times"].filter(
        (pl.col("variant") == variant)
        & (pl.col("rate") == rate)
        & (pl.col("mode") == mode)
        & (pl.col("arm") == arm)
        & (pl.col("iw") == iw)
    )
    return t.sort("seed")[column].to_numpy().astype(np.float64)


def queue(tables: Tables, variant: str, rate: str, mode: str, arm: str) -> Array:
    """Mean queue, one value per seed."""
    if variant == AS_IS:
        return loaded.link(tables, rate, mode, HEAVY[rate], arm, "mean_queue")
    t = tables["why.links"].filter(
        (pl.col("variant") == variant) & (pl.col("rate") == rate) & (pl.col("mode") == mode) & (pl.col("arm") == arm)
    )
    return t.sort("seed")["mean_queue"].to_numpy().astype(np.float64)


def ratios(tables: Tables) -> pl.DataFrame:
    """Ratio of IW3's value in the mix to its value alone, for each cell, variant and quantity."""
    rows = []
    for variant in VARIANTS:
        for rate, mode in PLACES:
            alone = (variant, rate, mode, IW3)
            mix = (variant, rate, mode, MIX)
            quantities = {
                "completion time": (pick(tables, *mix, "mean_s", iw=3), pick(tables, *alone, "mean_s")),
                "completion time, incomplete counted": (
                    pick(tables, *mix, "censored_mean_s", iw=3),
                    pick(tables, *alone, "censored_mean_s"),
                ),
                "open at a time": (pick(tables, *mix, "censored_mean_s"), pick(tables, *alone, "censored_mean_s")),
                "mean queue": (queue(tables, *mix), queue(tables, *alone)),
                "timeouts per transaction": (pick(tables, *mix, "timeouts", iw=3), pick(tables, *alone, "timeouts")),
            }
            for name, (numerator, denominator) in quantities.items():
                if not numerator.size:
                    continue
                with np.errstate(divide="ignore", invalid="ignore"):
                    e = median(numerator / denominator)
                rows.append(
                    {
                        "variant": variant,
                        "place": where(rate, mode, HEAVY[rate]),
                        "quantity": name,
                        "ratio": e.value,
                        "low": e.low,
                        "high": e.high,
                    }
                )
    return pl.DataFrame(rows)


TICKS = (0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def figure(tables: Tables) -> Figure:
    """Table of the three hypotheses."""
    table = ratios(tables)
    shown = ("completion time", "completion time, incomplete counted", "open at a time", "timeouts per transaction")

    def draw() -> Any:
        from matplotlib.ticker import NullLocator

        places = table["place"].unique(maintain_order=True).to_list()
        figure, axes = new(8.2, 4.4, ncols=len(shown), sharey=True)
        for ax, quantity in zip(axes, shown, strict=True):
            for i, variant in enumerate(VARIANTS):
                own = table.filter((pl.col("quantity") == quantity) & (pl.col("variant") == variant))
                value = own["ratio"].to_numpy()
                error = np.abs(own.select("low", "high").to_numpy().T - value)
                error[~np.isfinite(error)] = 0.0
                y = np.array([places.index(place) for place in own["place"]]) + 0.22 * (i - 1)
                ax.errorbar(value, y, xerr=error, fmt=MARKER[variant], color=COLOUR[variant], label=variant, lw=1)
            ax.axvline(1.0, color=GREY, lw=0.9)
            ax.set_title("\n".join(_wrapped(quantity)), fontsize=8.5)
            ax.set_xlabel("in the mix / alone")
            ax.set_xscale("log")
            own = table.filter(pl.col("quantity") == quantity)
            low, high = (float(np.nanquantile(own[c].to_numpy(), q)) for c, q in (("ratio", 0), ("ratio", 1)))
            coarse = TICKS[::3] if high / low > 2.5 else TICKS
            ticks = [x for x in coarse if 0.93 * min(low, 1.0) <= x <= 1.08 * max(high, 1.0)]
            ax.set_xlim(0.88 * min(low, 1.0), 1.14 * max(high, 1.0))
            ax.set_xticks(ticks, [f"{x:g}" for x in ticks])
            ax.xaxis.set_minor_locator(NullLocator())
            ax.grid(axis="y", visible=False)
        axes[0].set_yticks(range(len(places)), [p.replace(", ", "\n") for p in places])
        axes[0].invert_yaxis()
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    return Figure(
        name="why",
        title="Why IW3 gains or loses in the mix at the highest loads: each hypothesis with its mechanism taken away",
        caption=(
            "What transactions with IW3 meet in the half-and-half mix over what they meet when all have IW3; left of 1 they are better off. "
            "Medians over seeds with 95 % intervals."
        ),
        draw=draw,
        data={"why": table},
    )


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 18)


def answer(tables: Tables) -> str:
    """The finding in one sentence, from this run's numbers."""
    table = ratios(tables)

    def span(variant: str, rate: str) -> str:
        places = [where(rate, mode, HEAVY[rate]) for mode in (SINGLE, FIVE)]
        own = table.filter(
            (pl.col("variant") == variant) & (pl.col("quantity") == "completion time") & pl.col("place").is_in(places)
        )["ratio"].to_numpy()
        return " and ".join(f"{x:.2f}" for x in own)

    return (
        f"At the highest load IW3 takes {span(AS_IS, SLOW)} times as long beside IW10 as without IW10 on the slow link, and {span(AS_IS, FAST)} times "
        f"on the fast one (single, five opens). With the first window paced it takes {span(PACED, SLOW)} times as long on the slow link."
    )


def answers(tables: Tables) -> Table:
    """Ratio of IW3's completion time in the mix to that alone, with each mechanism removed."""
    table = ratios(tables)
    columns = [(variant, "completion time") for variant in VARIANTS]
    columns.append((AS_IS, "completion time, incomplete counted"))

    def text(place: str, variant: str, quantity: str) -> str:
        rows = table.filter(
            (pl.col("place") == place) & (pl.col("variant") == variant) & (pl.col("quantity") == quantity)
        )
        if not rows.height:
            return "–"
        own = rows.row(0, named=True)
        return f"{own['ratio']:.2f} ({own['low']:.2f} to {own['high']:.2f})"

    return Table(
        caption="Completion time of IW3 in the mix over IW3 alone: medians over seeds with 95 % intervals.",
        header=("", *VARIANTS, "incomplete ones counted"),
        rows=tuple(
            (TableCell(text=place, kind="head"), *(text(place, *column) for column in columns))
            for place in table["place"].unique(maintain_order=True)
        ),
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        paragraph(
            "The slides ask why IW3 often does better beside IW10 at high load. Three hypotheses: (a) IW10 needs fewer rounds, so fewer "
            "transactions are open at a time; (b) IW10 loses the tail of its burst and waits for a timeout, leaving the queue to "
            "IW3; (c) only completed transactions count. The mechanism of (b) is taken away in two ways: losses at the tail are "
            "repaired within about a round trip by RACK-TLP, or the first window is paced and does not lose its tail. For (c) "
            "incomplete transactions are counted with the time they had taken at the end of the run."
        ),
        figure(t),
        answers(t),
    )


CHAPTER = Chapter(
    title="Why IW3 gains in the mix",
    experiments=(Experiment(name="why", title="why IW3 gains in the mix: three hypotheses", run=run, weight=35),),
    blocks=blocks,
)
