"""Statistics over all cases: a target's distribution, and comparisons of two targets case by case."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ackclock.prove.cases import Cases

S = 1e9
"""Nanoseconds per second."""

UNFINISHED = np.iinfo("<i8").max
"""Time of a case that does not complete; larger than any other."""


@dataclass(frozen=True, slots=True)
class Group:
    """Cases with the same number of losses (marks, late packets)."""

    yes: int
    cases: int
    least_s: float
    median_s: float
    mean_s: float
    most_s: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Distribution of a target's times over all cases. Incomplete cases count as longer than any other.

    Parameters
    ----------
    cases, unfinished
        Number of cases, and of those that do not complete.
    least_s, median_s, mean_s, worst_s
        Statistics of the time to completion; the median is the lower one of two, the mean is over those that complete.
    none, median, worst
        Answers of the case without a "yes", of the simplest case with the median, and of the simplest worst case. The
        simplest case has the fewest answers "yes", and of several it is the first.
    asked
        Number of questions asked in the median and in the worst case.
    with_timeouts, most_timeouts, queue_lost
        Cases with timeouts, most timeouts of a case, cases in which a queue dropped packets.
    by_yes
        Groups of cases by number of losses.
    """

    cases: int
    unfinished: int
    least_s: float
    median_s: float
    mean_s: float
    worst_s: float
    median: int
    worst: int
    asked: tuple[int, int]
    with_timeouts: int
    most_timeouts: int
    queue_lost: int
    by_yes: tuple[Group, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary. Answers are text, because they can be 128 bits long."""
        values = asdict(self)
        values.update(median=str(self.median), worst=str(self.worst), asked=list(self.asked))
        values["by_yes"] = [asdict(group) for group in self.by_yes]
        return {name: None if value == float("inf") else value for name, value in values.items()}


def seconds(ns: int) -> float:
    """Return seconds for nanoseconds; infinite for an incomplete transfer."""
    return float("inf") if ns in (-1, UNFINISHED) else ns / S


def summary(cases: Cases) -> Summary:
    """Return the distribution of a target."""
    took = times(cases)
    order = np.sort(took)
    median = int(order[(len(order) - 1) // 2])
    ended = took[took != UNFINISHED]
    groups = []
    for yes in range(int(cases.yes.max()) + 1):
        of = np.sort(took[cases.yes == yes])
        if len(of):
            done = of[of != UNFINISHED]
            mean = float(done.mean() / S) if len(done) else float("inf")
            groups.append(
                Group(
                    yes, len(of), seconds(int(of[0])), seconds(int(of[(len(of) - 1) // 2])), mean, seconds(int(of[-1]))
                )
            )
    at_median, at_worst = simplest(cases, took == median), simplest(cases, took == order[-1])
    return Summary(
        cases=len(cases),
        unfinished=len(took) - len(ended),
        least_s=seconds(int(order[0])),
        median_s=seconds(median),
        mean_s=float(ended.mean() / S) if len(ended) else float("inf"),
        worst_s=seconds(int(order[-1])),
        median=cases.answers(at_median),
        worst=cases.answers(at_worst),
        asked=(int(cases["asked"][at_median]), int(cases["asked"][at_worst])),
        with_timeouts=int((cases["timeouts"] > 0).sum()),
        most_timeouts=int(cases["timeouts"].max()),
        queue_lost=int(cases["queue_lost"].sum()),
        by_yes=tuple(groups),
    )


def times(cases: Cases) -> Any:
    """Return the completion times, ns; `UNFINISHED` for cases that do not complete."""
    return np.where(cases["took_ns"] < 0, UNFINISHED, cases["took_ns"])


def simplest(cases: Cases, among: Any) -> int:
    """Return the index of the case with the fewest "yes" answers among these; the first one if there are several."""
    places = np.flatnonzero(among)
    return int(places[np.argmin(cases.yes[places])])


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two targets, case by case.

    Parameters
    ----------
    first, second
        Names of the targets.
    cases
        Number of cases.
    faster, equal, slower
        Number of cases in which the first target is faster, equal or slower.
    most_faster_s, most_slower_s
        Maximum differences, s; 0 if there are none, infinite if the other target does not complete.
    smallest_faster, smallest_slower
        Answers of the simplest such case; None if there is none.
    mean_difference_s
        First minus second, seconds, over the cases that both complete.
    """

    first: str
    second: str
    cases: int
    faster: int
    equal: int
    slower: int
    most_faster_s: float
    most_slower_s: float
    smallest_faster: int | None
    smallest_slower: int | None
    mean_difference_s: float

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        values = asdict(self)
        for name in ("smallest_faster", "smallest_slower"):
            values[name] = None if values[name] is None else str(values[name])
        return {name: None if value == float("inf") else value for name, value in values.items()}


def compare(names: tuple[str, str], first: Cases, second: Cases) -> Comparison | None:
    """Compare two targets case by case; None if the cases differ because the questions depend on the run."""
    same = all(np.array_equal(first[name], second[name]) for name in ("answers", "answers_above"))
    if not same:
        return None
    a, b = times(first), times(second)
    faster, slower = a < b, a > b

    def most(longer: Any, shorter: Any, where: Any) -> float:
        if not where.any():
            return 0.0
        if (longer[where] == UNFINISHED).any():
            return float("inf")
        return float((longer[where] - shorter[where]).max() / S)

    both = (a != UNFINISHED) & (b != UNFINISHED)
    return Comparison(
        first=names[0],
        second=names[1],
        cases=len(a),
        faster=int(faster.sum()),
        equal=int((a == b).sum()),
        slower=int(slower.sum()),
        most_faster_s=most(b, a, faster),
        most_slower_s=most(a, b, slower),
        smallest_faster=first.answers(simplest(first, faster)) if faster.any() else None,
        smallest_slower=first.answers(simplest(first, slower)) if slower.any() else None,
        mean_difference_s=float((a[both] - b[both]).mean() / S) if both.any() else 0.0,
    )
