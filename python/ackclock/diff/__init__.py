"""The simulator beside the real kernel on one scenario: where they first differ, ACK by ACK, and by how much in the end.

Both backends run over the same links with the same losses (the linux backend's relay); only the TCP differs.
"""

from __future__ import annotations

from ackclock.diff._compare import Agreement, Comparison, Divergence, compare
from ackclock.diff._figure import draw
from ackclock.diff._patterns import PATTERNS, Pattern

__all__ = ["PATTERNS", "Agreement", "Comparison", "Divergence", "Pattern", "compare", "draw"]
