"""Quantities with their unit written out: "1.2 Mbit/s", "25 ms", "64 KiB", "100 packets", "1.5 BDP", "1 %".

Text is parsed exactly (as fractions) and rounded once, to the whole nanoseconds, bits per second and bytes of the
engine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ackclock.errors import ScenarioError, nearest, quote

__all__ = ["BDP", "DURATION", "PACKETS", "RATE", "SIZE", "Dimension", "parse", "parse_share"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Dimension:
    """A kind of quantity.

    Parameters
    ----------
    noun
        With its article, for messages.
    units
        Unit -> how many base units it is.
    example
        How to write one.
    largest
        Greatest value that the engine computes with, in base units.
    shown
        The same as text.
    """

    noun: str
    units: Mapping[str, Fraction]
    example: str
    largest: int
    shown: str


DURATION = Dimension(
    noun="a duration",
    units={
        "ns": Fraction(1),
        "us": Fraction(10**3),
        "µs": Fraction(10**3),
        "ms": Fraction(10**6),
        "s": Fraction(10**9),
        "min": Fraction(60 * 10**9),
        "h": Fraction(3600 * 10**9),
    },
    example="25 ms",
    largest=1000 * 3600 * 10**9,
    shown="1000 h",
)
"""Base unit: nanoseconds."""

RATE = Dimension(
    noun="a rate",
    units={
        "bit/s": Fraction(1),
        "kbit/s": Fraction(10**3),
        "Mbit/s": Fraction(10**6),
        "Gbit/s": Fraction(10**9),
        "Tbit/s": Fraction(10**12),
    },
    example="1.2 Mbit/s",
    largest=10**14,
    shown="100 Tbit/s",
)
"""Base unit: bits per second."""

SIZE = Dimension(
    noun="a size",
    units={
        "byte": Fraction(1),
        "bytes": Fraction(1),
        "B": Fraction(1),
        "KB": Fraction(10**3),
        "kB": Fraction(10**3),
        "MB": Fraction(10**6),
        "GB": Fraction(10**9),
        "KiB": Fraction(2**10),
        "MiB": Fraction(2**20),
        "GiB": Fraction(2**30),
    },
    example="64 KiB",
    largest=10**15,
    shown="1000000 GB",
)
"""Base unit: bytes."""

PACKETS = Dimension(
    noun="a number of packets",
    units={"packet": Fraction(1), "packets": Fraction(1)},
    example="100 packets",
    largest=10**9,
    shown="1000000000 packets",
)
"""Base unit: packets."""

BDP = Dimension(
    noun="a multiple of the bandwidth-delay product",
    units={"BDP": Fraction(1)},
    example="1.5 BDP",
    largest=10**6,
    shown="1000000 BDP",
)
"""Base unit: the bandwidth-delay product of flow 0's path."""

# Few digits and a short exponent: a hostile "1e999999999" must not become a number with as many digits.
_QUANTITY = re.compile(r"\s*([+-]?\d{1,18}(?:\.\d{1,18})?(?:[eE][+-]?\d{1,2})?)\s*(\D\S*)?\s*", re.ASCII)


def parse(value: object, *dimensions: Dimension, zero: bool = False) -> tuple[Fraction, Dimension]:
    """Read a quantity.

    Parameters
    ----------
    value
        Text such as "25 ms".
    dimensions
        What it may be.
    zero
        Whether zero is allowed. Negative values never are.

    Returns
    -------
    tuple of Fraction and Dimension
        The value in base units, and which of the dimensions it is.

    Raises
    ------
    ScenarioError
        With an empty key.

    Examples
    --------
    >>> parse("1.2 Mbit/s", RATE)[0]
    Fraction(1200000, 1)
    """
    *nouns, last = (d.noun for d in dimensions)
    allowed = f"{', '.join(nouns)} or {last}" if nouns else last
    allowed += " with its unit written out" if zero else " above zero with its unit written out"
    units = [unit for d in dimensions for unit in d.units]
    examples = ", ".join(f'"{d.example}"' for d in dimensions)
    allowed += f", e.g. {examples} (units: {', '.join(units)})"
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] is None:
        raise ScenarioError(found=quote(value) + (" without a unit" if _is_number(value) else ""), allowed=allowed)
    number, unit = Fraction(match[1]), match[2]
    for dimension in dimensions:
        factor = dimension.units.get(unit)
        if factor is None:
            continue
        result = number * factor
        if result < 0 or (result == 0 and not zero):
            raise ScenarioError(found=quote(value), allowed=allowed)
        if result > dimension.largest:
            raise ScenarioError(found=quote(value), allowed=f"{dimension.noun} of at most {dimension.shown}")
        if 0 < result < Fraction(1, 2) and dimension is not BDP:
            raise ScenarioError(
                found=quote(value), allowed=f"{dimension.noun} of at least 1 {next(iter(dimension.units))}"
            )
        return result, dimension
    near = nearest(unit, units)
    hint = f'; did you mean "{near}"?' if near else ""
    raise ScenarioError(found=f"{quote(value)} with the unit {quote(unit)}{hint}", allowed=allowed)


def whole(value: object, dimension: Dimension) -> int:
    """A quantity in whole base units, rounded to the nearest."""
    return round_half_up(parse(value, dimension, zero=True)[0])


def round_half_up(value: Fraction) -> int:
    """Nearest whole number, halves away from zero (positive values only)."""
    return int(value + Fraction(1, 2))


def parse_share(value: object) -> float:
    """Read a probability or share: 0 to 1 as a number, or a percentage as text.

    Raises
    ------
    ScenarioError
        With an empty key.

    Examples
    --------
    >>> parse_share("1 %"), parse_share(0.25)
    (0.01, 0.25)
    """
    error = ScenarioError(found=quote(value), allowed='0 to 1, or "0 %" to "100 %"')
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value)
        if match is None or match[2] not in (None, "%"):
            raise error
        share = Fraction(match[1]) / (100 if match[2] else 1)
    elif isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        share = Fraction(value) if abs(value) <= 1 else Fraction(2)
    else:
        raise error
    if not 0 <= share <= 1:
        raise error
    return float(share)


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value)
        return match is not None and match[2] is None
    return isinstance(value, int | float) and not isinstance(value, bool)
