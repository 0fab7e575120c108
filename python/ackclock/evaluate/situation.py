"""Rows of the evaluation: a sentence of RFC 9743, the cells that test it, and the measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import polars as pl

    from ackclock.evaluate.verdict import Values

PLACE = "@"
"""Placeholder for the controller under test in a cell's scenario."""

SCALES = ("quick", "standard", "full")
Scale = Literal["quick", "standard", "full"]

Environment = Literal["internet", "datacentre"]
"""Environment for which a controller is intended."""

Level = Literal["MUST", "SHOULD", "should", "ought", ""]
"""Requirement level in the RFC; empty if the RFC only describes the situation, or if the row is our own."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Scenario with a placeholder for the candidate.

    Parameters
    ----------
    id
        Identifier, unique within the row and part of file names.
    scenario
        Keys of a scenario, with `PLACE` in place of the controller's name.
    about
        Numbers that name the cell: `rate_bps`, `rtt_s`, `buffer_bdp`, `victim`, `flows`.
    scale
        Smallest scale that includes the cell.
    alone
        Whether the cell is also run without the candidate: harm is measured relative to the others' results alone.
    gigabit
        Whether the rate is 1 Gbit/s; such cells are run only on request.
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
        """The cell in words."""
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
    """Tables of one cell's runs under one controller, seed by seed.

    Parameters
    ----------
    frames
        Table -> rows, with a column `seed`.
    digests
        Seed -> digest of the run.
    alone
        Tables of the cell without the candidate.
    measured
        Values of the row's measures, once computed.
    """

    def __init__(
        self, frames: Mapping[str, pl.DataFrame], digests: Mapping[int, str], alone: Tables | None = None
    ) -> None:
        self.frames = frames
        self.digests = digests
        self.alone = alone
        self.measured: dict[str, Values] | None = None

    def group(self, name: str, column: str) -> dict[int, float]:
        """Return a `performance` column for the group with this name."""
        import polars as pl

        rows = self.frames["performance"]
        found = rows.filter((pl.col("of") == "group") & (pl.col("name") == name)).select("seed", column)
        return _values(found, column)

    def whole(self, column: str) -> dict[int, float]:
        """Return a `performance` column for all flows together."""
        import polars as pl

        found = self.frames["performance"].filter(pl.col("of") == "run").select("seed", column)
        return _values(found, column)

    def rows(self, table: str) -> dict[int, pl.DataFrame]:
        """Return the rows of another table by seed, with an entry for every seed."""
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
    """One number per run, with the better direction and the largest irrelevant difference.

    Parameters
    ----------
    name, unit
        Name and unit for readers. Units: "share", "s", "", "bit/s".
    of
        Number of each run, by seed; NaN where there is none.
    better
        Direction that is better.
    margin
        Our margin, in the unit or, with `relative`, as a fraction of the reference's mean.
    least
        Smallest absolute value of a relative margin, in the unit.
    judged
        Whether the measure counts; otherwise it is only reported.
    only_if
        Other measure; this one counts only in cells where the other differs by no more than its margin.
    ratio
        Whether values are rates that may differ by orders of magnitude. They are compared by the logarithm of their
        ratio; `margin` is a factor, and smaller numbers count as `least`.
    duty
        Bound that no run of the candidate may exceed, regardless of CUBIC; None: no bound.
    most
        Largest number that a run can show, which stands for this or more; None: no such limit.
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
        """Return a number on the scale used to compute differences: logarithmic for rates."""
        return math.log(max(value, self.least)) if self.ratio else value

    def margin_at(self, reference: float) -> float:
        """Return the margin in the unit of differences, given the reference's mean."""
        if self.ratio:
            return math.log(self.margin)
        return max(self.margin * abs(reference), self.least) if self.relative else self.margin


@dataclass(frozen=True, kw_only=True)
class Row:
    """A sentence from RFC 9743, or one of our own, and its test.

    Parameters
    ----------
    id
        Number in the report.
    section, level, quote
        Section, requirement level and words of the RFC; section is empty if the row is ours.
    title
        Title of a few words.
    cells, measures
        Cells to run, and measures. Without cells the row is not tested.
    needs
        Missing feature that the row, or a part of it, needs.
    note
        Further information for readers.
    applies
        Reason why it does not apply unless the author says so; empty if it does.
    environment
        Environment to which its cells are restricted; empty: all.
    starves
        Measure of the candidate's own starvation, which is reported separately.
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
        """Return the cells of the row at a scale."""
        upto = SCALES.index(scale)
        return [c for c in self.cells if SCALES.index(c.scale) <= upto and (gigabit or not c.gigabit)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """Controller run in place of the candidate.

    Parameters
    ----------
    role
        "candidate", "reference", "rival" or "information".
    name
        Name for readers and file names.
    controller, options
        Controller and options in the form of a scenario.
    """

    role: Literal["candidate", "reference", "rival", "information"]
    name: str
    controller: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Identifier of the arm within an evaluation, also used in file names."""
        return "candidate" if self.role == "candidate" else "rival" if self.role == "rival" else self.name


def filled(scenario: Mapping[str, Any], controller: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's keys with a controller in the candidate's place."""
    groups = []
    for group in scenario["flows"]:
        mine = {"congestion_control": controller, **({"congestion_control_options": dict(options)} if options else {})}
        groups.append({**group, **mine} if group.get("congestion_control") == PLACE else group)
    return {**scenario, "flows": groups}


def without(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's keys without the candidate."""
    return {**scenario, "flows": [g for g in scenario["flows"] if g.get("congestion_control") != PLACE]}
