"""Tests for an installation without matplotlib, which only the extra `figures` brings: everything else still works,
figures are refused in one line, and a page states in place of each figure what to install."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT

import ackclock
from ackclock import sweep
from ackclock.cli import main
from ackclock.errors import UnavailableError
from ackclock.evaluate import Arm, Plan, evaluate, page
from ackclock.plot import Figure, new
from ackclock.plot.figure import ABSENT
from ackclock.report import Page, Section
from ackclock.report.html import render
from ackclock.study import overview
from ackclock.sweep import Threads, figures
from ackclock.sweep import page as sweep_page

INSTALL = "pip install 'ackclock[figures]'"
EVERY_MODULE = """
import importlib, pkgutil, sys
sys.modules["matplotlib"] = None
import ackclock, ackclock_studies
for package in (ackclock, ackclock_studies):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(("__main__", "_bench_cell")):
            importlib.import_module(module.name)
"""


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Return an empty folder in a process without matplotlib."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not [name for name in sys.modules if name.startswith("matplotlib.")]


def drawn(name: str = "f") -> Figure:
    return Figure(
        name=name, title="A figure", caption="Of two.", draw=lambda: new()[0], data={name: pl.DataFrame({"x": [1, 2]})}
    )


def test_every_module_is_imported_without_it() -> None:
    done = subprocess.run([sys.executable, "-c", EVERY_MODULE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_scenario_runs_and_has_its_report(without: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "first", "--set", "duration=1 s", "--report", "r.html", "--out", "r"]) == 0
    assert ABSENT not in (without / "r.html").read_text(encoding="utf-8"), "figures of a run are drawn by the page"
    assert main(["report", "r", "--report", "again.html"]) == 0


@pytest.mark.parametrize(
    "command",
    [
        ["run", "first", "--plot", "cwnd.png"],
        ["report", "r", "--plot", "cwnd.svg"],
        ["read", "x.pcap", "--plot", "x.png"],
        ["diagnose", "x.pcap", "--plot", "x.png"],
        ["diff", "first", "--figure", "x.svg"],
        ["sweep", "plot", "grid.sweep"],
    ],
    ids=lambda command: command[0],
)
def test_a_figure_that_was_asked_for_is_refused(
    without: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    if command[0] == "report":
        ackclock.run(ackclock.load("first").set("duration", "1 s")).write(without / "r")
    assert main(command) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "found no matplotlib" in err
    assert err.endswith(f"{INSTALL}\n")
    assert not list(without.glob("*.png"))


def test_a_run_says_what_its_picture_needs(without: Path) -> None:
    run = ackclock.run(ackclock.load("first").set("duration", "1 s"))
    with pytest.raises(UnavailableError, match="found no matplotlib"):
        run.plot()
    assert INSTALL.replace("'", "&#x27;") in run._repr_html_()


def test_a_sweep_has_its_tables_and_its_page(without: Path) -> None:
    (without / "s.toml").write_text(ackclock.load("first").set("duration", "1 s").to_toml(), encoding="utf-8")
    grid = 'scenario = "s.toml"\nseeds = 2\n[axes]\n"network.bottleneck.delay" = ["10 ms", "20 ms"]\n'
    (without / "grid.toml").write_text(grid, encoding="utf-8")
    assert main(["sweep", "run", "grid.toml", "--jobs", "1"]) == 0
    results = sweep.read(without / "grid.sweep")
    with sweep.Store(without / "grid.sweep") as store:
        written = sweep_page.write(results, store, figures.figures(results), without / "p", metric="goodput_bps")
    text = written.read_text(encoding="utf-8")
    assert INSTALL in text.replace("&#39;", "'")
    assert "95 % interval" in text
    assert list((without / "p" / "figures").glob("*.csv"))
    assert not list((without / "p" / "figures").glob("*.svg"))
    assert ABSENT in results._repr_html_().replace("&#x27;", "'")


def test_an_evaluation_has_its_page(without: Path) -> None:
    plan = Plan(candidate=Arm(role="candidate", name="reno", controller="reno"), scale="quick", only=("8",))
    with closing(Threads(1)) as executor:
        written = page.write(evaluate(plan, without / "store", executor), without / "e")
    text = written.read_text(encoding="utf-8").replace("&#39;", "'")
    assert text.count(ABSENT) >= 2, "the overview and a worst cell"
    assert "junit" in "".join(file.name for file in (without / "e").iterdir())
    assert list((without / "e" / "figures").glob("*.csv"))


def test_a_page_says_it_once_for_each_figure(without: Path) -> None:
    made = Page(title="T", summary="S", opening=drawn("a"), sections=(Section(title="Figures", blocks=(drawn("b"),)),))
    text = render(made).replace("&#39;", "'")
    assert text.count(ABSENT) == 2
    assert "<img" not in text
    assert "Of two." in text
    assert drawn().write(without / "f") == {}
    assert [file.name for file in (without / "f").iterdir()] == ["f.csv"]


def test_the_page_of_all_studies_is_written(without: Path) -> None:
    assert overview.write([], without / "o", scale="quick", command="ackclock study run --all").is_file()
