"""JSON Schema of a scenario file (2020-12), generated from the engine's description of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ackclock import _engine, units
from ackclock.scenario._base import Table, made, schema

ABOUT = (
    "A network, its hosts and flows, and what to record. The schema has every key and the form of its value. `ackclock run` "
    "also checks what a schema cannot express: the exact range and unit of each quantity (smss, for instance, is 64 to "
    "65000 bytes), and rules that involve several keys."
)
EXAMPLES = {65_535: "14 bytes"}
"""Upper bound of a size -> example that replaces the usual one. A framing is a 16-bit number."""
OWN = r"^.+(\.py:[A-Za-z_]\w*|\.c|\.rs)$"
"""Regular expression (ECMA 262) that matches a class in a file, or a C or Rust file."""


def json_schema(scenario: type[Table]) -> dict[str, Any]:
    """Return the schema of scenarios, with all tables that a scenario may contain."""
    tables = sorted((table for table in made.values() if table is not scenario), key=lambda table: table.__name__)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:ackclock:scenario",
        "$defs": {table.__name__: of_table(table) for table in tables},
        **of_table(scenario),
        "description": ABOUT,
    }


def of_table(table: type[Table]) -> dict[str, Any]:
    """Return the schema of one table."""
    required = [name for name, key in table.keys.items() if key.get("required") or key["takes"]["takes"] == "kind"]
    return {
        "additionalProperties": False,
        "description": (table.__doc__ or "").strip(),
        "properties": {name: of_key(key) for name, key in table.keys.items()},
        **({"required": required} if required else {}),
        "title": table.__name__,
        "type": "object",
    }


def of_key(key: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a key's value."""
    takes, title = key["takes"], key["name"].replace("_", " ").title()
    if takes["takes"] == "kind":
        return {"const": key["absent"], "title": title, "type": "string"}
    value = of_value(takes)
    if not key["required"] and "absent" not in key and takes["takes"] != "options":
        value = {"anyOf": [value, {"type": "null"}], "default": None}
    elif "absent" in key:
        value["default"] = key["absent"]
    value["description"] = key["about"]
    return value if "$ref" in value or {"$ref"} & set(value.get("anyOf", [{}])[0]) else {**value, "title": title}


def of_value(takes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the values accepted by a key."""
    match takes["takes"]:
        case "flag":
            return {"type": "boolean"}
        case "whole":
            return {"type": "integer", "minimum": takes["low"], "maximum": takes["high"]}
        case "number" | "above" as kind:
            low, high = (int(bound) if bound.is_integer() else bound for bound in (takes["low"], takes["high"]))
            return {"type": "number", "exclusiveMinimum" if kind == "above" else "minimum": low, "maximum": high}
        case "share":
            percentage = {"type": "string", "pattern": units.SHARE_PATTERN}
            return {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, percentage], "examples": ["1 %", 0.01]}
        case "duration":
            return quantity(units.DURATION, zero=takes["least"] == 0)
        case "rate":
            return quantity(units.RATE, zero=takes["least"] == 0)
        case "size":
            whole = takes["high"] == units.SIZE.largest
            example = None if whole else EXAMPLES.get(takes["high"], "1448 bytes")
            return quantity(units.SIZE, zero=takes["low"] == 0, example=example)
        case "packets":
            return quantity(units.PACKETS)
        case "packet limit" | "mean packets":
            return quantity(units.PACKETS, units.BDP)
        case "limit":
            return quantity(units.PACKETS, units.SIZE, units.BDP)
        case "label":
            return {"type": "string", "minLength": 1, "maxLength": takes["most"]}
        case "named":
            return names(takes)
        case "choice":
            return {"enum": takes["names"], "type": "string"}
        case "amount":
            text = {"type": "string", "pattern": r"^\s*(?:\+?[0-9]|-0)"}
            return {"anyOf": [text, {"type": "number", "minimum": 0, "maximum": 1}]}
        case "drawn":
            return kinds("distributions")
        case "drawn or" | "duration or drawn" as kind:
            size = takes.get("unit") == "size"
            one = quantity(units.SIZE if size else units.DURATION, zero=kind != "drawn or" or takes["least"] == 0)
            return {"anyOf": [one, kinds("distributions")]}
        case "writes":
            several = {"type": "string", "pattern": r"^\s*[0-9]+ x .+$"}
            return {"anyOf": [quantity(units.SIZE, zero=False), several, kinds("distributions")]}
        case "options":
            return {"type": "object", "additionalProperties": {"type": ["boolean", "number", "string"]}}
        case "one of":
            return kinds(takes["family"])
        case "table":
            return reference(made[None, takes["table"]])
        case "list":
            least = {"minItems": takes["least"]} if takes["least"] else {}
            return {"type": "array", "items": of_value(takes["of"]), **least}
        case "list or":
            listed = {"type": "array", "items": of_value(takes["of"])}
            return {"anyOf": [listed, {"const": takes["word"], "type": "string"}]}
    return {"type": "string"}


def reference(table: type[Table]) -> dict[str, Any]:
    """Return a reference to another table."""
    return {"$ref": f"#/$defs/{table.__name__}"}


def kinds(family: str) -> dict[str, Any]:
    """Return the schema of a family's table, which is selected by its kind."""
    found = {entry["kind"]: reference(made[family, entry["kind"]]) for entry in schema()[family]}
    mapping = {kind: found[kind]["$ref"] for kind in sorted(found)}
    return {"discriminator": {"mapping": mapping, "propertyName": "kind"}, "oneOf": list(found.values())}


def names(takes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a registered name, or of a name in another form."""
    known = {"type": "string", "enum": registered(takes["registry"])}
    others = [f"^{pattern}$" for pattern in takes["others"]] + ([OWN] if takes["files"] else [])
    return {"anyOf": [known, *({"type": "string", "pattern": one} for one in others)]} if others else known


def registered(kind: str) -> list[str]:
    """Return every name in one of the engine's registries."""
    return [name for name, _ in _engine.registry()[kind]]


def quantity(*dimensions: units.Dimension, zero: bool = False, example: str | None = None) -> dict[str, Any]:
    """Return the schema of a value written as text with a unit."""
    examples: Iterable[str] = [example] if example else (dimension.example for dimension in dimensions)
    return {"type": "string", "pattern": units.pattern(*dimensions, zero=zero), "examples": list(examples)}
