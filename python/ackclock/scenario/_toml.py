"""Writes plain values as TOML (the standard library only reads it), and keeps from reading what would take for ever."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")

_CHAIN = re.compile(r"(?<![\w\"'-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){100}")


def check_keys(text: str) -> None:
    """Refuse dotted keys of more than a hundred parts: the standard library's time grows with their square.

    Raises
    ------
    ValueError
        If there is one.
    """
    if _CHAIN.search(text) is not None:
        raise ValueError("a dotted key of more than 100 parts")


def to_toml(values: Mapping[str, Any]) -> str:
    """Values, tables of depth one and lists of tables as sections; anything deeper inline.

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
        # JSON's escapes are TOML's, but for DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key)
