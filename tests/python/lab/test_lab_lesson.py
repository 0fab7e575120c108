"""Tests for `ackclock lab --lesson`: a teacher's lesson in the page, as seen by a student, up to the mark for the answer."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import Browser, browser
from conftest import tool
from lab_page import built, chromium, opened, write

from ackclock._course import lessons
from ackclock.cli import _lab, main

LESSON = '''
title = "Short <queues>"
text = """
A queue that is always full is delay for everyone.
"""
sliders = ["network.bottleneck.queue.limit"]
scenario = """
duration = "10 s"

[network.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", limit = "100 packets" }

[[flows]]
congestion_control = "reno"
"""

[[tasks]]
ask = "Get the mean RTT below 50 ms."
holds = ["flows.0.mean_rtt_s < 0.05"]
change = ["network.bottleneck.queue.limit"]
answer = [["100 packets", "10 packets"]]
'''


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short-queues.toml").write_text(LESSON, encoding="utf-8")
    return tmp_path


@chromium
def test_a_lesson_by_path_is_in_the_page_in_place_of_the_others(
    course: Path, tab: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page without its module runs nothing: a lesson's content must appear before the first run."""
    empty = course / "lab.html"
    empty.write_text(tool("lab").page(b""), encoding="utf-8")
    monkeypatch.setattr(_lab, "PAGE", empty)
    assert main(["lab", "--lesson", "short-queues.toml", "--save", "course.html"]) == 0
    (lesson,) = lessons(["short-queues.toml"])
    tab.ask("Page.navigate", url="about:blank")
    tab.open(course / "course.html", width=1280)
    assert tab.run("[...at('lessons').options].map((o) => o.value).filter((v) => v)") == ["short-queues"]
    tab.run("at('lessons').value = 'short-queues'; at('lessons').dispatchEvent(new Event('change'))")
    tab.wait("!at('lesson').hidden")
    assert tab.run("at('lesson-title').textContent") == "Short <queues>"
    assert tab.run("at('text').value") == lesson.scenario
    assert tab.run("[...at('tasks').children].map((task) => task.textContent)") == ["Get the mean RTT below 50 ms."]
    assert tab.run("document.querySelectorAll('#tasks .done').length") == 0
    # on a phone, nothing in it is wider than the screen
    tab.open(course / "course.html", width=390)
    tab.run("at('lessons').value = 'short-queues'; at('lessons').dispatchEvent(new Event('change'))")
    tab.wait("!at('lesson').hidden")
    assert tab.run("at('lesson').getBoundingClientRect().right") <= 390


@contextmanager
def served(*words: str) -> Iterator[str]:
    """Run `ackclock lab` and return its address."""
    command = [sys.executable, "-m", "ackclock", "lab", "--no-browser", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.match(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        process.terminate()
        process.wait(timeout=60)


@built
@chromium
def test_a_student_does_the_task_and_hands_in_the_link(
    course: Path, tab: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    (lesson,) = lessons(["short-queues.toml"])
    shown = "state.result?.text === at('text').value && !runner.job && !runner.next"
    with served("--lesson", "short-queues.toml") as address:
        tab.ask("Page.navigate", url=address)  # the teacher's first lesson opens automatically
        tab.wait("location.protocol === 'http:' && document.body?.dataset.drawn !== undefined")
        tab.wait(f"!at('lesson').hidden && {shown}")
        assert tab.run("[document.querySelectorAll('#tasks .done').length, state.sliders.length]") == [0, 1]
        right = lesson.answered(lesson.tasks[0])
        other = right.replace('delay = "20 ms"', 'delay = "5 ms"')  # a key that the task fixes
        for text, done in ((other, False), (right, True)):
            write(tab, text)
            tab.wait(f"at('text').value === {json.dumps(text)} && {shown}")
            assert tab.run("at('tasks').children[0].classList.contains('done')") is done
        tab.wait("location.hash.startsWith('#s=') && location.hash.endsWith('&lesson=short-queues')")
        link = f"{address}{tab.run('location.hash')}"
    (course / "ada.txt").write_text(link, encoding="utf-8")
    assert main(["lesson", "grade", "ada.txt", "--lesson", "short-queues.toml", "--json"]) == 0
    (mark,) = json.loads(capsys.readouterr().out)["marks"]
    assert mark["points"] == mark["of"] == 1
    opened(tab)  # the page as built contains the packaged lessons
    assert tab.run("LESSONS.length") > 1
