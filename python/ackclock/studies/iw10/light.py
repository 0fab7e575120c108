"""The lightly loaded slow link, with and without delayed ACKs (I8)."""

from __future__ import annotations

from collections.abc import Sequence

from ackclock.studies.iw10 import loaded, testbed
from ackclock.studies.iw10.bursts import ACKS, DELAYED_ACKS, EVERY_ACK, LINUX_ACKS
from ackclock.studies.iw10.testbed import IW3, IW10, LIGHT, SINGLE, SLOW, where
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
from ackclock.study.cells import collect
from ackclock.study.estimates import median


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


def i8(tables: Tables) -> Sequence[Evidence]:
    """Gain on the lightly loaded slow link, with and without delayed ACKs."""
    t = tables["light.times"]
    found = []
    for acks, bound, weighs in (
        (DELAYED_ACKS, between(2, 8), True),
        (EVERY_ACK, between(-1, 1), True),
        (LINUX_ACKS, between(-1, 1), False),
    ):
        own = t.filter(t["acks"] == acks).sort("seed")
        three, ten = (own.filter(own["arm"] == arm)["p50_s"].to_numpy() for arm in (IW3, IW10))
        found.append(
            Evidence.of(
                median(100 * (1 - ten / three)),
                f"{where(SLOW, SINGLE, LIGHT)}, {acks}: gain of IW10, median UCT",
                bound,
                unit="%",
                weighs=weighs,
            )
        )
    return found


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="I8",
        place="slides: completion time at 64 kb/s",
        statement="On the lightly loaded slow link IW10 is only slightly faster.",
        direction=Criterion(
            measure=i8,
            reading="Load 10 %: by 2 to 8 % if the receiver delays ACKs; the same within 1 % if it does not.",
        ),
    ),
)

CHAPTER = Chapter(
    title="The lightly loaded slow link",
    experiments=(
        Experiment(
            name="light", title="the lightly loaded slow link, with and without delayed ACKs", run=run, weight=1
        ),
    ),
    claims=CLAIMS,
)
