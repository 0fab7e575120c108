"""Converts path recordings to a scenario: each measured rate, delay and loss fraction becomes a step in a link's schedule.

Rates go into the bottleneck. Delays and losses go into the link after it (`egress`), so that a Mahimahi trace and a
recording of delays combine as in LeoReplayer and CellReplay. A delay lasts until the next one, and packets keep their
order when the delay falls.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock.errors import InputError
from ackclock.formats._recordings import Points, Recording, Way
from ackclock.formats._tc_read import rate_of, time_of
from ackclock.scenario import Scenario

__all__ = ["ImportedPath", "make"]

LOSS_S = 1.0
"""Counting interval for lost probes, s."""
MOST_STEPS = 100_000
UNKNOWN = "1 Gbit/s"
"""Rate of a bottleneck without a recorded rate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedPath:
    """Scenario for a recorded path, with the recorded and the missing quantities.

    Parameters
    ----------
    scenario
        Valid scenario in which a CUBIC flow crosses the path.
    about
        Measured quantities, one line each.
    missing
        Quantities missing from the recording, and their substitutes.
    """

    scenario: Scenario
    about: tuple[str, ...]
    missing: tuple[str, ...]

    def to_toml(self) -> str:
        """Return the text of the scenario file, headed by what is known about the path."""
        lines = (*self.about, *(f"not recorded: {line}" for line in self.missing))
        return "".join(f"# {line}\n" for line in lines) + self.scenario.to_toml()


def make(files: Sequence[tuple[Path, Recording]], *, upward: bool = False, every_ns: int = 0) -> ImportedPath:
    """Return one scenario from recordings made at the same time.

    Parameters
    ----------
    files
        Files with their formats. No two files may contain the same quantity (rate, delay or loss).
    upward
        Whether data flows from the user into the network. Default: to the user.
    every_ns
        Length of a step, which gets the median of its measurements. Default: one step per measurement.

    Raises
    ------
    InputError
        If two files contain the same quantity, or there are too many steps.
    """
    about = tuple(_told(path, made) for path, made in files)
    whole = round(min(made.length_s for _, made in files) * 1e9)
    paths = [_Ways(), _Ways()]
    missing: list[str] = []
    for path, made in files:
        _add(paths, path, made, upward, missing)
    there, back = (_link(way, every_ns, whole, forward=way is paths[0]) for way in paths)
    count = sum(len(link.get("capacity", {}).get("steps", ())) for way in (there, back) for link in way.values())
    if count > MOST_STEPS:
        raise InputError(f"found {count:,} values; allowed: at most {MOST_STEPS:,}, fewer with --every")
    rates = [bool(way.trace or way.rates) for way in paths]
    if not rates[0]:
        missing.append(f"the rate: it is {UNKNOWN}")
    if not rates[1]:
        missing.append("the rate of the way back: it is infinitely fast")
    if any(rates):
        missing.append("the queue at a rate: it has no limit")
    if not any(way.delays for way in paths):
        missing.append("delays: there are none")
    if not any(way.probes for way in paths):
        missing.append("losses: there are none")
    values = {
        "duration": time_of(max(whole - whole % 1_000_000, 1_000_000)),
        "network": {**there, "reverse": back},
        "flows": [{}],
    }
    return ImportedPath(scenario=Scenario.from_dict(values), about=about, missing=tuple(dict.fromkeys(missing)))


@dataclass(slots=True)
class _Ways(Way):
    """One direction of the path, with the file of its delivery opportunities (`trace`) and whether its probes covered both directions."""

    trace: Path | None = None
    round_trip: bool = False


NAMES = {"trace": "opportunities", "rates": "rates", "delays": "delays", "probes": "losses"}


def _add(paths: list[_Ways], path: Path, made: Recording, upward: bool, missing: list[str]) -> None:
    """Add a file's contents to its direction. If two files specify no direction, the second is the return path."""
    ways = [made.up, made.down] if upward else [made.down, made.up]
    for name in NAMES:
        both = path if name == "trace" and made.trace else getattr(made.both, name, None)
        told = [getattr(way, name, None) or None for way in ways]
        if both:
            told = [both, None]
            if getattr(paths[0], name):
                told = [None, both]
            elif made.form in TRIPS and name != "rates":
                told = [both, both]
                paths[0].round_trip = paths[1].round_trip = name == "probes" or paths[0].round_trip
                missing.append(f"{NAMES[name]} of each way: both have {HALVES[name]}")
        for way, values in zip(paths, told, strict=True):
            if not values:
                continue
            if getattr(way, name) or (name == "trace" and way.rates) or (name == "rates" and way.trace):
                raise InputError(
                    f"{path}: found {NAMES[name]} that another file has, too; allowed: one recording of them for each way"
                )
            setattr(way, name, values)


TRIPS = frozenset({"ping", "irtt", "lens"})
"""Formats that measure RTT."""
HALVES = {"delays": "half of the round-trip time", "probes": "as much"}


def _link(way: _Ways, every_ns: int, whole: int, *, forward: bool) -> dict[str, Any]:
    """Return the links in one direction."""
    steps: dict[int, dict[str, Any]] = {}
    for at, delay in _delays(way.delays, every_ns):
        steps.setdefault(at, {})["delay"] = time_of(delay)
    for at, share in _losses(way.probes, every_ns, round_trip=way.round_trip):
        steps.setdefault(at, {})["loss"] = share
    made = [{"at": time_of(at), **step} for at, step in sorted(steps.items()) if at < whole]
    bottleneck = _rated(way.rates, every_ns, whole)
    if way.trace:
        bottleneck = {"capacity": {"kind": "mahimahi", "file": str(way.trace.resolve())}}
    if forward and not bottleneck:
        bottleneck = {"rate": UNKNOWN}
    return {"bottleneck": bottleneck, **({"egress": _scheduled(made, whole)} if made else {})}


def _binned(points: Points, every_ns: int) -> list[tuple[int, float]]:
    """Return steps by time in ns: the last value at each time, or the median of each interval."""
    if not every_ns:
        return sorted({round(t * 1e9): value for t, value in points}.items())
    groups: dict[int, list[float]] = {}
    for t, value in points:
        groups.setdefault(int(t * 1e9) // every_ns, []).append(value)
    return [(n * every_ns, statistics.median(values)) for n, values in sorted(groups.items())]


def _changes(steps: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
    return [step for n, step in enumerate(steps) if n == 0 or step[1] != steps[n - 1][1]]


def _rated(points: Points, every_ns: int, whole: int) -> dict[str, Any]:
    steps = [(at, max(round(rate), 0)) for at, rate in _binned(points, every_ns) if at < whole]
    steps = _changes(steps)
    if not steps or not any(rate for _, rate in steps):
        return {}
    if len(steps) == 1:
        return {"rate": rate_of(steps[0][1])}
    return {"capacity": _schedule([{"at": time_of(at), "rate": rate_of(rate)} for at, rate in steps], whole)}


def _delays(points: Points, every_ns: int) -> list[tuple[int, int]]:
    """Return the delay steps; the first value applies from the beginning."""
    steps = _changes([(at, round(delay * 1e9)) for at, delay in _binned(points, every_ns)])
    return [(0, steps[0][1]), *steps[1:]] if steps else []


def _losses(probes: Sequence[tuple[float, bool]], every_ns: int, *, round_trip: bool) -> list[tuple[int, float]]:
    window = max(every_ns, round(LOSS_S * 1e9))
    groups: dict[int, list[bool]] = {}
    for t, lost in probes:
        groups.setdefault(int(t * 1e9) // window, []).append(lost)
    if not any(any(group) for group in groups.values()):
        return []
    shares = []
    for n, group in sorted(groups.items()):
        share = sum(group) / len(group)
        shares.append((n * window, round(1 - math.sqrt(1 - share) if round_trip else share, 9)))
    return _changes(shares)


def _scheduled(steps: list[dict[str, Any]], whole: int) -> dict[str, Any]:
    if len(steps) == 1 and "loss" not in steps[0]:
        return {"delay": steps[0]["delay"]}
    return {"capacity": _schedule(steps, whole)}


def _schedule(steps: list[dict[str, Any]], whole: int) -> dict[str, Any]:
    """Return a cyclic schedule, so that longer runs are possible. The scenario lasts one cycle."""
    return {"kind": "schedule", "steps": steps, "repeat": time_of(whole)}


def _told(path: Path, made: Recording) -> str:
    """Return a one-line summary of a file's measurements."""
    parts = [f"{made.length_s:g} s"]
    for name, way in (("", made.both), (" down", made.down), (" up", made.up)):
        if way.rates:
            parts.append(f"rates{name} {_spread([rate / 1e6 for _, rate in way.rates])} Mbit/s")
        if way.delays:
            parts.append(f"delays{name} {_spread([1e3 * delay for _, delay in way.delays])} ms")
        if way.probes:
            lost = sum(lost for _, lost in way.probes)
            parts.append(f"{lost:,} of {len(way.probes):,} probes lost{name}")
    return f"{path.name}, {made.form}: " + "; ".join(parts)


def _spread(values: list[float]) -> str:
    values = sorted(values)
    return (
        " / ".join(f"{values[min(int(share * len(values)), len(values) - 1)]:.4g}" for share in (0.05, 0.5, 0.95))
        + " (5 / 50 / 95 %)"
    )
