"""Reads lesson files, and checks them before students see them."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ackclock import _files, own
from ackclock._course.condition import Condition
from ackclock._course.condition import read as condition
from ackclock._results.result import Run
from ackclock._results.run import run
from ackclock.errors import InputError, Placed, ScenarioError, one_of, placed, quote
from ackclock.scenario import Scenario
from ackclock.scenario._toml import read_toml

FOLDER = Path(__file__).parent.parent / "_lessons"
LARGEST = 2**20
"""Maximum size of a lesson file and of an answer, bytes."""
CPU_LIMIT_S = 20.0
MEMORY_LIMIT = 2**30
"""Limits on a lesson's run, the same as in the page."""

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_KEYS = ("title", "text", "scenario", "sliders", "draw", "tasks")
_TASK_KEYS = ("ask", "holds", "change", "keep", "answer", "points")
UNCHANGED = "left as it is in the lesson"
DRAWN = ("cubic",)
"""Curves that a lesson may show beside the windows."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """Task: a condition that a student's run has to meet.

    Parameters
    ----------
    ask
        The question.
    holds
        Conditions on the run, all of which have to hold.
    change
        The only keys of the scenario that may be changed; empty: any.
    keep
        Keys that have to stay unchanged.
    answer
        Replacements in the lesson's scenario that solve the task.
    points
        Points of the task.
    """

    ask: str
    holds: tuple[Condition, ...]
    change: tuple[str, ...]
    keep: tuple[str, ...]
    answer: tuple[tuple[str, str], ...]
    points: float


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """Lesson: a text, a scenario, and tasks.

    Parameters
    ----------
    id
        Name of its file without the suffix, used in links.
    title, text
        Title, and paragraphs for the reader.
    scenario
        TOML.
    sliders
        Numeric keys with a slider in the page.
    draw
        Curve drawn beside the windows: "cubic" for the curve of CUBIC; empty for none.
    tasks
        Tasks in order.
    source
        File, for messages.
    """

    id: str
    title: str
    text: tuple[str, ...]
    scenario: str
    sliders: tuple[str, ...]
    draw: str
    tasks: tuple[Task, ...]
    source: str

    def answered(self, task: Task) -> str:
        """Return the scenario for the lesson's own answer."""
        text = self.scenario
        for old, new in task.answer:
            text = text.replace(old, new)
        return text

    def wrong(self, task: Task, text: str, seed: int = 1) -> str:
        """Return why an answer is wrong, or an empty string if it is right.

        Raises
        ------
        InputError
            If the text is not a scenario that may be run.
        """
        return Judged(self, text, seed).wrong(task)


class Judged:
    """A student's answer: the lesson's scenario with changes, run once for all tasks.

    Raises
    ------
    InputError
        If the text is not a scenario, reads files or runs programs that the lesson does not name, or would exceed a lesson's limits.
    """

    def __init__(self, lesson: Lesson, text: str, seed: int) -> None:
        if len(text) > LARGEST:
            raise InputError(f"found {len(text)} characters; allowed: at most {LARGEST}")
        if not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text):
            raise InputError("found half a character; allowed: text in Unicode")
        values, places = read_toml(text)
        known, _ = read_toml(lesson.scenario)
        strange = sorted(_outside(values) - _outside(known))
        if strange:
            raise InputError(
                f"found {quote(strange[0])}; allowed: no file and no program that the lesson does not name"
            )
        self._seed = seed
        values = values if _asks_for_records(lesson) else _recorded_as(known, values)
        self._changed = changed(known, values)
        try:
            scenario = Scenario.from_dict(values)
            own.refuse(scenario.controllers())
            self._scenario = scenario
            if self._changed:
                self.run  # noqa: B018 - which may be refused
        except ScenarioError as error:
            raise error.read_from("", places) from None

    def wrong(self, task: Task) -> str:
        """Return why the task is not solved, or an empty string if it is."""
        if not self._changed:
            return UNCHANGED
        for key in self._changed:
            if task.change and not any(_within(key, allowed) for allowed in task.change):
                return f"found a change of {key}; allowed: of {', '.join(task.change)}"
            kept = [kept for kept in task.keep if _within(key, kept)]
            if kept:
                return f"found a change of {key}; allowed: {kept[0]} as in the lesson"
        missed = [one.found(self.run) for one in task.holds if not one.holds(self.run)]
        return f"does not show {missed[0]}" if missed else ""

    def shows(self, task: Task) -> bool:
        """Return whether the run meets the task's conditions, regardless of what was changed in the scenario."""
        return all(one.holds(self.run) for one in task.holds)

    @cached_property
    def run(self) -> Run:
        """Run the scenario."""
        return run(self._scenario, seed=self._seed, cpu_limit_s=CPU_LIMIT_S, memory_limit=MEMORY_LIMIT)


def changed(known: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
    """Return the keys that differ between two scenarios, or exist in only one.

    Examples
    --------
    >>> changed({"a": {"b": 1, "c": "5 ms"}}, {"a": {"b": 2, "c": "5ms"}})
    ['a.b']
    """
    before, after = leaves(known), leaves(values)
    return [key for key in {**before, **after} if _told(before.get(key)) != _told(after.get(key))]


def leaves(value: Any, key: str = "") -> dict[str, Any]:
    """Return the values by dotted key."""
    if isinstance(value, Mapping):
        inner: list[tuple[str, Any]] = list(value.items())
    elif isinstance(value, list):
        inner = [(str(n), entry) for n, entry in enumerate(value)]
    else:
        return {key: value}
    return {k: v for name, entry in inner for k, v in leaves(entry, f"{key}.{name}".lstrip(".")).items()}


def _told(value: Any) -> str | None:
    """Return a value in normal form: "40ms" equals "40 ms"."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else re.sub(r"\s", "", f"{value:.15g}" if isinstance(value, float) else str(value))


def _within(key: str, whole: str) -> bool:
    return key == whole or key.startswith(f"{whole}.")


def _asks_for_records(lesson: Lesson) -> bool:
    """Return whether a task concerns what a run records: it names such a key, or its answer changes one."""
    keys = [key for task in lesson.tasks for key in task.change]
    known, _ = read_toml(lesson.scenario)
    for task in lesson.tasks:
        with suppress(ScenarioError):  # reported when the answer is graded
            keys += changed(known, read_toml(lesson.answered(task))[0])
    return any(_within(key, "record") for key in keys)


def _recorded_as(known: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer's values with the lesson's own table `record`.

    A run report adds keys to this table that a student does not see. Replacing the whole table also ensures that
    changing the warm-up does not solve a task.
    """
    rest = {key: value for key, value in values.items() if key != "record"}
    return {**rest, "record": known["record"]} if "record" in known else rest


def _outside(values: Mapping[str, Any]) -> set[str]:
    """Return the files and programs named in a scenario."""
    found = set()
    for key, value in leaves(values).items():
        name = key.rpartition(".")[2]
        program = isinstance(value, str) and name == "congestion_control" and re.search(r"[:./\\]", value)
        if isinstance(value, str) and (name == "file" or (program and not value.startswith("quinn"))):
            found.add(value)
    return found


def shipped() -> list[Lesson]:
    """Return the packaged lessons, in order."""
    found = [read(path) for path in sorted(FOLDER.glob("*.toml"))]
    return sorted(found, key=lambda lesson: int(re.match(r"[0-9]*", lesson.title)[0] or 0))  # type: ignore[index]


def lessons(names: Sequence[str]) -> list[Lesson]:
    """Return the lessons with these files or names; by default all packaged lessons.

    Raises
    ------
    InputError
        If one cannot be read, or two share an id.
    """
    if not names:
        return shipped()
    found: dict[str, Lesson] = {}
    for name in names:
        made = read(_file(name))
        if made.id in found:
            raise InputError(f"{name}: found a second lesson {quote(made.id)}; allowed: files of different names")
        found[made.id] = made
    return list(found.values())


def _file(name: str) -> Path:
    known = [path.stem for path in sorted(FOLDER.glob("*.toml"))]
    if re.fullmatch(r"[\w-]+", name) and not Path(name).is_file():
        if name not in known:
            raise InputError(f"LESSON: found {quote(name)}; allowed: {one_of(name, known)}, or a file of yours (TOML)")
        return FOLDER / f"{name}.toml"
    return Path(name)


def read(path: Path) -> Lesson:
    """Read a lesson from its file. No code is executed.

    Raises
    ------
    InputError
        One line: the file, the key, what was found, what is allowed.
    """
    source = path.name if path.parent == FOLDER else str(path)
    allowed = "a readable TOML file in UTF-8 of at most 1 MiB"
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            found = f"{status.st_size} bytes" if stat.S_ISREG(status.st_mode) else "no regular file"
            raise InputError(f"{source}: found {found}; allowed: {allowed}")
        if path.parent != FOLDER:
            _files.reads(path)
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{source}: found {error.strerror}; allowed: {allowed}") from None
    except UnicodeDecodeError:
        raise InputError(f"{source}: found other bytes than UTF-8; allowed: {allowed}") from None
    try:
        values, places = read_toml(text)
    except ScenarioError as error:
        raise error.read_from(source, {}) from None
    name = path.stem
    if not _ID.fullmatch(name):
        raise InputError(
            f"{source}: found {quote(name)} as the lesson's name; allowed: small letters, digits and hyphens"
        )
    return _Reader(source, _line(text, places.get("scenario"))).lesson(name, values)


def _line(text: str, place: Placed | None) -> int:
    """Return the number of the line preceding the scenario's first line."""
    if place is None:
        return 0
    line, column, _ = place.value
    opened = text.split("\n")[line - 1][column - 1 :].strip()
    return line if opened in ("'''", '"""') else line - 1


class _Reader:
    """Reads and checks a file's values."""

    def __init__(self, source: str, before: int) -> None:
        self._source = source
        self._before = before

    def lesson(self, name: str, values: Mapping[str, Any]) -> Lesson:
        self._known("", values, _KEYS, ("title", "text", "scenario", "tasks"))
        scenario = self._text("scenario", values["scenario"])
        written, places = self._scenario(scenario)
        numbers = leaves(written)
        sliders = self._texts("sliders", values.get("sliders", []))
        for n, key in enumerate(sliders):
            if key not in numbers:
                self._no(f"sliders.{n}", quote(key), one_of(key, numbers))
        draw = values.get("draw", "")
        if draw not in ("", *DRAWN):
            self._no("draw", quote(draw), ", ".join(DRAWN))
        tasks = values["tasks"]
        if not isinstance(tasks, list) or not tasks or not all(isinstance(task, dict) for task in tasks):
            self._no("tasks", quote(tasks), "one or more tables [[tasks]]")
        made = [self._task(f"tasks.{n}", task, scenario, places) for n, task in enumerate(tasks)]
        text = self._text("text", values["text"])
        return Lesson(
            id=name,
            title=self._text("title", values["title"]),
            text=tuple(" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())),
            scenario=scenario,
            sliders=sliders,
            draw=draw,
            tasks=tuple(made),
            source=self._source,
        )

    def _task(self, key: str, task: Mapping[str, Any], scenario: str, places: Mapping[str, Any]) -> Task:
        self._known(key, task, _TASK_KEYS, ("ask", "holds", "answer"))
        holds = []
        for n, text in enumerate(self._texts(f"{key}.holds", task["holds"])):
            try:
                holds.append(condition(text))
            except InputError as error:
                raise InputError(f"{self._source}: {key}.holds.{n}: {error}") from None
        if not holds:
            self._no(f"{key}.holds", "an empty list", "one or more conditions")
        limits = {}
        for name in ("change", "keep"):
            limits[name] = self._texts(f"{key}.{name}", task.get(name, []))
            for n, part in enumerate(limits[name]):
                # a key to be changed may be absent from the scenario if its table exists
                if part not in places and not (name == "change" and part.rpartition(".")[0] in {"", *places}):
                    self._no(f"{key}.{name}.{n}", quote(part), one_of(part, places))
        points = task.get("points", 1)
        if isinstance(points, bool) or not isinstance(points, int | float) or not 0 < points <= 1000:
            self._no(f"{key}.points", quote(points), "a number above 0, at most 1000")
        return Task(
            ask=self._text(f"{key}.ask", task["ask"]),
            holds=tuple(holds),
            change=limits["change"],
            keep=limits["keep"],
            answer=tuple(self._answer(f"{key}.answer", task["answer"], scenario)),
            points=float(points),
        )

    def _answer(self, key: str, value: Any, scenario: str) -> Iterator[tuple[str, str]]:
        pairs = value if isinstance(value, list) else []
        if not pairs or not all(
            isinstance(p, list) and len(p) == 2 and all(isinstance(t, str) for t in p) for p in pairs
        ):
            self._no(
                key,
                quote(value),
                'a list of pairs, a text in the scenario and its replacement: [["60 packets", "200 packets"]]',
            )
        for n, (old, new) in enumerate(pairs):
            if not old or old not in scenario:
                self._no(f"{key}.{n}", quote(old), "a part of the lesson's scenario")
            yield old, new

    def _scenario(self, text: str) -> tuple[dict[str, Any], Mapping[str, Any]]:
        places: Mapping[str, Placed] = {}
        try:
            values, places = read_toml(text)
            own.refuse((key, value) for key, value in leaves(values).items() if isinstance(value, str))
            Scenario.from_dict(values)
        except ScenarioError as error:
            at = error.place or placed(error.key, places)
            raise ScenarioError(
                key=f"scenario: {error.key}".removesuffix(": "),
                found=error.found,
                allowed=error.allowed,
                source=f"{self._source}:{self._before + at.line}",
            ) from None
        return values, places

    def _known(self, key: str, values: Mapping[str, Any], known: Sequence[str], needed: Sequence[str]) -> None:
        for name in values:
            if name not in known:
                self._no(f"{key}.{name}".lstrip("."), "an unknown key", one_of(name, known))
        for name in needed:
            if name not in values:
                self._no(
                    f"{key}.{name}".lstrip("."),
                    "nothing",
                    f"a lesson has {', '.join(needed)}" if not key else f"a task has {', '.join(needed)}",
                )

    def _text(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            self._no(key, quote(value), "a text")
        return str(value)

    def _texts(self, key: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            self._no(key, quote(value), "a list of texts")
        return tuple(value)

    def _no(self, key: str, found: str, allowed: str) -> None:
        raise InputError(f"{self._source}: {key}: found {found}; allowed: {allowed}")


def check(lesson: Lesson) -> list[str]:
    """Return the errors in a lesson's tasks, one per line: the lesson's own answers must solve the tasks, and the unchanged scenario must not."""
    found = []
    for n, task in enumerate(lesson.tasks):
        where = f"{lesson.source}: tasks.{n}"
        try:
            wrong = lesson.wrong(task, lesson.answered(task))
        except InputError as error:
            found.append(f"{where}.answer: {error}")
            continue
        if wrong:
            found.append(f"{where}.answer: {wrong}; allowed: an answer that does what is asked")
        if Judged(lesson, lesson.scenario, 1).shows(task):
            found.append(
                f"{where}.holds: found a task that the scenario does as it stands; allowed: one that needs a change"
            )
    return found


def for_page(taught: Sequence[Lesson]) -> list[dict[str, Any]]:
    """Return lessons in the form read by the lab's page (`web/lessons.js`)."""
    return [
        {
            "id": lesson.id,
            "title": lesson.title,
            "text": list(lesson.text),
            "scenario": lesson.scenario,
            "sliders": list(lesson.sliders),
            "draw": lesson.draw,
            "records": _asks_for_records(lesson),
            "written": {key: _told(value) for key, value in leaves(read_toml(lesson.scenario)[0]).items()},
            "tasks": [
                {
                    "ask": task.ask,
                    "solved": [list(pair) for pair in task.answer],
                    "holds": [one.for_page() for one in task.holds],
                    "change": list(task.change),
                    "keep": list(task.keep),
                }
                for task in lesson.tasks
            ],
        }
        for lesson in taught
    ]
