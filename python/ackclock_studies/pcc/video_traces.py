"""The other reading of "PCC suits video": long flows' throughput, second by second, as input to a simple player."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array
from ackclock.scenario import Scenario
from ackclock.stats import paired_difference
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    above,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock.video import HORIZON, inefficiency, instability, unfairness
from ackclock_studies.pcc import arms, testbed, video
from ackclock_studies.pcc.arms import CUBIC, PCC, PRINTED, Arm

FLOWS = 4
LASTS_S = 180
"""Duration at both scales, s: PCC's flows still converge to fair shares after two minutes, so a shorter run would answer a different question."""


def scenario(arm: Arm, duration_s: int) -> Scenario:
    """Four flows that always have data to send, on the players' link."""
    stagger = {"kind": "uniform", "low": "100 ms", "high": "4 s"}
    return Scenario.from_dict(
        {
            "name": f"{FLOWS} long flows, {arm.name}",
            "duration": f"{duration_s} s",
            "network": video.link(FLOWS),
            "flows": [arm.flows(count=FLOWS, stagger=stagger)],
            "record": {"goodput_interval": "1 s"},
        }
    )


def toy(bps: Array) -> Array:
    """Bitrates of players without a buffer: each second, the highest one below the previous second's throughput.

    Parameters
    ----------
    bps
        A row per second, a column per flow.
    """
    ladder = 1e6 * np.array(video.LADDER_MBPS)
    level = np.searchsorted(ladder, bps[:-1], side="right") - 1
    found: Array = ladder[np.clip(level, 0, None)]
    return found


def measured(mbps: Array, capacity_bps: float, warm_up_s: int) -> dict[str, float]:
    """The toy players' metrics and the transport's own measurements.

    Parameters
    ----------
    mbps
        Goodput: a row per second, a column per flow.
    capacity_bps
        Capacity of the link.
    warm_up_s
        Seconds that do not count, not less than the horizon of instability.

    Returns
    -------
    dict
        inefficiency, unfairness, instability; jain (mean over seconds) and sd_mbps (mean over flows) of the goodput.
    """
    players = toy(1e6 * mbps)
    late = range(warm_up_s, len(players))
    return {
        "inefficiency": float(np.mean([inefficiency(players[t], capacity_bps) for t in late])),
        "unfairness": float(np.mean([unfairness(players[t]) for t in late])),
        "instability": float(
            np.mean([instability(list(players[t - HORIZON : t + 1, i])) for t in late for i in range(FLOWS)])
        ),
        "jain": float(np.mean([testbed.jain(row) for row in mbps[warm_up_s:]])),
        "sd_mbps": float(mbps[warm_up_s:].std(axis=0, ddof=1).mean()),
    }


NEEDS = {"goodput": ("flow", "t_s", "goodput_bps"), "links": video.LINKS}


def run(plan: Plan) -> Data:
    """Four long flows for 180 s.

    Returns
    -------
    Data
        `traces.runs`: arm, seed, the numbers of `measured` from 60 s on, and lost (fraction of the data packets dropped
        by the bottleneck).
    """
    cells = [
        Cell(
            scenario=scenario(arm, LASTS_S),
            keys={"arm": arm.name},
            stream="video traces",
            seeds=plan.count(quick=8, paper=40 if arm in (PCC, CUBIC) else 10),
            needs=NEEDS,
        )
        for arm in video.ARMS
    ]
    data = collect("traces", cells, plan)
    rows = []
    lost = {
        (name, seed): share
        for (name,), links in data.tables["traces.links"].group_by("arm", maintain_order=True)
        for seed, share in video.dropped(links).iter_rows()
    }
    for (name, seed), own in data.tables["traces.goodput"].group_by("arm", "seed", maintain_order=True):
        arm = next(arm for arm in video.ARMS if arm.name == name)
        mbps = testbed.series(own, FLOWS, LASTS_S)
        numbers = measured(mbps, arm.carried(FLOWS * video.SHARE_MBPS * 1e6), video.WARM_UP_S)
        rows.append({"arm": name, "seed": seed, **numbers, "lost": lost[name, seed]})
    return Data(tables={TABLE: pl.DataFrame(rows)}, digests=data.digests, runs=data.runs)


TABLE = "traces.runs"
BETTER = above(0, margin=0.02)
"""Bound for an improvement. As elsewhere, differences below its margin, a fraction of the link, count as none."""


def steadier(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Toy players over PCC against those over CUBIC."""

    def less(one: Arm, other: Arm, column: str) -> Any:
        """Difference between two arms, paired by runs with the same start times."""
        a, b = (arms.pick(tables, TABLE, column, arm=arm.name) for arm in (one, other))
        pairs = min(a.size, b.size)
        return paired_difference(a[:pairs], b[:pairs])

    metrics = [
        Evidence.of(
            less(CUBIC, arm, metric),
            f"toy players: {metric}, CUBIC less {arm.name}",
            BETTER,
            weighs=arm is PCC and metric != "inefficiency",
        )
        for arm in (PCC, PRINTED)
        for metric in video.METRICS
    ]
    transport = [
        Evidence.of(less(PCC, CUBIC, "jain"), "Jain's index, PCC less CUBIC", bound, weighs=False),
        Evidence.of(
            less(CUBIC, PCC, "sd_mbps"),
            "standard deviation, CUBIC less PCC",
            bound,
            unit="Mb/s",
            weighs=False,
        ),
    ]
    return [*metrics, *transport]


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"Four long flows of PCC on the players' link": scenario(PCC, LASTS_S)}


EXPERIMENT = Experiment(name="traces", title="toy players on long flows' throughput", run=run, weight=3)


CHAPTER = Chapter(experiments=(EXPERIMENT,), **declared(__name__), scenarios=scenarios)
