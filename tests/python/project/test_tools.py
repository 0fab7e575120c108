"""The checks of `make check` that are our own: each finds what it is there for."""

from __future__ import annotations

import pytest
from conftest import tool


@pytest.mark.parametrize(
    ("name", "comment"), [("planted.rs", "//! {}"), ("planted.py", "# {}"), ("deep/planted.py", '"""{}"""')]
)
def test_an_oversize_file_is_caught_unless_it_says_why(tmp_path, name, comment):
    check_sizes = tool("check_sizes")
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    body = "\n" * (check_sizes.FILE_LINES - 1)

    def found(head: str, more: str = "") -> list[str]:
        file.write_text(comment.format(head) + "\n" + body + more, encoding="utf-8")
        return check_sizes.check(tmp_path, [name])

    assert found("A file.") == []
    [line] = found("A file.", "\n")
    assert line.startswith(f"{name}: 501 lines; allowed: 500")
    assert found("Length: a table that is looked up, not read.", "\n") == []
    assert found("Length: ", "\n") != []
    assert found("Length: long", "\n") != []


def test_an_oversize_function_is_caught_unless_it_says_why(tmp_path):
    check_sizes = tool("check_sizes")

    def found(head: str, lines: int) -> list[str]:
        text = f'def planted():\n    """About it."""\n    {head}\n' + "    x = 1\n" * lines
        (tmp_path / "planted.py").write_text(text, encoding="utf-8")
        return check_sizes.check(tmp_path, ["planted.py"])

    assert found("x = 0", check_sizes.FUNCTION_LINES - 1) == []
    [line] = found("x = 0", check_sizes.FUNCTION_LINES)
    assert line.startswith("planted.py:1: planted has 101 lines")
    assert found("x = 0  # why\n    # Length: one line of a table each.", check_sizes.FUNCTION_LINES) == []


def test_a_dependency_that_points_upwards_is_caught(tmp_path, monkeypatch):
    check_crates = tool("check_crates")
    assert check_crates.main() == 0
    monkeypatch.setitem(check_crates.ALLOWED, "tcp", {"core"})
    assert check_crates.main() == 1
