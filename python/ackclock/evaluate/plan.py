"""Plan of an evaluation: the candidate, the other arms, the rows and the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from ackclock.errors import InputError, ScenarioError, quote
from ackclock.evaluate import kernel
from ackclock.evaluate.rows import population as population_row
from ackclock.evaluate.rows import rows as all_rows
from ackclock.evaluate.rows import text
from ackclock.evaluate.situation import Arm, Environment, Row, Scale, filled

if TYPE_CHECKING:
    from ackclock.population import Population

REFERENCE = "cubic"
INFORMATION = ("reno", "bbr3")
"""Controllers shown in the candidate's place for information. No verdict depends on them, and they skip the cells of
the full scale.
"""

FEW_SEEDS = 3
"""Number of seeds for these arms and for a victim alone on the path. Only means matter: no verdict depends on
individual seeds.
"""

SEEDS: Mapping[str, tuple[int, int]] = {"quick": (3, 3), "standard": (10, 40), "full": (10, 80)}
"""Initial and maximum number of seeds of each cell, by scale."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Plan of an evaluation.

    Parameters
    ----------
    candidate
        Controller to evaluate, and its name.
    rival
        Further arm whose numbers are shown.
    scale
        Scale, which sets the number of cells and seeds.
    only
        Ids of rows; empty: all.
    gigabit
        Whether to include cells of 1 Gbit/s.
    seeds
        Initial and maximum number of seeds; None: those of the scale.
    environment
        Environment for which the controller is meant; row 25 is for data centres.
    backend
        The simulator, or the real kernel, which runs only the rows that it can.
    stated
        RFC sections that the author has answered.
    population
        Population whose paths are row x6; None: there is no such row.
    """

    candidate: Arm
    rival: Arm | None = None
    scale: Scale = "standard"
    only: tuple[str, ...] = ()
    gigabit: bool = False
    seeds: tuple[int, int] | None = None
    environment: Environment = "internet"
    backend: Literal["sim", "linux"] = "sim"
    stated: tuple[str, ...] = ()
    population: Population | None = None

    @cached_property
    def rows(self) -> list[Row]:
        """The requested rows.

        Raises
        ------
        InputError
            If there is no such row.
        """
        known = {row.id: row for row in all_rows()}
        if self.population is not None:
            known[population_row.ID] = population_row.row(self.population)
        elif population_row.ID in self.only:
            raise InputError(f"--rows: found {quote(population_row.ID)} without --population; allowed: together")
        for name in self.only:
            if name not in known:
                raise InputError(
                    f"--rows: found {quote(name)}; allowed: {', '.join(known)} (with a comma between them)"
                )
        asked = [row for key, row in known.items() if not self.only or key in self.only]
        rows = [self._in_environment(text.answered(row, self.stated)) for row in asked]
        if self.backend == "linux":
            return kernel.carried_out(rows, self.candidate, self.scale, gigabit=self.gigabit)
        others = [arm for arm in (self.candidate, self.rival) if arm is not None and _has_transport_of_its_own(arm)]
        return [_within(row, others, self.scale, gigabit=self.gigabit) for row in rows] if others else rows

    def _in_environment(self, row: Row) -> Row:
        if not row.environment:
            return row
        return replace(row, applies="") if row.environment == self.environment else replace(row, cells=())

    @property
    def arms(self) -> list[Arm]:
        """Arms that are run in the candidate's place, the candidate first."""
        found = [self.candidate, Arm(role="reference", name=REFERENCE, controller=REFERENCE)]
        if self.rival is not None:
            found.append(self.rival)
        if self.scale != "quick":
            taken = {self.candidate.name, *([self.rival.name] if self.rival else [])}
            known = [n for n in INFORMATION if self.backend == "sim" or kernel.has(n)]
            found += [Arm(role="information", name=n, controller=n) for n in known if n not in taken]
        return found

    @property
    def counts(self) -> tuple[int, int]:
        """Initial and maximum number of seeds of each cell."""
        return self.seeds or SEEDS[self.scale]


def _has_transport_of_its_own(arm: Arm) -> bool:
    from ackclock.scenario._base import schema

    return arm.controller.startswith("stack:") or any(
        arm.controller in schema()[kind]["controllers"] for kind in ("pcc", "quinn")
    )


def _within(row: Row, arms: Sequence[Arm], scale: Scale, *, gigabit: bool) -> Row:
    """Return the row without the cells that only TCP can run, with the error text as the reason."""
    from ackclock.scenario import Scenario

    asked = list(row.at(scale, gigabit=gigabit))
    cells, reasons = [], dict.fromkeys(row.needs)
    for cell in asked:
        try:
            for arm in arms:
                Scenario.from_dict(filled(cell.scenario, arm.controller, arm.options))
            cells.append(cell)
        except ScenarioError as error:
            reasons[f"{error.key}: {error.found}"] = None
    return replace(row, cells=tuple(cells), needs=tuple(reasons)) if len(cells) < len(asked) else row
