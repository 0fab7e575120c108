"""Expectations over all cases: the exact probability of each case under random loss, without seeds. Omitted cases
have a probability as well, so the expectation has bounds: an omitted case takes at least until it was cut off, and at
most the rest of the run.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ackclock.errors import InputError
from ackclock.prove.adversary import Adversary
from ackclock.prove.cases import Cases
from ackclock.prove.numbers import S, times

QUANTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """Independent losses: each packet decided on is lost with probability p.

    Parameters
    ----------
    p
        Probability, 0 to 1.
    """

    p: float

    @property
    def words(self) -> str:
        """Description in words."""
        return f"loss {self.p * 100:g} %"

    def weights(self, cases: Cases) -> Any:
        """Return the probability of each case."""
        return self.p ** cases.yes.astype(float) * (1 - self.p) ** (cases["asked"] - cases.yes.astype(float))

    def cut(self, question: int, yes: int) -> float:
        """Return the probability of a case omitted at this question, including its own "yes"."""
        return float(self.p**yes * (1 - self.p) ** (question + 1 - yes))


@dataclass(frozen=True, slots=True)
class GilbertElliott:
    """Bursts: losses occur only in the bad state. For each packet decided on, good turns to bad with
    probability p and bad to good with probability r.

    Parameters
    ----------
    p, r
        Probabilities, 0 to 1.
    """

    p: float
    r: float

    @property
    def words(self) -> str:
        """Description in words."""
        return f"Gilbert-Elliott, p {self.p:g}, r {self.r:g}"

    def weights(self, cases: Cases) -> Any:
        """Return the probability of each case."""
        share = self.p / (self.p + self.r) if self.p > 0 else 0.0
        good, bad = np.full(len(cases), 1 - share), np.full(len(cases), share)
        for k in range(int(cases["asked"].max())):
            words = cases["answers"] if k < 64 else cases["answers_above"]
            lost = (words >> np.uint64(k % 64)) & np.uint64(1) == 1
            in_good, in_bad = np.where(lost, 0.0, good), np.where(lost, bad, 0.0)
            after = in_good * (1 - self.p) + in_bad * self.r, in_good * self.p + in_bad * (1 - self.r)
            asked = cases["asked"] > k
            good, bad = np.where(asked, after[0], good), np.where(asked, after[1], bad)
        return good + bad


Chance = Bernoulli | GilbertElliott


@dataclass(frozen=True, slots=True)
class Expectation:
    """Expectation of the time to completion, or to the end of the run if that comes first.

    Parameters
    ----------
    chance
        Losses, in words.
    probability_left_out
        Probability of the omitted cases.
    low_s, high_s
        Bounds of the mean; equal if nothing was omitted.
    quantiles
        Level and bounds of each quantile; None: beyond the enumerated cases.
    """

    chance: str
    probability_left_out: float
    low_s: float
    high_s: float
    quantiles: tuple[tuple[float, float, float | None], ...]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return asdict(self)


def expectation(cases: Cases, chance: Chance, adversary: Adversary, rest_s: float) -> Expectation:
    """Return the exact mean and quantiles under random packet loss.

    Parameters
    ----------
    cases
        All cases of a target.
    chance
        Model of the losses.
    adversary
        Adversary of the cases.
    rest_s
        Time from the flow's start to the end of the run, seconds.
    """
    if adversary.name not in ("losses", "data", "packets"):
        raise InputError(f"--chance: found it with {adversary.name}; allowed: with losses, data, packets")
    if isinstance(chance, GilbertElliott) and (adversary.name == "packets" or adversary.is_limited):
        raise InputError("--bursts: found it with packets or --most; allowed: with losses or data, without --most")
    weights = chance.weights(cases)
    took = np.minimum(times(cases) / S, rest_s)
    order = np.argsort(took, kind="stable")
    below = np.cumsum(weights[order])
    inside = float(np.sum(weights))
    left = max(1.0 - inside, 0.0)
    if left < 1e-12 and not adversary.is_limited:
        left = 0.0
    mean = float(np.sum(weights * took))
    low = mean
    if isinstance(chance, Bernoulli):
        yes = 1 + (adversary.most or 0)
        low += sum(chance.cut(k, yes) * since / S for k, (count, since) in enumerate(cases.cuts) if count)
    quantiles = []
    for share in QUANTILES:
        # omitted cases may all lie below, or all above
        under, over = int(np.searchsorted(below, share - left - 1e-12)), int(np.searchsorted(below, share - 1e-12))
        beyond = over >= len(took)
        quantiles.append(
            (share, float(took[order[min(under, len(took) - 1)]]), None if beyond else float(took[order[over]]))
        )
    return Expectation(chance.words, left, low, mean + left * rest_s, tuple(quantiles))
