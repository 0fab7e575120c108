"""Tests for the arena with built-in controllers, from the command to the folder it writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ackclock.arena import Entry, Plan, files, play, read
from ackclock.cli import main

HERE = Path(__file__).parent
TASK = HERE / "small.toml"


def said(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "arena.json").read_text("utf-8"))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table, made once and used by most tests."""
    place = tmp_path_factory.mktemp("arena") / "out"
    words = [
        "arena",
        "run",
        str(TASK),
        "--entry",
        "vegas",
        "--salt",
        "s",
        "--draws",
        "2",
        "--jobs",
        "1",
        "--out",
        str(place),
    ]
    assert main(words) == 0
    return place


def test_a_reader_can_make_the_scores_again(folder: Path) -> None:
    """The scores follow from the terms in arena.json and the task's weights, computed by hand."""
    weights = {"throughput": 2, "delay": 1, "loss": 1, "others": 3, "worst": 1}
    for standing in said(folder)["standings"]:
        families: dict[str, list[float]] = {}
        for row in standing["rows"]:
            whole = sum(weights[term] for term in row["terms"])
            score = 1.0
            for term, value in row["terms"].items():
                score *= max(value, 0.01) ** (weights[term] / whole)
            assert row["score"] == pytest.approx(score)
            families.setdefault(row["draw"].rpartition("-")[0], []).append(score)
        means = [sum(values) / len(values) for values in families.values()]
        assert standing["score"][0] == pytest.approx(100 * sum(means) / len(means))


def test_what_is_there_is_not_made_again_and_threads_cannot_be_seen(folder: Path, tmp_path: Path) -> None:
    task = read(TASK.read_text("utf-8"), "small")
    plan = Plan(task=task, entries=[Entry(controller="vegas")], salt="s", draws=2)
    again = play(plan, folder, 2)
    assert again.runs == 0
    apart = play(plan, tmp_path / "other", 2)
    assert apart.runs > 0
    whole = said(folder)["standings"]
    for table in (again, apart):
        assert json.loads(json.dumps(files.to_json(table)))["standings"] == whole


def test_a_row_is_made_again(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from ackclock import arena

    task = read(TASK.read_text("utf-8"), "small")
    monkeypatch.setattr(arena, "load", lambda _: task)
    assert main(["arena", "rerun", str(folder / "arena.json"), "vegas", "--jobs", "1"]) == 0
    assert "6 digests are as in" in capsys.readouterr().out
    table = said(folder)
    table["standings"][0]["rows"][0]["digest"] = "0" * 16
    other = folder.parent / "other.json"
    other.write_text(json.dumps(table), encoding="utf-8")
    assert main(["arena", "rerun", str(other), table["standings"][0]["entry"], "--jobs", "1"]) == 1


def test_the_page_has_the_table_the_picture_and_the_links(folder: Path) -> None:
    page = (folder / "report.html").read_text("utf-8")
    assert "ackclock lab" in page
    assert "draws/vegas.alone-1.toml" in page
    assert "no other entry beats in both" in page
    assert (folder / "figures" / "pareto.csv").exists()
    assert (folder / "draws" / "vegas.alone-1.toml").exists()


def test_who_starves_others_ranks_behind() -> None:
    from ackclock.arena import drawn
    from ackclock.arena.game import Row, _ranked, _standing

    task = read(TASK.read_text("utf-8"), "small")
    plan = Plan(task=task, entries=[Entry(controller="bbr")], salt="s", draws=24)
    beside = next(d for d in drawn(task, "s", 1) if d.family.id == "beside")

    def of(name: str, score: float, left: list[float]) -> Any:
        rows = [Row(draw=beside, terms={"throughput": 1.0, "others": share}, score=score, digest="d") for share in left]
        return _standing(plan, Entry(controller=name), rows, "", "")

    ordered, _ = _ranked([of("bbr", 0.9, [0.2]), of("reno", 0.5, [0.9])], 0.5)
    assert [s.entry.name for s in ordered] == ["reno", "bbr"]
    assert ordered[1].starves
    remarks = {
        "": [0.9] * 24,
        "may starve others": [0.1, 1.0] * 12,
        "starves others, not surely": [0.1, 0.8] * 12,
        "starves others": [0.1] * 24,
    }
    assert [of("bbr", 0.9, left).remark for left in remarks.values()] == [*remarks]
    plan = replace(plan, draws=1)
    assert of("reno", 0.5, [0.6]).remark == "", "nothing is said of few draws"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["run", "internett", "--entry", "reno"], "TASK: found"),
        (["run", "internet"], "--entry: found none"),
        (["run", "internet", "--entry", "renoo"], "--entry: found"),
        (["run", "internet", "--entry", "nothing.c"], "nothing.c"),
        (["run", "internet", "--entry", "reno", "--tier", "huge"], "--tier: found"),
        (["run", "internet", "--entry", "reno", "--salt", "a b"], "--salt: found"),
        (["run", "internet", "--entry", "reno", "--salt", "a", "--public"], "--public: found"),
        (["run", "internet", "--entry", "reno", "--draws", "0"], "allowed: a whole number"),
        (["rerun", "nothing.json", "reno"], "nothing.json"),
        (["scenarios", "internet", "--out", "."], "found something there"),
    ],
)
def test_bad_input_is_a_line(
    words: list[str], what: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["arena", *words]) == 2
    said = capsys.readouterr().err
    assert what in said
    assert said.count("\n") == 1


def test_public_draws_are_scenarios_that_run(tmp_path: Path) -> None:
    assert main(["arena", "scenarios", str(TASK), "--out", str(tmp_path / "public"), "--draws", "1"]) == 0
    for file in sorted((tmp_path / "public").glob("*.toml")):
        assert main(["check", str(file)]) == 0
