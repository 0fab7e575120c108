"""Checks the contract of the crates: dependencies point only downwards (ARCHITECTURE.md), between crates and between
one crate's rooms, and no test file is forgotten. `--count` prints the number of cycles and upward dependencies in
each crate, folder by folder.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import rust_rooms

ALLOWED = {
    "schema": set(),
    "core": {"schema"},
    "cc": {"core"},
    "tcp": {"core", "cc"},
    "net": {"core"},
    "pcc": {"core"},
    "quinn": {"core", "cc"},
    "stack": {"core"},
    "link": {"core", "net"},
    "native": {"core", "cc"},
    "sim": {"core", "cc", "tcp", "net", "pcc", "quinn", "stack"},
    "script": {"core", "cc", "tcp"},
    "capture": set(),
    "fuzz": {"core", "cc", "tcp", "script", "capture"},
    "guest": {"core", "net", "pcc", "script", "sim"},
    "wasm": {"schema", "core", "cc", "sim"},
    "python": {"schema", "core", "cc", "tcp", "net", "native", "pcc", "quinn", "stack", "sim", "script", "capture"},
}

FLOORS = {
    # error, cpu and memory: usable by any room
    ("sim", ""): (
        ("error", "cpu", "memory"),
        ("tables", "yardstick"),
        ("transport", "capture"),
        ("world",),
        ("workload",),
        ("scenario",),
        ("report",),
        ("runs",),
    ),
    ("tcp", ""): (
        ("memory", "metrics_cache", "ranges", "stats", "ledger"),
        ("config",),
        ("ticks",),
        ("rtt", "rwnd", "scoreboard"),
        ("receiver", "sender"),
        ("connection",),
        ("recount",),
    ),
}
"""Rooms of a crate, or of a folder in it, from the bottom up: each may use only rooms below it."""

CIRCLES = {
    ("cc", "controller/bbr"): 1,
    ("cc", ""): 1,
    ("core", ""): 1,
    ("net", "host"): 1,
    ("net", "link"): 1,
    ("python", ""): 2,
    ("quinn", ""): 1,
    ("schema", ""): 1,
    ("script", "runner/simulated"): 2,
    ("script", "runner"): 1,
    ("guest", ""): 1,
    ("guest", "flows"): 1,
}
"""Known cycles: the maximum number per folder."""


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    if "--count" in sys.argv[1:]:
        return count(root)
    broken = rooms(root)
    for manifest in manifests(root):
        name = manifest.parent.name
        crate = tomllib.loads(manifest.read_text(encoding="utf-8"))
        if name not in ALLOWED:
            broken.append(f"crates/{name}: a crate that tools/check_crates.py does not know")
            continue
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            used = {d.removeprefix("ackclock-") for d in crate.get(kind, {}) if d.startswith("ackclock-")}
            broken += [
                f"crates/{name}: {kind} hold {other}; allowed: {sorted(ALLOWED[name])}"
                for other in used - ALLOWED[name]
            ]
        broken += [f"{path.relative_to(root)}: tests/main.rs has no `mod {path.stem};`" for path in forgotten(manifest)]
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


def manifests(root: Path) -> list[Path]:
    """All workspace crates."""
    return sorted([*root.glob("crates/*/Cargo.toml"), *root.glob("linux/guest/Cargo.toml")])


def rooms(root: Path) -> list[str]:
    """Violated rules between the rooms inside crates."""
    broken = []
    for manifest in manifests(root):
        name = manifest.parent.name
        for folder, graph in sorted(rust_rooms.arrows(manifest.parent / "src").items()):
            place = f"{manifest.parent.relative_to(root)}/src/{folder}".rstrip("/")
            floors = FLOORS.get((name, folder))
            if floors is not None:
                broken += [
                    f"{place}: {a} uses {b}, which does not stand below it" for a, b in rust_rooms.up(graph, floors)
                ]
                named = {module for floor in floors for module in floor}
                broken += [
                    f"{place}: {module} stands on no floor; tools/check_crates.py names them"
                    for module in sorted(set(graph) - named)
                ]
            found, known = rust_rooms.circles(graph), CIRCLES.get((name, folder), 0)
            if len(found) > known:
                rings = "; ".join(", ".join(ring) for ring in found)
                broken.append(f"{place}: {len(found)} circles ({rings}); allowed: {known}")
    return broken


def count(root: Path) -> int:
    """Print the cycles and upward dependencies of every folder that has any."""
    for manifest in manifests(root):
        name, circles, files = manifest.parent.name, 0, 0
        for folder, graph in sorted(rust_rooms.arrows(manifest.parent / "src").items()):
            found = rust_rooms.circles(graph)
            circles, files = circles + len(found), files + sum(map(len, found))
            for ring in found:
                print(
                    f"  {folder or '.'}: {', '.join(ring)}; arrows among them: {sum(len(graph[module] & set(ring)) for module in ring)}"
                )
            if floors := FLOORS.get((name, folder)):
                print(f"  {folder or '.'}: {len(floors)} floors, {len(rust_rooms.up(graph, floors))} arrows up")
        print(f"{name}: {circles} circles of {files} modules")
    return 0


def forgotten(manifest: Path) -> list[Path]:
    """Test files missing from their crate's single test program."""
    main = manifest.parent / "tests" / "main.rs"
    if not main.exists():
        return []
    known = {"main", *re.findall(r"^mod (\w+);", main.read_text(encoding="utf-8"), flags=re.MULTILINE)}
    return sorted(path for path in main.parent.glob("*.rs") if path.stem not in known)


if __name__ == "__main__":
    sys.exit(main())
