"""Public third-party captures: whether `ackclock diagnose` reads or refuses each, and its conclusion. None of the files are part of this project.

`tools/public_captures.py FOLDER ...` looks in the folders for the files listed in `tools/public_captures.txt`, by
hash under any name, and prints one line for each, and a count. The list contains the repository, path, size and
SHA-256 of each file of at least 240 kB; a clone of
these repositories contains them.

`tools/public_captures.py --add OWNER/NAME CLONE FOLDER` (a clone, or a bare repository) adds a repository's captures
to the list, and puts the files there.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ackclock.diagnose import diagnose
from ackclock.errors import InputError

LIST = Path(__file__).with_suffix(".txt")
ENDINGS = (".pcap", ".pcapng", ".cap", ".dump", ".trace")
LEAST_FILE, LEAST_DATA = 240_000, 250_000
"""Minimum size of a listed file, and of one direction of a connection for a conclusion to be expected, bytes."""


def listed() -> list[tuple[str, int, str, str]]:
    """List entry: hash, size, repository, path."""
    rows = [line.split(maxsplit=3) for line in LIST.read_text(encoding="utf-8").splitlines()] if LIST.exists() else []
    return [(row[0], int(row[1]), row[2], row[3]) for row in rows]


def add(repository: str, clone: Path, folder: Path) -> None:
    """Add a repository's captures to the list, and copy their files to a folder."""
    rows = {row[0]: row for row in listed()}
    folder.mkdir(parents=True, exist_ok=True)
    command = ["git", "-C", str(clone)]
    for line in subprocess.run(
        [*command, "ls-tree", "-r", "-l", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.splitlines():
        head, path = line.split("\t", 1)
        _, kind, name, size = head.split()
        if kind != "blob" or not path.lower().endswith(ENDINGS) or not size.isdigit() or int(size) < LEAST_FILE:
            continue
        data = subprocess.run([*command, "cat-file", "blob", name], check=False, capture_output=True).stdout
        if len(data) != int(size):
            continue  # missing from the clone
        digest = hashlib.sha256(data).hexdigest()
        rows.setdefault(digest, (digest, len(data), repository, path))
        (folder / f"{digest[:16]}{Path(path).suffix}").write_bytes(data)
    ordered = sorted(rows.values(), key=lambda row: (row[2], row[3]))
    LIST.write_text("".join(" ".join(map(str, row)) + "\n" for row in ordered), encoding="utf-8")


def found(folders: list[Path]) -> Iterator[tuple[str, str, Path]]:
    """Repository, path and location of each file found."""
    rows = listed()
    sizes = {size for _, size, _, _ in rows}
    here: dict[str, Path] = {}
    for file in (file for folder in folders for file in folder.rglob("*") if file.is_file()):
        if file.stat().st_size in sizes:
            here.setdefault(hashlib.sha256(file.read_bytes()).hexdigest(), file)
    for digest, _, repository, path in rows:
        if digest in here:
            yield repository, path, here[digest]


def told(file: Path) -> tuple[str, str]:
    """Outcome for a file (`refused`, `small`, `concluded`, `no conclusion`), and the conclusion or the reason."""
    try:
        one = diagnose(file)
    except InputError as error:
        return "refused", str(error).replace(f"{file}: ", "")
    if one.connection["bytes"] < LEAST_DATA:
        return "small", f"at most {one.connection['bytes']:,} bytes in one direction of a connection"
    if one.answer is not None and one.answer.where != "not told":
        return "concluded", f"{one.at}: {one.answer}"
    reason = one.refused or str(one.answer)
    return (
        "no conclusion" if one.refused else "concluded in part"
    ), f"{one.at}: {reason}; {one.answer}" if one.refused else f"{one.at}: {one.sentence} {reason}"


def main() -> int:
    """One line per file, and the counts."""
    if sys.argv[1:2] == ["--add"]:
        add(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
        return 0
    count: Counter[str] = Counter()
    for repository, path, file in found([Path(folder) for folder in sys.argv[1:]]):
        which, why = told(file)
        count[which] += 1
        print(f"{repository} {path}: {which}: {why}", flush=True)
    asked = sum(count.values()) - count["refused"] - count["small"]
    print(
        f"{sum(count.values())} of {len(listed())} files of the list found: {count['refused']} refused, {count['small']} with too little of TCP; of the other {asked}: "
        f"{count['concluded']} concluded, {count['concluded in part']} where causes are told and no single limit, {count['no conclusion']} without a conclusion."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
