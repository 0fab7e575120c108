"""The worst case of a controller: a search over environments within a budget, for what it loses of what others get there.

| module | mechanism |
|---|---|
| `budget` | what the adversary may do; a candidate, whole numbers, becomes a scenario |
| `objective` | what is run for a candidate, and the regret that is its score |
| `runs` | runs candidates, many at a time, and remembers their scores |
| `journal` | the scores on disk, for one search at a time |
| `search` | which candidates are looked at |
| `shrink` | the simplest candidate that is as bad, and how wide the pit around it is |
| `explain` | where target and reference part |
| `attack` | all of it in order |
| `files` | `worst.toml`, `attack.json`, `junit.xml` and the page |
"""

from __future__ import annotations

from ackclock.attack.attack import Attack, Found, run
from ackclock.attack.budget import Budget, load
from ackclock.attack.objective import OBJECTIVES

__all__ = ["OBJECTIVES", "Attack", "Budget", "Found", "load", "run"]
