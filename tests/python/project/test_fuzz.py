"""Runs the fuzz targets of `tests/fuzz` on inputs drawn from a seed; `make fuzz` searches further, with Atheris."""

from __future__ import annotations

import importlib
import random
import sys
from types import ModuleType

import pytest
from conftest import ROOT

CORPUS = ROOT / "tests" / "fuzz" / "corpus"
COUNTS = {
    "scenario": (1500, 50),
    "mahimahi": (500, 0),
    "blocks": (2000, 10),
    "store": (1000, 50),
    "measured": (1000, 50),
    "run": (150, 5),
}
"""Target -> number of inputs, and minimum number accepted: a target that refuses everything finds nothing."""


def _target(name: str) -> ModuleType:
    folder = str(ROOT / "tests" / "fuzz")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.iterdir() if path.name in COUNTS))
def test_findings_stay_mended(name: str) -> None:
    """The inputs are the findings of earlier fuzzing."""
    for file in sorted((CORPUS / name).iterdir()):
        _target(name).play(file.read_bytes())


@pytest.mark.promise("P5", "P7")
@pytest.mark.parametrize("name", COUNTS)
def test_any_bytes(name: str) -> None:
    """Refused with one line, or accepted."""
    target = _target(name)
    draw = random.Random(name)
    inputs, least = COUNTS[name]
    taken = sum(target.play(draw.randbytes(draw.randint(1, 60))) for _ in range(inputs))
    assert least <= taken < inputs


def test_lines_of_a_trace() -> None:
    """Random bytes are hardly ever a valid trace; here each line is valid."""
    target = _target("mahimahi")
    draw = random.Random(1)
    taken = 0
    for _ in range(300):
        lines = sorted(draw.choices(range(50), k=draw.randint(1, 9)))
        text = "\n".join(map(str, lines)) + draw.choice(["", "\n", "\r\n", "\n\n", "x"])
        taken += target.play(text.encode())
    assert 100 < taken < 300


def test_stores_on_disk() -> None:
    """Stores with altered files, repaired and then compacted."""
    target = _target("store")
    draw = random.Random(2)
    taken = sum(target.play(b"\xff" + draw.randbytes(draw.randint(1, 60))) for _ in range(60))
    assert 8 <= taken < 60
