"""Tests for a cell's measures on handmade tables."""

from __future__ import annotations

import math

import polars as pl

from ackclock.evaluate import measure, rows
from ackclock.evaluate.situation import Tables


def test_a_flow_without_a_measurement_is_no_zero() -> None:
    """A sum over flows is missing if any flow has no value; counting that flow as zero would pass as "no worse"."""
    flows = pl.DataFrame({"seed": [1, 1, 2, 2, 3, 3], "dsacks": [4, 5, 4, None, None, None]})
    tables = Tables({"flows": flows}, dict.fromkeys((1, 2, 3, 4), ""))
    cell = rows()[0].cells[0]
    counted = measure.of_flows("dsacks")(tables, cell)
    assert counted.pop(1) == 9
    assert sorted(counted) == [2, 3, 4]
    assert all(math.isnan(v) for v in counted.values())


def test_a_transfer_that_is_not_done_counts_with_the_time_for_which_all_are_followed() -> None:
    rows_of: dict[int, list[tuple[float, float | None]]] = {
        1: [(0.0, 1.0), (0.0, 2.0), (0.0, 3.0), (60.0, None), (60.5, 1.0)],  # the last one arrived too late
        2: [(0.0, 1.0), (0.0, 30.0), (59.0, None)],  # finished, but not within the time
        3: [(65.0, 1.0)],
    }
    made = [
        {"seed": seed, "arrival_s": at, "bytes": 200_000, "total_s": took, "done": took is not None}
        for seed, some in rows_of.items()
        for at, took in some
    ]
    tables = Tables({"transactions": pl.DataFrame(made)}, dict.fromkeys(rows_of, ""))
    cell = next(row for row in rows() if row.id == "5").cells[0]
    assert cell.scenario["duration"] == f"{cell.about['seconds']} s" == "70 s"
    above = {"followed_s": 10.0, "least_bytes": 150_000}
    median, left = measure.completion(0.5, **above)(tables, cell), measure.unfinished(**above)(tables, cell)
    mean = measure.mean_time(**above)(tables, cell)
    assert (median[1], median[2]) == (2.5, 10.0)
    assert (mean[1], mean[2]) == (4.0, 7.0)
    assert math.isnan(mean[3])
    assert (left[1], left[2]) == (0.25, 2 / 3)
    assert math.isnan(median[3])
    assert math.isnan(left[3])
    none = measure.completion(0.5, followed_s=10.0, most_bytes=150_000)(tables, cell)
    assert all(math.isnan(v) for v in none.values())
    assert measure.unanswered(10)(tables, cell) == {1: 0.6, 2: 0.8, 3: 0.9}
