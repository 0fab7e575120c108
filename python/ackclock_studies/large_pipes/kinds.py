"""Packet pairs against packet trains (W21, W22)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, median
from ackclock.plot import GREY, OKABE_ITO, Figure, new
from ackclock.report import Block
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    above,
    at_least,
    at_most,
    below,
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.large_pipes import paths
from ackclock_studies.large_pipes.paths import ALABAMA, westwood
from ackclock_studies.large_pipes.runs import NO_BOUND

BE, RE, BE_SACK, ABSE = "BE", "RE", "BE, SACK on", "ABSE"
ALONE, SHARED, LOSSY = "alone", "four flows", "alone, 0.3 % loss"


def run_kinds(plan: Plan) -> Data:
    """Packet pairs against packet trains: ratio of the estimate to the capacity and to the fair share (W21, W22).

    Returns
    -------
    Data
        `kinds.estimates`: estimator, setting, fair_bps, run, flow, estimate_bps (mean in steady state).
    """
    seeds = plan.count(quick=6, paper=12)
    senders = {
        BE: westwood(BE, estimator="be"),
        RE: westwood(RE, estimator="re"),
        BE_SACK: westwood(BE_SACK, estimator="be", sack=True),
        ABSE: paths.tcpw(name=ABSE),
    }
    settings = {ALONE: (1, 0.0), SHARED: (4, 0.0), LOSSY: (1, 0.003)}
    cells = []

    def estimates(batch: Batch) -> pl.DataFrame:
        late = batch.controllers.filter(pl.col("t_s") >= 15.0)
        return late.group_by("seed", "flow", maintain_order=True).agg(pl.col("estimate_bps").mean())

    for name, protocol in senders.items():
        for setting, (count, loss) in settings.items():
            if name == BE_SACK and setting != LOSSY:
                continue
            scenario = paths.scenario(
                ALABAMA,
                [(protocol, count)],
                duration_s=45.0 if plan.scale == "paper" else 22.0,
                loss=loss,
                users=0.0,
                drawn_s=1.0,
                record={"controller": "all", "controller_interval": "1 ms"},
            )
            cells.append(
                Cell(
                    scenario=scenario,
                    keys={"estimator": name, "setting": setting, "fair_bps": ALABAMA.payload_bps / count},
                    stream=f"large-pipes kinds {setting}",
                    seeds=seeds,
                    needs={"controllers": ("flow", "t_s", "estimate_bps")},
                    keep={"estimates": estimates},
                )
            )
    return collect("kinds", cells, plan, numbered=True)


def _of_fair(tables: Tables, estimator: str, setting: str) -> Array:
    """Ratio of the estimate to the fair share: one row per run, one column per flow."""
    t = tables["kinds.estimates"].filter((pl.col("estimator") == estimator) & (pl.col("setting") == setting))
    rows = t.sort("run", "flow").with_columns((pl.col("estimate_bps") / pl.col("fair_bps")).alias("of_fair"))
    return rows["of_fair"].to_numpy().reshape(t["run"].n_unique(), -1)


def _share(tables: Tables, estimator: str, setting: str, label: str, bound: Bound, key: str, **keys: Any) -> Evidence:
    value = median(_of_fair(tables, estimator, setting).mean(axis=1))
    return Evidence.of(value, f"{estimator}, {setting}: estimate over {label}", bound, key=key, **keys)


def w21(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Packet pairs: above the fair share among four flows; the capacity under random loss, and more than trains measure."""
    ratio = _of_fair(tables, BE, LOSSY)[:, 0] / _of_fair(tables, RE, LOSSY)[:, 0]
    return [
        _share(tables, BE, SHARED, "the fair share", bound, "shared"),
        Evidence.of(median(ratio), f"{LOSSY}: BE over RE", bound, key="over_re"),
    ]


def w21_much(tables: Tables) -> Sequence[Evidence]:
    """Size of the difference."""
    return [
        _share(tables, BE, SHARED, "the fair share", at_least(1.15), "shared"),
        _share(tables, BE, LOSSY, "the capacity", between(0.9, 1.1), "lossy"),
        _share(tables, BE_SACK, LOSSY, "the capacity", NO_BOUND, "lossy_sack", weighs=False),
    ]


def w22(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Packet trains: every flow of four estimates close to its fair share, unlike pairs; below the capacity under loss."""
    trains, pairs = (np.abs(_of_fair(tables, kind, SHARED) - 1).max(axis=1) for kind in (RE, BE))
    label = "four flows: worst flow's distance from the fair share, RE over BE"
    return [
        Evidence.of(median(trains / pairs), label, bound, key="nearer"),
        _share(tables, RE, LOSSY, "the capacity", bound, "lossy"),
    ]


def w22_much(tables: Tables) -> Sequence[Evidence]:
    """Size of the difference."""
    worst = 100 * np.abs(_of_fair(tables, RE, SHARED) - 1).max(axis=1)
    return [
        Evidence.of(
            median(worst),
            "RE, four flows: worst flow's distance from the fair share",
            at_most(15),
            unit="%",
            key="worst",
        ),
        _share(tables, RE, LOSSY, "the capacity", below(0.7), "lossy"),
    ]


def w30(tables: Tables) -> Sequence[Evidence]:
    """ABSE: closer to the fair share than pairs among four flows, and above trains under random loss."""
    own, pairs = (np.abs(_of_fair(tables, kind, SHARED) - 1).max(axis=1) for kind in (ABSE, BE))
    ratio = _of_fair(tables, ABSE, LOSSY)[:, 0] / _of_fair(tables, RE, LOSSY)[:, 0]
    return [
        Evidence.of(
            median(own / pairs),
            "four flows: worst flow's distance from the fair share, ABSE over BE",
            below(1, margin=0.05),
            key="nearer",
        ),
        Evidence.of(median(ratio), f"{LOSSY}: ABSE over RE", above(1, margin=0.05), key="over_re"),
    ]


def w30_much(tables: Tables) -> Sequence[Evidence]:
    """Distance from the better kind in each setting."""
    worst = 100 * np.abs(_of_fair(tables, ABSE, SHARED) - 1).max(axis=1)
    label = "ABSE, four flows: worst flow's distance from the fair share"
    return [
        Evidence.of(median(worst), label, at_most(15), unit="%", key="worst"),
        _share(tables, ABSE, LOSSY, "the capacity", between(0.9, 1.1), "lossy"),
        _share(tables, ABSE, ALONE, "the capacity", NO_BOUND, "alone", weighs=False),
        _share(tables, ABSE, SHARED, "the fair share", NO_BOUND, "shared", weighs=False),
    ]


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks: slide 4 as numbers."""
    return (pairs_and_trains(tables),)


def pairs_and_trains(tables: Tables) -> Figure:
    """Measurement of each estimator alone, among four, and under loss."""
    rows = []
    for estimator in (BE, RE, ABSE):
        for setting in (ALONE, SHARED, LOSSY):
            own = _of_fair(tables, estimator, setting).ravel()
            row = {"estimator": estimator, "setting": setting, "of_fair": float(np.median(own))}
            rows.append(row | {"least": float(own.min()), "most": float(own.max())})
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, ax = new(5.6, 3.0)
        looks = (
            (BE, "packet pairs", "vermilion", "o"),
            (RE, "packet trains", "blue", "s"),
            (ABSE, "between them", "black", "D"),
        )
        for i, (estimator, kind, colour, marker) in enumerate(looks):
            own = table.filter(pl.col("estimator") == estimator)
            x = np.arange(own.height) + 0.2 * (i - 1)
            value = own["of_fair"].to_numpy()
            error = np.abs(own.select("least", "most").to_numpy().T - value)
            ax.errorbar(
                x,
                value,
                yerr=error,
                fmt=marker,
                color=OKABE_ITO[colour],
                capsize=3,
                label=f"{estimator}, {kind}",
            )
        ax.axhline(1, color=GREY, lw=0.8, ls=":")
        ax.set_xticks(range(3), (ALONE, SHARED, LOSSY))
        ax.set(ylabel="estimate / fair share", ylim=(0, None), xlim=(-0.5, 2.5))
        ax.grid(axis="x", visible=False)
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    return Figure(
        name="pairs-and-trains",
        title="Packet pairs over-estimate beside other flows, packet trains under-estimate under random loss",
        caption="Path 1, estimate in steady state over the capacity (alone) or a quarter of it; starts are drawn from a second; median and range over flows and runs. Slide 4.",
        draw=draw,
        data={"estimates": table},
    )


CHAPTER = Chapter(
    experiments=(Experiment(name="kinds", title="packet pairs against packet trains", run=run_kinds, weight=8),),
    **declared(__name__),
    blocks=blocks,
)
