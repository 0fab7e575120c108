"""Lessons (files with a text, a scenario and tasks) and grading of students' submissions."""

from __future__ import annotations

from ackclock._course.answers import Answer, Unread, collect, strangers
from ackclock._course.grade import Mark, grade
from ackclock._course.lesson import Lesson, Task, for_page, lessons, shipped
from ackclock._course.notebook import notebook

__all__ = [
    "Answer",
    "Lesson",
    "Mark",
    "Task",
    "Unread",
    "collect",
    "for_page",
    "grade",
    "lessons",
    "notebook",
    "shipped",
    "strangers",
]
