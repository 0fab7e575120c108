"""Tests that tables drawn without rich are identical to those drawn with it."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys

import pytest
from rich.console import Console

from ackclock.cli._sheet import Sheet, plain

WIDTH = 100


def by_rich(parts, width):
    console = Console(file=io.StringIO(), width=width, markup=False, emoji=False, force_terminal=False)
    for part in parts:
        console.print(part, highlight=False)
    return "\n".join(line.rstrip() for line in console.file.getvalue().split("\n")).rstrip("\n")


def drawn(seed):
    draw = random.Random(seed)

    def text(most):
        return "".join(draw.choice("ab 9,.–→µé[]") for _ in range(draw.randint(0, most))).strip()

    columns = draw.randint(1, 6)
    sheet = Sheet(text(12), [text(10) or "x" for _ in range(columns)], narrow=False)
    for _ in range(draw.randint(1, 4)):
        sheet.add_row(*(text(18) for _ in range(columns)))
    for _ in range(draw.randint(0, 2)):
        sheet.say(text(30))
    return sheet


@pytest.mark.parametrize("seed", range(3))
def test_a_drawn_table_is_as_rich_draws_it(seed):
    known = 0
    for i in range(100):
        sheet = drawn(f"{seed} {i}")
        found = plain([sheet, "a line"], WIDTH)
        if found is not None:
            known += 1
            assert found == by_rich([sheet, "a line"], WIDTH)
    assert known > 30


@pytest.mark.parametrize("what", ["wide", "two\nlines", "漢字", "e\u0301", ""])
def test_what_only_rich_can_draw_is_left_to_it(what):
    sheet = Sheet("t", ["a", "b"], narrow=False)
    if what:
        sheet.add_row("x", what * (WIDTH if what == "wide" else 1))
    assert plain([sheet], WIDTH) is None
    assert plain(["x" * (WIDTH + 1)], WIDTH) is None


def test_a_run_into_a_pipe_loads_no_rich():
    code = (
        "import sys; from ackclock.cli import main; main(['run', 'first']);"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('rich', 'polars', 'numpy')), file=sys.stderr)"
    )
    plainly = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=plainly)
    assert done.stderr.strip() == "[]"
    assert "cubic" in done.stdout
