"""Pages of photographs on lossy access paths (I23, I24): a model of the slides' measurements at front ends. The
slides give the result of a live test without details of its paths. Assumed here: round trips of 100, 200 and 300 ms,
3 % random loss towards the client, pages of eight photographs of 10 to 100 KB on four connections, and access links
with 130 ms of buffer, the smallest value that RFC 6928 reports for most routers. The rate of the access link is
varied, and the claims are judged at the rate at which IW3 with SACK retransmits as much as on the slide. That input
is fitted to one of the slide's numbers, so the figure shows the entire curve.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, bootstrap, gain, mean_over_runs, ratio
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.stats import Estimate
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Fitted,
    Plan,
    Tables,
    above,
    below,
    same,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.iw10 import testbed

IW3_SACK, IW10_SACK, IW10_NEWRENO = "IW3, SACK", "IW10, SACK", "IW10, NewReno"
ARMS = {IW3_SACK: (3, True), IW10_NEWRENO: (10, False), IW10_SACK: (10, True)}
PUBLISHED_S = {IW3_SACK: 3.0, IW10_NEWRENO: 2.8, IW10_SACK: 2.6}
PUBLISHED_RATE = {IW3_SACK: 0.033, IW10_NEWRENO: 0.041, IW10_SACK: 0.041}
RATES = (1.0, 2.0, 3.0, 3.5, 4.0, 5.0, 8.0, 20.0)
"""Access link rates, Mb/s."""

BUFFER_S = 0.13

RTTS_S = (0.1, 0.2, 0.3)
LOSS = 0.03
OTHER_LOSSES, AROUND = (0.0, 0.01, 0.02), (3.0, 4.0, 5.0)
"""Random loss rates for which the access rate is fitted, and rates around the fitted one. The slide gives neither."""
PAGES = 60
"""Pages in a run, spaced so that they never overlap."""


def scenario(rate: float, arm: str, rtt_s: float, loss: float = LOSS) -> Scenario:
    """One client's pages, in sequence."""
    window, sack = ARMS[arm]
    host = testbed.stack(sack=sack, initial_window=window)
    made = testbed.workload({"kind": "periodic", "interval": "60 s"}, opens=4, objects=8)
    made["bytes"] = {"kind": "uniform", "low": "10 KB", "high": "100 KB"}
    link = {
        "rate": f"{rate:g} Mbit/s",
        "delay": f"{500 * rtt_s:g} ms",
        "queue": {"kind": "drop-tail", "limit": f"{math.ceil(1e6 * rate * BUFFER_S / 8 / testbed.MTU)} packets"},
        "loss": {"kind": "bernoulli", "p": loss} if loss else {"kind": "none"},
    }
    back = {"delay": f"{500 * rtt_s:g} ms"}
    return Scenario.from_dict(
        {
            "name": f"photographs, {rate:g} Mb/s, {arm}, {1000 * rtt_s:g} ms",
            "duration": f"{60 * PAGES} s",
            "network": {"topology": "chain", "bottleneck": link, "reverse": {"bottleneck": back}},
            "flows": [{**host, "workload": made}],
        }
    )


def run(plan: Plan) -> Data:
    """Photograph pages with each arm.

    Returns
    -------
    Data
        `photos.pages`: access_mbps, arm, run, mean_s (response of a photograph, mean over round-trip times), retransmission_rate.
    """
    cells = [
        Cell(
            scenario=scenario(rate, arm, rtt_s),
            keys={"access_mbps": rate, "arm": arm},
            stream=f"photos {rtt_s}",
            seeds=plan.count(quick=6, paper=40),
            needs={"transactions": testbed.TRANSACTION_COLUMNS},
            keep={"pages": testbed.transactions_of},
        )
        for rate in RATES
        for arm in ARMS
        for rtt_s in RTTS_S
    ]
    data = collect("photos", cells, plan, numbered=True)
    table = (
        data.tables["photos.pages"]
        .group_by("access_mbps", "arm", "run", maintain_order=True)
        .agg(
            pl.col("total_s").mean().alias("mean_s"),
            (pl.col("retransmissions").sum() / pl.col("segments_sent").sum()).alias("retransmission_rate"),
        )
    )
    return replace(data, tables={"photos.pages": table})


def run_losses(plan: Plan) -> Data:
    """Pages with other random loss rates, at access rates around the one fitted to each.

    Returns
    -------
    Data
        `losses.pages`: as `photos.pages`, with loss.
    """
    cells = [
        Cell(
            scenario=scenario(rate, arm, rtt_s, loss),
            keys={"loss": loss, "access_mbps": rate, "arm": arm},
            stream=f"photos {rtt_s}",
            seeds=plan.count(quick=4, paper=30),
            needs={"transactions": testbed.TRANSACTION_COLUMNS},
            keep={"pages": testbed.transactions_of},
        )
        for loss in OTHER_LOSSES
        for rate in AROUND
        for arm in ARMS
        for rtt_s in RTTS_S
    ]
    data = collect("losses", cells, plan, numbered=True)
    table = (
        data.tables["losses.pages"]
        .group_by("loss", "access_mbps", "arm", "run", maintain_order=True)
        .agg(
            pl.col("total_s").mean().alias("mean_s"),
            (pl.col("retransmissions").sum() / pl.col("segments_sent").sum()).alias("retransmission_rate"),
        )
    )
    return replace(data, tables={"losses.pages": table})


def rates(loss: float) -> tuple[float, ...]:
    """Access link rates at this random loss rate."""
    return RATES if loss == LOSS else AROUND


def by_rate(tables: Tables, arm: str, column: str, loss: float = LOSS) -> list[Array]:
    """One arm's column at every access link rate, one value per run."""
    t = tables["photos.pages"] if loss == LOSS else tables["losses.pages"].filter(pl.col("loss") == loss)
    t = t.filter(pl.col("arm") == arm).sort("access_mbps", "run")
    return [t.filter(pl.col("access_mbps") == rate)[column].to_numpy() for rate in rates(loss)]


def judged(tables: Tables, arm: str, column: str, loss: float = LOSS) -> Estimate:
    """Ratio of an arm's mean to that of IW3 with SACK, at the rate at which the latter retransmits as often as on the slide.

    The rate is interpolated in each resample, so its uncertainty is part of the interval.
    """
    lost, base, other = (
        by_rate(tables, a, c, loss) for a, c in ((IW3_SACK, "retransmission_rate"), (IW3_SACK, column), (arm, column))
    )
    n = len(rates(loss))

    def at_published(*rows: Array) -> Array:
        lost, base, other = (np.stack([x.mean(axis=1) for x in rows[i * n : (i + 1) * n]]) for i in range(3))
        return np.array(
            [
                np.interp(_fitted(lost[:, i], loss), np.log(rates(loss)), other[:, i] / base[:, i])
                for i in range(lost.shape[1])
            ]
        )

    return bootstrap(at_published, *lost, *base, *other)


def _fitted(lost: Array, loss: float = LOSS) -> float:
    """Logarithm of the rate at which the retransmission rate equals the slide's; retransmissions become rarer as the rate grows."""
    return float(np.interp(PUBLISHED_RATE[IW3_SACK], lost[::-1], np.log(rates(loss))[::-1]))


def fitted_rate(tables: Tables) -> Estimate:
    """Access rate at which IW3's retransmission rate is the published one, Mb/s."""

    def rate(*rows: Array) -> Array:
        lost = np.stack([x.mean(axis=1) for x in rows])
        return np.array([math.exp(_fitted(lost[:, i])) for i in range(lost.shape[1])])

    return bootstrap(rate, *by_rate(tables, IW3_SACK, "retransmission_rate"))


def _less(e: Estimate) -> Estimate:
    return Estimate(value=100 * (1 - e.value), low=100 * (1 - e.high), high=100 * (1 - e.low), level=e.level, n=e.n)


def published(arm: str, of: dict[str, float]) -> float:
    """Ratio of the slide's value for an arm to its value for IW3 with SACK."""
    return of[arm] / of[IW3_SACK]


def figure(tables: Tables) -> Figure:
    """Response time and retransmission rate against the access link rate, with the slide's values."""
    rows = []
    for arm in ARMS:
        for column, of in (("mean_s", PUBLISHED_S), ("retransmission_rate", PUBLISHED_RATE)):
            both = zip(RATES, by_rate(tables, arm, column), by_rate(tables, IW3_SACK, column), strict=True)
            for rate, own, base in both:
                e, r = mean_over_runs(own), ratio(own, base)
                rows.append(
                    {
                        "arm": arm,
                        "quantity": column,
                        "access_mbps": rate,
                        "value": e.value,
                        "ratio": r.value,
                        "low": r.low,
                        "high": r.high,
                        "published": of[arm],
                    }
                )
    table = pl.DataFrame(rows)
    fitted = fitted_rate(tables)
    look = {
        IW3_SACK: (OKABE_ITO["blue"], "o", "-"),
        IW10_NEWRENO: (OKABE_ITO["orange"], "s", "--"),
        IW10_SACK: (OKABE_ITO["vermilion"], "^", "-."),
    }

    def draw() -> Any:
        made, axes = new(8.2, 3.4, ncols=3)
        panels = (
            (IW3_SACK, "retransmission_rate", "value", 100.0, "retransmitted by IW3, SACK (%)"),
            ("", "mean_s", "ratio", 1.0, "mean response, over IW3 with SACK"),
            ("", "retransmission_rate", "ratio", 1.0, "retransmission rate, over IW3 with SACK"),
        )
        for ax, (only, quantity, column, factor, label) in zip(axes, panels, strict=True):
            for arm, (colour, marker, dash) in look.items():
                if only not in ("", arm) or (not only and arm == IW3_SACK):
                    continue
                own = table.filter((pl.col("arm") == arm) & (pl.col("quantity") == quantity))
                ax.plot(own["access_mbps"], factor * own[column], color=colour, marker=marker, ls=dash, label=arm)
                if column == "ratio":
                    ax.fill_between(own["access_mbps"], own["low"], own["high"], color=colour, alpha=0.15, lw=0)
                of = PUBLISHED_S if quantity == "mean_s" else PUBLISHED_RATE
                y = factor * (of[arm] if only else published(arm, of))
                ax.plot(fitted.value, y, "D", color=colour, mec="black", ms=6)
            ax.axvspan(fitted.low, fitted.high, color="#bbbbbb", alpha=0.6, lw=0)
            if column == "ratio":
                ax.axhline(1.0, color="#555555", lw=0.8)
            ax.set(xscale="log", xlabel="access link (Mb/s)", ylabel=label)
            ax.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
            ax.xaxis.set_minor_formatter("")
        handles = {h[1]: h[0] for ax in axes for h in zip(*ax.get_legend_handles_labels(), strict=True)}
        made.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
        return made

    less = _less(judged(tables, IW10_NEWRENO, "mean_s"))
    word = f"{less.value:.0f} % sooner" if less.value >= 0 else f"{-less.value:.0f} % later"
    return Figure(
        name="photographs",
        title=f"Where IW3 retransmits what the slide says, at {fitted.value:.1f} Mb/s, IW10 without SACK answers {word} than IW3 with SACK",
        caption=(
            "Mean over round trips of 100, 200 and 300 ms, 3 % random loss, 130 ms of buffer, with 95 % intervals. Diamonds: the slides' "
            "24-hour live test, drawn at the rate (grey, with its interval) that was fitted to the one in the left panel; the others follow."
        ),
        draw=draw,
        data={"photographs": table},
    )


def _response(tables: Tables, bounds: dict[str, Bound]) -> list[Evidence]:
    return [
        Evidence.of(
            _less(judged(tables, arm, "mean_s")),
            f"mean response, {arm} below {IW3_SACK}",
            bounds[arm],
            unit="%",
            weighs=arm == IW10_NEWRENO,
            key=key,
        )
        for arm, key in ((IW10_NEWRENO, "newreno"), (IW10_SACK, "sack"))
    ]


def i23(tables: Tables) -> Sequence[Evidence]:
    """IW10 without SACK against IW3 with SACK, at every random loss rate with its fitted access rate."""
    found = [
        Evidence.of(
            _less(judged(tables, IW10_NEWRENO, "mean_s", loss)),
            f"{100 * loss:g} % random loss: mean response, {IW10_NEWRENO} below {IW3_SACK}",
            above(0),
            unit="%",
            key="newreno" if loss == LOSS else f"newreno_{100 * loss:.0f}",
            cell={"random loss": f"{100 * loss:g} %"},
        )
        for loss in (*OTHER_LOSSES, LOSS)
    ]
    found.append(
        Evidence.of(
            _less(judged(tables, IW10_SACK, "mean_s")),
            f"mean response, {IW10_SACK} below {IW3_SACK}",
            above(0),
            unit="%",
            weighs=False,
            key="sack",
        )
    )
    found.append(
        Evidence.of(
            fitted_rate(tables),
            "access link on which IW3 retransmits 3.3 %",
            Bound(),
            unit="Mb/s",
            weighs=False,
            key="rate",
        )
    )
    base, other = (by_rate(tables, arm, "mean_s") for arm in (IW3_SACK, IW10_NEWRENO))
    for i in (RATES.index(2.0), len(RATES) - 1):
        text = f"{RATES[i]:g} Mb/s: mean response, {IW10_NEWRENO} below {IW3_SACK}"
        found.append(
            Evidence.of(gain(base[i], other[i]), text, above(0), unit="%", weighs=False, key=f"at{RATES[i]:g}")
        )
    return found


def i23_much(tables: Tables) -> Sequence[Evidence]:
    """Size of the difference."""
    return _response(tables, {arm: same(5, of=round(100 * (1 - published(arm, PUBLISHED_S)), 1)) for arm in ARMS})


def _retransmits(tables: Tables, bound: Bound) -> list[Evidence]:
    return [
        Evidence.of(
            judged(tables, arm, "retransmission_rate"), f"retransmission rate, {arm} / {IW3_SACK}", bound, key=key
        )
        for arm, key in ((IW10_NEWRENO, "newreno"), (IW10_SACK, "sack"))
    ]


def i24(tables: Tables) -> Sequence[Evidence]:
    """Whether IW10 retransmits more, at every random loss rate."""
    return [
        Evidence.of(
            judged(tables, arm, "retransmission_rate", loss),
            f"{100 * loss:g} % random loss: retransmission rate, {arm} / {IW3_SACK}",
            above(1),
            key=key if loss == LOSS else f"{key}_{100 * loss:.0f}",
            cell={"random loss": f"{100 * loss:g} %", "arm": arm},
        )
        for loss in (*OTHER_LOSSES, LOSS)
        for arm, key in ((IW10_NEWRENO, "newreno"), (IW10_SACK, "sack"))
    ]


def random_alone(tables: Tables) -> Sequence[Evidence]:
    """Retransmission rates on an access link too fast to build a queue: the difference shrinks to at most half."""
    found = []
    for arm, key in ((IW10_NEWRENO, "newreno"), (IW10_SACK, "sack")):
        own, base = (by_rate(tables, one, "retransmission_rate")[-1] for one in (arm, IW3_SACK))
        half = 1 + (judged(tables, arm, "retransmission_rate").value - 1) / 2
        text = f"{RATES[-1]:g} Mb/s: retransmission rate, {arm} / {IW3_SACK}"
        found.append(Evidence.of(ratio(own, base), text, below(half), key=f"wide_{key}"))
    return found


def i24_much(tables: Tables) -> Sequence[Evidence]:
    """4.1 % against 3.3 %."""
    return _retransmits(tables, same(0.25, of=round(published(IW10_SACK, PUBLISHED_RATE), 2)))


LOST = Fitted(
    name="random loss of the access links of photographs",
    value="3 %; 0, 1 and 2 % beside, each with the rate that fits it",
    so_that="all four ratios of the slide come out together",
    claims=("I23", "I24"),
)
FITTED = Fitted(
    name="rate of the access links of photographs",
    value="interpolated between 1 and 20 Mb/s",
    so_that="IW3 with SACK retransmits 3.3 %, as on the slide",
    claims=("I23", "I24"),
)


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(t),)


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"photographs": scenario(4.0, IW10_SACK, 0.2)}


CHAPTER = Chapter(
    experiments=(
        Experiment(name="photos", title="pages of photographs on lossy access links", run=run, weight=12),
        Experiment(name="losses", title="the same with other random losses", run=run_losses, weight=6),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
