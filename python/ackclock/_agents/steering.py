"""Many runs stepped in parallel: the basis of environments with many runs or many agents."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ackclock import _engine, units
from ackclock._results.run import engine_call
from ackclock.errors import InputError, ScenarioError, quote

if TYPE_CHECKING:
    from ackclock.scenario import Scenario

Array: TypeAlias = NDArray[np.float64]

HIGHEST = (1.0, 100.0, 1.0, 100.0, 1.0)
"""Upper bounds of the observation. Larger values are clipped; the step contains them unclipped."""

_FIELDS = {name: at for at, name in enumerate(_engine.Steering.fields())}


@dataclass(frozen=True, kw_only=True, slots=True)
class Steps:
    """Results of one step, with one entry per run or agent.

    Parameters
    ----------
    now_s
        End of the step, in the run's time.
    seconds
        Length of the step; the last step of a run may be shorter.
    throughput_bps
        Rate of acknowledged payload.
    rtt_s, min_rtt_s
        Mean of the RTT samples (the smoothed RTT if there was none; 0 before the first), and minimum RTT of the
        connection (infinite before the first).
    delivered, lost
        Segments delivered, and segments that the sender marked lost.
    cwnd, in_flight
        Congestion window and segments in flight at the last ACK; 0 before the first.
    timeouts
        Retransmission timeouts.
    complete
        1 if the flow has nothing more to send.
    best_bps
        Highest throughput of a step in the episode so far, this step included.
    """

    now_s: Array
    seconds: Array
    throughput_bps: Array
    rtt_s: Array
    min_rtt_s: Array
    delivered: Array
    lost: Array
    cwnd: Array
    in_flight: Array
    timeouts: Array
    complete: Array
    best_bps: Array

    @property
    def loss(self) -> Array:
        """Fraction of segments marked lost."""
        return self.lost / np.maximum(self.lost + self.delivered, 1.0)


def power(steps: Steps) -> Array:
    """The default reward: Kleinrock's power relative to the best, minus the loss fraction.

    Power is (throughput / highest throughput so far) × (minimum RTT / RTT).
    """
    ratio = np.where(np.isfinite(steps.min_rtt_s), steps.min_rtt_s, 0.0) / np.maximum(steps.rtt_s, 1e-9)
    return steps.throughput_bps / np.maximum(steps.best_bps, 1.0) * ratio - steps.loss


def seen(steps: Steps) -> Array:
    """The default observation, shape (entries, 5): the same values as in `Env`."""
    least = np.where(np.isfinite(steps.min_rtt_s), steps.min_rtt_s, np.inf)
    values = [
        steps.throughput_bps / np.maximum(steps.best_bps, 1.0),
        np.maximum(steps.rtt_s / np.maximum(least, 1e-9) - 1, 0.0),
        steps.loss,
        steps.in_flight / np.maximum(steps.cwnd, 1.0),
        np.log2(np.maximum(steps.cwnd, 1.0)) / 20,
    ]
    found: Array = np.minimum(np.stack(values, axis=-1), HIGHEST)
    return found


def prepared(scenario: Scenario | str, groups: Sequence[int]) -> Scenario:
    """Check that the scenario's flow groups can have agents, and return it.

    Raises
    ------
    ScenarioError
        If a group has more than one flow, or no congestion controller.
    """
    if isinstance(scenario, str):
        from ackclock.scenario import load

        scenario = load(scenario)
    for group in groups:
        if not 0 <= group < len(scenario.flows):
            raise InputError(f"group: found {group}; allowed: 0 to {len(scenario.flows) - 1}")
        flow = scenario.flows[group]
        if flow.count != 1 or flow.is_plain or flow.workload.kind not in ("bulk", "transfer", "throttled"):
            found = f"{flow.count} x {flow.workload.kind}"
            allowed = "one flow with workload bulk, transfer or throttled"
            raise ScenarioError(key=f"flows.{group}", found=found, allowed=allowed)
    return scenario


class Bank:
    """Runs with agents, stepped together on several threads.

    Parameters
    ----------
    runs
        Number of runs.
    groups
        Groups of flows that are controlled by an agent each, in every run.
    step
        Length of a step, a duration.
    paced
        Whether agents set the pacing rate as well.
    jobs
        Number of threads; None: one per core.
    """

    def __init__(self, runs: int, groups: Sequence[int], *, step: str, paced: bool, jobs: int | None) -> None:
        if runs < 1:
            raise InputError(f"number of runs: found {runs}; allowed: 1 or more")
        if not groups or len(set(groups)) != len(groups):
            raise InputError(f"groups: found {list(groups)}; allowed: one or more, each once")
        try:
            step_ns = units.whole(step, units.DURATION)
        except ScenarioError as error:
            raise error.within("step") from None
        if step_ns <= 0:
            raise InputError(f'step: found {quote(step)}; allowed: more than "0 s"')
        self.runs, self.groups, self.paced = runs, tuple(groups), paced
        self._engine = _engine.Steering(runs, list(groups), step_ns, paced, jobs or os.cpu_count() or 1)
        self._best = np.zeros((runs, len(groups)))

    def begin(self, runs: Sequence[tuple[int, Scenario, int]]) -> None:
        """Start runs, given as (index, scenario, seed)."""
        given = [(at, prepared(scenario, self.groups).to_engine_json(), seed) for at, scenario, seed in runs]
        engine_call(lambda: self._engine.begin(given))
        self._best[[at for at, *_ in runs]] = 0.0

    def play(self, widen: Array, pace: Array | None = None) -> tuple[Steps, NDArray[np.bool_]]:
        """Simulate one step in all runs.

        Parameters
        ----------
        widen
            Factor applied to each window from the flow's next ACK on, shape (runs, groups).
        pace
            Pacing rate of each sender in windows per smoothed RTT, same shape.

        Returns
        -------
        tuple
            Steps, of shape (runs, groups), and which runs have ended. Values are 0 for runs that had already ended.
        """
        actions = np.stack([widen, np.ones_like(widen) if pace is None else pace], axis=-1)
        rows, over = self._engine.step(np.ascontiguousarray(actions, dtype=np.float64).tobytes())
        table = np.frombuffer(rows).reshape(self.runs, len(self.groups), len(_FIELDS))
        columns = {name: table[..., at] for name, at in _FIELDS.items()}
        self._best = np.maximum(self._best, columns["throughput_bps"])
        return Steps(**columns, best_bps=self._best.copy()), np.frombuffer(over, dtype=np.bool_)

    def digest(self, at: int = 0) -> str | None:
        """Return the digest of a run's packets so far; None before it has started."""
        return self._engine.digest(at)


Observe: TypeAlias = Callable[[Steps], Array]
Reward: TypeAlias = Callable[[Steps], Array]
