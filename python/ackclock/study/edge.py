"""A constant that a study chooses because its publication leaves it open, as data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError, quote

if TYPE_CHECKING:
    from ackclock.scenario import Scenario

_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """A constant and its neighbouring values.

    Parameters
    ----------
    name
        Description of the constant.
    constant
        Module of the study and name: "path.QUEUE". Empty: `key` names it.
    key
        Key of the scenarios: "network.bottleneck.queue.limit". `*` and other wildcards of a shell stand for items, `**` for
        any depth. A key that a table lacks is added to it, unless its last part is a wildcard or the value is multiplied.
    neighbours
        Alternative values, tried one after another; two or more, or the other of true and false.
    times
        Whether `neighbours` multiply the adopted value.
    readings
        Whether each value is a reading of the publication, with a source: a verdict hangs on the constant unless three
        of four agree.
    experiments
        Names of the experiments that depend on it: only these are rerun.
    why
        What the publication says about it, if anything.
    """

    name: str
    constant: str = ""
    key: str = ""
    neighbours: tuple[Any, ...]
    times: bool = False
    readings: bool = False
    experiments: tuple[str, ...]
    why: str = ""

    @property
    def place(self) -> str:
        """Name of the constant in the study, or its key."""
        return self.constant or self.key

    def told(self, value: Any) -> str:
        """Return a neighbouring value as text."""
        return f"{value:g} times" if self.times else str(value)

    def scenario(self, scenario: Scenario, value: Any) -> Scenario:
        """Return a scenario with a neighbouring value at each place of the key; unchanged if there is none.

        Raises
        ------
        InputError
            If a value to be multiplied is not a number with or without a unit.
        """
        made = scenario.to_dict()
        places = list(_places(made, self.key.split("."), adds=not self.times))
        for parent, last in places:
            parent[last] = self._multiplied(parent[last], value) if self.times else value
        return type(scenario).from_dict(made) if places else scenario

    def _multiplied(self, adopted: Any, factor: float) -> Any:
        if isinstance(adopted, (int, float)) and not isinstance(adopted, bool):
            return type(adopted)(round(adopted * factor) if isinstance(adopted, int) else adopted * factor)
        number = _NUMBER.fullmatch(adopted) if isinstance(adopted, str) else None
        if number is None:
            raise InputError(
                f"edge {self.name}: found {quote(str(adopted))} at {self.key}; allowed: a number to multiply"
            )
        value, unit = float(number[1]) * factor, number[2]
        whole = unit.strip() in ("packets", "bytes", "us", "ns", "bit/s")
        return f"{round(value)}{unit}" if whole else f"{value:.9f}".rstrip("0").rstrip(".") + unit


def _places(node: Any, parts: list[str], *, adds: bool) -> Iterator[tuple[Any, Any]]:
    """Yield the tables and keys, or lists and positions, that a key names."""
    first, rest = parts[0], parts[1:]
    items = list(node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ())
    if first == "**":
        yield from _places(node, rest, adds=False)
        for _, below in items:
            yield from _places(below, parts, adds=False)
        return
    if not rest and adds and isinstance(node, dict) and not set("*?[") & set(first):
        yield node, first
        return
    for name, below in items:
        if fnmatchcase(str(name), first):
            if rest:
                yield from _places(below, rest, adds=adds)
            else:
                yield node, name
