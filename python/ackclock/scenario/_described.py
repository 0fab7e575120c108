"""Tables of a scenario, made of what the engine's mechanisms say of themselves (`crates/core/src/schema.rs`).

Name, text, unit, range and default of a key stand beside its mechanism, in Rust; here they become a class that checks and
compiles it. What joins several keys is written by hand, as a base class (`_rules.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Union, get_args

from pydantic import AfterValidator, Field, create_model

from ackclock import units
from ackclock.errors import ScenarioError, UnavailableError, quote
from ackclock.scenario._base import (
    Duration,
    Flag,
    MeanPackets,
    Number,
    PacketLimit,
    Packets,
    PositiveDuration,
    Probability,
    Quantity,
    QueueLimit,
    Rate,
    RateOrZero,
    Table,
    byte_count,
    nanoseconds,
    tagged,
)
from ackclock.scenario._mahimahi import read
from ackclock.scenario.distribution import Distribution, drawable, drawn
from ackclock.units import Dimension

NAMES = {
    ("losses", "none"): "NoLoss",
    ("arrivals", "periodic"): "Regular",
    ("slow starts", "classic"): "ClassicSlowStart",
    ("slow starts", "hystart"): "HyStart",
    ("slow starts", "hystart++"): "HyStartPlusPlus",
    ("slow starts", "search"): "SearchSlowStart",
    ("slow starts", "limited"): "LimitedSlowStart",
}
"""Classes that are not called as their kind is."""


@dataclass(frozen=True, slots=True)
class Takes:
    """What a key takes.

    Parameters
    ----------
    annotation
        Its values in a scenario.
    compiled
        From such a value, the key's name and the bandwidth-delay product in packets to what the engine reads.
    shown
        From what the engine reads to the value in a scenario.
    """

    annotation: Any
    compiled: Callable[[Any, str, Fraction], Any] = lambda value, _key, _bdp: value
    shown: Callable[[Any], Any] = lambda value: value


class Described(Table):
    """A table that a mechanism of the engine describes."""

    takes: ClassVar[Mapping[str, Takes]] = {}

    def engine(self, bdp: Fraction = Fraction(0)) -> dict[str, Any]:
        """As the engine reads it, absent keys left out; `bdp` is the bandwidth-delay product in packets."""
        compiled: dict[str, Any] = {"kind": self.kind} if hasattr(self, "kind") else {}
        for key, takes in self.takes.items():
            value = getattr(self, key)
            if value is not None:
                compiled[key] = takes.compiled(value, key, bdp)
        self.judge(compiled)
        return compiled

    def judge(self, compiled: dict[str, Any]) -> None:
        """Rules that join several keys and need them compiled."""


@cache
def schema() -> dict[str, Any]:
    """What the engine says of each family of tables."""
    from ackclock import _engine

    return _engine.schema()


Rules = Sequence[tuple[Sequence[str], type[Described]]]
"""Keys, and the base class of every table that has all of them."""

made: dict[str, type[Described]] = {}
"""Every class, by name: a table that several keys hold is one class."""


def family(name: str, rules: Rules = ()) -> tuple[type[Described], ...]:
    """The classes of a family, one for each kind.

    Parameters
    ----------
    name
        What the engine's registry calls it.
    rules
        What joins several keys.
    """
    return tuple(
        _made(NAMES.get((name, entry["kind"]), _camel(entry["kind"])), entry, rules, {"kind": entry["kind"]})
        for entry in _of(name)
    )


def single(kind: str, rules: Rules = ()) -> type[Described]:
    """The class of a table that is in no family."""
    entry = next((entry for entry in _of("tables") if entry["kind"] == kind), None)
    if entry is None:
        raise _older(kind)
    return _made(_camel(kind), entry, rules)


def _of(name: str) -> list[Any]:
    if name not in schema():
        raise _older(name)
    found: list[Any] = schema()[name]
    return found


def _older(name: str) -> UnavailableError:
    return UnavailableError(
        f"the compiled engine is older than the Python around it (it does not know {name}); run `make setup`"
    )


def one_of(tables: Sequence[type[Described]]) -> Any:
    """The annotation of a key that holds one of these tables."""
    return Annotated[Union[tuple(tables)], Field(discriminator="kind"), tagged(*tables)]  # noqa: UP007 - made of a list


def _kind(table: type[Described]) -> str | None:
    """The kind that a table stands for."""
    field = table.model_fields.get("kind")
    return None if field is None else str(get_args(field.annotation)[0])


def _camel(kind: str) -> str:
    return "".join(part.capitalize() for part in kind.split("-"))


def _made(name: str, entry: Mapping[str, Any], rules: Rules, kind: Mapping[str, str] | None = None) -> type[Described]:
    if name in made:
        return made[name]
    takes = {key["name"]: _takes(key["takes"], rules) for key in entry["keys"]}
    fields: dict[str, Any] = {key: (Literal[value], ...) for key, value in (kind or {}).items()}
    for key in entry["keys"]:
        annotation = takes[key["name"]].annotation
        if key["required"]:
            fields[key["name"]] = (annotation, Field(description=key["about"]))
        elif "absent" in key:
            default = takes[key["name"]].shown(key["absent"])
            fields[key["name"]] = (annotation, Field(default=default, description=key["about"]))
        else:
            fields[key["name"]] = (annotation | None, Field(default=None, description=key["about"]))
    bases = tuple(base for keys, base in rules if set(keys) <= set(takes))
    create: Any = create_model  # made at run time, so unknown to the type checker
    table: type[Described] = create(
        name,
        __base__=bases or (Described,),
        __module__="ackclock.scenario",
        __doc__=entry["about"],
        **fields,
    )
    table.takes = takes
    made[name] = table
    return table


def _takes(takes: Mapping[str, Any], rules: Rules) -> Takes:
    match takes["takes"]:
        case "flag":
            return Takes(Flag)
        case "whole":
            return Takes(Annotated[int, Number(takes["low"], takes["high"])])
        case "number" | "above":
            above = takes["takes"] == "above"
            low, high = (int(bound) if bound.is_integer() else bound for bound in (takes["low"], takes["high"]))
            return Takes(Annotated[float, Number(low, high, whole=False, above=above)])
        case "share":
            return Takes(Probability, lambda value, _key, _bdp: units.parse_share(value))
        case "duration":
            annotation = PositiveDuration if takes["least"] else Duration
            return Takes(annotation, lambda value, _key, _bdp: nanoseconds(value), _duration)
        case "rate":
            annotation = Rate if takes["least"] else RateOrZero
            return Takes(annotation, lambda value, _key, _bdp: units.whole(value, units.RATE), _rate)
        case "size":
            return Takes(_size(takes["low"], takes["high"]), lambda value, _key, _bdp: byte_count(value), _bytes)
        case "packets":
            return Takes(Packets, lambda value, _key, _bdp: units.whole(value, units.PACKETS), "{} packets".format)
        case "packet limit":
            return Takes(PacketLimit, _packets)
        case "mean packets":
            return Takes(MeanPackets, lambda value, key, bdp: float(packets(value, key, bdp)))
        case "limit":
            return Takes(QueueLimit, _limit)
        case "choice":
            return Takes(Literal[tuple(takes["names"])])
        case "text":
            return Takes(str)
        case "drawn":
            unit = DIMENSIONS[takes["unit"]]
            return Takes(Annotated[Distribution, drawable(unit)], lambda value, _key, _bdp: drawn(value, unit))
        case "drawn or":
            return _drawn_or(DIMENSIONS[takes["unit"]] or units.SIZE, takes["least"])
        case "trace":
            return Takes(Annotated[str, AfterValidator(_readable)], lambda value, _key, _bdp: read(value).counts)
        case "one of":
            members = family(takes["family"], rules)
            return Takes(one_of(members), _engine, lambda value: _of_kind(value["kind"], members))
        case "table":
            table = _made(_camel(takes["table"]["kind"]), takes["table"], rules)
            return Takes(table, _engine)
        case "list":
            return _list(_takes(takes["of"], rules), takes["least"])
    raise AssertionError(takes)


def _list(of: Takes, least: int) -> Takes:
    def compiled(values: Sequence[Any], key: str, bdp: Fraction) -> list[Any]:
        return [of.compiled(value, f"{key}.{i}", bdp) for i, value in enumerate(values)]

    entries: Any = tuple.__class_getitem__((of.annotation, ...))
    annotation = Annotated[entries, Field(min_length=least)] if least else entries
    return Takes(annotation, compiled, lambda values: tuple(map(of.shown, values)))


def _readable(file: str) -> str:
    try:
        read(file)
    except ScenarioError as error:
        raise ScenarioError(found=f"{error.found} in {error.source}", allowed=error.allowed) from None
    return file


def _engine(value: Described, key: str, bdp: Fraction) -> dict[str, Any]:
    try:
        return value.engine(bdp)
    except ScenarioError as error:
        raise error.within(key) from None


def _of_kind(kind: str, members: Iterable[type[Described]]) -> Described:
    """A table of which nothing but its kind is given."""
    return next(table for table in members if _kind(table) == kind).constant(kind=kind)


def _drawn_or(dimension: Dimension, least: int) -> Takes:
    size = dimension is units.SIZE
    value: Any = PositiveDuration if least else Duration
    value = _size(least, units.SIZE.largest) if size else value

    def compiled(value: Any, _key: str, _bdp: Fraction) -> dict[str, Any]:
        if not isinstance(value, str):
            return drawn(value, dimension)
        base, _ = units.parse(value, dimension, zero=least == 0)
        return {"kind": "constant", "value": float(base if size else base / 10**9)}

    def shown(value: Mapping[str, Any]) -> str:
        return _bytes(round(value["value"])) if size else _duration(round(value["value"] * 10**9))

    return Takes(Annotated[value | Distribution, drawable(dimension)], compiled, shown)


DIMENSIONS = {"duration": units.DURATION, "rate": units.RATE, "size": units.SIZE, "share": None}


def _size(low: int, high: int) -> Any:
    if high == units.SIZE.largest:
        return Annotated[str, Quantity((units.SIZE,), zero=low == 0)]
    least, most = (None if low < 1 else _bytes(low)), _bytes(high)
    return Annotated[str, Quantity((units.SIZE,), zero=low == 0, least=least, most=most, example="1448 bytes")]


def _bytes(value: int) -> str:
    return f"{value} byte{'' if value == 1 else 's'}"


def _duration(value: int) -> str:
    """In the largest unit of which it is a whole number."""
    unit, size = next((u, n) for u, n in (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1)) if value % n == 0)
    return f"{value // size} {unit}"


def _rate(value: int) -> str:
    """In the largest unit of which it is a whole number."""
    unit, size = next(
        (u, n) for u, n in (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 1000), ("bit/s", 1)) if value % n == 0
    )
    return f"{value // size} {unit}"


def packets(value: str, key: str, bdp: Fraction) -> Fraction:
    """Packets, which may be given as multiples of the bandwidth-delay product."""
    number, dimension = units.parse(value, units.PACKETS, units.BDP, parts=True)
    if dimension is not units.BDP:
        return number
    if bdp == 0:
        raise ScenarioError(
            key=key,
            found=quote(value),
            allowed="packets or bytes; the path of flow 0 has no delay or no rate to multiply",
        )
    return number * bdp


def _packets(value: str, key: str, bdp: Fraction) -> int:
    number = units.round_half_up(packets(value, key, bdp))
    if not 1 <= number <= units.PACKETS.largest:
        raise ScenarioError(
            key=key,
            found=f"{quote(value)}, which is {'less than half a packet' if number < 1 else f'{number} packets'}",
            allowed=f"1 to {units.PACKETS.largest} packets (1 BDP is {float(bdp):.3g} packets)",
        )
    return number


def _limit(value: str, key: str, bdp: Fraction) -> dict[str, int]:
    number, dimension = units.parse(value, units.PACKETS, units.SIZE, units.BDP)
    if dimension is units.SIZE:
        return {"bytes": units.round_half_up(number)}
    return {"packets": _packets(value, key, bdp)}
