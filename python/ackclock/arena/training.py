"""An arena task for agents: its scenarios as environments of `ackclock.gym`, and its score at the end of an episode.

The reward of a step is the environment's. The score of an episode is computed by `ackclock.arena.score`, as in the
table, so both have a single definition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ackclock.arena.score import combined, frames, terms
from ackclock.arena.task import Draw, Family, Task, described, drawn, load
from ackclock.errors import InputError, UnavailableError, one_of, quote
from ackclock.gym import Env

try:
    import gymnasium
except ImportError as error:
    raise UnavailableError(
        "ackclock.arena.TaskEnv needs Gymnasium; install it with: pip install 'ackclock[gym]'"
    ) from error

if TYPE_CHECKING:
    from ackclock.scenario import Scenario

    Observation = np.ndarray[Any, np.dtype[np.float32]]

REFERENCE = "cubic"
STEERED = ("bulk", "transfer", "throttled")
"""Workloads of flows that an agent can control."""


def steered(task: Task) -> list[str]:
    """Return the families in which an agent can control the entry as one flow: no searches, no short responses, no
    concurrent flows of the entry.
    """
    return [family.id for family in task.families if _is_steered(task, family)]


def paths(task: Task | str, families: Sequence[str] = ()) -> Callable[[np.random.Generator], Scenario]:
    """Scenarios from a task for `ackclock.gym.VectorEnv`, one drawn per episode.

    Parameters
    ----------
    task
        A task, or its name.
    families
        Families to draw from; none: all in which an agent can control the entry. `VectorEnv` controls the first group
        of flows, which is the entry in the tasks shipped with ackclock.

    Examples
    --------
    >>> import numpy as np
    >>> draw = paths("satellite", ["cell"])
    >>> draw(np.random.default_rng(1)).flows[0].name
    'entry'
    """
    chosen = _chosen(task, families)
    return lambda chance: _draw(chosen, chance).scenario(REFERENCE, {})


class TaskEnv(gymnasium.Env["Observation", "Observation"]):
    """A task's scenarios, one per episode: an `ackclock.gym.Env` in which the agent controls the entry's flow. The
    last `info` of an episode contains `score`, from 0 to 1, and `terms`, as computed by the arena for a run; the
    `info` from `reset` contains `draw`, the family and scenario in words. Draws depend on the seed of `reset`, and
    never occur in a table.

    Parameters
    ----------
    task
        A task, or its name.
    families
        Families to draw from; none: all in which an agent can control the entry (`steered`).
    more
        Arguments of `ackclock.gym.Env`: `step`, `reward`, `paced`.

    Raises
    ------
    InputError
        If a family is unknown, or an agent cannot control the entry in it.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012, as Gymnasium declares it

    def __init__(self, task: Task | str = "satellite", *, families: Sequence[str] = (), **more: Any) -> None:
        self.task = _chosen(task, families)
        self._more = more
        self._draw = drawn(self.task, "spaces", 1)[0]
        self._env = self._made(self._draw)
        self.observation_space, self.action_space = self._env.observation_space, self._env.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Draw a scenario and begin an episode.

        Parameters
        ----------
        seed
            Seed of the draws; None: the next one.
        options
            No options are supported.
        """
        super().reset(seed=seed)
        self._env.close()
        self._draw = _draw(self.task, self.np_random)
        self._env = self._made(self._draw)
        observation, info = self._env.reset(seed=self._draw.seed, options=options)
        return observation, {**info, "draw": f"{self._draw.family.id}: {described(self._draw)}"}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Apply the agent's action; the last step of an episode reports its score."""
        observation, reward, terminated, truncated, info = self._env.step(action)
        if terminated or truncated:
            found = terms(self.task, self._draw, frames(info["run"]), self._reference())
            info = {**info, "terms": found, "score": combined(self.task, found)}
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """End the current episode, if there is one."""
        self._env.close()

    def _made(self, draw: Draw) -> Env:
        return Env(draw.scenario(REFERENCE, {}), group=draw.groups[0][0], **self._more)

    def _reference(self) -> Any:
        """Return the tables of CUBIC's run, with which the results of other flows are compared."""
        from ackclock._results.run import run

        if "others" not in self._draw.family.counts:
            return {}
        return frames(run(self._draw.scenario(REFERENCE, {}), seed=self._draw.seed))


def _chosen(task: Task | str, families: Sequence[str]) -> Task:
    """Return the task with only these families."""
    from dataclasses import replace

    whole = load(task) if isinstance(task, str) else task
    able = steered(whole)
    for family in families:
        if family not in able:
            raise InputError(f"families: found {quote(family)}; allowed: {one_of(family, able)}")
    if not able:
        raise InputError(
            f"task {whole.name}: found no family with one flow of the entry; allowed: {', '.join(STEERED)}"
        )
    return replace(whole, families=[whole.family(id_) for id_ in families or able])


def _draw(task: Task, chance: np.random.Generator) -> Draw:
    from dataclasses import replace

    family = task.families[int(chance.integers(len(task.families)))]
    return drawn(replace(task, families=[family]), f"episode {chance.integers(2**62)}", 1)[0]


def _is_steered(task: Task, family: Family) -> bool:
    from dataclasses import replace

    draw = drawn(replace(task, families=[family]), "spaces", 1)[0]
    if not draw.keys or len(draw.groups[0]) != 1:
        return False
    flow = draw.scenario(REFERENCE, {}).flows[draw.groups[0][0]]
    return flow.count == 1 and flow.workload.kind in STEERED
