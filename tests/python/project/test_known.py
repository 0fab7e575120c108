"""Tests of the pages that document each controller, and of the tool that evaluates all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, tool

from ackclock import _engine

known = tool("known")
evaluation = tool("evaluation")

HOW = {"engine": "0.3.0+abc", "scale": "standard", "within_min": 10.0}


def one(verdict: str, *, remark: str = "") -> dict[str, Any]:
    rows: list[dict[str, Any]] = [
        {"row": "1", "verdict": verdict, "remark": "", "measure": "loss", "cell": "1 Mbit/s", "difference": 0.3, "candidate": "4 %", "reference": "1 %"},
        {"row": "6", "verdict": "no difference shown", "remark": remark, "settle": "about 12 seeds of each cell"},
    ]  # fmt: skip
    return {**HOW, "looks": 1, "rows": rows}


def test_every_controller_over_tcp_has_a_page_that_says_what_is_measured() -> None:
    pages = known.pages()
    over_tcp = [name for name, _ in _engine.registry()["controllers"] if not name.startswith(("pcc-", "quinn:"))]
    assert list(pages) == over_tcp
    worst = {row[0]: row for row in known.measured("worst-cases")["rows"]}
    for name, page in pages.items():
        assert (ROOT / "docs" / "known" / f"{name}.md").read_text(encoding="utf-8") == page
        assert f"](known/{name}.md)" in known.LIST.read_text(encoding="utf-8")
        assert worst[name][3] in page
        text = [line for line in page.splitlines() if not line.startswith("|")]
        assert len(" ".join(text).split()) <= 400
        assert len(page.splitlines()) - len(text) <= 2 + 26  # one line for each decided situation
    assert "Linux has no such controller" in pages["copa"]
    assert "(`westwood` there)" in pages["westwood-plus"]
    assert "Linux has no such controller" in pages["westwood"]
    assert "runs have the kernel's every ACK" in pages["vegas"]


def test_a_page_that_differs_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(known.sys, "argv", ["known.py", "--check"])
    assert known.main() == 0
    other = known.measured("worst-cases")
    other["rows"][0][3] = "another environment"
    monkeypatch.setattr(known, "measured", lambda name: other if name == "worst-cases" else json.loads((known.MEASURED / f"{name}.json").read_text()))  # fmt: skip
    assert known.main() == 1
    assert "docs/known/reno.md: not as measured/ says" in capsys.readouterr().err


def test_what_decides_stands_on_the_page_if_it_is_of_the_same_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "copa.json").write_text(json.dumps(one("worse")), encoding="utf-8")
    monkeypatch.setattr(known, "MEASURED", tmp_path)
    heads, rows = evaluation.table({"cubic": one("no worse"), "copa": one("worse", remark="starved itself")})
    found = {"what": "What it says; signs", "heads": heads, "rows": rows, "version": "0.3.0", "build": "abc"}
    page = "\n".join(known.situations("copa", found))
    assert "| 1 | Congestion collapse | ✗ worse | loss: 1 Mbit/s | 4 % | 1 % |" in page
    assert "- about 12 seeds of each cell: 6" in page
    assert "worse in 1; no difference shown in 1 of 2 situations. It starved itself" in page
    assert "1 Mbit/s" not in "\n".join(known.situations("copa", {**found, "build": "other"}))


def test_what_was_evaluated_so_is_not_evaluated_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(evaluation, "HELD", tmp_path / "held")
    assert evaluation.held("copa", HOW) is None
    evaluation.keep("copa", one("worse"))
    assert evaluation.held("copa", HOW) == one("worse")
    for key, value in (("engine", "0.3.0+def"), ("scale", "quick"), ("within_min", 0.0)):
        assert evaluation.held("copa", {**HOW, key: value}) is None


def test_the_page_says_what_the_scale_is_fit_for() -> None:
    told = {"cubic": one("no worse"), "copa": one("worse")}
    said = evaluation.about(told, HOW)[0]
    assert said.startswith(
        "Engine 0.3.0+abc, scale standard, 10 to 40 seeds of each cell, then further looks of at most 10 minutes"
    )
    assert "indication" in evaluation.about(told, {**HOW, "scale": "quick"})[0]
    assert "| 1 | loss: 1 Mbit/s | 1 % | copa 4 % |" in evaluation.worse(told)
