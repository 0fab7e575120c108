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


def planted(tmp_path, files):
    for name, text in files.items():
        path = tmp_path / "crates/sim" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


ROOMS = (
    "error",
    "cpu",
    "memory",
    "tables",
    "yardstick",
    "transport",
    "capture",
    "world",
    "workload",
    "scenario",
    "report",
    "runs",
)


def house(**texts):
    files = {f"src/{room}.rs": "" for room in ROOMS} | {f"src/{room}.rs": text for room, text in texts.items()}
    return {"Cargo.toml": "", "src/lib.rs": "pub use runs::Output;"} | files


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ({"runs": "use crate::world::World;"}, []),
        ({"world": "use crate::scenario::Scenario;"}, ["world uses scenario"]),
        ({"world": "use super::{error::Error, scenario::{self, Layout}};"}, ["world uses scenario"]),
        ({"world": "fn now() { crate::report::note() }"}, ["world uses report"]),
        ({"world": "use crate::Output;"}, ["world uses runs"]),
        ({"transport": "use crate::capture::Captured;"}, ["transport uses capture"]),
        ({"world": "// use crate::runs;\n#[cfg(test)]\nmod tests { use crate::runs::run; }"}, []),
        (
            {"world": "use crate::runs::run;", "runs": "use crate::world::World;"},
            ["world uses runs", "1 circles (runs, world)"],
        ),
    ],
)
def test_an_arrow_that_points_up_inside_a_crate_is_found(tmp_path, texts, found):
    broken = tool("check_crates").rooms(planted(tmp_path, house(**texts)))
    assert len(broken) == len(found)
    assert all(part in line for part, line in zip(found, broken, strict=True))


def test_a_room_without_a_floor_and_a_circle_in_a_room_are_found(tmp_path):
    extra = {
        "src/attic.rs": "",
        "src/workload/a.rs": "use super::b::B;",
        "src/workload/b.rs": "use crate::workload::a::A;",
    }
    attic, ring = tool("check_crates").rooms(planted(tmp_path, house() | extra))
    assert "attic stands on no floor" in attic
    assert "src/workload: 1 circles (a, b)" in ring
