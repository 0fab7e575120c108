"""Pages of photographs on lossy access paths (I23, I24): what the slides measured at front ends, as a model.

The slides give the result of a live test and nothing of its paths. Assumed here: round trips of 100, 200 and 300 ms, 3 % random loss
towards the client, pages of eight photographs of 10 to 100 KB on four connections; on links wide enough not to matter (these
decide the claims), and, for contrast, on access links of 2 Mb/s with 130 ms of buffer, where bursts make losses of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.stats import mean_interval
from ackclock.studies.iw10 import testbed
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import Array, gain, ratio

IW3_SACK, IW10_SACK, IW10_NEWRENO = "IW3, SACK", "IW10, SACK", "IW10, NewReno"
ARMS = {IW3_SACK: (3, True), IW10_NEWRENO: (10, False), IW10_SACK: (10, True)}
PUBLISHED_S = {IW3_SACK: 3.0, IW10_NEWRENO: 2.8, IW10_SACK: 2.6}
PUBLISHED_RATE = {IW3_SACK: 0.033, IW10_NEWRENO: 0.041, IW10_SACK: 0.041}
WIDE, NARROW = "20 Mb/s, random loss alone", "2 Mb/s, 130 ms of buffer"
PATHS = {WIDE: ("20 Mbit/s", "1000 packets"), NARROW: ("2 Mbit/s", "22 packets")}
"""Rate and queue of the access link; RFC 6928 says that most access routers buffer 130 ms or more."""

RTTS_S = (0.1, 0.2, 0.3)
LOSS = 0.03
PAGES = 60
"""Pages of a run, far enough apart not to meet."""


def scenario(path: str, arm: str, rtt_s: float) -> Scenario:
    """Pages of one client, one after another."""
    window, sack = ARMS[arm]
    rate, limit = PATHS[path]
    host = testbed.stack(sack=sack, initial_window=window)
    made = testbed.workload({"kind": "periodic", "interval": "60 s"}, opens=4, objects=8)
    made["bytes"] = {"kind": "uniform", "low": "10 KB", "high": "100 KB"}
    link = {
        "rate": rate,
        "delay": f"{500 * rtt_s:g} ms",
        "queue": {"kind": "drop-tail", "limit": limit},
        "loss": {"kind": "bernoulli", "p": LOSS},
    }
    back = {"delay": f"{500 * rtt_s:g} ms"}
    return Scenario.from_dict(
        {
            "name": f"photographs, {path}, {arm}, {1000 * rtt_s:g} ms",
            "duration": f"{60 * PAGES} s",
            "network": {"topology": "chain", "bottleneck": link, "reverse": {"bottleneck": back}},
            "flows": [{**host, "workload": made}],
        }
    )


def run(plan: Plan) -> Data:
    """Pages of photographs with each arm.

    Returns
    -------
    Data
        `photos.pages`: path, arm, run, mean_s (response of a photograph, mean over round-trip times), retransmission_rate.
    """
    seeds = plan.count(quick=12, paper=40)
    cells = [
        Cell(
            scenario=scenario(path, arm, rtt_s),
            keys={"path": path, "arm": arm},
            stream=f"photos {rtt_s}",
            seeds=seeds,
            needs={"transactions": testbed.TRANSACTION_COLUMNS},
            keep={"pages": testbed.transactions_of},
        )
        for path in PATHS
        for arm in ARMS
        for rtt_s in RTTS_S
    ]
    data = collect("photos", cells, plan, numbered=True)
    table = (
        data.tables["photos.pages"]
        .group_by("path", "arm", "run", maintain_order=True)
        .agg(
            pl.col("total_s").mean().alias("mean_s"),
            (pl.col("retransmissions").sum() / pl.col("segments_sent").sum()).alias("retransmission_rate"),
        )
    )
    return replace(data, tables={"photos.pages": table})


def figure(tables: Tables) -> Figure:
    """Response and retransmission rate of each arm, beside the slide's."""
    rows = []
    for path in PATHS:
        for arm in ARMS:
            own = tables["photos.pages"].filter((pl.col("path") == path) & (pl.col("arm") == arm))
            for quantity, published in (("mean_s", PUBLISHED_S[arm]), ("retransmission_rate", PUBLISHED_RATE[arm])):
                e = mean_interval(own[quantity].to_numpy())
                rows.append(
                    {
                        "path": path,
                        "arm": arm,
                        "quantity": quantity,
                        "value": e.value,
                        "low": e.low,
                        "high": e.high,
                        "published": published,
                    }
                )
    table = pl.DataFrame(rows)
    look = {WIDE: (OKABE_ITO["sky"], ""), NARROW: (OKABE_ITO["orange"], "///")}

    def draw() -> Any:
        figure, axes = new(7.6, 3.2, ncols=2)
        for ax, (quantity, factor, label) in zip(
            axes,
            (("mean_s", 1.0, "mean response of a photograph (s)"), ("retransmission_rate", 100.0, "retransmitted (%)")),
            strict=True,
        ):
            x = np.arange(len(ARMS))
            for i, path in enumerate(PATHS):
                own = table.filter((pl.col("quantity") == quantity) & (pl.col("path") == path))
                value = factor * own["value"].to_numpy()
                error = np.abs(factor * own.select("low", "high").to_numpy().T - value)
                at = x + 0.34 * (i - 0.5)
                ax.bar(at, value, 0.32, color=look[path][0], hatch=look[path][1], edgecolor="white", lw=0, label=path)
                ax.errorbar(at, value, yerr=error, fmt="none", ecolor="#222222", lw=1)
            own = table.filter((pl.col("quantity") == quantity) & (pl.col("path") == WIDE))
            ax.plot(
                x,
                factor * own["published"].to_numpy(),
                "D",
                color=OKABE_ITO["vermilion"],
                markeredgecolor="white",
                label="slides, live test",
            )
            ax.set_xticks(x, list(ARMS))
            ax.set(ylabel=label)
            ax.grid(axis="x", visible=False)
            ax.set_ylim(bottom=0)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    def less(path: str) -> float:
        own = table.filter((pl.col("quantity") == "mean_s") & (pl.col("path") == path))
        value = dict(own.select("arm", "value").rows())
        return float(100 * (1 - value[IW10_NEWRENO] / value[IW3_SACK]))

    def words(percent: float) -> str:
        return f"{abs(percent):.0f} % {'sooner' if percent >= 0 else 'later'}"

    return Figure(
        name="photographs",
        title=f"IW10 without SACK answers {words(less(WIDE))} than IW3 with SACK under random loss, {words(less(NARROW))} on narrow links",
        caption=(
            "Mean over round trips of 100, 200 and 300 ms, 3 % random loss, with 95 % intervals over seeds. Diamonds: the slides' 24-hour live "
            "test, whose paths are not known."
        ),
        draw=draw,
        data={"photographs": table},
    )


def photo(tables: Tables, arm: str, column: str, path: str = WIDE) -> Array:
    """A column of the photograph pages, one value per seed."""
    t = tables["photos.pages"].filter((pl.col("path") == path) & (pl.col("arm") == arm)).sort("run")
    return t[column].to_numpy().astype(np.float64)


def i23(tables: Tables) -> Sequence[Evidence]:
    """IW10 without SACK against IW3 with SACK."""
    found = []
    for path in PATHS:
        base = photo(tables, IW3_SACK, "mean_s", path)
        for arm, published in ((IW10_NEWRENO, "6.7 %"), (IW10_SACK, "13.3 %")):
            weighs = path == WIDE and arm == IW10_NEWRENO
            found.append(
                Evidence.of(
                    gain(base, photo(tables, arm, "mean_s", path)),
                    f"{path}: mean response, {arm} below {IW3_SACK} (the study: {published})",
                    between(2, 12),
                    unit="%",
                    weighs=weighs,
                )
            )
    return found


def i24(tables: Tables) -> Sequence[Evidence]:
    """Retransmission rates."""
    return [
        Evidence.of(
            ratio(
                photo(tables, arm, "retransmission_rate", path),
                photo(tables, IW3_SACK, "retransmission_rate", path),
            ),
            f"{path}: retransmission rate, {arm} / {IW3_SACK}",
            between(1.05, 1.5),
            weighs=path == WIDE,
        )
        for path in PATHS
        for arm in (IW10_SACK, IW10_NEWRENO)
    ]


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="I23",
        place="slides: photographs; RFC 6928, Appendix A",
        statement="IW10 without SACK beats IW3 with SACK.",
        direction=Criterion(
            measure=i23,
            reading="Pages of photographs on lossy paths: 2 to 12 % lower mean response (the study measured 6.7 %).",
        ),
        note="12 % under random loss alone, on the upper bound; on narrow links with shallow buffers the sign turns: there bursts of four connections make losses of their own.",
    ),
    Claim(
        id="I24",
        place="slides: photographs",
        statement="IW10 retransmits about 1.24 times as often.",
        direction=Criterion(
            measure=i24,
            reading="Retransmission rate 1.05 to 1.5 times that of IW3.",
        ),
        note="Independent random loss does not depend on the window. On narrow links the ratio is 1.4 to 1.5: what the live test shows must come from queues.",
    ),
)


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (figure(t),)


def scenarios() -> Mapping[str, Scenario]:
    """As written."""
    return {"photographs": scenario(WIDE, IW10_SACK, 0.2)}


CHAPTER = Chapter(
    title="Photographs",
    experiments=(Experiment(name="photos", title="pages of photographs on lossy access links", run=run, weight=4),),
    claims=CLAIMS,
    blocks=blocks,
    scenarios=scenarios,
)
