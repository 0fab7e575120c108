"""The single judge: a number with its interval, a bound with its margin, and the relation between the two. Studies,
`evaluate`, `compare` and `fidelity` pose the same question in different words: is an interval below, within or above
the bound? `Bound.places` decides it, and each caller has a small table that maps positions to words.
"""

from ackclock.judge.bound import (
    Bound,
    Place,
    Verdict,
    above,
    at_least,
    at_most,
    below,
    between,
    exactly,
    interval,
    number,
    same,
)
from ackclock.judge.evidence import Evidence, Quantity, conjunction, decisive, finite

__all__ = [
    "Bound",
    "Evidence",
    "Place",
    "Quantity",
    "Verdict",
    "above",
    "at_least",
    "at_most",
    "below",
    "between",
    "conjunction",
    "decisive",
    "exactly",
    "finite",
    "interval",
    "number",
    "same",
]
