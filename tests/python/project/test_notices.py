"""Tests for third-party notices: those of the engine's crates, and of the scripts inside a report."""

from __future__ import annotations

import json
import tomllib

from conftest import ROOT, tool

import ackclock
from ackclock.report import packed
from ackclock.report.html import render
from ackclock.report.run import page


def test_crates_that_are_linked_have_their_notices_in_the_wheel() -> None:
    notices = tool("notices")
    crates, own, needs = notices.linked()
    text = notices.notices(crates)
    assert (ROOT / "THIRD-PARTY.txt").read_text(encoding="utf-8") == text
    assert own == set(notices.REASONS)
    assert notices.packages() == set(notices.PYTHON_REASONS)
    for crate in own:
        assert f"\n{crate} " in text
    described = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "THIRD-PARTY.txt" in described["project"]["license-files"]
    bill = (ROOT / "sbom.cyclonedx.json").read_text(encoding="utf-8")
    assert bill == notices.bill(crates, needs)
    assert described["tool"]["maturin"]["sbom"] == {"rust": False, "include": ["sbom.cyclonedx.json"]}
    parts = {part["bom-ref"]: part for part in json.loads(bill)["components"]}
    assert len(parts) == len(crates) + 1  # plus the drawing library of reports
    assert own < {part["name"] for part in parts.values()}
    assert all(len(part["hashes"][0]["content"]) == 64 for part in parts.values())
    assert str(ROOT) not in bill
    assert (
        parts[f"pkg:npm/plotly.js-basic-dist-min@{packed.VERSION}"]["hashes"][0]["content"] == tool("plotly_js").SHA256
    )


def test_the_drawing_library_is_the_one_that_was_published(monkeypatch) -> None:
    library = tool("plotly_js")
    monkeypatch.setattr(library.sys, "argv", ["plotly_js.py", "--check"])
    assert library.main() == 0
    monkeypatch.setattr(library, "SHA256", "0" * 64)
    assert library.main() == 1
    monkeypatch.undo()
    script = packed.unpack(packed.plotly())
    licence = packed.notices().partition("*/")[2].partition("/*!")[0]
    assert library.notices(script, licence).strip() == packed.notices()


def test_a_report_says_whose_scripts_it_holds() -> None:
    values = {
        "duration": "1 s",
        "network": {"bottleneck": {"rate": "1 Mbit/s", "delay": "5 ms"}},
        "flows": [{}],
        "record": {"sample_interval": "100 ms"},
    }
    written = render(page(ackclock.run(ackclock.Scenario.from_dict(values))))
    assert "Licences of the scripts in this page" in written
    for said in ("Plotly, Inc.", "Permission is hereby granted, free of charge", "Native Promise Only"):
        assert said in written
        assert said in packed.notices()
