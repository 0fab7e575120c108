"""Draws README.md's picture with a gallery script, and the pictures of study `slow-start`; `--check` reports whether
the pictures, and the numbers beside README.md's, are up to date.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt  # after the backend has been selected
import numpy as np

from ackclock import studies
from ackclock.plot import Figure

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
SCRIPT = ROOT / "examples" / "04_time_sequence.py"
PICTURE = ROOT / "docs" / "images" / "recovery.png"
STUDY = "slow-start"
DPI = 150
NEAR = 2
"""Allowed difference per pixel, in levels of 255, because another processor may round differently."""


def main() -> int:
    check = "--check" in sys.argv[1:]
    drawn, printed = draw(SCRIPT)
    problems = []
    if not check:
        PICTURE.write_bytes(drawn)
    elif not PICTURE.exists() or not alike(drawn, PICTURE.read_bytes()):
        problems.append(f"{PICTURE.relative_to(ROOT)}: not what {SCRIPT.name} draws; `make docs` renews it")
    for picture, content in of_study().items():
        if not check:
            picture.write_bytes(content)
        elif not picture.exists() or not alike(content, picture.read_bytes()):
            problems.append(f"{picture.relative_to(ROOT)}: not what study {STUDY} draws; `make docs` renews it")
    said = "\n".join(
        line for line in README.read_text(encoding="utf-8").split("\n") if f"({PICTURE.relative_to(ROOT)})" in line
    )
    for number in sorted(set(re.findall(r"\d+\.\d+ s", printed))):
        if number not in said:
            problems.append(f"README.md: the text of its picture says nothing of {number}, which {SCRIPT.name} prints")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def draw(script: Path) -> tuple[bytes, str]:
    """Return the figure of a script as PNG, and its output."""
    plt.close("all")
    printed = io.StringIO()
    picture = io.BytesIO()
    shown = plt.show
    # drawn on display, in the script's style
    plt.show = lambda *_, **__: plt.gcf().savefig(picture, format="png", dpi=DPI, metadata={"Software": None})
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(script))
    finally:
        plt.show = shown
    return picture.getvalue(), printed.getvalue()


def of_study() -> dict[Path, bytes]:
    """A study's figures at quick scale, as PNG, by file name in the documentation."""
    study = studies.get(STUDY)
    result = study.run(jobs=2)
    figures = [
        block for chapter in study.chapters for block in chapter.blocks(result.tables) if isinstance(block, Figure)
    ]
    if study.headline:
        figures.append(study.headline(result).figure)
    return {PICTURE.with_name(f"{STUDY}-{figure.name}.png"): figure.render()["png"] for figure in figures}


def alike(one: bytes, other: bytes) -> bool:
    """Return whether two PNGs have the same size and differ by at most `NEAR` in every channel of every pixel."""
    a, b = (np.round(255 * plt.imread(io.BytesIO(data), format="png")).astype(int) for data in (one, other))
    return a.shape == b.shape and int(np.abs(a - b).max()) <= NEAR


if __name__ == "__main__":
    sys.exit(main())
