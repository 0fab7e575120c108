"""Specification curves: what becomes of each claim when what the publication leaves open is read otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Cell, Section, Table, paragraph
from ackclock.study.reading import Curve, Reading
from ackclock.study.verdict import Verdict

COLOURS = {
    Verdict.HOLDS: (OKABE_ITO["green"], "o"),
    Verdict.FAILS: (OKABE_ITO["vermilion"], "X"),
    Verdict.UNDECIDED: ("#8a8a8a", "s"),
    Verdict.NOT_COMPARABLE: ("#8a8a8a", "s"),
}


def section(readings: Sequence[Reading], curves: Sequence[Curve], study: str) -> Section:
    """What is left open, how it is read, and what the other readings give."""
    blocks: list[Any] = [_open(readings)]
    if curves:
        blocks += [_shares(curves), *(figure(curve) for curve in curves if curve.turns)]
    else:
        blocks.append(paragraph(f"The other readings were not run; ackclock study run {study} --readings runs them."))
    return Section(title="Readings", blocks=tuple(blocks))


def told(curve: Curve) -> str:
    """The outcome in one sentence."""
    n = len(curve.specifications)
    text = f"Holds in {curve.count(Verdict.HOLDS)} of {n} readings"
    for verdict, word in ((Verdict.FAILS, "fails in"), (Verdict.UNDECIDED, "undecided in")):
        if curve.count(verdict):
            text += f", {word} {curve.count(verdict)}"
    reading = curve.decides
    if reading is None:
        return f"{text}; none of {', '.join(r.name for r in curve.readings)} decides."
    shares = ", ".join(f"{option}: {100 * curve.share_of(reading, option):.0f} %" for option in reading.options)
    return f"{text}; what decides is {reading.name} ({shares})."


def _open(readings: Sequence[Reading]) -> Table:
    return Table(
        caption="What the publications leave open. The main reading, which the verdicts are those of, was chosen before the run for the reason given.",
        header=("", "left open", "main reading", "why", "other readings"),
        rows=tuple(
            (
                Cell(text=r.name, kind="head"),
                Cell(text=r.question, kind="text"),
                Cell(text=_option(r, r.main), kind="text"),
                Cell(text=r.why, kind="text"),
                Cell(text="; ".join(_option(r, name) for name in list(r.options)[1:]), kind="text"),
            )
            for r in readings
        ),
    )


def _option(reading: Reading, name: str) -> str:
    meaning = reading.options[name]
    return f"{name} ({meaning})" if meaning and meaning != name else name


def _shares(curves: Sequence[Curve]) -> Table:
    return Table(
        caption="Over all readings, the main one included: how often each claim holds, and which reading decides.",
        header=("claim", "statement", "main reading", "readings", "holds", "fails", "undecided", "decided by"),
        rows=tuple(
            (
                Cell(text=curve.claim.id, kind="head"),
                Cell(text=curve.claim.statement, kind="text"),
                f"{curve.specifications[0].verdict.symbol} {curve.specifications[0].verdict}",
                str(len(curve.specifications)),
                *(
                    f"{100 * curve.count(v) / len(curve.specifications):.0f} %"
                    for v in (Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED)
                ),
                curve.decides.name if curve.decides else "none",
            )
            for curve in curves
        ),
    )


def figure(curve: Curve) -> Figure:
    """The value that settles each reading, in order, above the options that make it."""
    specs = sorted(
        (s for s in curve.specifications if s.decisive is not None),
        key=lambda s: (list(Verdict).index(s.verdict), s.decisive.value if s.decisive else 0.0),
    )
    rows: list[dict[str, Any]] = [
        {
            **dict(s.choice),
            "verdict": s.verdict.value,
            "measured": s.decisive.label if s.decisive else "",
            "value": s.decisive.value if s.decisive else math.nan,
            "low": s.decisive.interval[0] if s.decisive and s.decisive.interval else None,
            "high": s.decisive.interval[1] if s.decisive and s.decisive.interval else None,
            "asked": s.decisive.bound.text(s.decisive.unit) if s.decisive else "",
        }
        for s in specs
    ]
    options = [(reading, option) for reading in curve.readings for option in reading.options]

    def draw() -> Any:
        made, (top, bottom) = new(
            7.6, 2.2 + 0.2 * len(options), nrows=2, sharex=True, height_ratios=(1.8, 0.2 * len(options) + 0.2)
        )
        units = {s.decisive.unit for s in specs if s.decisive}
        for i, (s, row) in enumerate(zip(specs, rows, strict=True)):
            colour, marker = COLOURS[s.verdict]
            value, low, high = row["value"], row["low"], row["high"]
            if not math.isfinite(value):
                continue
            if low is not None and math.isfinite(low) and math.isfinite(high):
                top.plot([i, i], [low, high], color=colour, lw=1)
            main = s is curve.specifications[0]
            top.plot(i, value, marker, color=colour, ms=6 if main else 4, mec="black" if main else colour)
            for k, (reading, option) in enumerate(options):
                if dict(s.choice)[reading.name] == option:
                    bottom.plot(i, k, marker, color=colour, ms=4)
        for bound in {x for s in specs if s.decisive for x in (s.decisive.bound.low, s.decisive.bound.high)}:
            if math.isfinite(bound):
                top.axhline(bound, color="#555555", lw=0.8, ls=(0, (4, 2)))
        top.set_ylabel("measured" + (f" ({units.pop()})" if len(units) == 1 and "" not in units else ""))
        bottom.set_yticks(range(len(options)), [f"{r.name}: {option}" for r, option in options])
        bottom.set_ylim(len(options) - 0.5, -0.5)
        bottom.set(xlabel="readings, by verdict and value", xticks=[])
        bottom.grid(axis="x", visible=False)
        return made

    return Figure(
        name=f"readings-{curve.claim.id.lower()}",
        title=f"{curve.claim.id}: {told(curve)}",
        caption=(
            f"{curve.claim.statement} Each column is one reading: above, the number that settles it, with its 95 % interval and the "
            "bound (dashed); below, the options that it consists of. Green circles hold, orange crosses fail, grey squares are undecided; "
            "the main reading has a black rim."
        ),
        draw=draw,
        data={"readings": pl.DataFrame(rows)},
    )
