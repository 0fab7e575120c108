"""Checks the crates against `deny.toml` without cargo-deny: every package that Cargo resolves for one of its targets, including those of
tests and build scripts, has a licence on its list and comes from the registry, and the page's module has no package
reserved for native builds.

The other checks of cargo-deny query an advisory database over the network, and are not done here.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"
NATIVE_ONLY = ("quinn-proto", "ackclock-quinn", "ackclock-stack", "libloading")
"""Packages that the page must not contain: foreign stacks, and their loaders."""


def main() -> int:
    rules = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
    packages = resolved(rules["graph"]["targets"])
    wrong = [line for package in packages for line in judged(package, set(rules["licenses"]["allow"]))]
    page = linked_into("ackclock-wasm", "wasm32-unknown-unknown")
    wrong += [f"ackclock-wasm: links {name}" for name in NATIVE_ONLY if name in page]
    others = sum(package["source"] is not None for package in packages)
    print(f"licences: {others} crates of others looked at, {len(page)} in the page's module")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def resolved(targets: Sequence[str]) -> list[dict[str, Any]]:
    """Packages that Cargo resolves for these targets, by name and version."""
    found: dict[str, dict[str, Any]] = {}
    for target in targets:
        command = ["cargo", "metadata", "--format-version=1", "--locked", "--offline", f"--filter-platform={target}"]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
        found |= {package["id"]: package for package in json.loads(said)["packages"]}
    return sorted(found.values(), key=lambda package: (package["name"], package["version"]))


def judged(package: dict[str, Any], allow: set[str]) -> list[str]:
    """Errors in a package."""
    name, source = f"{package['name']} {package['version']}", package["source"]
    found = [] if source in (None, REGISTRY) else [f"{name}: found the source {source}; allowed: the registry"]
    if not package["license"]:
        return [*found, f"{name}: found no licence; allowed: one of deny.toml"]
    if not fits(package["license"], allow):
        found.append(f"{name}: found {package['license']}; allowed: {', '.join(sorted(allow))}")
    return found


def fits(expression: str, allow: set[str]) -> bool:
    """Whether these licences satisfy an SPDX expression: one side for OR, both for AND; AND binds tighter.

    Examples
    --------
    >>> fits("MIT OR Apache-2.0", {"MIT"}), fits("(MIT OR GPL-2.0) AND BSD-3-Clause", {"MIT"})
    (True, False)
    """
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    at = 0

    def term() -> bool:
        nonlocal at
        word = words[at]
        at += 1
        if word == "(":
            inner = either()
            at += 1
            return inner
        if words[at : at + 1] == ["WITH"]:
            word = f"{word} WITH {words[at + 1]}"
            at += 2
        return word in allow

    def both() -> bool:
        nonlocal at
        met = term()
        while words[at : at + 1] == ["AND"]:
            at += 1
            met = term() and met
        return met

    def either() -> bool:
        nonlocal at
        met = both()
        while words[at : at + 1] == ["OR"]:
            at += 1
            met = both() or met
        return met

    return either()


def linked_into(name: str, target: str) -> set[str]:
    """Crates built into one of our crates for a target, including our own, except those used only to build or test it."""
    command = [
        "cargo",
        "tree",
        "--package",
        name,
        "--target",
        target,
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--locked",
        "--offline",
    ]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return {line.split()[0] for line in said.splitlines() if line.strip()}


if __name__ == "__main__":
    sys.exit(main())
