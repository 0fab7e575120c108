"""Searches for a controller's worst case: environments within a budget in which it gets much less than other controllers do.

| module | mechanism |
|---|---|
| `budget` | limits of the adversary; a candidate (integers) becomes a scenario |
| `objective` | a candidate's runs, and the regret that is its score |
| `runs` | runs candidates in parallel, and stores their scores |
| `journal` | the scores on disk, for one search at a time |
| `search` | choice of candidates |
| `shrink` | the simplest candidate that is nearly as bad as the worst, and the fraction of its neighbours that are as well |
| `explain` | point at which target and reference diverge |
| `attack` | all steps in order |
| `files` | `worst.toml`, `attack.json`, `junit.xml` and the page |
"""

from __future__ import annotations

from ackclock.attack.attack import Attack, Found, run
from ackclock.attack.budget import Budget, load
from ackclock.attack.objective import OBJECTIVES

__all__ = ["OBJECTIVES", "Attack", "Budget", "Found", "load", "run"]
