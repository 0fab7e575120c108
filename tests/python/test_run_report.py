"""The report and the figures of a user's own run."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ackclock
from ackclock import Run, report
from ackclock.cli import main
from ackclock.errors import InputError
from ackclock.plot import columns, panels
from ackclock.plot.style import new, styled
from ackclock.report import packed
from ackclock.report.run import page, watched

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def made(name: str, **changes: object) -> Run:
    scenario = ackclock.load(SCENARIOS / f"{name}.toml").set("duration", "6 s")
    for key, value in changes.items():
        scenario = scenario.set(key.replace("__", "."), value)
    return ackclock.run(watched(scenario))


@pytest.mark.parametrize(
    "name",
    ["first", "dumbbell-10", "wishbone-4", "transactions", "fetch-lossy", "video", "voice-beside-bulk", "pcc-shallow"],
)
def test_every_kind_of_traffic_has_its_page(name):
    run = made(name)
    html = report.render(page(run, name=f"{name}.toml"))
    assert run.digest in html
    assert len(html) < 2_000_000
    figures = set(re.findall(r'id="figure-([\w-]+)"', html))
    assert {"goodput", "queue"} <= figures
    if name in ("first", "wishbone-4"):
        assert {"cwnd", "rtt", "in_flight", "sequence-0"} <= figures


def test_a_report_changes_nothing_in_the_run():
    scenario = ackclock.load(SCENARIOS / "dumbbell-10.toml").set("duration", "6 s")
    assert ackclock.run(watched(scenario)).digest == ackclock.run(scenario).digest


def test_a_minute_of_one_flow_is_below_two_megabytes():
    run = ackclock.run(watched(ackclock.load(SCENARIOS / "reno-10m.toml")))
    assert len(report.render(page(run)).encode()) < 2_000_000


def test_a_hundred_flows_are_drawn_as_groups():
    scenario = ackclock.load(SCENARIOS / "dumbbell-10.toml").set("duration", "4 s")
    for group in (0, 1):
        scenario = scenario.set(f"flows.{group}.stagger", "10 ms").set(f"flows.{group}.count", 50)
    scenario = scenario.set("flows.0.name", "fifty of ours")
    run = ackclock.run(watched(scenario))
    goodput = next(panel for panel in panels.panels(run) if panel.name == "goodput")
    assert [curve.look.label for curve in goodput.curves] == ["50 x fifty of ours", "50 x reno"]
    assert all(curve.low is not None and (curve.low <= curve.y).all() for curve in goodput.curves)


def test_names_of_groups_cannot_carry_markup_into_the_page():
    run = made("first", flows__0__name="<script>alert(1)</script>")
    html = report.render(page(run))
    assert "<script>alert" not in html
    assert "<script>alert" not in packed.unpack(re.search(r'id="data-cwnd">([^<]+)<', html).group(1))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000), st.integers(8, 200))
def test_a_thinned_curve_keeps_its_extremes_and_its_ends(values, most):
    t, y = np.arange(len(values), dtype=float), np.array(values)
    thin_t, thin_y = panels.extremes(t, y, most)
    assert len(thin_t) <= max(most, 4) + 4
    assert (thin_y.min(), thin_y.max()) == (y.min(), y.max())
    assert (thin_t[0], thin_t[-1]) == (t[0], t[-1])
    assert (y[thin_t.astype(int)] == thin_y).all()


@given(st.text(max_size=400))
def test_what_is_packed_comes_back(text):
    letters = packed.pack(text)
    assert packed.unpack(letters) == text
    assert not set(letters) & set("<&")


def test_a_run_is_read_back_as_it_was_written(tmp_path):
    run = made("fetch-lossy")
    again = Run.read(run.write(tmp_path / "run"))
    assert (again.digest, again.seed, again.scenario) == (run.digest, run.seed, run.scenario)
    for name in run.tables:
        assert getattr(again, name).equals(getattr(run, name)) or not getattr(run, name).height


def test_reading_what_is_no_run_says_so(tmp_path):
    with pytest.raises(InputError, match="found no run"):
        Run.read(tmp_path)
    folder = made("first").write(tmp_path / "run")
    (folder / "flows.parquet").write_bytes(b"PAR1 not")
    with pytest.raises(InputError, match=r"flows\.parquet: found no table that can be read"):
        Run.read(folder)


@pytest.mark.parametrize("width", ["single", "double"])
@pytest.mark.parametrize(
    "wanted",
    [
        "cwnd.png",
        "rtt.pdf",
        "goodput.svg",
        "queue.png",
        "flows.goodput_bps=a.png",
        "samples.in_flight=b.svg",
        "acks.pipe=c.png",
    ],
)
def test_any_column_becomes_a_figure(tmp_path, monkeypatch, wanted, width):
    monkeypatch.chdir(tmp_path)
    file = columns.write(made("wishbone-4"), wanted, width=width)
    assert file.stat().st_size > 4000


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("cwnd", r"allowed: a file that ends in \.pdf, \.png, \.svg"),
        ("nothing.png", "allowed: NAME.png or TABLE.COLUMN=FILE"),
        ("flows.colour=a.png", 'found "colour"; allowed: flow, group'),
        ("chunks.stall_s=a.png", "found no rows of chunks in this run; it has flows"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_one_line(tmp_path, monkeypatch, wanted, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        columns.write(made("first"), wanted)


def test_the_command_writes_report_and_figures_and_draws_them_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first = str(SCENARIOS / "first.toml")
    assert main(["run", first, "--set=duration=5 s", "--out", "run", "--report", "a.html", "--plot", "cwnd.png"]) == 0
    assert main(["report", "run", "--report", "b.html", "--plot", "cwnd.pdf", "--plot-width", "single"]) == 0
    assert {"a.html", "b.html", "cwnd.png", "cwnd.pdf"} <= {path.name for path in tmp_path.iterdir()}
    assert "0 cubic" in capsys.readouterr().out
    assert main(["report", "run"]) == 2
    assert main(["report", "nowhere", "--report", "c.html"]) == 2
    assert main(["run", first, "--plot", "cwnd.png", "--plot-width", "wide"]) == 2
    assert main(["run", first, "--report", "no/such/folder.html"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_rows_that_are_events_are_drawn_as_distributions(tmp_path):
    """The completion times of a flow's transactions, a line for each initial window."""
    run = ackclock.run(ackclock.load(SCENARIOS / "transactions.toml").set("duration", "10 s"))
    with styled():
        _, ax = new(7.2, 3.2)
        columns._draw_column(ax, run, "transactions", "total_s")
    assert ax.get_ylabel() == "share of transactions"
    done = run.transactions.drop_nulls("total_s")
    medians = dict(done.group_by("initial_window").agg(pl.col("total_s").median()).iter_rows())
    drawn = {line.get_label(): line.get_xydata() for line in ax.lines}
    assert set(drawn) == {"cubic, IW 3", "cubic, IW 10"}
    for segments, median in medians.items():
        steps = drawn[f"cubic, IW {segments}"]
        assert abs(steps[steps[:, 1] >= 0.5][0][0] - median) < 0.01
    assert columns.write(run, f"transactions.total_s={tmp_path / 'x.pdf'}").stat().st_size > 1000
