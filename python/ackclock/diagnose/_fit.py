"""Builds a scenario from a diagnosis, runs it, and compares it with the capture, quantity by quantity.

The model is a path (rate, delay, queue, random losses), the receive window, and one transfer of the same size. It
contains no address and no payload. Capture and model are measured in the same way: the model's run is captured, and
that capture is diagnosed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from ackclock.diagnose._path import Path as Way
from ackclock.errors import InputError
from ackclock.text import seconds, share

if TYPE_CHECKING:
    from ackclock.diagnose import Diagnosis
    from ackclock.scenario import Scenario

__all__ = [
    "BASIS",
    "MOST_BYTES",
    "SEEDS",
    "Fit",
    "Known",
    "Measures",
    "Quantity",
    "built",
    "compared",
    "fit",
    "fit_mirror",
    "model",
]

BASIS = 0.1
"""Maximum error in transfer time for the model to be used for what-if."""

QUEUE_BASIS = 0.5
"""Maximum error in mean RTT for the model to be used for what-if. Beyond it, the model has a different queue, even
if the transfer time happens to fit.
"""

MEAN_RTTS = ("mean RTT", "mean smoothed RTT")
"""Names of the mean of all RTT samples of a capture, and of the smoothed RTTs that iperf3 prints."""

OWN_PACE = 0.2
"""Fraction of the lifetime with no data to send above which a model without the application is useless."""

LEAST_RWND = 0.05
"""Minimum fraction of the time limited by the receive window for the model to include that window."""

SEEDS = 8

ACK_BYTES = 52

MOST_BYTES = 2 * 10**9
"""Largest transfer simulated, bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """One quantity, in the capture and in the model as median, minimum and maximum over seeds.

    Parameters
    ----------
    name, unit
        Name (`transfer`, `goodput`, `mean RTT`, `greatest RTT`, `segments lost`, or a cause) and unit.
    capture, model, least, most
        Values in the capture and in the model, and the model's extremes.
    error
        Relative deviation of the model from the capture; None if the capture's value is zero, or the model's only a lower
        bound. For fractions, the absolute difference.
    not_complete, runs
        Number of the model's runs that ended before the transfer was complete, and of all; their transfer times are lower
        bounds, the length of the run.
    """

    name: str
    unit: str
    capture: float
    model: float
    least: float
    most: float
    error: float | None
    not_complete: int = 0
    runs: int = 0

    @property
    def bounds(self) -> tuple[bool, bool, bool]:
        """Whether the model's median, minimum and maximum are lower bounds."""
        done = self.runs - self.not_complete
        return (self.not_complete > 0 and done <= self.runs // 2, self.not_complete > 0 and done == 0, done < self.runs)


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """Model of a capture's path.

    Parameters
    ----------
    scenario
        Scenario of the model.
    quantities
        Compared quantities, the transfer time first.
    error
        Relative error in transfer time; at least that if `not_complete`.
    bound
        Whether the path was never full: its rate may be higher than the model's, and its queue's length is unknown.
    mirror
        Whether it is the mirror: it loses the segments lost in the capture, and its application writes at the captured
        times.
    """

    scenario: Scenario = field(repr=False)
    quantities: tuple[Quantity, ...]
    error: float
    bound: bool = False
    mirror: bool = False

    @property
    def holds(self) -> bool:
        """Whether the model can be used for what-if."""
        return not self.wrong

    @property
    def wrong(self) -> str:
        """Why the model cannot be used for what-if; empty if it can."""
        rtt = next((one for one in self.quantities if one.name in MEAN_RTTS), None)
        if (transfer := self.quantities[0]).not_complete:
            runs = f"in {transfer.not_complete} of {transfer.runs} runs; allowed: in none"
            return f"not complete after {seconds(transfer.most)} {runs}"
        if self.error > BASIS:
            return f"{self.error * 100:.0f} % off in the time of the transfer; allowed: at most {BASIS * 100:.0f} %"
        if rtt is not None and abs(rtt.error or 0.0) > QUEUE_BASIS:
            return (
                f"{abs(rtt.error or 0.0) * 100:.0f} % off in the {rtt.name}; allowed: at most {QUEUE_BASIS * 100:.0f} %"
            )
        return ""

    def summary(self) -> dict[str, Any]:
        """Return the fit as plain values for JSON."""
        from dataclasses import asdict

        return {
            "error": None if self.quantities[0].not_complete else self.error,
            "holds": self.holds,
            "rate_is_a_bound": self.bound,
            "quantities": [asdict(one) for one in self.quantities],
        }


def model(found: Diagnosis, *, controller: str = "cubic", own_pace: float = OWN_PACE) -> Scenario:
    """Return the scenario built from a diagnosis.

    Parameters
    ----------
    found
        Diagnosis with conclusions.
    controller
        The sender's controller, which a capture does not show.
    own_pace
        Maximum accepted fraction of the time with nothing to send.

    Raises
    ------
    InputError
        If no model can be built: the diagnosis has no conclusions or no rate, or the application sets the pace.
    """
    if found.refused or found.path is None or found.replay is None:
        raise InputError(f"found a capture without conclusions ({found.refused}); allowed: one with some")
    path, row, spent = found.path, found.connection, found.replay.seconds
    life = sum(spent.values())
    own = (spent["application"] + spent["idle"]) / life if life else 1.0
    if own > own_pace:
        raise InputError(
            f"found a transfer whose application had nothing to send for {share(own)} of the time; "
            f"allowed: at most {own_pace * 100:.0f} %, a model of the path says nothing of an application"
        )
    if path.wire_bps is None or path.base_rtt_s is None or row["bytes"] > MOST_BYTES:
        raise InputError(
            f"found {row['bytes']:,} bytes and no rate; allowed: a transfer with round trips, of at most {MOST_BYTES:,} bytes"
        )
    held = life - spent["idle"]
    limited = row["most_window"] and spent["rwnd"] > LEAST_RWND * held
    known = Known(
        path=path,
        mss=found.mss,
        bytes=row["bytes"],
        segments=row["segments"],
        spurious=row["spurious"],
        life_s=life,
        first_flight=max(1, min(round(row["first_flight"] / found.mss), 1000)),
        timestamps=bool(row["timestamps"]),
        sack=bool(row["sack"]),
        window=int(row["most_window"]) if limited else None,
    )
    return built(known, name="path of a capture", controller=controller)


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """Facts about a transfer from which a model is built, known from a capture or from logs.

    Parameters
    ----------
    path
        Estimates of the path; its rate and its base RTT are not None.
    mss
        Payload of a full segment, bytes.
    bytes, segments
        Size of the transfer, over all its flows.
    spurious
        Segments that were sent again for nothing: no losses of the path.
    life_s
        Duration, s.
    first_flight
        Initial window, segments.
    timestamps, sack
        Options of its segments.
    window
        Receive window that limited each flow, bytes; None if none did.
    flows
        Number of parallel flows.
    """

    path: Way
    mss: int
    bytes: int
    segments: int
    life_s: float
    first_flight: int
    timestamps: bool = True
    sack: bool = True
    window: int | None = None
    flows: int = 1
    spurious: int = 0


def built(known: Known, *, name: str, controller: str) -> Scenario:
    """Return the scenario of known facts: one bottleneck, and the same transfer over it."""
    from ackclock.scenario import Scenario

    path = known.path
    assert path.wire_bps is not None
    assert path.base_rtt_s is not None
    size = known.mss * path.wire_bps / path.rate_bps if path.rate_bps else known.mss + ACK_BYTES
    rate = _whole_rate(path.wire_bps)
    delay_ns = max(int((path.base_rtt_s - 8 * (size + ACK_BYTES) / rate) / 2 * 1e9), 1000)
    link: dict[str, Any] = {"rate": f"{rate} bit/s", "delay": f"{delay_ns} ns", "queue": _queue(path, rate, size)}
    random = path.sent_again_empty + path.sent_again_part_full - known.spurious
    if random > 0:
        link["loss"] = {"kind": "bernoulli", "p": min(random / max(known.segments, 1), 0.5)}
    stack: dict[str, Any] = {"initial_window": known.first_flight}
    if not known.timestamps:
        stack["timestamps"] = False
    if not known.sack:
        stack["sack"] = False
    if known.window is not None:
        stack["receive_buffer"] = f"{known.window} B"
    flow: dict[str, Any] = {
        "congestion_control": controller,
        "workload": {"kind": "transfer", "bytes": f"{known.bytes // known.flows} B"},
        "stack": stack,
    }
    if known.flows > 1:
        flow["count"] = known.flows
    return Scenario.from_dict(
        {
            "name": name,
            "duration": f"{int(max(4 * known.life_s, known.life_s + 5) * 1e3) + 1} ms",
            "network": {"bottleneck": link},
            "flows": [flow],
        }
    )


def _whole_rate(bps: float) -> int:
    """Round a rate to four digits, because the estimate is no more precise."""
    step = int(10 ** max(len(str(int(bps))) - 4, 0))
    return max(round(bps / step) * step, 1000)


def _queue(path: Way, rate: int, size: float) -> dict[str, Any]:
    """Return the model's queue: as long as indicated by losses, otherwise twice the longest observed wait."""
    assert path.base_rtt_s is not None
    assert path.queued_rtt_s is not None
    waits = path.queue_s if path.queue_s is not None else 2 * (path.queued_rtt_s - path.base_rtt_s)
    return {"kind": "drop-tail", "limit": f"{max(round(waits * rate / 8 / size), 10)} packets"}


def fit(found: Diagnosis, *, controller: str = "cubic", seeds: int = SEEDS, mirror: bool = False) -> Fit:
    """Build the model of a diagnosis, run it, and compare.

    Parameters
    ----------
    found
        Diagnosis with conclusions.
    controller
        Sender's controller.
    seeds
        Runs of the model; it has random losses.
    mirror
        Use the mirror, `mirrored`, instead of `model`.

    Raises
    ------
    InputError
        If there is no model.
    """
    from ackclock.diagnose._mirror import mirrored, with_window

    scenario = (mirrored if mirror else model)(found, controller=controller)
    if not mirror:
        scenario = with_window(scenario, found.connection["most_window"])
    runs = [_measured(scenario, seed) for seed in range(1, seeds + 1)]
    assert found.path is not None
    return compared(scenario, _measures(found), runs, bound=not found.path.identified, mirror=mirror)


Measures = dict[tuple[str, str], float]
"""(Name, unit) of each quantity -> its value; the transfer time comes first."""

Modelled = tuple[Measures, bool]
"""Quantities of a run of the model, and whether its transfer was complete at the end; else its time is the length of the
run, a lower bound.
"""


def compared(scenario: Scenario, own: Measures, runs: Sequence[Modelled], *, bound: bool, mirror: bool = False) -> Fit:
    """Compare a model with the measurements.

    Parameters
    ----------
    scenario
        The model.
    own
        Measured quantities.
    runs
        The same of each run of the model, and whether its transfer was complete.
    bound, mirror
        As in `Fit`.
    """
    made = [
        _quantity(name, unit, own[name, unit], [run.get((name, unit), 0.0) for run, _ in runs]) for name, unit in own
    ]
    error = made[0].error
    transfer = replace(made[0], not_complete=sum(not complete for _, complete in runs), runs=len(runs))
    if transfer.bounds[0]:
        transfer = replace(transfer, error=None)
    return Fit(
        scenario=scenario,
        quantities=(transfer, *made[1:]),
        error=float("inf") if error is None else abs(error),
        bound=bound,
        mirror=mirror,
    )


def fit_mirror(found: Diagnosis, *, controller: str = "cubic") -> Fit | None:
    """Return the mirror for what-if; None if there is none, or if losses were caused by a full queue, because a
    different sender might have avoided them.

    Parameters
    ----------
    found
        Diagnosis with conclusions.
    controller
        Sender's controller.
    """
    path = found.path
    if path is None or (path.sent_again_full and not path.queue_bound):
        return None
    try:
        return fit(found, controller=controller, seeds=1, mirror=True)
    except InputError:
        return None


def _measured(scenario: Scenario, seed: int) -> Modelled:
    import ackclock
    from ackclock.diagnose import diagnose

    with tempfile.TemporaryDirectory(prefix="ackclock-") as folder:
        file = Path(folder) / "model.pcapng"
        flow = ackclock.run(scenario, seed=seed, pcap=file, pcap_at="sender", snaplen=96).rows("flows")[0]
        made = _measures(diagnose(file))
    if flow["completion_s"] is not None:
        return made, True
    whole = flow["stop_s"] - flow["start_s"]  # the capture ends with the last packet, perhaps long before
    return {**made, ("transfer", "s"): whole, ("goodput", "bit/s"): 8 * flow["bytes_acked"] / whole}, False


def _measures(found: Diagnosis) -> Measures:
    assert found.replay is not None
    assert found.path is not None
    held = {name: value for name, value in found.replay.seconds.items() if name != "idle"}
    whole = sum(held.values())
    row = found.connection
    made = {
        ("transfer", "s"): whole,
        ("goodput", "bit/s"): 8 * row["bytes"] / whole if whole else 0.0,
        ("mean RTT", "s"): row["rtt_mean_s"] or 0.0,
        ("greatest RTT", "s"): row["rtt_max_s"] or 0.0,
        ("segments lost", ""): float(row["lost"]),
        ("timeouts", ""): float(found.replay.timeouts),
    }
    causes = {(name, "share"): value / whole if whole else 0.0 for name, value in held.items()}
    return {**made, **causes}


def _quantity(name: str, unit: str, capture: float, values: Sequence[float]) -> Quantity:
    middle = float(median(values))
    if unit == "share":
        error: float | None = middle - capture
    else:
        error = (middle - capture) / capture if capture else None
    return Quantity(
        name=name, unit=unit, capture=capture, model=middle, least=min(values), most=max(values), error=error
    )
