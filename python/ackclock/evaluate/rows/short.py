"""Short flows together with long ones, and applications that pause. Rows 5, 10 and x2."""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.evaluate import measure
from ackclock.evaluate.frame import about, camera, cell, dumbbell, flows, path_id, shorts
from ackclock.evaluate.situation import PLACE, Cell, Measure, Row, Scale, Tables

SMALL, MIDDLE = 15_000, 150_000
"""Boundaries between the three size classes, bytes."""

SECONDS, FOLLOWED_S = 70, 10.0
"""Duration of a run, and time for which each transfer is observed, s. CUBIC's quantiles are below 4 s in every cell, so
values of 10 s are much worse.
"""

FOLLOWED = {"followed_s": FOLLOWED_S}
LARGE = {**FOLLOWED, "least_bytes": MIDDLE}


def _cells(long: str, short: str, *, quick: bool) -> Iterator[Cell]:
    for mbit in (10, 100):
        for bdp in (1, 4):
            for count in (1, 4):
                for load in (0.3, 0.6):
                    groups = [flows("long", long, rtt_ms=40, count=count), shorts("short", short, load=load)]
                    first = quick and (mbit, bdp, count, load) == (10, 1, 1, 0.3)
                    scale: Scale = "quick" if first else "standard" if mbit == 10 else "full"
                    yield cell(
                        f"{path_id(mbit, 40, bdp)}-{count}-load-{load:g}",
                        dumbbell(groups, mbit=mbit, rtt_ms=40, bdp=bdp, seconds=SECONDS),
                        about(mbit, 40, bdp, f"{count} long, load {load:g}", seconds=SECONDS),
                        scale=scale,
                    )


def _times(name: str, quantile: float, most: float) -> Measure:
    return Measure(
        name=name, unit="s", better="less", margin=0.10, relative=True, least=0.005,
        of=measure.completion(quantile, **FOLLOWED, most_bytes=most), most=lambda _: FOLLOWED_S,
    )  # fmt: skip


MEASURES = (
    _times("median time of up to 15 kB", 0.5, SMALL),
    _times("p95 time of up to 150 kB", 0.95, MIDDLE),
    # the mean grows with every starved transfer, unlike a median
    Measure(
        name=f"mean time above 150 kB, each up to {FOLLOWED_S:g} s", unit="s", of=measure.mean_time(**LARGE),
        better="less", margin=0.10, relative=True, least=0.005,
    ),
    Measure(
        name=f"above 150 kB, not done after {FOLLOWED_S:g} s", of=measure.unfinished(**LARGE),
        better="less", margin=0.05, judged=False,
    ),
    Measure(name="the long flows' goodput", of=measure.utilisation("long"), better="more", margin=0.05),
)  # fmt: skip
NOTE = (
    "Both arms meet the same clients: those of a seed come at the same times and ask for the same sizes. So their completion "
    "times are compared as they are; a slowdown would divide both by the same time. Every transfer counts that began "
    f"{FOLLOWED_S:g} s before the end or earlier, finished or not; one that took longer counts with {FOLLOWED_S:g} s."
)


def _either() -> Iterator[Cell]:
    for cells, tag, said in (
        (_cells(PLACE, "cubic", quick=True), "long", "its long flows, CUBIC's short ones"),
        (_cells("cubic", PLACE, quick=False), "short", "CUBIC's long flows, its short ones"),
    ):
        for c in cells:
            what = f"{c.about['what']}: {said}"
            yield cell(f"{c.id}-{tag}", c.scenario, {**c.about, "what": what, "victim": "cubic"}, scale=c.scale)


def _of_bursts(of: measure.Of) -> measure.Of:
    return lambda t, c: {} if "camera" in c.about else of(t, c)


def _late_frames(t: Tables, c: Cell) -> dict[int, float]:
    return measure.late(0.25, 0)(t, c) if "camera" in c.about else {}


def _loss(t: Tables, _: Cell) -> dict[int, float]:
    """Return the loss fraction of the candidate's group under either of its names."""
    return {**t.group("candidate", "loss_share"), **t.group("camera", "loss_share")}


def _pausing() -> Iterator[Cell]:
    """Yield cells with one connection that writes, waits for the ACK and pauses, and with a camera, which never has a backlog."""
    for mbit in (10, 100):
        for name, size, pause in (("small", 10_000, "1 s"), ("large", 2_000_000, "3 s")):
            for beside in (False, True):
                bursts = {"kind": "bursts", "bytes": f"{size} bytes", "pause": {"kind": "exponential", "mean": pause}}
                groups = [{**flows("candidate", rtt_ms=40), "workload": bursts}]
                groups += [flows("victim", "cubic", rtt_ms=40)] if beside else []
                made = dumbbell(groups, mbit=mbit, rtt_ms=40, bdp=1)
                said = f"{size / 1000:g} kB, then {pause} of silence" + (", beside CUBIC" if beside else "")
                labels = about(mbit, 40, 1, said, seconds=60, victim="cubic" if beside else "")
                quick = (mbit, name, beside) == (10, "large", True)
                scale: Scale = "quick" if quick else "standard" if mbit == 10 else "full"
                yield cell(f"{path_id(mbit, 40)}-{name}{'-beside-cubic' if beside else ''}", made, labels, scale=scale)
    for mbit, packets in ((3, 25), (10, 33)):
        made = dumbbell([camera(PLACE), flows("victim", "cubic", rtt_ms=40)], mbit=mbit, rtt_ms=40, packets=packets)
        labels = about(
            mbit,
            40,
            what=f"a camera of its own beside CUBIC, {packets} packets",
            seconds=60,
            victim="cubic",
            camera=True,
        )
        yield cell(f"{path_id(mbit, 40)}-camera", made, labels)


ROWS = (
    Row(
        id="5",
        section="5.1.5",
        level="MUST",
        title="Short flows of its own",
        quote="MUST consider how new and short-lived flows affect long-lived flows, and vice versa",
        cells=tuple(_cells(PLACE, PLACE, quick=True)),
        measures=MEASURES,
        note=NOTE,
    ),
    Row(
        id="10",
        section="5.2.3",
        level="MUST",
        title="Short flows of others",
        quote="The effect on short-lived and long-lived flows using other … algorithms MUST be evaluated",
        cells=tuple(_either()),
        measures=MEASURES,
        note=NOTE,
    ),
    Row(
        id="x2",
        section="",
        level="",
        title="Applications that pause",
        quote="not in the RFC: most connections never fill the path",
        cells=tuple(_pausing()),
        measures=(
            Measure(
                name="median time of a burst",
                unit="s",
                of=_of_bursts(measure.fetched(0.5)),
                better="less",
                margin=0.10,
                relative=True,
                least=0.005,
            ),
            Measure(
                name="p95 time of a burst",
                unit="s",
                of=_of_bursts(measure.fetched(0.95)),
                better="less",
                margin=0.10,
                relative=True,
                least=0.005,
            ),
            Measure(name="a camera's frames later than 250 ms", of=_late_frames, better="less", margin=0.05),
            Measure(name="its loss", of=_loss, better="less", margin=0.01),
        ),
        needs=("a flow that is throttled, then not",),
    ),
)
