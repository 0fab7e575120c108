"""`ackclock lesson`: courses, with packaged or teachers' lessons, as notebooks, and marks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ackclock import _files
from ackclock.cli import _terminal
from ackclock.cli._options import NOTHING, Json, file_name
from ackclock.errors import InputError, quote, shown

if TYPE_CHECKING:
    from ackclock._course import Mark, Unread

Lessons = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LESSON...",
        help="Files of lessons (TOML), or names of shipped ones; default: all of these.",
        show_default=False,
    ),
]


def names(as_json: Json = False) -> None:
    """List the lessons that come with the package, with their tasks."""
    from ackclock._course import shipped

    found = shipped()
    if as_json:
        _terminal.show_json(
            [{"id": one.id, "title": one.title, "tasks": [task.ask for task in one.tasks]} for one in found]
        )
        return
    from rich.table import Table

    table = Table("lesson", "title", "tasks", show_edge=False)
    for one in found:
        table.add_row(one.id, one.title, str(len(one.tasks)))
    _terminal.show(table)


def check(lesson: Lessons = None, as_json: Json = False) -> int:
    """Check lessons: each answer must solve its task, and the unchanged scenario must not. Exit code 1 if one is wrong."""
    from ackclock._course import lessons
    from ackclock._course.lesson import check as wrong

    taught = lessons(lesson or [])
    found = _terminal.interruptible(lambda: {one.source: (len(one.tasks), wrong(one)) for one in taught})
    if as_json:
        _terminal.show_json({source: wrongs for source, (_, wrongs) in found.items()})
    else:
        for source, (count, wrongs) in found.items():
            for line in wrongs or [f"{source}: a lesson, {count} {'task' if count == 1 else 'tasks'}"]:
                _terminal.say(shown(line))
    return 1 if any(wrongs for _, wrongs in found.values()) else 0


def notebook(
    lesson: Lessons = None,
    out: Annotated[
        Path, typer.Option("--out", parser=file_name, metavar="FILE", help="Write the notebook to this file (.ipynb).")
    ] = Path("lessons.ipynb"),
    student: Annotated[bool, typer.Option("--student", help="Without answers, to hand out.")] = False,
    title: Annotated[str, typer.Option(metavar="TEXT", help="Heading of the notebook.")] = "Lessons on TCP",
) -> None:
    """Write lessons as a notebook, for the teacher or for students. Its cells work with nbgrader."""
    from ackclock._course import lessons
    from ackclock._course import notebook as made

    taught = lessons(lesson or [])
    _terminal.writable_file(out, "--out")
    _files.write(out, made(taught, student=student, title=shown(title)), f"--out {out}")
    tasks = sum(len(one.tasks) for one in taught)
    held = ", ".join(f"{n:,} {word}{'' if n == 1 else 's'}" for n, word in ((len(taught), "lesson"), (tasks, "task")))
    _terminal.say(f"{out}: {held}, {'without' if student else 'with'} answers")


def grade(
    handed: Annotated[
        list[str],
        typer.Argument(
            metavar="ANSWERS...", help="Notebooks, files with links of the lab, folders of them, or a link."
        ),
    ],
    lesson: Annotated[
        list[str],
        typer.Option(
            "--lesson",
            metavar="LESSON",
            help="File of a lesson, or name of a shipped one; default: all of these. Repeatable.",
        ),
    ] = NOTHING,
    csv: Annotated[
        Path | None, typer.Option(parser=file_name, metavar="FILE", help="Write every mark with its reason (CSV).")
    ] = None,
    as_json: Json = False,
) -> None:
    """List which student has solved which task. Scenarios are run; submitted code is read, not executed."""
    from ackclock._course import collect, lessons, strangers
    from ackclock._course import grade as graded

    taught = lessons(lesson)
    answers = list(collect(handed, taught))
    if others := strangers(answers):
        judged = "those of --lesson" if lesson else "shipped ones"
        raise InputError(
            f"{shown(handed[0])}: found answers to the lesson {', '.join(map(quote, others[:3]))} alone; allowed: {judged}, "
            f"or the file of that lesson behind --lesson"
        )
    if csv is not None:
        _terminal.writable_file(csv, "--csv")
    with _terminal.progress() as tell:
        marks, loose = _terminal.interruptible(lambda: graded(answers, taught, progress=tell))
    if csv is not None:
        import polars as pl

        from ackclock import text

        rows = [_row(mark) for mark in marks] + [_row_unread(one) for one in loose]
        _files.write(csv, text.csv(pl.DataFrame(rows, schema=_COLUMNS, orient="row")), f"--csv {csv}")
    if as_json:
        listed = [dict(zip(_COLUMNS, _row(mark), strict=True)) for mark in marks]
        unread = [{"student": one.student, "source": one.source, "said": one.said} for one in loose]
        _terminal.show_json({"schema": "ackclock.marks/1", "marks": listed, "unread": unread})
        return
    _terminal.show(_table(marks))
    for mark in marks:
        if mark.said and mark.source:
            _terminal.say(f"{mark.student}, {mark.lesson}, task {mark.task}: {mark.said} ({mark.source})")
    for one in loose:
        _terminal.say(f"{one.student}: {one.said} ({one.source})")


_COLUMNS = ("student", "lesson", "task", "points", "of", "said", "source")


def _row(mark: Mark) -> tuple[str, str, int, float, float, str, str]:
    return (mark.student, mark.lesson, mark.task, mark.points, mark.most, shown(mark.said), shown(mark.source))


def _row_unread(one: Unread) -> tuple[str, str, int, float, float, str, str]:
    return (one.student, "", 0, 0.0, 0.0, shown(one.said), shown(one.source))


def _table(marks: list[Mark]) -> Any:
    """Return a table with one row per student and one column per lesson, where each cell shows which tasks are done."""
    from rich.table import Table

    taught = list(dict.fromkeys(mark.lesson for mark in marks))
    table = Table("student", show_edge=False)
    students: dict[str, list[Mark]] = {}
    for mark in marks:
        students.setdefault(mark.student, []).append(mark)
    shown_lessons = [name for name in taught if any(mark.lesson == name and mark.source for mark in marks)]
    for name in shown_lessons:
        table.add_column(name, overflow="fold")
    table.add_column("points", justify="right")
    for student, own in students.items():
        cells = [
            " ".join("✓" if not mark.said else "✗" if mark.source else "–" for mark in own if mark.lesson == name)
            for name in shown_lessons
        ]
        total, most = sum(mark.points for mark in own), sum(mark.most for mark in own)
        table.add_row(student, *cells, f"{total:g} of {most:g}")
    return table
