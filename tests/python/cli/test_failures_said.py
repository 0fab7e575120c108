"""Tests that a failed connection is reported wherever a run's numbers are shown, and that `--set` can supply keys that a file lacks."""

from __future__ import annotations

import json
from pathlib import Path

from ackclock._results.summary import failures
from ackclock.cli import main

GAPS = Path(__file__).parents[2] / "reports" / "gaps-after-overshoot.toml"


def ran(*arguments: object) -> int:
    return main([str(one) for one in arguments])


def test_run_and_report_say_that_a_connection_failed(capsys, tmp_path):
    page = tmp_path / "page.html"
    assert ran("run", GAPS, "--report", page) == 0
    said = capsys.readouterr().out
    assert "the connection failed: too many gaps" in said
    assert "The connection failed: too many gaps." in page.read_text()


def test_compare_says_in_how_many_runs_a_connection_failed(capsys, tmp_path):
    other = tmp_path / "fair.toml"
    other.write_text(GAPS.read_text().replace("quinn:cubic", "cubic").split("congestion_control_options")[0])
    assert ran("compare", GAPS, other, "--seeds", 2, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["failed_runs"] == {"first": {"the connection failed: too many gaps": 2}, "second": {}}


def test_many_failures_are_counted():
    rows = [{"failed": k % 2 == 0, "failure": "idle timeout"} for k in range(20)]
    assert failures(rows, ["flow"] * 20) == ["10 of 20 flows failed: 10 × the connection failed: idle timeout"]
    assert failures(rows[:2], ["flow 0 a", "flow 1 b"]) == ["flow 0 a: the connection failed: idle timeout"]


def test_set_supplies_a_required_key(capsys, tmp_path):
    file = tmp_path / "bare.toml"
    lines = ["duration = '1 s'", "network.bottleneck = { delay = '5 ms' }", "flows = [{ congestion_control = 'reno' }]"]
    file.write_text("\n".join(lines))
    assert ran("run", file) == 2
    assert "network.bottleneck.rate: found nothing" in capsys.readouterr().err
    assert ran("run", file, "--set", "network.bottleneck.rate=5 Mbit/s") == 0
    assert ran("run", file, "--set", "network.bottleneck.rat=5 Mbit/s") == 2
    assert '--set: network.bottleneck.rat: found an unknown key, did you mean "rate"?' in capsys.readouterr().err
