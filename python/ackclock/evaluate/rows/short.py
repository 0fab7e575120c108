"""Short flows beside long ones. Rows 5 and 10."""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.evaluate import measure
from ackclock.evaluate.frame import about, cell, dumbbell, flows, path_id, shorts
from ackclock.evaluate.situation import PLACE, Cell, Measure, Row, Scale

SMALL, MIDDLE = 15_000, 150_000
"""Bytes; the bounds of the three classes of sizes."""


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
                        dumbbell(groups, mbit=mbit, rtt_ms=40, bdp=bdp),
                        about(mbit, 40, bdp, f"{count} long, load {load:g}"),
                        scale=scale,
                    )


def _times(name: str, quantile: float, least: float, most: float) -> Measure:
    return Measure(
        name=name, unit="s", of=measure.completion(quantile, least, most), better="less", margin=0.10, relative=True, least=0.005
    )  # fmt: skip


MEASURES = (
    _times("median time of up to 15 kB", 0.5, 0, SMALL),
    _times("p95 time of up to 150 kB", 0.95, 0, MIDDLE),
    _times("median time above 150 kB", 0.5, MIDDLE, float("inf")),
    Measure(name="the long flows' goodput", of=measure.utilisation("long"), better="more", margin=0.05),
)
NOTE = (
    "Both arms meet the same clients: those of a seed come at the same times and ask for the same sizes. So their completion "
    "times are compared as they are; a slowdown would divide both by the same time."
)


def _either() -> Iterator[Cell]:
    for cells, tag, said in (
        (_cells(PLACE, "cubic", quick=True), "long", "its long flows, CUBIC's short ones"),
        (_cells("cubic", PLACE, quick=False), "short", "CUBIC's long flows, its short ones"),
    ):
        for c in cells:
            what = f"{c.about['what']}: {said}"
            yield cell(f"{c.id}-{tag}", c.scenario, {**c.about, "what": what, "victim": "cubic"}, scale=c.scale)


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
)
