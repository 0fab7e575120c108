"""Repeats the worst case on the real kernel, with the same scenarios over the same links, and scores it.

The links are the simulator's if possible: an attack may depend on the timing of individual packets, which a
different network would shift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ackclock.attack.attack import Found
from ackclock.errors import AckclockError, ScenarioError

if TYPE_CHECKING:
    from ackclock import Run, Scenario


@dataclass(frozen=True, kw_only=True)
class Confirmed:
    """The kernel's result.

    Parameters
    ----------
    score
        Score in the kernel; None if the kernel could not run the scenario.
    simulated
        Score in the simulator, against the same references.
    references
        References that the kernel supports.
    why
        Reason why the kernel could not run it.
    """

    score: float | None
    simulated: float = 0.0
    references: Sequence[str] = ()
    why: str = ""

    @property
    def words(self) -> str:
        """The result as a sentence."""
        if self.score is None:
            return f"The kernel was not asked: {self.why}"
        among = " and ".join(self.references)
        return f"Against {among}, the Linux kernel scores {self.score:.3f} in this case, the simulator {self.simulated:.3f}."


def ask(found: Found) -> Confirmed:
    """Run the worst case on the linux backend, with the target and with each reference available in the kernel."""
    wanted = {"flows": ("group", "bytes_acked", "rtos"), **found.attack.wanted.tables}
    tables: list[Any] = []
    arms = []
    try:
        for at, arm in enumerate(found.attack.arms):
            try:
                made = _run(found.runs.scenario(found.worst, at), found.attack.seed)
            except ScenarioError as error:
                if at and error.key.endswith("congestion_control"):
                    continue  # a reference missing from the kernel
                raise
            tables.append({name: {c: getattr(made, name)[c].to_list() for c in cs} for name, cs in wanted.items()})
            arms.append((at, arm.name))
    except AckclockError as error:
        return Confirmed(score=None, why=str(error))
    if len(arms) < 2:
        return Confirmed(score=None, why="it has none of the references")
    simulated = found.scores[1]
    mine = [at for at, _ in arms]
    there = found.runs.scored(found.worst, tables, [""] * len(arms))
    if found.attack.wanted.apart is not None:
        score = simulated.score  # runs are compared in pairs; every reference has been run, or its result is known
    else:
        score = found.attack.wanted.score(
            simulated.values[0], [simulated.values[i] for i in mine[1:]], [simulated.delivered[i] for i in mine[1:]]
        )
    return Confirmed(
        score=there.score, simulated=min(max(score, 0.0), 1.0), references=tuple(name for _, name in arms[1:])
    )


def _run(scenario: Scenario, seed: int) -> Run:
    """Run over the relay, or over the kernel's own disciplines if the relay cannot."""
    from ackclock import linux

    try:
        return linux.run(scenario, seed=seed, network="relay")
    except ScenarioError as error:
        if error.key.endswith("congestion_control"):
            raise
        return linux.run(scenario, seed=seed)
