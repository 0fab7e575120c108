"""Tests of pages with axe-core, which tools/axe.py downloads from npm: no findings, in light and dark schemes, on a wide screen and on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import CHROMIUM
from conftest import tool

import ackclock
from ackclock import report
from ackclock.report import Prose, Section, Table, TableCell
from ackclock.report.run import page

axe = tool("axe")

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
    pytest.mark.skipif(not axe.PLACE.is_file(), reason="needs axe-core: tools/axe.py loads it from npm"),
]

BROKEN = '<!doctype html><html lang="en"><title>t</title><main><h1>t</h1><img src="x.png"><p style="color:#ccc;background:#fff">pale</p></main></html>'


def found(*pages: Path) -> list[str]:
    return axe.told(axe.findings(pages, axe.script(load=False)))


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    (tmp_path / "broken.html").write_text(BROKEN, encoding="utf-8")
    said = "\n".join(found(tmp_path / "broken.html"))
    assert "critical: image-alt" in said
    assert "serious: color-contrast" in said
    assert "1280 light, 1280 dark, 390 light, 390 dark" in said


def test_the_report_of_a_run_and_a_page_of_wide_tables_have_no_finding(tmp_path: Path) -> None:
    scenario = ackclock.load("dumbbell-10").set("duration", "2 s")
    run = report.write(page(ackclock.run(scenario)), tmp_path / "run.html")
    kinds = ("holds", "fails", "undecided", "faint", "head", "text")
    wide = Table(
        caption="Twenty columns.",
        header=("", *(f"column {n}" for n in range(20))),
        rows=tuple(tuple(TableCell(text=f"{kind} {n}", kind=kind) for n in range(21)) for kind in kinds),
    )
    made = report.Page(
        title="Tables",
        summary="Wide.",
        sections=(Section(title="All", blocks=(wide, Prose(html="<p>Said.</p>"))),),
        scenarios={"long": "# " + "x" * 400},
        command="ackclock " + "x" * 400,
    )
    assert found(run, report.write(made, tmp_path / "tables.html")) == []
