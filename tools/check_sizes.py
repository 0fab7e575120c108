"""Checks the size of files and Python functions: a long one must state a reason (CONTRIBUTING.md, rule 2).

A file of more than 500 lines has a line "Length: WHY" in its first 60 lines, in a comment or a docstring. A Python function of more than
100 lines, its docstring excluded, has one inside. Rust functions are held to the same limit by clippy
(`too_many_lines`, with a reason at each `allow`).
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

FILE_LINES = 500
FUNCTION_LINES = 100
HEAD_LINES = 60
REASON = re.compile(r"^\W*Length: \w.{10,}")
SUFFIXES = (".rs", ".py", ".pyi", ".sh", ".js", ".mjs", ".c", ".h")


def has_reason(lines: list[str]) -> bool:
    """Whether one of the lines states the reason for the length."""
    return any(REASON.match(line) for line in lines)


def check_file(name: str, text: str) -> list[str]:
    """One message for each file or function that is long without a stated reason."""
    lines = text.splitlines()
    found = []
    if len(lines) > FILE_LINES and not has_reason(lines[:HEAD_LINES]):
        found.append(
            f'{name}: {len(lines)} lines; allowed: {FILE_LINES}, or a line "Length: WHY" among the first {HEAD_LINES}'
        )
    if name.endswith(".py"):
        found += check_functions(name, ast.parse(text), lines)
    return found


def check_functions(name: str, tree: ast.Module, lines: list[str]) -> list[str]:
    """Messages about overlong functions in a Python module."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.body[1] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body[0]
        assert node.end_lineno is not None
        length = node.end_lineno - first.lineno + 1
        if length > FUNCTION_LINES and not has_reason(lines[node.lineno - 1 : node.end_lineno]):
            found.append(
                f"{name}:{node.lineno}: {node.name} has {length} lines; "
                f'allowed: {FUNCTION_LINES}, or a comment "Length: WHY"'
            )
    return found


def check(root: Path, names: list[str]) -> list[str]:
    """Messages about the files with these names below `root`."""
    return [
        message
        for name in names
        if name.endswith(SUFFIXES) and (root / name).is_file()
        for message in check_file(name, (root / name).read_text(encoding="utf-8"))
    ]


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    listed = subprocess.run(["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True).stdout
    found = check(root, sorted(listed.splitlines()))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
