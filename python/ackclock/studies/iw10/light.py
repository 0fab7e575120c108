"""The lightly loaded slow link, with and without delayed ACKs (I8)."""

from __future__ import annotations

from ackclock.studies.iw10 import testbed
from ackclock.studies.iw10.bursts import ACKS
from ackclock.studies.iw10.loaded import Collector
from ackclock.studies.iw10.testbed import IW3, IW10, LIGHT, SINGLE, SLOW
from ackclock.study import Data, Plan


def run(plan: Plan) -> Data:
    """Single opens at 10 % of 64 kb/s.

    Returns
    -------
    Data
        `light.times`, `light.links`; keys acks, arm.
    """
    seeds = plan.count(quick=6, paper=12)
    collector = Collector("light", plan, 2 * len(ACKS) * seeds)
    duration, warm_up = testbed.length(SLOW, plan.scale)
    for acks, settings in ACKS.items():
        for arm in (IW3, IW10):
            scenario = testbed.loaded(SLOW, SINGLE, LIGHT, arm, duration_s=duration, **settings)
            keys = {"acks": acks, "arm": arm}
            collector.run(scenario, keys, stream="light", seeds=seeds, warm_up_s=warm_up)
    data = collector.data()
    times = data.tables["light.times"]
    return Data(
        tables={**data.tables, "light.times": times.filter(times["iw"] == 0)}, digests=data.digests, runs=data.runs
    )
