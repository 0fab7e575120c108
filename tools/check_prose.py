"""Holds the length of pages and the language of comments (CONTRIBUTING.md, rules 8 and 11).

    python tools/check_prose.py          # exit code 1 if a page is too long, or a comment's subject is no noun
    python tools/check_prose.py ROOM...  # the odd comments of rooms
    python tools/check_prose.py --words  # words of each page, those written by hand first

A page that is longer than its kind allows stands in `LONGER`; its number only goes down. No odd comment is allowed anywhere.
Commits without a body, of a branch that is not merged, are named and do not fail: a body says why where the title does not.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import inspect
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

WORDS = {
    "README.md": 900,
    "ARCHITECTURE.md": 3_500,
    "docs/how-to/": 1_500,
    "docs/studies/": 6_000,
    "docs/decisions/0": 800,
    "docs/": 4_500,
}
"""Words that a page may have, by the beginning of its name; the first that fits."""

MADE = ("docs/arena.md", "docs/numbers.md", "docs/proofs.md", "docs/worst-cases.md", "docs/evaluation.md", "docs/reference/", "docs/decisions/README.md")  # fmt: skip
"""Pages that programs write, or of which tables by programs are the most."""

HAND = 95_000
"""Words written by hand in all pages of `BOOK`."""
BOOK = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/")
APART_FROM_BOOK = ("docs/decisions/", "docs/numbers.md", "docs/reference/scenario.md", "docs/reference/tables.md", "docs/reference/python", "docs/known/")  # fmt: skip
"""Records of decisions, and pages made of the schema, the measurements and the docstrings, and pages of one template."""
BLOCK = re.compile(
    r"<!-- (?:verdicts|paths|sentences|changed|proofs) [\w-]+ -->.*?^<!-- \. -->$"
    r"|<!-- (evaluation|worse|conform|known): .*?<!-- /\1 -->|<!-- keys of the kernel: .*?<!-- end of the keys -->",
    re.DOTALL | re.MULTILINE,
)
"""Tables that programs write into pages of people."""
WRITTEN = re.compile(r"^<!-- written by tools/\w+\.py -->$", re.MULTILINE)
"""Mark of a page that a program writes as a whole: its tables are made, its sentences are counted."""

LONGER: dict[str, int] = {}
"""Pages that are longer than their kind allows, and the words that they may have until they are shortened."""

RELEASE_LINES = 15
"""Lines of a release's area in CHANGELOG.md."""
LONGER_RELEASES: dict[str, int] = {}
"""Areas of releases that have more."""

APART = ("net/link", "net/queue", "sim/world", "tcp/sender", "tcp/receiver")
"""Parts of crates, a folder with the file of its name, that are rooms of their own."""

START = re.compile(
    r"(?:the same|likewise|it|its|of|those|these|that|what|whatever|whoever|so (?:many|much|far)|as (?:many|much)) ", re.IGNORECASE
)  # fmt: skip
"""A comment's first words where the subject should be."""
PEOPLE = re.compile(r"\b(?:somebody|anybody|nobody|whoever)\b", re.IGNORECASE)
"""Words for a part of the program that has a name."""
REPEATED = 0.57
"""Share of a paragraph's words, in runs of three or more, that the paragraph before has too: from here on the two say one thing. Of docstrings
whose paragraphs say two things none has more than 0.55, and merges that kept an old paragraph behind its new form 0.6 to 1."""
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


class Remark(NamedTuple):
    """A comment, docstring or text of a program, and where it begins."""

    line: int
    text: str
    comment: bool = True

    def odd(self) -> bool:
        """Whether its subject is no noun, or a person stands for a part of the program."""
        return bool(PEOPLE.search(self.text)) or (self.comment and bool(START.match(self.text)))


def joined(comments: Iterable[tuple[int, str]]) -> Iterator[Remark]:
    """Comments on lines that follow one another, as one."""
    held: list[tuple[int, str]] = []
    for line, text in comments:
        if held and line != held[-1][0] + 1:
            yield Remark(held[0][0], " ".join(part for _, part in held))
            held = []
        if text or held:
            held.append((line, text))
        if held and not text:
            held[-1] = (line, "")
    if held:
        yield Remark(held[0][0], " ".join(part for _, part in held))


def of_python(text: str) -> Iterator[Remark]:
    """Comments and strings of a module; docstrings count as comments."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    yield from joined(
        (token.start[0], token.string.lstrip("#: ")) for token in tokens if token.type == tokenize.COMMENT
    )
    tree = ast.parse(text)
    docs = {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Remark(node.lineno, node.value.strip(), node in docs)


def of_slashes(text: str) -> Iterator[Remark]:
    """Comments and strings of Rust, C or JavaScript."""
    lines = list(enumerate(text.splitlines(), 1))
    marked = [(i, re.match(r"\s*(?:///|//!|//|/\*\*?|\*(?!/))(?: (.*)|$)", line)) for i, line in lines]
    yield from joined((i, (found[1] or "").removesuffix("*/").strip()) for i, found in marked if found)
    comments = {i for i, found in marked if found}
    for i, line in lines:
        if i in comments:
            continue
        if behind := re.search(r"[^:\"'] // (\w.*)$", line):
            yield Remark(i, behind[1])
        yield from (Remark(i, found[1], comment=False) for found in LITERAL.finditer(line))


def repetitions(name: str, text: str) -> Iterator[str]:
    """A line for each docstring whose second paragraph repeats the first one, without its first sentence."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            parts = re.split(r"\n\s*\n", inspect.cleandoc(node.value.value))[:2]
            if len(parts) < 2:
                continue
            first, second = (re.findall(r"\w+", part.lower()) for part in parts)
            first = first[len(re.findall(r"\w+", re.split(r"[.;:]\s", parts[0])[0])) :]
            blocks = difflib.SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
            shared, least = sum(block.size for block in blocks if block.size > 2), min(len(first), len(second))
            if shared and shared >= REPEATED * least:
                yield f"{name}:{node.lineno}: its second paragraph repeats the first"


def room_of(name: str) -> str | None:
    """Return the room of a file; None if its comments are not checked."""
    parts = name.split("/")
    if "tests" in parts or parts[-1] in ("tests.rs", "check_prose.py"):
        return None
    if parts[0] == "crates" and "src" in parts and name.endswith(".rs"):
        inner = f"{parts[1]}/{parts[parts.index('src') + 1].removesuffix('.rs')}"
        return inner if inner in APART else f"crates/{parts[1]}"
    if parts[0] == "linux" and name.endswith((".rs", ".c", ".h")):
        return "linux"
    if parts[0] == "web" and name.endswith((".js", ".mjs")):
        return "web"
    if parts[0] == "python" and name.endswith((".py", ".c", ".h", ".rs")):
        return f"ackclock/{parts[2]}" if len(parts) > 3 and parts[1] == "ackclock" else parts[1]
    return "tools" if parts[0] == "tools" and name.endswith(".py") else None


def odd_remarks(name: str, text: str) -> list[str]:
    """A line for each odd remark of a file."""
    remarks = of_python(text) if name.endswith(".py") else of_slashes(text)
    return [f"{name}:{remark.line}: {' '.join(remark.text.split())[:100]}" for remark in remarks if remark.odd()]


def by_room(root: Path, names: Iterable[str]) -> dict[str, list[str]]:
    """Odd remarks of files below a folder."""
    found: dict[str, list[str]] = {}
    for name in names:
        room = room_of(name)
        if room is not None and (root / name).is_file():
            found.setdefault(room, []).extend(odd_remarks(name, (root / name).read_text(encoding="utf-8")))
    return found


def check_rooms(found: dict[str, list[str]]) -> list[str]:
    """A message for each room that has odd comments."""
    return [
        f"{room}: {len(places)} comments without a noun for a subject; allowed: 0 (tools/check_prose.py {room} lists them)"
        for room, places in found.items()
        if places
    ]


def allowed_words(name: str) -> int | None:
    """Words that a page may have; None if a program writes it, or it is of no kind that has a bound."""
    if name.startswith(MADE) or not name.endswith(".md"):
        return None
    return next((most for start, most in WORDS.items() if name.startswith(start)), None)


def check_pages(root: Path, names: Iterable[str], longer: dict[str, int]) -> list[str]:
    """A message for each page that is too long, and for each number that a page no longer needs."""
    said = []
    for name in names:
        kind = allowed_words(name)
        if kind is None or not (root / name).is_file():
            continue
        words, most = len((root / name).read_text(encoding="utf-8").split()), longer.get(name, kind)
        if words > most:
            said.append(f"{name}: {words} words; allowed: {most}")
        elif name in longer and words <= kind:
            said.append(f"{name}: in LONGER, and has {words} words; take it out")
    return said


def by_hand(name: str, text: str) -> int | None:
    """Return the number of words of a page written by people; None if it is no page of the book."""
    if not name.startswith(BOOK) or name.startswith(APART_FROM_BOOK) or not name.endswith(".md"):
        return None
    text = BLOCK.sub("", text)
    if WRITTEN.search(text):
        text = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    return len(text.split())


def words_by_page(root: Path, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Page -> words written by hand, and all of its words."""
    texts = {name: (root / name).read_text(encoding="utf-8") for name in names if (root / name).suffix == ".md" and (root / name).is_file()}  # fmt: skip
    return {
        name: (hand, len(text.split())) for name, text in texts.items() if (hand := by_hand(name, text)) is not None
    }


def check_book(pages: dict[str, tuple[int, int]], most: int = HAND) -> list[str]:
    """A message if all pages together have too many words written by hand."""
    words = sum(hand for hand, _ in pages.values())
    return [f"documents: {words} words written by hand; allowed: {most} (--words lists the pages)"] if words > most else []  # fmt: skip


def check_changelog(text: str, longer: dict[str, int]) -> list[str]:
    """A message for each area of a release that has too many lines."""
    lines: dict[str, int] = {}
    release = area = ""
    for line in text.splitlines():
        if line.startswith("## "):
            release, area = line[3:].split(" ")[0], ""
        elif line.startswith("### "):
            area = line[4:]
        elif line.startswith("- ") and area:
            place = f"{release} {area}"
            lines[place] = lines.get(place, 0) + 1
    return [
        f"CHANGELOG.md: {place} has {count} lines; allowed: {longer.get(place, RELEASE_LINES)}"
        for place, count in lines.items()
        if count > longer.get(place, RELEASE_LINES)
    ]


def bare_commits(root: Path, base: str = "main") -> list[str]:
    """Commits since `base` whose message is a title alone; none where there is no such branch."""
    asked = ["git", "log", "--no-merges", "--format=%h%x00%s%x00%b%x01", f"{base}..HEAD"]
    done = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=False)
    told = [entry.strip("\n").split("\0") for entry in done.stdout.split("\x01") if entry.strip()]
    return [f"{commit} {title}" for commit, title, body in told if not body.strip()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM")
    parser.add_argument("--words", action="store_true")
    asked = parser.parse_args()
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = sorted(listed.splitlines())
    pages = words_by_page(ROOT, names)
    if asked.words:
        for name, (hand, words) in sorted(pages.items(), key=lambda page: -page[1][0]):
            print(f"{hand:6} {words:6} {name}")
        print(
            f"{sum(hand for hand, _ in pages.values()):6} {sum(words for _, words in pages.values()):6} all; allowed by hand: {HAND}"
        )
        return 0
    found = by_room(ROOT, names)
    if asked.rooms:
        for room in asked.rooms:
            if room not in found:
                parser.error(f"found {room}; allowed: {', '.join(sorted(found))}")
            print("\n".join(found[room]))
        return 0
    said = check_pages(ROOT, names, LONGER) + check_book(pages) + check_rooms(found)
    for name in names:
        if name.endswith(".py") and (ROOT / name).is_file():
            said += repetitions(name, (ROOT / name).read_text(encoding="utf-8"))
    said += check_changelog((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), LONGER_RELEASES)
    for line in said:
        print(line, file=sys.stderr)
    for commit in bare_commits(ROOT):
        print(f"note: {commit}: no body; say why, unless the title does", file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
