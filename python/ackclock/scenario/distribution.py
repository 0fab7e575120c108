"""Distributions to draw from; the key that holds one says what it measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator

from ackclock import units
from ackclock.errors import ScenarioError, one_of, quote
from ackclock.scenario._base import Positive, Quantity, Table, tagged
from ackclock.units import Dimension


class _AnyQuantity(Quantity):
    """A duration, rate, size or probability: the key that holds the distribution says which."""

    def _check(self, value: object) -> object:
        return value

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {
            "anyOf": [
                {"type": "string", "pattern": r"^\s*(?:\+?[0-9]|-0)"},
                {"type": "number", "minimum": 0, "maximum": 1},
            ]
        }

    def expected(self) -> str:
        return "an amount with its unit written out"


Amount = Annotated[str | float, _AnyQuantity(())]


class Constant(Table):
    """Always the same value."""

    kind: Literal["constant"]
    value: Amount
    """The value with its unit; a probability may be a bare number."""


class Uniform(Table):
    """Uniform distribution between two values."""

    kind: Literal["uniform"]
    low: Amount
    """Minimum, with its unit; a probability may be a bare number."""
    high: Amount
    """Maximum, with its unit; a probability may be a bare number."""


class Lognormal(Table):
    """Lognormal distribution."""

    kind: Literal["lognormal"]
    median: Amount
    """Median, with its unit; a probability may be a bare number."""
    sigma: Positive
    """Standard deviation of the natural logarithm."""


class Exponential(Table):
    """Exponential distribution."""

    kind: Literal["exponential"]
    mean: Amount
    """Mean, with its unit; a probability may be a bare number."""


class Choice(Table):
    """One of several values, all equally likely."""

    kind: Literal["choice"]
    values: Annotated[tuple[Amount, ...], Field(min_length=1)]
    """The values with their units; probabilities may be bare numbers."""


Distribution = Annotated[
    Constant | Uniform | Lognormal | Exponential | Choice,
    Field(discriminator="kind"),
    tagged(Constant, Uniform, Lognormal, Exponential, Choice),
]


def drawn(distribution: Table, dimension: Dimension | None, *, zero: bool = False) -> dict[str, Any]:
    """A distribution as the engine reads it, of values that may be `zero` or not; errors name its key."""

    def number(name: str, value: object) -> float:
        try:
            if dimension is None:
                return units.parse_share(value)
            base, _ = units.parse(value, dimension, zero=zero, parts=True)
            return float(base / (10**9 if dimension is units.DURATION else 1))
        except ScenarioError as error:
            raise error.within(name) from None

    result: dict[str, Any] = {}
    for name, value in distribution:
        if name == "values":
            result[name] = [number(f"values.{i}", v) for i, v in enumerate(value)]
        else:
            result[name] = value if name in ("kind", "sigma") else number(name, value)
    if result["kind"] == "uniform" and result["low"] > result["high"]:
        raise ScenarioError(key="low", found=quote(distribution.written()["low"]), allowed="a value not above high")
    return result


def drawable(dimension: Dimension | None, *, zero: bool = False) -> WrapValidator:
    """Check of a value that may be a distribution of this dimension; None: of probabilities."""

    def check(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        if isinstance(value, Mapping):  # ahead of the union, whose own words name each of its members
            kind = value.get("kind")
            table = KINDS.get(kind) if isinstance(kind, str) else None
            if table is None:
                raise ScenarioError(key="kind", found=quote(kind), allowed=one_of(str(kind), list(KINDS)))
            value = table(**{str(key): part for key, part in value.items()})
        made = handler(value)
        if isinstance(made, Table):
            drawn(made, dimension, zero=zero)
        return made

    return WrapValidator(check)


KINDS: Mapping[str, type[Table]] = {
    "constant": Constant, "uniform": Uniform, "lognormal": Lognormal, "exponential": Exponential, "choice": Choice,
}  # fmt: skip

Durations = Annotated[Distribution, drawable(units.DURATION)]
Rates = Annotated[Distribution, drawable(units.RATE)]
Shares = Annotated[Distribution, drawable(None)]
