"""Frozen outcomes of scenarios: the text read by the engine, the digest of a run, or the wording of a refusal.
`python tests/python/scenario/vectors.py --write` updates `vectors.txt`, which contains one hash per ten outcomes;
`--full FILE` writes the
outcomes themselves, so that two versions can be compared.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path += [str(HERE), str(HERE.parent / "hostile")]

from breaking import broken  # noqa: E402 - found by the path above
from inputs import scenarios as hostile  # noqa: E402

from ackclock import Scenario, ScenarioError, load, run  # noqa: E402
from ackclock.fidelity.drawn import drawn  # noqa: E402

FROZEN = HERE / "vectors.txt"
TOGETHER = 10
"""Number of outcomes per hash."""
SEEDS = range(1, 4)
DRAWN = {"transfers": 350, "bulks": 150, "lossy": 200}


def shipped() -> Iterator[tuple[str, str]]:
    """Return the engine's text for every packaged scenario."""
    for path in sorted((ROOT / "scenarios").glob("*.toml")):
        yield path.stem, load(path).to_engine_json()


def paths() -> Iterator[tuple[str, str]]:
    """Return the engine's text for drawn scenarios."""
    for one in drawn(1, **DRAWN):
        yield one.name, one.scenario.to_engine_json()


def refusals() -> Iterator[tuple[str, str]]:
    """Return the refusals of files from the hostile-input tests: key, value found, allowed values."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for given in hostile():
                data = given.files["x.toml"]
                Path("x.toml").write_bytes(data.encode() if isinstance(data, str) else data)
                yield given.name, told(lambda: load("x.toml"))
        finally:
            os.chdir(here)


def rules() -> Iterator[tuple[str, str]]:
    """Return the refusals of scenarios, each breaking one rule."""
    for seed in SEEDS:
        for number, (_, values) in enumerate(broken(seed)):
            yield f"{seed} {number}", told(lambda values=values: Scenario.from_dict(values))


def told(make: Callable[[], Scenario]) -> str:
    """Return the engine's text for the scenario, or the refusal."""
    try:
        return make().to_engine_json()
    except ScenarioError as error:
        return f"{error.key}: {error.found}; {error.allowed}"


def digests() -> Iterator[tuple[str, str]]:
    """Return the digests of all packaged scenarios, and of drawn ones."""
    for path in sorted((ROOT / "scenarios").glob("*.toml")):
        yield path.stem, run(load(path)).digest
    for one in drawn(1, **DRAWN):
        yield one.name, run(one.scenario).digest


KINDS: dict[str, Any] = {"shipped": shipped, "drawn": paths, "refused": refusals, "broken": rules}
SLOW: dict[str, Any] = {"digests": digests}


def hashes(outcomes: Iterable[tuple[str, str]]) -> list[str]:
    """Return one hash for each ten outcomes."""
    lines = [f"{name}\t{text}" for name, text in outcomes]
    batches = (lines[i : i + TOGETHER] for i in range(0, len(lines), TOGETHER))
    return [hashlib.sha256("\n".join(batch).encode(errors="replace")).hexdigest()[:16] for batch in batches]


def frozen() -> dict[str, list[str]]:
    """Return the frozen hashes: kind -> hashes."""
    lines = (line.split() for line in FROZEN.read_text().splitlines() if not line.startswith("#"))
    return {kind: found for kind, *found in lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--full", type=Path)
    parser.add_argument("--kinds", default=",".join([*KINDS, *SLOW]))
    options = parser.parse_args()
    kept = frozen() if FROZEN.exists() else {}
    full = []
    for kind in options.kinds.split(","):
        outcomes = list({**KINDS, **SLOW}[kind]())
        full += [f"{kind}\t{name}\t{text}" for name, text in outcomes]
        now = hashes(outcomes)
        print(kind, len(outcomes), "same" if kept.get(kind) == now else "changed")
        kept[kind] = now
    if options.full:
        options.full.write_text("\n".join(line.encode("unicode_escape").decode() for line in full) + "\n")
    if options.write:
        head = "# Hashes of what `vectors.py` makes of scenarios, one for each ten; it says how they are renewed.\n"
        FROZEN.write_text(head + "".join(f"{kind} {' '.join(found)}\n" for kind, found in kept.items()))


if __name__ == "__main__":
    main()
