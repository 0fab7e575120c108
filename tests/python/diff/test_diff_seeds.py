"""Tests for distributions over seeds: reported differences, and the command's refusals."""

from itertools import combinations

import numpy as np
import pytest

from ackclock.cli import main
from ackclock.diff import _seeds
from ackclock.diff._seeds import two_samples
from ackclock.errors import InputError
from ackclock.linux import _cache


def exact(first, second):
    """Return the distance, and its exact probability over all partitions of the values."""
    values, n = [*first, *second], len(first)

    def distance(mine):
        rest = [v for i, v in enumerate(values) if i not in mine]
        chosen = [values[i] for i in mine]
        return max(abs(sum(a <= x for a in chosen) / n - sum(b <= x for b in rest) / len(rest)) for x in values)

    seen = distance(range(n))
    all_of_them = [distance(mine) for mine in combinations(range(len(values)), n)]
    return seen, sum(d >= seen - 1e-12 for d in all_of_them) / len(all_of_them)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]),
        ([1, 2, 3, 4, 5], [1.5, 2.5, 3.5, 4.5, 9]),
        ([1, 1, 1, 2, 2], [1, 2, 2, 2, 2, 3]),
        ([0, 0, 0, 0, 0], [0, 0, 0, 0, 1]),
    ],
)
def test_the_chance_is_that_of_all_divisions_ties_included(first, second):
    distance, chance = two_samples(np.array(first, float), np.array(second, float))
    wanted, share = exact(first, second)
    assert distance == pytest.approx(wanted)
    assert chance == pytest.approx(share, abs=0.015)


def test_equal_samples_are_never_apart():
    assert two_samples(np.full(5, 3.0), np.full(7, 3.0)) == (0.0, 1.0)


def side(rng, shift):
    """Return twenty runs of three flows; the third flow has a different goodput."""
    return [[[g + (shift if i == 2 else 0), 5.0, 40.0] for i, g in enumerate(rng.normal(10, 1, 3))] for _ in range(20)]


def test_a_flow_of_another_distribution_is_found_and_no_other():
    rows = _seeds._rows(side(np.random.default_rng(1), 0), side(np.random.default_rng(2), 3))
    assert {(row.flow, row.quantity) for row in rows if row.differs} == {
        (2, "goodput, Mbit/s"),
        (None, "goodput, Mbit/s"),
    }
    assert len(rows) == 12, "three quantities of three flows and of all"


def test_equal_distributions_are_called_different_in_one_table_of_twenty(monkeypatch):
    """Each table has twelve independent rows."""
    monkeypatch.setattr(_seeds, "SHUFFLES", 1000)  # the smallest probability tested is one in 240
    wrong = 0
    for i in range(40):
        rng = np.random.default_rng(100 + i)
        first, second = rng.normal(10, 1, (2, 20, 3, 3)).tolist()
        wrong += any(row.differs for row in _seeds._rows(first, second))
    assert wrong <= 6  # 5 % of 40 are 2; more than 5 has a probability of 1.4 %


def test_what_a_side_does_not_tell_is_left_out():
    def gone(runs):
        return [[[g, r, float("nan")] for g, r, _ in run] for run in runs]

    rng = np.random.default_rng(1)
    assert {row.quantity for row in _seeds._rows(gone(side(rng, 0)), side(rng, 0))} == {
        "goodput, Mbit/s",
        "retransmissions",
    }


def test_too_few_seeds_are_refused():
    with pytest.raises(InputError, match="seeds: found 4; allowed: 5 or more"):
        _seeds.over_seeds(None, seeds=4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare"], "found no scenario"),
        (["compare", "x.toml"], "found one scenario"),
        (["compare", "x.toml", "y.toml", "--drawn"], "without --kernel"),
        (["compare", "x.toml", "--kernel", "a"], "--kernel: found 1 names"),
        (["compare", "x.toml", "--kernel", "a", "--kernel", "a"], "--kernel: found 1 names"),
        (["compare", "x.toml", "--kernel", "a", "--kernel", "c"], 'found "c"; allowed: a, b'),
        (["compare", "x.toml", "y.toml", "--kernel", "a", "--kernel", "b"], "a second scenario"),
        (["compare", "x.toml", "--drawn", "--kernel", "a", "--kernel", "b"], "a scenario and --drawn"),
        (["compare", "x.toml", "--count", "2", "--kernel", "a", "--kernel", "b"], "--count: found it without --drawn"),
        (["compare", "x.toml", "--network", "x", "--kernel", "a", "--kernel", "b"], "--network"),
        (["diff", "--patterns", "--seeds", "5"], "--seeds: found it without a file"),
        (["evaluate", "reno", "--kernel", "a"], "--kernel: found it without --backend linux"),
        (["study", "run", "iw10", "--kernel", "a"], "--kernel: found it without --backend linux"),
    ],
)
def test_what_does_not_fit_together_is_refused(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("a", "b"):
        _cache.writable()
        _cache.set_name(name, "kernel-x")
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1
