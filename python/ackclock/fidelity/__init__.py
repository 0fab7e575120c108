"""Compares the simulator with a real Linux kernel: the same cells, one table, a verdict on each number.

Examples
--------
>>> from ackclock.fidelity import compare
>>> result = compare(seeds=40, jobs=2)  # doctest: +SKIP
>>> result.unexpected  # doctest: +SKIP
()
"""

from ackclock.fidelity.comparison import Comparison, compare
from ackclock.fidelity.verdict import Bound, Row

__all__ = ["Bound", "Comparison", "Row", "compare"]
