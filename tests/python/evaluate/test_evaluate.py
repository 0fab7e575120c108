"""Tests for `ackclock evaluate`: positive controls fail, CUBIC passes, and the files it writes are correct."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ackclock
from ackclock.attack import zoo
from ackclock.cli import main
from ackclock.errors import UnavailableError
from ackclock.evaluate import Arm, Evaluation, Plan, RowVerdict, evaluate, false_alarms, figures, page, rows
from ackclock.evaluate.files import alarms, to_json
from ackclock.evaluate.frame import LEAST_BUFFER, bdp_packets, buffer_packets, grid
from ackclock.evaluate.situation import filled
from ackclock.plot.style import styled
from ackclock.scenario import Scenario
from ackclock.sweep import Threads

CONSTANT = """
class Constant:
    '''Sends at 95 % of 10 Mbit/s, whatever happens.'''
    wants_pacing = True

    def on_control(self, window, ack):
        window.cwnd = 4000.0
        window.pacing_rate = 0.95 * 10e6 / 8

    def on_congestion_event(self, window, in_flight):
        return window.cwnd
"""


def run(
    folder: Path,
    controller: str,
    *only: str,
    stop: threading.Event | None = None,
    buffers: tuple[float, ...] = (),
    victims: tuple[str, ...] = (),
) -> Evaluation:
    """Return quick-scale rows, restricted to cells with these buffers and victims, if given."""
    plan = Plan(candidate=Arm(role="candidate", name=controller, controller=controller), scale="quick", only=only)

    def wanted(about: Mapping[str, Any]) -> bool:
        asked = (("buffer_bdp", buffers), ("victim", victims))
        return all(not some or key not in about or about[key] in some for key, some in asked)

    rows = [replace(row, cells=tuple(cell for cell in row.cells if wanted(cell.about))) for row in plan.rows]
    vars(plan)["rows"] = rows  # as though the plan had no other cells
    executor = Threads(2)
    try:
        return evaluate(plan, folder, executor, stop=stop)
    finally:
        executor.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a single store for all tests, so that CUBIC runs only once."""
    return tmp_path_factory.mktemp("evaluate")


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write reports without pictures, which take up most of a small evaluation's time."""
    monkeypatch.setattr(page, "_svg", lambda _: b"<svg/>")


def found(evaluation: Evaluation, name: str) -> RowVerdict:
    return next(r for r in evaluation.rows if r.row.id == name)


def test_every_cell_is_a_scenario_and_its_name_a_file() -> None:
    for row in rows():
        names = [c.id for c in row.cells]
        assert len(set(names)) == len(names)
        assert bool(row.cells) == bool(row.measures)
        assert row.cells or row.needs or row.applies
        assert not row.cells or row.at("quick") or row.needs
        for cell in row.cells:
            assert "/" not in cell.id
            Scenario.from_dict(filled(cell.scenario, "cubic", {})).to_engine_json()


def test_every_row_of_the_rfc_is_there_once() -> None:
    numbered = [row.id for row in rows() if row.section]
    assert numbered == [str(i) for i in range(1, 26)]


def test_the_grid_has_no_path_below_four_packets() -> None:
    assert all(bdp_packets(mbit, rtt) >= 4 for mbit, rtt, _, _ in grid())
    assert buffer_packets(10, 10, 0.25) == LEAST_BUFFER
    assert buffer_packets(10, 40, 1) == 33


def test_bbr_version_1_loses_too_much_in_shallow_buffers(folder: Path) -> None:
    row = found(run(folder, "bbr", "3"), "3")
    assert row.verdict == "worse"
    assert {j.measure.name: j.verdict for j in row.cells if j.cell.about["buffer_bdp"] == 0.5}["loss"] == "worse"


def test_bbr_version_1_harms_others_in_shallow_buffers(folder: Path) -> None:
    row = found(run(folder, "bbr", "8", buffers=(0.25, 1)), "8")
    assert row.verdict == "worse"
    harm = {
        (j.cell.about["victim"], j.cell.about["buffer_bdp"]): j.verdict
        for j in row.cells
        if "goodput" in j.measure.name
    }
    assert harm["cubic", 0.25] == harm["cubic", 1] == harm["reno", 0.25] == "worse"


def test_a_constant_rate_starves_others(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "constant.py"
    file.write_text(CONSTANT)
    evaluation = run(folder, f"{file}:Constant", "6", "8", buffers=(1,), victims=("cubic",))
    assert found(evaluation, "6").verdict == "worse"
    assert found(evaluation, "8").verdict == "worse"


def test_who_ignores_losses_does_not_meet_the_musts(folder: Path) -> None:
    """A delay-based rule that yields in deep queues could otherwise offset its gains in shallow ones."""
    evaluation = run(folder, zoo.resolved("zoo:deaf"), "8", "x4", buffers=(0.25, 1), victims=("cubic",))
    assert {r.row.id for r in evaluation.rows if r.fails_must} >= {"8", "x4"}
    duty = found(evaluation, "x4")
    assert (duty.verdict, duty.measure) == ("worse", "sent at 10 % loss")
    assert duty.worst is not None
    assert duty.worst.broken is not None
    assert duty.worst.broken > 20
    assert "does not back off: sent at 10 % loss" in page.conclusion(evaluation)


def test_vegas_harms_nobody_and_starves(folder: Path) -> None:
    row = found(run(folder, "vegas", "6"), "6")
    assert row.verdict == "no difference shown"
    assert "no worse in the few cells" in row.reason or "better in" in row.reason
    assert "starved itself" in row.remark


@pytest.mark.deep
def test_dctcp_takes_from_cubic_in_a_data_centre(folder: Path) -> None:
    """RFC 8257 §5 separates DCTCP from senders that treat a mark as a loss. No other controller has this requirement."""
    mine = Arm(role="candidate", name="dctcp", controller="dctcp")
    executor = Threads(2)
    try:
        plan = Plan(candidate=mine, scale="quick", only=("25",), environment="datacentre")
        row = found(evaluate(plan, folder, executor), "25")
    finally:
        executor.close()
    assert row.verdict == "worse"
    assert row.measure == "the other's goodput"
    by = {(j.cell.id, j.measure.name): j for j in row.cells}
    assert by["beside-cubic", "the other's goodput"].verdict == "worse"
    assert by["incast", "median time of an answer"].difference.n == 3
    elsewhere = run(folder, "dctcp", "25")
    assert found(elsewhere, "25").verdict == "not applicable"
    assert not elsewhere.digests


def test_cubic_and_reno_are_not_worse(folder: Path) -> None:
    for name in ("cubic", "reno"):
        for row in ("3", "8", "x4"):
            judged = found(run(folder, name, row), row)
            assert judged.verdict == "no difference shown"
            if (name, row) != ("reno", "x4"):  # single packets: three seeds are too few
                assert "in the few cells of this scale" in judged.reason, name


def test_stopped_and_continued_gives_the_same(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", "reno", "3", "19")
    stop = threading.Event()
    stop.set()
    with pytest.raises(UnavailableError, match="goes on"):
        run(tmp_path / "parts", "reno", "3", "19", stop=stop)
    run(tmp_path / "parts", "reno", "19")
    parts = run(tmp_path / "parts", "reno", "3", "19")
    assert to_json(parts) == to_json(whole)
    assert whole.digest == parts.digest


def test_what_is_kept_runs_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text(CONSTANT)
    out = tmp_path / "out"
    code = main(
        ["evaluate", f"{file}:Constant", "--quick", "--rows", "9,25", "--out", str(out), "--json", "--jobs", "2"]
    )
    printed = json.loads(capsys.readouterr().out)
    kept = json.loads((out / "evaluate.json").read_text())
    assert code == 1
    assert printed == kept
    assert kept["schema"] == "ackclock.evaluate/1"
    assert {r["id"]: r["verdict"] for r in kept["rows"]}["9"] == "worse"
    assert kept["controller"]["source"]["name"] == "mine.py:Constant"

    # the worst cell's scenario and seed reproduce the digest and the number
    worst = next(r for r in kept["rows"] if r["id"] == "9")["worst"]
    seed = worst["seed"]
    scenario = ackclock.load(out / worst["scenario"], own_code=True)
    again = ackclock.run(scenario, seed=seed)
    assert again.digest == worst["digests"][str(seed)]
    assert worst["command"] == f"ackclock run {worst['scenario']} --seed {seed} --own-code"
    table = pl.read_parquet(out / "cells.parquet")
    same = table.filter((pl.col("scenario") == worst["scenario"]) & (pl.col("seed") == seed))
    assert same["digest"].unique().to_list() == [again.digest]

    # JUnit readers see the failure and the untested requirements
    suites = ElementTree.parse(out / "junit.xml").getroot()
    failures = {s.get("name"): s.get("failures") for s in suites}
    assert {name: count for name, count in failures.items() if str(name).startswith("row 9: ")}.popitem()[1] == "1"
    assert failures["row 25: Data centres"] == "0"
    html = (out / "report.html").read_text()
    assert 'src="http' not in html
    assert "statement missing" in html


@pytest.mark.usefixtures("undrawn")
def test_exit_codes_and_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    file = tmp_path / "late.py"
    file.write_text(LATE)
    assert main(["evaluate", "cubic", "--quick", "--rows", "9", "--out", str(out)]) == 0
    capsys.readouterr()
    for argv, said in (
        (["cubicc"], "CONTROLLER: found"),
        (["cubic", "--quick", "--full"], "--full: found it beside --quick"),
        (["cubic", "--rows", "12,99"], '--rows: found "99"'),
        (["cubic", "--option", "beta"], "--option: found"),
        (["cubic", "--rival", "cubic"], "--rival: found"),
        (["cubic", "--rival-option", "flavour=linux-v3"], "--rival-option: found"),
        (["cubic", "--rival", "bbr3", "--rival-option", "flavour=linux-v9"], "--option: found"),
        (["nowhere.py:Mine"], "CONTROLLER: found"),
        ([f"{file}:Lat"], "Lat: found nothing of this name; allowed: Late"),
        ([str(file)], "allowed: FILE.py:CLASS, FILE.c, FILE.rs, reno, "),
        ([f"{file}:Late", "--option", "grow=2"], "controller Late, __init__ at 0 s: TypeError: "),
        (["kernel:lp"], "allowed: a name that begins with kernel: with --backend linux only"),
        (["custom:Late"], 'CONTROLLER: found "custom:Late"; allowed: FILE.py:CLASS'),
        (["cubic", "--environment", "office"], '--environment: found "office"; allowed: internet, datacentre'),
        (["cubic", "--statement", str(tmp_path / "no.toml")], "--statement"),
    ):
        assert main(["evaluate", *argv, "--out", str(tmp_path / "other")]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "other").exists()
    assert main(["evaluate", "cubic", "--quick", "--rows", "12", "--out", str(file)]) == 2
    assert "allowed: a folder that can be written" in capsys.readouterr().err
    greedy = tmp_path / "greedy.py"
    greedy.write_text(LATE.replace("if ack.cwnd_limited", "if True").replace("Late", "Greedy"))
    assert main(["evaluate", f"{greedy}:Greedy", "--out", str(tmp_path / "other")]) == 2
    assert "application-limited (cwnd does not grow unless ack.cwnd_limited): cwnd rose" in capsys.readouterr().err


LATE = """
class Late:
    '''Additive increase, which raises an error after a while: the test of conformance is over by then.'''
    def __init__(self):
        self.acks = 0

    def on_ack(self, window, ack):
        self.acks += 1
        if self.acks > 20000:
            raise ValueError("enough of this")
        if ack.cwnd_limited:
            window.cwnd += ack.acked if window.in_slow_start else ack.acked / window.cwnd

    def on_congestion_event(self, window, in_flight):
        return 0.5 * window.cwnd
"""


@pytest.mark.usefixtures("undrawn")
def test_a_run_that_fails_is_exit_code_4_and_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CUBIC's runs are kept, no report is written, and the same command resumes once the class is corrected."""
    file = tmp_path / "late.py"
    file.write_text(LATE)
    out = tmp_path / "out"
    argv = ["evaluate", f"{file}:Late", "--quick", "--rows", "2", "--jobs", "1", "--out", str(out)]
    assert main(argv) == 4
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "runs failed, the first in row 2, 10 Mbit/s, 40 ms, 8 BDP, 1 flow, seed 1: " in error
    assert "controller Late" in error
    assert "enough of this" in error
    assert [p.name for p in out.iterdir()] == ["store"]
    file.write_text(LATE.replace("enough of this", "not again"))
    assert main(argv) == 4
    assert "not again" in capsys.readouterr().err
    file.write_text(LATE.replace("20000", "10**9"))
    assert main(argv) in (0, 1)
    assert (out / "report.html").exists()


def test_what_this_machine_cannot_do_is_exit_code_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    argv = ["evaluate", "kernel:lp", "--backend", "linux", "--quick", "--out", str(tmp_path / "out")]
    assert main(argv) == 3
    assert "ackclock linux build" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_stopped_is_exit_code_130_and_says_that_it_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ackclock", "evaluate", "reno", "--rows", "3", "--jobs", "1"]
    with subprocess.Popen(
        [*command, "--out", str(tmp_path / "out")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as stopped:
        deadline = time.monotonic() + 60
        while not list(tmp_path.rglob("*.parquet")) and time.monotonic() < deadline:
            time.sleep(0.02)
        stopped.send_signal(signal.SIGINT)
        printed, said = stopped.communicate(timeout=60)
    assert (stopped.returncode, printed) == (130, "")
    assert "the same command goes on from there" in said.splitlines()[-1]


@pytest.mark.usefixtures("undrawn")
def test_strict_is_exit_code_1_where_a_must_is_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["evaluate", "reno", "--quick", "--rows", "5", "--json", "--out", str(tmp_path / "out")]
    assert main(argv) == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert (row["level"], row["verdict"]) == ("MUST", "no difference shown")
    assert main([*argv, "--strict"]) == 1


STARVING = """
class Starving:
    '''Reno, but who begins after the first second hardly gets beyond 150 kB. Those who ask for less have the path for themselves.'''
    wants_pacing = True
    began = None
    acked = 0

    def on_ack(self, window, ack):
        self.began = ack.now if self.began is None else self.began
        self.acked += ack.acked
        if ack.cwnd_limited:
            window.cwnd += ack.acked if window.in_slow_start else ack.acked / window.cwnd
        if self.began > 1.0 and self.acked > 50:
            window.cwnd, window.pacing_rate = 2.0, 1000.0

    def on_congestion_event(self, window, in_flight):
        return 0.5 * window.cwnd
"""


def test_to_starve_large_transfers_is_worse(folder: Path, tmp_path: Path) -> None:
    """Few large transfers finish, so their completion times alone would not show the harm."""
    file = tmp_path / "starving.py"
    file.write_text(STARVING)
    evaluation = run(folder, f"{file}:Starving", "5")
    row = found(evaluation, "5")
    assert row.verdict == "worse"
    by = {j.measure.name: j for j in row.cells}
    assert row.measure == "mean time above 150 kB, each up to 10 s"
    assert by[row.measure].candidate.value > 8
    left = by["above 150 kB, not done after 10 s"]
    assert left.candidate.value > 0.8
    assert left.verdict == "worse"


def test_a_lower_bound_says_so(folder: Path) -> None:
    """A window that never grows cannot carry 10 MB over a satellite link within the run."""
    file = folder / "ten.py"
    file.write_text(LATE.replace("if ack.cwnd_limited", "if False").replace("Late", "Ten").replace("20000", "10**9"))
    evaluation = run(folder, f"{file}:Ten", "19")
    completion = next(j for j in found(evaluation, "19").cells if j.measure.name == "completion")
    assert (completion.candidate.value, completion.at_least) == (40.0, ("candidate",))
    cells = {c["measure"]: c for r in to_json(evaluation)["rows"] for c in r["cells"]}
    assert cells["completion"]["at_least"] == ["candidate"]
    assert cells["loss"]["at_least"] == []
    assert "<td>≥ 40 s</td>" in str(page.page(evaluation, statements={}))
    assert any("completion: ≥ 40 s, CUBIC 7.05 s" in "".join(line) for line in page.lines(evaluation))


@pytest.mark.deep
def test_no_legend_hides_what_is_drawn(tmp_path: Path) -> None:
    """Names may be long, arms numerous, and one panel's rows taller than the other's."""
    long = "a_file_with_a_very_long_name.py:AndAClass (with_an_option=12, and_another=0.7)"
    mine = Arm(role="candidate", name=long, controller="bbr3")
    rival = Arm(role="rival", name=f"another_{long}", controller="reno")
    executor = Threads(2)
    try:
        plan = Plan(candidate=mine, rival=rival, scale="quick", only=("4", "8", "12"))
        evaluation = evaluate(plan, tmp_path, executor)
    finally:
        executor.close()
    drawn = [*figures.overview(evaluation), *(figures.worst(evaluation, row) for row in evaluation.rows)]
    assert len(drawn) == 6
    with styled():
        for one in drawn:
            figure = one.draw()
            figure.draw_without_rendering()
            legends = [legend.get_window_extent() for legend in figure.legends]
            for ax in figure.axes:
                assert ax.get_legend() is None
                assert not any(box.overlaps(ax.get_window_extent()) for box in legends), one.name
                for line in ax.get_lines():
                    assert ax.get_ylim()[0] <= min(line.get_ydata()), one.name
                    assert max(line.get_ydata()) <= ax.get_ylim()[1], one.name
            whole = figure.bbox
            assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 for box in legends), one.name
    flows = figures.worst(evaluation, found(evaluation, "4")).data["candidate"]["group"].unique().sort().to_list()
    assert flows == ["candidate 1", "candidate 2"]


def test_the_authors_words_are_in_the_report(folder: Path) -> None:
    evaluation = run(folder, "cubic", "3")
    assert to_json(evaluation)["search"] is None
    made = page.page(evaluation, statements={"5.3.2": "It can be deployed host by host <now>."})
    from ackclock import report

    html = report.render(made, drawn={f.name: b"" for f in made.figures})
    assert "It can be deployed host by host &lt;now&gt;." in html
    assert html.count("statement missing") == 2


def test_false_alarms_are_counted(tmp_path: Path) -> None:
    """CUBIC compared with itself is rarely found worse, although the arms share no run."""
    plan = Plan(candidate=Arm(role="candidate", name="cubic", controller="cubic"), scale="quick", only=("2",))
    executor = Threads(2)
    try:
        counted = false_alarms.measure(plan, tmp_path, executor, seeds=8, repetitions=25)
    finally:
        executor.close()
    assert counted.tested == {"2": 25}
    assert counted.reports == counted.worse["2"]
    said = counted.to_json()
    assert said["interval"][0] <= said["row_rate"] <= said["interval"][1]
    assert said["row_rate"] <= 0.2


def test_the_recorded_rate_is_low() -> None:
    for kept in alarms():
        assert kept["repetitions"] >= 200
        assert kept["interval"][1] <= 0.05


@pytest.mark.deep
def test_killed_and_continued_gives_the_same_folder(tmp_path: Path) -> None:
    """SIGKILL interrupts the runs; the same command resumes, and its folder shows no trace of the interruption."""
    command = [sys.executable, "-m", "ackclock", "evaluate", "reno", "--quick", "--rows", "3,12", "--jobs", "1"]
    subprocess.run([*command, "--out", str(tmp_path / "whole")], check=True, capture_output=True)
    killed = subprocess.Popen(
        [*command, "--out", str(tmp_path / "parts")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    kept = tmp_path / "parts" / "store" / "data"
    deadline = time.monotonic() + 60
    while not list(kept.rglob("*.parquet")) and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    assert not (tmp_path / "parts" / "report.html").exists(), "killed before its end"
    subprocess.run([*command, "--out", str(tmp_path / "parts")], check=True, capture_output=True)
    for name in ("evaluate.json", "junit.xml", "report.html", "cells.parquet"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
