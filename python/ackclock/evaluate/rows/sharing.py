"""Capacity sharing between flows of one controller. Row 4."""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.evaluate import measure
from ackclock.evaluate.frame import about, cell, dumbbell, flows, path_id
from ackclock.evaluate.situation import Cell, Measure, Row, Scale


def _cells() -> Iterator[Cell]:
    for mbit in (10, 100):
        for bdp in (1, 4):
            for count in (2, 4, 16):
                quick = (mbit, bdp, count) == (10, 1, 2)
                scale: Scale = "quick" if quick else "standard" if mbit == 10 or count == 4 else "full"
                yield cell(
                    f"{path_id(mbit, 40, bdp)}-{count}",
                    dumbbell([flows("candidate", rtt_ms=40, count=count)], mbit=mbit, rtt_ms=40, bdp=bdp),
                    about(mbit, 40, bdp, f"{count} flows", kind="equal"),
                    scale=scale,
                )
            late = dumbbell(
                [flows("candidate", rtt_ms=40, count=4, stagger="30 s")], mbit=mbit, rtt_ms=40, bdp=bdp, seconds=180
            )
            said = about(mbit, 40, bdp, "4 flows, 30 s apart", kind="late")
            yield cell(f"{path_id(mbit, 40, bdp)}-late", late, said, scale="standard" if mbit == 10 else "full")
            for ratio in (2, 4):
                links = [
                    {"rate": f"{10 * mbit} Mbit/s", "delay": f"{d:g} ms", "jitter": "100 us"}
                    for d in (0, 10 * (ratio - 1))
                ]
                unequal = dumbbell(
                    [flows("candidate", rtt_ms=20 * ratio, count=2)], mbit=mbit, rtt_ms=20, bdp=2 * bdp, access=links
                )
                said = about(mbit, 20, 2 * bdp, f"2 flows, RTTs of 20 and {20 * ratio} ms", kind="unequal")
                scale = "standard" if mbit == 10 else "full"
                yield cell(f"{path_id(mbit, 20, 2 * bdp)}-ratio-{ratio}", unequal, said, scale=scale)


def _only(kind: str, of: measure.Of) -> measure.Of:
    return lambda t, c: of(t, c) if c.about["kind"] == kind else {}


ROWS = (
    Row(
        id="4",
        section="5.1.4",
        level="should",
        title="Fairness within the controller",
        quote="should explore how the capacity is shared",
        cells=tuple(_cells()),
        measures=(
            Measure(name="Jain's index in windows of 10 s", unit="", of=_only("equal", measure.jain()), better="more", margin=0.05),
            Measure(
                name="share of the last to come", of=_only("late", measure.share_of(3, 130)), better="more", margin=0.05
            ),
            Measure(
                name="share of the longer path", of=_only("unequal", measure.share_of(1, 15)), better="more", margin=0.05
            ),
        ),
    ),
)  # fmt: skip
