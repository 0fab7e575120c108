"""What all tables of a scenario share: frozen, unknown keys refused with the nearest name, errors in one line."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, Union, cast, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from ackclock import units
from ackclock.errors import ScenarioError, nearest, one_of, quote
from ackclock.own import named
from ackclock.units import Dimension

_DEEPEST = 20
"""Tables within tables: deeper than any scenario, and a value of Python's may hold itself."""


def _no_characters(value: Any, deep: int = 0) -> str | None:
    """A text within the value that cannot be written: half of a surrogate pair stands for no character."""
    if isinstance(value, str):
        if value.isascii():
            return None
        try:
            value.encode()
        except UnicodeEncodeError:
            return value
        return None
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple) and deep < _DEEPEST:
        return next((broken for inner in value if (broken := _no_characters(inner, deep + 1)) is not None), None)
    return None


class Table(BaseModel):
    """A table of the scenario file. Values are kept as written; `engine` compiles them."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)

    # Not visible to the type checker, which shall see the signature that pydantic gives each table.
    # keys that people look for here, and where they are
    elsewhere: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:

        def __init__(self, /, **data: Any) -> None:
            try:
                super().__init__(**data)
            except ValidationError as error:
                raise _explain(error.errors()[0], data) from None

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            for key, value in data.items():
                if (broken := _no_characters(value)) is not None:
                    raise ScenarioError(key=str(key), found=quote(broken), allowed="text that UTF-8 can hold")
                if key not in cls.model_fields:
                    near = nearest(str(key), cls.model_fields)
                    hint = f', did you mean "{near}"?' if near else ""
                    if key in cls.elsewhere:
                        hint = f" here, which is said by {cls.elsewhere[key]}"
                    raise ScenarioError(
                        key=str(key), found=f"an unknown key{hint}", allowed=", ".join(cls.model_fields)
                    )
            for key, field in cls.model_fields.items():
                if field.is_required() and key not in data:
                    raise ScenarioError(key=key, found="nothing", allowed=f"{_expected(field)}; this key is required")
        return data

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        made = handler(schema)
        keys = handler.resolve_ref_schema(made)["properties"]
        for base in cls.__mro__:
            for key, text in _docstrings(base).items() if issubclass(base, Table) else ():
                keys[key].setdefault("description", text)
        return made

    @classmethod
    def constant(cls, **keys: Any) -> Self:
        """A table with these keys, unchecked, for defaults: to build the validators takes longer than many a run."""
        return cast("Self", cls.model_construct(**keys))

    def written(self) -> dict[str, Any]:
        """The keys that were given, as plain values."""
        return self.model_dump(exclude_unset=True)


def _docstrings(table: type[Table]) -> dict[str, str]:
    """The texts below the keys of a class, read from its source: only who asks for the JSON Schema pays for that."""
    try:
        (defined,) = ast.parse(textwrap.dedent(inspect.getsource(table))).body
    except (OSError, TypeError):
        return {}  # made at run time, with descriptions
    found = {}
    for key, text in pairwise(cast("ast.ClassDef", defined).body):
        match key, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(value))):
                found[name] = inspect.cleandoc(value)
    return found


def _expected(field: FieldInfo) -> str:
    """What a key takes, for messages."""
    for mark in field.metadata:
        if isinstance(mark, Quantity | Share | Number | Registered):
            return mark.expected()
    kind = field.annotation
    if get_origin(kind) is Literal:
        return ", ".join(f'"{name}"' for name in get_args(kind))
    if get_origin(kind) in (Union, UnionType):
        tables = [table for table in get_args(kind) if hasattr(table, "model_fields")]
        kinds = [get_args(table.model_fields["kind"].annotation)[0] for table in tables if "kind" in table.model_fields]
        if not kinds:
            return "a value, or a table"
        return f'a table with a "kind" ({", ".join(kinds)})'
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        return "a list of tables" if isinstance(inner, type) and issubclass(inner, Table) else "a list"
    return "a table" if isinstance(kind, type) and issubclass(kind, Table) else "text in quotes"


def _explain(error: ErrorDetails, data: Mapping[str, Any]) -> ScenarioError:
    """One of pydantic's errors in our words."""
    key = ".".join(_path(error["loc"], data))
    context = error.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, ScenarioError):
        return cause.within(key)
    found = quote(error["input"])
    match error["type"]:
        case "literal_error":
            names = [name.strip("'") for name in str(context["expected"]).replace(" or ", ", ").split(", ")]
            return ScenarioError(key=key, found=found, allowed=one_of(str(error["input"]), names))
        case "bool_type" | "bool_parsing":
            allowed = "true or false"
        case "string_type":
            allowed = "text in quotes"
        case "list_type" | "tuple_type":
            allowed = "a list"
        case "model_type" | "model_attributes_type" | "dict_type":
            allowed = "a table"
        case "too_short":
            least, actual = context["min_length"], context["actual_length"]
            found = f"a list of {actual}" if actual else "an empty list"
            allowed = f"a list with at least {least} entr{'y' if least == 1 else 'ies'}"
        case _:
            allowed = error["msg"].removeprefix("Input should be ")
    return ScenarioError(key=key, found=found, allowed=allowed)


def _path(loc: Sequence[str | int], data: Any) -> list[str]:
    """Location without the kinds of tagged unions, which are no keys of the file."""
    path: list[str] = []
    here = data
    for part in loc:
        if isinstance(here, Mapping):
            if part not in here and here.get("kind") == part:
                continue
            path.append(str(part))
            here = here.get(part)
        elif isinstance(part, int):
            path.append(str(part))
            here = here[part] if isinstance(here, Sequence) and part < len(here) else None
    return path


def tagged(*tables: type[Table]) -> BeforeValidator:
    """Check of the "kind" of a value that is one of several tables."""
    kinds = [get_args(table.model_fields["kind"].annotation)[0] for table in tables]

    def check(value: Any) -> Any:
        if not isinstance(value, Mapping | Table):
            raise ScenarioError(found=quote(value), allowed='a table with a "kind"')
        if isinstance(value, Mapping) and value.get("kind") not in kinds:
            kind = value.get("kind")
            raise ScenarioError(key="kind", found=quote(kind), allowed=one_of(str(kind), kinds))
        return value

    return BeforeValidator(check)


@dataclass(frozen=True, slots=True)
class Quantity:
    """Annotation of a text with a unit.

    Parameters
    ----------
    dimensions
        What it may be.
    zero, parts
        As in `units.parse`.
    least, most
        Bounds as text, where they are narrower than those of the only dimension.
    example
        How to write one, where the dimension's example would be out of place.
    """

    dimensions: tuple[Dimension, ...]
    zero: bool = False
    parts: bool = False
    least: str | None = None
    most: str | None = None
    example: str | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {
            "type": "string",
            "pattern": units.pattern(*self.dimensions, zero=self.zero),
            "examples": [self.example] if self.example else [d.example for d in self.dimensions],
        }

    def expected(self) -> str:
        """What it takes, for messages."""
        return units.describe(*self.dimensions, zero=self.zero)

    def _check(self, value: object) -> object:
        base, dimension = units.parse(value, *self.dimensions, zero=self.zero, parts=self.parts)
        low = 0 if self.least is None else units.whole(self.least, dimension)
        high = dimension.largest if self.most is None else units.whole(self.most, dimension)
        if not low <= base <= high:
            bounds = f'"{self.least}" to "{self.most}"' if self.least else f'at most "{self.most}"'
            raise ScenarioError(found=quote(value), allowed=bounds)
        return value


@dataclass(frozen=True, slots=True)
class Number:
    """Annotation of a number without a unit.

    Parameters
    ----------
    low, high
        Bounds, both allowed unless `above`.
    whole
        Whether it counts something.
    above
        Whether `low` itself is refused.
    """

    low: float
    high: float
    whole: bool = True
    above: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {
            "type": "integer" if self.whole else "number",
            "exclusiveMinimum" if self.above else "minimum": self.low,
            "maximum": self.high,
        }

    def expected(self) -> str:
        """What it takes, for messages."""
        noun = "a whole number" if self.whole else "a number"
        return f"{noun} above {self.low} and up to {self.high}" if self.above else f"{noun}, {self.low} to {self.high}"

    def _check(self, value: object) -> object:
        kinds = int if self.whole else int | float
        if (
            not isinstance(value, kinds)
            or isinstance(value, bool)
            or not self.low <= value <= self.high
            or (self.above and value == self.low)
        ):
            raise ScenarioError(found=quote(value), allowed=self.expected())
        return value


@dataclass(frozen=True, slots=True)
class Share:
    """Annotation of a probability: a number from 0 to 1 or a percentage."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "string", "pattern": units.SHARE_PATTERN},
            ],
            "examples": ["1 %", 0.01],
        }

    def expected(self) -> str:
        """What it takes, for messages."""
        return units.SHARE

    def _check(self, value: object) -> object:
        units.parse_share(value)
        return value


@dataclass(frozen=True, slots=True)
class Registered:
    """Annotation of a name in one of the engine's registries, or behind `own` of one that the engine does not know.

    Parameters
    ----------
    kind
        Registry.
    own
        What names outside the registry begin with: a user's own, or another backend's.
    files
        Whether `FILE.py:CLASS` names a user's own, too.
    """

    kind: str
    own: tuple[str, ...] = ()
    files: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        known: dict[str, Any] = {"type": "string", "enum": self.names()}
        others = [{"type": "string", "pattern": f"^{prefix}.+"} for prefix in self.own]
        others += [{"type": "string", "pattern": r"^.+\.py:[A-Za-z_]\w*$"}] if self.files else []
        return {"anyOf": [known, *others]} if others else known

    def expected(self) -> str:
        """What it takes, for messages."""
        return ", ".join(self.names())

    def names(self) -> list[str]:
        """Every name registered."""
        return _registered()[self.kind]

    def _check(self, value: object) -> object:
        names = self.names()
        if isinstance(value, str) and value.startswith(self.own) and value not in self.own:
            return value
        if self.files and named(value):
            return value
        if value not in names:
            raise ScenarioError(found=quote(value), allowed=one_of(str(value), names))
        return value


@cache
def _registered() -> dict[str, list[str]]:
    """Names in each of the engine's registries."""
    from ackclock import _engine

    return {kind: [name for name, _ in entries] for kind, entries in _engine.registry().items()}


@dataclass(frozen=True, slots=True)
class Options:
    """Annotation of a table of options, whose names only the engine knows."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {"type": ["boolean", "number", "string"]}}

    def _check(self, value: object) -> object:
        if not isinstance(value, Mapping):
            raise ScenarioError(found=quote(value), allowed="a table of options")
        for key, given in value.items():
            if not isinstance(given, bool | int | float | str) or given != given or abs(_size(given)) > MOST_OPTION:
                raise ScenarioError(key=str(key), found=quote(given), allowed="true, false, a number or text in quotes")
        return dict(value)


MOST_OPTION = 1e15


def _size(given: bool | float | str) -> float:
    return 0.0 if isinstance(given, str) else given


Duration = Annotated[str, Quantity((units.DURATION,), zero=True)]
PositiveDuration = Annotated[str, Quantity((units.DURATION,))]
Rate = Annotated[str, Quantity((units.RATE,))]
RateOrZero = Annotated[str, Quantity((units.RATE,), zero=True)]
Size = Annotated[str, Quantity((units.SIZE,))]
Framing = Annotated[str, Quantity((units.SIZE,), zero=True, most="65535 bytes", example="14 bytes")]
Packets = Annotated[str, Quantity((units.PACKETS,))]
PacketLimit = Annotated[str, Quantity((units.PACKETS, units.BDP))]
MeanPackets = Annotated[str, Quantity((units.PACKETS, units.BDP), parts=True)]
QueueLimit = Annotated[str, Quantity((units.PACKETS, units.SIZE, units.BDP))]
Probability = Annotated[float | str, Share()]
Count = Annotated[int, Number(1, 1_000_000)]
Positive = Annotated[float, Number(0, 1_000_000, whole=False, above=True)]
Flag = Annotated[bool, Strict()]


def nanoseconds(value: str) -> int:
    """Compile a duration."""
    return units.whole(value, units.DURATION)


def bits_per_second(value: str) -> int:
    """Compile a rate."""
    return units.whole(value, units.RATE)


def byte_count(value: str) -> int:
    """Compile a size."""
    return units.whole(value, units.SIZE)


def without_none(**values: Any) -> dict[str, Any]:
    """The values that are set; the engine has its own defaults for the rest."""
    return {name: value for name, value in values.items() if value is not None}
