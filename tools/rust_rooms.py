"""Rooms inside a crate: the dependencies between modules, read from the paths in the sources, and the dependencies that point upwards.

A node is a module directly below a folder's own module, with everything below it. Code in `#[cfg(test)]` does not
count, nor do edges between a module and its parent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

Graph = dict[str, set[str]]

_PATH = re.compile(r"\b(crate|self|super)((?:\s*::\s*(?:super|[A-Za-z_]\w*))*)\s*(::\s*\{)?")
_FOR_TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")
_REEXPORT = re.compile(r"^\s*pub(?:\([^)]*\))?\s+use\s+([^;]+);", re.MULTILINE)


def arrows(src: Path) -> dict[str, Graph]:
    """Return, for the crate with sources in `src`, the graph of each folder's modules; "" is the crate itself."""
    texts = {_module(src, path): _uncommented(path.read_text(encoding="utf-8")) for path in sorted(src.rglob("*.rs"))}
    tests = {(*module, name) for module, text in texts.items() for name in _FOR_TESTS.findall(text)}
    files = {
        module: _code(text) for module, text in texts.items() if not any(module[: len(test)] == test for test in tests)
    }
    known = set(files)
    shown = {module: dict(_shown(module, text, known)) for module, text in files.items()}
    graphs: dict[str, Graph] = {}
    for module in known - {()}:
        graphs.setdefault("/".join(module[:-1]), {}).setdefault(module[-1], set())
    for module, text in files.items():
        for used in _used(module, text):
            _note(graphs, module, _resolved(used, known, shown))
    return graphs


def circles(graph: Graph) -> list[list[str]]:
    """Return the sets of modules that use each other in a cycle."""
    reached = {node: _reached(graph, node) for node in graph}
    rings = {
        tuple(sorted(other for other in graph if other in reached[node] and node in reached[other])) for node in graph
    }
    return sorted(list(ring) for ring in rings if len(ring) > 1)


def up(graph: Graph, layers: Iterable[Iterable[str]]) -> list[tuple[str, str]]:
    """Return the dependencies that point upwards, where `layers` are listed from the bottom up; modules in no layer have none."""
    floor = {module: at for at, layer in enumerate(layers) for module in layer}
    pairs = ((module, used) for module, all_used in sorted(graph.items()) for used in sorted(all_used))
    return [
        (a, b)
        for a, b in pairs
        if a in floor and b in floor and (floor[b] > floor[a] or (floor[b] == floor[a] and a != b))
    ]


def _module(src: Path, path: Path) -> tuple[str, ...]:
    parts = path.relative_to(src).with_suffix("").parts
    return parts[:-1] if parts[-1] in {"mod", "lib", "main"} else parts


def _uncommented(text: str) -> str:
    """Return the text without comments and strings."""
    return re.sub(r'r(#+)".*?"\1|"(?:\\.|[^"\\])*"', '""', re.sub(r"//[^\n]*", "", text), flags=re.DOTALL)


def _code(text: str) -> str:
    """Return the text without parts compiled only for tests."""
    while found := re.search(r"#\[cfg\((?:all\()?test\b[^\]]*\]", text):
        text = text[: found.start()] + text[_end_of_item(text, found.end()) :]
    return text


def _end_of_item(text: str, at: int) -> int:
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in "{[(") - (text[place] in "}])")
        if depth == 0 and (text[place] == "}" or text[place] == ";"):
            return place + 1
    return len(text)


def _used(module: tuple[str, ...], text: str) -> Iterable[tuple[str, ...]]:
    for found in _PATH.finditer(text):
        steps = [step for step in re.split(r"\s*::\s*", found[2]) if step]
        base = {"crate": (), "self": module, "super": module[:-1]}[found[1]]
        while steps and steps[0] == "super":
            base, steps = base[:-1], steps[1:]
        if found[3]:
            yield from (base + tuple(steps) + names for names in _group(text, found.end()))
        else:
            yield base + tuple(steps)


def _group(text: str, at: int) -> Iterable[tuple[str, ...]]:
    """Yield the paths of a group in braces that begins before `at`."""
    start, depth, entries = at, 1, []
    for place in range(at, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0 or (depth == 1 and text[place] == ","):
            entries.append(text[start:place])
            start = place + 1
        if depth == 0:
            break
    for entry in entries:
        head, brace, _ = entry.strip().partition("{")
        steps = tuple(
            step for step in re.split(r"\s*::\s*", re.sub(r"\s+as\s+\w+", "", head.strip())) if step and step != "self"
        )
        if brace:
            inner = entry.index("{") + 1
            yield from (steps + names for names in _group(entry, inner))
        elif steps or "self" in head:
            yield steps


def _shown(module: tuple[str, ...], text: str, known: set[tuple[str, ...]]) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Yield each name that a module re-exports, and its origin."""
    for found in _REEXPORT.finditer(text):
        whole = re.sub(r"\s+", " ", found[1]).strip()
        anchored = whole if re.match(r"(crate|self|super)\b", whole) else f"self::{whole}"
        for path in _used(module, anchored):
            if path and any(path[:n] in known for n in range(len(module) + 1, len(path))):
                yield path[-1], path


def _resolved(
    path: tuple[str, ...], known: set[tuple[str, ...]], shown: Mapping[tuple[str, ...], dict[str, tuple[str, ...]]]
) -> tuple[str, ...]:
    """Return the module that a path leads to, following all re-exports."""
    for _ in range(8):
        length = max(n for n in range(len(path) + 1) if path[:n] in known)
        name = path[length : length + 1]
        if not name or name[0] not in shown[path[:length]]:
            return path[:length]
        path = shown[path[:length]][name[0]] + path[length + 1 :]
    return path[: max(n for n in range(len(path) + 1) if path[:n] in known)]


def _note(graphs: dict[str, Graph], module: tuple[str, ...], used: tuple[str, ...]) -> None:
    shared = 0
    while shared < min(len(module), len(used)) and module[shared] == used[shared]:
        shared += 1
    if shared < min(len(module), len(used)):
        graphs["/".join(module[:shared])][module[shared]].add(used[shared])


def _reached(graph: Graph, node: str) -> set[str]:
    found, todo = set[str](), [node]
    while todo:
        for used in graph[todo.pop()]:
            if used not in found:
                found.add(used)
                todo.append(used)
    return found
