"""Data centres: short paths, queues that mark at a threshold, and simultaneous responses. Row 25, only if requested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ackclock.evaluate import measure
from ackclock.evaluate.frame import about, cell, dumbbell
from ackclock.evaluate.situation import PLACE, Cell, Measure, Row, Tables

MBIT, RTT_MS = 10_000, 0.05
WARM_UP_S, SECONDS = 0.2, 1.2
QUEUE: Mapping[str, Any] = {"kind": "threshold", "mark": "66 packets", "limit": "250 packets"}
"""DCTCP's original setting (SIGCOMM 2010): marking above 65 packets at 10 Gbit/s."""

ECN: Mapping[str, Any] = {"ecn": "ask"}
SERVERS, ANSWER, REQUESTS = 32, 64_000, 200
FOLLOWED_S = 0.3
"""Time for which a response is observed, s: longer than a retransmission timeout."""


def _long(name: str, controller: str, count: int) -> dict[str, Any]:
    return {
        "name": name,
        "count": count,
        "congestion_control": controller,
        "workload": {"kind": "bulk"},
        "start": {"kind": "uniform", "low": "0 s", "high": "10 ms"},
        "stack": dict(ECN),
    }


def _incast(controller: str) -> dict[str, Any]:
    """Return a client that sends requests to all servers at once, and again after the last response."""
    return {
        "name": "answers",
        "congestion_control": controller,
        "stack": dict(ECN),
        "workload": {
            "kind": "transactions", "bytes": f"{ANSWER} bytes", "arrivals": {"kind": "at", "times": [f"{WARM_UP_S:g} s"]},
            "batch": SERVERS, "requests": REQUESTS, "together": True, "close": "client",
        },
    }  # fmt: skip


def _cells() -> Iterator[Cell]:
    def one(name: str, groups: list[dict[str, Any]], said: str, *, quick: bool = False, victim: str = "") -> Cell:
        made = dumbbell(
            groups, mbit=MBIT, rtt_ms=RTT_MS, queue=QUEUE, seconds=SECONDS, warm_up=WARM_UP_S, record={"goodput_interval": "10 ms"}
        )  # fmt: skip
        answers = "answers" in made["flows"][-1]["name"]
        labels = about(MBIT, RTT_MS, what=said, victim=victim, answers=answers, seconds=SECONDS)
        # one second contains as many packets as other cells do in total
        return replace(cell(name, made, labels, scale="quick" if quick else "standard"), gigabit=False)

    incast = f"{SERVERS} answers of {ANSWER // 1000} kB at once"
    yield one("incast", [_long("long", PLACE, 2), _incast(PLACE)], f"{incast} beside 2 long flows", quick=True)
    yield one("incast-alone", [_incast(PLACE)], incast)
    for count in (2, 8):
        yield one(f"long-{count}", [_long("long", PLACE, count)], f"{count} long flows")
    for other in ("cubic", "dctcp"):
        groups = [_long("long", PLACE, 1), _long("victim", other, 1)]
        yield one(f"beside-{other}", groups, f"beside {other}", quick=True, victim=other)


def _of_answers(of: measure.Of) -> measure.Of:
    return lambda t, c: of(t, c) if c.about["answers"] else {}


def _times(name: str, quantile: float) -> Measure:
    return Measure(
        name=name, unit="s", better="less", margin=0.10, relative=True, least=0.0001,
        of=_of_answers(measure.completion(quantile, followed_s=FOLLOWED_S)), most=lambda _: FOLLOWED_S,
    )  # fmt: skip


def _others(t: Tables, c: Cell) -> dict[int, float]:
    return measure.utilisation("victim")(t, c) if c.about["victim"] else {}


def _its_own(t: Tables, c: Cell) -> dict[int, float]:
    return {} if c.about["victim"] else measure.utilisation("long")(t, c)


ROWS = (
    Row(
        id="25",
        section="7.11",
        level="SHOULD",
        title="Data centres",
        quote="SHOULD indicate which are expected to safely coexist",
        environment="datacentre",
        applies="the controller is not said to be for data centres: --environment datacentre",
        cells=tuple(_cells()),
        measures=(
            _times("median time of an answer", 0.5),
            _times("p99 time of an answer", 0.99),
            Measure(
                name="answers that did not come", of=_of_answers(measure.unanswered(SERVERS * REQUESTS)), better="less", margin=0.05
            ),
            Measure(
                name="p99 queue delay of all", unit="s", of=measure.queue_delay("p99_delay_s"), better="less", margin=0.10,
                relative=True, least=0.00001,
            ),
            Measure(name="the long flows' goodput", of=_its_own, better="more", margin=0.05),
            Measure(name="the other's goodput", of=_others, better="more", margin=0.05),
        ),
        note=(
            "10 Gbit/s and 50 us, a queue of 250 packets that marks above 65, every flow with ECN: the path for which DCTCP was made. The reference is CUBIC in "
            "the same place, and DCTCP is worth a --rival."
        ),
    ),
)  # fmt: skip
