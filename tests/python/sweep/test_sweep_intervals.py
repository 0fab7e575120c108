"""Tests for the bounds of intervals: no share below 0 or above 1, no rate, time or count below 0."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_sweep_figures import RATES, grid, results

from ackclock.sweep import figures, page


def test_intervals_of_shares_end_where_shares_do():
    found = results(grid(RATES), lambda cell, seed: 9.6e6 if seed == 1 else 1e3)
    lines = figures.figures(found, kinds=["lines"])[0].data["lines"]
    assert min(lines["low"]) >= 0
    assert figures.figures(found, kinds=["lines"], normalise=False)[0].data["lines"]["low"].min() == 0


def test_intervals_of_rates_end_at_zero_in_table_figure_and_data():
    """Goodputs of 1, 1 and 22 have a mean of 8, and Student's interval around it would begin below 0."""
    sweep = replace(grid(RATES), seeds=(1, 2, 3))
    found = results(sweep, lambda cell, seed: (1e6, 1e6, 22e6)[seed - 1])
    assert set(found.cells("goodput_bps")["low"]) == {0.0}
    (drawn,) = figures.figures(found, kinds=["lines"], normalise=False)
    assert set(drawn.data["lines"]["low"]) == {0.0}
    told = [[str(cell) for cell in row] for row in page._cells(found, "goodput_bps").blocks[0].rows]
    assert all(row[-1].startswith("0 to ") for row in told), told


@pytest.mark.parametrize("metric", ["rtos", "retransmissions", "recoveries", "dropped_queue"])
def test_intervals_of_counts_end_at_zero(metric):
    """Counts of 0, 0 and 9 have a mean of 3, and Student's interval around it would begin below 0."""
    sweep = replace(grid(RATES), seeds=(1, 2, 3))
    found = results(sweep, lambda cell, seed: (0.0, 0.0, 9.0)[seed - 1])
    found = replace(found, runs=found.runs.rename({"goodput_bps": metric}))
    assert set(found.cells(metric)["low"]) == {0.0}
    (drawn,) = figures.figures(found, metric=metric, kinds=["lines"])
    assert set(drawn.data["lines"]["low"]) == {0.0}
    told = [[str(cell) for cell in row] for row in page._cells(found, metric).blocks[0].rows]
    assert all(row[-1].startswith("0 to ") for row in told), told
