"""The page ticks a task exactly when the command gives its mark, whatever an answer records."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from lab_page import NODE, node
from test_lessons import OWN

import ackclock
from ackclock._course import lessons
from ackclock._course.lesson import Judged, Lesson, _recorded_as, for_page
from ackclock.scenario._toml import read_toml

SCRIPT = """
const [lessons, jobs] = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const run = ({ text, places, tables }) => ({ text, places, values: (table, column) => (tables[table]?.[column] ?? []).map((x) => x ?? NaN) });
const answers = jobs.map((job) => {
  const lesson = lessonsOf(lessons)[0];
  return job.tables ? lesson.tasks.map(({ holds }) => holds(run(job))) : judged(job.text, lesson) ?? null;
});
process.stdout.write(JSON.stringify(answers));
"""

BARE = {
    "nothing": lambda text: text,
    "a table at the end": lambda text: f'{text}\n[record]\nsample_interval = "50 ms"\n',
    "a table in the middle": lambda text: text.replace("[[flows]]", '[record]  # mine\ntrace = "flow"\n\n[[flows]]', 1),
    "keys at the top": lambda text: f'record.drops = true\n"record".queue_interval = "10 ms"\n{text}',
    "a table in one line": lambda text: f'record = {{ sample_interval = "20 ms", trace = "all" }}\n{text}',
    "another warm-up": lambda text: f'{text}\n[record]\nwarm_up = "1900 ms"\n',
}
TABLE = {
    "nothing": lambda text: text,
    "a key more": lambda text: text.replace("[record]", '[record]\ntrace = "flow"'),
    "another value": lambda text: text.replace('"100 ms"', '"50 ms"').replace('"1 s"', '"0 s"'),
    "no table": lambda text: text[: text.index("[record]")],
    "another table elsewhere": lambda text: "record.drops = true\n" + text[: text.index("[record]")],
}


def asked(lesson: Lesson, jobs: list[dict[str, Any]]) -> list[Any]:
    """Return what the page's script answers to each job."""
    script = (ROOT / "web" / "lessons.js").read_text(encoding="utf-8").replace('"use strict";', "") + SCRIPT
    given = json.dumps([for_page([lesson]), jobs])
    done = subprocess.run([str(NODE), "-e", script], input=given, capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


def seen(text: str) -> dict[str, Any]:
    """Return a run in the form of the page: values, and their places in the text."""
    values, places = read_toml(text)
    run = ackclock.run(ackclock.Scenario.from_dict(values), seed=1)
    tables = {
        name: {c: getattr(run, name)[c].to_list() for c in getattr(run, name).columns} for name in ("flows", "links")
    }
    inner = [[key, p.value.line, p.value.column, p.value.length] for key, p in places.items()]
    return {"text": text, "places": inner, "tables": tables}


@node
@pytest.mark.parametrize(
    "own_record", ["", '\n[record]\nsample_interval = "100 ms"\n', '\n[record]\nwarm_up = "1 s"\n']
)
def test_the_page_and_the_command_judge_alike(own_record: str, tmp_path: Path) -> None:
    end = '"reno"\n'
    file = tmp_path / "short-queues.toml"
    file.write_text(OWN.replace(end, end + own_record), encoding="utf-8")
    (lesson,) = lessons([str(file)])
    answers = [lesson.scenario, *(lesson.answered(task) for task in lesson.tasks)]
    texts = [change(text) for text in answers for change in (TABLE if own_record else BARE).values()]
    known = tomllib.loads(lesson.scenario)
    used = [found or text for found, text in zip(asked(lesson, [{"text": t} for t in texts]), texts, strict=True)]
    for text, read in zip(texts, used, strict=True):
        assert tomllib.loads(read) == _recorded_as(known, tomllib.loads(text)), text
    ticked = asked(lesson, [seen(text) for text in used])
    marks = [[not Judged(lesson, text, 1).wrong(task) for task in lesson.tasks] for text in texts]
    assert ticked == marks
    assert any(map(any, marks))
    assert not all(map(any, marks))


@node
def test_a_lesson_about_records_is_judged_by_the_answers_own(tmp_path: Path) -> None:
    old = 'change = ["network.bottleneck.queue.limit"]\nanswer = [["100 packets", "10 packets"]]'
    new = 'change = ["record.warm_up"]\nanswer = [["0 s", "1999 ms"]]'
    text = OWN.replace(old, new).replace('"reno"\n', '"reno"\n\n[record]\nwarm_up = "0 s"\n')
    text = text.replace("flows.0.mean_rtt_s < 0.05", "links.max.delivered < 10")
    text = text.replace("2 * links.max.max_packets <= 60", "links.max.delivered < 20")
    file = tmp_path / "records.toml"
    file.write_text(text, encoding="utf-8")
    (lesson,) = lessons([str(file)])
    answer = lesson.answered(lesson.tasks[0])
    assert asked(lesson, [{"text": answer}]) == [None]
    assert asked(lesson, [seen(answer), seen(lesson.scenario)]) == [[True], [False]]
