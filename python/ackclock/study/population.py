"""A population of paths: properties drawn from declared distributions, the percentage of paths on which a sentence
holds, and the properties that distinguish these paths from the others.

A cell describes a single path. Whether a statement holds may depend on the queue having nine or ten packets.
Over a population the result is a percentage, and the report states on which paths the statement holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from ackclock.judge.bound import Bound, Verdict
from ackclock.judge.estimates import NOTHING, Array
from ackclock.judge.evidence import Evidence
from ackclock.judge.intervals import Estimate, proportion_interval
from ackclock.report import Table, TableCell
from ackclock.text import share as told_share

if TYPE_CHECKING:
    from ackclock.study.record import Record

GROUPS = 5
"""Number of equally large groups of paths into which a property divides the population."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """A path property and its distribution.

    Parameters
    ----------
    name
        Name as a column, and in text.
    unit
        Unit of its values.
    kind
        "lognormal" (`a` the median, `b` the standard deviation of the logarithm), "log-uniform" (from `a` to `b`), "exponential"
        (`a` the mean), "uniform" (from `a` to `b`).
    a, b
        Parameters of the distribution.
    source
        Source of the distribution, and our additions to it.
    least, most
        Bounds to which values are clipped.
    """

    name: str
    unit: str
    kind: Literal["lognormal", "log-uniform", "exponential", "uniform"]
    a: float
    b: float = 0.0
    source: str
    least: float = 0.0
    most: float = math.inf

    def __str__(self) -> str:
        if self.kind == "lognormal":
            shape = f"median {self.a:g} {self.unit}".rstrip() + f", sigma {self.b:g}"
        elif self.kind == "exponential":
            shape = f"mean {self.a:g} {self.unit}".rstrip()
        else:
            shape = f"{self.a:g} to {self.b:g} {self.unit}".rstrip()
        return f"{self.name} {self.kind}, {shape} ({self.source})"

    def at(self, u: float) -> float:
        """Return the `u` quantile of the distribution."""
        from scipy.special import ndtri

        if self.kind == "lognormal":
            value = self.a * math.exp(self.b * float(ndtri(u)))
        elif self.kind == "log-uniform":
            value = self.a * (self.b / self.a) ** u
        elif self.kind == "exponential":
            value = -self.a * math.log1p(-u)
        else:
            value = self.a + (self.b - self.a) * u
        return float(min(max(value, self.least), self.most))


def draw(properties: Sequence[Drawn], count: int, seed: int) -> list[dict[str, float]]:
    """Return the first `count` paths in a population. A longer list begins with the shorter one.

    Notes
    -----
    A Halton sequence with a random shift (Cranley and Patterson) spreads each property evenly for every count, so that
    a small population represents the same paths as a large one.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    shifts = rng.random(len(properties))
    return [
        {
            drawn.name: drawn.at((_radical_inverse(i + 1, base) + shift) % 1.0)
            for drawn, base, shift in zip(properties, _PRIMES, shifts, strict=False)
        }
        for i in range(count)
    ]


_PRIMES = (2, 3, 5, 7, 11, 13)


def _radical_inverse(i: int, base: int) -> float:
    found, part = 0.0, 1.0
    while i:
        part /= base
        i, digit = divmod(i, base)
        found += digit * part
    return found


def share(holds: Array) -> Estimate:
    """Return the percentage of paths on which a statement holds, with Wilson's interval. Paths without a known
    outcome (NaN) are omitted.
    """
    known = holds[np.isfinite(holds)]
    if not known.size:
        return NOTHING
    found = proportion_interval(int(known.sum()), known.size)
    return Estimate(value=100 * found.value, low=100 * found.low, high=100 * found.high, level=found.level, n=found.n)


def ways(each: Sequence[Estimate], bound: Bound) -> Array:
    """For each path, return the verdict on a bound from its interval: 1 if the statement holds, -1 if the opposite
    holds, 0 for no relevant difference, NaN if unknown.

    Parameters
    ----------
    each
        Estimate of each path, with the interval over its own runs.
    bound
        Bound that the sentence states.
    """
    words = {Verdict.HOLDS: 1.0, Verdict.FAILS: -1.0, Verdict.NEGLIGIBLE: 0.0}
    return np.array([words.get(bound.judge(e.low, e.high), math.nan) for e in each])


def class_share(way: Array, value: float) -> Estimate:
    """Return the percentage of all paths that belong to a class. Any number of the unknown paths may belong to it.

    The interval extends from the lower end of Wilson's interval for the paths known to belong to the class to the
    upper end for these and all unknown paths. It therefore reflects the uncertainty of each path as well as that of
    the draw.
    """
    n, own, unknown = way.size, int((way == value).sum()), int(np.isnan(way).sum())
    if not n:
        return NOTHING
    least, most = proportion_interval(own, n), proportion_interval(min(own + unknown, n), n)
    return Estimate(value=100 * own / n, low=100 * least.low, high=100 * most.high, level=least.level, n=n)


def explains(outcome: Array, properties: Mapping[str, Array]) -> pl.DataFrame:
    """Return the fraction of an outcome's variance over paths explained by each property alone.

    Returns
    -------
    DataFrame
        property, explained (fraction of the variance; Kelley's epsilon squared over five groups of equally many paths,
        which assumes no shape of the relation and is about 0 for an unrelated property), in descending order.
    """
    known = np.isfinite(outcome)
    y = outcome[known]
    rows = []
    for name, values in properties.items():
        order = np.argsort(values[known], kind="stable")
        groups = [y[part] for part in np.array_split(order, GROUPS) if part.size]
        total = float(((y - y.mean()) ** 2).sum()) if y.size else 0.0
        within = float(sum(((g - g.mean()) ** 2).sum() for g in groups))
        free = y.size - len(groups)
        explained = 1 - (within / free) / (total / (y.size - 1)) if total > 0 and free > 0 else 0.0
        rows.append({"property": name, "explained": max(explained, 0.0)})
    return pl.DataFrame(rows, schema={"property": pl.String, "explained": pl.Float64}).sort(
        "explained", descending=True, maintain_order=True
    )


def told(table: pl.DataFrame, most: int = 3) -> str:
    """Return the properties with the most explanatory power, as text."""
    shares = ((r["property"], 100 * r["explained"]) for r in table.head(most).iter_rows(named=True))
    return (
        ", ".join(f"{name} ({told_share(percent / 100, 0)})" for name, percent in shares if percent >= LEAST)
        or NO_PROPERTY
    )


LEAST = 1.0
"""Minimum percentage of the variance for a property to be named."""
NO_PROPERTY = "none of them alone"


@dataclass(frozen=True, kw_only=True, slots=True)
class OnPaths:
    """A sentence about a population of paths.

    Parameters
    ----------
    key
        Key of the sentence's evidence.
    text
        The sentence.
    way
        For each path 1 if the statement holds, -1 if the opposite holds, 0 for no relevant difference, NaN if unknown
        (`ways`).
    properties
        Properties of the paths: name in words -> values.
    """

    key: str
    text: str
    way: Array = field(repr=False)
    properties: Mapping[str, Array] = field(repr=False)

    @property
    def shares(self) -> tuple[Estimate, Estimate, Estimate, Estimate]:
        """Percentages of the paths on which the statement holds, is reversed, makes no difference, or has an
        unknown outcome.
        """
        n = self.way.size
        unknown = proportion_interval(int(np.isnan(self.way).sum()), n) if n else NOTHING
        return (
            class_share(self.way, 1),
            class_share(self.way, -1),
            class_share(self.way, 0),
            Estimate(value=100 * unknown.value, low=100 * unknown.low, high=100 * unknown.high, level=0.95, n=n),
        )

    @property
    def explained(self) -> pl.DataFrame:
        """Fraction of the variance explained by each property (`explains`), over the known paths."""
        return explains(self.way, self.properties)

    @property
    def verdict(self) -> str:
        """Verdict on whether the statement holds on most paths, at 95 %: "holds", "fails" (holds on fewer than half), or "undecided"."""
        holds = self.shares[0]
        return "holds" if holds.low > HALF else "fails" if holds.high < HALF else "undecided"

    def evidence(self) -> list[Evidence]:
        """Return the percentages, and the three properties that best explain where the statement holds. None of them affects a verdict."""
        found = [
            Evidence.of(e, f"{self.text}: {what}", Bound(), unit="%", weighs=False, key=f"{self.key}_{name}")
            for e, (what, name) in zip(self.shares, CLASSES, strict=True)
        ]
        return found + [
            Evidence(
                label=f"{self.text}: of where it is so, explained by {row['property']}",
                value=100 * row["explained"],
                bound=Bound(),
                unit="%",
                weighs=False,
                key=f"{self.key}_{place}",
            )
            for place, row in zip(PLACES, self.explained.iter_rows(named=True), strict=False)
        ]


CLASSES = (
    ("paths on which it is so", "holds_on"),
    ("paths on which it is the other way round", "reverse_on"),
    ("paths without a difference that counts", "none_on"),
    ("paths of which it is not known", "unknown_on"),
)
"""The four path classes, and their keys."""
HALF = 50
"""Percentage of the paths above which they count as "most"."""
PLACES = ("first", "second", "third")
"""Keys of the properties with the most explanatory power, in order."""


def verdicts(sentences: Iterable[OnPaths]) -> Table:
    """Return a table with the verdict on each sentence over the population."""
    return Table(
        caption=(
            "Each sentence over the population: on which share of the paths it is so, the other way round, without a difference that counts, and not known, as the interval of "
            "each path says. The intervals of the shares are those of the draw and of the paths that are not known. Then whether it is so on most of them; and the three "
            "properties of a path that alone explain most of the variance of where it is so, of the paths that are known."
        ),
        header=(
            "sentence",
            "so on",
            "the other way round on",
            "no difference on",
            "not known",
            "on most paths",
            "explained by",
        ),
        rows=tuple(
            (
                TableCell(text=s.text, kind="head"),
                *(f"{told_share(e.value / 100, 0)} ({e.low:.0f} to {e.high:.0f})" for e in s.shares),
                s.verdict,
                TableCell(text=told(s.explained), kind="text"),
            )
            for s in sentences
        ),
    )


def recorded(record: Record, claims: Iterable[str]) -> str:
    """Return a record's table in Markdown, one row per sentence with its claim; empty if the record has none."""
    rows = []
    for claim in claims:
        evidence = {
            e["key"]: (label, e)
            for half in record.claims.get(claim, {}).values()
            for label, e in half["evidence"].items()
            if "key" in e
        }
        for key in (key.removesuffix("_holds_on") for key in evidence if key.endswith("_holds_on")):
            label, _ = evidence[f"{key}_holds_on"]
            found = (evidence.get(f"{key}_{name}") for _, name in CLASSES)
            shares = [_share(e[1]) if e else "" for e in found]
            by = [evidence[f"{key}_{place}"] for place in PLACES if f"{key}_{place}" in evidence]
            if not by:
                continue
            named = [
                f"{t.rpartition('explained by ')[2]} ({told_share(e['value'] / 100, 0)})"
                for t, e in by
                if e["value"] >= LEAST
            ]
            told_by = ", ".join(named) or NO_PROPERTY
            rows.append(f"| {claim} | {label.rpartition(': ')[0]} | {' | '.join(shares)} | {told_by} |")
    head = (
        "| claim | sentence | so on, of the paths | the other way round on | no difference on | not known | explained by |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    )
    return "\n".join((*head, *rows)) if rows else ""


def _share(e: Mapping[str, Any]) -> str:
    low, high = e["interval"]
    return f"{told_share(e['value'] / 100, 0)} ({low:.0f} to {high:.0f})"
