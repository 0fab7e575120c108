"""Tests for studies made by others: their table, their record, and their functions' return values."""

import os
from pathlib import Path

import pytest

from ackclock import studies
from ackclock.cli import main

TABLE = """
title = "Made up"
summary = "Two numbers."
[[claims]]
id = "X1"
place = "p. 1"
statement = "It is more."
direction = { measure = "gain", more_than = 0, margin = 0.5 }
"""
PROGRAM = """
import polars as pl
from ackclock.study import Data, Experiment, Quantity

def run(plan):
    return Data(tables={"one.x": pl.DataFrame({"x": [1.0, 2.0]})}, digests=["d"], runs=2)

def gain(tables):
    return Quantity(label="gain", estimate=2.0)

EXPERIMENTS = (Experiment(name="one", title="one", run=run),)
MEASURES = {"gain": gain}
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/study.toml").write_text(TABLE, encoding="utf-8")
    (tmp_path / "mine/study.py").write_text(PROGRAM, encoding="utf-8")
    return tmp_path / "mine"


def line(study: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """Return the command's message about a study that it refuses."""
    assert main(["study", "run", f"{study}/", "--out", f"{study}.out", *more]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    return said[-1]


def test_the_study_itself_runs(study: Path) -> None:
    assert main(["study", "run", f"{study}/", "--out", f"{study}.out"]) == 0


@pytest.mark.promise("P19")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = " + "[" * 100_000, "recursion"),
        ("x = " + "{a = " * 50_000, "recursion"),
        ("x = " + "9" * 5000, "too many digits"),
        (".".join("a" * 100_000) + " = 1", "recursion"),
        ("x = '" + "a" * 2**20 + "'", "allowed: at most 1,048,576"),
        ("a = 1\n[", "study.toml"),
    ],
)
def test_a_table_is_read_within_bounds(study: Path, capsys: pytest.CaptureFixture[str], text: str, said: str) -> None:
    (study / "study.toml").write_text(text, encoding="utf-8")
    assert said in line(study, capsys)


@pytest.mark.parametrize(
    "bound",
    [
        "at_least = nan",
        "at_least = inf",
        "more_than = 0, margin = nan",
        "between = [1, inf]",
        "between = [1, 1979-05-27]",
    ],
)
def test_bounds_are_numbers(study: Path, capsys: pytest.CaptureFixture[str], bound: str) -> None:
    (study / "study.toml").write_text(TABLE.replace("more_than = 0, margin = 0.5", bound), encoding="utf-8")
    assert "study.toml: claims X1: direction" in line(study, capsys)


@pytest.mark.parametrize("name", ["study.toml", "recorded.json"])
def test_pipes_and_devices_are_not_waited_for(study: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (study / name).unlink(missing_ok=True)
    os.mkfifo(study / name)
    assert "found a pipe" in line(study, capsys)
    (study / name).unlink()
    (study / name).symlink_to("/dev/zero")
    assert "found a pipe or a device" in line(study, capsys)


HALF = '{"quick": {"taken": {}, "claims": {"X1": {"direction": {"verdict": %s, "evidence": {"gain": %s}}}}}}'


@pytest.mark.promise("P20")
@pytest.mark.parametrize(
    "text",
    [
        "garbage", "[" * 100_000, "[]", "1", '{"quick": 1}', '{"quick": {"taken": {}, "claims": []}}', "9" * 5000,
        HALF % ('"so"', "{}"), HALF % ('"holds"', "{}"), HALF % ('"holds"', '{"value": [], "interval": null, "unit": ""}'),
        HALF % ('"holds"', '{"value": 1, "interval": [1], "unit": ""}'), HALF % ('"holds"', '{"value": 1, "interval": null, "unit": 1}'),
    ],
)  # fmt: skip
def test_a_record_is_one_of_ours(study: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (study / "recorded.json").write_text(text, encoding="utf-8")
    assert "recorded.json: found no record" in line(study, capsys)


@pytest.mark.promise("P21")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('return Quantity(label="gain", estimate=2.0)', "return None", "gain"),
        ('return Quantity(label="gain", estimate=2.0)', "return 'no'", "gain: found str"),
        ('return Quantity(label="gain", estimate=2.0)', "return [1]", "gain: found int"),
        ("estimate=2.0", "estimate=None", "gain: value of a measured number: found nothing"),
        ("estimate=2.0", "estimate='2'", "gain: value of a measured number: found str"),
        ('label="gain"', "label=None", "gain: label of a measured number: found nothing"),
        ("return Data(", "return dict(", "run: found dict"),
        ("return Data(", "return None and Data(", "run: found nothing"),
        ("runs=2)", "runs='2')", "run: found str"),
        ('digests=["d"]', "digests=[1]", "run: found int"),
        ('tables={"one.x": pl.DataFrame({"x": [1.0, 2.0]})}', "tables={'one.x': 1}", "run: found int"),
        ("run=run)", "run=run, weight=0)", 'weight of "one"'),
        ("EXPERIMENTS = (", "EXPERIMENTS = 5, (", "EXPERIMENTS: found int"),
        ("MEASURES = {", "MEASURES = 5 or {", "MEASURES: found int"),
        ("MEASURES", "blocks = lambda tables: 'text'\nMEASURES", "<lambda>: found str"),
        ("MEASURES", "blocks = lambda tables: [1]\nMEASURES", "<lambda>: found int"),
        ("MEASURES", "blocks = 5\nMEASURES", "blocks: found int"),
        ("MEASURES", "scenarios = lambda: [1]\nMEASURES", "<lambda>: found list"),
        ("MEASURES", "scenarios = lambda: {'a': 1}\nMEASURES", "<lambda>: found int"),
        ("MEASURES", "headline = lambda result: 1\nMEASURES", "<lambda>: found int"),
        ("MEASURES", "findings = lambda result: [1]\nMEASURES", "<lambda>: found int"),
        ("MEASURES", "def findings(result):\n    return 1 / 0\nMEASURES", "ZeroDivisionError"),
    ],
)
def test_an_answer_of_another_kind_is_one_line(
    study: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    (study / "study.py").write_text(PROGRAM.replace(old, new, 1), encoding="utf-8")
    found = line(study, capsys)
    assert said in found
    assert "study.py" in found


@pytest.mark.promise("P21")
@pytest.mark.parametrize(
    "content",
    [b"[ackclock.studies]\nnonsense\n", b"nonsense = 1\n", b"\xff\xfe", b"[a\n=", b"[ackclock.studies]\n= x\n"],
)
def test_a_broken_list_of_entry_points_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    for name, text in (("bad", content), ("good", b"[ackclock.studies]\ngood = good\n")):
        (tmp_path / f"{name}-1.0.dist-info").mkdir()
        (tmp_path / f"{name}-1.0.dist-info/METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (tmp_path / f"{name}-1.0.dist-info/entry_points.txt").write_bytes(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "good" in studies.installed()
    assert main(["study", "list"]) == 0


@pytest.mark.parametrize("raised", ["GeneratorExit", "SystemExit(0)", "BaseException()"])
def test_an_entry_point_that_raises_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raised: str
) -> None:
    name = f"leaves{len(raised)}"
    (tmp_path / f"{name}.py").write_text(f"raise {raised}\n", encoding="utf-8")
    (tmp_path / f"{name}-1.0.dist-info").mkdir()
    (tmp_path / f"{name}-1.0.dist-info/METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (tmp_path / f"{name}-1.0.dist-info/entry_points.txt").write_text(f"[ackclock.studies]\n{name} = {name}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["study", "show", name]) == 2
    assert "cannot be imported" in capsys.readouterr().err
