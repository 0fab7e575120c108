"""Grid axes: lists, ranges in linear or geometric steps, and axes that step together."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from fractions import Fraction
from functools import cache, partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from ackclock import _engine, units
from ackclock.errors import ScenarioError, one_of, quote
from ackclock.own import named, short

MOST_VALUES = 100_000
"""Maximum number of values on an axis."""

MOST_CELLS = 200_000
"""Maximum number of points in a grid: each takes about 4 kB during planning."""

RUN = frozenset(["run", "cell", "key", "scenario", "seed", "digest"])
"""Columns that identify a row's run; no axis may have one of these names."""

FILE = ".file"
"""Suffix of keys with file names as values."""

_DIMENSIONS = (units.DURATION, units.RATE, units.SIZE, units.PACKETS, units.BDP)
_RANGE_KEYS = ("from", "to", "steps", "spacing")


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """One scenario key, and its successive values.

    Parameters
    ----------
    key
        Dotted path, lists by position: "flows.0.congestion_control".
    values
        As in TOML.
    name
        Column name in the results, and label in figures; the key if empty. If another column of the results has that
        name (`share`, `mean`), the axis has its key as column name there.
    labels
        Names of the values in tables and figures, one per value; if empty, the values themselves.

    Examples
    --------
    >>> Axis.parse("network.bottleneck.rate", {"from": "1 Mbit/s", "to": "100 Mbit/s", "steps": 3, "spacing": "log"}).values
    ('1 Mbit/s', '10 Mbit/s', '100 Mbit/s')
    """

    key: str
    values: tuple[Any, ...]
    name: str = ""
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        strange = next((value for value in self.values if not _is_of_toml(value)), self)
        if strange is not self:
            found = quote(strange) if isinstance(strange, list | tuple | Mapping) else repr(strange)[:100]
            raise ScenarioError(key=f"axes.{self.key}", found=found, allowed="values that TOML has")

    @property
    def column(self) -> str:
        """Name of the axis's column in results."""
        return self.key if not self.name or self.name in taken() else self.name

    @property
    def repeats(self) -> bool:
        """Whether a value is repeated, so that the axis alone does not identify a run's step."""
        return len(set(map(_known_by, self.values))) < len(self.values)

    @property
    def shown(self) -> tuple[Any, ...]:
        """Values as shown in results."""
        return self.labels or self._files or tuple(short(value) if named(value) else value for value in self.values)

    @property
    def _files(self) -> tuple[str, ...]:
        """Return file names without their folders, if they remain distinct."""
        if not self.key.endswith(FILE):
            return ()
        names = tuple(Path(str(value)).name for value in self.values)
        return names if len(set(names)) == len(set(self.values)) else ()

    def show(self, value: Any) -> Any:
        """Return one value as shown in results."""
        return self.shown[self.values.index(value)]

    @classmethod
    def parse(cls, key: str, written: Any, *, name: str = "", labels: Any = (), repeats: bool = False) -> Axis:
        """Read an axis as written in a sweep file: a list, or a table with `from`, `to`, `steps` and `spacing`.

        Parameters
        ----------
        key, written, name, labels
            Values from the file.
        repeats
            Whether values may repeat: the axis then steps together with others, which distinguish them.

        Raises
        ------
        ScenarioError
            One line: the key, what was found, what is allowed.
        """
        try:
            values = tuple(_range(written)) if isinstance(written, Mapping) else _list(written, repeats=repeats)
        except ScenarioError as error:
            raise error.within(f"axes.{key}") from None
        return cls(key=key, values=values, name=name, labels=_labels(key, labels, len(values)))


@cache
def taken() -> frozenset[str]:
    """Return the columns of results that are not axes, except those that identify a row's run (`RUN`)."""
    from ackclock.sweep.measures import COLUMNS

    standard = {name for name, _ in _engine.registry()["metrics"]}
    return frozenset({"n", "mean", "low", "high"} | COLUMNS | standard)


def _is_of_toml(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_of_toml(inner) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return all(_is_of_toml(inner) for inner in value)
    return isinstance(value, str | int | float | date | time)


def _labels(key: str, written: Any, count: int) -> tuple[str, ...]:
    if not written:
        return ()
    texts = isinstance(written, list | tuple) and all(isinstance(text, str) and text for text in written)
    if not texts or len(set(written)) != len(written) or len(written) != count:
        raise ScenarioError(
            key=f"labels.{key}", found=quote(written), allowed=f"a list of {count} different names, one for each value"
        )
    return tuple(written)


def combinations(axes: Sequence[Axis], zipped: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Return every point of the grid: key -> value, the last axis fastest; axes of one group step together.

    Parameters
    ----------
    axes
        All axes.
    zipped
        Groups of keys that step together; each group has the position of its first axis.

    Raises
    ------
    ScenarioError
        If a group names no axis, or axes of different lengths.
    """
    by_key = {axis.key: axis for axis in axes}
    group_of: dict[str, int] = {}
    for g, group in enumerate(zipped):
        for key in group:
            if key not in by_key:
                raise ScenarioError(key=f"zip.{g}", found=quote(key), allowed=one_of(key, by_key))
            if key in group_of:
                raise ScenarioError(key=f"zip.{g}", found=f"{quote(key)} again", allowed="each axis in one group")
            group_of[key] = g
        lengths = {key: len(by_key[key].values) for key in group}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{n} for {key}" for key, n in lengths.items())
            raise ScenarioError(key=f"zip.{g}", found=f"{told} values", allowed="equally many values in a group")
    lengths_of: dict[object, int] = {group_of.get(axis.key, axis.key): len(axis.values) for axis in axes}
    cells = prod(lengths_of.values())
    if cells > MOST_CELLS:
        raise ScenarioError(key="axes", found=f"{_many(cells)} cells", allowed=f"at most {MOST_CELLS:,}")
    steps: list[list[dict[str, Any]]] = []
    seen: set[int] = set()
    for axis in axes:
        at = group_of.get(axis.key)
        if at is None:
            steps.append([{axis.key: value} for value in axis.values])
        elif at not in seen:
            seen.add(at)
            keys = list(zipped[at])
            rows = zip(*(by_key[key].values for key in keys), strict=True)
            if all(by_key[key].repeats for key in keys):
                raise ScenarioError(
                    key=f"zip.{at}",
                    found="a value twice on each axis",
                    allowed="a group in which one axis has each value once",
                )
            steps.append([dict(zip(keys, row, strict=True)) for row in rows])
    points = ({k: v for part in parts for k, v in part.items()} for parts in product(*steps))
    return [{axis.key: point[axis.key] for axis in axes} for point in points]


def _many(cells: int) -> str:
    return f"{cells:,}" if cells < 10**12 else f"about 10^{len(str(cells)) - 1}"


def base_value(value: Any) -> float | None:
    """Return an axis value as a number in base units (s, bit/s, bytes, packets, BDP), or None if it is not a quantity."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        return None
    for dimension in _DIMENSIONS:
        try:
            base = units.parse(value, dimension, zero=True, parts=True)[0]
        except ScenarioError:
            continue
        return float(base) / (1e9 if dimension is units.DURATION else 1)
    try:
        return units.parse_share(value)
    except ScenarioError:
        return None


def base_unit(values: Sequence[Any]) -> str | None:
    """Return the unit of `base_value` if all values share one: "s", "bit/s", "bytes", "packets", "BDP", "" for plain
    numbers.
    """
    found = {_unit(value) for value in values}
    return found.pop() if len(found) == 1 else None


def _unit(value: Any) -> str | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ""
    names = dict(zip(_DIMENSIONS, ("s", "bit/s", "bytes", "packets", "BDP"), strict=True))
    for dimension, name in names.items():
        try:
            units.parse(value, dimension, zero=True, parts=True)
        except ScenarioError:
            continue
        return name
    return "" if base_value(value) is not None else None


def _list(written: Any, *, repeats: bool) -> tuple[Any, ...]:
    if not isinstance(written, list | tuple):
        raise ScenarioError(found=quote(written), allowed="a list of values, or a table with from, to and steps")
    if not 1 <= len(written) <= MOST_VALUES:
        raise ScenarioError(found=f"a list of {len(written)}", allowed=f"1 to {MOST_VALUES} values")
    seen: set[Any] = set()
    for value in written:
        one = _known_by(value)
        if one in seen and not repeats:
            raise ScenarioError(found=f"{quote(value)} twice", allowed="each value once")
        seen.add(one)
    return tuple(written)


def _known_by(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else json.dumps(value, sort_keys=True, default=str)


def _range(written: Mapping[str, Any]) -> list[Any]:
    for key in written:
        if key not in _RANGE_KEYS:
            raise ScenarioError(key=str(key), found="an unknown key", allowed=one_of(str(key), _RANGE_KEYS))
    for key in _RANGE_KEYS[:3]:
        if key not in written:
            raise ScenarioError(key=key, found="nothing", allowed="from, to and steps are required")
    steps, spacing = written["steps"], written.get("spacing", "linear")
    if not isinstance(steps, int) or isinstance(steps, bool) or not 2 <= steps <= MOST_VALUES:
        raise ScenarioError(key="steps", found=quote(steps), allowed=f"a whole number, 2 to {MOST_VALUES}")
    if spacing not in ("linear", "log"):
        raise ScenarioError(key="spacing", found=quote(spacing), allowed='"linear", "log"')
    for key in ("from", "to"):
        value = written[key]
        if isinstance(value, int | float) and value != 0 and not 1e-300 < abs(value) < 1e300:
            raise ScenarioError(key=key, found=quote(value), allowed="0, or 1e-300 to 1e300 with either sign")
    write, low, high = _ends(written["from"], written["to"])
    if low == high:
        raise ScenarioError(key="to", found="the value of from", allowed="another value")
    if spacing == "log":
        if low <= 0 or high <= 0:
            raise ScenarioError(key="from", found="a value that is not above zero", allowed="values above zero")
        ratio = float(high / low)
        inner = [Fraction(float(low) * ratio ** (i / (steps - 1))) for i in range(1, steps - 1)]
    else:
        inner = [low + (high - low) * i / (steps - 1) for i in range(1, steps - 1)]
    values = [write(x) for x in (low, *inner, high)]
    if len(set(values)) < len(values):
        raise ScenarioError(key="steps", found=str(steps), allowed="fewer; neighbours become equal when rounded")
    return values


def _ends(low: Any, high: Any) -> tuple[Any, Fraction, Fraction]:
    """Return the format for values between the ends, and both ends as numbers in base units."""
    numbers = [isinstance(x, int | float) and not isinstance(x, bool) for x in (low, high)]
    if all(numbers):
        if isinstance(low, int) and isinstance(high, int):
            return round, Fraction(low), Fraction(high)
        return (lambda x: float(f"{float(x):.9g}")), Fraction(low), Fraction(high)
    for dimension in _DIMENSIONS:
        try:
            first = units.parse(low, dimension, zero=True, parts=True)[0]
            last = units.parse(high, dimension, zero=True, parts=True)[0]
        except ScenarioError:
            continue
        unit = re.sub(r"^[\s0-9.eE+-]*", "", low).strip()
        return partial(_quantity, dimension, unit), first, last
    if all(isinstance(x, str) and x.strip().endswith("%") for x in (low, high)):
        shares = [Fraction(str(units.parse_share(x))) * 100 for x in (low, high)]
        return (lambda x: f"{_decimal(x)} %"), shares[0], shares[1]
    raise ScenarioError(
        key="from", found=f"{quote(low)} to {quote(high)}", allowed="two numbers, or two quantities of one kind"
    )


def _quantity(dimension: units.Dimension, unit: str, x: Fraction) -> str:
    whole = x if dimension is units.BDP else Fraction(round(x))
    return f"{_decimal(whole / dimension.units[unit])} {unit}"


def _decimal(x: Fraction) -> str:
    text = f"{float(x):.9f}".rstrip("0").rstrip(".")
    return text or "0"


def label(value: Any) -> str:
    """Return an axis value as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        kind = [label(value["kind"])] if "kind" in value else []
        return ", ".join([*kind, *(f"{key} {label(entry)}" for key, entry in value.items() if key != "kind")])
    if isinstance(value, list | tuple):
        return " / ".join(map(label, value))
    return json.dumps(value)
