"""Several agents in one run: PettingZoo's parallel environment (`pip install 'ackclock[agents]'`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ackclock._agents.steering import HIGHEST, Bank, Observe, Reward, Steps, power, prepared, seen
from ackclock.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from ackclock.scenario import Scenario

try:
    import pettingzoo
except ImportError as error:
    raise UnavailableError(
        "ackclock.gym.ParallelEnv needs PettingZoo; install it with: pip install 'ackclock[agents]'"
    ) from error

Floats = NDArray[np.float32]


class ParallelEnv(pettingzoo.ParallelEnv[str, Floats, Floats]):  # type: ignore[misc]  # it has no types
    """Several flows of one run, each controlled by its own agent.

    Agents are called `flow_0`, `flow_1`, ..., after the number of their flow group. Actions, observations and rewards are those of `VectorEnv`.
    `reward` and `observe` receive the steps of all agents, with entries of shape (agents,) in the order of `possible_agents`. An agent is
    terminated when its flow has nothing more to send, and truncated when the run ends.

    Parameters
    ----------
    scenario
        The agents' environment: a scenario, or the name of one in the package.
    groups
        Groups of flows that are controlled by an agent; None: all. Each must have one flow.
    step
        Length of a step, a duration.
    reward, observe, paced
        As for `VectorEnv`.

    Raises
    ------
    ScenarioError
        If a group has more than one flow, or no congestion controller.
    """

    metadata: dict[str, Any] = {"name": "ackclock_flows_v0", "render_modes": []}  # noqa: RUF012, as PettingZoo declares it

    def __init__(
        self,
        scenario: Scenario | str,
        *,
        groups: Sequence[int] | None = None,
        step: str = "10 ms",
        reward: Reward = power,
        observe: Observe = seen,
        paced: bool = False,
    ) -> None:
        whole = prepared(scenario, ())
        groups = range(len(whole.flows)) if groups is None else groups
        self.scenario = prepared(whole, groups)
        self._bank = Bank(1, tuple(groups), step=step, paced=paced, jobs=1)
        self._reward, self._observe, self._paced = reward, observe, paced
        self.possible_agents = [f"flow_{group}" for group in groups]
        self.agents: list[str] = []
        self.render_mode = None
        high = np.array(HIGHEST, dtype=np.float32)
        self.observation_spaces = {name: spaces.Box(np.zeros_like(high), high) for name in self.possible_agents}
        wide = (2 if paced else 1,)
        self.action_spaces = {name: spaces.Box(np.float32(-1), np.float32(1), wide) for name in self.possible_agents}
        self._random = np.random.default_rng()

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Observation space of an agent."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Action space of an agent."""
        return self.action_spaces[agent]

    def reset(
        self,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Restart the run with `seed`, or with a seed from the environment's random numbers if it is None.

        Returns
        -------
        tuple
            Observations and `Steps` fields of the first step, by agent.
        """
        drawn = int(self._random.integers(0, 2**31)) if seed is None else seed
        self._bank.begin([(0, self.scenario, drawn)])
        self.agents = list(self.possible_agents)
        observations, _, _, _, infos = self._play({})
        return observations, {name: {**info, "seed": drawn} for name, info in infos.items()}

    def step(
        self, actions: dict[str, Floats]
    ) -> tuple[dict[str, Floats], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Apply the agents' actions, and simulate one step.

        Returns
        -------
        tuple
            By agent: observations, rewards, which flows have nothing more to send, whether the run is over, and the fields of `Steps`.
        """
        if not self.agents:
            raise InputError("step: found no episode; allowed: after reset(), until the episode is over")
        seen_now, rewards, complete, over, infos = self._play(actions)
        self.agents = [name for name in self.agents if not (complete[name] or over[name])]
        return seen_now, rewards, complete, over, infos

    def digest(self) -> str | None:
        """Return the digest of the packets so far: identical seeds and actions give identical digests."""
        return self._bank.digest()

    def _play(self, actions: dict[str, Floats]) -> Any:
        chosen = np.zeros((len(self.possible_agents), 2))
        for at, name in enumerate(self.possible_agents):
            if name in actions:
                action = np.asarray(actions[name], dtype=np.float64).reshape(-1)
                chosen[at, : action.size] = action
        if not (np.abs(chosen) <= 1).all():
            raise InputError(f"action: found {chosen[~(np.abs(chosen) <= 1)][0]:g}; allowed: -1 to 1")
        factor = 2.0 ** chosen[None]
        told, over = self._bank.play(factor[..., 0], factor[..., 1] if self._paced else None)
        steps = Steps(**{field.name: getattr(told, field.name)[0] for field in fields(Steps)})
        seen_now = np.asarray(self._observe(steps), dtype=np.float32)
        rewards = self._reward(steps)
        at_of = {name: at for at, name in enumerate(self.possible_agents) if name in self.agents}
        return (
            {name: seen_now[at] for name, at in at_of.items()},
            {name: float(rewards[at]) for name, at in at_of.items()},
            {name: bool(steps.complete[at]) for name, at in at_of.items()},
            {name: bool(over[0]) and not steps.complete[at] for name, at in at_of.items()},
            {name: {f.name: float(getattr(steps, f.name)[at]) for f in fields(Steps)} for name, at in at_of.items()},
        )
