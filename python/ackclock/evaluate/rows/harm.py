"""Harm done by the candidate to other flows on the path, and vice versa. Rows 6, 8, 9 and 20."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ackclock.evaluate import measure
from ackclock.evaluate.frame import VOICE, about, camera, cell, dumbbell, flows, grid, path_id
from ackclock.evaluate.situation import Cell, Measure, Row, Scale, Tables

VICTIMS = ("reno", "cubic", "bbr3")
"""Victims, as named in RFC 9743: RFC 5681; RFC 9438; "known to be widely deployed"."""

QUICK = ((10, 40, 0.25), (10, 40, 1), (10, 40, 8))


def beside(mbit: float, rtt_ms: float, bdp: float, victim: str, *, own: int = 1, others: int = 1) -> dict[str, object]:
    """Return a scenario with candidate flows and victim flows, and a telephone call if the rate permits one."""
    named: dict[str, Any] = {}
    if victim == LINUX_BBR3:
        victim, named = "bbr3", {"congestion_control_options": {"flavour": "linux-v3"}}
    groups = [
        flows("candidate", rtt_ms=rtt_ms, count=own),
        flows("victim", victim, rtt_ms=rtt_ms, count=others, **named),
    ]
    return dumbbell([*groups, *([VOICE] if mbit >= 1 else [])], mbit=mbit, rtt_ms=rtt_ms, bdp=bdp)


def _one(mbit: float, rtt_ms: float, bdp: float, victim: str, scale: Scale, own: int = 1, others: int = 1) -> Cell:
    more = "" if own == others == 1 else f"-{own}v{others}"
    other = "bbr3 (linux-v3)" if victim == LINUX_BBR3 else victim
    said = about(mbit, rtt_ms, bdp, f"{own} beside {others} {other}", victim=victim, own=own, others=others)
    scenario = beside(mbit, rtt_ms, bdp, victim, own=own, others=others)
    return cell(f"{path_id(mbit, rtt_ms, bdp)}-{victim}{more}", scenario, said, scale=scale, alone=True)


LINUX_BBR3 = "bbr3-linux"
"""BBRv3 as in its authors' kernel; `bbr3` is the draft's."""


def _cells() -> Iterator[Cell]:
    for mbit, rtt_ms, bdp, scale in grid(QUICK):
        for victim in VICTIMS:
            yield _one(mbit, rtt_ms, bdp, victim, scale if victim != "bbr3" or scale != "quick" else "standard")
    for bdp in (0.25, 1, 8):
        yield _one(10, 40, bdp, LINUX_BBR3, "standard")
    for mbit in (10, 100):
        for bdp in (0.25, 1, 8):
            for victim in VICTIMS[:2]:
                for own, others in ((1, 4), (4, 1)):
                    yield _one(mbit, 40, bdp, victim, "standard" if mbit == 10 else "full", own, others)


def _unequal() -> Iterator[Cell]:
    """Yield cells in which one of the two has 10 ms of jitter, or a path sixteen times as long."""
    plain = {"rate": "100 Mbit/s", "jitter": "1 ms"}
    for name, said, links, rtt_ms in (
        ("own-jitter", "its way in has a jitter of 10 ms", [{**plain, "jitter": "10 ms"}, plain], 40),
        ("others-jitter", "the other's way in has a jitter of 10 ms", [plain, {**plain, "jitter": "10 ms"}], 40),
        ("own-bundles", "its packets and ACKs come in bundles of 20 ms", [{**plain, "aggregate": "20 ms"}, plain], 40),
        ("others-bundles", "the other's come in bundles of 20 ms", [plain, {**plain, "aggregate": "20 ms"}], 40),
        ("own-long", "RTTs of 160 and 10 ms", [{**plain, "delay": "75 ms"}, plain], 10),
        ("others-long", "RTTs of 10 and 160 ms", [plain, {**plain, "delay": "75 ms"}], 10),
    ):
        groups = [flows("candidate", rtt_ms=40), flows("victim", "cubic", rtt_ms=40)]
        made = dumbbell(groups, mbit=10, rtt_ms=rtt_ms, packets=33, access=links, warm_up=10, seconds=70)
        yield cell(f"{path_id(10, rtt_ms)}-{name}", made, about(10, rtt_ms, what=said, victim="cubic", own=1, others=1))


def _numbers(c: Cell) -> tuple[range, range]:
    own, others = c.about["own"], c.about["others"]
    return range(own), range(own, own + others)


def _starved(t: Tables, c: Cell) -> dict[int, float]:
    own, others = _numbers(c)
    return measure.starved(others, of=len(own) + len(others))(t, c)


def _starved_itself(t: Tables, c: Cell) -> dict[int, float]:
    own, others = _numbers(c)
    return measure.starved(own, of=len(own) + len(others))(t, c)


def _least(t: Tables, c: Cell) -> dict[int, float]:
    own, others = _numbers(c)
    shares = measure.least_share(others, of=len(own) + len(others))(t, c)
    return {
        seed: min(share, 1.0) for seed, share in shares.items()
    }  # min propagates nan; a flow above its share is not starved


def _real_time() -> Iterator[Cell]:
    media = {"name": "media", "workload": {"kind": "constant-rate", "rate": "2.5 Mbit/s"}}
    for mbit, rtt_ms, packets, said in ((3, 100, 75, "queue of 300 ms"), (10, 40, 33, "1 BDP"), (10, 40, 133, "4 BDP")):
        for count in (1, 4):
            groups = [flows("candidate", rtt_ms=rtt_ms, count=count), media, VOICE]
            yield cell(
                f"{path_id(mbit, rtt_ms)}-{packets}p-{count}",
                dumbbell(groups, mbit=mbit, rtt_ms=rtt_ms, packets=packets),
                about(mbit, rtt_ms, what=f"{said}, {count} flow{'s' if count > 1 else ''}", victim="traffic"),
                scale="quick" if (mbit, count) == (3, 1) else "standard",
            )
            groups = [flows("candidate", rtt_ms=rtt_ms, count=count), camera()]
            yield cell(
                f"{path_id(mbit, rtt_ms)}-{packets}p-{count}-camera",
                dumbbell(groups, mbit=mbit, rtt_ms=rtt_ms, packets=packets),
                about(mbit, rtt_ms, what=f"{said}, {count} beside a camera", victim="traffic", camera=count),
            )


def _late_frames(t: Tables, c: Cell) -> dict[int, float]:
    return measure.late(0.25, c.about["camera"])(t, c) if "camera" in c.about else {}


def _of_media(of: measure.Of) -> measure.Of:
    return lambda t, c: {} if "camera" in c.about else of(t, c)


def _cheated() -> Iterator[Cell]:
    """Yield cells with two candidate flows, one of them with a cheating receiver."""
    marking: dict[str, Any] = {"queue": {"kind": "codel", "ecn": True}}
    cheats: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
        ("split-acks", "each segment acknowledged in 5 pieces", {"ack_splits": 5}, {}),
        (
            "concealed-losses",
            "losses concealed, receive window of 4 BDP",
            {"optimistic_acks": 0.0, "receive_buffer": "200000 bytes"},
            {},
        ),
        (
            "optimistic-acks",
            "losses concealed, half a window acknowledged ahead, receive window of 4 BDP",
            {"optimistic_acks": 0.5, "receive_buffer": "200000 bytes"},
            {},
        ),
        ("hidden-marks", "marks hidden, CoDel", {"ecn": "ask", "hide_marks": True}, marking),
    )
    for name, said, stack, more in cheats:
        honest = {k: v for k, v in stack.items() if k == "ecn"}
        groups = [flows("honest", rtt_ms=40, stack=honest), flows("cheat", rtt_ms=40, stack=stack)]
        made = dumbbell(groups, mbit=10, rtt_ms=40, bdp=4 if more else 1, **more)
        scale: Scale = "quick" if name in ("split-acks", "hidden-marks") else "standard"
        yield cell(name, made, about(10, 40, 4 if more else 1, said), scale=scale)


def _gain(t: Tables, _: Cell) -> dict[int, float]:
    honest = t.group("honest", "goodput_bps")
    cheat = t.group("cheat", "goodput_bps")
    return {s: v / (v + honest[s]) for s, v in cheat.items() if v + honest.get(s, 0.0)}


def _its_own(of: measure.Of) -> measure.Of:
    return lambda t, c: of(t, c) if c.about.get("victim") == "traffic" else {}


def _unresponsive() -> Iterator[Cell]:
    other = {"name": "unresponsive", "workload": {"kind": "constant-rate", "rate": "5 Mbit/s"}}
    for bdp in (1, 4):
        groups = [flows("candidate", rtt_ms=40), other]
        said = about(10, 40, bdp, "beside UDP at half the rate", victim="traffic")
        yield cell(f"{path_id(10, 40, bdp)}-udp", dumbbell(groups, mbit=10, rtt_ms=40, bdp=bdp), said)


ROWS = (
    Row(
        id="6",
        section="5.2",
        level="MUST",
        title="Starvation",
        quote="MUST assess the potential to cause starvation",
        cells=(*_cells(), *_unequal()),
        measures=(
            Measure(name="time that the other is starved", of=_starved, better="less", margin=0.02),
            Measure(name="the other's least share of its part", of=_least, better="more", margin=0.10),
            Measure(name="time that it is starved itself", of=_starved_itself, better="less", margin=0.02, judged=False),
        ),
        note="Starved: less than a tenth of an equal share in a window of 10 s or 100 round trips. The reference is CUBIC beside the same.",
        starves="time that it is starved itself",
    ),
    Row(
        id="8",
        section="5.2.1",
        level="MUST",
        title="Beside standard controllers",
        quote="MUST be evaluated when competing against standard IETF congestion controls, e.g. [RFC5681], [RFC9002], [RFC9438]",
        cells=tuple(_cells()),
        measures=(
            Measure(name="harm to the other's goodput", of=measure.harm_to_goodput("victim"), better="less", margin=0.05),
            Measure(name="harm to a call's p95 delay", of=measure.harm_to_delay("probe"), better="less", margin=0.05),
            Measure(name="the other's loss", of=measure.column("loss_share", "victim"), better="less", margin=0.01),
        ),
        note="RFC 9002 by proxy of Reno: no QUIC is here, and persistent congestion and packet threshold differ. A delay shorter than with CUBIC is no harm.",
    ),
    Row(
        id="9",
        section="5.2.2",
        level="SHOULD",
        title="Real-time traffic",
        quote="SHOULD consider coexistence with widely deployed real-time congestion control",
        cells=tuple(_real_time()),
        measures=(
            Measure(
                name="media's p95 queue delay", unit="s", of=_of_media(measure.queue_delay(group="media")), better="less",
                margin=0.10, relative=True, least=0.001,
            ),
            Measure(
                name="a call's p95 queue delay", unit="s", of=_of_media(measure.queue_delay(group="probe")), better="less",
                margin=0.10, relative=True, least=0.001,
            ),
            Measure(name="media's loss", of=_of_media(measure.column("loss_share", "media")), better="less", margin=0.01),
            Measure(name="a camera's frames later than 250 ms", of=_late_frames, better="less", margin=0.05),
        ),
        needs=("a real-time controller (RFC 8298, RFC 8698)",),
        note=(
            "Media of a constant 2.5 Mbit/s over UDP, and a call, which do not react; and a camera over TCP with CUBIC, 1.2 Mbit/s, which leaves "
            "frames out when it is 250 ms late."
        ),
    ),
    Row(
        id="20",
        section="7.6",
        level="SHOULD",
        title="Misbehaving nodes",
        quote="SHOULD explore how the algorithm performs with non-compliant senders, receivers, or routers",
        cells=(*_cheated(), *_unresponsive()),
        measures=(
            Measure(name="a cheat's share of what it and an honest flow get", of=_gain, better="less", margin=0.05),
            Measure(name="its utilisation", of=_its_own(measure.utilisation("candidate")), better="more", margin=0.05),
            Measure(name="its loss", of=_its_own(measure.column("loss_share", "candidate")), better="less", margin=0.01),
        ),
        needs=("receivers that repeat ACKs",),
    ),
)  # fmt: skip
