"""What was meant stands within the first 100 characters of a message."""

from __future__ import annotations

import pytest

from ackclock.cli import main

RATE, LOSS, FLOW = "network.bottleneck.rate", "network.bottleneck.loss", "flows.0"


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (f"{RATE}=10 MB/s", '"80 Mbit/s"'),
        (f"{RATE}=10Mbps", '"10 Mbit/s"'),
        (f"{LOSS}=1%", '{ kind = "bernoulli", p = "1 %" }'),
        (f"{LOSS}=0.01", '{ kind = "bernoulli", p = 0.01 }'),
        (f"{FLOW}.workload=transfer", '{ kind = "transfer", bytes = "10 MB" }'),
        (f"{FLOW}.congestion_control=BBR", "nearest: bbr"),
        (f"{FLOW}.cc=bbr", '"flows.0.congestion_control"'),
        ("congestion_control=bbr", '"flows.0.congestion_control"'),
        ("network.rate=10 Mbit/s", '"network.bottleneck.rate"'),
        ("bottleneck.rate=10 Mbit/s", '"network.bottleneck"'),
        ("network.bottleneck.delay=-20 ms", "negative"),
        ("network.bottleneck.queue.limit=100 pkts", '"100 packets"'),
    ],
)
def test_a_mistyped_value_is_answered_at_once(change: str, answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "first", "--set", change]) == 2
    assert answer in capsys.readouterr().err[:110]


@pytest.mark.parametrize(
    ("words", "answer"),
    [(["run", "frist"], "nearest: first"), (["rnu"], "nearest: run"), (["run", "first", "--trace"], "none, flow, all")],
)
def test_a_mistyped_command_is_answered_at_once(
    words: list[str], answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert answer in capsys.readouterr().err[:100]


@pytest.mark.parametrize("words", [["help"], ["help", "run"], ["version"], ["-V"]])
def test_habits_of_other_tools_are_taken(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out


def test_a_built_in_controller_is_chosen_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", "first", "--set", "duration=1 s", "--json"]
    assert main([*asked, "--controller", "bbr"]) == 0
    chosen = capsys.readouterr().out
    assert main([*asked, "--set", "flows.0.congestion_control=bbr"]) == 0
    assert capsys.readouterr().out == chosen
    assert main([*asked, "--controller", "bbrr"]) == 2
    assert "nearest: bbr" in capsys.readouterr().err[:100]
