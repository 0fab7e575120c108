"""Holds the contract of the crates: dependencies run only downwards (ARCHITECTURE.md)."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ALLOWED = {
    "core": set(),
    "cc": {"core"},
    "tcp": {"core", "cc"},
    "net": {"core"},
    "pcc": {"core"},
    "sim": {"core", "cc", "tcp", "net", "pcc"},
    "script": {"core", "cc", "tcp"},
    "fuzz": {"core", "cc", "tcp", "script"},
    "guest": {"core", "net", "pcc", "script", "sim"},
    "python": {"core", "cc", "tcp", "net", "pcc", "sim", "script"},
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
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
