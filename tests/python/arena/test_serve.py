"""Tests for `ackclock arena serve`: JSON lines in, score lines out."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from ackclock.arena import _seal
from ackclock.arena.serve import Server
from ackclock.cli import main

HERE = Path(__file__).parent
SMALL = str(HERE / "small.toml")
GENTLE = """
class Mine:
    def on_ack(self, window, ack):
        if ack.cwnd_limited:
            window.cwnd += ack.acked if window.in_slow_start else ack.acked / window.cwnd

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd * %s, 2)
"""


def asked(server: Server, **more: Any) -> dict[str, Any]:
    return server.answer(json.dumps({"task": SMALL, "entry": {"controller": "vegas"}, **more}))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    return Server(tmp_path_factory.mktemp("served"), "s", 1)


@pytest.mark.deep
def test_the_score_is_that_of_a_table(server: Server, tmp_path: Path) -> None:
    """The draws are those in the salt's table, and no run is repeated."""
    answer = asked(server, tier="medium", id=7, beat="cubic")
    words = [
        "arena",
        "run",
        SMALL,
        "--entry",
        "vegas",
        "--salt",
        "s",
        "--tier",
        "medium",
        "--jobs",
        "1",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(words) == 0
    table = json.loads((tmp_path / "out" / "arena.json").read_text("utf-8"))
    vegas = next(s for s in table["standings"] if s["entry"] == "vegas")
    assert (answer["id"], answer["tier"], answer["stopped"]) == (7, "medium", "")
    assert answer["score"] == pytest.approx(vegas["score"][0], abs=1e-3)
    assert answer["digests"] == {row["draw"]: row["digest"] for row in vegas["rows"]}
    assert asked(server, tier="medium", beat="cubic")["runs"] == 0


def test_who_is_behind_for_sure_goes_no_further(server: Server) -> None:
    """An entry with one segment in flight scores less than four fifths of Reno and stops after the quick draws; Vegas
    plays all tiers.
    """
    lazy = {
        "language": "python",
        "text": GENTLE.replace(
            "window.cwnd += ack.acked if window.in_slow_start else ack.acked / window.cwnd", "window.cwnd = 2"
        )
        % 0.5,
    }
    if _seal.can():
        answer = asked(server, entry=lazy, tier="full")
        assert (answer["tier"], answer["score"] < 0.8 * answer["beat_score"]) == ("quick", True)
        assert answer["stopped"] == "below 80 % of the score of reno"
    assert asked(server, tier="full")["tier"] == "full"


@pytest.mark.skipif(not _seal.can(), reason="no filter of system calls")
def test_text_is_scored_and_one_that_is_no_controller_is_an_answer(server: Server) -> None:
    good = asked(server, entry={"language": "python", "text": GENTLE % 0.7})
    assert good["score"] > 0
    for text, said in (
        ("class Other: pass", "nothing of this name"),
        ("1 / 0", "ZeroDivisionError"),
        (GENTLE % "1 / 0", "ZeroDivisionError"),
    ):
        assert said in asked(server, entry={"language": "python", "text": text})["error"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"task": "internett"}, "TASK: found"),
        ({"task": 3}, "task: found"),
        ({"tier": "huge"}, "tier: found"),
        ({"entry": {"controller": "renoo"}}, "renoo"),
        ({"entry": {"controller": "mine.c"}}, "allowed: the name of a built-in controller"),
        ({"entry": {"controller": "cubic", "option": {}}}, "nearest: options"),
        ({"entry": "cubic"}, "entry: found"),
        ({"entry": {"language": "pascal", "text": ""}}, "entry.language: found"),
        ({"entry": {"language": "python", "text": 3}}, "entry.text: found none"),
        ({"entry": {"language": "python", "text": "", "class": "a b"}}, "entry.class: found"),
        ({"beat": "nobody"}, "nobody"),
        ({"tear": "full"}, "nearest: tier"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_a_line(server: Server, more: dict[str, Any], said: str) -> None:
    answer = asked(server, **more)
    assert said in answer["error"]
    assert "\n" not in answer["error"]


def test_no_text_where_names_only_are_taken(tmp_path: Path) -> None:
    answer = asked(Server(tmp_path, "s", 1, code=False), entry={"language": "python", "text": GENTLE % 0.5})
    assert "allowed: a controller by its name" in answer["error"]


def test_lines_in_lines_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps({"id": "a", "task": SMALL, "entry": {"controller": "vegas"}}), "", "nonsense"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    assert main(["arena", "serve", "--salt", "s", "--jobs", "1"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["id"], first["score"] > 0) == ("a", True)
    assert "found no JSON" in second["error"]


def test_a_salt_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arena", "serve", "--salt", "a b"]) == 2
    assert "--salt: found" in capsys.readouterr().err
