"""Student answers: lab links and notebooks. Both are only read; notebook code is never executed."""

from __future__ import annotations

import ast
import json
import os
import re
import stat
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ackclock import _files, _link
from ackclock._course.lesson import LARGEST, Lesson
from ackclock.errors import InputError, one_of, quote

LARGEST_FILE = 2**24
"""Maximum size of a submitted file, bytes. Notebooks may contain pictures."""
MOST_FILES = 10_000
MOST_LINKS = 200
"""Maximum number of links in a file."""
ENDINGS = (".ipynb", ".txt", ".csv", ".md", ".url")
"""Suffixes of files read from a folder."""

_FOUND_LINK = re.compile(r'[^\s,;"\'<>#]*#s=[^\s,;"\'<>]*')
_ANSWER = re.compile(r"(?P<lesson>[a-z0-9-]+)-answer-(?P<task>[0-9]{1,3})")
DEEPEST = 200
"""Maximum number of chained `replace` calls and concatenated strings in an answer."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Scenario submitted by a student.

    Parameters
    ----------
    student, source
        Student, and where the scenario was found.
    lesson
        Lesson that is answered.
    task
        Number of the task, from 0; None for all tasks that the scenario solves.
    text, seed
        Scenario and seed.
    """

    student: str
    source: str
    lesson: Lesson
    task: int | None
    text: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class Unread:
    """Submission that could not be read.

    Parameters
    ----------
    student, source
        Student, and where the submission was found.
    said
        Message that says what was found and what is allowed.
    lesson, task
        Lesson and task for which it is meant, if known.
    elsewhere
        Lesson that it names, and that is not among those to judge by; empty if it names none such.
    """

    student: str
    source: str
    said: str
    lesson: str = ""
    task: int | None = None
    elsewhere: str = ""


def strangers(handed: Sequence[Answer | Unread]) -> list[str]:
    """Return the lessons that the submissions are for, if none is for a lesson being graded; otherwise nothing."""
    if any(isinstance(one, Answer) or one.lesson for one in handed):
        return []
    return list(dict.fromkeys(one.elsewhere for one in handed if isinstance(one, Unread) and one.elsewhere))


def collect(places: Sequence[str], taught: Sequence[Lesson]) -> Iterator[Answer | Unread]:
    """Read the answers in files, folders and links.

    In a folder each file belongs to a student, and so does each subfolder, as in nbgrader's folder `submitted`.

    Raises
    ------
    InputError
        If one of the paths does not exist or contains nothing readable.
    """
    known = {lesson.id: lesson for lesson in taught}
    for place in places:
        if _link.is_link(place):
            yield _of_link(place, "–", "the command line", known)
            continue
        path = Path(place)
        try:
            status = path.stat()
        except (OSError, ValueError) as error:
            found = error.strerror if isinstance(error, OSError) else "no name of a file"
            raise InputError(
                f"{place}: found {found}; allowed: a notebook, a file with links of the lab, a folder of them, or a link"
            ) from None
        _files.reads(path)
        if stat.S_ISDIR(status.st_mode):
            files = sorted(_in_folder(path))
            if not files:
                raise InputError(
                    f"{place}: found no file of the kinds {', '.join(ENDINGS)}; allowed: a folder with what students hand in"
                )
            for file in files:
                first = file.relative_to(path).parts[0]
                yield from _of_file(file, Path(first).stem if first == file.name else first, known)
        else:
            yield from _of_file(path, path.stem, known, named=path.suffix.lower() == ".csv")


def _in_folder(folder: Path) -> Iterator[Path]:
    """Return the non-hidden files below a folder, not following links that lead out of it."""
    count = 0
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            if Path(name).suffix.lower() in ENDINGS and not name.startswith("."):
                count += 1
                if count > MOST_FILES:
                    raise InputError(
                        f"{folder}: found more than {MOST_FILES} files; allowed: a folder with what students hand in"
                    )
                yield Path(where) / name


def _of_file(
    path: Path, student: str, known: Mapping[str, Lesson], *, named: bool = False
) -> Iterator[Answer | Unread]:
    source = str(path)
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            yield Unread(
                student=student, source=source, said="found no regular file; allowed: a notebook, or a file with links"
            )
            return
        if status.st_size > LARGEST_FILE:
            yield Unread(
                student=student, source=source, said=f"found {status.st_size} bytes; allowed: at most {LARGEST_FILE}"
            )
            return
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        yield Unread(student=student, source=source, said=f"found {error.strerror}; allowed: a readable file")
        return
    except UnicodeDecodeError:
        yield Unread(
            student=student,
            source=source,
            said="found other bytes than UTF-8; allowed: a notebook, or a file with links",
        )
        return
    if path.suffix.lower() == ".ipynb":
        yield from _of_notebook(text, student, source, known)
    else:
        yield from _of_links(text, student, source, known, named)


# --- links


def _of_links(
    text: str, student: str, source: str, known: Mapping[str, Lesson], named: bool
) -> Iterator[Answer | Unread]:
    """Return the links in a file. In a teacher's table (`named`), a line's first field is the student's name;
    students cannot write there, so the name can be trusted.
    """
    count = 0
    for number, line in enumerate(text.splitlines(), 1):
        links = _FOUND_LINK.findall(line)
        name = re.split(r"[,;\t]", line)[0].strip(" \"'") if named else ""
        for link in links:
            count += 1
            if count > MOST_LINKS * (1 + len(known)):
                yield Unread(
                    student=student,
                    source=source,
                    said=f"found more than {count - 1} links; allowed: a file with fewer",
                )
                return
            yield _of_link(
                link, name[:80] if name and not _link.is_link(name) else student, f"{source}:{number}", known
            )
    if not count:
        yield Unread(
            student=student,
            source=source,
            said='found no link of the lab; allowed: lines with links ("Copy link"), #s=...&seed=...&lesson=...',
        )


def _of_link(link: str, student: str, source: str, known: Mapping[str, Lesson]) -> Answer | Unread:
    try:
        text, seed = _link.read(link)
        name = _link.lesson(link)
    except InputError as error:
        return Unread(student=student, source=source, said=str(error).removeprefix("lab: "))
    if not name and len(known) == 1:
        name = next(iter(known))
    if name not in known:
        found = f"found a link of the lesson {quote(name)}" if name else "found a link without a lesson"
        allowed = (
            one_of(name, known)
            if name
            else "one that was copied within a lesson, or one lesson alone to judge by (--lesson)"
        )
        return Unread(student=student, source=source, said=f"{found}; allowed: {allowed}", elsewhere=name)
    return Answer(student=student, source=source, lesson=known[name], task=None, text=text, seed=int(seed))


# --- notebooks


def _of_notebook(text: str, student: str, source: str, known: Mapping[str, Lesson]) -> Iterator[Answer | Unread]:
    try:
        cells = _cells(text)
    except InputError as error:
        yield Unread(student=student, source=source, said=str(error))
        return
    names: dict[str, str] = {}
    met = 0
    elsewhere = ""
    for name, code in cells:
        meant = _ANSWER.fullmatch(name)
        lesson = known.get(meant["lesson"]) if meant else None
        if meant and lesson is None:
            elsewhere = elsewhere or meant["lesson"]
        try:
            given = _texts_of(code, names)
        except InputError as error:
            if meant and lesson:
                met += 1
                yield Unread(
                    student=student,
                    source=f"{source}: {name}",
                    said=str(error),
                    lesson=lesson.id,
                    task=int(meant["task"]) - 1,
                )
            continue
        if meant is None or lesson is None:
            continue
        task = int(meant["task"]) - 1
        met += 1
        where = f"{source}: {name}"
        if not 0 <= task < len(lesson.tasks):
            yield Unread(
                student=student, source=where, said=f"found the task {task + 1}; allowed: 1 to {len(lesson.tasks)}"
            )
        elif "text" not in given:
            yield Unread(
                student=student, source=where, lesson=lesson.id, task=task,
                said="found no text that can be read without running the cell; allowed: text = '''...''', or text = lesson.replace(\"old\", \"new\")",
            )  # fmt: skip
        else:
            yield Answer(student=student, source=where, lesson=lesson, task=task, text=given["text"], seed=1)
    if not met and elsewhere:
        said = f"found answers to the lesson {quote(elsewhere)}; allowed: {one_of(elsewhere, known)}"
        yield Unread(student=student, source=source, said=said, elsewhere=elsewhere)
    elif not met:
        yield Unread(
            student=student,
            source=source,
            said="found no cell of an answer; allowed: a notebook that `ackclock lesson notebook` made of these lessons, with its cells",
        )


def _cells(text: str) -> list[tuple[str, str]]:
    """Return the name and source of each code cell. The name is nbgrader's, which survives the loss of the cell id, or else the id itself."""
    allowed = "a whole notebook of Jupyter, nbformat 4"
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError, MemoryError):
        raise InputError(f"found no notebook, or a part of one; allowed: {allowed}") from None
    cells = whole.get("cells") if isinstance(whole, dict) else None
    if not isinstance(cells, list):
        raise InputError(f"found a file without cells; allowed: {allowed}")
    found = []
    for cell in cells:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        if isinstance(source, list) and all(isinstance(part, str) for part in source):
            source = "".join(source)
        if not isinstance(source, str):
            continue
        metadata = cell.get("metadata")
        graded = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        name = graded.get("grade_id") if isinstance(graded, dict) else None
        name = name if isinstance(name, str) else cell.get("id")
        found.append((name if isinstance(name, str) else "", source))
    return found


def _texts_of(code: str, names: dict[str, str]) -> dict[str, str]:
    """Return the strings that a cell assigns to names at its top level, as far as can be determined without running
    it.

    Parameters
    ----------
    code
        Code of the cell.
    names
        Names from earlier cells. This cell's names are added, and a name that gets any other value is removed.

    Raises
    ------
    InputError
        If it is not valid Python.
    """
    plain = "\n".join("" if re.match(r"\s*[%!?]", line) else line for line in code.split("\n"))
    if "'''" in code or '"""' in code:
        plain = code if _parses(code) else plain  # in a multi-line string such a line may belong to a scenario
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # spelling warnings are shown only to the student
            body = _parsed(plain).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = f"{error.msg}, line {error.lineno}" if isinstance(error, SyntaxError) else "too deep, or with a null byte"
        raise InputError(
            f"found a cell that is no Python ({why}); allowed: text = '''...''', or text = lesson.replace(\"old\", \"new\")"
        ) from None
    given: dict[str, str] = {}
    for line in body:
        targets = (
            line.targets if isinstance(line, ast.Assign) else [line.target] if isinstance(line, ast.AnnAssign) else []
        )
        value = line.value if isinstance(line, ast.Assign | ast.AnnAssign) else None
        told = _told(value, names) if value is not None else None
        for target in targets:
            if isinstance(target, ast.Name):
                names.pop(target.id, None)
                given.pop(target.id, None)
                if told is not None and len(names) < 1000:
                    names[target.id] = given[target.id] = told
    return given


def _parsed(code: str) -> ast.Module:
    if len(code) > LARGEST:
        raise ValueError(code[:10])
    return ast.parse(code)


def _parses(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _parsed(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _told(value: ast.expr, names: Mapping[str, str], deep: int = 0) -> str | None:
    """Return the string value of an expression: a literal, a name bound to one, a concatenation, or `replace` and `strip` calls on one.
    None for anything else, or if the text is too long.
    """
    if deep > DEEPEST:
        return None
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, str) else None
    if isinstance(value, ast.Name):
        return names.get(value.id)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        sides = [_told(side, names, deep + 1) for side in (value.left, value.right)]
        if None in sides or sum(len(side or "") for side in sides) > LARGEST:
            return None
        return "".join(side or "" for side in sides)
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.keywords):
        return None
    inner = _told(value.func.value, names, deep + 1)
    parts = [_told(part, names, deep + 1) for part in value.args]
    if inner is None or None in parts:
        return None
    old, *more = [part or "" for part in parts] or [""]
    if value.func.attr == "replace" and len(more) == 1:
        length = len(inner) + inner.count(old) * (len(more[0]) - len(old))
        return inner.replace(old, more[0]) if length <= LARGEST else None
    return inner.strip() if value.func.attr == "strip" and not parts else None
