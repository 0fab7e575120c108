"""Tests for the project's own checks in `make check`: each finds its planted fault."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from conftest import ROOT, tool


@pytest.mark.parametrize(
    ("name", "comment"),
    [
        ("planted.rs", "//! {}"),
        ("planted.py", "# {}"),
        ("deep/planted.py", '"""{}"""'),
        ("planted.js", "// {}"),
        ("planted.c", "/* {} */"),
    ],
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


@pytest.mark.parametrize(
    ("crate", "file", "use", "found"),
    [
        ("tcp", "rwnd.rs", "use crate::connection::Connection;", "rwnd uses connection"),
        ("tcp", "stats.rs", "use crate::sender::Sender;", "stats uses sender"),
        ("tcp", "sender/device.rs", "use super::patience::Patience;", "circles (device, patience, plain"),
        ("sim", "tables/table.rs", "use crate::report::summary;", "tables uses report"),
        ("sim", "scenario/names.rs", "use super::hosts::Customs;", "circles (hosts, names, spec)"),
    ],
)
def test_an_arrow_planted_in_a_crate_is_caught(tmp_path, monkeypatch, crate, file, use, found):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    check_crates = tool("check_crates")
    copy = tmp_path / "crates" / crate
    shutil.copytree(ROOT / "crates" / crate / "src", copy / "src")
    shutil.copy(ROOT / "crates" / crate / "Cargo.toml", copy)
    assert check_crates.rooms(tmp_path) == []
    path = copy / "src" / file
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{use}\n", encoding="utf-8")
    assert any(found in line for line in check_crates.rooms(tmp_path)), check_crates.rooms(tmp_path)


def test_a_script_sees_what_those_before_it_hand_out(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    lint_page = tool("lint_page")
    (tmp_path / "first.js").write_text("const { a, ...b } = {};\nfunction c() {}\n  let inner = 1;\n", encoding="utf-8")
    (tmp_path / "second.js").write_text("class D {}\nasync function e() { c(a, D); }\n", encoding="utf-8")
    seen = lint_page.visible(tmp_path, ("first.js", "second.js"), "document")
    assert seen == {"first.js": ["document"], "second.js": ["document", "a", "b", "c"]}
    assert [line.split(": ")[:2] for line in lint_page.unused(tmp_path, ("first.js", "second.js"))] == [
        ["web/first.js", "b"],
        ["web/second.js", "e"],
    ]


def test_faults_planted_in_a_script_are_caught(tmp_path, monkeypatch, capfd):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    lint_page = tool("lint_page")
    if shutil.which("node") is None or not (lint_page.PLACE / "installed").is_file():
        pytest.skip("ESLint is not installed: `make check`, with Node and npm")
    (tmp_path / "web").mkdir()
    file = tmp_path / "web" / "planted.js"
    for fault, rule in (
        ("document.body.innerHTML = location.hash;", "no-restricted-syntax"),
        ("missing();", "no-undef"),
        ("if (location == 1) eval(location);", "no-eval"),
        ("setTimeout('location', 1);", "no-implied-eval"),
    ):
        file.write_text(f'"use strict";\n{fault}\n', encoding="utf-8")
        assert lint_page.lint(tmp_path, {"planted.js": ["document", "location", "setTimeout"]}) == 1
        assert rule in capfd.readouterr().out
    file.write_text('"use strict";\ndocument.body.textContent = location.hash;\n', encoding="utf-8")
    assert lint_page.lint(tmp_path, {"planted.js": ["document", "location"]}) == 0


def test_a_built_engine_keeps_its_profile_until_one_is_given(tmp_path, monkeypatch):
    for name in ("PROFILE", "MAKEFLAGS", "MFLAGS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".venv").mkdir()

    def profile(*given: str) -> str:
        ask = ["make", "-s", "-f", str(ROOT / "Makefile"), "--eval", "asked: ; @echo $(PROFILE)", "asked", *given]
        return subprocess.run(ask, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    assert profile() == "quick"
    (tmp_path / ".venv" / ".engine-release").touch()
    assert profile() == "release"
    assert profile("PROFILE=dev-release") == "dev-release"


def test_the_page_of_numbers_is_made_of_what_was_measured(tmp_path):
    measured = tool("book")
    held = {"what": "A thing.", "seeds": "1 to 3", "command": "ackclock thing", "folder": tmp_path}
    measured.record("second", heads=["a|b", "n"], rows=[["x", 1234], ["y", 0.5]], notes=["One was left out."], **held)
    measured.record_markdown(
        "first", "before\n\n| h | i |\n| --- | ---: |\n| `r` | 7 of 9 |\n\n| other |\n|---|\n", **held
    )
    page = measured.page(tmp_path)
    assert page.index("## first") < page.index("## second")
    assert "| `r` | 7 of 9 |" in page
    assert "| a\\|b | n |\n| --- | ---: |\n| x | 1,234 |\n| y | 0.5 |\n\nOne was left out.\n" in page
    assert f"profile {measured.read(tmp_path / 'first.json')['profile']}. Seeds: 1 to 3.\n" in page
    with pytest.raises(ValueError, match="found a row of 1 cells; allowed: 2"):
        measured.record("third", heads=["a", "b"], rows=[["x"]], **held)
    with pytest.raises(ValueError, match="name: found 'A/b'"):
        measured.record("A/b", heads=[], rows=[], **held)


def test_commands_are_recorded_by_family_and_verdict():
    measured = tool("book")
    row = {"family": "bulk", "refused": None, "identical": True, "draws_given": False, "retransmissions": [3, 3]}
    told = [row, {**row, "identical": False, "retransmissions": [3, 4]}, {**row, "refused": "why"}]
    assert measured.of_drawn(told)[1] == [["bulk", 3, 1, 0, 1, 1]]
    verdicts = ["holds", "known miss", "beyond the bound"]
    rows = [{"quantity": "goodput", "verdict": verdict} for verdict in verdicts]
    assert measured.of_fidelity({"rows": rows})[1] == [["goodput", 3, 1, 0, 1, 1, 0]]


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


def test_faults_are_planted_in_the_lines_that_a_change_adds():
    mutants = tool("mutants")
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,3 @@\n def f(a):\n-    return a\n+    b = a + 1\n+    return a < b and not a\n"
    lines = mutants.changed(diff)
    assert lines == {"x.py": {2, 3}}
    found = mutants.faults("def f(a):\n    b = a + 1\n    return a < b and not a\n", lines["x.py"])
    assert sorted(one.what for one in found) == [
        "1 -> 2",
        "a + 1 -> a - 1",
        "a < b -> a <= b",
        "a < b and (not a) -> a < b or not a",
        "not a -> a",
    ]
    assert sorted(one.text.splitlines()[1].strip() for one in found if one.line == 2) == ["b = a + 2", "b = a - 1"]
