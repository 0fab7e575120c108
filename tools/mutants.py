"""Plants faults in the changed lines, and reports those that no test detects.

    python tools/mutants.py [--base COMMIT] [--minutes N] [--seed N]

Rust: cargo-mutants with the tests of the mutated crate. Python: comparisons, arithmetic, `and`/`or`, `min`/`max`, numbers,
booleans and conditions in changed lines of the package, in a copy of it, each with the tests that name its module. The run stops after N minutes (10),
half of them for each language if both changed, and reports the number of untried faults. Exit code 1 if a fault was not detected.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "target" / "mutants"
PACKAGE = "python/ackclock/"
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
ENOUGH = 12
"""Test files for a module, starting with those that name it most often."""


class Fault(NamedTuple):
    """A fault, and the module's text containing it."""

    line: int
    what: str
    text: str


def changed(diff: str) -> dict[str, set[int]]:
    """Line numbers that a unified diff adds, by file."""
    found: dict[str, set[int]] = {}
    name, at = "", 0
    for line in diff.splitlines():
        if line.startswith("+++ "):
            name = line[6:]
        elif hunk := re.match(r"@@ -\S+ \+(\d+)", line):
            at = int(hunk[1])
        elif line.startswith("+"):
            found.setdefault(name, set()).add(at)
            at += 1
        elif line.startswith(" "):
            at += 1
    return found


def planted(node: ast.AST) -> Iterator[ast.AST]:
    """The node with faults planted, one at a time."""
    made = copy.deepcopy(node)
    match made:
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            made.ops = [SWAPS[type(op)]()]  # type: ignore[list-item]
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op) if type(op) in SWAPS:
            made.op = SWAPS[type(op)]()  # type: ignore[assignment]
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            made.func = ast.Name(id=NAMES[name], ctx=ast.Load())
        case ast.Constant(value=bool(value)):
            made.value = not value
        case ast.Constant(value=int() | float() as value):
            made.value = value + 1
        case ast.UnaryOp(op=ast.Not()):
            made = made.operand
        case _:
            return
    yield made


class _Put(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else super().visit(node)


def faults(text: str, lines: set[int]) -> list[Fault]:
    """All possible faults in these lines of a module."""
    tree = ast.parse(text)
    found = []
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if line not in lines:
            continue
        for new in planted(node):
            module = ast.parse(text)
            same = next(one for one, own in zip(ast.walk(module), ast.walk(tree), strict=True) if own is node)
            whole = ast.fix_missing_locations(_Put(same, ast.copy_location(new, node)).visit(module))
            found.append(Fault(line, f"{ast.unparse(node)} -> {ast.unparse(new)}", ast.unparse(whole)))
    return found


def tests_of(name: str) -> list[str]:
    """Test files that name a module or its room, those with the most mentions first."""
    parts = Path(name).with_suffix("").parts[1:]
    own = re.compile(rf"\b(?:{re.escape('.'.join(parts))}|{re.escape('.'.join(parts[:-1]))})\b")
    counts = {
        path: len(own.findall(path.read_text(encoding="utf-8"))) + 20 * (parts[-1] in path.read_text(encoding="utf-8"))
        for path in (ROOT / "tests" / "python").rglob("test_*.py")
    }
    return [str(path) for path in sorted(counts, key=lambda path: (-counts[path], path)) if counts[path]][:ENOUGH]


def passes(files: list[str], env: dict[str, str], until: float) -> bool:
    """Return whether these tests pass; raise `TimeoutExpired` if there is no time left."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files]
    left = max(0.0, until - time.monotonic())
    return subprocess.run(command, cwd=ROOT, env=env, timeout=left, capture_output=True, check=False).returncode == 0


def python(lines: dict[str, set[int]], until: float, seed: int) -> tuple[int, list[str], int]:
    """Return how many were detected, the undetected ones, and how many were not tried."""
    todo = [
        (name, fault) for name, of in sorted(lines.items()) for fault in faults((ROOT / name).read_text("utf-8"), of)
    ]
    random.Random(seed).shuffle(todo)
    place = OUT / "python"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(ROOT / "python", place, symlinks=True)
    env = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    noticed, kept, tried = 0, [], 0
    sound: dict[str, list[str]] = {}
    for name, fault in todo:
        target = place / Path(name).relative_to("python")
        own = target.read_text(encoding="utf-8")
        try:
            if name not in sound:  # a test that fails even without a fault detects none
                files = tests_of(name)
                sound[name] = [file for file in files if passes([file], env, until)]
                if left := len(files) - len(sound[name]):
                    print(
                        f"{name}: {left} of {len(files)} files of tests fail without a fault, and were left out",
                        file=sys.stderr,
                    )
            target.write_text(fault.text, encoding="utf-8")
            lives = not sound[name] or passes(sound[name], env, until)
        except subprocess.TimeoutExpired:
            break
        finally:
            target.write_text(own, encoding="utf-8")
        tried += 1
        noticed += not lives
        if lives:
            kept.append(
                f"{name}:{fault.line}: {fault.what}{'' if sound[name] else ' (no test of its module passes here)'}"
            )
    return noticed, kept, len(todo) - tried


def rust(diff: str, until: float) -> tuple[int, list[str], int]:
    """Test the Rust lines with cargo-mutants."""
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "changed.diff").write_text(diff, encoding="utf-8")
    common = ["cargo", "mutants", "--in-diff", str(OUT / "changed.diff")]
    listed = subprocess.run([*common, "--list", "--json"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    count = len(json.loads(listed or "[]"))
    if not count:
        return 0, [], 0
    run = subprocess.Popen([*common, "--output", str(OUT), "--no-shuffle"], cwd=ROOT, start_new_session=True)  # fmt: skip
    try:
        run.wait(max(1.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGINT)
        run.wait()
    told = {
        name: file.read_text("utf-8").splitlines() if (file := OUT / "mutants.out" / f"{name}.txt").is_file() else []
        for name in ("caught", "missed", "timeout", "unviable")
    }
    noticed = len(told["caught"]) + len(told["timeout"])
    return noticed, told["missed"], count - noticed - len(told["missed"]) - len(told["unviable"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="main")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    ask = ["git", "diff", "--merge-base", asked.base, "--"]
    diff = subprocess.run([*ask, "*.rs"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    plain = subprocess.run([*ask, "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = {name: of for name, of in changed(plain).items() if name.startswith(PACKAGE)}
    began, whole = time.monotonic(), 60 * asked.minutes
    told = []
    if diff and shutil.which("cargo-mutants"):
        told.append(("Rust", rust(diff, began + (whole / 2 if lines else whole))))
    elif diff:
        print("LEFT OUT: Rust; it needs cargo-mutants (make mutants installs it)", file=sys.stderr)
    if lines:
        told.append(("Python", python(lines, began + whole, asked.seed)))
    for language, (noticed, kept, untried) in told:
        for line in kept:
            print(f"not noticed: {line}")
        print(f"{language}: {noticed} faults noticed, {len(kept)} not, {untried} not tried")
    return 1 if any(kept for _, (_, kept, _) in told) else 0


if __name__ == "__main__":
    sys.exit(main())
