"""Lessons as notebooks, with an answer below each task for the teacher and without answers for students. Cells have
nbgrader metadata, but nbgrader is not needed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ackclock._course.lesson import Lesson, Task

HEAD = """# {title}

Each lesson has a text, a scenario with its figure, and tasks. The notebook needs an environment in which `import ackclock` works, and takes some seconds.

{reader}
"""
TEACHER = """This is the edition for teachers: below each task stands an answer, and a cell that fails if the run does not show what was asked.
`ackclock lesson notebook --student` makes the one for students, `ackclock lesson grade` reads what they hand in. The cells are nbgrader's, too."""
STUDENT = """Below each task is a cell for your answer: put another scenario into `text`, run the cell, and look. The cell behind it fails until the run shows what was
asked. Write the text as a literal (`text = '''...'''`) or by `lesson.replace("old", "new")`: who grades reads it, and runs no code of yours."""

SETUP = '''import tomllib

import matplotlib.pyplot as plt

import ackclock


def play(text, seed=1):
    """Run the scenario with this text."""
    scenario = ackclock.Scenario.from_dict(tomllib.loads(text))
    often = {"record.sample_interval": "5 ms", "record.queue_interval": "5 ms"}
    return ackclock.run(scenario.set_all(often), seed=seed)


def draw(run, draw_curve=False):
    """cwnd of each flow, and the longest queue; with CUBIC's curve, if asked for."""
    figure, (above, below) = plt.subplots(2, 1, figsize=(8, 4.2), sharex=True, layout="constrained")
    for flow in run.flows["flow"]:
        own = run.samples.filter(flow=flow)
        above.step(own["t_s"], own["cwnd"], where="post", label=f"{flow} {run.flows['congestion_control'][int(flow)]}")
    longest = int(run.links["max_packets"].arg_max())
    queue = run.queue_samples.filter(link=longest)
    below.step(queue["t_s"], queue["packets"], where="post", color="C2")
    if draw_curve:
        curve(run, above)
    above.set(ylabel="cwnd (segments)")
    below.set(ylabel="queue (packets)", xlabel="time (s)")
    above.legend()
    return figure


def curve(run, axes):
    """CUBIC's curve (RFC 9438) of the first flow, from the windows before and after each reduction alone, and its point at K and W_max."""
    w_max = 0
    rows = run.recoveries.filter(flow=0).rows(named=True)
    ends = [row["t_enter_s"] for row in rows[1:]] + [float(run.samples["t_s"].max())]
    for row, end in zip(rows, ends):
        w_max = row["cwnd_enter"] * (0.85 if row["cwnd_enter"] < w_max else 1)  # fast convergence
        k = (max(0, w_max - row["cwnd_after_exit"]) / 0.4) ** (1 / 3)
        times = [row["t_exit_s"] + n * (end - row["t_exit_s"]) / 50 for n in range(51)]
        label = "C (t - K)³ + W_max" if row is rows[0] else None
        axes.plot(times, [0.4 * (t - row["t_exit_s"] - k) ** 3 + w_max for t in times], "--", color="C1", label=label)
        if row["t_exit_s"] + k < end:
            axes.plot(row["t_exit_s"] + k, w_max, "D", color="C1")


def leaves(value, key=""):
    """Values of a scenario, by dotted key."""
    if not isinstance(value, dict | list):
        return {key: "".join(str(value).split())}
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    return {k: v for name, one in inner for k, v in leaves(one, f"{key}.{name}".lstrip(".")).items()}


def only(lesson, text, change=(), keep=()):
    """Whether no key was changed but those in `change`, and none of those in `keep`."""
    before, after = (leaves(tomllib.loads(one)) for one in (lesson, text))
    changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    among = lambda key, keys: any(f"{key}.".startswith(f"{one}.") for one in keys)
    return all((not change or among(key, change)) and not among(key, keep) for key in changed)'''


def notebook(taught: Sequence[Lesson], *, student: bool = False, title: str = "Lessons on TCP") -> str:
    """Return the notebook as the contents of an `.ipynb` file."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": _cells(taught, student, title), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _cells(taught: Sequence[Lesson], student: bool, title: str) -> list[dict[str, Any]]:
    """Return all cells, in order."""
    setup = SETUP
    made = [_markdown("head", HEAD.format(title=title, reader=STUDENT if student else TEACHER)), _code("setup", setup)]
    for lesson in taught:
        name = lesson.id
        made.append(_markdown(name, f"## {lesson.title}\n\n" + "\n\n".join(lesson.text)))
        made.append(
            _code(f"{name}-run", f"lesson = {_literal(lesson.scenario)}\n\nrun = play(lesson)\n{_drawn(lesson)};")
        )
        for number, task in enumerate(lesson.tasks, 1):
            made.append(_markdown(f"{name}-task-{number}", f"**Task.** {task.ask}"))
            made.append(_code(f"{name}-answer-{number}", _answer(lesson, task, student), solution=True))
            made.append(_code(f"{name}-check-{number}", _check(task), points=task.points))
    return made


def _answer(lesson: Lesson, task: Task, student: bool) -> str:
    """Return the cell for an answer."""
    shows = f"run = play(text)\n{_drawn(lesson)};"
    if student:
        return f'text = lesson  # your answer: lesson.replace("what stands there", "what you want")\n{shows}'
    changes = "".join(
        f".replace({json.dumps(old, ensure_ascii=False)}, {json.dumps(new, ensure_ascii=False)})"
        for old, new in task.answer
    )
    return f"### BEGIN SOLUTION\ntext = lesson{changes}\n### END SOLUTION\n{shows}"


def _drawn(lesson: Lesson) -> str:
    return "draw(run, draw_curve=True)" if lesson.draw == "cubic" else "draw(run)"


def _check(task: Task) -> str:
    """Return the cell that fails until a task is solved."""
    limits = "".join(
        f", {name}={json.dumps(list(keys))}" for name, keys in (("change", task.change), ("keep", task.keep)) if keys
    )
    lines = [f"assert {one.in_python()}" for one in task.holds]
    return "\n".join([f"assert only(lesson, text{limits})", *lines] if limits else lines)


def _literal(text: str) -> str:
    """Return a text as a Python literal, split over several lines where safe."""
    body = text.strip("\n")
    if "'''" in body or "\\" in body or body.endswith("'"):
        return repr(f"\n{body}\n")
    return f"'''\n{body}\n'''"


def _markdown(name: str, text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": text.strip().splitlines(keepends=True)}


def _code(name: str, text: str, *, solution: bool = False, points: float | None = None) -> dict[str, Any]:
    """Return a Python cell without outputs; its metadata contains nbgrader's information."""
    known: dict[str, Any] = {}
    if solution or points is not None:
        graded = {
            "grade": points is not None,
            "grade_id": name,
            "locked": points is not None,
            "schema_version": 3,
            "solution": solution,
            "task": False,
        }
        known = {"nbgrader": {**graded, "points": points} if points is not None else graded}
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": known,
        "outputs": [],
        "source": text.splitlines(keepends=True),
    }
