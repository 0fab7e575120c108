"""Tests for lessons as files: the notebook is generated from them, answers solve their tasks, a teacher's lessons are
checked, and submissions are read as data only.
"""

from __future__ import annotations

import ast
import base64
import csv
import json
import random
import zlib
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, tool

from ackclock import _link
from ackclock._course import collect, grade, lessons, shipped
from ackclock._course import notebook as made_notebook
from ackclock._course.lesson import check
from ackclock.cli import main
from ackclock.errors import InputError

LESSONS = shipped()
NOTEBOOK = json.loads((ROOT / "examples" / "lessons.ipynb").read_text(encoding="utf-8"))
CODE = {cell["id"]: "".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"}

OWN = """
title = "Short queues"
text = '''
One paragraph.

Another one.
'''
sliders = ["network.bottleneck.queue.limit"]
scenario = '''
duration = "2 s"

[network.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", limit = "100 packets" }

[[flows]]
congestion_control = "reno"
'''

[[tasks]]
ask = "Get the mean RTT below 50 ms."
holds = ["flows.0.mean_rtt_s < 0.05", "2 * links.max.max_packets <= 60"]
change = ["network.bottleneck.queue.limit"]
answer = [["100 packets", "10 packets"]]
points = 2.5
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a folder with a teacher's lesson."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short-queues.toml").write_text(OWN, encoding="utf-8")
    return tmp_path


def test_the_notebook_is_made_of_the_lessons():
    made = tool("lessons")
    assert Path(made.NOTEBOOK).read_text(encoding="utf-8") == made.notebook()
    assert NOTEBOOK["nbformat"] == 4
    assert len({cell["id"] for cell in NOTEBOOK["cells"]}) == len(NOTEBOOK["cells"])
    assert not any(cell.get("outputs") for cell in NOTEBOOK["cells"])


@pytest.mark.parametrize("lesson", LESSONS, ids=[lesson.id for lesson in LESSONS])
def test_each_answer_shows_what_its_task_asks_and_the_scenario_alone_does_not(lesson, monkeypatch):
    """Checked in the notebook, and by the command itself."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    assert check(lesson) == []
    names: dict[str, Any] = {}
    exec(CODE["setup"], names)
    names["draw"] = lambda run, draw_curve=False: None  # figures: see below
    exec(CODE[f"{lesson.id}-run"], names)
    untouched = {**names, "text": names["lesson"]}
    for number in range(1, len(lesson.tasks) + 1):
        exec(CODE[f"{lesson.id}-answer-{number}"], names)
        exec(CODE[f"{lesson.id}-check-{number}"], names)
        with pytest.raises((AssertionError, TypeError)):
            exec(CODE[f"{lesson.id}-check-{number}"], untouched)


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


def test_the_curve_of_cubic_is_that_of_the_engine(monkeypatch):
    """The formula alone, evaluated from the windows at reductions, stays within 4 segments of the window in every epoch."""
    import matplotlib

    matplotlib.use("Agg")
    names: dict[str, Any] = {}
    exec(CODE["setup"], names)
    exec(CODE["cubic-run"].replace("draw(run", "figure = draw(run"), names)
    above = names["figure"].axes[0]
    curves = [line for line in above.lines if len(line.get_xdata()) == 51]
    run = names["run"]
    assert len(curves) == run.flows["recoveries"][0] >= 5
    away = []
    for line in curves:
        for t, w in zip(line.get_xdata()[2:-2], line.get_ydata()[2:-2], strict=True):
            away.append(abs(run.samples.filter(run.samples["t_s"] <= t)["cwnd"][-1] - w))
    assert max(away) <= 4
    # its points at t = K lie at W_max, where the curve is flat
    assert sum(len(line.get_xdata()) == 1 for line in above.lines) >= 2
    names["plt"].close("all")


def test_the_edition_for_students_holds_no_answer_and_cells_that_nbgrader_knows():
    cells = json.loads(made_notebook(LESSONS, student=True))["cells"]
    told = "".join("".join(cell["source"]) for cell in cells)
    assert "SOLUTION" not in told
    for lesson in LESSONS:
        for number, task in enumerate(lesson.tasks, 1):
            (answer,) = (cell for cell in cells if cell["id"] == f"{lesson.id}-answer-{number}")
            (judge,) = (cell for cell in cells if cell["id"] == f"{lesson.id}-check-{number}")
            source = "".join(answer["source"])
            assert source.startswith("text = lesson  #")
            assert not any(new in source for _, new in task.answer)
            for cell, graded in ((answer, False), (judge, True)):
                known = cell["metadata"]["nbgrader"]
                assert known["grade_id"] == cell["id"]
                assert (known["grade"], known["locked"], known["solution"]) == (graded, graded, not graded)
                assert ("points" in known) == graded
                ast.parse("".join(cell["source"]))


def test_a_lesson_of_a_teacher_is_judged_taught_and_graded(own, capsys):
    assert main(["lesson", "check", "short-queues.toml"]) == 0
    assert capsys.readouterr().out == "short-queues.toml: a lesson, 1 task\n"
    (lesson,) = lessons(["short-queues.toml"])
    assert lesson.text == ("One paragraph.", "Another one.")
    right = lesson.answered(lesson.tasks[0])
    for name, text in {"ada": right, "bob": lesson.scenario, "eve": right.replace("20 ms", "5 ms")}.items():
        (own / f"{name}.txt").write_text(f"{_link.made(text)}&lesson=short-queues\n", encoding="utf-8")
    asked = ["lesson", "grade", "ada.txt", "bob.txt", "eve.txt", "--lesson", "short-queues.toml"]
    assert main([*asked, "--json"]) == 0
    marks = json.loads(capsys.readouterr().out)["marks"]
    assert [(mark["student"], mark["points"], mark["of"]) for mark in marks] == [
        ("ada", 2.5, 2.5),
        ("bob", 0, 2.5),
        ("eve", 0, 2.5),
    ]
    assert [mark["said"] for mark in marks] == [
        "",
        "left as it is in the lesson",
        "found a change of network.bottleneck.delay; allowed: of network.bottleneck.queue.limit",
    ]
    # a lesson that reveals its answer, and one where a correct answer proves nothing
    (own / "easy.toml").write_text(OWN.replace("< 0.05", "< 5").replace("<= 60", "<= 600"), encoding="utf-8")
    (own / "hard.toml").write_text(OWN.replace("< 0.05", "< 0.001"), encoding="utf-8")
    assert main(["lesson", "check", "easy.toml", "hard.toml"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("easy.toml: tasks.0.holds: found a task that the scenario does as it stands")
    assert told[1].startswith("hard.toml: tasks.0.answer: does not show flows.0.mean_rtt_s < 0.001 (found 0.0")


WRONG = {
    (
        "title = ",
        "titel = ",
    ): "titel: found an unknown key; allowed: title, text, scenario, sliders, draw, tasks (nearest: title)",
    ('title = "Short queues"', ""): "title: found nothing; allowed: a lesson has title, text, scenario, tasks",
    ('"Short queues"', "3"): "title: found 3; allowed: a text",
    ("10 Mbit/s", "10 Mbits"): ':13: scenario: network.bottleneck.rate: found "10 Mbits"; did you mean "10 Mbit/s"?',
    ("drop-tail", "drop-tial"): ":15: scenario: network.bottleneck.queue.kind: found",
    ('delay = "20 ms"', "delay = "): ":14: scenario: found",
    (
        'queue.limit"]\nscenario',
        'queue.limits"]\nscenario',
    ): 'sliders.0: found "network.bottleneck.queue.limits"; did you mean "network.bottleneck.queue.limit"?',
    (
        "flows.0.mean_rtt_s",
        "flows.0.mean_rtt",
    ): 'tasks.0.holds.0: found the column "mean_rtt"; did you mean "mean_rtt_s"?',
    ("flows.0.mean_rtt_s", "flow.0.mean_rtt_s"): 'tasks.0.holds.0: found the table "flow"',
    (
        "links.max.",
        "links.most.",
    ): 'tasks.0.holds.1: found the row "most"; allowed: a number from 0, or one of max, min, mean, sum',
    (
        "mean_rtt_s < 0.05",
        "mean_rtt_s is small",
    ): 'tasks.0.holds.0: found "flows.0.mean_rtt_s is small"; allowed: TABLE.ROW.COLUMN',
    (
        '100 packets", "10',
        '99 packets", "10',
    ): 'tasks.0.answer.0: found "99 packets"; allowed: a part of the lesson\'s scenario',
    (
        'change = ["network.bottleneck.queue.limit"]',
        'change = ["network.bottleneck.queues.limit"]',
    ): "tasks.0.change.0: found",
    ("points = 2.5", "points = true"): "tasks.0.points: found true; allowed: a number above 0, at most 1000",
    ("[[tasks]]", "[tasks]"): "tasks: found a table; allowed: one or more tables [[tasks]]",
    ('"reno"', '"mine.py:Mine"'): ":18: scenario: flows.0.congestion_control: found",
    ('title = "Short queues"', 'title = "Short queues'): "found",
}


@pytest.mark.parametrize("change", WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_with_a_lesson_is_one_line(own, capsys, change):
    old, new = change
    assert old in OWN
    (own / "x.toml").write_text(OWN.replace(old, new), encoding="utf-8")
    assert main(["lesson", "check", "x.toml"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith("ackclock: x.toml")
    assert WRONG[change] in told
    assert "allowed: " in told


def test_files_that_are_no_lessons_are_refused(own, capsys):
    (own / "Bad Name.toml").write_text(OWN, encoding="utf-8")
    (own / "other").mkdir()
    (own / "other" / "short-queues.toml").write_text(OWN, encoding="utf-8")
    (own / "bytes.toml").write_bytes(b"\xff\xfe")
    for asked, said in {
        "nothing.toml": "No such file",
        "Bad Name.toml": "small letters, digits and hyphens",
        "other": 'LESSON: found "other"; allowed: bbr, ',
        "slow-strat": 'did you mean "slow-start"?',
        "bytes.toml": "other bytes than UTF-8",
        ".": "no regular file",
    }.items():
        assert main(["lesson", "check", asked]) == 2, asked
        told = capsys.readouterr().err
        assert said in told, told
        assert told.count("\n") == 1
    with pytest.raises(InputError, match="a second lesson"):
        lessons(["short-queues.toml", "other/short-queues.toml"])
    assert main(["lesson", "grade", "missing"]) == 2
    assert "missing: found No such file" in capsys.readouterr().err
    (own / "empty").mkdir()
    assert main(["lesson", "grade", "empty"]) == 2
    assert "found no file of the kinds" in capsys.readouterr().err


# --- submissions

CANARY = "canary"
RUNS = f"open('{CANARY}', 'w').write('x')"


def handed_in(lesson: Any, source: str, *, name: str | None = None, before: str = "") -> str:
    """Return the students' notebook with this text in the first answer's cell."""
    whole = json.loads(made_notebook([lesson], student=True))
    for cell in whole["cells"]:
        if cell["id"] == f"{lesson.id}-answer-1":
            cell["source"] = source if name is None else [source]
            if name is not None:  # as another front end saves it: without the id, but with nbgrader's metadata
                cell["id"] = name
        if before and cell["id"] == "setup":
            cell["source"] = before
    return json.dumps(whole)


def squeezed(data: bytes) -> str:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.urlsafe_b64encode(packer.compress(data) + packer.flush()).decode().rstrip("=")


def kinds(lesson: Any) -> dict[str, tuple[str, bytes | str, bool]]:
    """For each kind of answer, return the file's suffix and contents, and whether it is right."""
    right = lesson.answered(lesson.tasks[0])
    link = f"https://example.org/lab.html{_link.made(right)}&lesson={lesson.id}"
    notebook = handed_in(lesson, f"text = '''{right}'''\n")
    wrong = lesson.scenario.replace("100 packets", "90 packets")
    of = lambda text: f"{_link.made(text)}&lesson={lesson.id}"  # noqa: E731
    deep = "(" * 5000 + ")" * 5000
    return {
        "right link": ("txt", link, True),
        "right, among others": ("txt", f"My answers\n\n1. <{of(wrong)}>\n2. <{link}>.\n", True),
        "right, as a table": ("csv", f'name;"link"\n"Zoe";"{link}"\n', True),
        "right, a literal": ("ipynb", notebook, True),
        "right, replaced": ("ipynb", handed_in(lesson, 'text = lesson.replace("100 packets", "8 packets")\nrun = play(text)', name="abc"), True),
        "right, beside magic": ("ipynb", handed_in(lesson, f'%matplotlib inline\n!touch {CANARY}\ntext = lesson.replace("100 packets", "9" + " packets")'), True),
        "wrong link": ("txt", of(wrong), False),
        "wrong, another key": ("txt", of(right.replace('delay = "20 ms"', 'delay = "1 ms"')), False),
        "wrong, as handed out": ("ipynb", made_notebook([lesson], student=True), False),
        "wrong, of another lesson": ("txt", f"{_link.made(right)}&lesson=elsewhere", False),
        "wrong, no TOML": ("ipynb", handed_in(lesson, "text = 'ten packets'"), False),
        "wrong, no Python": ("ipynb", handed_in(lesson, "text = ten packets"), False),
        "cut link": ("txt", link[: len(link) // 2], False),
        "cut notebook": ("ipynb", notebook[: len(notebook) // 2], False),
        "cut scenario": ("txt", of(right[: len(right) // 2]), False),
        "empty": ("txt", "", False),
        "no cells": ("ipynb", "[1, 2]", False),
        "bytes": ("ipynb", bytes(range(256)), False),
        "code": ("ipynb", handed_in(lesson, f"text = (lambda: {RUNS})()", before=RUNS), False),
        "code in a text": ("ipynb", handed_in(lesson, f"text = f'''{{{RUNS}}}'''"), False),
        "code that grades": ("ipynb", handed_in(lesson, "import ackclock._course.grade as g; g.grade = None\ntext = lesson").replace('"points": 2.5', '"points": 1e9'), False),
        "a deep notebook": ("ipynb", "[" * 100_000, False),
        "deep code": ("ipynb", handed_in(lesson, f"text = {deep}"), False),
        "a long chain": ("ipynb", handed_in(lesson, "text = lesson" + '.replace("a", "b")' * 20_000), False),
        "text that grows": ("ipynb", handed_in(lesson, "text = lesson" + '.replace("", "aaaaaaaaaaaaaaaa")' * 40), False),
        "a bomb": ("txt", f"#s={squeezed(b'a' * 2**25)}&lesson={lesson.id}", False),
        "a file": ("txt", of(right.replace('"10 Mbit/s"', '{ kind = "mahimahi", file = "/etc/passwd" }')), False),
        "a program": ("txt", of(right.replace('"reno"', '"stack:/tmp/lib.so"')), False),
        "a run without end": ("txt", of(right.replace('"2 s"', '"1000000 s"')), False),
        "half a character": ("ipynb", handed_in(lesson, "text = lesson + '\\ud800\\x1b[2J'"), False),
        "a controller": ("txt", link.replace("&seed", "&c=AAAA&seed"), False),
        "nulls": ("ipynb", handed_in(lesson, "text = '\\x00'\x00"), False),
    }  # fmt: skip


def test_thirty_drawn_answers_are_read_and_nothing_of_them_is_executed(own, capsys):
    """Right, wrong, truncated and hostile answers get a mark each, and no traceback."""
    (lesson,) = lessons(["short-queues.toml"])
    known = kinds(lesson)
    drawn = random.Random(66).sample(sorted(known), 30)
    (own / "handed").mkdir()
    for n, kind in enumerate(drawn):
        ending, inside, _ = known[kind]
        place = own / "handed" / f"s{n:02}"
        if n % 2:  # laid out like nbgrader's folder `submitted`
            (place / "homework").mkdir(parents=True)
            place = place / "homework" / "answer"
        place.with_suffix(f".{ending}").write_bytes(inside if isinstance(inside, bytes) else inside.encode())
    (own / "handed" / "elsewhere.txt").symlink_to("/etc/passwd")
    asked = ["lesson", "grade", "handed", "--lesson", "short-queues.toml"]
    assert main([*asked, "--csv", "marks.csv"]) == 0
    told = capsys.readouterr()
    assert "Traceback" not in told.out + told.err
    assert "internal error" not in told.out + told.err
    assert told.out.replace("\n", "").isprintable()
    assert not list(own.rglob(CANARY))
    rows = list(csv.DictReader((own / "marks.csv").read_text(encoding="utf-8").splitlines()))
    points = {row["student"]: float(row["points"]) for row in rows if row["lesson"]}
    assert points.pop("elsewhere") == 0
    assert points == {f"s{n:02}": 2.5 * known[kind][2] for n, kind in enumerate(drawn)}
    # for each wrong answer a reason is given, with the allowed values if a value was found
    for n, kind in enumerate(drawn):
        said = [row["said"] for row in rows if row["student"] == f"s{n:02}" and row["said"]]
        assert bool(said) or known[kind][2], kind
        assert "root:" not in "".join(said)
    assert main([*asked, "--json"]) == 0
    assert {mark["student"] for mark in json.loads(capsys.readouterr().out)["marks"]} == {*points, "elsewhere"}


@pytest.mark.parametrize("kind", ["right link", "right, a literal", "wrong, as handed out"])
def test_answers_to_another_lesson_alone_are_one_line(own, capsys, kind):
    """If a teacher forgets --lesson, a message says so, and no student is given 0 points."""
    (lesson,) = lessons(["short-queues.toml"])
    ending, inside, right = kinds(lesson)[kind]
    (own / "handed-in").mkdir()
    (own / "handed-in" / f"ada.{ending}").write_text(str(inside), encoding="utf-8")
    (own / "handed-in" / "bob.txt").write_text("nothing yet\n", encoding="utf-8")
    assert main(["lesson", "grade", "handed-in"]) == 2
    told = capsys.readouterr()
    assert not told.out
    assert told.err.splitlines() == [
        'ackclock: handed-in: found answers to the lesson "short-queues" alone; allowed: shipped ones, or the file of that lesson behind --lesson'
    ]
    assert main(["lesson", "grade", "handed-in", "--lesson", "short-queues.toml", "--json"]) == 0
    marks = json.loads(capsys.readouterr().out)["marks"]
    assert [mark["points"] for mark in marks] == [2.5 * right, 0]
    assert main(["lesson", "grade", "handed-in", "--lesson", "bbr"]) == 2
    assert "allowed: those of --lesson, or" in capsys.readouterr().err


def test_names_stand_before_links_and_the_best_answer_counts(own):
    (lesson,) = lessons(["short-queues.toml"])
    right = f"{_link.made(lesson.answered(lesson.tasks[0]))}&lesson={lesson.id}"
    wrong = f"{_link.made(lesson.scenario.replace('100', '90'))}&lesson={lesson.id}"
    (own / "all.csv").write_text(
        f"name,link\nAda Lovelace,{wrong}\nAda Lovelace,{right}\nAda Lovelace,{wrong}\nBob,{wrong}\n", encoding="utf-8"
    )
    marks, loose = grade(list(collect(["all.csv"], [lesson])), [lesson])
    assert [(mark.student, mark.points) for mark in marks] == [("Ada Lovelace", 2.5), ("Bob", 0)]
    assert not loose
    # a file with many links is not executed
    (own / "many.txt").write_text(f"{wrong}\n" * 25, encoding="utf-8")
    marks, loose = grade([*collect(["many.txt"], [lesson])], [lesson])
    assert [mark.points for mark in marks] == [0]
    assert "found more than 20 answers" in loose[0].said
    # a link alone, and one without a lesson name if there is only one lesson
    marks, _ = grade([*collect([right.partition("&lesson")[0]], [lesson])], [lesson])
    assert [mark.points for mark in marks] == [2.5]


def test_what_a_run_records_is_no_change_of_the_scenario(own):
    """The link to a report's run: `run --report` adds keys below `record` that are unknown to the student."""
    import tomllib

    from ackclock import Scenario
    from ackclock.report.run import watched

    (lesson,) = lessons(["short-queues.toml"])
    given = lambda text: grade([*collect([f"{_link.made(text)}&lesson={lesson.id}"], [lesson])], [lesson])[0][0]  # noqa: E731
    right = watched(Scenario.from_dict(tomllib.loads(lesson.answered(lesson.tasks[0])))).to_toml()
    assert "trace = " in right
    assert (given(right).points, given(right).said) == (2.5, "")
    alone = watched(Scenario.from_dict(tomllib.loads(lesson.scenario))).to_toml()
    assert (given(alone).points, given(alone).said) == (0, "left as it is in the lesson")
    # a warm-up as long as the run hides the queue, and earns no point
    hidden = lesson.scenario.replace("100 packets", "99 packets") + '\n[record]\nwarm_up = "1999 ms"\n'
    assert given(hidden).points == 0
    assert "2 * links.max.max_packets <= 60 (" in given(hidden).said or "flows.0.mean_rtt_s" in given(hidden).said


def test_a_lesson_about_records_still_asks_for_them(own):
    """A task that names `record.warm_up` is judged by the answer's own warm-up."""
    old = 'change = ["network.bottleneck.queue.limit"]\nanswer = [["100 packets", "10 packets"]]'
    new = 'change = ["record.warm_up"]\nanswer = [["0 s", "1999 ms"]]'
    text = OWN.replace(old, new).replace('"reno"\n', '"reno"\n\n[record]\nwarm_up = "0 s"\n')
    text = text.replace("flows.0.mean_rtt_s < 0.05", "links.max.delivered < 10")
    (own / "records.toml").write_text(
        text.replace("2 * links.max.max_packets <= 60", "links.max.delivered < 20"), encoding="utf-8"
    )
    (lesson,) = lessons(["records.toml"])
    assert check(lesson) == []
