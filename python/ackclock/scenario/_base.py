"""What all tables of a scenario share: frozen, unknown keys refused with the nearest name, errors in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from ackclock import units
from ackclock.errors import ScenarioError, nearest, one_of, quote
from ackclock.units import Dimension


class Table(BaseModel):
    """A table of the scenario file. Values are kept as written; `engine` compiles them."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    # Not visible to the type checker, which shall see the signature that pydantic gives each table.
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
            for key in data:
                if key not in cls.model_fields:
                    near = nearest(str(key), cls.model_fields)
                    hint = f', did you mean "{near}"?' if near else ""
                    raise ScenarioError(
                        key=str(key), found=f"an unknown key{hint}", allowed=", ".join(cls.model_fields)
                    )
        return data

    def written(self) -> dict[str, Any]:
        """The keys that were given, as plain values."""
        return self.model_dump(exclude_unset=True)


def _explain(error: ErrorDetails, data: Mapping[str, Any]) -> ScenarioError:
    """One of pydantic's errors in our words."""
    key = ".".join(_path(error["loc"], data))
    context = error.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, ScenarioError):
        return cause.within(key)
    found = quote(error["input"])
    match error["type"]:
        case "missing":
            return ScenarioError(key=key, found="nothing", allowed="a value; this key is required")
        case "literal_error":
            names = [name.strip("'") for name in str(context["expected"]).replace(" or ", ", ").split(", ")]
            return ScenarioError(key=key, found=found, allowed=one_of(str(error["input"]), names))
        case "int_type" | "int_parsing" | "int_from_float":
            allowed = "a whole number"
        case "bool_type" | "bool_parsing":
            allowed = "true or false"
        case "string_type":
            allowed = "text in quotes"
        case "list_type" | "tuple_type":
            allowed = "a list"
        case "model_type" | "model_attributes_type" | "dict_type":
            allowed = "a table"
        case "too_short":
            allowed = f"at least {context['min_length']} of them"
            found = str(context["actual_length"])
        case "greater_than_equal":
            allowed = f"{context['ge']} or more"
        case "greater_than":
            allowed = f"above {context['gt']}"
        case "less_than_equal":
            allowed = f"at most {context['le']}"
        case "less_than":
            allowed = f"below {context['lt']}"
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
    """Annotation of a text with a unit."""

    dimensions: tuple[Dimension, ...]
    zero: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        names = [unit for d in self.dimensions for unit in d.units]
        return {
            "type": "string",
            "pattern": r"^\s*[+]?[0-9.eE+-]+\s*(" + "|".join(names) + r")\s*$",
            "examples": [d.example for d in self.dimensions],
        }

    def _check(self, value: object) -> object:
        units.parse(value, *self.dimensions, zero=self.zero)
        return value


@dataclass(frozen=True, slots=True)
class Share:
    """Annotation of a probability: a number from 0 to 1 or a percentage."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {
            "anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "pattern": "%"}],
            "examples": ["1 %", 0.01],
        }

    def _check(self, value: object) -> object:
        units.parse_share(value)
        return value


@dataclass(frozen=True, slots=True)
class Registered:
    """Annotation of a name in one of the engine's registries."""

    kind: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "enum": self.names()}

    def names(self) -> list[str]:
        """Every name registered."""
        from ackclock import _engine

        return [name for name, _ in _engine.registry()[self.kind]]

    def _check(self, value: object) -> object:
        names = self.names()
        if value not in names:
            raise ScenarioError(found=quote(value), allowed=one_of(str(value), names))
        return value


Duration = Annotated[str, Quantity((units.DURATION,), zero=True)]
PositiveDuration = Annotated[str, Quantity((units.DURATION,))]
Rate = Annotated[str, Quantity((units.RATE,))]
Size = Annotated[str, Quantity((units.SIZE,))]
SizeOrZero = Annotated[str, Quantity((units.SIZE,), zero=True)]
Packets = Annotated[str, Quantity((units.PACKETS,))]
PacketLimit = Annotated[str, Quantity((units.PACKETS, units.BDP))]
QueueLimit = Annotated[str, Quantity((units.PACKETS, units.SIZE, units.BDP))]
Probability = Annotated[float | str, Share()]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
Flag = Annotated[bool, Field(strict=True)]


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
