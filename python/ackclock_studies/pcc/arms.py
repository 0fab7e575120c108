"""Helpers for the paper's experiments: the protocols compared, and functions that read numbers from tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, mean_over_runs, quotient, ratio
from ackclock.plot import OKABE_ITO
from ackclock.scenario import Scenario
from ackclock.stats import Estimate
from ackclock.study import Plan, Reading, Tables

PACKET_BYTES = 1500

JITTER = "1 ms"
"""Jitter on the senders' links in scenarios with several flows: one tick of a 1000 Hz kernel clock, as in senders and
emulated links of testbeds at that time. Flows with perfect clocks fall into lockstep (see `convergence`).
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """A protocol with its settings and its style in figures.

    Parameters
    ----------
    name
        Name in tables and legends.
    flow
        Keys of a group of flows.
    payload
        Payload of a full 1500-byte packet, bytes.
    """

    name: str
    colour: str
    marker: str
    flow: Mapping[str, Any] = field(default_factory=dict, hash=False)
    dash: str = "-"
    payload: int = 1448

    def flows(self, **keys: Any) -> dict[str, Any]:
        """A group of flows of this protocol."""
        return {**self.flow, **keys}

    @property
    def controller(self) -> str:
        """Controller name."""
        return str(self.flow["congestion_control"])

    def carried(self, rate_bps: float) -> float:
        """A link's maximum goodput with this protocol, bit/s."""
        return rate_bps * self.payload / PACKET_BYTES

    def look(self) -> dict[str, Any]:
        """Keyword arguments for matplotlib."""
        return {"color": OKABE_ITO[self.colour], "marker": self.marker, "ls": self.dash, "label": self.name}


def pcc(name: str, controller: str, colour: str, marker: str, dash: str = "-", **options: Any) -> Arm:
    """Return a PCC arm."""
    flow: dict[str, Any] = {"congestion_control": controller}
    if options:
        flow["congestion_control_options"] = options
    return Arm(name=name, flow=flow, colour=colour, marker=marker, dash=dash, payload=1456)


def tcp(name: str, controller: str, colour: str, marker: str, dash: str = "-", **stack: Any) -> Arm:
    """Return an arm with a TCP controller."""
    flow: dict[str, Any] = {"congestion_control": controller}
    if stack:
        flow["stack"] = stack
    return Arm(name=name, flow=flow, colour=colour, marker=marker, dash=dash)


PCC = pcc("PCC (each packet)", "pcc-allegro-modong", "blue", "o")
"""PCC with the constants in the authors' code at that time, the source of the paper's numbers; one report per packet,
repeating the content of earlier reports.
"""
REPORTS = pcc("PCC (every 20)", "pcc-allegro-modong", "black", "h", "-.", feedback=20, feedback_repeats=False)
"""PCC with that code's receiver: one report every 20 packets, so that a lost report makes 20 packets look lost."""
PRINTED = pcc("PCC as printed", "pcc-allegro", "sky", "s", "--")
"""PCC with the constants printed in the paper."""
CUBIC = tcp("CUBIC", "cubic", "orange", "^")
ILLINOIS = tcp("Illinois", "illinois", "vermilion", "v")
HYBLA = tcp("Hybla", "hybla", "green", "D")
NEWRENO = tcp("NewReno", "reno", "purple", "P")


HOSTS = Reading(
    name="tcp",
    question="What were TCP's hosts, and where did the emulator lose packets?",
    options={
        "today's": "Linux 6; losses ahead of the queue",
        "linux-3.2": "the kernel of 2012",
        "linux-2.6": "the kernel of 2005 to 2011",
        "paced": "as with the queueing discipline fq",
        "each segment acknowledged": "no delayed ACKs",
        "208 KiB": "the socket buffer that Linux gives to a program which asks for none, without its later growth",
        "loss behind the queue": "the emulator loses packets on the link, not at its entry",
        "varying RTT": "the path delays each packet by up to 5 ms more, at random and in order, for all; TCP's receiver acknowledges each segment",
    },
    why="the profile is the one that is checked against the kernel; the hosts of 2014 are not described",
    crossed=False,
)
VARIES = "5 ms"
"""Maximum random delay on a path with a varying RTT."""

_STACKS: dict[str, dict[str, Any]] = {
    "varying RTT": {"delayed_ack": False},
    "paced": {"pacing": True},
    "each segment acknowledged": {"delayed_ack": False},
    "208 KiB": {"socket_buffer": "208 KiB"},
}


def as_read(scenario: Scenario, arm: Arm, option: str) -> Scenario:
    """A scenario with one TCP flow under an option in `HOSTS`. For PCC, only the location of the losses changes."""
    made = scenario.to_dict()
    network = made["network"]
    if option == "loss behind the queue":
        loss = network["bottleneck"].pop("loss")
        egress = {"rate": "10 Gbit/s", "delay": "0 s", "loss": loss}
        return Scenario.from_dict({**made, "network": {**network, "topology": "dumbbell", "egress": egress}})
    if option == "varying RTT":
        scenario = varying(scenario)
        made = scenario.to_dict()
    if arm.controller.startswith("pcc") or option == HOSTS.main:
        return scenario
    keys = {"stack": _STACKS[option]} if option in _STACKS else {"profile": option}
    return Scenario.from_dict({**made, "flows": [{**flow, **keys} for flow in made["flows"]]})


def varying(scenario: Scenario) -> Scenario:
    """Scenario on a path with up to `VARIES` of extra delay per packet."""
    return scenario.set("network.bottleneck.jitter", VARIES)


JITTERED = tcp("Illinois, 5 ms of jitter", "illinois", "vermilion", "x", ":")
PROMPT = tcp("Illinois, each segment acknowledged", "illinois", "vermilion", "+", ":", delayed_ack=False)
BOTH = tcp("Illinois, 5 ms of jitter, each segment acknowledged", "illinois", "vermilion", "1", ":", delayed_ack=False)
"""Arms for the causes behind P3 and P7. Illinois grows faster the smaller the queueing delay is relative to its
maximum so far. On a path without noise the queueing delay is negligible against the 40 ms of a delayed ACK.
"""
NOISES = {JITTERED: True, PROMPT: False, BOTH: True}
"""Arm -> whether its path varies."""


def illinois(plan: Plan) -> int:
    """Illinois runs for testing its causes: they are cheap, and their results spread widely."""
    return plan.count(quick=16, paper=32)


def excess(tables: Tables, table: str, arm: Arm, times: float, **keys: Any) -> Estimate:
    """Fraction of Illinois's excess over the paper's goodput that remains in an arm, paired by seed. The paper's
    goodput is taken as PCC's goodput here divided by the paper's ratio.
    """
    asked = mean(tables, table, "goodput_bps", arm=PCC.name, **keys).value / times
    with_it, without = (pick(tables, table, "goodput_bps", arm=a.name, **keys) - asked for a in (arm, ILLINOIS))
    return ratio(with_it, without)


def only(table: pl.DataFrame, keys: Mapping[str, Any]) -> pl.DataFrame:
    """Rows with these values in the given columns."""
    return table.filter(*[pl.col(name) == value for name, value in keys.items()])


def pick(tables: Tables, table: str, column: str, **keys: Any) -> Array:
    """A table column, one value per run."""
    return only(tables[table], keys)[column].to_numpy().astype(np.float64)


def mean(tables: Tables, table: str, column: str, factor: float = 1.0, **keys: Any) -> Estimate:
    """Mean over runs with Student's t interval."""
    return mean_over_runs(factor * pick(tables, table, column, **keys))


def index(values: Array) -> Estimate:
    """Mean of Jain's index over runs, with an interval that stays below one: symmetric in the logarithm of the distance from one."""
    missing = ratio(1 - values, np.ones_like(values))
    return Estimate(
        value=1 - missing.value, low=max(1 - missing.high, 0), high=1 - missing.low, level=0.95, n=missing.n
    )


def times(tables: Tables, table: str, column: str, first: Arm, second: Arm, **keys: Any) -> Estimate:
    """Ratio of the means of the first and the second arm, paired by seed if both have the same runs, which share their random draws."""
    a, b = (pick(tables, table, column, arm=arm.name, **keys) for arm in (first, second))
    return ratio(a, b) if a.size == b.size else quotient(mean_over_runs(a), mean_over_runs(b))


def values(tables: Tables, table: str, key: str) -> list[Any]:
    """Distinct values of a column, in order."""
    return sorted(tables[table][key].unique().to_list())


def summary(table: pl.DataFrame, by: Sequence[str], column: str) -> pl.DataFrame:
    """A column's mean, minimum and maximum over runs."""
    c = pl.col(column)
    return table.group_by(*by, maintain_order=True).agg(
        c.mean().alias(column), c.min().alias("least"), c.max().alias("greatest"), pl.len().alias("runs")
    )


def ticks(axis: Any, at: Sequence[float]) -> None:
    """Format numbers on a logarithmic axis without exponents."""
    axis.set_ticks(at)
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def curves(ax: Any, found: pl.DataFrame, arms: Sequence[Arm], x: str, y: str) -> None:
    """Draw the means as one line per arm, with a band from minimum to maximum."""
    for arm in arms:
        own = found.filter(pl.col("arm") == arm.name).sort(x)
        if not own.height:
            continue
        look = arm.look()
        ax.plot(own[x], own[y], ms=4, lw=1.3, **look)
        ax.fill_between(own[x], own["least"], own["greatest"], color=look["color"], alpha=0.12, lw=0)
