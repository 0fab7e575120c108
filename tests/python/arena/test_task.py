"""Tests for declarative tasks: random draws and rejected input."""

from __future__ import annotations

from pathlib import Path

import pytest

from ackclock.arena import built_in, drawn, load, read
from ackclock.arena.score import combined
from ackclock.arena.task import FLOOR
from ackclock.errors import InputError

SMALL = (Path(__file__).parent / "small.toml").read_text("utf-8")


def test_the_tasks_that_come_with_us_make_scenarios() -> None:
    assert built_in() == ["internet", "latency", "satellite"]
    for name in built_in():
        task = load(name)
        for draw in drawn(task, "a", 2):
            assert not draw.keys or draw.scenario("reno", {}).flow_count >= 1


def test_draws_hang_on_the_salt_and_on_nothing_else() -> None:
    task = read(SMALL, "small")
    first, longer, other = drawn(task, "a", 2), drawn(task, "a", 4), drawn(task, "b", 2)
    assert [d.keys for d in first] == [d.keys for d in longer if d.number <= 2]
    assert [d.seed for d in first] == [d.seed for d in longer if d.number <= 2]
    assert all(a.seed != b.seed for a, b in zip(first, other, strict=True))
    assert len({d.rate_bps for d in longer if d.keys}) == 8


def test_a_family_may_be_drawn_more_often() -> None:
    task = read(
        SMALL.replace('counts = ["throughput", "others"]', 'counts = ["throughput", "others"]\ntimes = 3'), "small"
    )
    assert [d.id for d in drawn(task, "a", 2)] == [
        *("alone-1", "alone-2"),
        *(f"beside-{i}" for i in range(1, 7)),
        *("adversary-1", "adversary-2"),
    ]


def test_what_is_drawn_lies_in_its_range_and_is_exact_in_a_file() -> None:
    for draw in drawn(read(SMALL, "small"), "a", 30):
        if draw.keys:
            assert 2e6 <= draw.rate_bps <= 8e6
            assert 0.01 <= draw.delay_s <= 0.04
            assert len(draw.keys["network"]["bottleneck"]["rate"].split()[0]) <= 5


def test_a_reference_is_what_was_drawn_there() -> None:
    changing = next(d for d in drawn(load("internet"), "a", 1) if d.family.id == "changing")
    link = changing.keys["network"]["bottleneck"]
    assert link["capacity"]["steps"][1]["rate"] == link["rate"]


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ('counts = ["throughput", "delay", "loss"]', 'counts = ["speedd"]', "counts"),
        ("throughput = 2", "troughput = 2", 'did you mean "throughput"'),
        ("starves = 0.5", "starves = 2", "allowed: a number, 0 to 1"),
        ("full = 5", "full = 0", "draws.full"),
        ('delay = "50 ms"', 'delay = "50 m"', "score.delay"),
        ('congestion_control = "@"', 'congestion_control = "reno"', "found no flow of the entry"),
        ('duration = "3 s"', 'duratoin = "3 s"', "family alone"),
        ('budget = "steps"', 'budget = "steppes"', "steppes"),
        ('{ from = "2 Mbit/s", to = "8 Mbit/s" }', '{ from = "fast", to = "8 Mbit/s" }', "family alone"),
        ('id = "beside"', 'id = "alone"', "found an id twice"),
        ('counts = ["throughput", "others"]', 'counts = ["throughput", "others"]\ntimes = 0', "times: found 0"),
        ("[draws]", "[draws", "task small"),
        ('attack = {', 'scenario = {}\nattack = {', "found both"),
    ],
)  # fmt: skip
def test_what_is_no_task_is_refused_in_a_line(was: str, now: str, said: str) -> None:
    assert was in SMALL
    with pytest.raises(InputError) as caught:
        read(SMALL.replace(was, now), "small")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nobody_makes_up_for_what_he_gives_up() -> None:
    """Expected value computed by hand: (throughput^2 * delay)^(1/3), with the floor for a term near zero."""
    task = read(SMALL, "small")
    assert combined(task, {"throughput": 0.5, "delay": 0.8}) == pytest.approx((0.5**2 * 0.8) ** (1 / 3))
    assert combined(task, {"throughput": 0.0, "delay": 1.0}) == pytest.approx(FLOOR ** (2 / 3))
