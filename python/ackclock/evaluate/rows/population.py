"""Paths drawn from a population with a source. Row x6, which exists only if a population is given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ackclock.evaluate import measure
from ackclock.evaluate.frame import flows, measured_s, shorts, warm_up_s
from ackclock.evaluate.situation import PLACE, Cell, Measure, Row, Scale, Tables

if TYPE_CHECKING:
    from ackclock.population import DrawnPath, Population

ID = "x6"

COUNTS: tuple[tuple[Scale, int], ...] = (("quick", 3), ("standard", 12), ("full", 40))
"""Number of drawn paths at each scale; the larger scales begin with those of the smaller ones."""

SEED = 1
"""Seed of the draw."""

FOLLOWED_S = 10.0
"""Time for which a response is observed, s."""

LOAD = 0.3
"""Fraction of a path's rate that its short responses ask for."""


def row(population: Population) -> Row:
    """Return the row of a population."""
    return Row(
        id=ID,
        section="",
        level="",
        title=f"Paths of {population.name}",
        quote=f"not in the RFC: paths drawn from {population.told}",
        cells=tuple(_cells(population)),
        measures=(
            Measure(
                name="mean time of a response", unit="s", of=_short(measure.mean_time(followed_s=FOLLOWED_S)), better="less",
                margin=0.10, relative=True, least=0.005, most=lambda _: FOLLOWED_S,
            ),
            Measure(name="utilisation", of=_long(measure.utilisation("candidate")), better="more", margin=0.05),
            Measure(name="harm to the other's goodput", of=_beside(measure.harm_to_goodput("victim")), better="less", margin=0.05),
        ),
        note=(
            f"Seed {SEED} draws the paths. On each: responses with a median of 30 kB, a flow alone, and a flow beside one of CUBIC. "
            f"The population is what its source says. {population.note}"
        ),
    )  # fmt: skip


def _cells(population: Population) -> Iterator[Cell]:
    paths = population.draw(COUNTS[-1][1], seed=SEED)
    for number, path in enumerate(paths):
        scale = next(scale for scale, count in COUNTS if number < count)
        for kind, groups in (
            ("short", [shorts("short", PLACE, load=LOAD)]),
            ("alone", [flows("candidate", rtt_ms=1e3 * path.rtt_s)]),
            (
                "beside",
                [flows("candidate", rtt_ms=1e3 * path.rtt_s), flows("victim", "cubic", rtt_ms=1e3 * path.rtt_s)],
            ),
        ):
            scenario, seconds = _scenario(path, groups)
            yield Cell(
                id=f"{population.name}-{number + 1}-{kind}",
                scenario=scenario,
                about={
                    "rate_bps": path.rate_bps,
                    "rtt_s": path.rtt_s,
                    "what": f"{path.group}, loss {100 * path.loss:.3g} %, queue {path.queue_packets} packets: {kind}",
                    "kind": kind,
                    "seconds": seconds,
                    "victim": "cubic" if kind == "beside" else "",
                    "own": 1,
                    "others": 1,
                },
                scale=scale,
                alone=kind == "beside",
                gigabit=path.rate_bps >= 1e9,
            )


def _scenario(path: DrawnPath, groups: list[dict[str, Any]]) -> tuple[dict[str, Any], float]:
    """Return the keys of a scenario, and how long it runs, s."""
    begin = warm_up_s(1e3 * path.rtt_s)
    seconds = begin + measured_s(1e3 * path.rtt_s)
    return {
        "duration": f"{seconds:g} s",
        "network": {"bottleneck": path.bottleneck()},
        "flows": groups,
        "record": {"performance": True, "warm_up": f"{begin:g} s", "goodput_interval": "1 s"},
    }, seconds


def _only(kind: str, of: measure.Of) -> measure.Of:
    def number(tables: Tables, cell: Cell) -> dict[int, float]:
        return of(tables, cell) if cell.about["kind"] == kind else {}

    return number


def _short(of: measure.Of) -> measure.Of:
    return _only("short", of)


def _long(of: measure.Of) -> measure.Of:
    return _only("alone", of)


def _beside(of: measure.Of) -> measure.Of:
    return _only("beside", of)
