"""Checks that every public name is documented and stands in the reference.

Public are the names in `__all__` of `ackclock` and of its modules and packages that do not begin with an underscore; the commands are
described by `--help`. Each has a docstring, and so have the methods and properties of classes. Each field of a dataclass is named in
it; a list of parameters is complete. Each module is on one of the pages docs/reference/python*.md.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import ackclock

PAGES = sorted((Path(__file__).resolve().parent.parent / "docs" / "reference").glob("python*.md"))
PROGRAMS = ("ackclock.cli",)


def main() -> int:
    listed = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    missing = [line for module in modules() for line in (*check(module), *unlisted(module, listed))]
    for line in missing:
        print(line, file=sys.stderr)
    return 1 if missing else 0


def modules() -> Iterator[ModuleType]:
    """Return the public modules of the package, those with an `__all__`."""
    yield ackclock
    for info in pkgutil.iter_modules(ackclock.__path__, "ackclock."):
        if not info.name.startswith("ackclock._") and info.name not in PROGRAMS:
            yield importlib.import_module(info.name)


def unlisted(module: ModuleType, pages: str) -> list[str]:
    """Whether a module is missing in the reference."""
    found = re.search(rf"^\.\. automodule:: {re.escape(module.__name__)}$", pages, re.MULTILINE)
    return [] if found else [f"{module.__name__}: not in docs/reference/python*.md"]


def check(module: ModuleType) -> Iterator[str]:
    """Gaps of a module, a line each."""
    if not (module.__doc__ or "").strip():
        yield f"{module.__name__}: no docstring"
    for name in module.__all__:
        value = getattr(module, name)
        place = f"{module.__name__}.{name}"
        if inspect.isclass(value):
            yield from check_class(place, value)
        elif inspect.isfunction(value):
            yield from check_function(place, value)


def check_class(place: str, value: type) -> Iterator[str]:
    doc = value.__dict__.get("__doc__") or ""
    generated = doc.startswith(f"{value.__name__}(")  # dataclass writes such a text
    if not doc.strip() or generated:
        yield f"{place}: no docstring"
        return
    for name in fields(value):
        if not re.search(rf"\b{re.escape(name)}\b", doc) and not commented(value, name):
            yield f"{place}: field {name} is not documented"
    for name, member in vars(value).items():
        if name.startswith("_"):
            continue
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if inspect.isfunction(function):
            yield from check_function(f"{place}.{name}", function)
        elif isinstance(member, property) and not (member.fget and member.fget.__doc__):
            yield f"{place}.{name}: no docstring"


def fields(value: type) -> list[str]:
    """Fields of a dataclass or of a table of a scenario that it adds to its bases."""
    own = inspect.get_annotations(value)
    return [name for name in own if not name.startswith("_") and hasattr(value, "__dataclass_fields__")]


def commented(value: type, name: str) -> bool:
    """Return whether a string follows the field."""
    try:
        source = inspect.getsource(value)
    except (OSError, TypeError):
        return False
    return bool(re.search(rf'^    {re.escape(name)}: [^\n]*(?:\n(?!    \w+:)[^\n]*)*?\n    """', source, re.MULTILINE))


def check_function(place: str, function: Any) -> Iterator[str]:
    doc = inspect.getdoc(function) or ""
    if not doc.strip():
        yield f"{place}: no docstring"
        return
    if "Parameters\n---" not in doc:
        return
    for name, parameter in inspect.signature(function).parameters.items():
        if name in ("self", "cls") or name.startswith("_") or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if not re.search(rf"\b{re.escape(name)}\b", doc):
            yield f"{place}: parameter {name} is not documented"


if __name__ == "__main__":
    sys.exit(main())
