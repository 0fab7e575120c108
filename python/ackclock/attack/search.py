"""Choice of candidates. Each search requests scores in batches until a request raises `Enough`.

A search has its own random generator and waits for each complete batch, so that neither threads nor interruptions
affect its requests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ackclock.attack.budget import Budget, Candidate

Ask = Callable[[Sequence[Candidate]], list[float]]

POPULATION = 25
"""Candidates per generation, as in AdvNet."""

REDRAWN = 0.2
"""Probability that a number is drawn again, as in AdvNet."""

NEAR = 0.2
"""Probability that a number moves by up to a tenth of its range."""

TRIES = 50
"""Maximum number of attempts to draw an unknown candidate. A budget may have fewer candidates than
requested.
"""


class Enough(Exception):
    """Raised when the requested number of candidates has been examined."""


def at_random(ask: Ask, budget: Budget, seed: int) -> None:
    """Draw candidates uniformly."""
    rng = random.Random(seed)
    seen: set[Candidate] = set()
    while True:
        ask(_fresh(lambda: budget.drawn(rng), seen))


def genetic(ask: Ask, budget: Budget, seed: int) -> None:
    """Keep the fittest of parents and children; children are two-point crossovers with some numbers redrawn or moved."""
    rng = random.Random(seed)
    seen: set[Candidate] = set()
    first = _fresh(lambda: budget.drawn(rng), seen)
    living = list(zip(ask(first), first, strict=True))

    def parent() -> Candidate:
        a, b = rng.randrange(len(living)), rng.randrange(len(living))
        return living[min(a, b)][1]  # candidates are sorted by score

    def child() -> Candidate:
        one, other = parent(), parent()
        i, j = sorted(rng.randrange(len(one) + 1) for _ in range(2))
        mixed = one[:i] + other[i:j] + one[j:]
        return tuple(_mutated(gene, value, rng) for gene, value in zip(budget.genes, mixed, strict=True))

    while True:
        living = sorted(living, key=lambda entry: (-entry[0], entry[1]))[:POPULATION]
        children = _fresh(child, seen)
        living += zip(ask(children), children, strict=True)


def _mutated(gene: Any, value: int, rng: random.Random) -> int:
    chance = rng.random()
    if chance < REDRAWN:
        return int(gene.at(rng.random()))
    if chance < REDRAWN + NEAR:
        reach = (gene.high - gene.low) / 10 if not gene.log else value / 5
        return int(gene.clip(round(value + rng.uniform(-reach, reach))))
    return value


def evolution(ask: Ask, budget: Budget, seed: int) -> None:
    """Run scipy's differential evolution (Storn and Price 1997) on each number's position within its range."""
    import numpy as np
    from scipy.optimize import Bounds, differential_evolution

    genes = budget.genes
    seen: set[Candidate] = set()

    def regret(shares: Any) -> Any:
        columns = np.atleast_2d(shares.T).tolist()
        candidates = [tuple(gene.at(s) for gene, s in zip(genes, column, strict=True)) for column in columns]
        seen.update(candidates)
        return -np.array(ask(candidates))

    while True:  # if the population has become uniform, it restarts until there are enough candidates
        before = len(seen)
        differential_evolution(
            regret,
            Bounds(np.zeros(len(genes)), np.ones(len(genes))),
            popsize=max(1, -(-POPULATION // len(genes))),
            mutation=(0.4, 0.9),
            rng=np.random.default_rng(seed),
            polish=False,
            updating="deferred",
            vectorized=True,
        )
        seed += 1
        if len(seen) == before:
            raise Enough


def _fresh(draw: Callable[[], Candidate], seen: set[Candidate]) -> list[Candidate]:
    """Return a generation of candidates not requested yet, or fewer if there are no more."""
    found: list[Candidate] = []
    for _ in range(POPULATION):
        for _ in range(TRIES):
            drawn = draw()
            if drawn not in seen:
                seen.add(drawn)
                found.append(drawn)
                break
    if not found:
        raise Enough
    return found


SEARCHES: Mapping[str, Callable[[Ask, Budget, int], None]] = {
    "genetic": genetic,
    "random": at_random,
    "evolution": evolution,
}
"""Name -> search function."""
