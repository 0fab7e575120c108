"""Tests that the documentation checks find planted errors."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from types import ModuleType

import pytest
import yaml
from conftest import ROOT, tool

import ackclock


def test_every_public_name_is_documented_and_in_the_reference():
    assert tool("public_names").main() == 0


@pytest.mark.parametrize("folder", ["docs/how-to", "docs/studies"])
def test_the_lists_of_pages_are_complete(folder):
    listed = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    for page in (ROOT / folder).glob("[a-z]*.md"):
        assert f"({page.name})" in listed, page.name


def test_names_without_a_word_are_found():
    names = tool("public_names")
    planted = ModuleType("ackclock.planted", "A module.")

    def silent(x: int) -> int:
        return x

    def half(x: int, y: int) -> int:
        """Add.

        Parameters
        ----------
        x
            A number.
        """
        return x + y

    @dataclass
    class Pair:
        """Two of them.

        Parameters
        ----------
        left
            One.
        """

        left: int
        other: int

        def swapped(self):
            return self

    vars(planted).update(silent=silent, half=half, Pair=Pair, __all__=["Pair", "half", "silent"])
    assert list(names.check(planted)) == [
        "ackclock.planted.Pair: field other is not documented",
        "ackclock.planted.Pair.swapped: no docstring",
        "ackclock.planted.half: parameter y is not documented",
        "ackclock.planted.silent: no docstring",
    ]
    assert names.unlisted(planted, ".. automodule:: ackclock.planted.other\n") == [
        "ackclock.planted: not in docs/reference/python*.md"
    ]


def test_dead_links_and_what_is_loaded_from_the_network_are_found(tmp_path, monkeypatch, capsys):
    links = tool("links")
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#there">b</a><a href="https://example.org/x">out</a><img src="p.png">'
        '<link rel="canonical" href="https://example.org/a">',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p id="there"><a href="a.html#top">a</a></p>', encoding="utf-8")
    (tmp_path / "p.png").write_bytes(b"")
    monkeypatch.setattr(sys, "argv", ["links.py", str(tmp_path)])
    assert links.main() == 0
    (tmp_path / "b.html").write_text(
        '<a href="a.html#nowhere">a</a><a href="c.html">c</a><script src="https://example.org/s.js"></script>',
        encoding="utf-8",
    )
    assert links.main() == 1
    said = capsys.readouterr().err
    assert "b.html: a.html#nowhere: there is no such place in it" in said
    assert "b.html: c.html: there is no such page" in said
    assert "b.html: loads https://example.org/s.js from the network" in said
    assert "a.html: b.html#there: there is no such place in it" in said


def test_the_picture_of_the_readme_is_checked(monkeypatch, capsys):
    pictures = tool("pictures")
    drawn = pictures.PICTURE.read_bytes()
    assert pictures.alike(drawn, drawn)
    monkeypatch.setattr(pictures, "draw", lambda _script: (drawn, "rate halving: 0.99 s"))
    monkeypatch.setattr(pictures, "of_study", lambda: {pictures.PICTURE.with_name("slow-start-gone.png"): drawn})
    monkeypatch.setattr(sys, "argv", ["pictures.py", "--check"])
    assert pictures.main() == 1
    said = capsys.readouterr().err
    assert "0.99 s" in said
    assert "docs/images/slow-start-gone.png: not what study slow-start draws" in said


def test_the_citation_names_this_version():
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert about["cff-version"] == "1.2.0"
    assert about["version"] == ackclock.__version__
    assert " OR ".join(about["license"]) == project["license"]
    assert [author["name"] for author in about["authors"]] == [author["name"] for author in project["authors"]]
    assert about.get("repository-code") == project.get("urls", {}).get("Source")


def test_the_description_of_the_package_leads_nowhere_outside_itself():
    text = (ROOT / "python" / "README.md").read_text(encoding="utf-8")
    assert not re.findall(r"\]\((?!https://)[^)]*\)", text)
