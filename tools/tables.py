"""Writes python/ackclock/scenario/_tables.pyi, the types of the tables described by the engine, or checks them (--check)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ackclock.scenario import _tables
from ackclock.scenario._base import Table, made, schema

STUB = Path(_tables.__file__).with_suffix(".pyi")
HEAD = '''"""The types of the tables that the engine describes. Written by `make docs`: change the mechanism, not this file.

Length: it is written, and grows with every mechanism.
"""

from typing import Literal, TypeAlias

from ackclock.scenario._base import Table
from ackclock.scenario._parts import FlowsBase, NetworkBase
'''
UNIONS = {
    "Queue": "queues",
    "Loss": "losses",
    "Capacity": "capacities",
    "Workload": "workloads",
    "Distribution": "distributions",
}


def main() -> int:
    text = stub()
    if "--check" in sys.argv[1:]:
        if STUB.exists() and STUB.read_text(encoding="utf-8") == text:
            return 0
        print(f"{STUB.name}: not as the engine says; run `make docs`", file=sys.stderr)
        return 1
    STUB.write_text(text, encoding="utf-8")
    return 0


def stub() -> str:
    tables = [getattr(_tables, name) for name in _tables.__all__]
    lines = [alias(name, members(family)) for name, family in UNIONS.items()]
    listed = "".join(f'    "{name}",\n' for name in sorted(_tables.__all__))
    return (
        HEAD
        + "".join(f"\n{table_class(t)}" for t in tables)
        + "\n"
        + "\n".join(lines)
        + f"\n\n__all__ = [\n{listed}]\n"
    )


def members(family: str) -> str:
    return " | ".join(made[family, entry["kind"]].__name__ for entry in schema()[family])


def alias(name: str, held: str) -> str:
    line = f"{name}: TypeAlias = {held}"
    return line if len(line) <= 120 else f"{name}: TypeAlias = (\n    {held}\n)"


def table_class(table: type[Table]) -> str:
    """A class with its keys as attributes and as arguments."""
    (base,) = table.__bases__
    lines = [f"class {table.__name__}({base.__name__}):", f"    {quoted(table.__doc__ or '', 4)}", ""]
    arguments = []
    for name, key in table.keys.items():
        kind = attribute(key)
        lines.append(entry(name, kind))
        if key["about"]:
            lines.append(f"    {quoted(key['about'], 4)}")
        given = kind if key.get("required") or key["takes"]["takes"] == "kind" else f"{kind} = ..."
        arguments.append(f"        {name}: {given},\n")
    lines.append("    def __init__(\n        self,\n        *,\n" + "".join(arguments) + "    ) -> None: ...")
    return "\n".join(lines) + "\n"


def attribute(key: Mapping[str, Any]) -> str:
    """Type of a key's value."""
    takes = key["takes"]
    if takes["takes"] == "kind":
        return f"Literal[{literal(key['absent'])}]"
    kind = typed(takes)
    optional = not key["required"] and "absent" not in key and takes["takes"] != "options"
    return f"{kind} | None" if optional else kind


def typed(takes: Mapping[str, Any]) -> str:
    """Return the value as written in a Python file."""
    match takes["takes"]:
        case "flag":
            return "bool"
        case "whole":
            return "int"
        case "number" | "above":
            return "float"
        case "share":
            return "float | str"
        case "amount":
            return "str | float"
        case "choice":
            return f"Literal[{', '.join(literal(name) for name in takes['names'])}]"
        case "drawn":
            return members("distributions")
        case "drawn or" | "writes" | "duration or drawn":
            return f"str | {members('distributions')}"
        case "options":
            return "dict[str, bool | float | str]"
        case "one of":
            return members(takes["family"])
        case "table":
            return made[None, takes["table"]].__name__
        case "list":
            return f"tuple[{typed(takes['of'])}, ...]"
        case "list or":
            return f"tuple[{typed(takes['of'])}, ...] | Literal[{literal(takes['word'])}]"
    return "str"


def entry(key: str, kind: str) -> str:
    """Return the text as one line, or as many as the formatter would use."""
    line = f"    {key}: {kind}"
    if len(line) <= 120:
        return line
    inner = f"        {kind}" if len(kind) <= 112 else "        " + kind.replace(" | ", "\n        | ")
    return f"    {key}: (\n{inner}\n    )"


def literal(value: str) -> str:
    return f'"{value}"'


def quoted(text: str, indent: int) -> str:
    pad = "\n" + " " * indent
    lines = text.replace("\n\n", "\n" + pad)
    return f'"""{lines}{pad if pad in lines else ""}"""'


if __name__ == "__main__":
    sys.exit(main())
