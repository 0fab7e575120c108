"""Simulates power losses: lays out what a disk may contain afterwards, from the journal of a command's writes, and
runs the next command on it.

    python tools/trouble.py --power WHAT --every N

A command writes into a folder, and every call is recorded (`trouble.c`). Then, for each prefix of the journal:

| state | on the disk |
| --- | --- |
| all | every call of the prefix |
| without a name | all but one rename, removal or creation that no `fsync` of its folder has confirmed; each of them once |
| without bytes | names as they are, but of each file only what an `fsync` of it has confirmed |
| confirmed | only what is confirmed, including names |

Real file systems allow fewer states: none loses an older name while keeping a newer one in the same folder, but the
tests try that as well. Each state is laid out and the same command runs again: the final result must match an
undisturbed command's. Visible intermediate states must be complete: a folder marked as a run's is a run, the old one
or the new one.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stories import KINDS, Driver, files, left_over
from troubled import entries, last_line

Names = dict[str, int]
"""Path -> inode; 0 for a folder."""


@dataclass
class Inode:
    """Contents of a file: as seen by programs, and as guaranteed to be on disk."""

    seen: bytearray = field(default_factory=bytearray)
    kept: bytes = b""


@dataclass
class Change:
    """Change of a name that no `fsync` has confirmed yet."""

    path: str
    before: int | None
    after: int | None
    moved: str = ""

    def folders(self) -> set[str]:
        return {str(Path(name).parent) for name in (self.path, self.moved) if name}


class Disk:
    """Replays a journal, starting with a folder's files, all of them on disk."""

    def __init__(self, folder: Path) -> None:
        self.root = str(folder)
        self.inodes: list[Inode] = [Inode()]
        self.names: Names = {self.root: 0}
        self.changes: list[Change] = []
        for path in sorted(folder.rglob("*")):
            if path.is_dir():
                self.names[str(path)] = 0
            else:
                content = path.read_bytes()
                self.inodes.append(Inode(bytearray(content), content))
                self.names[str(path)] = len(self.inodes) - 1
        self.first = dict(self.names)

    def follow(self, what: str, path: str, other: str, offset: int, data: bytes) -> None:
        if what in "wts" and path not in self.names:
            return  # file whose name has been removed
        match what:
            case "c":
                self.inodes.append(Inode())
                self._name(path, len(self.inodes) - 1)
            case "m":
                self._name(path, 0)
            case "u":
                self._name(path, None)
            case "r":
                inside = {name: node for name, node in self.names.items() if name.startswith(f"{path}/")}
                self._name(other, self.names.get(path), moved=path)
                for name, node in inside.items():
                    self.names[other + name[len(path) :]] = node
                    del self.names[name]
            case "w":
                seen = self.inodes[self.names[path]].seen
                seen.extend(bytes(max(0, offset - len(seen))))
                seen[offset : offset + len(data)] = data
            case "t":
                seen = self.inodes[self.names[path]].seen
                del seen[offset:]
                seen.extend(bytes(offset - len(seen)))
            case "s":
                if self.names[path] == 0:
                    self.changes = [one for one in self.changes if path not in one.folders()]
                else:
                    node = self.inodes[self.names[path]]
                    node.kept = bytes(node.seen)

    def _name(self, path: str, node: int | None, moved: str = "") -> None:
        self.changes.append(Change(path, self.names.get(path), node, moved))
        self.names.pop(moved, None)
        if node is None:
            self.names.pop(path, None)
        else:
            self.names[path] = node

    def states(self) -> Iterator[tuple[str, dict[str, bytes | None]]]:
        """Return the states that the disk may have now: path -> bytes, None for a folder."""
        seen, kept = (lambda node: bytes(self.inodes[node].seen)), (lambda node: self.inodes[node].kept)
        yield "all", self._laid(self.names, seen)
        for at, change in enumerate(self.changes):
            names = dict(self.names)
            self._undo(names, change)
            yield (
                f"without name {at}: {Path(change.moved or change.path).name} -> {Path(change.path).name}",
                self._laid(names, seen),
            )
        yield "without bytes", self._laid(self.names, kept)
        names = dict(self.names)
        for change in reversed(self.changes):
            self._undo(names, change)
        yield "confirmed", self._laid(names, kept)

    @staticmethod
    def _undo(names: Names, change: Change) -> None:
        if names.get(change.path) != change.after and not change.moved:
            return  # replaced by a later change
        if change.before is None:
            names.pop(change.path, None)
        else:
            names[change.path] = change.before
        if change.moved and change.after is not None:
            names[change.moved] = change.after

    def _laid(self, names: Names, content: Any) -> dict[str, bytes | None]:
        there = {
            name: node
            for name, node in names.items()
            if all(str(above) in names or len(str(above)) < len(self.root) for above in Path(name).parents)
        }
        return {name: content(node) if node else None for name, node in there.items()}


def lay_out(state: dict[str, bytes | None], folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in sorted(state.items()):
        if content is None:
            Path(name).mkdir(exist_ok=True)
        else:
            Path(name).write_bytes(content)


class Losses(Driver):
    """Simulates a series of power losses."""

    def lose(self, kind: str, every: int, begin: int, *, older: bool) -> dict[str, Any]:
        """Lose power every `every` calls, starting with a first one, over the files of an older command or in an empty folder."""
        facts = self.facts(kind)
        before: dict[str, str] = {}
        self._clear()
        if older:
            argv = [word.replace("3", "4") if word == "3" else word for word in self.command(kind)]
            made = self.machine.begin(argv, self.inputs)
            made.end()
            assert made.code == 0, made.err
            before = files(self.out, "")
        disk = Disk(self.out)
        wrong: list[str] = []
        with tempfile.NamedTemporaryFile() as journal:
            made = self.machine.begin(self.command(kind), self.inputs, journal=journal.fileno())
            made.end()
            assert made.code == 0, made.err
            calls = list(entries(Path(journal.name)))
        tried: set[int] = set()
        count = 0
        for at, call in enumerate([*calls, ("", "", "", 0, b"")]):
            if at % every == begin % every or at == len(calls) or call[0] in "ru":
                for name, state in disk.states():
                    count += 1
                    if (known := hash(tuple(sorted(state.items(), key=lambda one: one[0])))) in tried:
                        continue
                    tried.add(known)
                    lay_out(state, self.out)
                    if len(tried) % 20 == 0:
                        print(
                            f"{at} of {len(calls)} calls, {len(tried)} states, {len(wrong)} wrong",
                            file=sys.stderr,
                            flush=True,
                        )
                    wrong += [
                        f"{kind}, {at} of {len(calls)} calls, {name}: {why}"
                        for why in self._looked(kind, facts, before)
                    ]
                    if len(wrong) > 20:
                        break
            if call[0]:
                disk.follow(*call)
        return {"kind": kind, "older": older, "calls": len(calls), "states": count, "tried": len(tried), "wrong": wrong}

    def _looked(self, kind: str, facts: Any, before: dict[str, str]) -> Iterator[str]:
        store = KINDS[kind].store
        if not store:
            found = {
                name: what
                for name, what in files(self.out, store).items()
                if name.startswith("o/") and not left_over(name)
            }
            if "o/run.json" in found:
                new, old = ({n: w for n, w in there.items() if n.startswith("o/")} for there in (facts.files, before))
                if found not in (new, old):
                    yield f"o is marked as a run, and is neither the old one nor the new one: {sorted(n for n in found if found[n] != new.get(n))}"
        made = self.machine.begin(self.command(kind), self.inputs)
        made.end()
        if made.code != 0:
            yield f"exit code {made.code}: {last_line(made.err)}"
            return
        found = {name: what for name, what in files(self.out, store).items() if not left_over(name)}
        if other := sorted(
            name for name in found.keys() | facts.files.keys() if found.get(name) != facts.files.get(name)
        ):
            yield f"other files than undisturbed: {other[:5]}"
        state = self.state(kind)
        if set(state["keys"]) != facts.keys or state["rows"] != facts.rows or not state["sound"]:
            yield f"another store: {len(state['keys'])} of {len(facts.keys)} runs, sound {state['sound']}"
        if store and (lost := [line for line in made.err.splitlines() if "made again" in line or " gone" in line]):
            yield f"runs that were kept are lost: {lost[0]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("place", type=Path)
    parser.add_argument("--power", choices=["run", "run over another", "sweep"], required=True)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--begin", type=int, default=0)
    given = parser.parse_args()
    name, _, over = given.power.partition(" ")
    kind = "plain" if name == "run" else name
    told = Losses(given.place, 1).lose(kind, given.every, given.begin, older=bool(over))
    print(json.dumps(told, indent=1))
    return 1 if told["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
