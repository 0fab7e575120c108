"""The lightly loaded slow link, with and without delayed ACKs (I8)."""

from __future__ import annotations

from ackclock.studies.iw10 import loaded, testbed
from ackclock.studies.iw10.bursts import ACKS
from ackclock.studies.iw10.testbed import IW3, IW10, LIGHT, SINGLE, SLOW
from ackclock.study import Data, Plan
from ackclock.study.cells import collect


def run(plan: Plan) -> Data:
    """Single opens at 10 % of 64 kb/s.

    Returns
    -------
    Data
        `light.times`, `light.links`; keys acks, arm.
    """
    seeds = plan.count(quick=6, paper=12)
    cells = []
    duration, warm_up = testbed.length(SLOW, plan.scale)
    for acks, settings in ACKS.items():
        for arm in (IW3, IW10):
            scenario = testbed.loaded(SLOW, SINGLE, LIGHT, arm, duration_s=duration, **settings)
            keys = {"acks": acks, "arm": arm}
            cells.append(loaded.cell(scenario, keys, stream="light", seeds=seeds, warm_up_s=warm_up, by_window=False))
    return collect("light", cells, plan)
