"""Completion times of IW10 against IW3 (I6, I7, I11, I14, I35)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, median, ratio
from ackclock.plot import GREY, OKABE_ITO, Figure, new
from ackclock.report import Block, Table, TableCell
from ackclock.study import (
    Bound,
    Chapter,
    Evidence,
    Tables,
    above,
    at_least,
    at_most,
    below,
    between,
)
from ackclock.study.table import declared
from ackclock_studies.iw10 import parts, paths
from ackclock_studies.iw10.bursts import unloaded_s
from ackclock_studies.iw10.loaded import cells, link, pick, times
from ackclock_studies.iw10.readings import CONNECT
from ackclock_studies.iw10.style import COLOUR, HATCH, MODE_TITLE, bars, estimates, panels
from ackclock_studies.iw10.testbed import (
    ARMS,
    FAST,
    FIVE,
    IW3,
    IW10,
    LIGHT,
    MODES,
    PAIRS,
    RATES,
    RTT_S,
    SINGLE,
    SLOW,
    where,
)

MARGIN = 0.05
"""Difference below which completion times count as equal, fixed in advance: one twentieth."""


def gain(tables: Tables, rate: str, mode: str, load: float, *, sack: bool = True) -> Array:
    """Ratio of the mean completion time with IW10 to that with IW3, seed by seed."""
    ten = times(tables, rate, mode, load, IW10, "mean_s", sack=sack)
    return ten / times(tables, rate, mode, load, IW3, "mean_s", sack=sack)


def i6(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Mean completion time, cell by cell."""
    return [
        *paths.on_paths(tables, "faster"),
        *(
            Evidence.of(
                median(gain(tables, *place)),
                f"{where(*place)}: UCT(IW10) / UCT(IW3)",
                bound,
                key="slow75" if place == (SLOW, SINGLE, 0.75) else "fast96" if place == (FAST, FIVE, 0.96) else "",
            )
            for place in cells(tables)
        ),
    ]


def _quick_loads(tables: Tables) -> list[float]:
    return sorted({load for _, mode, load in cells(tables, FAST) if mode == SINGLE and load <= 0.5})


def i7(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of the median completion time spent on round trips."""
    return [
        *paths.dominated(tables),
        *paths.on_paths(tables, "rounds"),
        *(
            Evidence.of(
                median(100 * (rounds + 1) * RTT_S / times(tables, FAST, SINGLE, load, arm, "p50_s")),
                f"{arm}, {where(FAST, SINGLE, load)}: {rounds + 1} RTT of the median UCT",
                bound,
                unit="%",
            )
            for load in _quick_loads(tables)
            for arm, rounds in ((IW3, 3), (IW10, 1))
        ),
    ]


def i7_much(tables: Tables) -> Sequence[Evidence]:
    """Three round trips against one."""
    return [
        Evidence.of(
            median(times(tables, FAST, SINGLE, load, arm, "data_p50_s") / RTT_S),
            f"{arm}, {where(FAST, SINGLE, load)}: median from request to response",
            between(0.95 * rounds, 1.05 * rounds),
            unit="RTT",
            key=f"{arm}_{100 * load:g}",
        )
        for load in _quick_loads(tables)
        for arm, rounds in ((IW3, 3), (IW10, 1))
    ]


def i11(tables: Tables) -> Sequence[Evidence]:
    """Advantage on the fast link with five simultaneous opens."""
    return [*_advantage(tables, below(1), at_least(1 - MARGIN)), *_windows(tables), *paths.keeps(tables)]


def _advantage(tables: Tables, medium: Bound, heavy: Bound) -> list[Evidence]:
    column = "data_mean_s" if CONNECT.of(tables) == "out" else "mean_s"
    return [
        Evidence.of(
            ratio(*lasting(tables, place, column)),
            f"{where(*place)}, five minutes: UCT(IW10) / UCT(IW3)",
            bound,
            key=key,
        )
        for place, bound, key in zip(parts.QUICK, (medium, heavy), ("at72", "at96"), strict=True)
    ]


def lasting(tables: Tables, place: tuple[str, str, float], column: str) -> tuple[Array, Array]:
    """Mean IW10 and IW3 completion times in the five-minute runs, seed by seed."""
    ten, three = (parts.others(tables, place, arm, "", column) for arm in (IW10, IW3))
    return ten, three


def _windows(tables: Tables) -> list[Evidence]:
    """Gain by a transaction's arrival time: the advantage shrinks during the run."""
    return [
        Evidence.of(
            ratio(*lasting(tables, parts.QUICK[1], name)),
            f"{where(*parts.QUICK[1])}, arrivals from {begin:g} to {end:g} s: UCT(IW10) / UCT(IW3)",
            Bound(),
            weighs=False,
            key=name,
        )
        for name, (begin, end) in parts.WINDOWS.items()
    ]


def i11_much(tables: Tables) -> Sequence[Evidence]:
    """The advantage, and the fraction of it that remains."""
    return _advantage(tables, at_most(0.8), between(0.9, 1.2))


_HIGHER = (SLOW, SINGLE, 0.75)


def i14(tables: Tables) -> Sequence[Evidence]:
    """Queueing dominates on the slow link, and IW10 is no faster."""
    found = []
    for arm in (IW3, IW10):
        mean = times(tables, *_HIGHER, arm, "mean_s")
        alone = unloaded_s(tables, SLOW, arm) - (RTT_S if CONNECT.of(tables) == "out" else 0.0)
        found.append(
            Evidence.of(
                median(100 * (1 - alone / mean)),
                f"{arm}: share of the mean UCT above the unloaded one",
                above(50),
                unit="%",
                key=arm,
            )
        )
    found.append(
        Evidence.of(
            median(gain(tables, *_HIGHER)),
            f"{where(*_HIGHER)}: UCT(IW10) / UCT(IW3)",
            at_least(1 - MARGIN),
            key="ratio",
        )
    )
    return found


def i14_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Check that IW10 is neither faster nor slower than IW3."""
    text = f"{where(*_HIGHER)}: UCT(IW10) / UCT(IW3)"
    return [Evidence.of(median(gain(tables, *_HIGHER)), text, bound)]


def by_pair(tables: Tables, rate: str, mode: str, load: float) -> list[Array]:
    """Ratio of mean completion times, IW10 to IW3, for each client-server pair, seed by seed."""
    found = []
    rows = {arm: pick(tables, "pairs", rate, mode, load, arm) for arm in (IW3, IW10)}
    for pair in range(PAIRS):
        both = rows[IW10].filter(pl.col("pair") == pair).join(rows[IW3].filter(pl.col("pair") == pair), on="seed")
        found.append((both["mean_s"] / both["mean_s_right"]).to_numpy())
    return found


def i35(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Each of the four pairs on the fast link."""
    return [
        Evidence.of(median(each), f"pair {pair + 1}, {where(FAST, mode, load)}: UCT(IW10) / UCT(IW3)", bound)
        for rate, mode, load in cells(tables, FAST)
        if load < 0.9
        for pair, each in enumerate(by_pair(tables, rate, mode, load))
    ]


def completion(tables: Tables) -> Figure:
    """Each arm's mean completion time in every cell."""
    table = estimates(tables, "mean_s", of_link=False)

    def draw() -> Any:
        figure, axes = panels()
        for row, mode in enumerate(MODES):
            for column, rate in enumerate(RATES):
                ax = axes[row][column]
                bars(ax, table, rate, mode, 1.0)
                if rate == SLOW:
                    ax.set_yscale("log")
                    ax.set_yticks([2, 5, 10, 20, 50, 100, 200], ["2", "5", "10", "20", "50", "100", "200"])
                    ax.set_ylim(1.5, 250)
                    ax.yaxis.set_minor_formatter("")
            axes[row][0].set_ylabel("mean completion time (s)")
        for ax in axes[-1]:
            ax.set_xlabel("offered load")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    gains, heavy = (
        [median(gain(tables, *cell)).value for cell in cells(tables) if (cell[2] <= 0.75) is up_to]
        for up_to in (True, False)
    )
    return Figure(
        name="completion-times",
        title=(
            f"Up to 75 % load IW10 takes {100 * min(gains):.0f} to {100 * max(gains):.0f} % of the time of IW3, at the highest loads "
            f"{100 * min(heavy):.0f} to {100 * max(heavy):.0f} %"
        ),
        caption=(
            "Mean time from the SYN to the last byte of the response, connect included, of the transactions that completed. Bars: "
            "median over seeds; lines: its 95 % interval. The scale of the slow link is logarithmic."
        ),
        draw=draw,
        data={"completion": table},
    )


def pairs(tables: Tables) -> Figure:
    """One bar per client-server pair, as in the slides' two plots."""
    shown = ((FAST, SINGLE, 0.5), (SLOW, SINGLE, LIGHT))
    rows = []
    for place in shown:
        for arm in (IW3, IW10):
            own = pick(tables, "pairs", *place, arm)
            for pair in range(PAIRS):
                e = median(own.filter(pl.col("pair") == pair)["mean_s"].to_numpy())
                rows.append(
                    {
                        "place": where(*place),
                        "arm": arm,
                        "pair": pair + 1,
                        "value": e.value,
                        "low": e.low,
                        "high": e.high,
                    }
                )
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, axes = new(7.6, 3.0, ncols=2)
        for ax, place in zip(axes, shown, strict=True):
            for i, arm in enumerate((IW3, IW10)):
                own = table.filter((pl.col("place") == where(*place)) & (pl.col("arm") == arm))
                value = own["value"].to_numpy()
                error = np.abs(own.select("low", "high").to_numpy().T - value)
                error[~np.isfinite(error)] = 0.0
                x = own["pair"].to_numpy() + 0.36 * (i - 0.5)
                ax.bar(x, value, 0.34, color=COLOUR[arm], hatch=HATCH[arm], edgecolor="white", lw=0, label=arm)
                ax.errorbar(x, value, yerr=error, fmt="none", ecolor="#222222", lw=0.9)
            ax.set(title=where(*place), xlabel="client-server pair", xticks=range(1, PAIRS + 1))
            ax.grid(axis="x", visible=False)
        axes[0].set_ylabel("mean completion time (s)")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    return Figure(
        name="pairs",
        title="Each of the four pairs sees the same: IW10 saves two round trips on the fast link, next to nothing on the slow one",
        caption="Mean completion time of each client-server pair, median over seeds with its 95 % interval. The pairs are alike here; the slides do not say how theirs differed.",
        draw=draw,
        data={"pairs": table},
    )


def ratios(tables: Tables) -> Figure:
    """IW10-to-IW3 ratio of completion times against load, with and without SACK."""
    rows = []
    for rate, mode, load in cells(tables):
        for sack in (True, False):
            each = gain(tables, rate, mode, load, sack=sack)
            if not each.size:  # nothing is lost there, so SACK cannot matter
                continue
            e = median(each)
            rows.append(
                {"rate": rate, "mode": mode, "load": load, "sack": sack, "ratio": e.value, "low": e.low, "high": e.high}
            )
    table = pl.DataFrame(rows)
    both = {(r["rate"], r["mode"], r["load"], r["sack"]): r["ratio"] for r in table.iter_rows(named=True)}
    apart = {place: abs(both[*place, True] - both[*place, False]) for place in cells(tables) if (*place, False) in both}
    most = max(apart, key=lambda place: apart[place])

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
            ax.set(title=f"{'slow' if rate == SLOW else 'fast'} link, {rate}", xlabel="offered load (%)")
        for height, text, vertical in ((1.02, "IW10 slower", "bottom"), (0.93, "IW10 faster", "top")):
            axes[1].text(24, height, text, color="#555555", fontsize=8, va=vertical)
        axes[0].set_ylabel("mean completion time,\nIW10 / IW3")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    return Figure(
        name="completion-ratios",
        title=(
            f"What IW10 gains depends on the link and the load; without SACK the ratio differs by {apart[most]:.2f} at most "
            f"({where(*most)})"
        ),
        caption="Ratio of mean completion times under the same arrivals; below 1 IW10 is faster. Lines: 95 % interval of the median over seeds.",
        draw=draw,
        data={"ratios": table},
    )


def cells_table(tables: Tables) -> Table:
    """Table covering all cells and arms."""
    rows: list[tuple[TableCell | str, ...]] = []
    for rate, mode, load in cells(tables):
        for i, arm in enumerate(ARMS):
            head = (TableCell(text=where(rate, mode, load), kind="head", span=len(ARMS)),) if i == 0 else ()

            def middle(column: str, arm: str = arm, at: tuple[str, str, float] = (rate, mode, load)) -> float:
                return float(np.nanmedian(times(tables, *at, arm, column)))

            plr = float(np.median(link(tables, rate, mode, load, arm, "plr")))
            rows.append(
                (
                    *head,
                    TableCell(text=arm, kind="head"),
                    f"{middle('started'):.0f}",
                    f"{middle('incomplete'):.0f}",
                    seconds(middle("mean_s")),
                    seconds(middle("p50_s")),
                    seconds(middle("p95_s")),
                    seconds(middle("p99_s")),
                    seconds(middle("p999_s")),
                    f"{100 * plr:.2f}",
                    f"{100 * np.median(link(tables, rate, mode, load, arm, 'plr_data')):.2f}",
                    f"{np.median(link(tables, rate, mode, load, arm, 'mean_queue')):.1f}",
                    f"{100 * np.median(link(tables, rate, mode, load, arm, 'busy')):.0f}",
                    f"{100 * np.median(link(tables, rate, mode, load, arm, 'sampled')):.0f}",
                )
            )
    return Table(
        caption="Medians over seeds. Started and incomplete: transactions of one run that count; incomplete ones were still under way at its end.",
        header=(
            "cell",
            "arm",
            "started",
            "incomplete",
            "mean (s)",
            "median (s)",
            "p95 (s)",
            "p99 (s)",
            "p99.9 (s)",
            "loss (%)",
            "without SYN, FIN (%)",
            "mean queue",
            "busy (%)",
            "1-s samples with a queue (%)",
        ),
        rows=tuple(rows),
    )


def seconds(value: float) -> str:
    """A time in seconds, formatted for tables."""
    return "–" if not np.isfinite(value) else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (completion(t), pairs(t), ratios(t), cells_table(t))


CHAPTER = Chapter(**declared(__name__), blocks=blocks)
