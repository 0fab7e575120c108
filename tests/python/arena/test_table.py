"""Tests for the published arena table: its page matches its files, and the files are consistent."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ackclock.arena import built_in, load
from ackclock.arena.score import combined

ROOT = Path(__file__).parents[3]
ROWS = json.loads((ROOT / "measured" / "arena.json").read_text("utf-8"))["rows"]


def table(task: str) -> dict[str, Any]:
    return json.loads((ROOT / "measured" / "arena" / f"{task}.json").read_text("utf-8"))  # type: ignore[no-any-return]


def test_the_page_is_what_the_files_say() -> None:
    done = subprocess.run(
        [sys.executable, "tools/arena.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("task", built_in())
def test_rows_are_of_the_digests_beside_them(task: str) -> None:
    """Scores follow from the terms and hashes from the digests; the task is the shipped one."""
    said, asked = table(task), load(task)
    assert said["task"]["digest"] == asked.digest
    rows = {row[2]: row for row in ROWS if row[0] == task}
    for standing in said["standings"]:
        runs = hashlib.sha256(" ".join(row["digest"] for row in standing["rows"]).encode()).hexdigest()[:16]
        row = rows.pop(standing["entry"])
        assert row[-1] == runs
        if standing["why"]:
            continue
        families: dict[str, list[float]] = {}
        for run in standing["rows"]:
            families.setdefault(run["draw"].rpartition("-")[0], []).append(combined(asked, run["terms"]))
        mean = 100 * sum(sum(v) / len(v) for v in families.values()) / len(families)
        assert math.isclose(mean, row[3], abs_tol=0.1)
    assert not rows


@pytest.mark.parametrize("task", built_in())
def test_nobody_who_starves_others_is_ahead_of_one_who_does_not(task: str) -> None:
    ranked = [s for s in table(task)["standings"] if s["rank"] is not None]
    starving = [s["starves"] for s in sorted(ranked, key=lambda s: s["rank"])]
    assert starving == sorted(starving)
    assert not starving[0]


@pytest.mark.parametrize("task", built_in())
def test_at_least_half_of_the_pairs_are_known(task: str) -> None:
    ahead = table(task)["ahead"]
    pairs = [ahead[i][j] for i in range(len(ahead)) for j in range(i + 1, len(ahead))]
    assert 2 * sum(max(p, 1 - p) >= 0.95 for p in pairs) >= len(pairs)


def test_what_is_called_known_holds_with_other_salts() -> None:
    held = json.loads((ROOT / "measured" / "arena-salts.json").read_text("utf-8"))
    assert len(held["rows"]) == 3 * len(built_in())
    for row in held["rows"]:
        told = dict(zip(held["heads"], row, strict=True))
        assert 2 * told["known"] >= told["pairs"]
        assert told["turned"] <= 0.05 * told["known"]
