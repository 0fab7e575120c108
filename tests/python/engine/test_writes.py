"""Tests for the workload `writes`: blocks written at given times."""

from __future__ import annotations

import polars as pl
import pytest

import ackclock
from ackclock.cli import main

FLOW = {
    "congestion_control": "cubic",
    "start": "500 ms",
    "workload": {
        "kind": "writes",
        "writes": [{"bytes": "1000 B"}, {"at": "1 s", "bytes": "5000 B"}, {"at": "1 s", "bytes": "2 B"}],
    },
}
SCENARIO = {
    "duration": "5 s",
    "network": {"bottleneck": {"rate": "8 Mbit/s", "delay": "10 ms"}},
    "flows": [FLOW],
    "record": {"trace": "flow"},
}


def test_each_block_leaves_at_its_time_and_the_last_ends_the_flow():
    run = ackclock.run(ackclock.Scenario.from_dict(SCENARIO))
    (row,) = run.rows("flows")
    assert row["bytes_acked"] == 6002
    assert row["completion_s"] == pytest.approx(1.0253, abs=1e-3)
    sent = run.acks.filter(pl.col("event") == "send")["t_s"].to_list()
    assert sent[0] == pytest.approx(0.52, abs=1e-3)
    assert min(sent[1:]) == pytest.approx(1.5, abs=1e-9)


def test_times_that_fall_are_refused(tmp_path, capsys):
    file = tmp_path / "x.toml"
    falling = 'writes = [{ at = "2 s", bytes = "1 B" }, { at = "1 s", bytes = "1 B" }]'
    file.write_text(
        'duration = "1 s"\n[network]\nbottleneck = { rate = "1 Mbit/s", delay = "1 ms" }\n[[flows]]\n'
        f'workload = {{ kind = "writes", {falling} }}\n',
        encoding="utf-8",
    )
    assert main(["run", str(file)]) == 2
    told = capsys.readouterr().err
    assert "times that do not fall" in told
