"""Tests for the rule over cells: the documentation's data, and the resulting verdict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ackclock.judge import Evidence, Verdict, above
from ackclock.judge.estimates import mean_of, mean_over_runs, minus, quotient, ratio, scaled
from ackclock.judge.over_cells import RULE, general

TOLERANCE = Path(__file__).parents[3] / "docs" / "studies" / "tolerance.md"


def cell(value: float, half: float, **names: object) -> Evidence:
    return Evidence(
        label=str(sorted(names.items())), value=value, low=value - half, high=value + half, bound=above(0, margin=0.5), seeds=400, cell=names
    )  # fmt: skip


def test_the_page_prints_the_rule_as_it_is():
    text = TOLERANCE.read_text(encoding="utf-8")
    for said, word in RULE.items():
        assert f"| {said} | {word} |" in text


@pytest.mark.parametrize(
    ("cells", "verdict"),
    [
        ([(2, 0.5), (3, 0.5), (0, 0.5)], Verdict.HOLDS),
        ([(5, 0.5), (5, 0.5), (-2, 0.5)], Verdict.DEPENDS),  # holds for the mean
        ([(-2, 0.5), (-3, 0.5), (0, 0.5)], Verdict.FAILS),
        ([(0.1, 0.2), (-0.1, 0.2)], Verdict.NEGLIGIBLE),
        ([(0.6, 2), (0.4, 2)], Verdict.UNDECIDED),
        ([(5, 0.5), (5, 0.5), (-1, 0.6)], Verdict.HOLDS),  # no significant opposite effect
    ],
)
def test_a_general_sentence_has_the_word_of_the_rule(cells, verdict):
    found = general([cell(value, half, size=i) for i, (value, half) in enumerate(cells)])
    assert found.verdict is verdict
    assert [e for e in found.evidence if e.weighs] == [found.evidence[0]]


def test_what_parts_the_cells_is_told():
    cells = [cell(3.0 if load < 90 else -3.0, 0.3, load=load, opens=opens) for load in (10, 50, 95) for opens in (1, 5)]
    found = general(cells)
    assert (found.verdict, found.parted) == (Verdict.DEPENDS, "load")


def test_estimates_of_the_same_runs_are_paired():
    """The mean of two cells with common losses keeps the uncertainty of the common part, which cancels in a quotient."""
    rng = np.random.default_rng(3)
    common, base = rng.lognormal(0, 0.4, 500), np.full(500, 1.0)
    first, second = (common * (1 + 0.05 * rng.standard_normal(500)) for _ in range(2))
    alone = [ratio(x, base) for x in (first, second)]
    paired = [ratio(x, base, runs="one") for x in (first, second)]

    def width(e):
        return e.high - e.low

    assert width(quotient(*paired)) < 0.3 * width(quotient(*alone))
    assert width(minus(*paired)) < 0.3 * width(minus(*alone))
    assert width(mean_of(paired)) > 1.2 * width(mean_of(alone))
    drawn = np.array([first[i].sum() / second[i].sum() for i in rng.integers(0, 500, (2000, 500))])
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert quotient(*paired).low == pytest.approx(low, abs=0.002)
    assert quotient(*paired).high == pytest.approx(high, abs=0.002)


def test_a_mean_that_a_few_runs_carry_has_no_interval():
    """Each backoff doubles the wait with a probability of two thirds, so the mean is infinite."""
    rng = np.random.default_rng(5)
    backoffs = 2.0 ** rng.geometric(1 / 3, 600) + rng.random(600)
    assert not np.isfinite(mean_over_runs(backoffs).high)
    assert np.isfinite(mean_over_runs(rng.lognormal(0, 0.5, 600)).high)


def test_counts_that_differ_by_one_and_timeouts_beside_packets_have_an_interval():
    """Neither has an infinite mean: nearly all counts equal their median, and with two scales the larger one cuts off the tail."""
    rng = np.random.default_rng(7)
    least = rng.poisson(0.3, 2000).astype(float)
    counts = least + (rng.random(2000) < 0.1)
    assert np.isfinite(ratio(least, counts).high)
    base = 1 + rng.lognormal(0, 0.5, 3000)
    little = np.where(rng.random(3000) < 0.2, 0.05 * rng.lognormal(-0.125, 0.5, 3000), 0.0)
    waits = np.where(rng.random(3000) < 0.01, 2.0 ** rng.geometric(0.95, 3000) - 1, 0.0)
    assert np.isfinite(ratio(base, base + little + waits).high)


def test_cells_without_chance_leave_the_mean_its_runs():
    """A one-segment page, where nothing can differ, is exactly 0: it halves the mean and its interval, and adds no runs."""
    values = np.random.default_rng(11).lognormal(0, 0.4, 300)
    drawn = Evidence.of(mean_over_runs(values, runs="one"), "drawn", above(0))
    found = general([drawn, Evidence(label="exact", value=0.0, bound=above(0))]).evidence[0]
    assert found.seeds == 300
    assert (found.value, found.low, found.high) == pytest.approx((drawn.value / 2, drawn.low / 2, drawn.high / 2))


def test_what_draws_nothing_is_exact_and_what_draws_is_not():
    same = np.full(4, 12.0)
    exact, drawn = mean_over_runs(same, chance=False), mean_over_runs(same)
    assert (exact.low, exact.high) == (12.0, 12.0)
    assert drawn.low < 12.0 < drawn.high


def test_runs_that_are_all_alike_widen_what_is_made_of_them():
    """None of 300 pairs differs in one cell: the mean of both cells cannot be more certain than half of that cell's
    interval.
    """
    rng = np.random.default_rng(13)
    base = 1 + rng.lognormal(0, 0.4, 300)
    equal = ratio(base, base, runs="equal")
    differs = ratio(base, base * (1 + 0.01 * rng.standard_normal(300)), runs="differs")
    assert equal.high - equal.low > 5 * (differs.high - differs.low)
    for found in (mean_of([equal, differs]), scaled(minus(equal, differs), 0.5)):
        assert found.high - found.low == pytest.approx((equal.high - equal.low) / 2, rel=0.05)
