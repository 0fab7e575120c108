"""The notebook for teachers: it holds the lessons of the page, its answers show what their tasks ask, and without them no task is done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, tool

LESSONS = json.loads((ROOT / "web" / "lessons.json").read_text(encoding="utf-8"))
NOTEBOOK = json.loads((ROOT / "examples" / "lessons.ipynb").read_text(encoding="utf-8"))
CODE = {cell["id"]: "".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"}


def test_the_notebook_is_made_of_the_lessons():
    made = tool("lessons")
    assert Path(made.NOTEBOOK).read_text(encoding="utf-8") == made.notebook()
    assert NOTEBOOK["nbformat"] == 4
    assert len({cell["id"] for cell in NOTEBOOK["cells"]}) == len(NOTEBOOK["cells"])
    assert not any(cell.get("outputs") for cell in NOTEBOOK["cells"])


@pytest.mark.parametrize("lesson", LESSONS, ids=[lesson["id"] for lesson in LESSONS])
def test_each_answer_shows_what_its_task_asks_and_the_scenario_alone_does_not(lesson, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, Any] = {}
    exec(CODE["setup"], names)
    names["draw"] = lambda run: None  # the figures: see below
    exec(CODE[f"{lesson['id']}-run"], names)
    untouched = {**names, "text": names["lesson"]}
    for number in range(1, len(lesson["tasks"]) + 1):
        answer = CODE[f"{lesson['id']}-answer-{number}"]
        exec(answer, names)
        with pytest.raises(AssertionError):
            exec(answer[answer.index("assert ") :], untouched)


def test_the_figure_of_a_lesson_shows_each_flow(monkeypatch):
    import matplotlib

    matplotlib.use("Agg")
    names: dict[str, Any] = {}
    exec(CODE["setup"], names)
    exec(
        CODE["fairness-run"]
        .replace('duration = "60 s"', 'duration = "5 s"')
        .replace("draw(run);", "figure = draw(run)"),
        names,
    )
    above, below = names["figure"].axes
    assert len(above.lines) == 2
    assert len(below.lines) == 1
    assert max(below.lines[0].get_ydata()) > 10
    names["plt"].close("all")
