"""The table of docs/safety.md: each row names a test that there is."""

from __future__ import annotations

import re

from conftest import ROOT


def test_each_row_is_held_by_a_test() -> None:
    """What a kind of file may do is said once, and tested."""
    text = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")
    table = text.partition("| file |")[2].partition("\n\n")[0]
    rows = [line for line in table.splitlines()[2:] if line.startswith("|")]
    assert len(rows) >= 10
    tests = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests" / "python").rglob("test_*.py"))
    for row in rows:
        named = re.search(r"`(test_\w+)` \|$", row)
        assert named is not None, row
        assert f"def {named[1]}(" in tests, row
