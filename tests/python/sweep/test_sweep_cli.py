from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import polars as pl
import pytest

from ackclock import Scenario
from ackclock.cli import main
from ackclock.plot.grid import front
from ackclock.sweep import Axis, Sweep, Threads, figures, read
from ackclock.sweep import run as run_sweep
from ackclock.sweep.look import choose, view

BASE = {
    "duration": "1 s",
    "network": {"bottleneck": {"rate": "5 Mbit/s", "delay": "10 ms", "loss": {"kind": "bernoulli", "p": "1 %"}}},
    "flows": [{"congestion_control": "reno"}],
}

GRID = """
scenario = "base.toml"
seeds = 3
[axes]
"flows.0.congestion_control" = ["reno", "cubic"]
"network.bottleneck.rate" = ["2 Mbit/s", "5 Mbit/s", "9 Mbit/s"]
[names]
"network.bottleneck.rate" = "rate"
"""


@pytest.fixture
def grid(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("base.toml").write_text(Scenario.from_dict(BASE).to_toml(), encoding="utf-8")
    Path("grid.toml").write_text(GRID, encoding="utf-8")
    return tmp_path


def test_a_sweep_from_file_to_report(grid, capsys):
    assert main(["sweep", "run", "grid.toml", "--jobs", "2"]) == 0
    assert "18 of 18 runs done\n" in capsys.readouterr().out
    assert main(["sweep", "run", "grid.toml"]) == 0
    assert "18 of 18 runs done, 18 of them found\n" in capsys.readouterr().out
    assert main(["sweep", "resume", "grid.sweep", "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert status["runs"] == {"pending": 0, "running": 0, "done": 18, "failed": 0}
    assert main(["sweep", "status", "grid.sweep"]) == 0
    assert capsys.readouterr().out == "grid: 18 runs: 18 done\n"
    assert main(["sweep", "export", "grid.toml", "--csv", "out.csv"]) == 0
    with Path("out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 18
    assert rows[17]["rate"] == "9 Mbit/s"
    assert float(rows[17]["goodput_bps"]) == read("grid.sweep").runs["goodput_bps"][17]
    kinds = [f"--kind={kind}" for kind in ("lines", "heat-map", "cdf", "pareto")]
    assert main(["sweep", "plot", "grid.sweep", "--metric", "retransmissions", "--format", "png", *kinds]) == 0
    out = Path("grid.sweep/sweeps/grid")
    assert str(out / "plot.html") in capsys.readouterr().out
    page = (out / "plot.html").read_text(encoding="utf-8")
    for part in ("Retransmissions against rate", "Throughput against delay", "18 runs: 18 done", "9 Mbit/s"):
        assert part in page
    assert "#claims" not in page
    names = {"lines-retransmissions", "heat-map-retransmissions", "cdf-retransmissions", "pareto"}
    assert {p.stem for p in (out / "figures").glob("*.png")} == names
    assert {p.stem for p in (out / "figures").glob("*.svg")} == names
    assert not list((out / "figures").glob("*.pdf")), "only what was asked for: fonts take long to embed"
    means = pl.read_csv(out / "figures/lines-retransmissions.csv")
    cell = read("grid.sweep").runs.filter(rate="5 Mbit/s", cell=4)["retransmissions"]
    assert means.filter(pl.col("rate, Mbit/s") == 5)["mean"][1] == pytest.approx(cell.mean())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nothing.toml"], "nothing.toml: found an unreadable file"),
        (
            ["status", "grid.toml"],
            "grid.sweep: found no sweep; allowed: a folder that `ackclock sweep run` has written",
        ),
        (["resume", "grid.toml"], "grid.sweep: found no sweep"),
        (["run", "grid.toml", "--jobs", "2", "--scheduler", "tcp://a:1"], "--jobs: found it beside --scheduler"),
        (["run", "grid.toml", "--slurm", "2", "--pbs", "2"], "--pbs: found it beside --slurm"),
        (["run", "grid.toml", "--worker", "cores=2"], "--worker: found it without a batch system"),
        (["run", "grid.toml", "--slurm", "2", "--worker", "cores"], '--worker: found "cores"; allowed: KEY=VALUE'),
        (["run", "grid.toml", "--until-width", "0"], '--until-width: found "0"; allowed: a share above zero'),
        (
            ["run", "grid.toml", "--until-width", "1%", "--metric", "godput"],
            'metric: found "godput"; did you mean "goodput_bps"?; allowed: one of 25 names',
        ),
        (["run", "base.toml"], "base.toml: duration: found an unknown key"),
        (["export", "grid.toml"], "--csv: found nothing"),
    ],
)
def test_what_cannot_be_asked(grid, capsys, arguments, message):
    assert main(["sweep", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert sorted(p.name for p in grid.iterdir()) == ["base.toml", "grid.toml"]


def test_what_width_was_reached(grid, capsys):
    narrow = ["sweep", "run", "grid.toml", "--until-width"]
    assert main([*narrow, "20%"]) == 0
    said = capsys.readouterr()
    assert re.search(r"% of the time simulating \((one|\d+) at a time\)", said.err)
    line = said.out.splitlines()[-1]
    cells = (
        read("grid.sweep")
        .cells("goodput_bps")
        .with_columns(((pl.col("high") - pl.col("low")) / pl.col("mean")).alias("w"))
    )
    widest = cells.row(cells["w"].arg_max(), named=True)
    assert widest["w"] <= 0.2
    assert line == (
        f"interval of goodput_bps: at most {widest['w'] * 100:.3g} % of the mean, with {widest['n']} seeds "
        f"({widest['flows.0.congestion_control']}, {widest['rate']})"
    )
    assert main([*narrow, "0.01%", "--most-seeds", "10"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert "; wider than 0.01 %: 6 of 6 cells; more with a larger --most-seeds" in line
    assert main([*narrow, "1%", "--metric", "marked"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("interval of marked: no share of a mean that is zero")


def test_figures_follow_the_axes(tmp_path):
    scenario = Scenario.from_dict(BASE)
    controller = Axis(key="flows.0.congestion_control", values=("reno", "cubic"), name="controller")
    loss = Axis(
        key="network.bottleneck.loss", values=({"kind": "none"}, {"kind": "bernoulli", "p": "2 %"}), name="loss"
    )
    rate = Axis(key="network.bottleneck.rate", values=("2 Mbit/s", "50 Mbit/s"), name="rate")
    results, _ = run_sweep(
        Sweep(name="a", scenario=scenario, axes=(controller, loss, rate), seeds=(1, 2)), tmp_path / "a", Threads(2)
    )
    assert results.runs["loss"].unique(maintain_order=True).to_list() == ["none", "bernoulli, p 2 %"]
    seen = view(results, "goodput_bps")
    look = choose(seen)
    controllers, losses, rates = seen.axes
    assert (look.x, look.by, look.panels, look.fixed, look.averaged) == (rates, controllers, (losses,), {}, ())
    look = choose(seen, x="rate", by="loss")
    assert (look.x, look.by, look.panels) == (rates, losses, (controllers,))
    with pytest.raises(Exception, match='--x: found "loss", whose values are no numbers'):
        choose(seen, x="loss")
    plain, _ = run_sweep(Sweep(name="b", scenario=scenario, axes=(controller,)), tmp_path / "b", Threads(1))
    assert [f.name for f in figures.figures(plain)] == ["bars-goodput-bps", "pareto"]
    with pytest.raises(Exception, match="found axes that do not make lines"):
        figures.figures(plain, kinds=["lines"])
    with pytest.raises(Exception, match=r'--kind: found "barrs"; allowed: .*nearest: bars'):
        figures.figures(plain, kinds=["barrs"])
    with pytest.raises(Exception, match="found no finished run with a value of completion_s"):
        figures.figures(plain, metric="completion_s")


def test_the_front_is_what_no_other_beats():
    import numpy as np

    rng = np.random.default_rng(1)
    for _ in range(50):
        delay, speed = rng.integers(0, 6, 12).astype(float), rng.integers(0, 6, 12).astype(float)
        found = {(delay[i], speed[i]) for i in front(delay, speed)}
        slow = {
            (d, s)
            for d, s in zip(delay, speed, strict=True)
            if not any((a <= d and b >= s) and (a, b) != (d, s) for a, b in zip(delay, speed, strict=True))
        }
        assert found == slow


def test_compare_says_what_differs(grid, capsys):
    for name, changes in (("slow", {"rate": "4 Mbit/s"}), ("fast", {"rate": "8 Mbit/s"})):
        scenario = Scenario.from_dict(BASE)
        for key, value in changes.items():
            scenario = scenario.set(f"network.bottleneck.{key}", value)
        Path(f"{name}.toml").write_text(scenario.to_toml(), encoding="utf-8")
    arguments = [
        "--seeds",
        "12",
        "--json",
        "--metric",
        "goodput_bps",
        "--metric",
        "flows.rtos.max",
        "--metric",
        "marked",
    ]
    assert main(["compare", "slow.toml", "fast.toml", *arguments, "--out", "kept"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["seeds"] == 12
    outcomes = {name: m["outcome"] for name, m in found["metrics"].items()}
    assert outcomes == {
        "goodput_bps": "fast is larger",
        "flows.rtos.max": outcomes["flows.rtos.max"],
        "marked": "equal in every pair",
    }
    runs = read_arms(Path("kept"))
    difference = found["metrics"]["goodput_bps"]["difference"]
    assert difference["value"] == pytest.approx(runs[0] - runs[1])
    assert difference["high"] < 0
    # equal data: no difference can be shown
    assert main(["compare", "slow.toml", "base.toml", "--seeds", "2"]) == 0
    assert "no difference shown" in capsys.readouterr().out
    assert main(["compare", "slow.toml", "slow.toml", "--seeds", "2", "--json"]) == 0
    same = json.loads(capsys.readouterr().out)
    assert same["arms"] == ["first", "second"]
    assert {m["outcome"] for m in same["metrics"].values()} <= {"equal in every pair", "no difference shown"}
    assert main(["compare", "slow.toml", "fast.toml", "--metric", "speed"]) == 2
    assert '--metric: found "speed"' in capsys.readouterr().err


def read_arms(folder: Path) -> tuple[float, float]:
    """Return both arms' mean goodput, from the files alone."""
    rows = pl.read_parquet(folder / "data/1/runs/*.parquet")
    means = rows.group_by("scenario").agg(pl.col("goodput_bps").mean())["goodput_bps"].sort()
    assert means.len() == 2
    return float(means[0]), float(means[1])


def test_compare_adds_pairs_until_the_difference_is_narrow(grid, capsys):
    Path("cubic.toml").write_text(
        Scenario.from_dict(BASE).set("flows.0.congestion_control", "cubic").to_toml(), encoding="utf-8"
    )
    assert main(["compare", "base.toml", "cubic.toml", "--seeds", "5", "--until-width", "25%", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    m = found["metrics"]["goodput_bps"]
    assert found["seeds"] > 5
    assert m["difference"]["high"] - m["difference"]["low"] <= 0.25 * m["second"]["value"]


@pytest.mark.parametrize("width", [60, 80, 100])
def test_names_of_metrics_are_whole_in_a_narrow_terminal(width, tmp_path, monkeypatch, capsys):
    """Regression: three metrics of a group were all called "group.quinn:cubic.…"."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.chdir(tmp_path)
    network = {"bottleneck": {"rate": "2 Mbit/s", "delay": "5 ms", "loss": {"kind": "bernoulli", "p": "1 %"}}}
    flows = [{"name": name, "congestion_control": "cubic"} for name in ("a-long-name", "another")]
    Path("x.toml").write_text(Scenario.from_dict({"duration": "1 s", "network": network, "flows": flows}).to_toml())
    assert main(["compare", "x.toml", "x.toml", "--seeds", "2", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "…" not in out
    column = [line.split("│")[1].strip() for line in out.splitlines() if line.startswith("│")]
    assert "group.a-long-name.goodput_bps" in "".join(column)
    assert max(map(len, out.splitlines())) <= width
