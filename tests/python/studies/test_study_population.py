"""Tests for a path population: the drawn paths, the fraction on which a sentence holds, and the explanation."""

from __future__ import annotations

import numpy as np
import pytest

from ackclock.judge import above
from ackclock.judge.estimates import percent_more, remaining
from ackclock.study.population import Drawn, OnPaths, class_share, draw, explains, recorded, share, told, verdicts, ways
from ackclock.study.record import Record

RATE = Drawn(name="rate", unit="Mb/s", kind="lognormal", a=2.0, b=0.8, source="made up")
LOSS = Drawn(name="loss", unit="", kind="exponential", a=0.02, least=0.001, most=0.1, source="made up")
QUEUE = Drawn(name="queue", unit="BDP", kind="log-uniform", a=0.25, b=8, source="made up")
LOAD = Drawn(name="load", unit="", kind="uniform", a=0.1, b=0.9, source="made up")


def test_a_property_says_how_it_is_drawn():
    """The spread of a lognormal property has no unit."""
    assert str(RATE) == "rate lognormal, median 2 Mb/s, sigma 0.8 (made up)"
    assert str(LOSS) == "loss exponential, mean 0.02 (made up)"
    assert str(QUEUE) == "queue log-uniform, 0.25 to 8 BDP (made up)"


def test_a_population_has_the_distributions_that_it_declares():
    paths = draw((RATE, LOSS, QUEUE, LOAD), 2000, seed=1)
    column = {name: np.array([path[name] for path in paths]) for name in paths[0]}
    assert np.median(column["rate"]) == pytest.approx(2.0, rel=0.02)
    assert np.log(column["rate"]).std() == pytest.approx(0.8, rel=0.03)
    assert column["loss"].min() >= 0.001
    assert column["loss"].max() <= 0.1
    assert np.median(column["loss"]) == pytest.approx(0.02 * np.log(2), rel=0.03)
    assert np.median(column["queue"]) == pytest.approx(2**0.5, rel=0.03)
    assert column["load"].mean() == pytest.approx(0.5, rel=0.01)
    spread = np.corrcoef(np.array(list(column.values())))
    assert np.abs(spread - np.eye(4)).max() < 0.05


def test_a_longer_list_begins_with_the_shorter_one():
    assert draw((RATE, LOSS), 10, seed=3) == draw((RATE, LOSS), 100, seed=3)[:10]
    assert draw((RATE, LOSS), 10, seed=3) != draw((RATE, LOSS), 10, seed=4)


def test_paths_of_which_nothing_is_known_are_left_out():
    e = share(np.array([1.0, 0.0, np.nan, 1.0]))
    assert (e.n, round(e.value, 1)) == (3, 66.7)
    assert e.low < 66.7 < e.high
    assert share(np.array([np.nan])).n == 0


def test_a_property_that_decides_explains_and_others_do_not():
    rng = np.random.default_rng(1)
    x, y, noise = rng.random((3, 500))
    rank = x.argsort().argsort()
    middle = ((rank >= 200) & (rank < 300)).astype(float)  # no slope, so a correlation would not detect it
    table = explains(middle + 0.01 * noise, {"x": x, "y": y})
    assert table["property"].to_list() == ["x", "y"]
    assert table["explained"][0] > 0.9
    assert table["explained"][1] < 0.03
    assert told(table, 1).startswith("x (")
    nothing = explains(np.ones(500), {"x": x})
    assert nothing["explained"][0] == 0
    assert told(nothing) == "none of them alone"


def test_what_is_left_of_an_effect_when_its_cause_is_gone():
    rng = np.random.default_rng(2)
    base = 10 + rng.normal(size=200)
    ten_more, two_more = base * 1.10, base * 1.02
    e = remaining((ten_more, base), (two_more, base))
    assert (round(e.value), round(e.low), round(e.high)) == (20, 20, 20)
    apart = remaining((ten_more, base), (two_more[:150], base[:150]), joint=False)
    assert round(apart.value) == 20
    nothing = remaining((base, base), (two_more, base))
    assert np.isnan(nothing.value)
    noisy = remaining((ten_more + rng.normal(size=200), base), (base + rng.normal(size=200), base))
    assert noisy.low < 0 < noisy.high
    assert noisy.high < 50


def test_a_sentence_over_paths_has_shares_a_verdict_and_what_explains_it():
    queue = np.arange(100.0)
    way = np.where(queue >= 20, 1.0, -1.0)
    way[50] = np.nan
    found = OnPaths(key="it", text="it gains", way=way, properties={"queue": queue, "rate": np.tile([1.0, 2.0], 50)})
    holds, reverse, nothing, unknown = found.shares
    assert (holds.n, holds.value, reverse.value, nothing.value, unknown.value) == (100, 79, 20, 0, 1)
    assert holds.high > class_share(np.where(np.isnan(way), -1.0, way), 1.0).high  # the unknown path may be one of them
    assert found.verdict == "holds"
    assert OnPaths(key="it", text="", way=-way, properties={}).verdict == "fails"
    assert OnPaths(key="it", text="", way=np.sign(queue % 2 - 0.5), properties={}).verdict == "undecided"
    evidence = {e.key: e for e in found.evidence()}
    assert list(evidence) == ["it_holds_on", "it_reverse_on", "it_none_on", "it_unknown_on", "it_first", "it_second"]
    assert not any(e.weighs for e in evidence.values())
    assert evidence["it_first"].label.endswith("explained by queue")
    assert evidence["it_first"].value > 90
    assert verdicts([found]).rows[0][5] == "holds"


def test_a_record_gives_the_same_table():
    queue = np.arange(100.0)
    found = OnPaths(key="it", text="it gains", way=np.where(queue >= 20, 1.0, -1.0), properties={"queue": queue})
    evidence = {
        e.label: {"value": e.value, "interval": e.interval and list(e.interval), "unit": e.unit, "key": e.key}
        for e in found.evidence()
    }
    record = Record(claims={"X1": {"direction": {"verdict": "holds", "evidence": evidence}}})
    text = recorded(record, ["X0", "X1"])
    assert "| X1 | it gains | 80 % (71 to 87) | 20 % (13 to 29) | 0 % (0 to 4) | 0 % (0 to 4) | queue (" in text
    assert recorded(Record(), ["X1"]) == ""


@pytest.mark.parametrize("fetches", [30, 120])
def test_rules_that_are_exchanged_at_random_give_hardly_a_path_a_word(fetches):
    """Each value is assigned to one of two rules at random, so there is no difference, and any path that shows one does so by chance."""
    rng = np.random.default_rng(84)
    each = []
    for _ in range(400):
        first = rng.poisson(2.0, fetches).astype(float)
        second = np.where(rng.random(fetches) < 0.7, first, rng.poisson(2.5, fetches))
        swapped = rng.random(fetches) < 0.5
        each.append(percent_more(np.where(swapped, second, first), np.where(swapped, first, second)))
    way = ways(each, above(0, margin=0.5))
    assert (np.abs(way) == 1).mean() <= 0.05
    points = np.array([e.value for e in each])
    assert (
        np.abs(points) > 0.5
    ).mean() > 0.5  # the point estimates, which were counted before, show a difference on most paths
