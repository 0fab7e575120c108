"""Published test cases for congestion controllers as data (scenario, predicate, source), and a controller's results on
them.
"""

from ackclock.conform.harness import Outcome, Result, conform
from ackclock.conform.packs import Case, Pack, names, pack

__all__ = ["Case", "Outcome", "Pack", "Result", "conform", "names", "pack"]
