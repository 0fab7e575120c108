"""Holds the contract of the crates: dependencies run only downwards (ARCHITECTURE.md), and no file of tests is forgotten."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

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


def main() -> int:
    broken = []
    root = Path(__file__).resolve().parent.parent
    for manifest in sorted([*root.glob("crates/*/Cargo.toml"), root / "linux/guest/Cargo.toml"]):
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


def forgotten(manifest: Path) -> list[Path]:
    """Files of tests that are not part of the one program that holds those of a crate."""
    main = manifest.parent / "tests" / "main.rs"
    if not main.exists():
        return []
    known = {"main", *re.findall(r"^mod (\w+);", main.read_text(encoding="utf-8"), flags=re.MULTILINE)}
    return sorted(path for path in main.parent.glob("*.rs") if path.stem not in known)


if __name__ == "__main__":
    sys.exit(main())
