"""Tests for files named in a sweep: traces on its axes."""

from __future__ import annotations

from ackclock import run
from ackclock.sweep import load


def test_files_of_an_axis_are_seen_from_the_sweep(tmp_path, monkeypatch):
    for name, gap in (("slow.trace", 4), ("fast.trace", 1)):
        (tmp_path / name).write_text(f"{gap}\n", encoding="utf-8")
    path = tmp_path / "grid.toml"
    (tmp_path / "base.toml").write_text(
        """
        duration = "1 s"
        [network]
        bottleneck = { delay = "10 ms", capacity = { kind = "mahimahi", file = "slow.trace" } }
        [[flows]]
        """,
        encoding="utf-8",
    )
    path.write_text(
        """
        scenario = "base.toml"
        [axes]
        "network.bottleneck.capacity.file" = ["slow.trace", "fast.trace"]
        """,
        encoding="utf-8",
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    slow, fast = load(path).cells
    assert list(slow.keys.values()) == ["slow.trace"]
    assert run(fast.scenario).flows["bytes_acked"][0] > 2 * run(slow.scenario).flows["bytes_acked"][0]
    tables = '[{ kind = "mahimahi", file = "slow.trace" }, { kind = "mahimahi", file = "fast.trace" }]'
    path.write_text(f'scenario = "base.toml"\n[axes]\n"network.bottleneck.capacity" = {tables}\n', encoding="utf-8")
    assert run(load(path).cells[1].scenario).digest == run(fast.scenario).digest
