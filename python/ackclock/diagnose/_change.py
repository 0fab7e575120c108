"""What-if: a fitted scenario is run with one value changed at a time, over the same seeds, and the effect is compared
with the error of the fit.

Changes to the path are made in the path model; changes to the sender alone use the better-fitting of the two models.
Whatever the sender, the mirror loses the same segments as the capture, and its application writes at the captured
times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError

if TYPE_CHECKING:
    from ackclock.diagnose._fit import Fit
    from ackclock.scenario import Scenario

__all__ = ["CHANGES", "NOW", "Outcome", "what_if"]

NOW = "as it is"
"""Name of the first row, with nothing changed."""

FASTER = 10
"""Factor applied to rate and queue for a second path, on which each change is also run if the capture gives only a
lower bound on the rate.
"""

SEEDS = 8
"""Runs per change. Eight runs agree in sign by chance once in 128."""

SENDER = "flows.0."
"""Prefix of the sender's keys; changes to them use the mirror."""

SEEN = 0.1
"""Minimum fraction of the time in which the application waits at which the mirror can show the effect of another sender.
The mirror repeats the application's writes.
"""

SAME = 0.05
"""Maximum difference between the effects on the two paths, as a fraction of the transfer time."""

CHANGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("congestion control reno", {"flows.0.congestion_control": "reno"}),
    ("congestion control cubic", {"flows.0.congestion_control": "cubic"}),
    ("congestion control bbr", {"flows.0.congestion_control": "bbr"}),
    ("congestion control bbr3", {"flows.0.congestion_control": "bbr3"}),
    ("initial window of 32", {"flows.0.stack.initial_window": 32}),
    ("no limit by the receiver's buffer", {"flows.0.stack.receive_buffer": "64 MiB"}),
    ("pacing", {"flows.0.stack.pacing": True}),
    ("queue of one BDP", {"network.bottleneck.queue": {"kind": "drop-tail", "limit": "1 BDP"}}),
    ("queue fq-codel", {"network.bottleneck.queue": {"kind": "fq-codel"}}),
    ("no random loss", {"network.bottleneck.loss": None}),
    ("round trip 20 ms longer", {"delay": 10_000_000}),
    ("twice the rate", {"rate": 2}),
)
"""Name of a change -> scenario keys and values. `delay` is added to the path's delay; `rate` multiplies its rate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """Effect of a change.

    Parameters
    ----------
    name
        Name of the change; the first outcome has none.
    seconds, least, most
        Transfer time, s: median, minimum and maximum over the seeds; None if the transfer was not complete in one of the runs.
    change
        Median over the seeds of the relative change in time (positive: longer).
    change_least, change_most
        Minimum and maximum of that change.
    tells
        The change exceeds the fit error and has the same sign with every seed; if the rate is only a bound, on a faster
        path as well.
    unknown
        The effect is unknown, because the rate is only a bound and a faster path gives a different effect.
    model, error
        Model that was run, `path` or `mirror`, and its relative error in transfer time.
    ran_s
        Length of the runs, s, if the transfer was not complete in one of them; None otherwise.
    """

    name: str
    seconds: float | None
    least: float | None
    most: float | None
    change: float | None
    change_least: float | None
    change_most: float | None
    tells: bool
    unknown: bool = False
    model: str = "path"
    error: float = 0.0
    ran_s: float | None = None


def what_if(
    fit: Fit | None,
    *,
    mirror: Fit | None = None,
    seeds: int = SEEDS,
    progress: Callable[[float], None] | None = None,
) -> tuple[Outcome, ...]:
    """Run each change.

    Parameters
    ----------
    fit
        Path model; None if there is none.
    mirror
        Mirror, used for changes to the sender if it fits better.
    seeds
        Runs of each change, with the same seeds for all.
    progress
        Called with the fraction completed.

    Raises
    ------
    InputError
        If no model fits.
    """
    from ackclock import units

    path = fit if fit is not None and fit.holds else None
    if mirror is not None and not (mirror.holds and (path is None or mirror.error < path.error)):
        mirror = None
    if mirror is not None and _waits_for_nobody(mirror):
        mirror = None
    if path is None and mirror is None:
        raise InputError(f"found a model that is {'not there' if fit is None else fit.wrong or 'not there'}")
    work: list[tuple[Fit, str, Scenario]] = []
    for one in (mirror, path):
        if one is not None:
            changes = [change for change in CHANGES if one is mirror or mirror is None or not _of_sender(change[1])]
            changes = [change for change in changes if one is not mirror or _of_sender(change[1])]
            work += [(one, name, scenario) for name, scenario in _changed(one.scenario, changes)]
    made: list[Outcome] = []
    before: dict[bool, list[float | None]] = {}
    for at, (one, name, scenario) in enumerate(work):
        told = []
        for faster in (False, True) if one.bound else (False,):
            times = _times(_faster(scenario) if faster else scenario, seeds)
            if name == NOW:
                before[faster] = times
            told.append(_outcome(name, times, before[faster], one.error))
        outcome = told[0] if name == NOW else _over_both(told[0], told[1] if one.bound else None, one.error)
        ran = units.whole(scenario.duration, units.DURATION) / 1e9 if outcome.seconds is None else None
        made.append(replace(outcome, model="mirror" if one is mirror else "path", error=one.error, ran_s=ran))
        if progress is not None:
            progress((at + 1) / len(work))
    return tuple(made)


def _waits_for_nobody(mirror: Fit) -> bool:
    """Return whether the model's application writes at the captured times although it hardly ever waited; if so, no
    change to the sender can make it send earlier.
    """
    waited = next((one.capture for one in mirror.quantities if one.name == "application" and one.unit == "share"), 0.0)
    return mirror.scenario.flows[0].workload.kind == "writes" and waited < SEEN


def _of_sender(keys: dict[str, Any]) -> bool:
    return all(key.startswith(SENDER) for key in keys)


def _faster(scenario: Scenario) -> Scenario:
    """Return a faster path also consistent with a capture that gives only bounds on rate and queue. The queue keeps
    its length in time.
    """
    from ackclock import units

    link = scenario.network.bottleneck
    assert link is not None
    values: dict[str, Any] = {"network.bottleneck.rate": f"{units.whole(link.rate, units.RATE) * FASTER} bit/s"}
    queue = scenario.to_dict()["network"]["bottleneck"].get("queue", {})
    amount, _, unit = str(queue.get("limit", "")).partition(" ")
    if unit == "packets":
        values["network.bottleneck.queue"] = {**queue, "limit": f"{int(amount) * FASTER} packets"}
    return scenario.set_all(values)


def _over_both(one: Outcome, other: Outcome | None, error: float) -> Outcome:
    """Return an outcome that holds on both the slowest and the faster path; unknown if they differ."""
    if other is None:
        return one
    if one.change is None or other.change is None:
        return replace(one, tells=False, unknown=True)
    same = one.tells == other.tells and (not one.tells or abs(one.change - other.change) <= max(error, SAME))
    return replace(one, tells=one.tells and same, unknown=not same)


def _changed(scenario: Scenario, changes: Sequence[tuple[str, dict[str, Any]]]) -> list[tuple[str, Scenario]]:
    """Return the scenario and those changes that affect it."""
    made = [(NOW, scenario)]
    for name, keys in changes:
        changed = _apply(scenario, keys)
        if changed is not None and changed.compiled != scenario.compiled:
            made.append((name, changed))
    return made


def _apply(scenario: Scenario, keys: dict[str, Any]) -> Scenario | None:
    from ackclock import units

    link = scenario.network.bottleneck
    assert link is not None
    if keys.get("flows.0.congestion_control") == scenario.flows[0].congestion_control:
        return None
    if "delay" in keys:
        return scenario.set("network.bottleneck.delay", f"{units.whole(link.delay, units.DURATION) + keys['delay']} ns")
    if "rate" in keys:
        return scenario.set("network.bottleneck.rate", f"{units.whole(link.rate, units.RATE) * keys['rate']} bit/s")
    if keys == {"network.bottleneck.loss": None}:
        if link.loss is None:
            return None
        return scenario.set("network.bottleneck.loss", {"kind": "bernoulli", "p": 0})
    if "flows.0.stack.receive_buffer" in keys and scenario.flows[0].stack.receive_buffer is None:
        return None
    return scenario.set_all(keys)


def _times(scenario: Scenario, seeds: int) -> list[float | None]:
    import ackclock

    return [ackclock.run(scenario, seed=seed).rows("flows")[0]["completion_s"] for seed in range(1, seeds + 1)]


def _outcome(name: str, own: Sequence[float | None], now: Sequence[float | None], error: float) -> Outcome:
    done = [value for value in own if value is not None]
    before = [value for value in now if value is not None]
    if len(done) < len(own) or len(before) < len(now):
        return Outcome(
            name=name,
            seconds=None,
            least=None,
            most=None,
            change=None,
            change_least=None,
            change_most=None,
            tells=False,
        )
    changes = [then / was - 1 for then, was in zip(done, before, strict=True)]
    one_way = min(changes) > 0 or max(changes) < 0
    change = float(median(changes))
    return Outcome(
        name=name,
        seconds=float(median(done)),
        least=min(done),
        most=max(done),
        change=change,
        change_least=min(changes),
        change_most=max(changes),
        tells=one_way and abs(change) > error,
    )
