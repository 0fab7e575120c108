"""Quantities with their unit written out: "1.2 Mbit/s", "25 ms", "64 KiB", "100 packets", "1.5 BDP", "1 %".

The engine reads them (`crates/schema/src/quantity.rs`): exactly, as fractions, and rounded once, to whole nanoseconds, bits per second
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
        What the engine calls it.
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
"""Base units: nanoseconds, bits per second, bytes, packets, and the bandwidth-delay product of flow 0's path."""

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
    numerator, denominator, _, name = _read(value, dimensions, zero=zero, parts=parts)
    return Fraction(numerator, denominator), _DIMENSIONS[name]


def _read(
    value: object, dimensions: tuple[Dimension, ...], *, zero: bool, parts: bool = False
) -> tuple[int, int, int, str]:
    """Numerator, denominator, the nearest whole number and the kind."""
    try:
        return _engine.quantity(value, [dimension.name for dimension in dimensions], zero, parts)
    except _engine.Refusal as refusal:
        raise _refused(refusal) from None
    except UnicodeEncodeError:  # half of a surrogate pair is not a character
        raise ScenarioError(found=quote(value), allowed=describe(*dimensions, zero=zero)) from None


def _refused(refusal: _engine.Refusal) -> ScenarioError:
    _, found, allowed = refusal.args
    return ScenarioError(found=found, allowed=allowed)


def describe(*dimensions: Dimension, zero: bool = False) -> str:
    """Values that `parse` takes, for messages."""
    return _engine.describe_quantity([dimension.name for dimension in dimensions], zero)


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
    """A quantity in whole base units, rounded to the nearest, halves up."""
    return _read(value, (dimension,), zero=True)[2]


SHARE = 'a number from 0 to 1 without quotes, or "0 %" to "100 %"'
"""Values that `parse_share` takes, for messages."""


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
    try:
        return _engine.read_share(value)
    except _engine.Refusal as refusal:
        raise _refused(refusal) from None
    except UnicodeEncodeError:
        raise ScenarioError(found=quote(value), allowed=SHARE) from None
