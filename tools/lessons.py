"""Writes examples/lessons.ipynb, the lessons of the lab for teachers, from the files in python/ackclock/_lessons; or checks that it is up to date (--check)."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "examples" / "lessons.ipynb"


def notebook() -> str:
    """The notebook's file."""
    from ackclock import _course

    return _course.notebook(_course.shipped())


def main() -> int:
    text = notebook()
    if "--check" not in sys.argv[1:]:
        NOTEBOOK.write_text(text, encoding="utf-8")
    elif not NOTEBOOK.exists() or NOTEBOOK.read_text(encoding="utf-8") != text:
        print("examples/lessons.ipynb: not up to date; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
