"""Tests for workflows, templates and the check before a release: they parse, request the required information, and never publish a placeholder."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from conftest import ROOT, tool

FORGE = ROOT / ".github"
WORKFLOWS = sorted((FORGE / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_read_only_unless_a_job_says_more(path):
    held = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert held["permissions"] == {"contents": "read"}
    for name, job in held["jobs"].items():
        assert job["runs-on"], name
        assert all(("uses" in step) != ("run" in step) for step in job["steps"]), name
        for script in re.findall(r"tools/[\w.]+|\.ci/run", "\n".join(step.get("run", "") for step in job["steps"])):
            assert (ROOT / script).is_file(), script


def test_nothing_is_published_before_it_was_checked():
    jobs = yaml.safe_load((FORGE / "workflows/release.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["publish"]["needs"] == ["ready", "provenance"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "refs/tags/v" in jobs["publish"]["if"]
    assert [name for name, job in jobs.items() if "pypi-publish" in str(job)] == ["publish"]


def test_a_difference_from_a_real_stack_asks_for_scenario_seed_and_digest():
    for path in (FORGE / "ISSUE_TEMPLATE").glob("*.yml"):
        assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict), path.name
    form = yaml.safe_load((FORGE / "ISSUE_TEMPLATE/difference-from-a-real-stack.yml").read_text(encoding="utf-8"))
    required = {field["id"] for field in form["body"] if field["validations"]["required"]}
    assert required == {"scenario", "seed", "digest", "version", "measured"}


def planted(tmp_path, urls: str, citation: str):
    (tmp_path / "python/ackclock").mkdir(parents=True)
    for name in tool("check_release").FILES:
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(f'[project]\nauthors = [{{ name = "A" }}]\n{urls}', encoding="utf-8")
    (tmp_path / "CITATION.cff").write_text(citation, encoding="utf-8")
    (tmp_path / ".zenodo.json").write_text(json.dumps({"creators": [{"name": "A"}]}), encoding="utf-8")
    return tmp_path


def test_a_release_without_addresses_is_refused(tmp_path):
    release = tool("check_release")
    place = "https://code.ackclock.test"
    urls = "[project.urls]\n" + "".join(f'{name} = "{place}"\n' for name in release.URLS)
    whole = planted(tmp_path / "whole", urls, f"repository-code: {place}\ndate-released: 2026-01-02\n")
    assert release.missing(whole) == []
    bare = planted(tmp_path / "bare", "", "title: a\n")
    (bare / "SECURITY.md").unlink()
    said = release.missing(bare)
    assert len(said) == 1 + len(release.URLS) + 2
    assert said[0] == "SECURITY.md: found no such file; needed in a release"
    assert "CITATION.cff: repository-code: found none; needed: the address of the sources" in said
    false = planted(
        tmp_path / "false", urls.replace(place, "https://example.org/a", 1), "repository-code: https://other.test\n"
    )
    assert [line.partition(":")[0] for line in release.missing(false)] == [
        "pyproject.toml",
        "CITATION.cff",
        "CITATION.cff",
    ]
