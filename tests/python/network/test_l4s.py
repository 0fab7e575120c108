"""Tests for L4S: Prague and classic flows through DualPI2, accurate ECN with other controllers, and behaviour without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ackclock

SCENARIO = Path(__file__).resolve().parents[3] / "scenarios" / "l4s.toml"


def run(
    rate_mbps: int,
    rtt_ms: int,
    *groups: dict[str, Any],
    queue: dict[str, Any] | None = None,
    duration: int = 60,
    warm_up: int = 25,
) -> list[pl.DataFrame]:
    """Return the flows' results, one frame per group."""
    values = ackclock.load(SCENARIO).to_dict()
    values["duration"] = f"{duration} s"
    values["record"] = {"warm_up": f"{warm_up} s", "performance": True}
    bottleneck = values["network"]["bottleneck"]
    bottleneck |= {"rate": f"{rate_mbps} Mbit/s", "delay": f"{rtt_ms / 2} ms"}
    bottleneck["queue"] |= queue or {}
    values["flows"] = [{"name": f"g{n}", "stagger": "100 ms", **group} for n, group in enumerate(groups)]
    got = ackclock.run(ackclock.Scenario.from_dict(values)).performance.filter(pl.col("of") == "flow")
    counts = [group.get("count", 1) for group in groups]
    return [got[sum(counts[:n]) : sum(counts[: n + 1])] for n in range(len(counts))]


def mean(frame: pl.DataFrame, column: str) -> float:
    """Return the mean of a column."""
    return float(frame[column].mean())  # type: ignore[arg-type]


PRAGUE = {"congestion_control": "prague"}
CUBIC: dict[str, Any] = {}


@pytest.mark.parametrize("rtt_ms", [5, 10, 25, 50])
@pytest.mark.parametrize(("rate_mbps", "step_from"), [(12, 2), (40, 0), (120, 0)])
def test_prague_and_cubic_share_within_a_factor_of_two(rate_mbps: int, rtt_ms: int, step_from: int) -> None:
    # RFC 9332 §2.1 aims at roughly equal rates. At 12 Mbit/s, one packet takes as long as the 1 ms step. The RFC
    # marks nothing while the L queue contains one packet; Linux does so only if configured.
    prague, cubic = run(rate_mbps, rtt_ms, PRAGUE, CUBIC, queue={"step_from": step_from})
    ratio = mean(prague, "goodput_bps") / mean(cubic, "goodput_bps")
    assert 0.5 <= ratio <= 2.0, ratio
    assert prague["retransmissions"].sum() == 0
    assert mean(prague, "mean_rtt_s") < mean(cubic, "mean_rtt_s") - 0.008


def test_a_step_below_a_packets_time_marks_beyond_the_coupling() -> None:
    prague, cubic = run(12, 10, PRAGUE, CUBIC)
    assert mean(prague, "goodput_bps") < 0.5 * mean(cubic, "goodput_bps")


@pytest.mark.parametrize(("scalable", "classic"), [(1, 1), (2, 1), (1, 2), (3, 3), (1, 5), (5, 1)])
def test_a_flows_share_does_not_depend_on_their_numbers(scalable: int, classic: int) -> None:
    # windows of 1.22 / p' (Reno) over 25 ms, and of 1 / p' (Prague) over a virtual round trip of 25 ms: 0.82
    prague, reno = run(40, 10, PRAGUE | {"count": scalable}, {"congestion_control": "reno", "count": classic})
    ratio = mean(prague, "goodput_bps") / mean(reno, "goodput_bps")
    assert 0.7 <= ratio <= 1.3, ratio


def test_short_paths_have_no_advantage() -> None:
    of_its_rtt = PRAGUE | {"congestion_control_options": {"virtual_rtt_s": 0.0}}
    ratios = []
    for group in (PRAGUE, of_its_rtt):
        prague, cubic = run(40, 10, group, CUBIC)
        ratios.append(mean(prague, "goodput_bps") / mean(cubic, "goodput_bps"))
    # (25 ms / 11 ms) is the disadvantage removed by the virtual RTT
    assert ratios[1] / ratios[0] == pytest.approx(25 / 11, rel=0.15)


def test_prague_without_accurate_ecn_is_reno() -> None:
    (prague,) = run(40, 10, PRAGUE | {"stack": {"ecn": "off"}}, duration=20, warm_up=5)
    (refused,) = run(40, 10, PRAGUE | {"stack": {"ecn": "ask"}}, duration=20, warm_up=5)
    (reno,) = run(40, 10, {"congestion_control": "reno"}, duration=20, warm_up=5)
    assert prague["goodput_bps"].to_list() == refused["goodput_bps"].to_list(), "no ECN of RFC 3168 for it"
    assert mean(prague, "goodput_bps") == pytest.approx(mean(reno, "goodput_bps"), rel=0.01)
    assert mean(prague, "mean_rtt_s") == pytest.approx(mean(reno, "mean_rtt_s"), rel=0.05)


def test_dctcp_hears_as_much_by_the_counter_as_by_exact_echo() -> None:
    threshold = {"kind": "threshold", "mark": "20 packets", "limit": "200 packets"}
    got = []
    for ecn in ("ask", "accecn"):
        values = ackclock.load(SCENARIO).to_dict() | {"duration": "20 s"}
        values["network"]["bottleneck"] |= {"queue": threshold}
        values["record"] = {"warm_up": "5 s", "performance": True}
        stack = {"ecn": ecn, "accecn_option": 0}
        values["flows"] = [{"congestion_control": "dctcp", "count": 2, "stack": stack}]
        got.append(ackclock.run(ackclock.Scenario.from_dict(values)).performance.filter(pl.col("of") == "flow"))
    for column, rel in (("goodput_bps", 0.01), ("mean_rtt_s", 0.05)):
        assert mean(got[1], column) == pytest.approx(mean(got[0], column), rel=rel), column


@pytest.mark.parametrize(
    "group",
    [
        {"congestion_control": "dctcp"},
        {"congestion_control": "bbr3", "congestion_control_options": {"flavour": "linux-v3", "ecn": True}},
        {"congestion_control": "cubic"},
    ],
    ids=lambda group: group["congestion_control"],
)
def test_marked_ect1_other_controllers_wait_little(group: dict[str, Any]) -> None:
    marked = group | {"stack": {"ecn": "accecn", "ect1": True}}
    (low,) = run(100, 4, marked, duration=20, warm_up=5)
    assert mean(low, "mean_rtt_s") < 0.0055, "4 ms of the path, and little more than the step of 1 ms"
    assert low["retransmissions"].sum() == 0
    assert mean(low, "goodput_bps") > 60e6


def test_the_option_costs_twelve_bytes_a_segment() -> None:
    with_it, without = (
        run(100, 10, {"stack": {"ecn": "accecn", "accecn_option": n}}, duration=10, warm_up=2)[0] for n in (2, 0)
    )
    # 1448 of a frame's 1514 bytes are payload, or 1436
    assert mean(with_it, "goodput_bps") / mean(without, "goodput_bps") == pytest.approx(1436 / 1448, rel=1e-3)
