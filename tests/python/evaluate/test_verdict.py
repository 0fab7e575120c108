"""Tests for the verdicts on cells and rows, with handmade numbers."""

from __future__ import annotations

import math

import polars as pl
import pytest

from ackclock.evaluate import Cell, Measure, Row
from ackclock.evaluate.measure import share_of
from ackclock.evaluate.seeds import PAIRS, more_seeds
from ackclock.evaluate.situation import Scale, Tables
from ackclock.evaluate.verdict import (
    Judged,
    Values,
    holm,
    in_margins,
    judge,
    judge_rows,
    outcome,
)
from ackclock.stats import Estimate

LESS = Measure(name="loss", of=lambda t, c: {}, better="less", margin=0.05)
MORE = Measure(name="utilisation", of=lambda t, c: {}, better="more", margin=0.05)


def cell(name: str = "a") -> Cell:
    return Cell(id=name, scenario={})


def values(numbers: list[float], *, same: bool = False) -> Values:
    return Values(
        numbers=dict(enumerate(numbers, 1)),
        digests={s: "d" if same else f"d{s}" for s in range(1, len(numbers) + 1)},
    )


def judged(measure: Measure, ours: list[float], theirs: list[float], at: str = "a") -> Judged:
    return judge(measure, cell(at), values(ours), values(theirs))


def row(*measures: Measure) -> Row:
    return Row(id="1", section="5", level="MUST", quote="", title="t", cells=(cell(),), measures=measures)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.06, 0.2, "worse"),
        (0.04, 0.2, "no difference shown"),
        (-0.2, 0.05, "no worse"),
        (-0.2, -0.06, "better"),
        (-0.05, 0.05, "no worse"),
        (-math.inf, math.inf, "no difference shown"),
    ],
)
def test_verdict_of_an_interval(low: float, high: float, verdict: str) -> None:
    assert outcome(Estimate(value=0.0, low=low, high=high, level=0.95, n=9), 0.05) == verdict


def test_which_side_is_worse_is_the_measures() -> None:
    high, low = [0.5, 0.52, 0.48, 0.51], [0.1, 0.12, 0.09, 0.11]
    assert judged(LESS, high, low).verdict == "worse"
    assert judged(MORE, high, low).verdict == "better"
    assert judged(MORE, low, high).verdict == "worse"
    assert judged(MORE, [0.1, 0.02, 0.3], [0.5, 0.5, 0.5]).worst_seed == 2


def test_equal_digests_refuse_a_verdict() -> None:
    found = judge(LESS, cell(), values([0.5] * 4, same=True), values([0.1, 0.2, 0.1, 0.2]))
    assert (found.verdict, found.distinct) == ("not tested", 1)
    assert found.note == "one run, not 4: all seeds gave the same packets"


def test_numbers_that_are_missing_are_counted() -> None:
    found = judged(LESS, [0.1, math.nan, 0.1, 0.12], [0.1, 0.2, math.nan, 0.1])
    assert (found.difference.n, found.runs, found.without, found.lopsided) == (2, 4, (1, 1), False)
    assert found.note == "no number in 1 of 4 runs of the candidate, 1 of CUBIC's"
    assert judged(LESS, [math.nan], [math.nan]).note == "no number in any run"


NAN = math.nan
LOPSIDED = {
    "in one seed": ([0.1, 0.11, NAN, 0.1, 0.12], [0.1, 0.1, 0.1, 0.12, 0.11], (1, 0)),
    "where it would be better": ([0.01, 0.02, NAN, 0.01, 0.0], [0.5, 0.5, 0.5, 0.52, 0.51], (1, 0)),
    "of the reference alone": ([0.1, 0.11, 0.1, 0.1, 0.12], [0.1, 0.1, NAN, NAN, 0.11], (0, 2)),
    "in all": ([NAN] * 5, [0.1, 0.1, 0.1, 0.12, 0.11], (5, 0)),
    "in all but one": ([NAN, NAN, 0.1, NAN, NAN], [0.1, 0.1, 0.1, 0.12, 0.11], (4, 0)),
}


@pytest.mark.parametrize("name", LOPSIDED)
def test_more_runs_of_one_arm_without_a_number_are_no_worse_to_nobody(name: str) -> None:
    """The worst seeds are those in which a flow starved; without them the candidate would look as good as the others."""
    ours, theirs, without = LOPSIDED[name]
    found = judged(LESS, ours, theirs)
    assert (found.verdict, found.without, found.runs) == ("no difference shown", without, 5)
    (whole,) = judge_rows([(row(LESS), [found])])
    assert whole.verdict == "no difference shown"
    assert f"no number in {without[0]} of 5 runs of the candidate, {without[1]} of CUBIC's" in whole.reason
    assert whole.worst is not None
    assert whole.worst.worst_seed is not None
    # harmless cells cannot outvote it either
    sound = judged(LESS, [0.1, 0.11, 0.1, 0.1, 0.12], [0.1, 0.1, 0.1, 0.12, 0.11], "b")
    assert judge_rows([(row(LESS), [sound])])[0].verdict == "no worse"
    assert judge_rows([(row(LESS), [sound, found])])[0].verdict == "no difference shown"


def test_worse_stays_worse_without_some_numbers() -> None:
    found = judged(LESS, [0.5, 0.51, NAN, 0.5, 0.52], [0.1, 0.1, 0.1, 0.12, 0.11])
    assert found.verdict == "worse"
    assert judge_rows([(row(LESS), [found])])[0].verdict == "worse"


def test_a_run_that_no_table_mentions_has_no_number_either() -> None:
    theirs = values([0.1, 0.1, 0.1, 0.12, 0.11])
    ours = Values(numbers={1: 0.1, 2: 0.11, 4: 0.1, 5: 0.1}, digests=theirs.digests)
    assert judge(LESS, cell(), ours, theirs).without == (1, 0)


def test_a_relative_margin_has_a_floor() -> None:
    delay = Measure(name="d", of=lambda t, c: {}, better="less", margin=0.1, relative=True, least=0.001)
    assert judged(delay, [0.1, 0.11], [0.1, 0.1]).margin == pytest.approx(0.01)
    assert judged(delay, [0.001, 0.002], [0.001, 0.001]).margin == 0.001


def test_one_measure_in_many_cells_needs_more() -> None:
    """Of forty cells, one is expected beyond the 5 % limit by chance; an effect well beyond it still counts."""
    edge = judged(LESS, [0.16, 0.17, 0.16, 0.16], [0.03, 0.06, 0.01, 0.04], "edge")
    assert edge.verdict == "worse"
    assert 0.025 / 40 < edge.p < 0.025
    quiet = [judged(LESS, [0.1, 0.11, 0.1], [0.1, 0.1, 0.11], f"q{i}") for i in range(39)]
    assert holm([edge, *quiet]) == set()
    plain = judged(LESS, [0.500, 0.501, 0.499, 0.5], [0.1, 0.1, 0.101, 0.1], "plain")
    assert holm([edge, *quiet, plain]) == {40}
    assert judge_rows([(row(LESS), [edge, *quiet])])[0].verdict == "no worse"
    found = judge_rows([(row(LESS), [edge, *quiet, plain])])[0]
    assert (found.verdict, found.worst and found.worst.cell.id) == ("worse", "plain")


def test_a_row_is_judged_by_the_mean_over_cells() -> None:
    cells = [judged(LESS, [0.20, 0.19, 0.21], [0.1, 0.1, 0.1], f"c{i}") for i in range(3)]
    assert in_margins(cells) == pytest.approx([2.0, 1.8, 2.2])
    assert judge_rows([(row(LESS), cells)])[0].verdict == "worse"


def test_a_row_is_no_worse_only_if_every_measure_is() -> None:
    good = judged(LESS, [0.1, 0.1, 0.101], [0.1, 0.101, 0.1])
    wide = judged(MORE, [0.5, 0.9, 0.7], [0.7, 0.6, 0.75])
    found = judge_rows([(row(LESS, MORE), [good, wide])])[0]
    assert (found.verdict, found.measure) == ("no difference shown", "utilisation")


def test_delay_counts_where_utilisation_is_alike() -> None:
    delay = Measure(name="delay", of=lambda t, c: {}, better="less", margin=0.01, only_if="utilisation")
    slow = judged(delay, [0.3, 0.31, 0.3], [0.1, 0.1, 0.1])
    idle = judged(MORE, [0.4, 0.41, 0.4], [0.9, 0.9, 0.91])
    busy = judged(MORE, [0.9, 0.91, 0.9], [0.9, 0.9, 0.91])
    assert judge_rows([(row(delay, MORE), [slow, idle])])[0].measure == "utilisation"
    assert judge_rows([(row(delay, MORE), [slow, busy])])[0].measure == "delay"


def wanted(cells: list[Judged], most: int = 40, scale: Scale = "standard") -> dict[str, int]:
    return {at: n for (_, at), n in more_seeds([(row(LESS), cells)], scale, most).items()}


def test_seeds_are_added_where_a_row_is_open_and_they_may_settle_it() -> None:
    near = judged(LESS, [0.15, 0.05, 0.12, 0.04, 0.10, 0.11], [0.05, 0.06, 0.05, 0.06, 0.04, 0.05])
    assert near.verdict == "no difference shown"
    assert wanted([near], 400) == {"a": 12}
    assert wanted([near], 400, "quick") == {}
    on_it = judged(LESS, [0.15, 0.06, 0.12, 0.04], [0.05] * 4, "b")
    assert wanted([on_it], 5) == {}, "the mean is so near to the margin that few more tell nothing"


def test_a_row_that_is_settled_has_no_more_seeds() -> None:
    clear = judged(LESS, [0.5, 0.51, 0.49, 0.5, 0.5, 0.5], [0.1] * 5 + [0.11])
    open_one = judged(LESS, [0.15, 0.05, 0.12, 0.04, 0.10, 0.11], [0.05, 0.06, 0.05, 0.06, 0.04, 0.05], "b")
    assert wanted([clear, open_one]) == {}, "worse"
    quiet = [judged(LESS, [0.1, 0.11, 0.1, 0.1, 0.1, 0.1], [0.1] * 6, f"q{i}") for i in range(30)]
    below = judged(LESS, [0.16, 0.10, 0.12, 0.08, 0.20, 0.10], [0.1] * 6, "below")
    assert below.verdict == "no difference shown"
    assert wanted([below, *quiet]) == {}, "no worse, and this cell will not change that"


def test_a_cell_that_may_be_worse_has_more_seeds_in_a_row_that_is_not() -> None:
    quiet = [judged(LESS, [0.1, 0.11, 0.1, 0.1, 0.1, 0.1], [0.1] * 6, f"q{i}") for i in range(30)]
    suspect = judged(LESS, [0.30, 0.12, 0.31, 0.33, 0.29, 0.12], [0.1] * 6, "suspect")
    assert judge_rows([(row(LESS), [suspect, *quiet])])[0].verdict == "no worse"
    assert wanted([suspect, *quiet], 80) == {"suspect": 12}


def test_a_row_has_no_more_than_its_pairs_of_runs() -> None:
    near = [judged(LESS, [0.12, 0.02, 0.10, 0.01, 0.07, 0.06], [0.05] * 6, f"c{i}") for i in range(PAIRS // 10)]
    assert set(wanted(near[:1], 400).values()) == {12}
    assert set(wanted(near, 400).values()) == {10}


def noisy(mean: float, at: str) -> Judged:
    return judged(LESS, [mean, mean + 0.01, mean - 0.01, mean + 0.005], [0.1, 0.11, 0.1, 0.12], at)


def test_better_on_the_mean_does_not_pay_for_harm_in_a_cell() -> None:
    """A gain on one path does not compensate for harm on another."""
    harm = judged(LESS, [0.25, 0.31, 0.34, 0.5], [0.1, 0.11, 0.1, 0.12], "a")
    gifts = [noisy(-0.9, f"b{i}") for i in range(3)]
    assert harm.verdict == "worse"
    scales: tuple[Scale, ...] = ("quick", "standard")
    for scale in scales:
        (found,) = judge_rows([(row(LESS), [harm, *gifts])], scale)
        assert found.verdict == "mixed"
        assert found.worst is harm
        assert found.fails_must
    assert judge_rows([(row(LESS), gifts)])[0].verdict == "better"


def test_quick_never_says_that_nothing_is_worse() -> None:
    for cells, said in (([noisy(-0.9, "a")], "better in loss"), ([noisy(0.11, "a")], "no worse")):
        (found,) = judge_rows([(row(LESS), cells)], "quick")
        assert found.verdict == "no difference shown"
        assert said in found.reason
        assert not found.fails_must
    assert judge_rows([(row(LESS), [noisy(0.5, "a")])], "quick")[0].verdict == "worse"


RATE = Measure(name="sent", of=lambda t, c: {}, better="less", margin=2.0, ratio=True, least=0.1)


def test_rates_are_compared_as_ratios() -> None:
    """6.6 packets per round trip against 0.007: a difference that could be mistaken for noise."""
    found = judged(RATE, [6.0, 0.9, 17.0, 5.0], [0.3, 0.2, 0.25, 0.2])
    assert found.verdict == "worse"
    assert found.margin == pytest.approx(math.log(2))
    assert judged(RATE, [0.35, 0.22, 0.3, 0.25], [0.3, 0.2, 0.25, 0.2]).verdict == "no worse"
    # values near zero are replaced by the minimum
    assert judged(RATE, [0.01, 0.02, 0.09, 0.03], [1e-5, 0.0, 1e-4, 1e-3]).verdict == "no worse"


def test_a_duty_does_not_depend_on_the_reference() -> None:
    duty = Measure(name="sent", of=lambda t, c: {}, better="less", margin=2.0, ratio=True, least=1.0, duty=8.0)
    found = judged(duty, [60.0, 61.0, 60.0, 62.0], [60.0, 60.0, 61.0, 60.0])
    assert (found.verdict, found.broken, found.worst_seed) == ("no worse", 62.0, 4)
    (whole,) = judge_rows([(row(duty), [found])])
    assert whole.verdict == "worse"
    assert whole.reason.startswith("does not back off: sent, up to 62")
    # one run is enough
    assert judge_rows([(row(duty), [judged(duty, [1.0, 1.1, 9.0, 1.2], [1.0, 1.1, 1.0, 1.2])])])[0].verdict == "worse"
    assert judge_rows([(row(duty), [judged(duty, [1.0, 1.1, 7.9, 1.2], [1.0, 1.1, 1.0, 1.2])])])[0].verdict != "worse"


def test_a_share_is_of_what_all_had_after_the_time_and_none_where_nobody_had_anything():
    rows = [(1, 5.0, 0, 100.0), (1, 5.0, 1, 0.0), (1, 6.0, 0, 1.0), (1, 6.0, 1, 3.0), (2, 6.0, 0, 0.0)]
    frame = pl.DataFrame(rows, schema=["seed", "t_s", "flow", "goodput_bps"], orient="row")
    found = share_of(1, 5.0)(Tables({"goodput": frame}, {1: "", 2: ""}), None)
    assert found[1] == 0.75
    assert math.isnan(found[2])
