"""Congestion collapse: a sender's behaviour when most or all of its packets are lost. Rows 1 and 7."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ackclock.evaluate import measure
from ackclock.evaluate.frame import PAYLOAD, about, cell, dumbbell, flows
from ackclock.evaluate.situation import Cell, Measure, Row, Tables

RATE, RTT = 10, 40
"""Rate (Mbit/s) and RTT (ms) of the path."""

RESUMES_S = 30
"""Time for which a sender is observed after the total loss, s."""


def _heavy() -> Iterator[Cell]:
    """Yield cells with 20 s without loss, 30 s at each loss rate, 30 s of total loss, and finally `RESUMES_S`
    without loss.
    """
    for name, losses, count, scale in (
        ("half-1", (0.1, 0.5), 1, "quick"),
        ("steps-1", (0.01, 0.1, 0.3, 0.5), 1, "standard"),
        ("steps-8", (0.01, 0.1, 0.3, 0.5), 8, "standard"),
    ):
        at = [20 + 30 * i for i in range(len(losses) + 2)]
        steps = [{"at": f"{t} s", "loss": p} for t, p in zip(at, (*losses, 1.0, 0.0), strict=True)]
        scenario = dumbbell(
            [flows("candidate", rtt_ms=RTT, count=count)],
            mbit=RATE,
            rtt_ms=RTT,
            bdp=1,
            forward={"capacity": {"kind": "schedule", "steps": steps}},
            seconds=at[-1] + RESUMES_S,
            record={"trace": "flow", "goodput_interval": "100 ms"},
        )
        what = f"{count} flow{'s' if count > 1 else ''}, loss of {', '.join(f'{p * 100:g}' for p in losses)} and 100 %"
        times = {
            "tenth_s": float(at[losses.index(0.1)]),
            "half_s": float(at[-3]),
            "dead_s": float(at[-2]),
            "end_s": float(at[-1]),
        }
        yield cell(name, scenario, about(RATE, RTT, 1, what, **times), scale=scale)  # type: ignore[arg-type]


def _at(of: str) -> measure.Of:
    """Return a measure over the phases of the cell."""

    def call(t: Tables, c: Cell) -> dict[int, float]:
        tenth, half, dead, end = c.about["tenth_s"], c.about["half_s"], c.about["dead_s"], c.about["end_s"]
        made = {
            "tenth": measure.sent_between(tenth + 5, tenth + 30, per_s=c.about["rtt_s"]),
            "half": measure.sent_between(half + 5, dead, per_s=c.about["rtt_s"]),
            "dead": measure.sent_between(end - DEAD_S, end),
            "growth": measure.backoff(dead, end),
            "resumes": measure.settling(end, bps=RATE * 1e6 * PAYLOAD, until_s=end + RESUMES_S, flow=None),
        }[of]
        return made(t, c)

    return call


def _silent() -> Iterator[Cell]:
    """Yield cells with a return path that fails for a while after 10 s: it loses all packets, or delivers
    them only afterwards.
    """
    for name, seconds, step, back, scale, what in (
        ("lost-5s", 5, {"loss": 1.0}, {"loss": 0.0}, "quick", "ACKs lost for 5 s"),
        ("lost-30s", 30, {"loss": 1.0}, {"loss": 0.0}, "standard", "ACKs lost for 30 s"),
        ("held-30s", 30, {"rate": "0 bit/s"}, {"rate": f"{RATE} Mbit/s"}, "standard", "ACKs held for 30 s"),
    ):
        steps = [{"at": "10 s", **step}, {"at": f"{10 + seconds} s", **back}]
        scenario = dumbbell(
            [flows("candidate", rtt_ms=RTT)],
            mbit=RATE,
            rtt_ms=RTT,
            bdp=1,
            backward={"capacity": {"kind": "schedule", "steps": steps}},
            seconds=10 + seconds + 20,
            warm_up=5,
            record={"trace": "flow"},
        )
        yield cell(name, scenario, about(RATE, RTT, 1, what, end_s=10.0 + seconds), scale=scale)  # type: ignore[arg-type]


def equation(loss: float) -> float:
    """Return packets per round trip at a loss rate: RFC 5348 section 3.1, with b = 1 and t_RTO = 4 R."""
    return 1 / (math.sqrt(2 * loss / 3) + 12 * math.sqrt(3 * loss / 8) * loss * (1 + 32 * loss**2))


TOO_MUCH = 10.0
"""Multiple of the equation's rate at which RFC 8083 (section 4.3) stops a sender: an order of magnitude more than TCP sends.
"""


def most(loss: float) -> float:
    """Return the maximum number of packets per RTT that a sender may send at the given loss rate, whatever CUBIC would send.

    The bound is `TOO_MUCH` times the equation's rate, but at least one packet per round trip, which RFC 8085 (section
    3.1.3) allows any sender. The bound follows from these texts, not from the behaviour of our controllers.
    """
    return max(TOO_MUCH * equation(loss), 1.0)


DEAD_S = 29.0
"""Time during the total loss in which packets are counted, s."""

MOST_WHILE_DEAD = TOO_MUCH * equation(1.0) * DEAD_S / (RTT / 1e3)
"""Maximum number of packets in that time. RFC 9743 requires full backoff, so one per round trip is too many."""

BACKS_OFF = (
    Measure(
        name="sent at 10 % loss", unit="packets/RTT", of=_at("tenth"), better="less", margin=2.0, ratio=True, least=1.0,
        duty=most(0.1),
    ),
    Measure(
        name="sent at 50 % loss", unit="packets/RTT", of=_at("half"), better="less", margin=2.0, ratio=True, least=1.0,
        duty=most(0.5),
    ),
    Measure(
        name="sent while all is lost", unit="packets", of=_at("dead"), better="less", margin=0.2, relative=True, least=2.0,
        duty=MOST_WHILE_DEAD,
    ),
)  # fmt: skip
"""Measures under heavy loss. A sender that maintains its rate while a tenth or half of its packets are lost can
cause congestion collapse.
"""

ROWS = (
    Row(
        id="x4",
        section="",
        level="MUST",
        title="Reacts to loss",
        quote="not in the RFC: BCP 133 and 233 (RFC 8961, section 4; RFC 8085, section 3.1) oblige every sender to slow down when packets are lost",
        cells=tuple(c for c in _heavy() if c.scale == "quick"),
        measures=BACKS_OFF,
        note=(
            "A duty of every sender, whatever CUBIC does. The runs are those of situation 1. The bound is ten times the rate of RFC 5348's "
            "equation, the factor of RFC 8083's circuit breaker, and at least one packet in a round trip."
        ),
    ),
    Row(
        id="1",
        section="5.1.1",
        level="should",
        title="Congestion collapse",
        quote="either stop sending when the packet drop rate exceeds some threshold … or … “full backoff”",
        cells=tuple(_heavy()),
        measures=(
            *BACKS_OFF,
            Measure(name="least growth between timeouts", unit="times", of=_at("growth"), better="more", margin=0.3),
            Measure(name="until 90 % afterwards", unit="s", of=_at("resumes"), better="less", margin=5.0, most=lambda _: RESUMES_S),
        ),
        note="Packets are counted from 1 s after the loss became total; before, tail loss probes and the first timeout are due.",
    ),
    Row(
        id="7",
        section="5.2",
        level="MUST",
        title="Loss of all feedback",
        quote="assurance that a loss of all feedback … results in backoff",
        cells=tuple(_silent()),
        measures=(
            Measure(
                name="sent without feedback", unit="packets", of=lambda t, c: measure.sent_between(11, c.about["end_s"])(t, c),
                better="less", margin=0.2, relative=True, least=2.0,
            ),
            Measure(
                name="least growth between timeouts", unit="times", of=lambda t, c: measure.backoff(10, c.about["end_s"])(t, c),
                better="more", margin=0.3,
            ),
        ),
    ),
)  # fmt: skip
