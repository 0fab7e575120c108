"""Scenarios: the files in `scenarios` with keys and values exchanged, or their text with bytes exchanged.

Each is either refused in one line or accepted. An accepted scenario survives a round trip through TOML unchanged, the
engine accepts its compiled form, and a short run of it stays within its memory limit.
"""

from __future__ import annotations

import copy
import datetime
import math
import os
import pickle
import tempfile
import threading
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

from draw import Draw, one_line

from ackclock import AckclockError, Scenario, _engine, load
from ackclock._results.run import engine_call
from ackclock.errors import quote

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "scenarios").glob("*.toml"))
TEXTS = [file.read_text(encoding="utf-8") for file in FILES]
TABLES = [{**tomllib.loads(text), "duration": "20 ms"} for text in TEXTS]
PICKLED = [pickle.dumps(table) for table in TABLES]
"""Pickled tables: loading one takes a fraction of the time of `deepcopy`."""

MEMORY = 32 * 2**20
LONGEST_NS = 50_000_000
PATIENCE_S = 1
"""Time after which a run is abandoned, s (at most twice this). A long run is not a finding, because a scenario may ask for a lot of work."""


def _keys(value: Any, found: set[str]) -> set[str]:
    if isinstance(value, dict):
        found.update(value)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _keys(inner, found)
    return found


KINDS = [name for names in _engine.registry().values() for name, _ in names]
KEYS = sorted(_keys(TABLES, set()) | {"hosts", "repeat", "steps", "profile", "stack", "video", "x", "kind", "file"})
UNITS = ["s", "ms", "us", "ns", "h", "bit/s", "Mbit/s", "Tbit/s", "B", "KB", "GB", "MiB", "packets", "BDP", "%", ""]
VALUES: list[Any] = [
    0, 1, -1, 2, 3, 10, 100, 1000, 65_535, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, 10**30,
    10**4500, 0.0, -0.0, 0.5, 1.0, 1e-9, 5e-324, 1e18, 1e308, math.inf, -math.inf, math.nan, True, False, None, "",
    " ", "\x00", "\x1b]0;x\x07", "\ud800", "é", "[/x]", "$\\frac$", "../../x", "/dev/zero", "x" * 5000, "none", "all",
    "flow", "sender", [], {}, [[]], [{}], {"": ""}, [0, 0], ["a", "a"], {"kind": "x"}, datetime.date(2026, 1, 1),
]  # fmt: skip


def play(data: bytes) -> bool:
    """Play one input; return whether the scenario was accepted."""
    draw = Draw(data)
    try:
        scenario = _from_text(draw) if draw.byte() & 3 == 0 else _from_values(draw)
    except AckclockError as error:
        one_line(str(error))
        return False
    try:
        again = Scenario.from_dict(tomllib.loads(scenario.to_toml()))
        assert again == scenario
        text = scenario.to_engine_json()
    except AckclockError as error:  # for example, in a trace file
        one_line(str(error))
        return False
    _run(scenario, text)
    return True


def _from_text(draw: Draw) -> Scenario:
    text = bytearray(draw.one(TEXTS).encode())
    for _ in range(1 + draw.byte() % 4):
        at = draw.number(2) % (len(text) + 1)
        kind, piece = draw.byte() % 4, bytes(draw.byte() for _ in range(draw.byte() % 8))
        if kind == 3:
            piece = quote(_value(draw)).encode(errors="replace")
        text[at : at + (draw.byte() % 16 if kind else 0)] = piece
    with tempfile.NamedTemporaryFile(dir=_shared(), suffix=".toml") as file:
        file.write(text)
        file.flush()
        return load(file.name)


def _from_values(draw: Draw) -> Scenario:
    values = pickle.loads(draw.one(PICKLED))
    for _ in range(1 + draw.byte() % 5):
        _edit(values, draw)
    return Scenario.from_dict(values)


def _edit(values: dict[str, Any], draw: Draw) -> None:
    """Follow a randomly drawn path to a value, and change it."""
    node: Any = values
    while True:
        inner = [v for v in (node.values() if isinstance(node, dict) else node) if isinstance(v, dict | list) and v]
        if not inner or draw.byte() % 4 == 0:
            break
        node = draw.one(inner)
    if isinstance(node, list):
        node[draw.byte() % len(node)] = _value(draw)
        return
    keys = [*node]
    kind = draw.byte() % 8
    if kind == 0 and keys:
        del node[draw.one(keys)]
    elif kind <= 2:
        node[draw.one(KEYS)] = _value(draw)
    elif kind == 3:
        other = draw.one(TABLES)
        key = draw.one([*other])
        node[key] = copy.deepcopy(other[key])
    elif keys:
        node[draw.one(keys)] = _value(draw)


def _value(draw: Draw) -> Any:
    kind = draw.byte() % 8
    if kind == 0:
        return draw.one(KINDS)
    if kind <= 3:
        return f"{draw.one([draw.byte(), draw.number(4), -1, 0, 1, 0.1, 1e30, 'x'])} {draw.one(UNITS)}".strip()
    if kind == 4:
        return {"kind": draw.one(KINDS), draw.one(KEYS): copy.deepcopy(draw.one(VALUES))}
    if kind == 5:
        return draw.number(1 + draw.byte() % 8)
    return copy.deepcopy(draw.one(VALUES))


def _run(scenario: Scenario, text: str) -> None:
    try:
        needed = engine_call(lambda: _engine.estimate_memory(text))
        if needed > MEMORY or scenario.to_engine()["duration_ns"] > LONGEST_NS:
            return
        _watch.stop = _engine.Stop()
        with suppress(KeyboardInterrupt):  # the run was stopped
            engine_call(lambda: _engine.run(text, 1, None, None, MEMORY, _watch.stop))
    except AckclockError as error:
        one_line(str(error))


class _Watch(threading.Thread):
    """Stops a run still in progress at its second check. One thread serves all runs, because starting a thread costs more than most runs."""

    stop = _engine.Stop()

    def run(self) -> None:
        seen = None
        while True:
            time.sleep(PATIENCE_S)
            if self.stop is seen:
                seen.set()
            seen = self.stop


_watch = _Watch(daemon=True)
_watch.start()


def _shared() -> str | None:
    return "/dev/shm" if os.path.isdir("/dev/shm") else None
