"""Writes python/ackclock/scenario/_tables.pyi, the types of the tables that the engine describes, or checks them (--check)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

from ackclock.scenario import _tables
from ackclock.scenario._base import Table
from ackclock.scenario._described import Described

STUB = Path(_tables.__file__).with_suffix(".pyi")
HEAD = '''"""The types of the tables that the engine describes. Written by `make docs`: change the mechanism, not this file.

Length: it is written, and grows with every mechanism.
"""

from typing import Literal, TypeAlias

from ackclock.scenario import _rules
from ackclock.scenario._described import Described
from ackclock.scenario.distribution import Choice, Constant, Exponential, Lognormal, Uniform
'''


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
    unions = {
        name: get_args(get_args(value)[0])
        for name, value in vars(_tables).items()
        if name[0].isupper() and not isinstance(value, type)
    }
    lines = [alias(name, " | ".join(t.__name__ for t in members)) for name, members in unions.items()]
    listed = "".join(f'    "{name}",\n' for name in sorted(_tables.__all__))
    return (
        HEAD
        + "".join(f"\n{table_class(t)}" for t in tables)
        + "\n"
        + "\n".join(lines)
        + f"\n\n__all__ = [\n{listed}]\n"
    )


def alias(name: str, members: str) -> str:
    line = f"{name}: TypeAlias = {members}"
    return line if len(line) <= 120 else f"{name}: TypeAlias = (\n    {members}\n)"


def table_class(table: type[Described]) -> str:
    bases = ", ".join(base.__name__ if base is Described else f"_rules.{base.__name__}" for base in table.__bases__)
    lines = [f"class {table.__name__}({bases}):", f"    {quoted(table.__doc__ or '', 4)}", ""]
    for key, field in table.model_fields.items():
        kind = typed(field.annotation)
        default = "" if field.is_required() else f" = {literal(field.default)}"
        lines.append(entry(key, kind, default))
        if field.description:
            lines.append(f"    {quoted(field.description, 4)}")
    return "\n".join(lines) + "\n"


def entry(key: str, kind: str, default: str) -> str:
    """One line, or as many as the formatter would make of it."""
    line = f"    {key}: {kind}{default}"
    if len(line) <= 120:
        return line
    inner = f"        {kind}" if len(kind) <= 112 else "        " + kind.replace(" | ", "\n        | ")
    return f"    {key}: (\n{inner}\n    ){default}"


def typed(annotation: Any) -> str:
    """As it is written in a file of Python."""
    parts = get_args(annotation)
    if annotation is type(None):
        return "None"
    if isinstance(annotation, type) and not parts:
        return annotation.__name__
    name = getattr(annotation, "__name__", "")
    if "Literal" in str(annotation)[:16]:
        return f"Literal[{', '.join(literal(part) for part in parts)}]"
    if name == "Annotated" or hasattr(annotation, "__metadata__"):
        return typed(parts[0])
    if name == "tuple" or str(annotation).startswith("tuple"):
        return f"tuple[{typed(parts[0])}, ...]"
    return " | ".join(dict.fromkeys(typed(part) for part in parts))


def literal(value: Any) -> str:
    if isinstance(value, Table):
        return "..."
    return f'"{value}"' if isinstance(value, str) else repr(value)


def quoted(text: str, indent: int) -> str:
    pad = "\n" + " " * indent
    lines = text.replace("\n\n", "\n" + pad)
    return f'"""{lines}{pad if pad in lines else ""}"""'


if __name__ == "__main__":
    sys.exit(main())
