"""Scenarios drawn from the engine's descriptions of its keys, so that a new key is drawn without further work.

`python tests/python/schema_draw.py SEED NUMBER` prints one of them.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from typing import Any

from conftest import ROOT

from ackclock import Scenario, ScenarioError, _engine

DESCRIBED = _engine.schema()
TABLES: dict[str, list[dict[str, Any]]] = {table["kind"]: table["keys"] for table in DESCRIBED["tables"]}
TRACE = ROOT / "python" / "ackclock" / "_scenarios" / "traces" / "swing-12m.trace"
LENGTHS = {"links": 4, "paths": 2, "flows": 3, "hosts": 2, "access_list": 2, "steps": 4, "packets": 12, "drops": 6}
"""Maximum number of elements of these lists; 3 for all others."""
NAMES = {"named-link": "l", "path": "p", "host": "h"}
REFERENCES = {"forward": "named-link", "backward": "named-link", "path": "path", "host": "host", "peer_host": "host"}
"""Key -> location of the names that it may refer to."""
COMMON = {("scenario", "network"): 1.0, ("network", "bottleneck"): 1.0, ("network", "access"): 0.4, ("network", "egress"): 0.4,
          ("link", "rate"): 0.8, ("link", "delay"): 0.6, ("link", "queue"): 0.4, ("flows", "workload"): 0.4,
          ("scenario", "hosts"): 0.4, ("flows", "host"): 0.3, ("flows", "peer_host"): 0.3, ("record", "trace"): 0.1, ("scenario", "format"): 0.0}  # fmt: skip
"""Keys with special probabilities: otherwise hardly any packets would be sent, or a record would take most of the time."""
MOST_FLOWS = 6
EXTREME = 0.05
ROUNDS = 60
"""Number of attempts to repair a draw before it is discarded."""

Draw = Callable[[], float]


class _Drawn:
    """A draw: the density of keys, and values for them."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed).random  # the only method with output that Python guarantees
        self.density = 0.06 + 0.24 * self.random()

    def below(self, n: int) -> int:
        return min(int(self.random() * n), n - 1)

    def one(self, values: Any) -> Any:
        return values[self.below(len(values))]

    def between(self, low: float, high: float) -> float:
        """Return a log-uniform value."""
        return low * (high / low) ** self.random()

    def whole(self, low: int, high: int, usual: int) -> int:
        """Return an integer, usually near the minimum and sometimes at a bound."""
        if self.random() < EXTREME:
            return self.one((low, high))
        top = max(min(high, low + usual), low)
        return min(low + int(self.between(1, top - low + 2)) - 1, top)

    def table(self, name: str, keys: list[dict[str, Any]], number: int = 0) -> dict[str, Any]:
        found = {}
        for key in keys:
            chance = COMMON.get((name, key["name"]), self.density)
            if key["takes"]["takes"] != "kind" and (key["required"] or self.random() < chance):
                found[key["name"]] = self.value(key["name"], key["takes"], name, number)
        return found

    def family(self, name: str, unit: str = "", only: tuple[str, ...] = ()) -> dict[str, Any]:
        entry = self.one([entry for entry in DESCRIBED[name] if not only or entry["kind"] in only])
        drawn = {}
        for key in entry["keys"]:
            if key["takes"]["takes"] != "kind" and (key["required"] or self.random() < 0.5):
                drawn[key["name"]] = self.value(key["name"], {**key["takes"], "unit": unit}, name)
        return {"kind": entry["kind"], **drawn}

    def duration(self, least: int) -> str:
        if least == 0 and self.random() < 0.15:
            return "0 s"
        if self.random() < EXTREME:
            return self.one(("1 us", "10 s"))
        return f"{int(self.between(1_000, 3e8))} ns"

    def size(self, low: int, high: int) -> str:
        if self.random() < EXTREME:
            return f"{self.one((max(low, 1), min(high, 10**9)))} bytes"
        return f"{min(max(int(self.between(max(low, 40), 300_000)), low), high)} bytes"

    def rate(self, least: int) -> str:
        if least == 0 and self.random() < 0.1:
            return "0 bit/s"
        return f"{int(self.between(2e5, 2e8))} bit/s"

    def packets(self, *others: str) -> str:
        match self.one(("packets", *others)):
            case "BDP":
                return f"{self.between(0.05, 4):.3f} BDP"
            case "bytes":
                return f"{int(self.between(100, 300_000))} bytes"
        return f"{int(self.between(1, 300))} packets"

    def amount(self, unit: str) -> Any:
        match unit:
            case "rate":
                return self.rate(1)
            case "share":
                return round(self.random() * 0.1, 4)
            case "size":
                return self.size(1, 10**6)
        return self.duration(1)

    def value(self, key: str, takes: Mapping[str, Any], table: str, number: int = 0) -> Any:
        """Return a value for a key of this type."""
        match takes["takes"]:
            case "flag":
                return self.random() < 0.5
            case "whole":
                most = MOST_FLOWS if (table, key) == ("flows", "count") else takes["high"]
                return self.whole(takes["low"], min(takes["high"], most), 60)
            case "number" | "above":
                low, high = takes["low"], takes["high"]
                if self.random() < EXTREME and takes["takes"] == "number":
                    return self.one((low, high))
                return round(self.between(max(low, high / 1e6, 1e-3), min(high, max(low, 1e-3) * 1e4)), 6) or high
            case "share":
                return round(self.random() ** 3, 5)
            case "duration":
                if (table, key) == ("scenario", "duration"):
                    return f"{int(self.between(1e8, 3e9))} ns"
                return self.duration(takes["least"])
            case "rate":
                return self.rate(takes["least"])
            case "size":
                return self.size(takes["low"], takes["high"])
            case "packets":
                return self.packets()
            case "packet limit" | "mean packets":
                return self.packets("BDP")
            case "limit":
                return self.packets("BDP", "bytes")
            case "amount":
                return self.amount(takes.get("unit", ""))
            case "named":
                return self.one([name for name, _ in _engine.registry()[takes["registry"]]])
            case "choice":
                return self.one(takes["names"])
            case "drawn":
                return self.family("distributions", takes.get("unit", ""))
            case "drawn or" | "duration or drawn":
                unit = takes.get("unit", "duration")
                if self.random() < 0.5:
                    return self.family("distributions", unit)
                return self.size(1, 10**6) if unit == "size" else self.duration(takes.get("least", 0))
            case "writes":
                if self.random() < 0.3:
                    return self.family("distributions", "size")
                one = self.size(1, 10**6)
                return one if self.random() < 0.5 else f"{1 + self.below(9)} x {one}"
            case "one of":
                return self.family(takes["family"])
            case "table":
                return self.table(takes["table"], TABLES[takes["table"]], number)
            case "list or" if self.random() < 0.2:
                return takes["word"]
            case "list" | "list or":
                most = LENGTHS.get(key, 3)
                length = max(takes.get("least", 0), 1 + self.below(most))
                return [self.value(key, takes["of"], table, at) for at in range(length)]
            case "trace":
                return str(TRACE)
            case "options":
                return {}
        if key == "name" and table in NAMES:
            return f"{NAMES[table]}{number}"
        if key in REFERENCES:
            return f"{NAMES[REFERENCES[key]]}{self.below(3)}"
        return self.one(("a", "b"))


def drawn(seed: object, number: int) -> tuple[dict[str, Any], Scenario]:
    """Return scenario number `number`, as text and as a value."""
    for attempt in range(1000):
        draw = _Drawn(f"{seed} {number} {attempt}")
        raw = draw.table("scenario", TABLES["scenario"])
        for _ in range(ROUNDS):
            try:
                return raw, Scenario.from_dict(raw)
            except ScenarioError as error:
                for refused in (error, *error.more):
                    _repair(draw, raw, refused.key.split("."), refused.found)
    raise AssertionError(f"nothing but refusals for seed {seed}, number {number}")


def _repair(draw: _Drawn, raw: dict[str, Any], path: list[str], found: str) -> None:
    """Add missing keys; remove a refused key, or the one that contains it."""
    if found.startswith("nothing") and _add(draw, raw, path):
        return
    holders: list[tuple[Any, Any]] = []
    inside: Any = raw
    for part in path:
        at: Any = int(part) if isinstance(inside, list) and part.isdigit() else part
        if isinstance(inside, list) and not (isinstance(at, int) and at < len(inside)):
            break
        if isinstance(inside, dict) and at not in inside:
            break
        if not isinstance(inside, (dict, list)):
            break
        holders.append((inside, at))
        inside = inside[at]
    while holders:
        holder, at = holders.pop()
        if isinstance(holder, list) and len(holder) == 1 and holders:
            continue
        if at not in ("duration", "flows", "kind"):
            del holder[at]
            return
        if at == "kind":
            continue
        holder[at] = draw.table("scenario", TABLES["scenario"])[at]
        return


def _add(draw: _Drawn, raw: dict[str, Any], path: list[str]) -> bool:
    """Add a missing key; return whether one was missing."""
    inside: Any = raw
    keys, name = TABLES["scenario"], "scenario"
    for part in path[:-1]:
        if isinstance(inside, list):
            if not part.isdigit() or int(part) >= len(inside):
                return False
            inside = inside[int(part)]
        else:
            takes = next((key["takes"] for key in keys if key["name"] == part), None)
            if takes is None or part not in inside:
                return False
            inside = inside[part]
            while "of" in takes:
                takes = takes["of"]
            if takes["takes"] == "table":
                name, keys = takes["table"], TABLES[takes["table"]]
            elif isinstance(inside, dict) and "kind" in inside:
                name = takes.get("family", "distributions")
                keys = next((entry["keys"] for entry in DESCRIBED[name] if entry["kind"] == inside["kind"]), [])
    takes = next((key["takes"] for key in keys if key["name"] == path[-1]), None)
    if takes is None or not isinstance(inside, dict) or path[-1] in inside:
        return False
    inside[path[-1]] = draw.value(path[-1], takes, name)
    return True


if __name__ == "__main__":
    print(drawn(sys.argv[1], int(sys.argv[2]))[1].to_toml())
