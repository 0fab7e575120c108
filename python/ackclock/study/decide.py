"""Adds runs for undecided claims until they are decided, or until the next round would exceed the available time.
The first look is with the scale's own number of runs. The cost of repeated looks is described in `judge.looks`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ackclock.judge.bound import AGAINST, Bound, Verdict
from ackclock.judge.evidence import Evidence, wider
from ackclock.judge.looks import BEYOND, HOPELESS, LOOKS, times_needed
from ackclock.study.claim import Claim, Outcome
from ackclock.study.plan import Plan
from ackclock.study.study import Study, carry_out


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """Outcome of a claim that was undecided in the first round.

    Parameters
    ----------
    claim
        The claim.
    outcome
        Outcome of the last run, which has the most seeds.
    times
        Number of runs behind it, as a multiple of the scale's.
    needed
        Multiple of the scale's runs that would decide it, given its current interval; infinite if the value lies on a
        limit or has no interval.
    scale
        Scale of the runs.
    """

    claim: Claim
    outcome: Outcome
    times: int
    needed: float
    scale: str

    @property
    def asked(self) -> bool:
        """Whether the scale can settle the question. False if the scale is so small that no deciding number has a value."""
        half = self.outcome.main
        left = _open(half.evidence) if half else []
        return not left or any(e.seeds or not math.isnan(e.value) for e in left)

    @property
    def told(self) -> str:
        """The outcome in a sentence."""
        if self.outcome.verdict is not Verdict.UNDECIDED:
            return f"{self.claim.id}: {self.outcome.verdict}, with {self.times} times the runs of the scale"
        if not self.asked:
            return f"{self.claim.id}: not asked at scale {self.scale}, whose runs are too few or too short; --scale paper asks it"
        if self.needed > BEYOND:
            return f"{self.claim.id}: undecided with {self.times} times the runs of the scale; more of them are not expected to decide it"
        return f"{self.claim.id}: undecided with {self.times} times the runs of the scale; about {math.ceil(self.needed):,} times would decide it"


def decide(
    study: Study,
    ids: Sequence[str] | None,
    plan: Plan,
    within_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> list[Decided]:
    """Double the runs of undecided claims until each is decided, or until the next round would take too long.

    Parameters
    ----------
    study
        Study with the claims.
    ids
        Claims to decide; None: all.
    plan
        Scale, threads and store. With a store, no run is repeated.
    within_s
        Time for all rounds, seconds.
    clock
        Clock, seconds.

    Returns
    -------
    list
        One entry for each claim that was undecided in the first round.
    """
    began = clock()
    claims = [c for c in study.claims if ids is None or c.id in ids]
    ran = carry_out(study.experiments, plan)
    found = {c.id: c.judge(ran.tables) for c in claims}
    open_ = [c for c in claims if found[c.id].verdict is Verdict.UNDECIDED]
    results = {
        c.id: Decided(claim=c, outcome=found[c.id], times=1, needed=needed(found[c.id]), scale=plan.scale)
        for c in open_
    }
    times, last, runs = 1, clock() - began, ran.runs
    before: list[str] = []
    hopeless = {c.id: 0 for c in open_}
    while open_:
        # a fraction may happen to lie on its limit once
        for c in open_:
            hopeless[c.id] = 0 if math.isfinite(results[c.id].needed) else hopeless[c.id] + 1
        hopeful = [c for c in open_ if results[c.id].asked and hopeless[c.id] < HOPELESS]
        round_began = clock()
        if not hopeful or round_began - began + 2 * last > within_s:
            break
        experiments = study.used_by(hopeful, ran.tables)
        times *= 2
        part = plan.more(times)
        if part is None:
            break
        made = carry_out(experiments, part)
        if (names := [e.name for e in experiments]) == before and made.runs <= runs:  # no cell can get more runs
            break
        before = names
        ran.tables.update(made.tables)
        last, runs = clock() - round_began, made.runs
        for claim in hopeful:
            outcome = claim.judge(ran.tables, LOOKS)
            results[claim.id] = Decided(
                claim=claim, outcome=outcome, times=times, needed=times * needed(outcome), scale=plan.scale
            )
        open_ = [c for c in hopeful if results[c.id].outcome.verdict is Verdict.UNDECIDED]
    return list(results.values())


def needed(outcome: Outcome) -> float:
    """Return the multiple of the present number of runs that would decide the half with the claim's verdict; 1 if it is decided."""
    half = outcome.main
    if half is None or half.verdict is not Verdict.UNDECIDED:
        return 1.0
    among = sum(e.weighs for e in half.evidence)
    return max((_times(e, among) for e in _open(half.evidence)), default=math.inf)


def _open(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return the undecided numbers of a half."""
    weighing = [e for e in evidence if e.weighs]
    return [e for e in weighing if e.judge(len(weighing)) is Verdict.UNDECIDED]


def _times(e: Evidence, among: int) -> float:
    """Return the multiple of runs for one number. The half-width of its interval is inversely proportional to the
    square root of the number of runs, and must shrink to the distance from the nearest limit.
    """
    if e.interval is not None and 0 < e.seeds < ENOUGH and not all(map(math.isfinite, e.interval)):
        return ENOUGH / e.seeds
    if e.interval is None or not all(map(math.isfinite, (*e.interval, e.value))):
        return math.inf
    # verdicts against a claim must survive the correction for its number of values
    factor = wider(LOOKS * (among if e.bound.judge(e.value, e.value) in AGAINST else 1), e.seeds)
    low, high = (e.value + factor * (end - e.value) for end in e.interval)
    return times_needed(e.value, low, high, limits(e.bound))


ENOUGH = 6
"""Minimum number of runs for a distribution-free interval of a median (`least_for_quantile`)."""


def limits(bound: Bound) -> list[float]:
    """Return the limits between verdicts."""
    ends = [x for x in (bound.low, bound.high) if math.isfinite(x)]
    return sorted({x + s * bound.margin for x in ends for s in (-1, 1)})
