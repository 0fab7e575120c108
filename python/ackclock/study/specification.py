"""Specification curves: the verdict on each claim under other readings of the questions left open by the publication."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.bound import Verdict
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Section, Table, TableCell, paragraph
from ackclock.study.reading import Curve, Reading, Specification
from ackclock.text import share as told_share

COLOURS = {
    Verdict.HOLDS: (OKABE_ITO["green"], "o"),
    Verdict.NEGLIGIBLE: (OKABE_ITO["purple"], "D"),
    Verdict.REFUTED: (OKABE_ITO["yellow"], "v"),
    Verdict.FAILS: (OKABE_ITO["vermilion"], "X"),
    Verdict.DEPENDS: (OKABE_ITO["sky"], "P"),
    Verdict.UNDECIDED: ("#8a8a8a", "s"),
    Verdict.NOT_COMPARABLE: ("#8a8a8a", "s"),
}


def section(readings: Sequence[Reading], curves: Sequence[Curve], study: str) -> Section:
    """Return the report section on the open questions, the reading chosen for each, and the results under the other readings."""
    blocks: list[Any] = [_open(readings)]
    if curves:
        blocks += [_shares(curves), *_most(curves), *(figure(curve) for curve in curves if curve.turns)]
    else:
        blocks.append(paragraph(f"The other readings were not run; ackclock study run {study} --readings runs them."))
    return Section(title="Readings", blocks=tuple(blocks))


_OTHERWISE = (
    (Verdict.FAILS, "fails in"),
    (Verdict.REFUTED, "refuted in"),
    (Verdict.NEGLIGIBLE, "negligible in"),
    (Verdict.DEPENDS, "depends on the cell in"),
    (Verdict.UNDECIDED, "undecided in"),
)


def told(curve: Curve) -> str:
    """Return the outcome in one sentence."""
    n = len(curve.specifications)
    text = f"Holds in {curve.count(Verdict.HOLDS)} of {n} readings"
    for verdict, word in _OTHERWISE:
        if curve.count(verdict):
            text += f", {word} {curve.count(verdict)}"
    reading = curve.decides
    if reading is None:
        return f"{text}; none of {', '.join(r.name for r in curve.readings)} decides."
    of_options = {option: curve.share_of(reading, option) for option in reading.options}
    shares = ", ".join(
        f"{option}: {'undecided' if math.isnan(share) else told_share(share, 0)}"
        for option, share in of_options.items()
    )
    return f"{text}; what decides is {reading.name} ({shares})."


def _open(readings: Sequence[Reading]) -> Table:
    return Table(
        caption="Questions that the publications leave open. The verdicts are those of the main reading, which was chosen before the run for the reason given.",
        header=("", "left open", "main reading", "why", "other readings"),
        rows=tuple(
            (
                TableCell(text=r.name, kind="head"),
                TableCell(text=r.question, kind="text"),
                TableCell(text=_option(r, r.main), kind="text"),
                TableCell(text=r.why, kind="text"),
                TableCell(text="; ".join(_option(r, name) for name in list(r.options)[1:]), kind="text"),
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
        header=(
            "claim",
            "statement",
            "main reading",
            "readings",
            "holds",
            "negligible",
            "refuted",
            "fails",
            "depends",
            "undecided",
            "decided by",
        ),
        rows=tuple(
            (
                TableCell(text=curve.claim.id, kind="head"),
                TableCell(text=curve.claim.statement, kind="text"),
                f"{curve.specifications[0].verdict.symbol} {curve.specifications[0].verdict}",
                str(len(curve.specifications)),
                *(
                    told_share(curve.count(v) / len(curve.specifications), 0)
                    for v in (
                        Verdict.HOLDS,
                        Verdict.NEGLIGIBLE,
                        Verdict.REFUTED,
                        Verdict.FAILS,
                        Verdict.DEPENDS,
                        Verdict.UNDECIDED,
                    )
                ),
                curve.decides.name if curve.decides else "none",
            )
            for curve in curves
        ),
    )


MOST_COMBINATIONS = 200_000
"""Maximum number of combinations searched for the best reading."""


def best(curves: Sequence[Curve]) -> dict[str, str] | None:
    """Return the complete reading in which the most claims hold; if there are several, the one closest to the main one.

    Parameters
    ----------
    curves
        Curves of all claims that depend on a reading.

    Returns
    -------
    dict or None
        Name -> option; None if there are too many combinations.
    """
    readings = {r.name: r for curve in curves for r in curve.readings if r.crossed}
    if math.prod(len(r.options) for r in readings.values()) > MOST_COMBINATIONS:
        return None
    holding = [
        (
            tuple(r.name for r in curve.readings if r.crossed),
            {
                tuple(dict(s.choice)[r.name] for r in curve.readings if r.crossed)
                for s in curve.specifications
                if s.verdict is Verdict.HOLDS
            },
        )
        for curve in curves
    ]

    def score(choice: dict[str, str]) -> tuple[int, int]:
        held = sum(tuple(choice[name] for name in names) in choices for names, choices in holding)
        return held, sum(choice[name] == r.main for name, r in readings.items())

    every = (dict(zip(readings, options, strict=True)) for options in product(*(r.options for r in readings.values())))
    return max(every, key=score)


def under(curve: Curve, chosen: Mapping[str, str]) -> Specification:
    """Return a curve's specification for a complete reading. Readings varied alone keep their main option."""
    main = dict(curve.specifications[0].choice)
    wanted = main | {r.name: chosen[r.name] for r in curve.readings if r.name in chosen}
    return next(s for s in curve.specifications if dict(s.choice) == wanted)


def _most(curves: Sequence[Curve]) -> list[Table]:
    """Return a table that compares the main reading with the one in which the most claims hold."""
    chosen = best(curves)
    if chosen is None:
        return []
    mains = {r.name: r.main for curve in curves for r in curve.readings}
    other = [f"{name}: {option}" for name, option in chosen.items() if option != mains[name]]
    found = [(curve, curve.specifications[0], under(curve, chosen)) for curve in curves]
    held = [sum(s.verdict is Verdict.HOLDS for s in own) for own in zip(*((m, b) for _, m, b in found), strict=True)]

    def told(one: Specification) -> str:
        return f"{one.verdict.symbol} {one.decisive.value_text if one.decisive else ''}".strip()

    return [
        Table(
            caption=(
                f"Of the {len(found)} claims that depend on a reading {held[0]} hold in the main one, and {held[1]} at most in one and the same: "
                f"that with {', '.join(other) or 'nothing changed'}. Beside each verdict the number that settles it."
            ),
            header=("claim", "statement", "main reading", "the reading with the most", "asked"),
            rows=tuple(
                (
                    TableCell(text=curve.claim.id, kind="head"),
                    TableCell(text=curve.claim.statement, kind="text"),
                    told(main),
                    told(most),
                    most.decisive.bound.text(most.decisive.unit) if most.decisive else "",
                )
                for curve, main, most in found
            ),
        )
    ]


def figure(curve: Curve) -> Figure:
    """Plot the deciding value of each reading, in order, above the reading's options."""
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
        main = specs.index(curve.specifications[0]) if curve.specifications[0] in specs else -1
        size = 4.0 if len(specs) <= 100 else 1.5
        value, low, high = (
            np.array([math.nan if row[key] is None else row[key] for row in rows], dtype=float)
            for key in ("value", "low", "high")
        )
        for verdict, (colour, marker) in COLOURS.items():
            own = np.array([s.verdict is verdict for s in specs]) & np.isfinite(value)
            at = np.flatnonzero(own)
            sure = at[np.isfinite(low[at]) & np.isfinite(high[at])]
            top.vlines(sure, low[sure], high[sure], color=colour, lw=1 if size > 2 else 0.4)
            top.plot(at, value[at], marker, color=colour, ms=size)
            for k, (reading, option) in enumerate(options):
                chosen = [i for i in at if dict(specs[i].choice)[reading.name] == option]
                bottom.plot(chosen, [k] * len(chosen), marker, color=colour, ms=size)
            if own[main] and main >= 0:
                top.plot(main, value[main], marker, color=colour, ms=6, mec="black")
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
            "bound (dashed); below, the options that it consists of. Green circles hold, purple diamonds are negligible, yellow triangles refuted, "
            "orange crosses fail, blue plus signs depend on the cell, grey squares are undecided; the main reading has a black rim."
        ),
        draw=draw,
        data={"readings": pl.DataFrame(rows)},
    )
