"""A constant that a study chooses because its publication leaves it open, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """A constant and its neighbouring values.

    Parameters
    ----------
    name
        Description of the constant.
    constant
        Module of the study and name: "path.QUEUE".
    neighbours
        Alternative values, tried one after another; two or more.
    experiments
        Names of the experiments that depend on it: only these are rerun.
    why
        What the publication says about it, if anything.
    """

    name: str
    constant: str
    neighbours: tuple[Any, ...]
    experiments: tuple[str, ...]
    why: str = ""
