"""The Linux kernel's verdict on a table's entries: the same draws over the same links, with the kernel as the
hosts' stack, scored like the simulator's runs. The family `adversary` is omitted because its searches take
thousands of runs. Entries and draws that the kernel cannot run are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ackclock.arena.rank import worst
from ackclock.arena.score import combined, frames, terms
from ackclock.errors import InputError, ScenarioError, UnavailableError

if TYPE_CHECKING:
    from ackclock import Scenario
    from ackclock.arena.game import Row, Standing, Table

__all__ = ["Verdict", "ask"]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One entry's results on the kernel.

    Parameters
    ----------
    rows
        The simulator's rows for the draws that the kernel could run.
    terms
        Terms of the kernel's run, by draw.
    scores
        Score of the kernel's run, 0 to 1, by draw.
    why
        Feature that the kernel lacks, by draw; the key "" has the reason why it cannot run the entry at all.
    """

    rows: list[Row] = field(default_factory=list)
    terms: dict[str, Mapping[str, float]] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)

    @property
    def kernel(self) -> float:
        """Mean of the family means on the kernel, 0 to 100."""
        return _mean(self.families(kernel=True))

    @property
    def simulator(self) -> float:
        """Mean of the family means in the simulator, on the same draws, 0 to 100."""
        return _mean(self.families(kernel=False))

    @property
    def worst(self) -> float:
        """Mean of the lowest tenth of the draws on the kernel, 0 to 100."""
        return worst(self.families(kernel=True))

    @property
    def left(self) -> float | None:
        """CUBIC's goodput beside the entry on the kernel, relative to CUBIC beside CUBIC; None if not measured."""
        values = [told["others"] for told in self.terms.values() if "others" in told]
        return sum(values) / len(values) if values else None

    def families(self, *, kernel: bool) -> dict[str, list[float]]:
        """Family -> score of each draw, 0 to 1."""
        found: dict[str, list[float]] = {}
        for row in self.rows:
            found.setdefault(row.draw.family.id, []).append(self.scores[row.draw.id] if kernel else row.score)
        return found


def ask(table: Table, *, tell: Callable[[str, float], None] = lambda *_: None) -> dict[str, Verdict]:
    """Run a table's draws on the kernel, with each entry that it can run.

    Parameters
    ----------
    table
        Table with entries and draws.
    tell
        Called with the current step and the fraction done.

    Returns
    -------
    dict
        Verdict, by entry name.

    Raises
    ------
    UnavailableError
        If there is no such kernel.
    """
    from ackclock import linux
    from ackclock.arena.game import REFERENCE

    linux.installed()
    task = table.plan.task
    ordered = sorted(table.standings, key=lambda s: s.entry.controller != REFERENCE)
    references: dict[str, dict[str, Any]] = {}
    verdicts: dict[str, Verdict] = {}
    for n, standing in enumerate(ordered):
        tell(f"{n:,} of {len(ordered):,} entries on the kernel", n / len(ordered))
        found = verdicts[standing.entry.name] = Verdict()
        usual = verdicts[ordered[0].entry.name].why  # CUBIC comes first, because the others are compared with it
        for row in _rows(standing):
            if n and row.draw.id not in references:
                found.why[row.draw.id] = usual.get(row.draw.id) or usual.get("") or "CUBIC has no run there"
                continue
            try:
                run = _run(row.draw.scenario(standing.entry.controller, standing.entry.options), row.draw.seed)
            except (InputError, ScenarioError, UnavailableError) as error:
                whole = not isinstance(error, ScenarioError) or error.key.endswith("congestion_control")
                found.why["" if whole else row.draw.id] = str(error)
                if whole:
                    break
                continue
            references.setdefault(row.draw.id, run)
            told = terms(task, row.draw, run, references[row.draw.id])
            found.rows.append(row)
            found.terms[row.draw.id] = told
            found.scores[row.draw.id] = combined(task, told)
    return verdicts


def _rows(standing: Standing) -> list[Row]:
    return [row for row in standing.rows if row.draw.keys and not row.failed]


def _mean(families: Mapping[str, list[float]]) -> float:
    return 100 * sum(sum(values) / len(values) for values in families.values()) / len(families) if families else 0.0


def _run(scenario: Scenario, seed: int) -> dict[str, Any]:
    """Run over the relay, because one-way delays are unknown with the kernel's own disciplines."""
    from ackclock import linux

    return frames(linux.run(scenario, seed=seed, network="relay"))
