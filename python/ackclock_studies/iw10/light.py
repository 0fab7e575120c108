"""The lightly loaded slow link, with and without delayed ACKs (I8)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ackclock.judge.estimates import Array, median, minus
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
from ackclock.study.cells import collect
from ackclock.study.table import declared
from ackclock_studies.iw10 import loaded, testbed
from ackclock_studies.iw10.bursts import ACKS as POLICIES
from ackclock_studies.iw10.bursts import POLICY
from ackclock_studies.iw10.completion_times import gain
from ackclock_studies.iw10.readings import ACKS
from ackclock_studies.iw10.testbed import FAST, IW3, IW10, LIGHT, LOADS, SINGLE, SLOW, where


def run(plan: Plan) -> Data:
    """Single opens at 10 % of 64 kb/s.

    Returns
    -------
    Data
        `light.times`, `light.links`; keys acks, arm.
    """
    seeds = plan.count(quick=24, paper=100)
    cells = []
    duration, warm_up = testbed.length(SLOW, plan.scale)
    for acks, settings in POLICIES.items():
        for arm in (IW3, IW10):
            scenario = testbed.loaded(SLOW, SINGLE, LIGHT, arm, duration_s=duration, **settings)
            keys = {"acks": acks, "arm": arm}
            cells.append(loaded.cell(scenario, keys, stream="light", seeds=seeds, warm_up_s=warm_up, by_window=False))
    return collect("light", cells, plan)


def _gain(tables: Tables, acks: str) -> Array:
    t = tables["light.times"]
    own = t.filter(t["acks"] == acks).sort("seed")
    three, ten = (own.filter(own["arm"] == arm)["mean_s"].to_numpy() for arm in (IW3, IW10))
    return np.asarray(100 * (1 - ten / three))


def _gains(tables: Tables, bound: Bound) -> list[Evidence]:
    chosen = POLICY[ACKS.of(tables)]
    return [
        Evidence.of(
            median(_gain(tables, acks)),
            f"{where(SLOW, SINGLE, LIGHT)}, {acks}: gain of IW10, mean UCT",
            bound,
            unit="%",
            weighs=acks == chosen,
            key=key,
        )
        for key, acks in POLICY.items()
    ]


def i8(tables: Tables) -> Sequence[Evidence]:
    """Check that IW10 gains, and gains less than on the fast link."""
    chosen = POLICY[ACKS.of(tables)]
    fast = median(100 * (1 - gain(tables, FAST, SINGLE, LOADS[FAST][0])))
    less = minus(fast, median(_gain(tables, chosen)))
    text = f"gain of IW10 at {where(FAST, SINGLE, LOADS[FAST][0])}, less that gain"
    return [*_gains(tables, above(0, margin=0.5)), Evidence.of(less, text, above(0), unit="points")]


def i8_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Size of the gain."""
    return _gains(tables, bound)


CHAPTER = Chapter(
    experiments=(
        Experiment(
            name="light", title="the lightly loaded slow link, with and without delayed ACKs", run=run, weight=1
        ),
    ),
    **declared(__name__),
)
