"""Identifies the congestion control in a capture: every built-in one runs over the capture's path with the capture's
losses.

The runs are mirrored: the same segments are lost at the same transmissions. The bytes in flight over the data therefore show how a
controller responds to the losses, regardless of the queue's exact length. Each candidate also runs over paths that differ from the
fitted one by the possible error of the fit. The differences between a candidate's own runs set the scale of the likelihood, and of the
answer "none of these". A controller that draws random numbers is identified by its drops in flight size without a loss (`_falls`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ackclock.diagnose._curve import Curve, Sent, curve, run_curve, run_flights
from ackclock.diagnose._falls import Falls, alike, falls
from ackclock.diagnose._mirror import CUT, mirrored
from ackclock.diagnose._score import apart, likelihoods, mostly, same, spreads
from ackclock.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from ackclock._results.result import Run
    from ackclock.diagnose import Diagnosis
    from ackclock.scenario import Scenario

    Floats = np.ndarray[Any, np.dtype[np.float64]]

__all__ = ["Candidate", "Identity", "candidates", "identify"]

CELLS = 200
"""Maximum number of parts of the data in which flights are compared."""

SEGMENTS_PER_CELL = 8

LEAST_SEGMENTS = 400
"""Minimum number of segments in a transfer; a shorter one reveals too little."""

MOST_BYTES = 60_000_000
"""Maximum number of bytes compared; a longer transfer is compared only from its beginning."""

RATE_OFF, DELAY_OFF = 3e-4, 1e-3
"""Possible relative errors of the fitted rate and delay."""

OFF = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (-1, -1))
"""A candidate's paths: multiples of `RATE_OFF` and `DELAY_OFF` added to the fitted path."""

IN_RACE = 4.0
"""Multiple of the smallest distance. Candidates beyond it, and beyond `CLEARLY`, are run to the end only once."""

CLEARLY = 0.1

FIRST_PART, FIRST_IN_RACE, FIRST_CLEARLY = 0.25, 6.0, 0.2
"""Fraction of the data in the first run, and the bounds for it. Candidates beyond them are not run to the end. The
bounds are wider, because a controller that draws random numbers may begin differently in each run.
"""

FIRST_OFF = 3
"""Number of runs after which a candidate is dropped if it is `HOPELESS` times less likely than the best."""

HOPELESS = 1e6

NAMED = 0.1
"""Relative deviation of the best candidate beyond which no controller is named: a host with its own way of pacing,
splitting packets or waking up looks like a different controller.
"""

AGREES = 0.013
"""Maximum relative deviation of a candidate's flight from the capture's over most of the data, unless the candidate's
own runs differ by more.
"""

LOOSELY, ALONE, ALONE_ON_AVERAGE = 0.05, 4.0, 3.0
"""Maximum such deviation for a candidate with a NIC that splits packets, if every other candidate deviates more by
these factors, over most of the data and on average. The behaviour of NIC and driver is known only roughly.
"""

WHOLE = [{"name": "sender", "cuts_packets": False}]
"""Host with packets that cross the path whole."""

HYSTART = ("cubic",)
"""Candidates whose slow start is ended by HyStart by default."""

LARGE = 0.1
"""Minimum fraction of multi-segment packets for the capture to show packets before the NIC splits them."""

DRAWS, DRAWN = ("cdg",), 3
"""Candidates that draw random numbers at each step, and number of runs of each that are compared by their drops."""

DECIDED = 20.0
"""Minimum likelihood ratio for the better candidate to be named."""

KIN = {
    "reno": "TCP-LP (Linux's `lp`), which is not built in, does the same as reno unless the delay grows",
    "westwood-plus": "Linux calls it `westwood`",
}
"""Other names of a controller, and controllers elsewhere that behave identically."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """Controller compared with the capture.

    Parameters
    ----------
    name
        Name of the controller.
    distance
        Mean relative difference between the flight of its nearest run and the capture's; only for the first part if it
        was far off there.
    spread
        Mean relative difference between each of its runs and the nearest other one; None if it ran once.
    ratio
        Likelihood ratio of the best candidate to this one; None if it ran once and was far off.
    """

    name: str
    distance: float
    spread: float | None
    ratio: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Identity:
    """Controller identified in a capture.

    Parameters
    ----------
    names
        The best candidate, and those whose runs are identical to the last segment, so that no capture can tell them
        apart.
    others
        Candidates that the capture does not rule out either.
    refused
        Why there is no answer; empty if there is one.
    nearest
        The nearest candidate, which is named in the answer "none of these".
    candidates
        Candidates that ran, the likeliest first.
    left_out
        Names of candidates that did not run, and why.
    curves
        Flight in segments over parts of the data: the capture's (""), and those of the candidates.
    scenario
        The mirrored scenario of the best.
    whole_bytes
        Amount of data compared, bytes.
    """

    names: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    refused: str = ""
    nearest: str = ""
    candidates: tuple[Candidate, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    curves: dict[str, Floats] = field(default_factory=dict, repr=False)
    scenario: Scenario | None = field(default=None, repr=False)
    whole_bytes: int = 0

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        if self.refused:
            return f"The congestion control cannot be named: {self.refused}."
        if not self.names:
            off = next(one for one in self.candidates if one.name == self.nearest)
            return (
                f"None of the {len(self.candidates)} congestion controls that are known here: {self.nearest} comes nearest, "
                f"and its flight is {off.distance * 100:.1f} % off. It may still be one of them, in a host that paces, cuts or delays packets otherwise than ours: "
                "the capture cannot show that."
            )
        said = f"The congestion control was {_or(self.names)}"
        if len(self.names) > 1:
            said += ", which do the same on this path, segment by segment"
        if self.others:
            said += f"; {_or(self.others)} cannot be ruled out"
        if self.names[0] in DRAWS:
            said += ". It draws random numbers, and is named by how its flight falls without a loss"
        return ". ".join([said, *(KIN[name] for name in self.names if name in KIN)]) + "."

    def summary(self) -> dict[str, Any]:
        """The identity as plain values, for JSON."""
        from dataclasses import asdict

        return {
            "sentence": self.sentence,
            "refused": self.refused or None,
            "names": list(self.names),
            "others": list(self.others),
            "nearest": self.nearest or None,
            "candidates": [asdict(one) for one in self.candidates],
            "left_out": [{"name": name, "reason": why} for name, why in self.left_out],
        }


def _or(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]


def candidates() -> tuple[str, ...]:
    """Return all built-in TCP congestion controls."""
    from ackclock import _engine

    return tuple(name for name, _ in _engine.registry()["controllers"] if not name.startswith(("pcc", "quinn:")))


def identify(
    found: Diagnosis, *, among: Sequence[str] | None = None, progress: Callable[[float], None] | None = None
) -> Identity:
    """Identify the congestion control in a capture.

    Parameters
    ----------
    found
        Diagnosis of the capture.
    among
        The candidates; None: all built-in controllers.
    progress
        Called with the fraction of the work completed.

    Returns
    -------
    Identity
        With a refusal if the capture has no model or reveals too little.
    """
    try:
        whole = _compared(found)
        base = mirrored(found, controller="reno", most_bytes=MOST_BYTES)
    except InputError as error:
        return Identity(refused=str(error))
    shown = found.sent
    assert shown is not None
    names, left_out = _fitting(among or candidates(), shown, found)
    if not names:
        return Identity(refused="found no candidate whose SYN looks like the capture's", left_out=tuple(left_out))
    cells = max(20, min(CELLS, whole // found.mss // SEGMENTS_PER_CELL))
    own = curve(shown.ends, shown.flights, whole=whole, cells=cells, mss=found.mss)
    runs: dict[str, list[Curve]] = {name: [] for name in names}
    total = len(names) // 2 + 3 * (len(OFF) - 1)
    of = dict.fromkeys(names, base)

    def run(host: Scenario, name: str, at: int) -> Curve:
        return _run(host, name, at, whole=whole, cells=cells, mss=found.mss, shown=shown)

    def add(racers: Sequence[str], first: int, last: int) -> None:
        for name in racers:
            for at in range(first, last):
                runs[name].append(run(of[name], name, at))
                if progress is not None:
                    progress(min(sum(map(len, runs.values())) / total, 1.0))

    near = _begins(found, names, own, whole=whole, cells=cells, shown=shown)
    for name in _in_race(near, FIRST_IN_RACE, FIRST_CLEARLY):
        hosts = _hosts(base, shown, found, name)
        made = [run(host, name, 0) for host in hosts]
        nearest = min(range(len(made)), key=lambda at: mostly(own, made[at]))
        of[name], runs[name] = hosts[nearest], [made[nearest]]
    near |= {name: apart(own, made[0]) for name, made in runs.items() if made}
    racers = _in_race({name: near[name] for name, made in runs.items() if made}, IN_RACE, CLEARLY)
    add(racers, 1, FIRST_OFF)
    losses = len(shown.lost)
    likely = likelihoods(own, runs, racers, losses=losses)
    best = max(likely.values())
    add([name for name in racers if best - likely[name] <= math.log(HOPELESS)], FIRST_OFF, len(OFF))
    told = _judged(own, runs, racers, near, left_out, of, whole, losses=losses)
    return told if told.names else _by_falls(told, found, of, whole)


def _by_falls(told: Identity, found: Diagnosis, of: Mapping[str, Scenario], whole: int) -> Identity:
    """Name a candidate that draws random numbers, if its runs show the same drops without a loss as the capture."""
    shown = found.sent
    assert shown is not None
    lost = [at for at, _ in shown.lost_at]
    inside = shown.ends <= whole + 1
    own = falls(shown.ends[inside], shown.flights[inside], lost, mss=found.mss)
    for name in DRAWS:
        if name in of and alike(own, [_falls_of(of[name], name, at, lost, found, shown) for at in range(DRAWN)]):
            return replace(told, names=(name,), nearest=name, scenario=of[name].set("flows.0.congestion_control", name))
    return told


def _falls_of(base: Scenario, name: str, at: int, lost: Sequence[int], found: Diagnosis, shown: Sent) -> Falls:
    return falls(*run_flights(_played(base, name, at, shown), mss=found.mss), lost, mss=found.mss)


def _hosts(base: Scenario, shown: Sent, found: Diagnosis, name: str) -> list[Scenario]:
    """Return the mirror, and variants that differ in details not shown by the capture. Multi-segment packets may
    cross the path whole, as between virtual machines. If the capture shows single segments, a NIC may have split them
    before. HyStart may end slow start by a margin of microseconds, or not at all. A slow start that ended early may
    have started with a threshold.
    """
    made = [base, base.set("hosts", WHOLE) if shown.large > LARGE else base.set_all(CUT)]
    classic: dict[str, Any] = {"flows.0.stack.slow_start": {"kind": "classic"}} if name in HYSTART else {}
    starts = [classic] if classic else []
    if found.early_bytes:
        threshold = max(found.early_bytes // found.mss, 2)
        starts.append({**classic, "flows.0.stack.initial_ssthresh": threshold})
    return made + [one.set_all(start) for start in starts for one in made]


def _in_race(near: dict[str, float], times: float, clearly: float) -> list[str]:
    """Return the candidates within this multiple of the smallest distance, or below the absolute bound."""
    most = max(times * min(near.values()), clearly)
    return [name for name, off in near.items() if off <= most]


def _begins(
    found: Diagnosis, names: Sequence[str], own: Curve, *, whole: int, cells: int, shown: Sent
) -> dict[str, float]:
    """Return each candidate's distance over the first part of the data. A run that stops there is identical to the
    beginning of the full run.
    """
    part = max(int(cells * FIRST_PART), min(cells, -(-LEAST_SEGMENTS * found.mss * cells // whole)))
    length = whole * part // cells
    base = mirrored(found, controller="reno", most_bytes=length)
    seen = Curve(logs=own.logs[:part], reached=1.0)
    return {
        name: min(
            apart(seen, _run(host, name, 0, whole=length, cells=part, mss=found.mss, shown=shown))
            for host in _hosts(base, shown, found, name)
        )
        for name in names
    }


def _compared(found: Diagnosis) -> int:
    """Return the number of bytes to compare. Incomparable captures are refused."""
    shown = found.sent
    if found.refused or shown is None or found.path is None:
        raise InputError(f"found a capture without conclusions ({found.refused}); allowed: one with some")
    whole = min(int(found.connection["bytes"]), MOST_BYTES)
    if whole < LEAST_SEGMENTS * found.mss:
        raise InputError(f"found {whole // found.mss:,} segments; allowed: {LEAST_SEGMENTS:,} or more")
    if shown.marks:
        raise InputError(
            f"found {shown.marks:,} ACKs that tell of marks; allowed: none, the model of the path has no marks"
        )
    if not found.path.identified:
        raise InputError(
            "found a path that was never full; allowed: one with a queue, which shows what a controller does"
        )
    return whole


def _fitting(names: Sequence[str], shown: Sent, found: Diagnosis) -> tuple[list[str], list[tuple[str, str]]]:
    """Return candidates whose SYN matches the capture's, and the others with a reason. A controller that needs exact
    marks sends an ECN-capable SYN (ECT), unless a router has cleared the field.
    """
    needs = {"dctcp": ("ask", "ECN"), "prague": ("accecn", "accurate ECN")}
    ect, as_sent = found.connection["syn_ect"], found.at == "sender"
    fitting, left_out = [], []
    for name in names:
        ecn, asks = needs.get(name, (shown.ecn, ""))
        if ecn != shown.ecn:
            left_out.append((name, f"asks for {asks}, which this sender did not"))
        elif name not in needs and ect:
            left_out.append((name, "sends a SYN that cannot be marked, which this sender did not"))
        elif name in needs and as_sent and not ect:
            left_out.append((name, "sends a SYN that can be marked, which this sender did not"))
        else:
            fitting.append(name)
    return fitting, left_out


def _run(base: Scenario, name: str, at: int, *, whole: int, cells: int, mss: int, shown: Sent) -> Curve:
    return run_curve(_played(base, name, at, shown), whole=whole, cells=cells, mss=mss)


def _played(base: Scenario, name: str, at: int, shown: Sent) -> Run:
    """Run a candidate over the fitted path or a slightly different one, each with its own seed."""
    import ackclock
    from ackclock import units

    rate_off, delay_off = OFF[at]
    link = base.network.bottleneck
    assert link is not None
    rate = round(units.whole(link.rate, units.RATE) * (1 + rate_off * RATE_OFF))
    delay = round(units.whole(link.delay, units.DURATION) * (1 + delay_off * DELAY_OFF))
    scenario = base.set_all(
        {
            "record.trace": "flow",
            "flows.0.congestion_control": name,
            "network.bottleneck.rate": f"{rate} bit/s",
            "network.bottleneck.delay": f"{delay} ns",
        }
    )
    if shown.lost_acks:
        many = {"kind": "bernoulli", "p": min(len(shown.lost_acks) / shown.acks, 0.5)}
        lost = many if at % 2 else {"kind": "listed", "packets": list(shown.lost_acks)}
        back = {"rate": f"{rate} bit/s", "delay": f"{delay} ns", "loss": lost}
        scenario = scenario.set("network.reverse", {"bottleneck": back})
    return ackclock.run(scenario, seed=at + 1)


def _judged(
    own: Curve,
    runs: dict[str, list[Curve]],
    racers: Sequence[str],
    near: dict[str, float],
    left_out: Sequence[tuple[str, str]],
    of: Mapping[str, Scenario],
    whole: int,
    *,
    losses: int,
) -> Identity:
    import numpy as np

    likely = likelihoods(own, runs, racers, losses=losses)
    spread, distance = {}, {}
    for name in racers:
        spread[name] = float(np.mean(spreads(runs[name], apart)))
        distance[name] = min(apart(own, one) for one in runs[name])
    order = sorted(racers, key=lambda name: -likely[name])
    best = order[0]
    ratios = {name: float(np.exp(min(likely[best] - likely[name], 700.0))) for name in racers}
    ranked = [Candidate(name=name, distance=distance[name], spread=spread[name], ratio=ratios[name]) for name in order]
    ranked += [
        Candidate(name=name, distance=near[name], spread=None, ratio=None)
        for name in sorted(near, key=lambda name: near[name])
        if name not in ratios
    ]
    equal = [name for name in order if same(runs[best], runs[name])]
    off = {name: min(mostly(own, one) for one in runs[name]) for name in racers}
    others = [
        name
        for name in order
        if name not in equal and (ratios[name] < DECIDED or distance[name] < distance[best] or off[name] < off[best])
    ]
    alone = (
        bool(of[best].flows[0].stack.tso)
        and off[best] <= LOOSELY
        and all(
            off.get(name, math.inf) >= ALONE * off[best]
            and distance.get(name, near[name]) >= ALONE_ON_AVERAGE * distance[best]
            for name in near
            if name not in equal
        )
    )
    agrees = off[best] <= max(AGREES, *spreads(runs[best], mostly))
    far = distance[best] > NAMED or not (agrees or alone)
    curves = {"": np.exp(own.logs), **{name: np.exp(made[0].logs) for name, made in runs.items() if made}}
    return Identity(
        names=() if far else tuple(equal),
        others=() if far else tuple(others),
        nearest=best,
        candidates=tuple(ranked),
        left_out=tuple(left_out),
        curves=curves,
        scenario=of[best].set("flows.0.congestion_control", best),
        whole_bytes=whole,
    )
