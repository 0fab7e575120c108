"""Tests for the single judge: effects that a narrower interval, a mirrored claim and identical data must not have, in any front end."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackclock.conform import predicates
from ackclock.evaluate.verdict import outcome
from ackclock.fidelity import verdict as fidelity
from ackclock.judge import (
    Bound,
    Evidence,
    Place,
    Quantity,
    Verdict,
    above,
    at_least,
    at_most,
    below,
    between,
    conjunction,
    decisive,
    same,
)
from ackclock.judge.estimates import mean_over_runs, ratio, ratios_apart
from ackclock.judge.trend import settling
from ackclock.stats import Comparison, Estimate, least_for_quantile, quantile_interval

UNDECIDED = {Verdict.UNDECIDED, "no difference shown"}

settings.register_profile("unhurried", deadline=None)  # a busy machine slows down single examples
settings.load_profile("unhurried")

numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
margins = st.sampled_from([0.0, 0.001, 0.5, 3.0, 100.0])


@st.composite
def bounds(draw: st.DrawFn) -> Bound:
    at, margin = draw(numbers), draw(margins)
    return draw(
        st.sampled_from(
            [
                above(at, margin=margin),
                below(at, margin=margin),
                at_least(at),
                at_most(at),
                same(margin, of=at),
                between(at, at + margin),
            ]
        )
    )


@st.composite
def nested(draw: st.DrawFn, around: float = 0.0) -> tuple[float, float, float, float]:
    """Draw an interval and one inside it, both near a threshold of the verdict."""
    offsets = sorted(draw(st.lists(st.floats(-200, 200), min_size=4, max_size=4)))
    ends = [around + x for x in offsets]
    wide_low, low, high, wide_high = ends
    open_low, open_high = draw(st.booleans()), draw(st.booleans())
    return (-math.inf if open_low else wide_low, low, high, math.inf if open_high else wide_high)


def estimate(low: float, high: float, n: int = 10) -> Estimate:
    return Estimate(value=(low + high) / 2, low=low, high=high, level=0.95, n=n)


@given(data=st.data(), bound=bounds())
def test_a_narrower_interval_lies_in_no_other_place(data, bound):
    at = bound.low if math.isfinite(bound.low) else bound.high
    wide_low, low, high, wide_high = data.draw(nested(at))
    assert bound.places(low, high) & ~bound.places(wide_low, wide_high) == Place(0)


@given(data=st.data(), bound=bounds())
def test_what_is_decided_stays_decided(data, bound):
    at = bound.low if math.isfinite(bound.low) else bound.high
    wide_low, low, high, wide_high = data.draw(nested(at))
    before, after = bound.judge(wide_low, wide_high), bound.judge(low, high)
    assert before is Verdict.UNDECIDED or before is after or refined(before, after)


def refined(before: Verdict, after: Verdict) -> bool:
    """Return whether the verdict became more precise: from "excluded" to "smaller than the margin" or "the opposite"."""
    return before is Verdict.REFUTED and after in (Verdict.NEGLIGIBLE, Verdict.FAILS)


@given(data=st.data(), bound=bounds())
def test_what_a_claim_asks_is_excluded_or_the_claim_is_not_refuted(data, bound):
    """A claim is open only if part of the interval satisfies it."""
    at = bound.low if math.isfinite(bound.low) else bound.high
    low, _, _, high = data.draw(nested(at))
    verdict = bound.judge(low, high)
    touches = bound.asked in bound.places(low, high)
    assert touches == (verdict in (Verdict.HOLDS, Verdict.UNDECIDED))


@given(data=st.data(), margin=margins)
def test_what_evaluate_decides_stays_or_grows_stronger(data, margin):
    wide_low, low, high, wide_high = data.draw(nested())
    before, after = outcome(estimate(wide_low, wide_high), margin), outcome(estimate(low, high), margin)
    assert before in UNDECIDED or before == after or (before, after) == ("no worse", "better")


@given(data=st.data())
def test_what_a_comparison_decides_stays(data):
    def said(low: float, high: float) -> str:
        return Comparison(first=estimate(1, 1), second=estimate(1, 1), difference=estimate(low, high)).outcome

    wide_low, low, high, wide_high = data.draw(nested())
    before = said(wide_low, wide_high)
    assert before in UNDECIDED or before == said(low, high)


@given(data=st.data(), at=st.integers(-1000, 1000), margin=margins)
def test_a_mirrored_claim_has_the_same_verdict(data, at, margin):
    _, low, high, _ = data.draw(nested(at))
    assert above(at, margin=margin).judge(low, high) is below(-at, margin=margin).judge(-high, -low)
    assert at_least(at).judge(low, high) is at_most(-at).judge(-high, -low)


@given(x=numbers, bound=bounds())
def test_an_exact_value_is_never_undecided(x, bound):
    assert bound.judge(x, x) is not Verdict.UNDECIDED
    assert (bound.judge(x, x) is Verdict.HOLDS) <= (x in bound)


@given(low=st.floats(-10, 10), width=st.floats(0, 10), margin=st.sampled_from([0.5, 1.0, 3.0]))
def test_fronts_that_judge_intervals_agree_on_equal_data(low, width, margin):
    """For `evaluate` more is worse, and the claim says "more": both must classify an interval in the same way."""
    high = low + width
    claim, other = above(0, margin=margin).judge(low, high), outcome(estimate(low, high), margin)
    compared = Comparison(first=estimate(1, 1), second=estimate(1, 1), difference=estimate(low, high)).outcome
    if claim is Verdict.HOLDS and low > margin:
        assert (other, compared) == ("worse", "first is larger")
    if claim is Verdict.NEGLIGIBLE:
        assert other == "no worse"
    if claim is Verdict.REFUTED:
        assert other in ("better", "no worse", "no difference shown")
        assert compared != "first is larger" or high < margin
    if claim is Verdict.FAILS and high < -margin:
        assert (other, compared) == ("better", "second is larger")
    if compared == "second is larger":
        assert claim is not Verdict.HOLDS
        assert other != "worse"


NUMBER = 64.0
"""Reference value: a power of two, so that fractions of it are exact."""


@given(x=st.integers(-20, 20), margin=st.integers(0, 20))
def test_all_five_fronts_place_a_number_alike(x, margin):
    """A number without uncertainty, and a margin on either side of zero: below, within, above, and exactly on
    the margin.
    """
    exact = estimate(x, x)
    place = same(margin).place(x)
    claim = {Verdict.HOLDS: Place.WITHIN, Verdict.FAILS: Place.BELOW | Place.ABOVE}
    assert place & claim[Evidence.of(exact, "x", same(margin)).verdict]
    evaluated = {"better": Place.BELOW, "no worse": Place.WITHIN, "worse": Place.ABOVE}
    assert evaluated[outcome(exact, margin)] is place
    compared = {"second is larger": Place.BELOW, "equal in every pair": Place.WITHIN, "first is larger": Place.ABOVE}
    found = Comparison(first=exact, second=exact, difference=exact).outcome
    assert compared[found] is same(0).place(x)
    row = fidelity.judge(
        "a cell", "a number", kernel=[NUMBER], simulator=[NUMBER + x], bound=fidelity.Bound(relative=margin / NUMBER)
    )
    assert (row.verdict == "holds") == (place is Place.WITHIN)
    asked = predicates.limits({"least": -margin, "most": margin})
    assert predicates.found(asked, "", x).holds == (place is Place.WITHIN)


@given(data=st.data(), margin=st.integers(0, 100))
def test_what_holds_for_all_values_of_a_run_holds_for_fewer(data, margin):
    """A case of a pack requires every value to lie between the minimum and the maximum."""
    wide_low, low, high, wide_high = data.draw(nested())
    asked = predicates.limits({"least": -margin, "most": margin})
    assert predicates.found(asked, "", wide_low, wide_high).holds <= predicates.found(asked, "", low, high).holds


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.1, 1.3, Verdict.HOLDS),
        (1.043, 1.096, Verdict.NEGLIGIBLE),  # one sign, and smaller than the margin
        (0.95, 1.096, Verdict.NEGLIGIBLE),  # wider, but with the same verdict
        (1.05, 1.2, Verdict.UNDECIDED),
        (0.8, 1.05, Verdict.REFUTED),  # smaller than the margin, or the opposite sign: not as claimed
        (0.8, 1.2, Verdict.UNDECIDED),
        (0.7, 0.85, Verdict.FAILS),
    ],
)
def test_an_effect_smaller_than_what_counts_neither_holds_nor_fails(low, high, verdict):
    assert above(1, margin=0.1).judge(low, high) is verdict


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(0, 2)), min_size=1, max_size=4))
def test_several_numbers_at_once_decide_once(found):
    """The verdict on several numbers does not change as the numbers become exact."""

    def evidence(exact: int) -> list[Evidence]:
        return [
            Evidence(label=str(i), value=value, low=value - half * (i >= exact), high=value + half * (i >= exact),
                     bound=above(0, margin=1), seeds=1000)
            for i, (value, half) in enumerate(found)
        ]  # fmt: skip

    verdicts = [conjunction(evidence(exact)) for exact in range(len(found) + 1)]
    for before, after in itertools.pairwise(verdicts):
        assert before is Verdict.UNDECIDED or before is after or refined(before, after)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.001, 100)), min_size=3, max_size=20))
def test_a_ratio_of_what_cannot_be_negative_has_no_negative_interval(pairs):
    found = ratio(*(np.array(column) for column in zip(*pairs, strict=True)))
    assert 0 <= found.low <= found.value <= found.high


def test_a_ratio_is_that_of_its_mirror():
    """On a logarithmic scale the interval of b / a is the negated interval of a / b."""
    a, b = np.array([1.0, 2.0, 3.0, 2.5]), np.array([2.0, 3.0, 3.5, 4.0])
    one, other = ratio(a, b), ratio(b, a)
    assert one.low * other.high == pytest.approx(1, rel=0.02)
    assert one.high * other.low == pytest.approx(1, rel=0.02)


def test_equal_runs_are_no_certainty():
    """An order statistic keeps its runs and interval; only deterministic values are exact."""
    found = Evidence.of(quantile_interval([2.0] * 10, 0.5), "same", above(1))
    assert (found.seeds, found.interval) == (10, (2.0, 2.0))
    mean = mean_over_runs(np.zeros(10), one=1.0)
    assert mean.low < 0 < mean.high
    assert Quantity(label="same", estimate=2.0).asked(above(1)).interval_text == "exact"


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [
        ([(0.117, 0.465, 0.5), (-2.0, 10.0, 1.0)], Verdict.REFUTED),  # prr P4: one is negligible, so the other is irrelevant
        ([(-1.08, 0.0417, 1.0), (-0.4, 0.068, 1.0)], Verdict.REFUTED),  # prr P11
        ([(0.1, 0.4, 0.5), (2.0, 3.0, 1.0)], Verdict.NEGLIGIBLE),
        ([(-5.0, -2.0, 1.0), (-1.0, 5.0, 1.0)], Verdict.FAILS),
        ([(2.0, 3.0, 1.0), (-1.0, 5.0, 1.0)], Verdict.UNDECIDED),
        ([(2.0, 3.0, 1.0), (4.0, 5.0, 1.0)], Verdict.HOLDS),
    ],
)  # fmt: skip
def test_a_claim_on_several_numbers_falls_with_the_first_that_is_excluded(numbers, verdict):
    found = [
        Evidence(label=str(i), value=(low + high) / 2, low=low, high=high, bound=above(0, margin=margin), seeds=1000)
        for i, (low, high, margin) in enumerate(numbers)
    ]
    assert conjunction(found) is verdict
    shown = decisive(found)
    assert shown is not None
    if verdict is not Verdict.HOLDS and verdict is not Verdict.UNDECIDED:
        assert shown is found[0]


def test_an_interval_that_cannot_exist_says_so():
    found = Evidence.of(quantile_interval([1.0, 2.0, 3.0], 0.5), "median", above(0))
    assert found.verdict is Verdict.UNDECIDED
    assert found.interval_text == "none with 3 runs"


@pytest.mark.parametrize("q", [0.1, 0.5, 0.75, 0.95])
def test_so_many_runs_have_an_interval_and_one_fewer_has_not(q):
    n = least_for_quantile(q)
    enough = quantile_interval(range(n), q)
    assert math.isfinite(enough.low)
    assert math.isfinite(enough.high)
    fewer = quantile_interval(range(n - 1), q)
    assert math.isinf(fewer.low) or math.isinf(fewer.high)


def test_a_difference_of_paired_ratios_keeps_its_pairs():
    """The runs' common part cancels; with two independent intervals it would not."""
    rng = np.random.default_rng(2)
    events = rng.integers(50, 150, 40).astype(float)
    common = 0.3 + 0.2 * rng.random(40)
    first, second = np.round(events * (common + 0.05)), np.round(events * common)
    apart = ratios_apart((first, events), (second, events))
    a, b = ratio(first, events), ratio(second, events)
    assert apart.value == pytest.approx(0.05, abs=0.005)
    assert apart.low > 0
    assert apart.high - apart.low < 0.2 * ((a.high - a.low) + (b.high - b.low))
    # the bootstrap over runs, slow and obvious
    drawn = [
        first[i].sum() / events[i].sum() - second[i].sum() / events[i].sum()
        for i in (rng.integers(0, 40, 40) for _ in range(2000))
    ]
    assert apart.low == pytest.approx(np.quantile(drawn, 0.025), abs=0.002)
    assert apart.high == pytest.approx(np.quantile(drawn, 0.975), abs=0.002)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_still_drifts_is_told_whichever_way_and_how_long_would_settle_it(sign):
    """With exponential decay, each third contributes a fixed fraction of the previous third's amount."""
    t, runs = np.arange(90) / 30, 1e-3 * np.array([[-1.0], [0.0], [1.0]])
    decays = 5.0 + sign * np.exp(-t) + runs * np.sin(np.arange(90))
    found = settling(decays, tolerance=0.01)
    assert found.drifts
    # after the window, e^-3 of about 1 remains; each further third reduces it to 1 / e
    mean = (1 - math.exp(-1)) * math.exp(-2)
    assert found.factor == pytest.approx(1 + math.log(mean / (1 - math.exp(-1)) * math.exp(-1) / 0.01) / 3, abs=0.35)
    assert settling(decays, tolerance=0.001).factor > found.factor > 1
    grows = settling(5.0 + sign * t + runs, tolerance=0.01)
    assert (grows.drifts, grows.factor) == (True, math.inf)
    assert grows.told == "nothing shows that it settles"
    flat = settling(5.0 + 10 * runs * np.sin(np.arange(90) / 7) + 0 * t, tolerance=0.01)
    assert (flat.drifts, flat.factor) == (False, 1.0)
