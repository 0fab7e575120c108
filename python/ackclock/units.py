"""Quantities with their unit written out: "1.2 Mbit/s", "25 ms", "64 KiB", "100 packets", "1.5 BDP", "1 %".

The engine parses them (`crates/schema/src/quantity.rs`) exactly, as fractions, and rounds once, to whole nanoseconds, bits per second
and bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ackclock import _engine
from ackclock.errors import ScenarioError, quote

__all__ = ["BDP", "DURATION", "PACKETS", "RATE", "SIZE", "Dimension", "parse", "parse_share"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Dimension:
    """A kind of quantity.

    Parameters
    ----------
    name
        Name in the engine.
    noun
        Noun with its article, for messages.
    units
        Unit -> number of base units.
    example
        Example of a quantity.
    largest
        Maximum value that the engine accepts, in base units.
    shown
        The maximum as text.
    indivisible
        Whether fractions of a base unit are refused: half a packet is, while half a nanosecond is rounded.
    """

    name: str
    noun: str
    units: Mapping[str, Fraction]
    example: str
    largest: int
    shown: str
    indivisible: bool = False


DURATION, RATE, SIZE, PACKETS, BDP = (
    Dimension(
        name=name,
        noun=noun,
        units={unit: Fraction(factor) for unit, factor in held},
        example=example,
        largest=largest,
        shown=shown,
        indivisible=indivisible,
    )
    for name, noun, held, example, largest, shown, indivisible in _engine.dimensions()
)
"""Kinds of quantities. Their base units are nanoseconds, bits per second, bytes, packets, and the bandwidth-delay product of flow 0's path."""

_DIMENSIONS = {dimension.name: dimension for dimension in (DURATION, RATE, SIZE, PACKETS, BDP)}


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
        The value in base units, and its dimension.

    Raises
    ------
    ScenarioError
        If the value is not such a quantity; the error has an empty key.

    Examples
    --------
    >>> parse("1.2 Mbit/s", RATE)[0]
    Fraction(1200000, 1)
    """
    numerator, denominator, _, name = _read(value, dimensions, zero=zero, parts=parts)
    return Fraction(numerator, denominator), _DIMENSIONS[name]


def _read(
    value: object, dimensions: tuple[Dimension, ...], *, zero: bool, parts: bool = False
) -> tuple[int, int, int, str]:
    """Return the numerator, the denominator, the nearest whole number and the kind."""
    try:
        return _engine.quantity(value, [dimension.name for dimension in dimensions], zero, parts)
    except _engine.Refusal as refusal:
        raise _refused(refusal) from None
    except UnicodeEncodeError:  # an unpaired surrogate is not a character
        raise ScenarioError(found=quote(value), allowed=describe(*dimensions, zero=zero)) from None


def _refused(refusal: _engine.Refusal) -> ScenarioError:
    _, found, allowed = refusal.args
    return ScenarioError(found=found, allowed=allowed)


def describe(*dimensions: Dimension, zero: bool = False) -> str:
    """Return a description of the values accepted by `parse`, for messages."""
    return _engine.describe_quantity([dimension.name for dimension in dimensions], zero)


NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?"
"""Regular expression (ECMA 262) of a number without its sign."""


def pattern(*dimensions: Dimension, zero: bool = False) -> str:
    """Return a regular expression (ECMA 262) for a number and a unit, short enough to be read in an editor. It does not check the bounds, unlike `parse`."""
    names = "|".join(re.escape(name) for d in dimensions for name in d.units)
    above_zero = "" if zero else r"(?=[0.]*[1-9])"
    sign = r"(?:\+?|-(?=[0.]*[^0-9.]))" if zero else r"\+?"
    return rf"^\s*{sign}{above_zero}{NUMBER}\s*(?:{names})\s*$"


SHARE_PATTERN = r"^\s*\+?(?:0*100(?:\.0+)?|0*[0-9]{1,2}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?|-0+(?:\.0+)?)\s*%\s*$"
"""Regular expression (ECMA 262) of percentages. It does not check the value of those with an exponent, unlike `parse_share`."""


def whole(value: object, dimension: Dimension) -> int:
    """Return a quantity in whole base units, rounded to the nearest, halves up."""
    return _read(value, (dimension,), zero=True)[2]


SHARE = 'a number from 0 to 1 without quotes, or "0 %" to "100 %"'
"""Values accepted by `parse_share`, for messages."""


def parse_share(value: object) -> float:
    """Read a probability or fraction: a number from 0 to 1, or a percentage as text.

    Raises
    ------
    ScenarioError
        If the value is not a fraction; the error has an empty key.

    Examples
    --------
    >>> parse_share("1 %"), parse_share(0.25)
    (0.01, 0.25)
    """
    try:
        return _engine.read_share(value)
    except _engine.Refusal as refusal:
        raise _refused(refusal) from None
    except UnicodeEncodeError:
        raise ScenarioError(found=quote(value), allowed=SHARE) from None
