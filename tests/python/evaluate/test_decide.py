"""Tests for `evaluate --decide`: it states what would settle an open row, and accounts for repeated looks."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ackclock.cli import main
from ackclock.cli._evaluate import _open, _stem
from ackclock.evaluate import Arm, Cell, Evaluation, Measure, Plan, Row, RowVerdict, Within, evaluate, page
from ackclock.evaluate.decide import decide
from ackclock.evaluate.files import settling_commands, to_json, write_scenarios
from ackclock.evaluate.settle import Settling, settling
from ackclock.evaluate.situation import Scale
from ackclock.evaluate.verdict import Values, judge, judge_rows
from ackclock.judge.looks import LOOKS, times_needed, widened
from ackclock.stats import mean_interval
from ackclock.sweep import Threads

LOSS = Measure(name="loss", of=lambda t, c: {}, better="less", margin=0.05)
CELL = Cell(id="a", scenario={}, scale="quick")
ROW = Row(id="3", section="5", level="MUST", quote="", title="t", cells=(CELL,), measures=(LOSS,))
PLAN = Plan(candidate=Arm(role="candidate", name="mine", controller="bbr"), scale="standard")


def verdict(ours: Sequence[float], scale: Scale = "standard", look: int = 0) -> RowVerdict:
    """Return the row's verdict if the reference is zero throughout."""
    values = Values(numbers=dict(enumerate(ours, 1)), digests={s: f"c{s}" for s in range(1, len(ours) + 1)})
    zeros = Values(numbers=dict.fromkeys(values.numbers, 0.0), digests={s: f"r{s}" for s in values.numbers})
    (found,) = judge_rows([(ROW, [judge(LOSS, CELL, values, zeros)])], scale, LOOKS if look else 1)
    return replace(found, look=look)


def looker(draws: Sequence[float]) -> Callable[[Mapping[str, int], int, float], list[RowVerdict] | None]:
    return lambda seeds, number, _: [verdict(draws[: seeds["3"]], look=number)]


def lacking(seeds: Mapping[str, int]) -> int:
    return seeds["3"]


def drawn(mean: float, seed: int = 1) -> list[float]:
    return np.random.default_rng(seed).normal(mean, 0.05, 12 * 2**LOOKS).tolist()


@pytest.mark.parametrize(("mean", "word"), [(0.035, "no worse"), (0.065, "worse")])
def test_more_seeds_settle_a_row_and_their_number_is_foretold(mean: float, word: str) -> None:
    draws = [mean - 0.05, mean + 0.05] * (6 * 2**LOOKS)  # with a constant spread
    first = verdict(draws[:12])
    assert first.verdict == "no difference shown"
    told = settling(first, PLAN, {})
    assert told is not None
    assert (told.how, told.runs) == ("seeds", 2 * (told.seeds - 12))
    found = decide([first], "standard", Within(seconds=60), looker(draws), lacking)
    assert found.verdicts["3"].verdict == word
    assert found.ended == "nothing left"
    assert told.seeds <= found.seeds["3"] < 2 * told.seeds
    assert page.decided(found).endswith(f"row 3 is {word}; no row is left that more seeds are expected to settle.")


def test_the_time_bounds_the_number_of_looks_and_nothing_else() -> None:
    draws = drawn(0.045)
    made = []
    for seconds in (2, 4, 1000):
        now = iter(range(10_000))
        within = Within(seconds=seconds, clock=lambda now=now: float(next(now)))  # type: ignore[misc]
        made.append(decide([verdict(draws[:12])], "standard", within, looker(draws), lambda _: 1))
    assert [m.ended for m in made[:2]] == ["time", "time"]
    assert made[0].looks < made[1].looks < made[2].looks
    for m in made:
        again = looker(draws)(m.seeds, m.looks, 0)
        assert again is not None
        assert m.verdicts["3"] == again[0]


def test_a_look_that_the_time_cuts_off_leaves_no_trace() -> None:
    draws = drawn(0.045)
    found = decide([verdict(draws[:12])], "standard", Within(seconds=60), lambda *_: None, lacking)
    assert (found.looks, found.runs, found.seeds, found.verdicts, found.ended) == (0, 0, {}, {}, "time")
    assert page.decided(found) == "No further look: the time does not reach for more (--within MINUTES gives more)."


def test_a_row_on_the_margin_ends_after_the_looks_that_are_paid_for() -> None:
    draws = [0.0, 0.1] * (6 * 2**LOOKS)
    found = decide([verdict(draws[:12])], "standard", Within(seconds=60), looker(draws), lacking)
    assert (found.looks, found.ended) == (1, "nothing left")
    told = settling(verdict(draws[:12]), PLAN, {})
    assert told is not None
    assert told.how == "nothing"
    assert "not expected" in told.text


def test_after_the_last_look_time_is_left_and_the_next_step_is_named() -> None:
    draws = [0.053 - 0.05, 0.053 + 0.05] * (6 * 2**LOOKS)  # 6 % beyond the margin
    found = decide([verdict(draws[:12])], "standard", Within(seconds=600), looker(draws), lacking)
    assert (found.looks, found.ended) == (LOOKS, "looks")
    said = page.decided(found)
    assert f"it ends after {LOOKS} further looks though time is left" in said
    last = found.verdicts["3"]
    told = settling(last, PLAN, {})
    assert told is not None
    assert told.how == "nothing"  # no row of the full scale, and the same command would look no further
    assert f"after {LOOKS} further looks, the last with {12 * 2**LOOKS} seeds of each cell" in told.text
    ends = re.search(r"loss ([\d.]+) to ([\d.]+), and 1 is within", told.text)
    assert ends is not None
    assert float(ends[1]) < 1 < float(ends[2])
    larger = replace(ROW, cells=(CELL, Cell(id="b", scenario={}, scale="full")))
    told = settling(replace(last, row=larger), PLAN, {})
    assert told is not None
    assert told.how == "scale"
    assert told.text.startswith(f"the full scale, with 2 cells: {LOOKS} further looks")


def test_a_few_cells_ask_for_the_larger_scale() -> None:
    plan = replace(PLAN, scale="quick")
    told = settling(verdict([0.01, 0.012, 0.011], "quick"), plan, {})
    assert told is not None
    assert told.how == "scale"
    near = verdict([0.01, 0.2, 0.01, 0.2], "quick")  # worse on average, which more seeds may show
    told = settling(near, plan, {})
    assert told is not None
    assert told.how == "seeds"


def test_a_later_look_asks_for_more() -> None:
    e = mean_interval([0.04, 0.05, 0.06, 0.05])
    wide = widened(e, LOOKS)
    assert wide.low < e.low < e.value < e.high < wide.high
    assert wide.level == pytest.approx(1 - 0.05 / LOOKS)
    assert times_needed(0.5, 0.0, 1.0, [1.0]) == 1.0
    assert times_needed(0.5, -0.5, 1.5, [1.0]) == pytest.approx(4.0)


def test_a_row_just_beyond_its_margin_is_worse_at_the_first_look_and_open_at_a_later_one() -> None:
    ours = [0.07 + 0.03 * x for x in (-1, 1)] * 6
    assert verdict(ours).verdict == "worse"
    assert verdict(ours, look=1).verdict == "no difference shown"
    cell = verdict(ours, look=1).cells[0]
    assert (cell.verdict, cell.difference.level) == ("no difference shown", 0.95)  # shown at the usual level


def one_cell(folder: Path, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> Evaluation:
    """Return an evaluation of Reno restricted to row 4, one cell and two seeds at first."""
    plan = Plan(
        candidate=Arm(role="candidate", name="reno", controller="reno"), scale="standard", only=("4",), seeds=(2, 2)
    )
    vars(plan)["rows"] = [replace(row, cells=row.at("quick")[:1]) for row in plan.rows]
    executor = Threads(2)
    try:
        return evaluate(
            plan, folder, executor, within=None if seconds is None else Within(seconds=seconds, clock=clock)
        )
    finally:
        executor.close()


def printed_commands_run_as_they_stand(found: Evaluation, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that inspects one run gives the scenario's path relative to where `evaluate --out` was called."""
    write_scenarios(found, folder)
    look = Settling(row=found.open[0].row, how="look", text="look", arm="candidate", seed=1)
    with monkeypatch.context() as patch:
        patch.setitem(vars(found), "open", (look,))
        patch.chdir(folder.parent)
        printed = _open(found, "here/mine.py:Mine", Path(folder.name), Path(folder.name))[-1]
        assert main([*shlex.split(printed)[1:], "--json"]) == 0
        (within,) = settling_commands(found).values()
        assert main([*shlex.split(within)[1:], "--json"]) == 2
        patch.chdir(folder)
        assert main([*shlex.split(within)[1:], "--json"]) == 0


def test_an_evaluation_decides_and_says_what_it_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = one_cell(tmp_path, None)
    assert [r.verdict for r in plain.rows] == ["no difference shown"]
    (told,) = plain.open
    assert settling_commands(plain, more=["--out x"]) == {"4": "ackclock evaluate reno --rows 4 --decide --out x"}
    printed_commands_run_as_they_stand(plain, tmp_path / "a folder", monkeypatch)
    kept = to_json(plain)
    assert kept["decide"] is None
    assert kept["rows"][0]["settle"] == {
        "how": "seeds",
        "text": told.text,
        "seeds": told.seeds,
        "runs": told.runs,
        "command": "ackclock evaluate reno --rows 4 --decide",
    }
    found = one_cell(tmp_path, 600)
    assert [r.verdict for r in found.rows] == ["no worse"]
    said = to_json(found)["decide"]
    assert said == {
        "looks": 1, "at_most": LOOKS, "runs": 4, "ended": "nothing left", "rows": {"4": {"seeds": 4, "look": 1}},
    }  # fmt: skip
    assert one_cell(tmp_path, 600).digest == found.digest != plain.digest
    assert [r.verdict for r in one_cell(tmp_path / "other", 1e-9).rows] == ["no difference shown"]
    assert json.dumps(to_json(found))


def test_a_look_that_is_cut_off_in_its_runs_leaves_the_evaluation_as_it_was(tmp_path: Path) -> None:
    plain = one_cell(tmp_path, None)
    times = iter([0.0, 0.0])  # the second time is the start of the look
    cut = one_cell(tmp_path, 60, lambda: next(times, 1e9))
    assert cut.decided is not None
    assert (cut.decided.looks, cut.decided.ended, cut.decided.verdicts) == (0, "time", {})
    assert (cut.digest, [r.verdict for r in cut.rows]) == (plain.digest, [r.verdict for r in plain.rows])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--within 5", "--within: found it without --decide; allowed: together"),
        ("--decide --within 0", "--within: found 0; allowed: minutes, above 0"),
        ("--decide --within nan", "--within: found nan; allowed: minutes, above 0"),
    ],
)
def test_bad_times_are_refused(more: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "reno", "--quick", *more.split()]) == 2
    assert said in capsys.readouterr().err


def test_deciding_is_not_for_false_alarms(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--false-alarms", "--decide"]) == 2
    assert "--decide: found it beside --false-alarms" in capsys.readouterr().err


def test_controllers_of_one_stack_have_folders_of_their_own() -> None:
    names = ("quinn:cubic", "quinn:newreno", "stack:toy:fixed", "zoo:deaf", "cubic", "here/mine.py:Mine")
    assert [_stem(name) for name in names] == [
        "quinn-cubic",
        "quinn-newreno",
        "stack-toy-fixed",
        "zoo-deaf",
        "cubic",
        "mine",
    ]
