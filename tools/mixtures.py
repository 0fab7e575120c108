"""Comparison of drawn feature mixtures with Linux: the fraction identical, by features and flows, and the errors of the rest.

    tools/mixtures.py SEED COUNT [--jobs N]

Writes measured/mixtures.json and measured/mixtures-apart.json for the book of numbers. A scenario is identical if every event of every flow
and the numbers in the tables are identical. `first flow` is an older criterion: only the events of flow 0. A seed is
fresh until the causes of its differences have been examined.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterable, Sequence

import book
from ackclock.diff import Judged, judge
from ackclock.diff._flows import Flow
from ackclock.fidelity.mixtures import mixtures

HEADS = (
    "features",
    "flows",
    "drawn",
    "identical",
    "first flow",
    "refused",
    "flows over 50 kB",
    "within 1 % of goodput",
    "beyond 10 %",
)
APART = (
    "scenario",
    "worst goodput",
    "retransmissions here",
    "in Linux",
    "timeouts here",
    "in Linux",
    "first difference",
)
LEAST_BYTES = 50_000


def error(flow: Flow) -> float:
    """Relative error of a flow's goodput with respect to the kernel's."""
    here, there = flow.goodput_bps
    if here is None or there is None or here == there:
        return 0.0
    return abs(here / there - 1) if there else float("inf")


def row_of(features: str, flows: str, some: Sequence[Judged]) -> list[book.Cell]:
    """Counts over a set of scenarios."""
    large = [flow for one in some if not one.refused for flow in one.flows if max(flow.bytes) > LEAST_BYTES]
    return [
        features,
        flows,
        len(some),
        sum(one.identical for one in some),
        sum(one.first for one in some),
        sum(one.refused for one in some),
        len(large),
        sum(error(flow) <= 0.01 for flow in large),
        sum(error(flow) > 0.1 for flow in large),
    ]


def rows(judged: Sequence[Judged]) -> Iterable[list[book.Cell]]:
    """One row per kind of mixture, then the totals."""

    def parted(one: Judged) -> tuple[str, str]:
        features, _, several = one.kind.partition(", ")
        return features.split()[0], "several" if several else "one"

    for kind in sorted(Counter(map(parted, judged)), key=lambda kind: (kind[1], kind[0])):
        yield row_of(*kind, [one for one in judged if parted(one) == kind])
    for flows in ("one", "several"):
        yield row_of("all", flows, [one for one in judged if parted(one)[1] == flows])


def main() -> None:
    """Measure and record the comparison."""
    about = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    about.add_argument("seed", type=int)
    about.add_argument("count", type=int)
    about.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    given = about.parse_args()
    judged = judge(mixtures(given.seed, given.count), jobs=given.jobs)
    release = next((one.kernel for one in judged if one.kernel), "none")
    command = f"tools/mixtures.py {given.seed} {given.count}"
    what = f"Drawn scenarios in which one to five features meet, compared with Linux {release} in every event of every flow"
    book.record("mixtures", what=what, heads=HEADS, rows=list(rows(judged)), seeds=str(given.seed), command=command)
    apart = [one for one in judged if not one.identical]
    worst = sorted(apart, key=lambda one: -max(map(error, one.flows), default=float("inf")))
    table: list[list[book.Cell]] = [
        [
            one.name,
            "" if one.effect is None else f"{100 * one.effect:+.1f} %",
            *one.retransmissions,
            *one.timeouts,
            one.text or next((f"flow {flow.number}: {flow.text}" for flow in one.flows if flow.text), ""),
        ]
        for one in worst
    ]
    what = "Mixtures that are not identical, the largest error of a flow's goodput first"
    book.record("mixtures-apart", what=what, heads=APART, rows=table, seeds=str(given.seed), command=command)


if __name__ == "__main__":
    main()
