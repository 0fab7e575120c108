"""A constant that a study adopted where its publication leaves it open, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """A constant and its neighbours.

    Parameters
    ----------
    name
        In words.
    constant
        Module of the study and name: "path.QUEUE".
    neighbours
        Values that it is given instead, one after another; two or more.
    experiments
        Names of those that it touches: only these are run again.
    why
        What the publication says of it, or that it says nothing.
    """

    name: str
    constant: str
    neighbours: tuple[Any, ...]
    experiments: tuple[str, ...]
    why: str = ""
