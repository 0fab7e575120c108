"""Replays drawn scenarios with all shortcuts, with none, and with four drawn subsets each: all outputs must be identical.

`python tests/python/shortcut_replay.py SEED COUNT [FIRST]` replays COUNT of them, and prints the differences.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conftest import ROOT
from schema_draw import TABLES, TRACE, drawn

from ackclock import Scenario, ScenarioError, _engine
from ackclock.cli._lab import PAGE

SHORTCUTS = _engine.shortcuts()
MOST_S = 0.2
"""Maximum CPU time per run; longer runs are cut short."""
LEAST_NS = 2_000_000
TRACED, THREADED, IN_PAGE = 4, 4, 18
"""One in this many scenarios is traced, run on two threads, or run in WebAssembly."""


@dataclass
class Replayed:
    """Outcome of replaying a set of scenarios."""

    scenarios: int = 0
    refused: int = 0
    """Scenarios refused before they start, by all variants with the same message."""
    runs: int = 0
    traced: int = 0
    threaded: int = 0
    in_page: int = 0
    differing: list[str] = field(default_factory=list)
    alone: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    keys: Counter[str] = field(default_factory=Counter)
    """Link or host key -> number of times it was drawn."""

    def __str__(self) -> str:
        least = [min(counted[name] for name in SHORTCUTS) for counted in (self.alone, self.left_out)]
        return (
            f"{self.scenarios} scenarios ({self.refused} refused at their start), {self.runs} runs, {self.traced} traced, "
            f"{self.threaded} on two threads, {self.in_page} in WebAssembly; each shortcut at least {least[0]} times alone and "
            f"{least[1]} times left out; {len(self.differing)} differ"
        )


def replay(seed: object, numbers: Iterable[int], module: Path | None = None, *, verbose: bool = False) -> Replayed:
    """Replay the scenarios with these numbers; `module` is the page's module."""
    found, asked = Replayed(), []
    for number in numbers:
        text, scenario = _short(seed, number)
        found.scenarios += 1
        found.keys.update(_keys_of(json.loads(_plain(scenario))))
        expected = _shown(text, number, "all")
        found.refused += isinstance(expected, str)
        found.traced += number % TRACED == 0
        for cut in _cuts(seed, number, found):
            found.runs += 1
            if _shown(text, number, cut) != expected:
                found.differing.append(f"seed {seed}, number {number}: all and {cut}")
        if number % THREADED == 1 and not isinstance(expected, str):
            found.threaded += 1
            if not _threads_agree(text, number):
                found.differing.append(f"seed {seed}, number {number}: one thread and two")
        if number % IN_PAGE == 2 and not isinstance(expected, str):
            asked.append((number, scenario, expected[0]))
        if verbose and number % 100 == 99:
            print(found, *found.differing, sep="\n", flush=True)
    if module is not None:
        for number, (digest, expected_digest) in _in_page(module, asked):
            found.in_page += 1
            if digest != expected_digest:
                found.differing.append(f"seed {seed}, number {number}: here and in WebAssembly")
    return found


def _short(seed: object, number: int) -> tuple[str, Scenario]:
    """Return the scenario with this number, shortened if it takes long."""
    for attempt in range(100):
        raw, scenario = drawn(f"{seed} {attempt}", number)
        if number % TRACED == 0:
            raw["record"] = {**raw.get("record", {}), "trace": "all"}
        length = int(float(raw["duration"].split()[0]))
        while length > LEAST_NS:
            try:
                scenario = Scenario.from_dict({**raw, "duration": f"{length} ns"})
            except ScenarioError:
                break
            text = scenario.to_engine_json()
            kept = _engine.run_each([text], [(0, number)], [], [], 60.0, 2**30, limit_s=MOST_S)
            if not any("CPU" in (error or "") or "memory" in (error or "") for error in kept["errors"]):
                return text, scenario
            length //= 4
    raise AssertionError(f"no short scenario of number {number}")


def _shown(text: str, seed: int, shortcuts: str) -> Any:
    """Return the digest and tables of a run, or its refusal."""
    try:
        raw = _engine.run(text, seed, shortcuts=shortcuts)
    except ValueError as error:
        return str(error)
    return raw["digest"], raw["tables"]


def _cuts(seed: object, number: int, found: Replayed) -> Iterator[str]:
    """Return no shortcut, one alone, all but one, and two subsets."""
    draw = random.Random(f"cuts {seed} {number}").random
    alone = SHORTCUTS[number % len(SHORTCUTS)]
    left_out = SHORTCUTS[(number + number // len(SHORTCUTS)) % len(SHORTCUTS)]
    found.alone[alone] += 1
    found.left_out[left_out] += 1
    yield "none"
    yield alone
    yield ",".join(name for name in SHORTCUTS if name != left_out)
    for _ in range(2):
        yield ",".join(name for name in SHORTCUTS if draw() < 0.5) or "none"


def _threads_agree(text: str, seed: int) -> bool:
    seeds = [seed, seed + 1, seed + 2]
    try:
        expected = [_engine.run(text, one)["digest"] for one in seeds]
        together = _engine.run_batch(text, seeds, 2)
    except ValueError:  # refused under another seed: `max_open`, for instance
        return True
    return list(together["digests"]) == expected


def _plain(scenario: Scenario) -> str:
    return json.dumps(scenario.to_dict())


def _keys_of(raw: dict[str, Any]) -> Iterator[str]:
    """Return the link and host keys that are set."""
    network = raw["network"]
    reverse = network.get("reverse", {})
    links = [place.get(name) for place in (network, reverse) for name in ("access", "bottleneck", "egress")]
    for link in [*filter(None, links), *network.get("links", []), *network.get("access_list", [])]:
        yield from (f"link.{key}" for key in link if key != "name")
    if isinstance(raw.get("hosts"), list):
        for host in raw["hosts"]:
            yield from (f"host.{key}" for key in host)


def page_module(folder: Path) -> Path | None:
    """Write the module embedded in the lab's page to a file in this folder; None if the lab is not built or Node is
    missing.
    """
    if not PAGE.is_file() or shutil.which("node") is None:
        return None
    held = re.search(r'<script type="text/plain" id="module">([^<]+)</script>', PAGE.read_text(encoding="utf-8"))
    assert held is not None
    path = folder / "lab.wasm"
    path.write_bytes(gzip.decompress(base64.b64decode(held[1])))
    return path


def undrawn(found: Replayed) -> list[str]:
    """Return the link and host keys that no scenario contained."""
    known = [f"{table}.{key['name']}" for table in ("link", "host") for key in TABLES[table]]
    return [key for key in known if not found.keys[key]]


def _in_page(module: Path, asked: list[tuple[int, Scenario, str]]) -> Iterator[tuple[int, tuple[str, str]]]:
    """Return the digests of the page's module and of the native engine, for scenarios that can run in a page."""
    if not asked:
        return
    trace = [[str(TRACE), base64.b64encode(TRACE.read_bytes()).decode()]]
    jobs = [{"text": one.to_toml(), "seed": number, "files": trace, "whole": False} for number, one, _ in asked]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "jobs"
        place.write_text(json.dumps(jobs), encoding="utf-8")
        scripts = [ROOT / "web" / name for name in ("contract.js", "hooks.js", "engine.js")]
        command = ["node", ROOT / "tests" / "python" / "lab" / "node.js", module, *scripts, place]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for (number, _, expected), answer in zip(asked, told, strict=True):
        if answer["ok"]:
            yield number, (answer["digest"], expected)


if __name__ == "__main__":
    seed, count, first = sys.argv[1], int(sys.argv[2]), int((sys.argv[3:] or ["0"])[0])
    with tempfile.TemporaryDirectory() as here:
        whole = replay(seed, range(first, first + count), page_module(Path(here)), verbose=True)
    print(f"seed {seed}: {whole}", *whole.differing, f"not drawn: {undrawn(whole)}", sep="\n")
