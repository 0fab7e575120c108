"""Changes values by dotted path, as used on the command line and in sweeps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ackclock.errors import ScenarioError, quote

__all__ = ["mutable", "put"]


def put(values: dict[str, Any], key: str, value: Any) -> None:
    """Change one value in place."""
    parts = key.split(".") if isinstance(key, str) else []
    if not all(part and part == part.strip() for part in parts) or not parts:
        raise ScenarioError(found=f"the key {quote(key)}", allowed='a dotted path, e.g. "flows.0.congestion_control"')
    here: Any = values
    for depth, part in enumerate(parts):
        place = ".".join(parts[: depth + 1])
        index: Any = part
        if isinstance(here, list):
            index = _position(here, part, place)
        elif not isinstance(here, dict):
            raise ScenarioError(key=place, found=f"a key below {quote(here)}", allowed="keys of tables and lists")
        if depth == len(parts) - 1:
            here[index] = mutable(value)
        else:
            here = here.setdefault(index, {}) if isinstance(here, dict) else here[index]


def _position(entries: list[Any], part: str, place: str) -> int:
    """Return a part of a dotted path as a list index."""
    last = len(entries) - 1
    if last < 0:
        raise ScenarioError(key=place, found=quote(part), allowed="nothing; the list is empty")
    held = f"the list has {last + 1} entr{'ies' if last else 'y'}"
    known = f"0 to {last}" if last else "0"
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", part):
        wanted = "a position in the list before the key"
        if re.fullmatch(r"[0-9]+", part):
            wanted = "a position in the list without leading zeros" if part[0] == "0" else "a position in the list"
        raise ScenarioError(key=place, found=quote(part), allowed=f"{wanted}, {known} ({held})")
    if int(part) > last:
        raise ScenarioError(key=place, found=part, allowed=f"a position in the list, {known} ({held})")
    return int(part)


def mutable(value: Any) -> Any:
    """Return a mutable copy of tables and lists."""
    if isinstance(value, Mapping):
        return {str(k): mutable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [mutable(v) for v in value]
    return value
