"""Reads TOML with the position of every value, and writes plain values as TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ackclock import _engine
from ackclock.errors import Place, Placed, ScenarioError, quote

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def read_toml(text: str) -> tuple[dict[str, Any], dict[str, Placed]]:
    """Return the content of a text, and the positions of its keys and values by dotted key.

    Raises
    ------
    ScenarioError
        If the text is not valid TOML: reason and position.
    """
    values, places, wrong = _engine.read_toml(text)
    if wrong is not None:
        place, why = Place(*wrong[0]), wrong[1]
        if why == "duplicate key":
            key = text.split("\n")[place.line - 1][place.column - 1 :][: place.length]
            why = f"the key {quote(key)} is given twice"
        elif why == "integer number overflowed":
            why = "a number with too many digits"
        raise ScenarioError(found=why, allowed="TOML", place=place)
    return values, {key: Placed(Place(*name), Place(*value)) for key, name, value in places}


def to_toml(values: Mapping[str, Any]) -> str:
    """Return TOML in which first-level tables and lists of tables are sections, and anything deeper is inline.

    Examples
    --------
    >>> print(to_toml({"duration": "1 s", "network": {"bottleneck": {"rate": "1 Mbit/s"}}}), end="")
    duration = "1 s"
    <BLANKLINE>
    [network]
    bottleneck = { rate = "1 Mbit/s" }
    """
    lines = [f"{_key(k)} = {_inline(v)}" for k, v in values.items() if not _section(v)]
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{_key(key)}]", *_body(value)]
        elif _section(value):
            for item in value:
                lines += ["", f"[[{_key(key)}]]", *_body(item)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _section(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(item, Mapping) for item in value)
    return isinstance(value, Mapping)


def _body(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(k)} = {_inline(v)}" for k, v in table.items() if v is not None]


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(k)} = {_inline(v)}" for k, v in value.items() if v is not None)
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_inline(v) for v in value)}]"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else quoted(key)


def quoted(text: str) -> str:
    r"""Return quoted text with unprintable characters escaped, so that they cannot affect a terminal that shows the
    file.

    Examples
    --------
    >>> print(quoted("a\x7f\u202e"))
    "a\u007f\u202e"
    """
    plain = json.dumps(text, ensure_ascii=False)  # JSON's escapes are valid in TOML
    return plain if plain.isprintable() else "".join(c if c.isprintable() else _escape(ord(c)) for c in plain)


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
