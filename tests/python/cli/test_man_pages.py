"""Tests for the manual pages of wheels: each command has one, generated from the command's own help."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import tool

MACROS = {".TH", ".SH", ".PP", ".TP", ".B", ".nh", ".ad"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("man")
    (place / "ackclock-gone.1").write_text("a command of old", encoding="utf-8")
    tool("man_pages").main(place)
    return place


def test_each_command_has_a_page_with_its_options(folder: Path) -> None:
    known = dict(tool("man_pages").commands())
    assert {f"{name}.1" for name in known} == {path.name for path in folder.iterdir()}
    assert {"ackclock", "ackclock-run", "ackclock-study-run", "ackclock-linux-build"} <= known.keys()
    for name, command in known.items():
        text = (folder / f"{name}.1").read_text(encoding="utf-8")
        for option in (o for p in command.params if p.param_type_name == "option" for o in p.opts):
            assert option.replace("-", "\\-") in text, (name, option)


def test_a_page_has_no_line_that_roff_would_take_for_something_else(folder: Path) -> None:
    man = tool("man_pages")
    for path in folder.iterdir():
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not line.startswith("'")
            assert not line.startswith(".") or line.split()[0] in MACROS, (path.name, line)
    assert man.roff(".hidden\\n --set") == "\\&.hidden\\en \\-\\-set"


def test_pages_have_no_date(folder: Path, tmp_path: Path) -> None:
    tool("man_pages").main(tmp_path)
    for path in folder.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
        assert re.search(r'^\.TH "[A-Z-]+" "1" "" "ackclock [^"]+" "ackclock"$', path.read_text(), re.MULTILINE)


@pytest.mark.skipif(not (shutil.which("man") and shutil.which("groff")), reason="man is not installed")
@pytest.mark.parametrize("name", ["ackclock", "ackclock-evaluate", "ackclock-sweep-plot"])
def test_man_shows_a_page_without_a_warning(folder: Path, name: str) -> None:
    done = subprocess.run(
        ["man", "--warnings", "-l", folder / f"{name}.1"], capture_output=True, text=True, check=True, env={"MANWIDTH": "80", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.stderr == ""
    assert name.upper() in done.stdout
    assert "EXIT STATUS" in done.stdout
