"""Writes THIRD-PARTY.txt: the notices of the crates that are linked into the engine, which wheels carry. `--check` only compares.

Every crate that `cargo metadata` resolves for the extension on Linux counts, without what only builds it (procedural macros, build
scripts, tests). Texts are those in the crates' own archives.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "THIRD-PARTY.txt"
TARGET = "x86_64-unknown-linux-gnu"

REASONS = {
    "bytemuck": "numbers as bytes, without unsafe code of ours",
    "libm": "functions whose results are the same on every machine",
    "nix": "CPU time of a thread, signals",
    "pyo3": "the extension of Python",
    "rand_core": "the interface of the random generator",
    "rand_xoshiro": "the random generator, whose streams are part of a run's identity",
    "serde": "scenarios as structures",
    "serde_json": "scenarios from Python to the engine",
    "smallvec": "short lists without an allocation per packet",
    "thiserror": "messages of errors",
    "toml_edit": "TOML in which every value knows its line and column",
    "winnow": "the parser of packet scripts",
}
"""Crates that ours name themselves, and what for."""

PYTHON_REASONS = {
    "jinja2": "the page of a report, with escaping",
    "markupsafe": "what in it is markup already",
    "matplotlib": "figures for paper",
    "numpy": "columns from the engine, resampling",
    "plotly": "figures to look closer at, in reports",
    "polars": "tables, Parquet",
    "rich": "tables and progress on a terminal",
    "scipy": "quantiles of Student's t and of the binomial distribution",
    "typer": "the command line",
}
"""Packages that ours needs, and what for."""


def main() -> int:
    text, own = notices()
    wrong = [f"{name}: no reason in tools/notices.py" for name in sorted(own - set(REASONS))]
    wrong += [f"{name}: a reason in tools/notices.py, and no crate" for name in sorted(set(REASONS) - own)]
    wrong += [
        f"{name}: a dependency without a reason, or the reverse" for name in sorted(packages() ^ set(PYTHON_REASONS))
    ]
    if "--check" in sys.argv[1:]:
        if not PLACE.is_file() or PLACE.read_text(encoding="utf-8") != text:
            wrong.append(f"{PLACE.name}: not as the crates are; tools/notices.py writes it")
    else:
        PLACE.write_text(text, encoding="utf-8")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def packages() -> set[str]:
    """What pip installs with the wheel, by name."""
    import re
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.split(r"[><=!~ \[]", wanted)[0] for wanted in project["dependencies"]}


def notices() -> tuple[str, set[str]]:
    """The text, and the crates that our own manifests name."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--offline", f"--filter-platform={TARGET}"]
    found = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout)
    of = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    (top,) = (i for i, package in of.items() if package["name"] == "ackclock-python")
    linked: set[str] = set()
    named: set[str] = set()
    todo = [top]
    while todo:
        at = todo.pop()
        if at in linked or macro(of[at]):
            continue
        linked.add(at)
        for needed in nodes[at]["deps"]:
            if any(kind["kind"] is None for kind in needed["dep_kinds"]):
                todo.append(needed["pkg"])
                if of[at]["source"] is None and of[needed["pkg"]]["source"] is not None:
                    named.add(of[needed["pkg"]]["name"])
    crates = sorted((of[i] for i in linked if of[i]["source"] is not None), key=lambda c: (c["name"], c["version"]))
    texts: dict[str, list[str]] = {}
    lines = [
        "Notices of third parties",
        "",
        f"The engine of ackclock links {len(crates)} crates of others. Each stands here with its version, licence and source; their texts follow.",
        "With them comes Rust's standard library: MIT OR Apache-2.0; https://github.com/rust-lang/rust",
        "",
    ]
    for crate in crates:
        name = f"{crate['name']} {crate['version']}"
        lines.append(f"{name}: {crate['license'] or 'see its file'}; {crate['repository'] or 'crates.io'}")
        for file in sorted(Path(crate["manifest_path"]).parent.iterdir()):
            if file.is_file() and file.name.upper().startswith(
                ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
            ):
                texts.setdefault(file.read_text(encoding="utf-8").strip().replace("\r\n", "\n"), []).append(name)
    for text, names in sorted(texts.items(), key=lambda pair: pair[1]):
        lines += ["", "-" * 80, ", ".join(dict.fromkeys(names)), "", text]
    return "\n".join(lines) + "\n", named


def macro(package: dict[str, Any]) -> bool:
    """Whether it runs in the compiler alone."""
    return any("proc-macro" in target["kind"] for target in package["targets"])


if __name__ == "__main__":
    sys.exit(main())
