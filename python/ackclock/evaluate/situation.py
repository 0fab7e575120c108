"""Rows of the evaluation: a sentence of RFC 9743, the cells in which it is looked at, and what is measured there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import polars as pl

PLACE = "@"
"""Stands in a cell's scenario where the candidate goes, and in the other arms its rivals."""

SCALES = ("quick", "standard", "full")
Scale = Literal["quick", "standard", "full"]

Environment = Literal["internet", "datacentre"]
"""Environment that a controller is meant for."""

Level = Literal["MUST", "SHOULD", "should", "ought", ""]
"""How the RFC says it; empty where it only describes, or where the row is ours."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A scenario with a place for the candidate.

    Parameters
    ----------
    id
        Unique in its row; part of file names.
    scenario
        The keys of a scenario. `PLACE` stands where the controller is named.
    about
        Numbers that name the cell: `rate_bps`, `rtt_s`, `buffer_bdp`, `victim`, `flows`.
    scale
        The smallest scale at which it is looked at.
    alone
        Also run it without the candidate: what the others get by themselves is what harm is measured by.
    gigabit
        It has a rate of 1 Gbit/s, and is looked at only if that was asked for.
    """

    id: str
    scenario: Mapping[str, Any] = field(repr=False)
    about: Mapping[str, Any] = field(default_factory=dict)
    scale: Scale = "standard"
    alone: bool = False
    gigabit: bool = False

    @cached_property
    def base_delay_s(self) -> float:
        """One-way delay of the idle path, s."""
        return float(self.about.get("rtt_s", 0.0)) / 2

    @property
    def words(self) -> str:
        """The cell for people."""
        parts = []
        if "rate_bps" in self.about:
            bps = self.about["rate_bps"]
            parts.append(f"{bps / 1e9:.4g} Gbit/s" if bps >= 1e9 else f"{bps / 1e6:.4g} Mbit/s")
        if "rtt_s" in self.about:
            parts.append(f"{self.about['rtt_s'] * 1e3:g} ms")
        if "buffer_bdp" in self.about:
            parts.append(f"{self.about['buffer_bdp']:g} BDP")
        if "what" in self.about:
            parts.append(str(self.about["what"]))
        return ", ".join(parts) or self.id


class Tables:
    """Tables that the runs of one cell under one controller left, seed by seed.

    Parameters
    ----------
    frames
        Table -> rows, with a column `seed`.
    digests
        Seed -> digest of the run.
    alone
        The same of the cell without the candidate.
    """

    def __init__(
        self, frames: Mapping[str, pl.DataFrame], digests: Mapping[int, str], alone: Tables | None = None
    ) -> None:
        self.frames = frames
        self.digests = digests
        self.alone = alone

    def group(self, name: str, column: str) -> dict[int, float]:
        """A column of `performance`, of the group with this name."""
        import polars as pl

        rows = self.frames["performance"]
        found = rows.filter((pl.col("of") == "group") & (pl.col("name") == name)).select("seed", column)
        return _values(found, column)

    def whole(self, column: str) -> dict[int, float]:
        """A column of `performance`, of all flows together."""
        import polars as pl

        found = self.frames["performance"].filter(pl.col("of") == "run").select("seed", column)
        return _values(found, column)

    def rows(self, table: str) -> dict[int, pl.DataFrame]:
        """Rows of another table; an entry for every seed."""
        frame = self.frames[table]
        if not frame.height:
            return dict.fromkeys(self.digests, frame)
        parts = {int(key[0]): part for key, part in frame.group_by("seed", maintain_order=True)}
        return {seed: parts.get(seed, frame.head(0)) for seed in self.digests}


def _values(found: pl.DataFrame, column: str) -> dict[int, float]:
    import polars as pl

    numbers = found[column].cast(pl.Float64).fill_null(float("nan")).to_list()
    return dict(zip(found["seed"].to_list(), numbers, strict=True))


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A number of each run, which side of it is good, and how much worse does not matter.

    Parameters
    ----------
    name, unit
        For people. Units: "share", "s", "", "bit/s".
    of
        Number of each run, by seed; NaN where there is none.
    better
        Which direction is.
    margin
        Ours. In the unit, or with `relative` a share of the reference's mean.
    least
        Of a relative margin, in the unit.
    judged
        Whether it counts; otherwise it is reported only.
    only_if
        It counts only in cells where this other measure differs by no more than its margin.
    ratio
        Rates, which may differ by orders of magnitude: compared by the logarithm of their quotient, `margin` being a factor and
        `least` what a smaller number counts as.
    duty
        What no run of the candidate may exceed, whatever CUBIC does; None: there is no such bound.
    most
        The greatest number that a run of a cell can show, where it then means that or more; None: there is none.
    """

    name: str
    of: Callable[[Tables, Cell], dict[int, float]] = field(repr=False)
    better: Literal["more", "less"]
    margin: float
    unit: str = "share"
    relative: bool = False
    least: float = 0.0
    judged: bool = True
    only_if: str = ""
    ratio: bool = False
    duty: float | None = None
    most: Callable[[Cell], float] | None = field(default=None, repr=False)

    @property
    def of_differences(self) -> str:
        """Unit of differences."""
        return "ratio" if self.ratio else self.unit

    def compared(self, value: float) -> float:
        """A number as differences are made of it."""
        return math.log(max(value, self.least)) if self.ratio else value

    def margin_at(self, reference: float) -> float:
        """The margin in the unit of differences, where the reference has this mean."""
        if self.ratio:
            return math.log(self.margin)
        return max(self.margin * abs(reference), self.least) if self.relative else self.margin


@dataclass(frozen=True, kw_only=True)
class Row:
    """One sentence of RFC 9743, or of ours, and how it is looked at.

    Parameters
    ----------
    id
        Number in the report.
    section, level, quote
        Where the RFC says it, how, and its words; section is empty where the row is ours.
    title
        A few words.
    cells, measures
        What is run, and what is measured. Without cells the row is not tested.
    needs
        What is missing for it, or for a part of it.
    note
        What else a reader has to know.
    applies
        Empty, or why it does not apply unless the author says so.
    environment
        Its cells are run only for a controller that is meant for it; empty: for all.
    starves
        The measure of how long the candidate itself is starved, which is said apart.
    """

    id: str
    section: str
    level: Level
    quote: str
    title: str
    cells: Sequence[Cell] = field(default=(), repr=False)
    measures: Sequence[Measure] = field(default=(), repr=False)
    needs: tuple[str, ...] = ()
    note: str = ""
    applies: str = ""
    environment: Environment | Literal[""] = ""
    starves: str = ""

    def at(self, scale: Scale, *, gigabit: bool = False) -> list[Cell]:
        """Cells of the row at a scale."""
        upto = SCALES.index(scale)
        return [c for c in self.cells if SCALES.index(c.scale) <= upto and (gigabit or not c.gigabit)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """Who stands in the candidate's place.

    Parameters
    ----------
    role
        "candidate", "reference", "rival" or "information".
    name
        For people, and for file names.
    controller, options
        As a scenario names them.
    """

    role: Literal["candidate", "reference", "rival", "information"]
    name: str
    controller: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Unique among the arms of an evaluation; part of file names."""
        return "candidate" if self.role == "candidate" else "rival" if self.role == "rival" else self.name


def filled(scenario: Mapping[str, Any], controller: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a scenario with a controller in the candidate's place."""
    groups = []
    for group in scenario["flows"]:
        mine = {"congestion_control": controller, **({"congestion_control_options": dict(options)} if options else {})}
        groups.append({**group, **mine} if group.get("congestion_control") == PLACE else group)
    return {**scenario, "flows": groups}


def without(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a scenario without the candidate."""
    return {**scenario, "flows": [g for g in scenario["flows"] if g.get("congestion_control") != PLACE]}
