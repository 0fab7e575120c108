"""Unusual paths: radio loss, changes, small and large pipes, reordering. Rows 14, 17 to 19, 21 to 23, x3."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

from ackclock.evaluate import measure
from ackclock.evaluate.frame import PAYLOAD, about, cell, dumbbell, flows, path_id
from ackclock.evaluate.rows.queues import LOSS, P95, UTILISATION
from ackclock.evaluate.situation import Cell, Measure, Row, Scale, Tables


def _lossy() -> Iterator[Cell]:
    for mbit, rtt_ms in ((10, 40), (100, 40), (10, 100)):
        for p in (0.0001, 0.001, 0.01, 0.04):
            quick = (mbit, rtt_ms, p) == (10, 40, 0.01)
            made = dumbbell(
                [flows("candidate", rtt_ms=rtt_ms)], mbit=mbit, rtt_ms=rtt_ms, bdp=1,
                forward={"loss": {"kind": "bernoulli", "p": p}},
            )  # fmt: skip
            scale: Scale = "quick" if quick else "standard" if mbit == 10 else "full"
            yield cell(
                f"{path_id(mbit, rtt_ms)}-{p * 100:g}pc",
                made,
                about(mbit, rtt_ms, 1, f"{p * 100:g} % loss", loss=p),
                scale=scale,
            )
    bursts = {"loss": {"kind": "gilbert-elliott", "p": 0.005, "r": 0.2}}
    made = dumbbell([flows("candidate", rtt_ms=40)], mbit=10, rtt_ms=40, bdp=1, forward=bursts)
    yield cell(f"{path_id(10, 40)}-bursts", made, about(10, 40, 1, "bursts of loss"))


def _wifi() -> Iterator[Cell]:
    """Yield cells on a 20 Mbit/s, 10 ms Wi-Fi link with jitter in both directions."""
    for mean in (1, 7, 12):
        jitter = {"wifi": {"mean": f"{mean} ms"}}
        made = dumbbell(
            [flows("candidate", rtt_ms=10)], mbit=20, rtt_ms=10, packets=100, forward=jitter, backward=jitter, warm_up=10, seconds=70
        )  # fmt: skip
        labels = about(20, 10, what=f"Wi-Fi jitter of {mean} ms, 100 packets")
        yield cell(f"wifi-{mean}ms", made, labels, scale="quick" if mean == 7 else "standard")


def _cellular() -> Iterator[Cell]:
    """Yield cells with a rate that is a random walk, as on a cellular link: every 200 ms its logarithm moves a little
    and is pulled back towards that of the mean rate. The walk has its own seed and is the same in every run; no
    operator's trace is used. Both deviations are our choice, roughly those of a pedestrian and a car.
    """
    for name, said, move, fades in (("walking", "on foot", 0.10, 0.002), ("driving", "in a car", 0.30, 0.02)):
        numbers = random.Random(f"cellular {name}")
        level, at = 0.0, 0
        steps: list[dict[str, str]] = []
        carried = 0.0
        while at < CELLULAR_S * 5:
            level = 0.97 * level + move * numbers.gauss(0.0, 1.0)
            faded = numbers.random() < fades
            rate = 0 if faded else round(min(60e6, 8e6 * math.exp(level)), -3)
            steps.append({"at": f"{200 * at} ms", "rate": f"{rate:.0f} bit/s"})
            length = min(3 if faded else 1, CELLULAR_S * 5 - at)  # a fade lasts 600 ms
            carried += rate * length
            at += length
        capacity = {"capacity": {"kind": "schedule", "steps": steps, "repeat": f"{CELLULAR_S} s"}}
        made = dumbbell(
            [flows("candidate", rtt_ms=50)], mbit=8, rtt_ms=50, packets=200, forward=capacity, backward={}, seconds=2 * CELLULAR_S
        )  # fmt: skip
        mean = carried / (CELLULAR_S * 5) / 1e6
        labels = about(mean, 50, what=f"a cell {said}, {mean:.1f} Mbit/s on average, 200 packets")
        yield cell(f"cellular-{name}", made, labels)


CELLULAR_S = 60
"""Period of the random walk, s."""

Steps = Mapping[float, Mapping[str, float]]
"""Time in seconds -> changed values: mbit, rtt_ms, loss."""


def _changing(steps: Steps, *, mbit: float, rtt_ms: float, bdp: float, seconds: float, **more: Any) -> dict[str, Any]:
    """Return a bottleneck that changes over time. A step's delay is a round-trip time in ms, half in each direction."""
    forth, back = [], []
    for at, change in steps.items():
        there: dict[str, Any] = {"at": f"{at:g} s"}
        here: dict[str, Any] = {"at": f"{at:g} s"}
        if "mbit" in change:
            there["rate"] = here["rate"] = f"{change['mbit']:g} Mbit/s"
        if "rtt_ms" in change:
            there["delay"] = here["delay"] = f"{change['rtt_ms'] / 2:g} ms"
        if "loss" in change:
            there["loss"] = here["loss"] = change["loss"]
        forth.append(there)
        back.append(here)
    groups = more.pop("groups", None) or [flows("candidate", rtt_ms=rtt_ms)]
    return dumbbell(
        groups, mbit=mbit, rtt_ms=rtt_ms, bdp=bdp, seconds=seconds,
        forward={"capacity": {"kind": "schedule", "steps": forth}},
        backward={"capacity": {"kind": "schedule", "steps": back}},
        record={"goodput_interval": "100 ms"}, **more,
    )  # fmt: skip


def _delay_changes() -> Iterator[Cell]:
    made = _changing({20: {"rtt_ms": 100}, 60: {"rtt_ms": 30}}, mbit=20, rtt_ms=30, bdp=1, seconds=100)
    yield cell(
        "30-100-30ms", made, about(20, 30, 1, "RTT of 30, 100 and 30 ms", at_s=20.0, again_s=60.0), scale="quick"
    )
    steps = {15.0 * i: {"rtt_ms": rtt} for i, rtt in enumerate((55, 28, 44, 22, 60, 35, 50), start=1)}
    made = _changing(steps, mbit=20, rtt_ms=40, bdp=1, seconds=120)
    yield cell("every-15s", made, about(20, 40, 1, "another RTT every 15 s", at_s=15.0, again_s=60.0))


def _satellites() -> Iterator[Cell]:
    """Yield cells on low-orbit satellite links: a new rate and delay every 15 s, with a gap of up to 100 ms (our
    values, close to published measurements).
    """
    capacity = {
        "kind": "random", "every": "15 s",
        "rate": {"kind": "uniform", "low": "50 Mbit/s", "high": "150 Mbit/s"},
        "delay": {"kind": "uniform", "low": "10 ms", "high": "30 ms"},
    }  # fmt: skip
    gap = {"at": "15 s", "every": "15 s", "lasts": {"kind": "uniform", "low": "1 ms", "high": "100 ms"}}
    for bdp in (0.5, 2):
        made = dumbbell(
            [flows("candidate", rtt_ms=40)], mbit=100, rtt_ms=40, bdp=bdp, seconds=120,
            forward={"capacity": capacity, "outage": gap}, backward={},
        )  # fmt: skip
        yield cell(f"satellites-{bdp:g}bdp", made, about(100, 40, bdp, "low orbit: 50 to 150 Mbit/s, 20 to 60 ms"))


def _looked_at(c: Cell, at: str) -> float:
    """Return for how many seconds a change is observed."""
    return float(c.about.get("until_s", c.about[at] + 30) - c.about[at])


def _settles(at: str, bps: str) -> measure.Of:
    def of(t: Tables, c: Cell) -> dict[int, float]:
        if at not in c.about:
            return {}
        end = c.about[at] + _looked_at(c, at)
        rate = c.about.get(bps, c.about["rate_bps"]) * PAYLOAD
        return measure.settling(c.about[at], bps=rate, until_s=end, flow=c.about.get("flow", 0))(t, c)

    return of


def _settling(name: str, at: str, bps: str = "rate_bps") -> Measure:
    return Measure(
        name=name, unit="s", of=_settles(at, bps), better="less", margin=0.25, relative=True, least=1.0,
        most=lambda c: _looked_at(c, at) if at in c.about else float("inf"),
    )  # fmt: skip


def _small() -> Iterator[Cell]:
    for mbit, rtt_ms in ((0.064, 200), (0.064, 2000), (1, 10)):
        for packets in (4, 20):
            for count in (1, 4):
                groups = [flows("candidate", rtt_ms=rtt_ms, count=count)]
                made = dumbbell(groups, mbit=mbit, rtt_ms=rtt_ms, packets=packets, seconds=200, warm_up=20)
                said = about(mbit, rtt_ms, what=f"{packets} packets, {count} flow{'s' if count > 1 else ''}")
                quick = (mbit, rtt_ms, packets, count) == (0.064, 200, 20, 1)
                yield cell(
                    f"{path_id(mbit, rtt_ms)}-{packets}p-{count}", made, said, scale="quick" if quick else "standard"
                )


def _long() -> Iterator[Cell]:
    for mbit in (50, 250):
        for bdp in (0.25, 1):
            for megabytes in (1, 10, 100):
                group = {
                    **flows("candidate", rtt_ms=600),
                    "workload": {"kind": "transfer", "bytes": f"{megabytes}000000 bytes"},
                }
                seconds = 40 if megabytes < 100 else 120
                made = dumbbell([group], mbit=mbit, rtt_ms=600, bdp=bdp, seconds=seconds, warm_up=0)
                said = about(mbit, 600, bdp, f"{megabytes} MB", seconds=seconds)
                quick = (mbit, bdp, megabytes) == (50, 1, 10)
                scale: Scale = "quick" if quick else "full" if megabytes == 100 else "standard"
                yield cell(f"{path_id(mbit, 600, bdp)}-{megabytes}MB", made, said, scale=scale)


def _reordering() -> Iterator[Cell]:
    for mbit in (10, 100):
        for p in (0.01, 0.05, 0.3):
            for late, said in ((5, "an eighth"), (20, "half"), (80, "two")):
                late_link = {"reorder": {"probability": p, "extra_delay": f"{late} ms"}}
                made = dumbbell([flows("candidate", rtt_ms=40)], mbit=mbit, rtt_ms=40, bdp=1, forward=late_link)
                quick = (mbit, p, late) == (10, 0.05, 20)
                scale: Scale = "quick" if quick else "standard" if mbit == 10 else "full"
                words = f"{p * 100:g} % late by {said} RTT"
                yield cell(f"{path_id(mbit, 40)}-{p * 100:g}pc-{late}ms", made, about(mbit, 40, 1, words), scale=scale)


def _transients() -> Iterator[Cell]:
    sudden = [
        flows("candidate", rtt_ms=40),
        {"name": "crowd", "count": 10, "congestion_control": "cubic", "workload": {"kind": "bulk"}, "start": "30 s", "stop": "40 s",
         "stagger": "20 ms"},
    ]  # fmt: skip
    made = dumbbell(sudden, mbit=100, rtt_ms=40, bdp=1, seconds=80, record={"goodput_interval": "100 ms"})
    yield cell(
        "crowd", made, about(100, 40, 1, "10 CUBIC flows from 30 to 40 s", victim="cubic", at_s=40.0, until_s=80.0)
    )
    made = _changing({20: {"loss": 1.0}, 22: {"loss": 0.0}}, mbit=100, rtt_ms=40, bdp=1, seconds=60)
    yield cell(
        "blackout-drop", made, about(100, 40, 1, "2 s black-out, all lost", at_s=22.0, until_s=60.0), scale="quick"
    )
    made = _changing({20: {"mbit": 0}, 22: {"mbit": 100}}, mbit=100, rtt_ms=40, bdp=1, seconds=60)
    yield cell("blackout-hold", made, about(100, 40, 1, "2 s black-out, all held", at_s=22.0, until_s=60.0))
    made = _changing({20: {"mbit": 10}}, mbit=5, rtt_ms=40, bdp=2, seconds=60)
    yield cell("5-10M", made, about(5, 40, 2, "5, then 10 Mbit/s", at_s=20.0, until_s=60.0, later_bps=10e6))
    pulse = {float(t): {"mbit": 5 if t % 4 == 2 else 10} for t in range(10, 60, 2)}
    made = _changing(pulse, mbit=10, rtt_ms=40, bdp=1, seconds=60)
    yield cell("pulse", made, about(10, 40, 1, "10 and 5 Mbit/s in turn, 2 s each"))


def _path_changes() -> Iterator[Cell]:
    cases: tuple[tuple[str, Steps, float, float, str, float], ...] = (
        ("rate-down", {20: {"mbit": 10}}, 100, 40, "100, then 10 Mbit/s", 10e6),
        ("rate-up", {20: {"mbit": 100}}, 10, 40, "10, then 100 Mbit/s", 100e6),
        ("rtt-up", {20: {"rtt_ms": 120}}, 20, 40, "RTT of 40, then 120 ms", 20e6),
        ("rtt-down", {20: {"rtt_ms": 40}}, 20, 120, "RTT of 120, then 40 ms", 20e6),
        ("both", {20: {"mbit": 10, "rtt_ms": 120}}, 100, 40, "100 Mbit/s and 40 ms, then 10 and 120", 10e6),
    )
    for name, steps, mbit, rtt, said, later in cases:
        made = _changing(steps, mbit=mbit, rtt_ms=rtt, bdp=1, seconds=60)
        labels = about(mbit, rtt, 1, said, at_s=20.0, until_s=60.0, later_bps=later)
        yield cell(name, made, labels, scale="quick" if name == "rate-down" else "standard")
    for every in (5, 30):
        far = {"mbit": 10, "rtt_ms": 90}
        near = {"mbit": 50, "rtt_ms": 30}
        flapping = {float(t): far if (t // every) % 2 else near for t in range(every, 120, every)}
        made = _changing(flapping, mbit=50, rtt_ms=30, bdp=1, seconds=120)
        yield cell(f"flap-{every}s", made, about(50, 30, 1, f"50 Mbit/s, 30 ms and 10, 90 in turn, {every} s each"))


def _hand_overs() -> Iterator[Cell]:
    """Yield cells with handovers: every 5 s the link is down for up to half a second, and arriving packets wait or are
    lost.
    """
    for arrivals in ("wait", "lost"):
        lasts = {"kind": "uniform", "low": "50 ms", "high": "500 ms"}
        gap = {"at": "5 s", "every": "5 s", "lasts": lasts, "arrivals": arrivals}
        made = dumbbell(
            [flows("candidate", rtt_ms=40)], mbit=20, rtt_ms=40, bdp=1, forward={"outage": gap}, backward={}
        )
        said = "what comes in is lost" if arrivals == "lost" else "what comes in waits"
        yield cell(f"hand-over-{arrivals}", made, about(20, 40, 1, f"out for 50 to 500 ms every 5 s, {said}"))


def _asymmetric() -> Iterator[Cell]:
    for bdp in (0.25, 1, 4):
        back = {"rate": "2 Mbit/s", "queue": {"kind": "drop-tail", "limit": "50 packets"}}
        made = dumbbell([flows("candidate", rtt_ms=40)], mbit=100, rtt_ms=40, bdp=bdp, backward=back)
        yield cell(path_id(100, 40, bdp), made, about(100, 40, bdp, "2 Mbit/s back"))
    for most, kbit in ((8, 500), (32, 200)):
        thin: dict[str, Any] = {
            "rate": f"{kbit} kbit/s",
            "queue": {"kind": "drop-tail", "limit": "50 packets"},
            "thin_acks": most,
        }
        made = dumbbell([flows("candidate", rtt_ms=40)], mbit=100, rtt_ms=40, bdp=1, backward=thin)
        said = f"{kbit} kbit/s back, one ACK of {most} that wait"
        yield cell(f"{path_id(100, 40)}-thinned-{most}", made, about(100, 40, 1, said))
    for mbit in (10, 100):
        for timeout in (5, 20):
            made = dumbbell(
                [flows("candidate", rtt_ms=40)], mbit=mbit, rtt_ms=40, bdp=1, backward={"aggregate": f"{timeout} ms"}
            )
            labels = about(mbit, 40, 1, f"ACKs in bundles of {timeout} ms")
            quick = (mbit, timeout) == (10, 20)
            yield cell(f"{path_id(mbit, 40)}-bundles-{timeout}ms", made, labels, scale="quick" if quick else "standard")


GOODPUT = Measure(name="goodput", of=measure.utilisation("candidate"), better="more", margin=0.05)

ROWS = (
    Row(
        id="14", section="6.4", level="should", title="Wireless paths",
        quote="should be evaluated in situations where some packet losses are due to radio effects …",
        cells=(*_lossy(), *_wifi(), *_cellular()), measures=(UTILISATION, P95), needs=("cells of a real operator",),
        note="The rates of a cell are made from a seed; over them both arms have the same.",
    ),
    Row(
        id="17", section="7.3", level="SHOULD", title="Varying delay",
        quote="robust when there is a significant change in the minimum delay",
        cells=(*_delay_changes(), *_satellites()),
        measures=(UTILISATION, _settling("until 90 % after the RTT grew", "at_s"), _settling("until 90 % after it fell", "again_s"), LOSS),
    ),
    Row(
        id="18", section="7.4", level="", title="Constrained paths",
        quote="volume of control packets … a key evaluation metric",
        cells=tuple(_small()),
        measures=(
            GOODPUT,
            Measure(name="retransmitted", of=measure.column("retransmission_share", "candidate"), better="less", margin=0.05),
            Measure(name="timeouts", unit="", of=measure.column("rtos", "candidate"), better="less", margin=0.25, relative=True, least=2.0),
        ),
    ),
    Row(
        id="19", section="7.5", level="ought", title="Long delays",
        quote="ought not to presume that all general Internet paths have a low delay",
        cells=tuple(_long()),
        measures=(
            Measure(
                name="completion", unit="s", of=measure.finished(), better="less", margin=0.10, relative=True, least=0.1,
                most=lambda c: float(c.about["seconds"]),
            ),
            LOSS,
        ),
    ),
    Row(
        id="21", section="7.7", level="ought", title="Reordering",
        quote="ought not to presume that all general Internet paths reliably deliver packets in order",
        cells=tuple(_reordering()),
        measures=(
            UTILISATION,
            Measure(
                name="duplicates that arrived", unit="", of=measure.of_flows("dsacks"), better="less",
                margin=0.25, relative=True, least=20.0,
            ),
        ),
    ),
    Row(
        id="22", section="7.8", level="SHOULD", title="Transient events",
        quote="transient events such as sudden onset of congestion, a routing change, or a mobility event",
        cells=tuple(_transients()),
        measures=(_settling("until 90 % afterwards", "at_s", "later_bps"), LOSS),
    ),
    Row(
        id="23", section="7.9", level="MUST", title="Changes of the path",
        quote="MUST evaluate the impact of changes in the path, and be robust",
        cells=(*_path_changes(), *_hand_overs()),
        measures=(_settling("until 90 % afterwards", "at_s", "later_bps"), GOODPUT, LOSS),
    ),
    Row(
        id="x3", section="", level="", title="Asymmetric paths",
        quote="not in the RFC: a slow way back, or ACKs that come in bundles",
        cells=tuple(_asymmetric()), measures=(UTILISATION, P95, LOSS),
    ),
)  # fmt: skip
