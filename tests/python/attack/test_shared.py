"""Tests that searches over the same environments share their reference runs."""

from __future__ import annotations

from ackclock import attack
from ackclock.attack.runs import Others
from ackclock.sweep import Threads


def found(target: str, others: Others | None) -> attack.Found:
    wanted = attack.Attack(
        target=target, budget=attack.load("steps"), objective="utilisation", search="random", evaluations=3
    )
    threads = Threads(1)
    try:
        return attack.run(wanted, threads, simplify=False, others=others)
    finally:
        threads.close()


def test_references_run_once_and_nothing_else_differs() -> None:
    shared: Others = {}
    for target in ("vegas", "reno", "htcp"):
        alone, together = found(target, None), found(target, shared)
        assert together.runs.known == alone.runs.known, "scores, values and digests of every arm"
        assert alone.runs.ran == 3 * len(alone.attack.arms)
        if target != "vegas":
            assert together.runs.ran == 3
    assert len(shared) == 3 * 3
