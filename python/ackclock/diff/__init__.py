"""Compares the simulator with the real kernel, or two kernels, on one scenario: the first differing ACK or
transmission, and the final deviation.

Both backends run over the same links with the same losses (the linux backend's relay); only the TCP differs.
"""

from __future__ import annotations

from ackclock.diff._compare import BACKENDS, Agreement, Comparison, Divergence, both, compare
from ackclock.diff._figure import draw
from ackclock.diff._flows import Flow
from ackclock.diff._judge import Judged, errors, judge, table
from ackclock.diff._patterns import PATTERNS, Pattern
from ackclock.diff._seeds import Distributions, Spread, over_seeds

__all__ = [
    "BACKENDS",
    "PATTERNS",
    "Agreement",
    "Comparison",
    "Distributions",
    "Divergence",
    "Flow",
    "Judged",
    "Pattern",
    "Spread",
    "both",
    "compare",
    "draw",
    "errors",
    "judge",
    "over_seeds",
    "table",
]
