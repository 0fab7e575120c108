"""Bounds and verdicts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ackclock.fidelity.reference import CWND, GOODPUT, SHARE_ANY, SHARE_DATA
from ackclock.judge.bound import same

Verdict = Literal["holds", "holds within 2 SE", "misses", "known miss", "not judged"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """Maximum distance between the simulator's mean and the kernel's.

    Parameters
    ----------
    relative
        Fraction of the kernel's mean.
    or_spread
        A mean within two standard errors of the kernel's mean counts too.
    """

    relative: float
    or_spread: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """Mean and spread over seeds."""

    mean: float
    sd: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Sample:
        """Summarise one value per seed."""
        sd = statistics.stdev(values) if len(values) > 1 else 0.0
        return cls(mean=statistics.fmean(values), sd=sd, n=len(values))

    @property
    def se(self) -> float:
        """Standard error of the mean."""
        return self.sd / math.sqrt(self.n)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One quantity in a cell.

    Parameters
    ----------
    cell, quantity
        Compared cell and quantity.
    kernel, simulator
        Mean and spread over seeds.
    bound
        Bound; None: shown but not judged.
    verdict
        Outcome.
    cause
        Cause of a known miss; empty otherwise.
    """

    cell: str
    quantity: str
    kernel: Sample
    simulator: Sample
    bound: Bound | None
    verdict: Verdict
    cause: str = ""

    @property
    def difference(self) -> float:
        """Difference between the means, relative to the kernel's."""
        return self.simulator.mean / self.kernel.mean - 1 if self.kernel.mean else math.inf

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {
            "cell": self.cell,
            "quantity": self.quantity,
            "kernel": {"mean": self.kernel.mean, "sd": self.kernel.sd, "se": self.kernel.se, "seeds": self.kernel.n},
            "simulator": {"mean": self.simulator.mean, "sd": self.simulator.sd, "seeds": self.simulator.n},
            "difference": self.difference if math.isfinite(self.difference) else None,
            "bound": None if self.bound is None else self.bound.relative,
            "verdict": self.verdict,
            "cause": self.cause,
        }


_DRAWS = (
    "five draws are few: the kernel's lost 0.093 % instead of 0.1 %; with the same packets lost the simulator holds the "
    "bound"
)

_FEW = (
    "the kernel's five draws are too few for this bound: its own standard error is larger; with the same packets lost the "
    "simulator holds it"
)

_LUCK = (
    "nine packets of such a fetch (six of data) cause a retransmission when lost: 1 - 0.99^9 = 8.6 % (5.9 %); the kernel's "
    "1,500 fetches saw fewer, within two of its standard errors"
)


KNOWN: dict[tuple[str, str], str] = {
    ("n2 reno, 0.1 %, own losses", GOODPUT): _DRAWS,
    ("n2 reno, 0.1 %, own losses", CWND): _DRAWS,
    ("n2 cubic, 0.1 %, own losses", GOODPUT): _DRAWS,
    ("n2 cubic, 0.1 %, own losses", CWND): _DRAWS,
    ("n2 reno, 1 %, own losses", GOODPUT): _FEW,
    ("n2 cubic, 1 %, own losses", GOODPUT): _FEW,
    ("fetches of 7,680 bytes, 1 %", SHARE_ANY): _LUCK,
    ("fetches of 7,680 bytes, 1 %", SHARE_DATA): _LUCK,
}
"""(cell, quantity) -> cause of a known miss. The only list of such misses, explained in docs/fidelity.md."""


def judge(cell: str, quantity: str, *, kernel: Sequence[float], simulator: Sequence[float], bound: Bound | None) -> Row:
    """Compare both sides' means, and judge the difference.

    Parameters
    ----------
    cell, quantity
        What is compared.
    kernel, simulator
        One value per seed.
    bound
        Bound; None: shown but not judged.
    """
    theirs, ours = Sample.of(kernel), Sample.of(simulator)
    cause = ""
    verdict: Verdict
    if bound is None:
        verdict = "not judged"
    else:
        if ours.mean in same(bound.relative * abs(theirs.mean), of=theirs.mean):
            verdict = "holds"
        elif bound.or_spread and ours.mean in same(2 * theirs.se, of=theirs.mean):
            verdict = "holds within 2 SE"
        else:
            cause = KNOWN.get((cell, quantity), "")
            verdict = "known miss" if cause else "misses"
    return Row(cell=cell, quantity=quantity, kernel=theirs, simulator=ours, bound=bound, verdict=verdict, cause=cause)
