"""Writes the documents in wheels about the crates linked into the engine: THIRD-PARTY.txt, their notices, and
sbom.cyclonedx.json, their list (CycloneDX 1.5), which includes the drawing library of reports. `--check` only
compares.

maturin could write the list too, but would include the time, a random number and the folder, so that no two wheels
would be identical.

Every crate that `cargo metadata` resolves for the extension on Linux is included, except those needed only to build
it (procedural macros, build scripts, tests). Texts are those in the crates' own archives.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from ackclock.report import packed

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "THIRD-PARTY.txt"
BILL = ROOT / "sbom.cyclonedx.json"
TARGET = "x86_64-unknown-linux-gnu"

REASONS = {
    "bytes": "what the stack of QUIC reads and writes",
    "bytemuck": "numbers as bytes, without unsafe code of ours",
    "libloading": "libraries of transport stacks that a command names",
    "libm": "functions whose results are the same on every machine",
    "nix": "CPU time of a thread, signals",
    "pyo3": "the extension of Python",
    "quinn-proto": "the stack of QUIC whose flows share a network with TCP",
    "rand_core": "the interface of the random generator",
    "rand_xoshiro": "the random generator, whose streams are part of a run's identity",
    "serde": "scenarios as structures",
    "serde_json": "scenarios from Python to the engine",
    "smallvec": "short lists without an allocation per packet",
    "thiserror": "messages of errors",
    "toml_edit": "TOML in which every value knows its line and column",
    "winnow": "the parser of packet scripts",
}
"""Direct dependencies of our crates, and their purpose."""

PYTHON_REASONS = {
    "jinja2": "the page of a report, with escaping",
    "markupsafe": "what in it is markup already",
    "matplotlib": "figures for paper, with the extra `figures`",
    "numpy": "columns from the engine, resampling",
    "polars": "tables, Parquet",
    "rich": "tables and progress on a terminal",
    "scipy": "quantiles of Student's t and of the binomial distribution",
    "typer": "the command line",
}
"""Packages needed by ours, and their purpose."""


def main() -> int:
    crates, own, needs = linked()
    made = {PLACE: notices(crates), BILL: bill(crates, needs)}
    wrong = [f"{name}: no reason in tools/notices.py" for name in sorted(own - set(REASONS))]
    wrong += [f"{name}: a reason in tools/notices.py, and no crate" for name in sorted(set(REASONS) - own)]
    wrong += [
        f"{name}: a dependency without a reason, or the reverse" for name in sorted(packages() ^ set(PYTHON_REASONS))
    ]
    for place, text in made.items():
        if "--check" not in sys.argv[1:]:
            place.write_text(text, encoding="utf-8")
        elif not place.is_file() or place.read_text(encoding="utf-8") != text:
            wrong.append(f"{place.name}: not as the crates are; tools/notices.py writes it")
    print(
        f"dependencies, each with its reason: {len(REASONS)} crates ({len(crates)} linked), {len(PYTHON_REASONS)} Python packages"
    )
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def packages() -> set[str]:
    """Packages that pip installs with the wheel, by name, and those in the extra `figures`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["figures"]]
    return {re.split(r"[><=!~ \[]", one)[0] for one in wanted}


def linked() -> tuple[list[dict[str, Any]], set[str], dict[str, list[str]]]:
    """Third-party crates in the engine; the names of those in our manifests; and each crate's dependencies, by id ("" for ours)."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--offline", f"--filter-platform={TARGET}"]
    found = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout)
    of = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    (top,) = (i for i, package in of.items() if package["name"] == "ackclock-python")
    seen: set[str] = set()
    needs: dict[str, set[str]] = {"": set()}
    todo = [top]
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        own = needs.setdefault(at if of[at]["source"] else "", set())
        for needed in nodes[at]["deps"]:
            to = needed["pkg"]
            if any(kind["kind"] is None for kind in needed["dep_kinds"]) and not macro(of[to]):
                todo.append(to)
                own |= {to} if of[to]["source"] else set()
    crates = sorted((of[i] for i in seen if of[i]["source"]), key=lambda c: (c["name"], c["version"]))
    return crates, {of[i]["name"] for i in needs[""]}, {i: sorted(own) for i, own in needs.items()}


def bill(crates: list[dict[str, Any]], needs: dict[str, list[str]]) -> str:
    """The list, with the hash of each crate's archive. Its contents do not depend on where or when it is generated."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    hashes = {(p["name"], p["version"]): p.get("checksum") for p in lock}
    version = next(p["version"] for p in lock if p["name"] == "ackclock-python")
    refs = {crate["id"]: f"pkg:cargo/{crate['name']}@{crate['version']}" for crate in crates}
    refs[""] = f"pkg:pypi/ackclock@{version}"
    parts = [
        {
            "type": "library",
            "bom-ref": refs[crate["id"]],
            "name": crate["name"],
            "version": crate["version"],
            "hashes": [{"alg": "SHA-256", "content": hashes[crate["name"], crate["version"]]}],
            "licenses": [{"expression": crate["license"].replace("/", " OR ")}],
            "purl": refs[crate["id"]],
        }
        for crate in crates
    ]
    drawing = f"pkg:npm/plotly.js-basic-dist-min@{packed.VERSION}"
    parts.append(
        {
            "type": "library",
            "bom-ref": drawing,
            "name": "plotly.js",
            "version": packed.VERSION,
            "hashes": [
                {"alg": "SHA-256", "content": hashlib.sha256(packed.unpack(packed.plotly()).encode()).hexdigest()}
            ],
            "licenses": [{"expression": "MIT"}],
            "purl": drawing,
        }
    )
    whole = {"type": "library", "bom-ref": refs[""], "name": "ackclock", "version": version, "purl": refs[""]}
    graph = [
        {"ref": refs[i], "dependsOn": sorted([*(refs[to] for to in own), *([] if i else [drawing])])}
        for i, own in needs.items()
    ]
    told = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": whole},
        "components": parts,
        "dependencies": sorted(graph, key=lambda entry: str(entry["ref"])),
    }
    return json.dumps(told, indent=1) + "\n"


def notices(crates: list[dict[str, Any]]) -> str:
    """Text of THIRD-PARTY.txt."""
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
    return "\n".join(lines) + "\n"


def macro(package: dict[str, Any]) -> bool:
    """Whether the crate runs only in the compiler."""
    return any("proc-macro" in target["kind"] for target in package["targets"])


if __name__ == "__main__":
    sys.exit(main())
