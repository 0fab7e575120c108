"""Queues: length, losses, and the effect of active queue management. Rows 2, 3, 12, 13, 15, 16 and x1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ackclock.evaluate import measure
from ackclock.evaluate.frame import PAYLOAD, about, cell, dumbbell, flows, grid, path_id
from ackclock.evaluate.situation import Cell, Measure, Row, Scale, Tables

UTILISATION = Measure(name="utilisation", of=measure.utilisation("candidate"), better="more", margin=0.05)
UTILISATION_OF_ALL = Measure(name="all flows' utilisation", of=measure.utilisation(), better="more", margin=0.05)
P95 = Measure(
    name="p95 queue delay", unit="s", of=measure.queue_delay(group="candidate"), better="less",
    margin=0.10, relative=True, least=0.001, only_if="utilisation",
)  # fmt: skip
P50 = Measure(
    name="median queue delay", unit="s", of=measure.queue_delay("p50_delay_s", "candidate"), better="less",
    margin=0.10, relative=True, least=0.001, only_if="utilisation",
)  # fmt: skip
LOSS = Measure(name="loss", of=measure.column("loss_share", "candidate"), better="less", margin=0.01)
RETRANSMITTED = Measure(
    name="retransmitted", of=measure.column("retransmission_share", "candidate"), better="less", margin=0.01
)


def _several(
    buffers: tuple[float, ...], counts: tuple[int, ...], quick: set[tuple[float, float, float, int]]
) -> Iterator[Cell]:
    for mbit in (10, 100):
        for rtt_ms in (40, 100):
            for bdp in buffers:
                for count in counts:
                    scale: Scale = "standard" if mbit == 10 or (rtt_ms == 40 and count == counts[0]) else "full"
                    scenario = dumbbell(
                        [flows("candidate", rtt_ms=rtt_ms, count=count)], mbit=mbit, rtt_ms=rtt_ms, bdp=bdp
                    )
                    yield cell(
                        f"{path_id(mbit, rtt_ms, bdp)}-{count}",
                        scenario,
                        about(mbit, rtt_ms, bdp, f"{count} flow{'s' if count > 1 else ''}", flows=count),
                        scale="quick" if (mbit, rtt_ms, bdp, count) in quick else scale,
                    )


def _drop_tail() -> Iterator[Cell]:
    for mbit, rtt_ms, bdp, scale in grid(quick=[(10, 40, 1), (100, 100, 1)]):
        yield cell(
            path_id(mbit, rtt_ms, bdp),
            dumbbell([flows("candidate", rtt_ms=rtt_ms)], mbit=mbit, rtt_ms=rtt_ms, bdp=bdp),
            about(mbit, rtt_ms, bdp),
            scale=scale,
        )


MANAGED = {
    "codel": {"kind": "codel"},
    "fq-codel": {"kind": "fq-codel"},
    "pie": {"kind": "pie"},
    "red": {"kind": "red", "min": "0.25 BDP", "max": "0.75 BDP"},
    "dualpi2": {"kind": "dualpi2"},
}


def _managed() -> Iterator[Cell]:
    """Yield cells for each qdisc at 40 ms: one flow, two flows, and one flow beside CUBIC; without and with ECN."""
    for mbit in (10, 100):
        for name, queue in MANAGED.items():
            for ecn in (False, True):
                mine: dict[str, Any] = {"stack": {"ecn": "ask" if ecn else "off"}}
                for shape in ("1", "2", "beside-cubic"):
                    groups = [flows("candidate", rtt_ms=40, count=2 if shape == "2" else 1, **mine)]
                    if shape == "beside-cubic":
                        groups.append(flows("victim", "cubic", rtt_ms=40, **mine))
                    made = dumbbell(
                        groups,
                        mbit=mbit,
                        rtt_ms=40,
                        bdp=4,
                        queue={**queue, **({} if name == "dualpi2" else {"ecn": ecn})},
                    )
                    quick = mbit == 10 and name in ("codel", "fq-codel") and not ecn and shape == "beside-cubic"
                    those = {"1": "1 flow", "2": "2 flows"}.get(shape, "beside CUBIC")
                    said = f"{name}{' with ECN' if ecn else ''}, {those}"
                    yield cell(
                        f"{path_id(mbit, 40)}-{name}{'-ecn' if ecn else ''}-{shape}",
                        made,
                        about(mbit, 40, 4, said, victim="cubic" if shape == "beside-cubic" else ""),
                        scale="quick" if quick else "standard" if mbit == 10 else "full",
                    )


FAULTS: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "none": ("marks arrive", {}, {}),
    "bleached": ("ECT bleached ahead of the queue", {}, {"ecn_fault": {"what": "bleach", "at": "before"}}),
    "stripped": ("marks stripped behind the queue", {}, {"ecn_fault": {"what": "strip-ce"}}),
    "one-queue": ("all flows in one queue", {"queues": 1}, {}),
}
"""Name -> description, queue keys, link keys."""


def _tunnels() -> Iterator[Cell]:
    """Yield cells with an ECN-marking FQ-CoDel, at 10 Mbit/s and 40 ms, with the ECN changes that tunnels make: one
    flow, and one flow beside CUBIC.
    """
    mine: dict[str, Any] = {"stack": {"ecn": "ask"}}
    for name, (said, queue, link) in FAULTS.items():
        for beside in (False, True):
            groups = [flows("candidate", rtt_ms=40, **mine)]
            groups += [flows("victim", "cubic", rtt_ms=40, **mine)] if beside else []
            made = dumbbell(
                groups, mbit=10, rtt_ms=40, bdp=4, queue={"kind": "fq-codel", "ecn": True, **queue}, forward=link
            )
            words = said + (", beside CUBIC" if beside else "")
            labels = about(10, 40, 4, words, victim="cubic" if beside else "")
            quick = beside and name in ("stripped", "one-queue")
            yield cell(
                f"{name}{'-beside-cubic' if beside else ''}", made, labels, scale="quick" if quick else "standard"
            )


def _policed() -> Iterator[Cell]:
    for mbit, rate, initial, buckets in ((4, 1, 10_000, (100,)), (100, 10, None, (100, 1000, 4000))):
        for rtt_ms in (40, 100):
            for kilobytes in buckets:
                policer = {"kind": "policer", "rate": f"{rate} Mbit/s", "bucket": f"{kilobytes}000 bytes"}
                if initial is not None:
                    policer["initial"] = f"{initial} bytes"
                made = dumbbell(
                    [flows("candidate", rtt_ms=rtt_ms)], mbit=mbit, rtt_ms=rtt_ms, bdp=1, forward={"loss": policer}
                )
                labels = about(
                    mbit, rtt_ms, 1, f"policed to {rate} Mbit/s, bucket of {kilobytes} kB", tokens_bps=rate * 1e6
                )
                quick = (mbit, rtt_ms) == (4, 40)
                yield cell(
                    f"{path_id(mbit, rtt_ms)}-{kilobytes}kB", made, labels, scale="quick" if quick else "standard"
                )


def _subscribers() -> Iterator[Cell]:
    """Yield cells beside CUBIC in which each flow has its own token bucket, as access networks police subscribers."""
    for kilobytes in (50, 500):
        policer = {"kind": "policer", "rate": "5 Mbit/s", "bucket": f"{kilobytes}000 bytes", "per": "flow"}
        groups = [flows("candidate", rtt_ms=40), flows("victim", "cubic", rtt_ms=40)]
        made = dumbbell(groups, mbit=50, rtt_ms=40, bdp=1, forward={"loss": policer})
        said = f"each flow policed to 5 Mbit/s, bucket of {kilobytes} kB"
        yield cell(f"each-{kilobytes}kB", made, about(50, 40, 1, said, tokens_bps=5e6, victim="cubic"))


def _of_tokens(t: Tables, c: Cell) -> dict[int, float]:
    return {s: v / (c.about["tokens_bps"] * PAYLOAD) for s, v in t.group("candidate", "goodput_bps").items()}


def _breakers() -> Iterator[Cell]:
    """Yield the cells with the most losses from rows 3 and 8."""
    for bdp in (0.1, 0.25, 1):
        for count, victim in ((4, ""), (16, ""), (1, "cubic")):
            groups = [flows("candidate", rtt_ms=40, count=count)]
            groups += [flows("victim", victim, rtt_ms=40)] if victim else []
            said = f"{count} beside 1 {victim}" if victim else f"{count} flows"
            made = dumbbell(groups, mbit=10, rtt_ms=40, bdp=bdp, record={"drops": True})
            scale: Scale = "quick" if (bdp, count) == (0.25, 4) else "standard"
            yield cell(
                f"{path_id(10, 40, bdp)}-{count}{victim and '-' + victim}",
                made,
                about(10, 40, bdp, said, victim=victim),
                scale=scale,
            )


def _media_breakers() -> Iterator[Cell]:
    """Yield cells with 2.5 Mbit/s media traffic that does not react to loss, on 4 and 10 Mbit/s links with four flows."""
    media = {"name": "media", "workload": {"kind": "constant-rate", "rate": "2.5 Mbit/s"}}
    for mbit, bdp in ((4, 1), (10, 0.25)):
        groups = [flows("candidate", rtt_ms=100, count=4), media]
        made = dumbbell(groups, mbit=mbit, rtt_ms=100, bdp=bdp, record={"drops": True})
        said = "4 flows beside media of 2.5 Mbit/s"
        yield cell(f"{path_id(mbit, 100, bdp)}-media", made, about(mbit, 100, bdp, said, media=4, victim="traffic"))


def _breaker(t: Tables, c: Cell) -> dict[int, float]:
    return {} if "media" in c.about else measure.tripped()(t, c)


def _media_breaker(t: Tables, c: Cell) -> dict[int, float]:
    return measure.media_tripped(c.about["media"])(t, c) if "media" in c.about else {}


def _victim_share(t: Tables, c: Cell) -> dict[int, float]:
    return measure.utilisation("victim")(t, c) if c.about["victim"] else {}


ROWS = (
    Row(
        id="2",
        section="5.1.2",
        level="should",
        title="Standing queues",
        quote="should try to avoid maintaining excessive queues",
        cells=tuple(_several((1, 2, 8, 20), (1, 2, 16), {(10, 40, 8, 1)})),
        measures=(UTILISATION, P95, P50),
        note="Delays are judged where utilisation differs by no more than its margin.",
    ),
    Row(
        id="3",
        section="5.1.3",
        level="should",
        title="High rates of packet loss",
        quote="should try to avoid causing excessively high rates of packet loss",
        cells=tuple(_several((0.1, 0.25, 0.5, 1, 1.5), (4, 1, 16), {(10, 40, 0.5, 4), (10, 40, 1, 4)})),
        measures=(LOSS, RETRANSMITTED),
    ),
    Row(
        id="12",
        section="6.1",
        level="MUST",
        title="Drop-tail queues",
        quote="The drop-tail queue discipline (using a FIFO buffer) MUST be evaluated",
        cells=tuple(_drop_tail()),
        measures=(UTILISATION, P95, LOSS),
        note="One flow. Also what §6.3 says of wired paths.",
    ),
    Row(
        id="13",
        section="6.2",
        level="MUST",
        title="Tunnels",
        quote="MUST consider the effect of traffic passing through a tunnel",
        cells=tuple(_tunnels()),
        measures=(
            UTILISATION_OF_ALL,
            Measure(name="the other's goodput", of=_victim_share, better="more", margin=0.05),
            Measure(
                name="p95 queue delay of all", unit="s", of=measure.queue_delay(), better="less", margin=0.10,
                relative=True, least=0.001, only_if="all flows' utilisation",
            ),
            Measure(name="loss of all", of=measure.column("loss_share"), better="less", margin=0.01),
        ),
        note="With ECN; the reference is CUBIC under the same fault.",
    ),
    Row(
        id="16",
        section="7.2",
        level="ought",
        title="Circuit breakers",
        quote="ought to react before the flow uses excessive resources",
        cells=(*_breakers(), *_media_breakers()),
        measures=(
            Measure(name="time behind a tripped breaker", of=_breaker, better="less", margin=0.02),
            Measure(name="time that media's breaker has tripped", of=_media_breaker, better="less", margin=0.02),
        ),
        note=(
            "A breaker in the sense of RFC 8084, which counts and does not cut: it trips when in three intervals of 5 s or 20 round trips "
            "running more than a tenth is dropped and more than ten times what Reno would send at that loss is offered. The numbers are ours. Media has the congestion breaker of RFC 8083 with a report a second, which counts, too."
        ),
    ),
    Row(
        id="15",
        section="7.1",
        level="SHOULD",
        title="Active queue management",
        quote="under a variety of bottleneck queue disciplines",
        cells=tuple(_managed()),
        measures=(
            UTILISATION_OF_ALL,
            Measure(name="the other's goodput", of=_victim_share, better="more", margin=0.05),
            Measure(
                name="p95 queue delay of all", unit="s", of=measure.queue_delay(), better="less", margin=0.10,
                relative=True, least=0.001, only_if="all flows' utilisation",
            ),
        ),
        needs=("L4S: flows that send ECT(1)", "the response to each marked round"),
    ),
    Row(
        id="x1",
        section="",
        level="",
        title="Policers",
        quote="not in the RFC: a token bucket without a queue",
        cells=(*_policed(), *_subscribers()),
        measures=(
            Measure(name="goodput by the token rate", of=_of_tokens, better="more", margin=0.05),
            LOSS,
        ),
    ),
)  # fmt: skip
