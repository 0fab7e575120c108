"""Every case of a finite adversary: the outcome of a run for any combination of lost, marked or late packets among the
first ones.

A search finds bad cases, and a mean over seeds says "about". If the adversary is finite, the engine enumerates every
case, so that a statement about all of them is either proven or refuted by its smallest counterexample.
"""

from __future__ import annotations

from ackclock.prove.adversary import ADVERSARIES, Adversary
from ackclock.prove.cases import Cases
from ackclock.prove.certificate import Certificate, Checked, check
from ackclock.prove.chance import Bernoulli, Chance, Expectation, GilbertElliott, expectation
from ackclock.prove.figure import draw
from ackclock.prove.numbers import Comparison, Summary, compare, summary
from ackclock.prove.proof import Proof, Target, prove
from ackclock.prove.replay import Replayed, replay
from ackclock.prove.words import sentences

__all__ = [
    "ADVERSARIES",
    "Adversary",
    "Bernoulli",
    "Cases",
    "Certificate",
    "Chance",
    "Checked",
    "Comparison",
    "Expectation",
    "GilbertElliott",
    "Proof",
    "Replayed",
    "Summary",
    "Target",
    "check",
    "compare",
    "draw",
    "expectation",
    "prove",
    "replay",
    "sentences",
    "summary",
]
