"""Tests for DualPI2 in a run: RFC 9332's guarantees for two kinds of congestion control sharing a link."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import ackclock

SCENARIO = Path(__file__).resolve().parents[3] / "scenarios" / "dualpi2.toml"


def run(rate_mbps: int, delay_ms: int, **queue: object) -> pl.DataFrame:
    """Return the four rows of two DCTCP and two Reno flows."""
    values = ackclock.load(SCENARIO).to_dict() | {
        "duration": "100 s",
        "record": {"warm_up": "20 s", "performance": True},
    }
    bottleneck = values["network"]["bottleneck"]
    bottleneck |= {"rate": f"{rate_mbps} Mbit/s", "delay": f"{delay_ms} ms"}
    bottleneck["queue"] |= queue
    values["flows"][1]["congestion_control"] = "reno"
    return ackclock.run(ackclock.Scenario.from_dict(values)).performance.filter(pl.col("of") == "flow")


@pytest.mark.parametrize(("rate_mbps", "delay_ms"), [(50, 5), (50, 10), (100, 5)])
def test_the_coupling_law(rate_mbps: int, delay_ms: int) -> None:
    # C has a marking probability of p'^2, L of 2 p': windows of 1.22 / p' (Reno) and 1 / p' (DCTCP), so the ratio of
    # the rates follows from the RTTs and 1 to 1.22. At lower rates the 1 ms step is less than two packets: it marks
    # more than the coupling does, and DCTCP gets less.
    got = run(rate_mbps, delay_ms)
    scalable, classic = got[:2], got[2:]
    rtts, rates = ([float(group[of].sum()) for group in (scalable, classic)] for of in ("mean_rtt_s", "goodput_bps"))
    assert rates[0] / rates[1] == pytest.approx(rtts[1] / rtts[0] / 1.22, rel=0.25)


def test_each_queue_has_its_own_delay() -> None:
    got = run(100, 5)
    assert got["p95_rtt_s"][:2].max() < 0.0125, "10 ms of the path, and little more than the step of 1 ms"  # type: ignore[operator]
    assert got["mean_rtt_s"][2:].to_list() == pytest.approx([0.025, 0.025], rel=0.1), "15 ms in C"
    assert got["retransmissions"][:2].sum() == 0, "L is marked, not dropped"


def test_coupling_is_what_shares_the_link() -> None:
    strong, weak = (run(100, 5, coupling=k)["goodput_bps"][:2].sum() for k in (4, 1))
    assert strong < weak
