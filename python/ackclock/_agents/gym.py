"""A Gymnasium environment in which an agent sets a sender's window step by step (`pip install 'ackclock[gym]'`)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ackclock import units
from ackclock._results.run import run
from ackclock.errors import ControllerError, InputError, ScenarioError, UnavailableError, quote

if TYPE_CHECKING:
    from ackclock._engine import Ack, Window
    from ackclock._results.result import Run
    from ackclock.scenario import Scenario

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    raise UnavailableError("ackclock.gym needs Gymnasium; install it with: pip install 'ackclock[gym]'") from error

__all__ = ["Env", "Step", "power"]

AGENT = "agent"
"""The flow's controller in the scenario: custom:agent."""

LARGEST = 2.0**20
"""Maximum window, segments. The window stays between `LEAST` and this."""

LEAST = 2.0

HIGHEST = (1.0, 100.0, 1.0, 100.0, 1.0)
"""Upper bounds of the observation. Larger values are clipped; `info` contains them unclipped."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """Results of one step, as reported by its ACKs.

    Parameters
    ----------
    now_s
        End of the step.
    seconds
        Length of the step, from ACK to ACK: slightly longer than requested, and much longer after a timeout.
    throughput_bps
        Rate of delivered payload.
    rtt_s, min_rtt_s
        Mean of the RTT samples (the smoothed RTT if there was none), and minimum RTT of the connection.
    delivered, lost
        Segments delivered, and segments that the sender marked lost.
    cwnd, in_flight
        Congestion window and segments in flight at the end of the step.
    timeouts
        Retransmission timeouts.
    """

    now_s: float
    seconds: float
    throughput_bps: float
    rtt_s: float
    min_rtt_s: float
    delivered: int
    lost: int
    cwnd: float
    in_flight: int
    timeouts: int

    @property
    def loss(self) -> float:
        """Fraction of segments marked lost."""
        return self.lost / max(self.lost + self.delivered, 1)


def power(step: Step, best_bps: float) -> float:
    """The default reward: Kleinrock's power relative to the best, minus the loss fraction.

    Power is (throughput / highest throughput so far) × (minimum RTT / RTT).
    """
    return step.throughput_bps / max(best_bps, 1.0) * step.min_rtt_s / max(step.rtt_s, 1e-9) - step.loss


class _EndedError(Exception):
    """Raised in the run's thread if the episode ends before the run."""


class _Channel:
    """Connection between the agent's thread and the run's thread."""

    def __init__(self) -> None:
        self.rest: Callable[[], Step | None] = lambda: None
        """Function that returns the results reported by the ACKs since the last step, or None if there were none."""
        self.out: queue.SimpleQueue[Step | Run | BaseException] = queue.SimpleQueue()
        self.actions: queue.SimpleQueue[float | None] = queue.SimpleQueue()

    def ask(self, step: Step) -> float:
        """Hand a step to the agent and wait for its action."""
        self.out.put(step)
        action = self.actions.get()
        if action is None:
            raise _EndedError
        return action


def _controller(channel: _Channel, step_s: float | None, paced: bool) -> type:
    """Return the class of the flow's controller. `step_s` is the step length in seconds; None means one round trip."""

    class Agent:
        wants_pacing = paced

        def __init__(self) -> None:
            self.begin: float | None = None
            self._clear()

        def _clear(self) -> None:
            self.bytes = self.delivered = self.lost = self.timeouts = self.samples = 0
            self.rtts = 0.0
            self.newest: tuple[float, float, float, float, int] | None = None

        def on_control(self, window: Window, ack: Ack) -> None:
            if self.begin is None:
                self.begin = ack.now
            self.bytes += ack.acked_bytes
            self.delivered += ack.delivered
            self.lost += ack.newly_lost
            if ack.rtt is not None:
                self.rtts += ack.rtt
                self.samples += 1
            passed = ack.now - self.begin
            if passed <= 0:
                return
            self.newest = (ack.now, ack.srtt, ack.min_rtt, window.cwnd, ack.in_flight)
            if passed < (ack.srtt if step_s is None else step_s):
                return
            told = self.rest()
            assert told is not None
            channel.rest = self.rest  # sending end only; the other end's controller never reaches this point
            action = channel.ask(told)
            window.cwnd = min(max(window.cwnd * 2.0**action, LEAST), LARGEST)
            self.begin = ack.now
            self._clear()

        def rest(self) -> Step | None:
            """Return the results reported by the ACKs since the last step, or None if there were none."""
            if self.newest is None or self.begin is None:
                return None
            now, srtt, min_rtt, cwnd, in_flight = self.newest
            return Step(
                now_s=now,
                seconds=now - self.begin,
                throughput_bps=self.bytes * 8 / (now - self.begin),
                rtt_s=self.rtts / self.samples if self.samples else srtt,
                min_rtt_s=min_rtt,
                delivered=self.delivered,
                lost=self.lost,
                cwnd=cwnd,
                in_flight=in_flight,
                timeouts=self.timeouts,
            )

        def on_congestion_event(self, window: Window, in_flight: int) -> float:  # noqa: ARG002
            return window.cwnd  # the agent sees the loss, and decides

        def on_rto(self, window: Window, now: float) -> None:  # noqa: ARG002
            self.timeouts += 1

    return Agent


class Env(gymnasium.Env[np.ndarray[Any, np.dtype[np.float32]], np.ndarray[Any, np.dtype[np.float32]]]):
    """One flow of a scenario, controlled by an agent.

    The action is a number from -1 to 1. The window is multiplied by 2**action: -1 halves it, 1 doubles it.

    The observation is five numbers: throughput relative to the highest of the episode; RTT as a multiple of the minimum, minus one;
    fraction of segments lost; data in flight relative to the window; base-2 logarithm of the window, divided by 20.
    `info` contains the fields of `Step`. The second and fourth numbers are capped at 100.

    An episode is truncated when the run ends. The last step covers the ACKs since the previous one, and `info["run"]` is the
    `Run`, with everything that the scenario records. An episode is terminated when the flow has nothing more to send
    (transfer complete).

    Parameters
    ----------
    scenario
        The agent's environment: a scenario, or the name of one in the package.
    group
        The group of flows that the agent controls; it must have one flow.
    step
        Length of a step: a duration, or "rtt" for the smoothed round-trip time.
    reward
        Function that returns the reward of a step, given the highest throughput of the episode so far (bit/s).
    paced
        Whether the sender paces its packets.

    Raises
    ------
    ScenarioError
        If the group has more than one flow, or no congestion controller.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012, as Gymnasium declares it

    def __init__(
        self,
        scenario: Scenario | str = "first",
        *,
        group: int = 0,
        step: str = "rtt",
        reward: Callable[[Step, float], float] = power,
        paced: bool = False,
    ) -> None:
        if isinstance(scenario, str):
            from ackclock.scenario import load

            scenario = load(scenario)
        if not 0 <= group < len(scenario.flows):
            raise InputError(f"group: found {group}; allowed: 0 to {len(scenario.flows) - 1}")
        flow = scenario.flows[group]
        if flow.count != 1 or flow.is_plain or flow.workload.kind not in ("bulk", "transfer", "throttled"):
            found = f"{flow.count} x {flow.workload.kind}"
            raise ScenarioError(
                key=f"flows.{group}", found=found, allowed="one flow with workload bulk, transfer or throttled"
            )
        try:
            self._step_s = None if step == "rtt" else units.whole(step, units.DURATION) / 1e9
        except ScenarioError as error:
            raise InputError(f'step: found {error.found}; allowed: "rtt", or {error.allowed}') from None
        if self._step_s is not None and self._step_s <= 0:
            raise InputError(f'step: found {quote(step)}; allowed: more than "0 s", or "rtt"')
        changes: dict[str, Any] = {f"flows.{group}.congestion_control": f"custom:{AGENT}"}
        if flow.congestion_control_options:
            changes[f"flows.{group}.congestion_control_options"] = {}
        self.scenario = scenario.set_all(changes)
        self._reward = reward
        self._paced = paced
        self._group = group
        self.observation_space = spaces.Box(np.zeros(5, dtype=np.float32), np.array(HIGHEST, dtype=np.float32))
        self.action_space = spaces.Box(np.float32(-1), np.float32(1), (1,))
        self._channel: _Channel | None = None
        self._thread: threading.Thread | None = None
        self._best = 0.0
        self._last = np.zeros(5, dtype=np.float32)

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[np.ndarray[Any, np.dtype[np.float32]], dict[str, Any]]:
        """Begin an episode.

        Parameters
        ----------
        seed
            Seed of the run; None: drawn from the environment's random numbers.
        options
            Ignored.

        Returns
        -------
        tuple
            Observation and `Step` fields of the first step.
        """
        super().reset(seed=seed)
        self.close()
        self._best = 0.0
        drawn = int(self.np_random.integers(0, 2**31)) if seed is None else seed
        channel = self._channel = _Channel()
        agent = _controller(channel, self._step_s, self._paced)
        self._thread = threading.Thread(target=self._play, args=(channel, agent, drawn), daemon=True)
        self._thread.start()
        told = channel.out.get()
        if not isinstance(told, Step):
            self._channel = None
            if isinstance(told, BaseException):
                raise told
            raise InputError("scenario: found a run without a single step; allowed: a longer one, or shorter steps")
        return self._observed(told), {**asdict(told), "seed": drawn}

    def step(self, action: Any) -> tuple[np.ndarray[Any, np.dtype[np.float32]], float, bool, bool, dict[str, Any]]:
        """Multiply the window by 2**action and simulate one step.

        Returns
        -------
        tuple
            Observation, reward, whether the flow has nothing more to send, whether the run is over, and the fields of `Step`.
        """
        if self._channel is None:
            raise InputError("step: found no episode; allowed: after reset(), until the episode is over")
        numbers = np.asarray(action, dtype=float).reshape(-1)
        if numbers.size != 1:
            raise InputError(f"action: found {numbers.size} numbers; allowed: one")
        number = float(numbers[0])
        if not -1 <= number <= 1:
            raise InputError(f"action: found {number:g}; allowed: -1 to 1")
        channel = self._channel
        channel.actions.put(number)
        told = channel.out.get()
        if isinstance(told, Step):
            observation = self._observed(told)
            return observation, float(self._reward(told, self._best)), False, False, asdict(told)
        self._channel = None
        if isinstance(told, BaseException):
            raise told
        done = told.flows.filter(told.flows["group"] == self._group)["completion_s"].drop_nulls().len() > 0
        rest = channel.rest()
        if rest is None:
            return self._last, 0.0, done, not done, {"run": told}
        observation = self._observed(rest)
        return observation, float(self._reward(rest, self._best)), done, not done, {**asdict(rest), "run": told}

    def close(self) -> None:
        """End the episode, if one is in progress."""
        if self._channel is not None:
            self._channel.actions.put(None)
            self._channel = None
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _play(self, channel: _Channel, agent: type, seed: int) -> None:
        try:
            channel.out.put(run(self.scenario, seed=seed, controllers={AGENT: agent}))
        except ControllerError as error:
            if not isinstance(error.__cause__, _EndedError):
                channel.out.put(error)
        except BaseException as error:
            channel.out.put(error)

    def _observed(self, step: Step) -> np.ndarray[Any, np.dtype[np.float32]]:
        self._best = max(self._best, step.throughput_bps)
        values = [
            step.throughput_bps / max(self._best, 1.0),
            max(step.rtt_s / max(step.min_rtt_s, 1e-9) - 1, 0.0),
            step.loss,
            step.in_flight / max(step.cwnd, 1.0),
            np.log2(max(step.cwnd, 1.0)) / 20,
        ]
        self._last = np.minimum(np.array(values, dtype=np.float32), np.array(HIGHEST, dtype=np.float32))
        return self._last


gymnasium.register(id="ackclock/Flow-v0", entry_point="ackclock.gym:Env", vector_entry_point="ackclock.gym:VectorEnv")
