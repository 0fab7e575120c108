"""Grading of submissions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ackclock._course.answers import Answer, Unread
from ackclock._course.lesson import Judged, Lesson, Task
from ackclock.errors import AckclockError

MOST_ANSWERS = 20
"""Maximum number of a student's answers to one lesson that are actually run."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A student's mark for a task.

    Parameters
    ----------
    student, lesson, task
        Student, lesson and task; tasks count from 1.
    points, most
        Points awarded, and maximum for the task.
    said
        Why the task is not solved; empty if it is.
    source
        Judged submission; empty if there is none.
    """

    student: str
    lesson: str
    task: int
    points: float
    most: float
    said: str
    source: str


def grade(
    handed: Sequence[Answer | Unread],
    taught: Sequence[Lesson],
    *,
    progress: Callable[[str, float], None] = lambda _, __: None,
) -> tuple[list[Mark], list[Unread]]:
    """Return every student's best mark for every task, and the submissions that match no task or cannot be read."""
    done: dict[tuple[str, str, int], Mark] = {}
    loose: list[Unread] = []
    students: dict[str, None] = {}
    counts: dict[tuple[str, str], int] = {}
    for number, one in enumerate(handed):
        progress(one.student, number / len(handed))
        students[one.student] = None
        if isinstance(one, Unread):
            if one.task is None:
                loose.append(one)
            else:
                _keep(
                    done,
                    Mark(
                        student=one.student,
                        lesson=one.lesson,
                        task=one.task + 1,
                        points=0,
                        most=0,
                        said=one.said,
                        source=one.source,
                    ),
                )
            continue
        key = (one.student, one.lesson.id)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] > MOST_ANSWERS:
            if counts[key] == MOST_ANSWERS + 1:
                loose.append(
                    Unread(
                        student=one.student,
                        source=one.source,
                        said=f"found more than {MOST_ANSWERS} answers to {one.lesson.id}; allowed: {MOST_ANSWERS}, the others are not run",
                    )
                )
            continue
        for mark in _marks(one):
            _keep(done, mark)
    marks = [
        _of(done.get((student, lesson.id, n + 1)), student, lesson, n, task)
        for student in students
        for lesson in taught
        for n, task in enumerate(lesson.tasks)
    ]
    return marks, loose


def _marks(answer: Answer) -> list[Mark]:
    """Grade a scenario for its task, or for all tasks in the lesson."""
    lesson = answer.lesson
    tasks = [(n, task) for n, task in enumerate(lesson.tasks) if answer.task in (None, n)]
    refused = ""
    try:
        judged = Judged(lesson, answer.text, answer.seed)
    except AckclockError as error:
        refused = str(error)
    return [
        Mark(
            student=answer.student, lesson=lesson.id, task=n + 1, points=0 if said else task.points, most=task.points, said=said, source=answer.source,
        )
        for n, task in tasks
        for said in [refused or judged.wrong(task)]
    ]  # fmt: skip


def _keep(done: dict[tuple[str, str, int], Mark], mark: Mark) -> None:
    """Keep the better mark, or the later of two equal marks."""
    key = (mark.student, mark.lesson, mark.task)
    known = done.get(key)
    if known is None or mark.points >= known.points:
        done[key] = mark


def _of(mark: Mark | None, student: str, lesson: Lesson, number: int, task: Task) -> Mark:
    said = "nothing was handed in" if mark is None else mark.said
    return Mark(
        student=student, lesson=lesson.id, task=number + 1, points=mark.points if mark else 0, most=task.points, said=said, source=mark.source if mark else "",
    )  # fmt: skip
