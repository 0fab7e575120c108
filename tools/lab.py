"""Assembles the lab's page: python/ackclock/_lab/lab.html, one file that contains everything, from web/, the module and the scenarios.

tools/lab.py MODULE.wasm
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
SCENARIOS = ROOT / "python" / "ackclock" / "_scenarios"
PLACE = ROOT / "python" / "ackclock" / "_lab" / "lab.html"
FIRST = "first"
"""A page's default scenario."""

SCRIPTS = (
    "figures.js",
    "film.js",
    "lessons.js",
    "editor.js",
    "complete.js",
    "own.js",
    "seeds.js",
    "packing.js",
    "runs.js",
    "results.js",
    "views.js",
    "sliders.js",
    "address.js",
    "filming.js",
    "lab.js",
)
WORKERS = ("lockdown.js", "contract.js", "hooks.js", "engine.js", "worker.js")
"""Files of the page and its workers, in order: each one uses exports of earlier ones (tools/lint_page.py)."""

WORKER = """
"use strict";
(() => {{
const {{ TextDecoder, TextEncoder, WebAssembly, performance, structuredClone }} = globalThis;
const post = globalThis.postMessage.bind(globalThis);
const listen = globalThis.addEventListener.bind(globalThis);
{}}})();
"""
"""A single function, so that later code sees none of its variables. It saves references to the globals it needs before they are removed."""

MOST_MODULE = 760_000
MOST_PAGE = 1_000_000
"""Maximum sizes after compression, bytes."""


def scenarios() -> list[tuple[str, str, str]]:
    """Name, summary line and text of each shipped scenario that runs in the page; the default one is first."""
    from ackclock._link import runs_in_page
    from ackclock.scenario._shipped import shipped

    known = [(name, about, (SCENARIOS / f"{name}.toml").read_text(encoding="utf-8")) for name, about in shipped()]
    return sorted((one for one in known if runs_in_page(one[2])), key=lambda one: one[0] != FIRST)


def traces() -> list[tuple[str, str]]:
    """Files named in scenarios, with their contents in base64."""
    found = sorted((SCENARIOS / "traces").iterdir())
    return [(f"traces/{file.name}", base64.b64encode(file.read_bytes()).decode()) for file in found]


def conformance() -> dict[str, object]:
    """Rules, in words, of the test that controllers have to pass, and its closed-loop runs, with path capacities in packets."""
    from ackclock._agents import controllers

    paths = []
    for scenario in controllers.closed_loops():
        paths.append({"text": scenario.to_toml(), "holds": float(scenario.network.bdp_packets())})
    rules = {**controllers.RULES, "closed loop": controllers.CLOSED_LOOP}
    return {"rules": rules, "paths": paths, "exploded": controllers.EXPLODED}


def lessons() -> list[dict[str, Any]]:
    """Packaged lessons."""
    from ackclock._course import for_page, shipped

    return for_page(shipped())


def schema() -> dict[str, object]:
    """Scenario completions: for each table, its keys; for each key, one line, the tables that it may contain and its allowed values."""
    from ackclock.scenario import Scenario

    whole = Scenario.json_schema()
    tables = {"Scenario": whole, **whole["$defs"]}
    return {name: {key: offered(value) for key, value in of["properties"].items()} for name, of in tables.items()}


def offered(value: dict[str, Any]) -> list[object]:
    """Return a one-line description: tables and values; for a list, those of its elements."""
    tables, values = [], []
    open_ = [value]
    while open_:
        one = open_.pop(0)
        if "$ref" in one:
            tables.append(one["$ref"].rsplit("/", 1)[1])
        values += one.get("enum", [])
        values += [one["const"]] if "const" in one else []
        values += one.get("examples", [])
        for inner in ("anyOf", "oneOf"):
            open_ += one.get(inner, [])
        if isinstance(one.get("items"), dict):
            open_.append(one["items"])
    about = value.get("description", "").split(". ")[0].rstrip(".")
    return [about, tables, list(dict.fromkeys(values))]


def digest(text: str) -> str:
    """Hash source for a script or style in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def policy(script: str, style: str) -> str:
    """Policy that allows only the page's own contents: the page makes no requests, not even to its origin."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {digest(script)} 'wasm-unsafe-eval'",
            f"style-src {digest(style)}",
            "worker-src blob:",
            "img-src blob: data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def page(module: bytes) -> str:
    """The whole page."""
    read = {file.name: file.read_text(encoding="utf-8") for file in sorted(WEB.iterdir()) if file.suffix != ".html"}
    script = "\n" + "".join(read[name] for name in SCRIPTS)
    style = f"\n{read['lab.css']}"
    worker = WORKER.format("".join(read[name] for name in WORKERS))
    held = {
        "scenarios": scenarios(),
        "files": traces(),
        "lessons": lessons(),
        "schema": schema(),
        "conformance": conformance(),
    }
    data = json.dumps(held, ensure_ascii=False).replace("<", "\\u003c")
    for name, text in read.items():
        if "</script" in text.lower() or "<!--" in text:
            raise SystemExit(f"web/{name}: found what ends a script; allowed: the same in two parts")
    whole = (WEB / "index.html").read_text(encoding="utf-8")
    parts = {
        "@POLICY@": policy(script, style),
        "@STYLE@": style,
        "@DATA@": data,
        "@WORKER@": worker,
        "@SCRIPT@": script,
        "@MODULE@": base64.b64encode(gzip.compress(module, 9, mtime=0)).decode(),
    }
    for mark, text in parts.items():
        before, _, after = whole.partition(mark)
        whole = before + text + after
    return whole


def main() -> int:
    module = Path(sys.argv[1]).read_bytes()
    made = page(module).encode()
    PLACE.parent.mkdir(exist_ok=True)
    PLACE.write_bytes(made)
    small, whole = len(gzip.compress(module, 9, mtime=0)), len(gzip.compress(made, 9, mtime=0))
    print(f"lab: module {len(module):,} bytes, {small:,} after gzip; page {len(made):,} bytes, {whole:,} after gzip")
    if small > MOST_MODULE or whole > MOST_PAGE:
        print(f"lab: allowed: {MOST_MODULE:,} and {MOST_PAGE:,} bytes after gzip", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
