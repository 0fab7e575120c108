"""Predicates on a run, used in cases. Each reports whether it holds, and the measured number."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ackclock.judge.bound import Bound, at_least, at_most, between, same
from ackclock.text import change
from ackclock.text import share as told_share
from ackclock.units import DURATION, RATE, whole

if TYPE_CHECKING:
    from ackclock._results.result import Run

PAYLOAD = 1448 / 1500

STATES: Mapping[str, float] = {
    "startup": 0.0,
    "drain": 1.0,
    "down": 2.0,
    "cruise": 2.1,
    "refill": 2.2,
    "up": 2.3,
    "probe-rtt": 3.0,
}
"""Values of the variable `mode` for BBR's states."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """Finding of a predicate: True, False, or None if its precondition was not met."""

    holds: bool | None
    said: str


def found(bound: Bound, said: str, value: float, most: float | None = None) -> Found:
    """Return a finding: whether a number, or every number in a range, meets the case's bound, without any margin."""
    return Found(holds=bound.places(value, value if most is None else most) is bound.asked, said=said)


def limits(asked: Mapping[str, Any]) -> Bound:
    """Return the bound set by a case's "least" and "most"."""
    return Bound(low=asked.get("least", -math.inf), high=asked.get("most", math.inf))


def seconds(text: object) -> float:
    """Return a duration in seconds."""
    return whole(text, DURATION) / 1e9


def bits(text: object) -> int:
    """Return a rate in bit/s."""
    return whole(text, RATE)


Predicate = Callable[[Any, Mapping[str, Any]], Found]


def stays(run: Run, flow: int = 0) -> list[tuple[str, float, float]]:
    """Return the states of a BBR flow: name, start and end, s."""
    import polars as pl

    rows = run.controllers.filter(pl.col("flow") == flow).select("t_s", "mode").drop_nulls()
    names = {round(v, 1): n for n, v in STATES.items()}
    found: list[tuple[str, float, float]] = []
    for t, mode in rows.iter_rows():
        name = names.get(round(mode, 1), str(mode))
        if found and found[-1][0] == name:
            found[-1] = (name, found[-1][1], t)
        else:
            if found:
                found[-1] = (found[-1][0], found[-1][1], t)
            found.append((name, t, t))
    return found


def _rtt_s(run: Run) -> float:
    return float(run.flows["min_rtt_s"][0])


def _goodput(run: Run, begin: float, end: float) -> float:
    import polars as pl

    rows = run.goodput.filter((pl.col("flow") == 0) & (pl.col("t_s") > begin + 1e-9) & (pl.col("t_s") <= end + 1e-9))
    return float(rows["goodput_bps"].mean() or 0.0) if rows.height else 0.0  # type: ignore[arg-type]


def completion(run: Run, asked: Mapping[str, Any]) -> Found:
    """The flow's transfer completes within this time from the start of the run."""
    limit = seconds(asked["within"])
    flow = int(asked.get("flow", 0))
    row = run.flows.row(flow, named=True)
    took = row["completion_s"]
    if took is None or not math.isfinite(took):
        return Found(holds=False, said=f"not complete within {limit:g} s")
    ended = took + row["start_s"]
    return found(at_most(limit), f"{ended:.2f} s, asked {limit:g} s", ended)


def goodput(run: Run, asked: Mapping[str, Any]) -> Found:
    """Goodput between two times is at least, or at most, this fraction of a rate's payload."""
    rate = bits(asked["rate"]) * PAYLOAD
    begin, end = (seconds(asked[k]) for k in ("from", "until"))
    share = _goodput(run, begin, end) / rate
    return found(limits(asked), f"{told_share(share, 1)} of {asked['rate']} from {begin:g} to {end:g} s", share)


def reaches(run: Run, asked: Mapping[str, Any]) -> Found:
    """After a change, goodput over half a second reaches 90 % of a rate's payload within this time."""
    rate = bits(asked["rate"]) * PAYLOAD
    at, within = (seconds(asked[k]) for k in ("at", "within"))
    step = 0.1
    t = at
    while t <= at + within + 1e-9:
        if _goodput(run, t, t + 0.5) in at_least(0.9 * rate):
            return Found(holds=True, said=f"{t - at:.1f} s after the change")
        t += step
    return Found(holds=False, said=f"not within {within:g} s")


def loss(run: Run, asked: Mapping[str, Any]) -> Found:
    """At most this fraction of the packets is dropped at the bottleneck."""
    import polars as pl

    link = run.links.filter(pl.col("name") == "bottleneck.forward").row(0, named=True)
    share = (link["dropped_queue"] + link["dropped_loss"]) / max(link["arrivals"], 1)
    return found(limits(asked), f"{told_share(share, 2)} lost, at most {asked['most'] * 100:g} %", share)


def count(run: Run, asked: Mapping[str, Any]) -> Found:
    """A counter of the flow is within its bounds."""
    value = float(run.flows[asked["column"]][0])
    return found(limits(asked), f"{asked['column']} {value:g}", value)


def rtt(run: Run, asked: Mapping[str, Any]) -> Found:
    """The mean RTT is at most this multiple of the minimum."""
    row = run.flows.row(0, named=True)
    ratio = row["mean_rtt_s"] / row["min_rtt_s"]
    return found(limits(asked), f"{ratio:.2f} times the least RTT", ratio)


def sequence(run: Run, asked: Mapping[str, Any]) -> Found:
    """The flow's first states are the given ones."""
    wanted = list(asked["states"])
    seen = [name for name, _, _ in stays(run)][: len(wanted)]
    return Found(holds=seen == wanted, said=" > ".join(seen))


def state_lasts(run: Run, asked: Mapping[str, Any]) -> Found:
    """The n-th stay in a state lasts at least, or at most, this long."""
    number = int(asked.get("which", 1))
    entered = [s for s in stays(run) if s[0] == asked["state"]]
    if len(entered) < number:
        return Found(holds=None, said=f"{asked['state']} was entered {len(entered)} times")
    _, begin, end = entered[number - 1]
    unit = _rtt_s(run) if asked.get("in") == "rtt" else 1.0
    value = (end - begin) / unit
    said = f"{value:.3g} {'RTT' if unit != 1.0 else 's'} in {asked['state']}, from {begin:.3f} s"
    return found(limits(asked), said, value)


def state_follows(run: Run, asked: Mapping[str, Any]) -> Found:
    """Every stay in a state except the last is followed by this state."""
    seen = [name for name, _, _ in stays(run)]
    after = [b for a, b in pairwise(seen) if a == asked["state"]]
    if not after:
        return Found(holds=None, said=f"{asked['state']} was not left")
    allowed = asked["by"] if isinstance(asked["by"], list) else [asked["by"]]
    return Found(
        holds=all(b in allowed for b in after), said=f"{asked['state']}, then {', '.join(dict.fromkeys(after))}"
    )


def state_only(run: Run, asked: Mapping[str, Any]) -> Found:
    """From a given time on, only these states occur."""
    begin = seconds(asked["from"])
    seen = list(dict.fromkeys(name for name, _, end in stays(run) if end > begin))
    return Found(holds=bool(seen) and all(s in asked["states"] for s in seen), said=", ".join(seen))


def state_at(run: Run, asked: Mapping[str, Any]) -> Found:
    """The first entry into a state is within this time interval."""
    begin, end = (seconds(asked[k]) for k in ("from", "until"))
    first = next((b for name, b, _ in stays(run) if name == asked["state"]), None)
    if first is None:
        return Found(holds=False, said=f"{asked['state']} is never entered")
    return found(between(begin, end), f"{asked['state']} at {first:.2f} s", first)


def variable(run: Run, asked: Mapping[str, Any]) -> Found:
    """A variable of the controller stays within its bounds, in one state or always."""
    import polars as pl

    rows = run.controllers.filter(pl.col("flow") == 0)
    if "state" in asked:
        rows = rows.filter((pl.col("mode") - STATES[asked["state"]]).abs() < 0.01)
    if "from" in asked:
        rows = rows.filter(pl.col("t_s") >= seconds(asked["from"]))
    values = rows[asked["name"]].drop_nulls()
    if not values.len():
        return Found(holds=None, said=f"{asked['name']} has no value there")
    numbers = [float(v) for v in values]
    low, high = min(numbers), max(numbers)
    return found(limits(asked), f"{asked['name']} from {low:.4g} to {high:.4g}", low, high)


def estimate(run: Run, asked: Mapping[str, Any]) -> Found:
    """The estimated rate matches the payload rate within this fraction, on leaving a state or at a given time."""
    import polars as pl

    rate = bits(asked["rate"]) * PAYLOAD
    if "leaving" in asked:
        left = next((end for name, _, end in stays(run) if name == asked["leaving"]), None)
        if left is None:
            return Found(holds=None, said=f"{asked['leaving']} was not entered")
        at = left
    else:
        at = seconds(asked["at"])
    rows = run.controllers.filter((pl.col("flow") == 0) & (pl.col("t_s") <= at + 1e-9))
    if not rows.height:
        return Found(holds=None, said="no estimate")
    value = float(rows["estimate_bps"][-1])
    off = value / rate - 1
    return found(same(asked["within"]), f"{value / 1e6:.3f} Mbit/s at {at:.2f} s, {change(off, 1)}", off)


PREDICATES: Mapping[str, Predicate] = {
    "completion": completion,
    "goodput": goodput,
    "reaches": reaches,
    "loss": loss,
    "count": count,
    "rtt": rtt,
    "sequence": sequence,
    "state-lasts": state_lasts,
    "state-follows": state_follows,
    "state-only": state_only,
    "state-at": state_at,
    "variable": variable,
    "estimate": estimate,
}

OF_STATES = ("sequence", "state-lasts", "state-follows", "state-only", "state-at")
"""Predicates about controller states, which only BBR has."""
