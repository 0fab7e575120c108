"""Values for shell completion: scenarios, controllers, studies, metrics, tables, sweep axes, dotted keys and their values.

An option's metavar, as shown in its help, determines its completions: `quick|paper` are values, `KEY=VALUE` is a key of
the scenario.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

__all__ = ["complete", "join_words"]

SHELL = "_ACKCLOCK_COMPLETE"
"""Environment variable through which the shell script requests completions."""

DEEPEST = 12
"""Maximum number of parts in a dotted key."""


def complete(context: Any, parameter: Any, begun: str) -> list[Any]:
    """Return completions for a parameter; if there are none, the shell completes file names.

    Parameters
    ----------
    context
        Context of the command as typed so far.
    parameter
        Parameter that is being typed.
    begun
        First characters of the value.
    """
    try:
        values = [value for value in _values(context, parameter) if value.startswith(begun)]
    except Exception:  # for example, an unreadable file: Tab must not print a message
        values = []
    if "=" in begun and _in_bash():  # bash completes only the part after the equals sign
        values = [value.partition("=")[2] for value in values]
    return [SimpleNamespace(value=value, type="plain", help=None) for value in values]


def join_words() -> None:
    """Join the three words into which bash splits `KEY=VALUE`."""
    if not _in_bash() or "COMP_WORDS" not in os.environ:
        return
    words, at = os.environ["COMP_WORDS"].split(), int(os.environ.get("COMP_CWORD", "0"))
    words += [""] * (at + 1 - len(words))
    joined: list[str] = []
    place = 0
    for i, word in enumerate(words):
        before = i and (word == "=" or words[i - 1] == "=") and joined and not joined[-1].startswith("--")
        if before:
            joined[-1] += word
        else:
            joined.append(word)
        if i == at:
            place = len(joined) - 1
    os.environ["COMP_WORDS"] = " ".join(joined)
    os.environ["COMP_CWORD"] = str(place)


def _in_bash() -> bool:
    return os.environ.get(SHELL, "").endswith("bash")


def _file(context: Any) -> str:
    """Return the command's first argument; in an incomplete command it is among the remaining words."""
    given = context.params.get("file") or next(iter(context.args), "")
    return str(given)


def _values(context: Any, parameter: Any) -> Iterable[str]:
    metavar = (parameter.metavar or "").strip("[]")
    if re.fullmatch(r"[a-z0-9-]+(\|[a-z0-9-]+)+", metavar):
        return metavar.split("|")
    by_name = _tables if metavar == "TABLE" else _BY_NAME.get(parameter.name)
    if parameter.name == "name" and context.parent.info_name == "study" and context.info_name != "new":
        return _studies()
    if by_name is not None and metavar.startswith(("NAME", "TABLE")):
        return by_name()
    match metavar.removesuffix("..."):
        case "KEY=VALUE" if parameter.name == "change":
            return _changes(_file(context))
        case "NAME|FILE.py:CLASS|FILE.c|FILE.rs" | "NAME|FILE.py:CLASS|FILE.c|FILE.rs|zoo:NAME":
            return _registry("controllers")
        case "FILE" | "A.toml" | "B.toml" if "Scenario" in (getattr(parameter, "help", None) or ""):
            return [*_shipped(), *(path.name for path in Path().glob("*.toml"))]
        case "AXIS":
            return _axes(_file(context))
        case "AXIS=VALUE":
            return [f"{axis}={value}" for axis, values in _axes(_file(context)).items() for value in values]
    return ()


def _registry(family: str) -> list[str]:
    from ackclock import _engine

    return [name for name, _ in _engine.registry()[family]]


def _shipped() -> list[str]:
    from ackclock.scenario._shipped import shipped

    return [name for name, _ in shipped()]


def _studies() -> list[str]:
    from ackclock import studies

    return [*studies.names(), *studies.installed()]


def _tables() -> list[str]:
    from ackclock._results.tables import tables

    return list(tables())


_BY_NAME: dict[str, Callable[[], list[str]]] = {
    "metric": lambda: _registry("metrics"),
    "profile": lambda: _registry("profiles"),
    "rival": lambda: _registry("controllers"),
    "controller": lambda: _registry("controllers"),
    "names": _studies,
}


def _axes(file: str) -> dict[str, list[str]]:
    """Return a sweep file's axes by name, with their values as written."""
    from ackclock.scenario.scenario import raw

    sweep = raw(Path(file))
    names = sweep.get("names", {})
    return {
        names.get(key, key): [value for value in values if isinstance(value, str) and " " not in value]
        if isinstance(values, list)
        else []
        for key, values in sweep.get("axes", {}).items()
    }


def _changes(file: str) -> Iterator[str]:
    """Yield every `KEY=` in a scenario, or `KEY=VALUE` if its values are known."""
    from ackclock.scenario import Scenario, load

    held = load(file, own_code=True).to_dict() if file else {}
    schema = Scenario.json_schema()
    for key, values in _leaves(schema, schema["$defs"], held, ""):
        yield from (f"{key}={value}" for value in values) if values else (f"{key}=",)


def _leaves(
    schema: Mapping[str, Any], kinds: Mapping[str, Any], held: Any, path: str
) -> Iterator[tuple[str, list[str]]]:
    """Yield the keys below a table in the schema, with the values listed there; `held` is the scenario's content at this position."""
    if path.count(".") >= DEEPEST:
        return
    values: list[str] = []
    plain = False
    kinds_of = _kinds(schema)
    if kinds_of and path:
        yield f"{path}.kind", kinds_of
    for form in _forms(schema, kinds, held):
        values += [form["const"]] if isinstance(form.get("const"), str) else []
        values += [value for value in form.get("enum", ()) if isinstance(value, str)]
        if form.get("type") == "boolean":
            values += ["true", "false"]
        if "properties" in form:
            for name, inner in form["properties"].items():
                below = held.get(name) if isinstance(held, dict) else None
                if name != "kind":
                    yield from _leaves(inner, kinds, below, f"{path}.{name}" if path else name)
        elif form.get("type") == "array" and "items" in form:
            for i, entry in enumerate(held if isinstance(held, list) else ()):
                yield from _leaves(form["items"], kinds, entry, f"{path}.{i}")
        elif form.get("type") not in ("null", "object", "array"):
            plain = True
    if plain and path:
        yield path, list(dict.fromkeys(values))


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    """Return a table's kind names; empty if it has none."""
    forms = [schema, *schema.get("anyOf", ())]
    return [name for form in forms for name in form.get("discriminator", {}).get("mapping", {})]


def _forms(schema: Mapping[str, Any], kinds: Mapping[str, Any], held: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas that a value may match. For a table with kinds, this is the given kind's schema, or none."""
    if "$ref" in schema:
        yield from _forms(kinds[schema["$ref"].rpartition("/")[2]], kinds, held)
    elif "anyOf" in schema:
        for one in schema["anyOf"]:
            yield from _forms(one, kinds, held)
    elif "oneOf" in schema:
        kind = held.get("kind") if isinstance(held, dict) else None
        for name, ref in schema.get("discriminator", {}).get("mapping", {}).items():
            if name == kind:
                yield kinds[ref.rpartition("/")[2]]
    else:
        yield schema
