"""Quantities with their unit written out: "1.2 Mbit/s", "25 ms", "64 KiB", "100 packets", "1.5 BDP", "1 %".

Text is parsed exactly (as fractions) and rounded once, to the whole nanoseconds, bits per second and bytes of the
engine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

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
        An example of a quantity.
    largest
        Maximum value that the engine accepts, in base units.
    shown
        The same as text.
    indivisible
        Whether there is no part of a base unit: half a packet is refused, half a nanosecond is rounded.
    """

    noun: str
    units: Mapping[str, Fraction]
    example: str
    largest: int
    shown: str
    indivisible: bool = False


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
    indivisible=True,
)
"""Base unit: bytes."""

PACKETS = Dimension(
    noun="a number of packets",
    units={"packet": Fraction(1), "packets": Fraction(1)},
    example="100 packets",
    largest=10**9,
    shown="1000000000 packets",
    indivisible=True,
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
_OVERLONG = re.compile(r"\s*([+-]?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?\s*(\D\S*)?\s*", re.ASCII)


def parse(value: object, *dimensions: Dimension, zero: bool = False, parts: bool = False) -> tuple[Fraction, Dimension]:
    """Read a quantity.

    Parameters
    ----------
    value
        Text such as "25 ms".
    dimensions
        Allowed kinds of quantity.
    zero
        Whether zero is allowed. Negative values never are.
    parts
        Whether fractions of a packet or byte are allowed, as in a mean.

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
    if isinstance(value, str):
        return _parse(value, dimensions, zero, parts)
    without = " without a unit" if _is_number(value) else ""
    raise ScenarioError(found=quote(value) + without, allowed=describe(*dimensions, zero=zero))


@lru_cache(maxsize=4096)  # the cells of a grid have most of their values in common
def _parse(value: str, dimensions: tuple[Dimension, ...], zero: bool, parts: bool) -> tuple[Fraction, Dimension]:
    match = _QUANTITY.fullmatch(value)
    if match is None or match[2] is None:
        without = " without a unit" if _is_number(value) else ""
        if not without:
            _refuse_overlong(value, dimensions)
        raise ScenarioError(found=quote(value) + without, allowed=describe(*dimensions, zero=zero))
    number, unit = Fraction(match[1]), match[2]
    for dimension in dimensions:
        factor = dimension.units.get(unit)
        if factor is None:
            continue
        result = number * factor
        if result < 0 or (result == 0 and not zero):
            raise ScenarioError(found=quote(value), allowed=describe(*dimensions, zero=zero))
        if result > dimension.largest:
            raise _too_large(value, dimension)
        if dimension.indivisible and not parts and factor == 1 and result.denominator != 1:
            base = unit if unit.endswith("s") else f"{unit}s" if unit != "B" else "bytes"
            raise ScenarioError(found=quote(value), allowed=f"{dimension.noun} in whole {base}")
        if 0 < result < Fraction(1, 2) and dimension is not BDP:
            raise _too_small(value, dimension)
        return result, dimension
    units = [unit for d in dimensions for unit in d.units]
    near = nearest(unit, units)
    hint = f'; did you mean "{near}"?' if near else ""
    raise ScenarioError(
        found=f"{quote(value)} with the unit {quote(unit)}{hint}", allowed=describe(*dimensions, zero=zero)
    )


def describe(*dimensions: Dimension, zero: bool = False) -> str:
    """What `parse` takes, for messages."""
    *nouns, last = (d.noun for d in dimensions)
    kinds = f"{', '.join(nouns)} or {last}" if nouns else last
    sign = "" if zero else " above zero"
    examples = ", ".join(f'"{d.example}"' for d in dimensions)
    units = ", ".join(unit for d in dimensions for unit in d.units)
    return f"{kinds}{sign} with its unit written out, e.g. {examples} (units: {units})"


NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?"
"""Regular expression (ECMA 262) of a number without its sign."""


def pattern(*dimensions: Dimension, zero: bool = False) -> str:
    """Regular expression (ECMA 262) of a number and a unit, short enough to be read in an editor; `parse` knows the bounds."""
    names = "|".join(re.escape(name) for d in dimensions for name in d.units)
    above_zero = "" if zero else r"(?=[0.]*[1-9])"
    sign = r"(?:\+?|-(?=[0.]*[^0-9.]))" if zero else r"\+?"
    return rf"^\s*{sign}{above_zero}{NUMBER}\s*(?:{names})\s*$"


SHARE_PATTERN = r"^\s*\+?(?:0*100(?:\.0+)?|0*[0-9]{1,2}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?|-0+(?:\.0+)?)\s*%\s*$"
"""Regular expression (ECMA 262) of percentages; `parse_share` knows what those with an exponent come to."""


def whole(value: object, dimension: Dimension) -> int:
    """A quantity in whole base units, rounded to the nearest."""
    return _whole(value, dimension) if isinstance(value, str) else round_half_up(parse(value, dimension, zero=True)[0])


@lru_cache(maxsize=4096)
def _whole(value: str, dimension: Dimension) -> int:
    return round_half_up(_parse(value, (dimension,), True, False)[0])


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
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value)
        if match is None or match[2] != "%":
            without = " without a unit" if _is_number(value) else ""
            raise ScenarioError(found=quote(value) + without, allowed=SHARE)
        share = Fraction(match[1]) / 100
    elif isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        share = Fraction(value) if abs(value) <= 1 else Fraction(2)
    else:
        raise ScenarioError(found=quote(value), allowed=SHARE)
    if not 0 <= share <= 1:
        raise ScenarioError(found=quote(value), allowed=SHARE)
    return float(share)


SHARE = 'a number from 0 to 1 without quotes, or "0 %" to "100 %"'
"""What `parse_share` takes, for messages."""


def _refuse_overlong(text: str, dimensions: tuple[Dimension, ...]) -> None:
    """Tell why a number is refused that has more digits than are read."""
    match = _OVERLONG.fullmatch(text)
    if match is None:
        return
    sign, whole, fraction, exponent, unit = match.groups()
    dimension = next((d for d in dimensions if unit in d.units), None)
    figures = whole + (fraction or "")
    if dimension is None or sign == "-" or not figures.strip("0"):
        return
    # Power of ten of the first figure that counts; an exponent of many digits says enough by its sign.
    power = len(whole) - 1 - (len(figures) - len(figures.lstrip("0")))
    if exponent is not None:
        far = len(exponent.lstrip("+-0")) > 9
        power += (-(10**9) if exponent.startswith("-") else 10**9) if far else int(exponent)
    if power > 18:
        raise _too_large(text, dimension)
    if power < -18:
        raise _too_small(text, dimension)
    raise ScenarioError(
        found=quote(text),
        allowed=f"{dimension.noun} with at most 18 digits before and after the point and an exponent of at most two",
    )


def _too_large(value: object, dimension: Dimension) -> ScenarioError:
    return ScenarioError(
        found=f"{quote(value)}, which is too large", allowed=f"{dimension.noun} of at most {dimension.shown}"
    )


def _too_small(value: object, dimension: Dimension) -> ScenarioError:
    return ScenarioError(
        found=f"{quote(value)}, which is too small",
        allowed=f"{dimension.noun} of at least 1 {next(iter(dimension.units))}",
    )


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value)
        return match is not None and match[2] is None
    return isinstance(value, int | float) and not isinstance(value, bool)
