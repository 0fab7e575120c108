"""Tests whether a controller recovers: unlimited data over a path that is disturbed for a while, from the start or
later, and undisturbed afterwards.

For a run, a path and a disturbance with its start and end are drawn; a second run has the same path without the
disturbance. After the disturbance the flow must reach 90 % of its undisturbed goodput, averaged over about ten round
trips, within a time limit that depends on the controller's family. Every path has such a large BDP that a window
stuck at its minimum fails.

| trouble | drawn |
|---|---|
| loss | 1 to 30 % of packets, in one direction or both |
| outage | 0.1 to 1.5 s; packets wait or are lost |
| rate | 1/20 of the rate to ten times the rate |
| delay | a third of the delay to five times the delay |

One or two of these occur at once, from the first packet (half of the draws) or from a time within the first two
seconds, for 0.3 to 3 s. On one path in six packets are reordered throughout, because a link's reordering cannot end.

Time limit for each family in round trips with a full queue, plus five seconds for timeouts doubled by an outage:

| family | round trips | why |
|---|---|---|
| linear | 2 (BDP + queue) + 50 | a window of 2 grows by one segment in each; the second time is for one more reduction |
| cubic | as linear | the minimum growth in RFC 9438 is Reno's |
| model | 200, and 12 s more | two cycles of probing, of 63 round trips or 3 s each, and 10 s until the minimum RTT expires |
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ackclock.scenario import Scenario
from ackclock.text import share

__all__ = ["OWN", "SHARE", "Drawn", "Miss", "comes_back", "draw"]

SHARE = 0.9
"""Required fraction of the flow's undisturbed goodput."""

PACKET_BITS = 8 * 1500
LEAST_BDP, MOST_BDP, MOST_BDP_OF_MODEL = 10, 80, 250
"""Range of the bandwidth-delay product, segments. Below ten, a window of four (the minimum of several controllers)
could carry 90 %. Larger windows that grow by one per round trip take longer and show nothing more.
"""

MODEL = frozenset({"bbr", "bbr3"})
"""Controllers that learn a rate by probing; all others grow per round trip."""

OWN: Mapping[str, str] = {
    "vegas": "takes a lower RTT of before for the path's, and a standing queue for its own (Mo, La, Anantharam, Walrand, INFOCOM 1999);"
    " Linux's does the same in the same draws",
}
"""Controllers with an algorithm that cannot recover from every disturbance, and the source that says so."""

TROUBLES = ("loss", "outage", "rate", "delay")


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """A run with a disturbance, and its counterpart without one.

    Parameters
    ----------
    said
        Description of path and disturbance.
    scenario, calm
        Scenario with the disturbance, and without it.
    ends_s
        End of the disturbance.
    limit_s
        Time allowed for the recovery.
    window_s
        Length of the time windows that are compared.
    """

    said: str
    scenario: Scenario
    calm: Scenario
    ends_s: float
    limit_s: float
    window_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Miss:
    """A run in which the flow did not recover.

    Parameters
    ----------
    number
        Draw number.
    drawn
        The run, whose seed is the number.
    reached
        Best fraction of the undisturbed rate in any time window.
    """

    number: int
    drawn: Drawn
    reached: float

    def __str__(self) -> str:
        return f"{self.number}: {share(self.reached)} within {self.drawn.limit_s:.1f} s after {self.drawn.said}"


def draw(controller: str, number: int, *, seed: int = 1, options: Mapping[str, Any] | None = None) -> Drawn:
    """Draw a path and its disturbance. They depend on seed and number; the maximum BDP also depends on the
    controller's family.

    Parameters
    ----------
    controller, options
        As a scenario names them.
    number, seed
        Number and seed of the draw.
    """
    # Only `random()` is documented to give the same numbers in every version of Python.
    one = random.Random(f"trouble {seed} {number}").random

    def between(low: float, high: float) -> float:
        return float(low * (high / low) ** one())

    bdp = between(LEAST_BDP, MOST_BDP_OF_MODEL if controller in MODEL else MOST_BDP)
    rtt = between(0.010, 0.100)
    rate, queue = bdp * PACKET_BITS / rtt, max(10, round(bdp * between(0.5, 2)))
    begins = 1e-9 if one() < 0.5 else 2 * one()
    ends = begins + between(0.3, 3)
    first = TROUBLES[int(one() * len(TROUBLES))]
    second = TROUBLES[int(one() * len(TROUBLES))] if one() < 0.4 else first
    kinds = {first, second}
    loss, both = between(0.01, 0.30), one() < 0.3
    outage, waits = between(0.1, 1.5), one() < 0.5
    faster, slower = between(1 / 20, 10), between(1 / 3, 5)
    reorders = one() < 1 / 6
    step: dict[str, Any] = {"at": _s(begins)}
    if "loss" in kinds:
        step["loss"] = f"{loss:.4%}".replace("%", " %")
    if "rate" in kinds:
        step["rate"] = f"{round(rate * faster)} bit/s"
    if "delay" in kinds:
        step["delay"] = _s(slower * rtt / 2)
    back = {"at": _s(ends), "rate": f"{round(rate)} bit/s", "delay": _s(rtt / 2), "loss": "0 %"}
    link: dict[str, Any] = {
        "rate": f"{round(rate)} bit/s",
        "delay": _s(rtt / 2),
        "queue": {"kind": "drop-tail", "limit": f"{queue} packets"},
    }
    if reorders:
        link["reorder"] = {"probability": "0.5 %", "extra_delay": _s(rtt / 8)}
    troubled = dict(link)
    if len(step) > 1:
        troubled["capacity"] = {"kind": "schedule", "steps": [step, back]}
    if "outage" in kinds:
        ends = max(ends, begins + outage)
        troubled["outage"] = {"at": _s(begins), "lasts": _s(outage), "arrivals": "wait" if waits else "lost"}
    reverse: dict[str, Any] = {"delay": _s(rtt / 2)}
    lossy = dict(reverse)
    if "loss" in kinds and both:
        lossy["capacity"] = {
            "kind": "schedule",
            "steps": [{"at": step["at"], "loss": step["loss"]}, {"at": back["at"], "loss": "0 %"}],
        }
    window = max(10 * rtt, 0.2)
    full = rtt * (1 + queue / bdp)
    limit = (
        5
        + window
        + full * (200 if controller in MODEL else 2 * (bdp + queue) + 50)
        + (12 if controller in MODEL else 0)
    )

    def made(forward: dict[str, Any], backward: dict[str, Any]) -> Scenario:
        flow: dict[str, Any] = {"congestion_control": controller}
        if options:
            flow["congestion_control_options"] = dict(options)
        return Scenario.from_dict(
            {
                "duration": _s(ends + limit),
                "network": {"topology": "dumbbell", "bottleneck": forward, "reverse": {"bottleneck": backward}},
                "flows": [flow],
                "record": {"goodput_interval": _s(window / 4)},
            }
        )

    of = {
        "loss": f"{loss:.0%} loss{' both ways' if both else ''}",
        "outage": f"an outage of {outage:.2f} s, packets {'wait' if waits else 'are lost'}",
        "rate": f"{faster:.2g} times the rate",
        "delay": f"{slower:.2g} times the delay",
    }
    said = (
        f"{' and '.join(of[k] for k in TROUBLES if k in kinds)} from {begins:.2f} to {ends:.2f} s on {rate / 1e6:.2f} Mbit/s,"
        f" {1e3 * rtt:.0f} ms, {queue} packets{', reordering' if reorders else ''}"
    )
    return Drawn(
        said=said,
        scenario=made(troubled, lossy),
        calm=made(link, reverse),
        ends_s=ends,
        limit_s=limit,
        window_s=window,
    )


def comes_back(
    controller: str,
    *,
    runs: int,
    first: int = 0,
    seed: int = 1,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> list[Miss]:
    """Draw runs, and return those in which the flow fails to recover.

    Parameters
    ----------
    controller, options
        As a scenario names them: built in, or `FILE.py:CLASS`.
    runs, first
        Number of runs, and number of the first.
    seed
        Seed of the draws.
    progress
        Called with each run.
    """
    misses = []
    for number in range(first, first + runs):
        if progress is not None:
            progress(f"trouble {number}", (number - first) / runs)
        drawn = draw(controller, number, seed=seed, options=options)
        reached = _reached(drawn, number)
        if reached < SHARE:
            misses.append(Miss(number=number, drawn=drawn, reached=reached))
    return misses


def _reached(drawn: Drawn, number: int) -> float:
    """Return the best goodput after the disturbance, relative to the mean of the undisturbed second half."""
    from ackclock._results.run import run

    calm = _rates(run(drawn.calm, seed=number))
    rates = _rates(run(drawn.scenario, seed=number))
    half = calm[len(calm) // 2 :]
    usual = sum(half) / len(half)
    after = rates[int(drawn.ends_s / (drawn.window_s / 4)) + 1 :]
    best = max((sum(after[i : i + 4]) / 4 for i in range(len(after) - 3)), default=0.0)
    return best / usual if usual else 1.0


def _rates(result: Any) -> list[float]:
    # The last interval ends with the run: one packet in a tiny interval would give an arbitrary rate.
    return [float(bps) for bps in result.goodput["goodput_bps"].to_list()[:-1]]


def _s(seconds: float) -> str:
    return f"{round(seconds * 1e9)} ns"
