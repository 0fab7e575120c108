"""Test that compares iperf3 in `ackclock live` with a flow of our own in its place (`tools/live_iperf3.py`)."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from ackclock import linux
from ackclock.errors import UnavailableError

TOOLS = Path(__file__).parents[3] / "tools"


def built() -> bool:
    try:
        linux.installed()
        from ackclock.linux import _cache

        _cache.guest_path()
    except UnavailableError:
        return False
    return True


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    spec = importlib.util.spec_from_file_location("live_iperf3", TOOLS / "live_iperf3.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "live_iperf3", module)
    spec.loader.exec_module(module)
    return module


def test_welchs_interval_is_that_of_a_textbook(tool):
    """Differences and half widths as returned by scipy's `ttest_ind(equal_var=False).confidence_interval()`."""
    from scipy.stats import ttest_ind

    some, others = [1.0, 2.0, 4.0, 8.0], [2.0, 2.5, 3.0, 3.5]
    apart, half = tool.difference(some, others)
    low, high = ttest_ind(some, others, equal_var=False).confidence_interval()
    assert apart == pytest.approx((low + high) / 2)
    assert half == pytest.approx((high - low) / 2)


def test_the_draw_stays_within_its_bounds(tool):
    for one in (tool.drawn(seed, number) for seed in range(20) for number in range(20)):
        assert 1 <= one.rate <= 100
        assert 2 <= one.rtt <= 200
        assert one.queue >= 4
        assert 20 * one.rtt / 1e3 <= one.seconds <= 7
        assert len(one.seeds) == (50 if one.kind == "random" or (one.kind, one.controller) == ("queue", "bbr") else 1)


@pytest.mark.deep
@pytest.mark.skipif(not built(), reason="the kernel or the guest program is not built")
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
@pytest.mark.parametrize("number", [3, 9])
def test_iperf3_sends_the_packets_of_our_flow(tool, tmp_path, number):
    one = tool.drawn(64, number)
    (theirs,), (ours,) = tool.both(one, tmp_path)
    assert theirs.retransmissions > 0
    assert theirs.data == ours.data
