"""Tests that every command reads the folders that both backends write."""

from __future__ import annotations

from pathlib import Path

import pytest

from ackclock import Run, linux, tables
from ackclock._results.columns import Missing
from ackclock.cli import main
from ackclock.diff._compare import Agreement
from ackclock.linux._run import _joined


@pytest.mark.parametrize("scenario", ["first", "fetch-lossy"])
@pytest.mark.parametrize("backend", ["sim", "linux"])
def test_every_command_reads_what_a_backend_writes(
    kernel: linux.Kernel, tmp_path: Path, scenario: str, backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, page = tmp_path / "run", tmp_path / "run.html"
    short = ["--set", "duration=0.5 s", "--trace", "all"]
    assert main(["run", scenario, "--backend", backend, *short, "--out", str(folder), "--report", str(page)]) == 0
    again = tmp_path / "again.html"
    assert main(["report", str(folder), "--report", str(again), "--plot", str(tmp_path / "cwnd.svg")]) == 0
    beside = tmp_path / "beside.html"
    assert main(["run", scenario, *short, "--beside", str(folder), "--report", str(beside)]) == 0
    for kind in ("ss", "qlog", "tcp-probe"):
        out = tmp_path / (f"{kind}.sqlog" if kind == "qlog" else kind)
        assert main(["export", str(folder), "--as", kind, "--out", str(out)]) == 0, capsys.readouterr().err
    assert all(made.stat().st_size for made in (page, again, beside))
    read = Run.read(folder)
    for name, table in tables.tables().items():
        frame = getattr(read, name)
        wrong = {
            c: str(frame[c].dtype)
            for c in frame.columns
            if c in table.columns and str(frame[c].dtype) != table.columns[c].type
        }
        assert not wrong, name


@pytest.mark.parametrize("network", ["qdisc", "relay"])
def test_numbers_that_the_kernel_does_not_tell_are_dashes(
    kernel: linux.Kernel, tmp_path: Path, network: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kernel's queues do not count drops per flow, so dashes appear on the terminal and in a page made from the folder."""
    asked = ["--set", "duration=1 s", "--set", "record.performance=true", "--network", network]
    assert main(["run", "first", "--backend", "linux", *asked, "--out", str(tmp_path / "run")]) == 0
    (row,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("│ all "))
    assert (row.split("│")[6].strip() == "–") == (network == "qdisc")
    assert main(["report", str(tmp_path / "run"), "--report", str(tmp_path / "run.html")]) == 0


def test_columns_that_no_run_tells_are_joined_with_their_type() -> None:
    one = {"flows": {"responder": ("bool", Missing(2))}}
    other = {"flows": {"responder": ("bool", b"")}}
    joined = _joined([1, 2, 3], [one, other, one])["flows"]["responder"]
    assert joined[0] == "bool"
    assert len(joined[1]) == 4


def test_the_difference_of_two_kernels_is_the_second_minus_the_first() -> None:
    assert Agreement(quantity="goodput", simulator=100.0, kernel=80.0, of_first=True).difference == pytest.approx(-0.2)
    assert Agreement(quantity="goodput", simulator=100.0, kernel=80.0).difference == pytest.approx(0.25)
