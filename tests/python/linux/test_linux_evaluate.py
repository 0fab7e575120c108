"""Tests for an evaluation on the real kernel."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ackclock import linux
from ackclock.errors import InputError, UnavailableError
from ackclock.evaluate import Arm, Plan, evaluate
from ackclock.evaluate.files import to_json
from ackclock.sweep import Status, Threads


def plan(controller: str, *rows: str) -> Plan:
    candidate = Arm(role="candidate", name=controller, controller=controller)
    return Plan(candidate=candidate, scale="quick", only=rows, seeds=(2, 2), backend="linux")


@pytest.mark.deep
def test_a_module_of_the_kernel_is_held_against_cubic_there(kernel: linux.Kernel, tmp_path: Path) -> None:
    executor = Threads(2)
    try:
        found = evaluate(plan("kernel:lp", "2", "20"), tmp_path, executor)
    finally:
        executor.close()
    standing, cheats = found.rows
    assert standing.cells, standing.reason
    delay = {
        arm: sum(values.numbers.values())
        for (row, _, measure, arm), values in found.numbers.items()
        if row == "2" and measure == "median queue delay"
    }
    assert delay["candidate"] < delay["cubic"], "LP backs off as soon as a queue builds up"
    assert cheats.verdict == "not tested"
    assert "flows.1.stack.ack_splits = 5 in the kernel" in cheats.reason
    assert to_json(found)["engine"]["backend"] == "linux"


@pytest.mark.deep
def test_stopped_and_continued_makes_only_what_is_missing(kernel: linux.Kernel, tmp_path: Path) -> None:
    """The store keeps runs of the kernel and of the simulator; the continued evaluation gives the same numbers."""
    stop = threading.Event()
    before: list[Status] = []
    after: list[Status] = []

    def first(status: Status) -> None:
        before.append(status)
        if status.done:
            stop.set()

    executor = Threads(1)
    try:
        with pytest.raises(UnavailableError, match=r"stopped after \d of 4 runs; the same command goes on"):
            evaluate(plan("kernel:lp", "2"), tmp_path / "parts", executor, progress=first, stop=stop)
        parts = evaluate(plan("kernel:lp", "2"), tmp_path / "parts", executor, progress=after.append)
        again = evaluate(plan("kernel:lp", "2"), tmp_path / "parts", executor, progress=after.append)
        whole = evaluate(plan("kernel:lp", "2"), tmp_path / "whole", executor)
    finally:
        executor.close()
    assert 0 < before[-1].done < 4
    assert after[0].found == before[-1].done
    assert after[-1].found == 4
    assert to_json(parts) == to_json(whole) == to_json(again)
    assert not (tmp_path / "parts" / "store").exists()


def test_what_the_kernel_cannot_carry_out_is_not_tested_and_says_why(kernel: linux.Kernel) -> None:
    rows = {row.id: row for row in plan("kernel:lp").rows}
    left_out = {key: row.needs for key, row in rows.items() if any("in the kernel" in n for n in row.needs)}
    assert left_out["x2"][-1] == 'flows.0.workload.kind = "bursts" in the kernel'
    assert all(row.at("quick") for key, row in rows.items() if key in ("1", "2", "4", "6", "8", "12"))


def test_only_what_is_built_into_the_kernel_is_evaluated_there(kernel: linux.Kernel) -> None:
    from ackclock.cli._evaluate import in_kernel

    assert in_kernel("kernel:lp", {}, "CONTROLLER") == "kernel:lp"
    with pytest.raises(InputError, match=r'CONTROLLER: found "kernel:lpp"; did you mean "kernel:lp"\?'):
        in_kernel("kernel:lpp", {}, "CONTROLLER")
    with pytest.raises(InputError, match="--option: found"):
        in_kernel("kernel:lp", {"a": 1}, "CONTROLLER")
