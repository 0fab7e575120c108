"""Tests for the message that a buffer holds only a few of a modern host's bursts, on both sides of its threshold."""

import pytest

from ackclock import Scenario, run
from ackclock.cli import main
from ackclock.scenario._bursts import ENOUGH, burst_bytes, hangs_on_bursts


def scenario(mbps=200, room="100 kB", seconds=10, hosts=None, queue="drop-tail", **flow):
    told = {
        "duration": f"{seconds} s",
        "network": {
            "bottleneck": {"rate": f"{mbps} Mbit/s", "delay": "10 ms", "queue": {"kind": queue, "limit": room}}
        },
        "flows": [{"congestion_control": "cubic", **flow}],
    }
    return Scenario.from_dict(told if hosts is None else {**told, "hosts": hosts})


@pytest.mark.parametrize("mbps", [50, 200, 500, 1000])
def test_the_bound_is_four_bursts(mbps):
    burst = burst_bytes(mbps * 1e6)
    assert burst == min(65_536, mbps * 1e6 / 8 / 1024)
    below, above = int(ENOUGH * burst) - 1, int(ENOUGH * burst) + 1
    said = hangs_on_bursts(scenario(mbps, f"{below} bytes"))
    assert said is not None
    assert "--set hosts=modern" in said
    assert "\n" not in said
    assert hangs_on_bursts(scenario(mbps, f"{above} bytes")) is None
    assert hangs_on_bursts(scenario(mbps, f"{below // 1514} packets")) is not None
    assert hangs_on_bursts(scenario(mbps, f"{above // 1514 + 1} packets")) is None


def test_at_a_rate_at_which_a_packet_has_two_segments_at_most_nothing_is_said():
    # 2 * 1514 bytes in 1/1024 s are 24.8 Mbit/s
    assert hangs_on_bursts(scenario(24, "6000 bytes")) is None
    assert hangs_on_bursts(scenario(26, "6000 bytes")) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"hosts": "modern"},
        {"stack": {"tso": True}},
        {"stack": {"tso": False}},
        {"profile": "rfc"},
        {"congestion_control": "pcc-allegro"},
        {"queue": "codel", "room": "10 packets"},
    ],
)
def test_who_chose_a_model_of_the_host_or_has_none_is_told_nothing(changes):
    assert hangs_on_bursts(scenario(**{"room": "20 kB", **changes})) is None


@pytest.mark.parametrize(("bursts", "least", "most"), [(1, 0.05, 1), (2, 0.02, 1), (8, 0, 0.01)])
def test_the_answer_hangs_on_the_host_below_the_bound_and_not_far_above(bursts, least, most):
    room = f"{round(bursts * burst_bytes(200e6))} bytes"
    plain, modern = (run(scenario(room=room, seconds=20, hosts=hosts)) for hosts in (None, "modern"))
    off = abs(modern.flows["goodput_bps"][0] / plain.flows["goodput_bps"][0] - 1)
    assert least <= off <= most


def test_run_says_it_in_one_line(tmp_path, capsys):
    file = tmp_path / "x.toml"
    file.write_text(scenario(room="50 kB", seconds=1).to_toml(), encoding="utf-8")
    assert main(["run", str(file)]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "bursts" in line]
    assert "hangs on it" in line
    assert main(["run", str(file), "--set", "hosts=modern"]) == 0
    assert "bursts" not in capsys.readouterr().err
