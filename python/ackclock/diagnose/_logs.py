"""Fit of a path to logs of `iperf3 -J` and `ping`: the model of a diagnosis, built from these logs.

The transfer gives rate, queue and losses, the ping the round trip of the idle path. Each fact is *known* (measured),
*bounded* (the logs give one side of it) or *guessed* (they say nothing). iperf3 prints TCP_INFO at the end of each
interval, so the model's run is sampled in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path as File
from typing import TYPE_CHECKING

from ackclock import _files
from ackclock.diagnose._fit import SEEDS, Fit, Known, Measures, Modelled, built, compared
from ackclock.diagnose._mirror import with_window
from ackclock.diagnose._path import STANDS_S, Path
from ackclock.diagnose._transfer import Interval, Transfer, transfer
from ackclock.errors import InputError, ScenarioError, one_of, quote
from ackclock.text import rate as told_rate
from ackclock.text import seconds as told_seconds
from ackclock.text import share as told_share

if TYPE_CHECKING:
    from ackclock.formats._recordings import Recording
    from ackclock.scenario import Scenario

__all__ = ["FittedPath", "fit_logs"]

LARGEST = 2**26
"""Maximum size of a log, bytes."""

HEADER, PING_BYTES = 52, 84
"""Bytes of IP and TCP with timestamps before the payload, and size of ping's default packet."""

LEAST_STANDING = 3
"""Minimum number of intervals with a queue for the rate to be known."""

LEVEL, SLACK, LEAST_S = 0.03, 1.15, 0.05
"""Maximum relative spread of rates considered constant; minimum ratio of cwnd to the data in flight at which another
window must be the limit; and shortest interval used, s.
"""

MOST_CARRIED = 5 * 10**8
"""Maximum number of bytes in the model's transfer: it runs once for each open choice."""

SPARE = (1.0, 1.25, 2.0)
"""Ratios of the model's rate to the highest rate observed, if no queue built up; the best fit is used."""

QUEUES = (1.0, 0.25, 0.0625)
"""Candidate queue lengths, in base RTTs, if no queue was observed: the first one, or the best-fitting one if packets
were lost.
"""

SHORTER = (1.0, 0.5, 0.25)
"""Candidate queue lengths, as fractions of the longest wait, if there was a standing queue and packets were lost:
other traffic may have caused the longest wait."""

FULL = 0.8
"""Fraction of the rate above which a path with a queue counts as full."""

FEW, AGAIN = 3, 0.1
"""Number of seeds per model with random losses while models are compared, and weight of the error in retransmitted segments."""

MOST_TIMES = 3
"""Multiple of the median number of losses per interval; losses in excess of it count as a burst."""

NAME, FORMS = "path of logs", ("iperf3", "ping")


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedPath:
    """A scenario built from logs, its goodness of fit, and the origin of its values.

    Parameters
    ----------
    fit
        The model, and its quantities beside the measured ones.
    known, bounded, guessed
        Values that the logs tell, those of which they tell one side, and those of which they tell nothing.
    """

    fit: Fit = field(repr=False)
    known: tuple[str, ...]
    bounded: tuple[str, ...]
    guessed: tuple[str, ...]

    @property
    def scenario(self) -> Scenario:
        """The model."""
        return self.fit.scenario

    @property
    def about(self) -> tuple[str, ...]:
        """Origin of each value (known, bounded or guessed), and the goodness of fit, a line each."""
        from ackclock.diagnose._page import quantity_rows

        heads = (("known", self.known), ("bounded", self.bounded), ("guessed", self.guessed))
        lines = [f"{head}: {line}" for head, told in heads for line in told]
        for name, measured, model, least, most, error in quantity_rows(self.fit):
            spread = "" if least == most else f" ({least} to {most})"
            lines.append(f"fit: {name}: measured {measured}, simulated {model}{spread}; error {error}")
        if not self.fit.holds:
            lines.append(f"fit: no basis for conclusions: it is {self.fit.wrong}")
        return tuple(lines)

    def to_toml(self) -> str:
        """Return the text of the scenario file, headed by what is known about the path."""
        return "".join(f"# {line}\n" for line in self.about) + self.scenario.to_toml()


def fit_logs(paths: Sequence[str | os.PathLike[str]], *, form: str | None = None) -> FittedPath:
    """Make a model of a path from logs of iperf3 and ping, run it, and compare.

    Parameters
    ----------
    paths
        Files: one result of `iperf3 -J` over TCP, and logs of `ping`, if there are any.
    form
        Form of the files; None: each one's content shows it.

    Raises
    ------
    InputError
        If there is no transfer, or more than one, or a file has another form.
    """
    from ackclock.formats import _ping, _recordings

    pings: list[tuple[Recording, float | None]] = []
    found: Transfer | None = None
    for file in map(File, paths):
        try:
            text = _files.contents(file, LARGEST)
            kind = form or _recordings.form_of(text, file.name)
            if form is not None and form not in FORMS:
                raise InputError(f"--form: found {quote(form)}; allowed: {one_of(form, FORMS)}")
            if kind not in FORMS:
                raise InputError(f"found a recording of the form {kind}; allowed: with --fit, iperf3 and ping")
            if kind == "ping":
                pings.append((_recordings.read(text, "ping"), _ping.start_s(text)))
            elif found is not None:
                raise InputError("found a second result of iperf3; allowed: one")
            else:
                found = transfer(text)
        except InputError as error:
            told = str(error)
            raise InputError(told if told.startswith(("--", str(file))) else f"{file}: {told}") from None
    if found is None:
        raise InputError(
            "--fit: found no result of iperf3; allowed: one of `iperf3 -J`, because a ping tells delays and losses, and no rate "
            "(without --fit it is replayed)"
        )
    return _fitted(found, pings)


@dataclass(slots=True)
class _Told:
    known: list[str] = field(default_factory=list)
    bounded: list[str] = field(default_factory=list)
    guessed: list[str] = field(default_factory=list)


def _fitted(log: Transfer, pings: Sequence[tuple[Recording, float | None]]) -> FittedPath:
    told = _Told()
    known, chances = _facts(log, pings, told)
    controller = _controller(log, known, told)
    told.guessed += [
        "the way back: as fast as the way there, and half of the round trip",
        f"the initial window: {known.first_flight} segments; timestamps and SACK: on",
    ]
    choice = _best(log, known, chances, controller, told)
    made = _run(log, choice, controller, SEEDS if choice.path.sent_again_empty else 1)
    return FittedPath(fit=made, known=tuple(told.known), bounded=tuple(told.bounded), guessed=tuple(told.guessed))


def _best(log: Transfer, known: Known, chances: Sequence[int], controller: str, told: _Told) -> Known:
    """Return the facts of the best-fitting model among those that differ only where the logs are silent."""
    whole = known.path.identified
    shares = (SHORTER if whole else QUEUES) if known.path.sent_again_full else QUEUES[:1]
    open_ = [(spare, share, by) for spare in ((1.0,) if whole else SPARE) for share in shares for by in chances]
    if len(open_) == 1:
        return _other(known, *open_[0])
    tried = {one: _distance(_run(log, _other(known, *one), controller, FEW if one[2] else 1)) for one in open_}
    best = min(tried, key=lambda one: tried[one])
    spare, share, by = best
    if not whole:
        told.guessed.append(f"the model's rate: {spare:g} times that bound, the best fit of {_listed(SPARE)}")
        told.guessed.append(
            f"the queue: {share:g} round trips of the idle path, the best fit of {_listed(shares)}"
            if len(shares) > 1
            else "the queue: one round trip of the idle path; none stood at the ends of the intervals"
        )
    elif share < 1:
        told.guessed.append(
            f"the queue: {share:g} of the longest wait, which passed; the best fit of {_listed(shares)}"
        )
    elif known.path.sent_again_full:
        wait = told_seconds(known.path.queue_s)
        told.bounded.append(f"the queue: at least {wait}, the longest wait at the end of an interval")
    if len(chances) > 1:
        told.guessed.append(
            f"the cause of losses: chance for {by:,}, a full queue for the others, the best fit of {_listed(chances)}"
        )
    return _other(known, *best)


def _controller(log: Transfer, known: Known, told: _Told) -> str:
    """Return the sender's congestion control, or cubic if it is unknown or not available."""
    name = log.control or "cubic"
    try:
        built(known, name=NAME, controller=name)
    except ScenarioError as error:
        if not error.key.startswith("flows.0.congestion_control"):
            raise InputError(f"--fit: found logs that make no scenario: {error}") from None
        told.guessed.append(f"the sender's congestion control: cubic in place of {quote(name)}, which is not here")
        return "cubic"
    if log.control:
        told.known.append(f"the sender's congestion control: {name}")
    else:
        told.guessed.append("the sender's congestion control: cubic")
    return name


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:,}" if isinstance(value, int) else f"{value:g}" for value in values)


def _other(known: Known, spare: float, share: float, chance: int) -> Known:
    """Return a copy of the facts with a multiple of the rate, a fraction of the queue, and this many random losses."""
    path = known.path
    assert path.rate_bps is not None
    assert path.wire_bps is not None
    assert path.base_rtt_s is not None
    assert path.queue_s is not None
    sooner = 8 * (known.mss + HEADER - PING_BYTES) / path.wire_bps * (1 - 1 / spare)
    other = replace(
        path,
        base_rtt_s=path.base_rtt_s - sooner if sooner < path.base_rtt_s / 2 else path.base_rtt_s,
        rate_bps=spare * path.rate_bps,
        wire_bps=spare * path.wire_bps,
        queue_s=share * path.queue_s,
        sent_again_empty=chance,
        sent_again_full=max(path.sent_again_full - chance, 0),
    )
    return replace(known, path=other)


def _run(log: Transfer, known: Known, controller: str, seeds: int) -> Fit:
    """Run the model, sampled at iperf3's intervals, and compare it with the log."""
    scenario = with_window(built(known, name=NAME, controller=controller), known.window)
    every = sorted(one.seconds for one in log.intervals)[len(log.intervals) // 2]
    own = _measures(log, known)
    runs = [_simulated(scenario, seed, every) for seed in range(1, seeds + 1)]
    same = [({key: run[key] for key in own}, complete) for run, complete in runs]
    return compared(scenario, own, same, bound=not known.path.identified)


def _distance(made: Fit) -> float:
    """Return a model's error: in transfer time, in mean smoothed RTT and, with a small weight, in retransmitted segments."""
    off = {one.name: abs(one.error or 0.0) for one in made.quantities}
    return made.error + off.get("mean smoothed RTT", 0.0) + AGAIN * min(off.get("segments sent again", 0.0), 1.0)


def _facts(
    log: Transfer, pings: Sequence[tuple[Recording, float | None]], told: _Told
) -> tuple[Known, tuple[int, ...]]:
    """Return the facts in the logs, each with its origin; and the number of losses that may have been random."""
    rtts = [rtt for one in log.intervals for rtt in one.rtts]
    pinged = [2 * delay for made, _ in pings for _, delay in made.both.delays]
    idle = min(pinged, default=None)
    seen = [*rtts, *([log.least_rtt] if log.least_rtt else [])]
    if idle is None and not seen:
        raise InputError(
            "--fit: found no round trip: iperf3 prints them at a sender under Linux; allowed: a log of `ping` beside it"
        )
    least = min([*seen, *([idle] if idle is not None else [])])
    if idle is not None and idle <= least * 1.1:
        told.known.append(f"round trip of the idle path: {told_seconds(idle)}, the least of {len(pinged):,} pings")
    elif idle is not None:
        told.bounded.append(
            f"round trip of the idle path: at most {told_seconds(least)}, below every ping, as the transfer shows"
        )
    else:
        told.bounded.append(
            f"round trip of the idle path: at most {told_seconds(least)}, the transfer's own least; a ping before it would tell"
        )
    rate, standing = _rate(log, least, told)
    wire = rate * (log.mss + HEADER) / log.mss
    base = least if least != idle else idle + 8 * (log.mss + HEADER - PING_BYTES) / wire
    cut = min(1.0, MOST_CARRIED / log.bytes)
    if cut < 1:
        told.guessed.append(f"the rest of the transfer: the model carries its first {cut * log.seconds:.3g} s")
    segments = max(round(log.bytes / log.mss), 1)
    chances = _chances(log, rate, standing, segments, told)
    full = log.again or 0
    _told_pings(log, pings, told)
    longest = max([base, *rtts])
    wait = longest - base
    if not standing:
        wait = base
    elif not full:
        wait *= 2
        told.guessed.append(f"the queue: {told_seconds(wait)}, twice the longest wait; it never overflowed")
    path = Path(
        base_rtt_s=base,
        queued_rtt_s=longest,
        rate_bps=rate,
        identified=standing,
        wire_bps=wire,
        queue_s=wait,
        sent_again_full=full,
        sent_again_empty=0,
        sent_again_part_full=0,
        segments_per_ack=None,
        queue_bound=True,
    )
    known = Known(
        path=path,
        mss=log.mss,
        bytes=max(int(log.bytes * cut), log.flows),
        segments=segments,
        life_s=log.seconds * cut,
        first_flight=10,
        window=_window(log, rtts, standing, told),
        flows=log.flows,
    )
    return known, chances


def _stands(one: Interval, base: float) -> bool:
    return bool(one.rtts) and min(one.rtts) > base + max(STANDS_S, 0.1 * base)


def _rate(log: Transfer, base: float, told: _Told) -> tuple[float, bool]:
    """Return the payload rate, and whether a queue lasted long enough for the rate to be known."""
    later = log.intervals[1:] or log.intervals  # the first interval includes filling the send buffer
    mean = 8 * log.bytes / log.seconds
    standing = [one for one in later if _stands(one, base)]
    if len(standing) >= LEAST_STANDING:
        rate = 8 * sum(one.bytes for one in standing) / sum(one.seconds for one in standing)
        rate = max(rate, mean)
        told.known.append(f"the rate: {told_rate(rate)} of payload, over {len(standing):,} intervals with a queue")
        return rate, True
    rates = sorted(8 * one.bytes / one.seconds for one in later if one.seconds > 0)
    rate = max(rates[int(0.9 * (len(rates) - 1))] if rates else mean, mean)
    told.bounded.append(
        f"the rate: at least {told_rate(rate)} of payload, because no queue stood for {LEAST_STANDING} intervals"
    )
    return rate, False


def _chances(log: Transfer, rate: float, standing: bool, segments: int, told: _Told) -> tuple[int, ...]:
    """Return how many losses may have been random rather than drops at a full queue; a single number if that is clear.

    An RTT sample at the end of an interval does not reveal a queue that was full earlier. If the path was full for
    most of the time, its queue dropped the packets; likewise if only one interval has losses, because slow start
    ended there. Otherwise all losses, one per interval, or none may have been random; the best-fitting model decides.
    """
    if log.again is None:
        told.guessed.append("losses: none; iperf3 counts them at a sender under Linux")
        return (0,)
    told.known.append(f"{log.again:,} of {segments:,} segments sent again ({told_share(log.again / segments)})")
    counts = [one.again for one in log.intervals if one.again]
    if len(counts) < 2 or (standing and 8 * log.bytes / log.seconds >= FULL * rate):
        if log.again:
            told.guessed.append("the cause of losses: a full queue")
        return (0,)
    later = sorted(counts[1:])
    most = MOST_TIMES * later[len(later) // 2]
    return tuple(sorted({0, len(later), sum(min(count, most) for count in later)}))


def _told_pings(log: Transfer, pings: Sequence[tuple[Recording, float | None]], told: _Told) -> None:
    """Report what pings reveal besides the base RTT: losses, and RTTs during the transfer."""
    probes = [lost for made, _ in pings for _, lost in made.both.probes]
    if any(probes):
        told.known.append(
            f"{sum(probes):,} of {len(probes):,} pings lost; the model takes losses from the transfer alone"
        )
    for made, begins in pings:
        if begins is None or log.begins is None:
            continue
        ends = log.begins + log.seconds
        during = sorted(2 * delay for t, delay in made.both.delays if log.begins <= begins + t <= ends)
        if during:
            told.known.append(
                f"pings during the transfer: median {told_seconds(during[len(during) // 2])}, greatest {told_seconds(during[-1])}"
            )


def _window(log: Transfer, rtts: Sequence[float], standing: bool, told: _Told) -> int | None:
    """Return the window that limited each flow: the rate is level in the second half, without a queue and without losses."""
    half = log.intervals[len(log.intervals) // 2 :]
    took = sum(one.seconds for one in half)
    if standing or not rtts or took < LEAST_S or any(one.again for one in half):
        return None
    rates = [8 * one.bytes / one.seconds for one in half if one.seconds > LEAST_S]
    mean = 8 * sum(one.bytes for one in half) / took
    flight = mean / 8 * sum(rtts) / len(rtts)
    spare = min(one.cwnd for one in half) > SLACK * flight
    if not spare and (len(rates) < LEAST_STANDING or max(rates) - min(rates) > LEVEL * mean):
        return None
    window = flight / log.flows
    if window < 2 * log.mss:
        return None
    why = "the congestion window is larger" if spare else "the rate is level without a queue"
    told.guessed.append(f"the limit: a receiver's window (or send buffer) of {window:,.0f} bytes, because {why}")
    return round(window)


def _measures(log: Transfer, known: Known) -> Measures:
    own: Measures = {
        ("transfer", "s"): known.life_s,
        ("goodput", "bit/s"): 8 * known.bytes / known.life_s,
    }
    rtts = [rtt for one in log.intervals for rtt in one.rtts]
    if rtts:
        own["mean smoothed RTT", "s"] = sum(rtts) / len(rtts)
        own["greatest smoothed RTT", "s"] = max(rtts)
    if log.again is not None:
        own["segments sent again", ""] = log.again * known.life_s / log.seconds
    return own


def _simulated(scenario: Scenario, seed: int, every_s: float) -> Modelled:
    """Return a run's quantities, its round trips sampled as iperf3 does."""
    import ackclock

    step = f"{max(round(every_s * 1e3), 1)} ms"
    run = ackclock.run(scenario.set("record.sample_interval", step), seed=seed)
    flows = run.rows("flows")
    took = max((row["completion_s"] or row["stop_s"] - row["start_s"]) for row in flows)
    stops = {row["flow"]: row["start_s"] + (row["completion_s"] or took) for row in flows}
    samples = [row for row in run.rows("samples") if row["srtt_s"] is not None and row["t_s"] <= stops[row["flow"]]]
    rtts = [row["srtt_s"] for row in samples] or [row["mean_rtt_s"] or 0.0 for row in flows]
    made: Measures = {
        ("transfer", "s"): took,
        ("goodput", "bit/s"): 8 * sum(row["bytes_acked"] for row in flows) / took,
        ("mean smoothed RTT", "s"): sum(rtts) / len(rtts),
        ("greatest smoothed RTT", "s"): max(rtts),
        ("segments sent again", ""): float(sum(row["retransmissions"] for row in flows)),
    }
    return made, all(row["completion_s"] is not None for row in flows)
