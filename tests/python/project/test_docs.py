"""Tests that everything named in the documents exists: links, paths, functions, decision records."""

from __future__ import annotations

import re
import subprocess
from functools import cache

import pytest
from conftest import ROOT

DOCUMENTS = sorted(
    name
    for name in subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    if (ROOT / name).is_file()
)
TREES = (
    "crates/",
    "python/ackclock/",
    "python/ackclock_studies/",
    "linux/",
    "tools/",
    "docs/",
    "scenarios/",
    "tests/",
    ".ci/",
)
ELSEWHERE = ("tools/testing/", "docs/decisions/NNNN-")
"""Paths in the kernel's sources, and paths of files not yet written."""
STATUS = re.compile(r"in force|superseded by \[\d{4}\]\(\S+\)|in part superseded by \[\d{4}\]\(\S+\): \S.*")


def prose(name: str) -> str:
    """Return the document without its code blocks."""
    return re.sub(r"^ *```.*?^ *```$", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@cache
def named() -> tuple[set[str], set[str]]:
    """Return the types in the sources, and all words in them."""
    files = [
        *ROOT.glob("crates/*/src/**/*.rs"),
        *ROOT.glob("linux/guest/src/**/*.rs"),
        *ROOT.glob("python/ackclock*/**/*.py"),
    ]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return set(re.findall(r"(?:struct|enum|trait|class|type) (\w+)", text)), set(re.findall(r"\w+", text))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose(name)):
        if "://" not in target:
            assert ((ROOT / name).parent / target).is_file(), f"{target}: no file (the site has no pages for folders)"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_exist(name):
    for path in re.findall(r"`([\w./-]+)`", prose(name)):
        if path.startswith(TREES) and not path.startswith(ELSEWHERE):
            assert (ROOT / path).exists(), path


@pytest.mark.parametrize(
    "name", ["ARCHITECTURE.md", *(name for name in DOCUMENTS if name.startswith("docs/decisions/"))]
)
def test_functions_exist(name):
    types, words = named()
    for owner, function in re.findall(r"`([A-Z]\w+)(?:::|\.)(\w+)`", prose(name)):
        assert owner not in types or function in words, f"{owner}::{function}"


def test_the_index_of_decisions_is_complete_and_each_has_a_status():
    folder = ROOT / "docs/decisions"
    rows = re.findall(
        r"^\| \[(\d{4})\]\((\S+)\) \| (.+?) \| (.+?) \|$",
        (folder / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    files = sorted(file.name for file in folder.glob("[0-9]*.md"))
    assert [file for _, file, _, _ in rows] == files
    for number, file, line, status in rows:
        title, _, body = (folder / file).read_text(encoding="utf-8").partition("\n")
        assert re.fullmatch(rf"# {number}: [A-Z`].*[^.]", title), title
        assert line
        assert STATUS.fullmatch(status), f"{number}: {status}"
        newer = re.findall(r"\[(\d{4})\]", status)
        assert all(f"[{each}](" in body for each in newer), f"{number} does not name {newer}"


def test_one_number_of_a_version_stands_everywhere():
    def first(name: str, pattern: str) -> str:
        found = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert found, name
        return found[1]

    number = first("Cargo.toml", r'^version = "(.+)"$')
    assert first("CITATION.cff", r"^version: (.+)$") == number
    assert first("CHANGELOG.md", r"^## ([\d.]+) \(") == number
    assert first("sbom.cyclonedx.json", r'"bom-ref": "pkg:pypi/ackclock@(.+)"') == number
    assert first("Cargo.lock", r'name = "ackclock-core"\nversion = "(.+)"') == number
