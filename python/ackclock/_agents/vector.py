"""Hundreds of runs as one environment of Gymnasium, stepped inside the engine on all cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ackclock._agents.steering import HIGHEST, Array, Bank, Observe, Reward, Steps, power, prepared, seen
from ackclock.errors import InputError

if TYPE_CHECKING:
    from ackclock.scenario import Scenario

Floats = NDArray[np.float32]


class VectorEnv(gymnasium.vector.VectorEnv[Floats, Floats, NDArray[Any]]):
    """One flow in each of many runs, all controlled by the same agent.

    A step lasts a fixed time. The action is a number from -1 to 1, and the window is multiplied by 2**action on the
    flow's next ACK. With `paced` there is a second number x: the sender paces at 2**x windows per smoothed RTT. The
    observation is that of `Env`, or `observe`. A run that has ended is restarted at the next step, and that step's action has no effect on it
    (`AutoresetMode.NEXT_STEP`).

    Parameters
    ----------
    scenario
        Environment of the agent: a scenario, or its name; several, used by the runs in turn; or a function that draws
        one for each episode, given a `numpy.random.Generator`.
    num_envs
        Number of runs.
    group
        The group of flows that the agent controls; it must have one flow.
    step
        Length of a step, a duration.
    reward
        Function that returns the rewards of a step. Entries of `Steps` have the shape (num_envs,).
    observe
        Function that returns the observations of a step, shape (num_envs, k).
    bounds
        Bounds of the observations; values from `observe` outside them are clipped.
    history
        Number of steps in an observation, the newest last. Steps before the beginning of an episode are 0.
    paced
        Whether the agent sets the pacing rate as well.
    jobs
        Number of threads; None: one per core.

    Raises
    ------
    ScenarioError
        If the group has more than one flow, or no congestion controller.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012, as Gymnasium declares it

    def __init__(
        self,
        scenario: Scenario | str | Sequence[Scenario | str] | Callable[[np.random.Generator], Scenario] = "first",
        *,
        num_envs: int = 64,
        group: int = 0,
        step: str = "10 ms",
        reward: Reward = power,
        observe: Observe = seen,
        bounds: tuple[Array, Array] | None = None,
        history: int = 1,
        paced: bool = False,
        jobs: int | None = None,
    ) -> None:
        if history < 1:
            raise InputError(f"history: found {history}; allowed: 1 or more")
        self._draw = scenario if callable(scenario) else None
        given = () if callable(scenario) else scenario if isinstance(scenario, list | tuple) else (scenario,)
        if self._draw is None and not given:
            raise InputError("scenario: found an empty list; allowed: one or more")
        self._scenarios = [prepared(one, (group,)) for one in given]
        self._bank = Bank(num_envs, (group,), step=step, paced=paced, jobs=jobs)
        self._reward, self._observe, self._paced = reward, observe, paced
        low, high = bounds if bounds is not None else (np.zeros(5), np.array(HIGHEST))
        self._low, self._high = (np.tile(np.asarray(b, dtype=np.float32), history) for b in (low, high))
        self._past = np.zeros((num_envs, self._low.size), dtype=np.float32)
        self._wide = self._low.size // history
        self.num_envs = num_envs
        self.single_observation_space = spaces.Box(self._low, self._high)
        self.single_action_space = spaces.Box(np.float32(-1), np.float32(1), (2 if paced else 1,))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._over: NDArray[np.bool_] | None = None

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[Floats, dict[str, Any]]:
        """Restart all runs.

        Parameters
        ----------
        seed
            Seed of the random numbers for all episodes and drawn scenarios.
        options
            Ignored.

        Returns
        -------
        tuple
            Observations and `Steps` fields of the first step.
        """
        super().reset(seed=seed)
        self._over = np.ones(self.num_envs, dtype=np.bool_)
        observation, _, _, _, info = self.step(np.zeros((self.num_envs, 2 if self._paced else 1), dtype=np.float32))
        return observation, info

    def step(self, actions: Floats) -> tuple[Floats, Array, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Apply the agent's actions, and simulate one step of every run.

        Returns
        -------
        tuple
            Observations, rewards, which flows have nothing more to send, which runs have ended, and the fields of `Steps`, with `seed` for
            the runs that began.
        """
        if self._over is None:
            raise InputError("step: found no episode; allowed: after reset()")
        chosen = np.asarray(actions, dtype=np.float64).reshape(self.num_envs, -1)
        if not (np.abs(chosen) <= 1).all():
            raise InputError(f"action: found {chosen[~(np.abs(chosen) <= 1)][0]:g}; allowed: -1 to 1")
        begun = self._over
        seeds = self._begin(np.flatnonzero(begun))
        factor = 2.0 ** np.where(begun[:, None], 0.0, chosen)
        told, over = self._bank.play(factor[:, :1], factor[:, 1:] if self._paced else None)
        steps = Steps(**{field.name: getattr(told, field.name)[:, 0] for field in fields(Steps)})
        self._past[begun] = 0.0
        self._past[:, : -self._wide] = self._past[:, self._wide :]
        self._past[:, -self._wide :] = self._observe(steps)
        observation = np.clip(self._past, self._low, self._high)
        rewards = np.where(begun, 0.0, np.asarray(self._reward(steps), dtype=np.float64))
        complete = steps.complete > 0
        self._over = over | complete
        info = {field.name: getattr(steps, field.name) for field in fields(Steps)}
        if begun.any():
            info["seed"] = seeds
        return observation, rewards, complete, over & ~complete, info

    def digest(self, at: int) -> str | None:
        """Return the digest of a run's packets so far: identical seeds, scenarios and actions give identical digests."""
        return self._bank.digest(at)

    def _begin(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Start new runs; return their seeds."""
        seeds = np.zeros(self.num_envs, dtype=np.int64)
        seeds[places] = self.np_random.integers(0, 2**31, places.size)
        if places.size:
            self._bank.begin([(int(at), self._scenario(int(at)), int(seeds[at])) for at in places])
        return seeds

    def _scenario(self, at: int) -> Scenario:
        return self._draw(self.np_random) if self._draw is not None else self._scenarios[at % len(self._scenarios)]
