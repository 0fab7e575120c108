"""Tests for per-flow results in frames, metrics, figures and comparisons of sweeps, and for the message that seeds have no effect."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import polars as pl
import pytest

from ackclock import Scenario, run, run_batch
from ackclock._results.run import SameRunWarning
from ackclock.cli import main
from ackclock.errors import InputError
from ackclock.plot.figure import styled
from ackclock.sweep import Axis, Precision, Store, Sweep, Threads, figures, read
from ackclock.sweep import run as run_sweep
from ackclock.sweep.measures import COLUMNS

AIMD = """
import os, time


class Aimd:
    def __init__(self, up=1.0):
        self.up = up
        until = time.thread_time() + float(os.environ.get("BEGINS_IN_S", 0))  # to be met in the middle of a sweep
        while time.thread_time() < until:
            pass

    def on_ack(self, window, ack):
        if ack.cwnd_limited:
            window.cwnd += ack.acked if window.in_slow_start else self.up * ack.acked / window.cwnd

    def on_congestion_event(self, window, in_flight):
        return window.cwnd / 2
"""

OWN = """
seeds = 10

[scenario]
duration = "3 s"
record = { warm_up = "1 s" }
network = { bottleneck = { rate = "10 Mbit/s", delay = "10 ms", queue = { kind = "drop-tail", limit = "1 BDP" } } }

[[scenario.flows]]
name = "ours"
congestion_control = "mine.py:Aimd"
start = { kind = "uniform", low = "0 s", high = "200 ms" }

[[scenario.flows]]
congestion_control = "cubic"
start = { kind = "uniform", low = "0 s", high = "200 ms" }

[axes]
"network.bottleneck.queue.limit" = ["0.5 BDP", "1 BDP", "4 BDP"]

[names]
"network.bottleneck.queue.limit" = "buffer"
"""

LINK = {"rate": "10 Mbit/s", "delay": "10 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
PLAIN = Scenario.from_dict(
    {"duration": "3 s", "network": {"bottleneck": LINK}, "flows": [{"congestion_control": "reno"}, {}]}
)
"""Scenario with two flows and no randomness."""


def test_own_controller_over_buffers_and_seeds_killed_and_continued(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(AIMD, encoding="utf-8")
    Path("own.toml").write_text(OWN, encoding="utf-8")
    command = [sys.executable, "-m", "ackclock", "sweep", "run", "own.toml", "--own-code", "--jobs", "2"]
    slow = {**os.environ, "BEGINS_IN_S": "0.05"}
    child = subprocess.Popen(command, env=slow, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = 0
    while not done and child.poll() is None:
        time.sleep(0.02)
        if Path("own.sweep/state.sqlite").exists():
            try:
                with Store("own.sweep") as store:
                    done = store.counts("own")["done"]
            except InputError:  # not started
                continue
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert 0 < done < 30, "killed in the middle"
    assert main(["sweep", "run", "own.toml", "--own-code", "--jobs", "2"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("30 of 30 runs done, ")
    assert " of them found" in said
    results = read("own.sweep")
    assert results.runs.height == 30

    assert set(results.performance.columns) - {"cell", "buffer", "seed", "flow"} <= COLUMNS, (
        "no axis can be called like one of them"
    )
    flows = results.flows
    assert flows.height == 60
    assert flows.filter(pl.col("flow") == 0)["name"].unique().to_list() == ["ours"]
    shares = flows.group_by("cell", "seed").agg(pl.col("share").sum(), pl.len())
    assert shares["len"].unique().to_list() == [2]
    assert shares["share"].to_list() == pytest.approx([1.0] * 30)
    # a single run reproduces the frame's numbers
    scenario = results.sweep.cells[2].scenario
    alone = run(scenario, seed=5)
    kept = flows.filter((pl.col("buffer") == "4 BDP") & (pl.col("seed") == 5))
    mine = alone.performance.filter(pl.col("of") == "flow")
    for column in ("goodput_bps", "share", "p95_rtt_s", "p95_delay_s", "loss_share", "retransmissions"):
        assert kept[column].to_list() == mine[column].to_list()
    told = results.cells("group.ours.share")
    means = results.groups.filter(pl.col("name") == "ours").group_by("cell").agg(pl.col("share").mean()).sort("cell")
    assert told["mean"].to_list() == pytest.approx(means["share"].to_list())
    assert (told["low"] < told["mean"]).all()

    assert main(["sweep", "plot", "own.toml", "--metric", "group.ours.share"]) == 0
    place = Path("own.sweep/sweeps/own")
    assert (place / "figures" / "groups-share.svg").stat().st_size > 10_000
    page = (place / "report.html").read_text(encoding="utf-8")
    assert "Groups of flows" in page
    assert pl.read_parquet(place / "performance.parquet").height == 30 * 5


def test_groups_that_an_axis_renames_go_by_number(tmp_path):
    axes = (Axis(key="flows.0.congestion_control", values=("vegas", "bbr"), name="first"),)
    results, _ = run_sweep(Sweep(name="a", scenario=PLAIN, axes=axes), tmp_path, Threads(1))
    assert results.groups["name"].to_list() == ["vegas", "cubic", "bbr", "cubic"]
    drawn = {f.name: f for f in figures.figures(results, kinds=["groups", "pareto"])}
    assert list(drawn) == ["groups-goodput-bps", "pareto"]
    assert drawn["groups-goodput-bps"].data["groups"]["group"].unique().sort().to_list() == ["cubic", "group 0"]
    with pytest.raises(InputError, match='found no group "nobody"; allowed: bbr, cubic, vegas'):
        results.cells("group.nobody.share")
    with pytest.raises(InputError, match='the column "speed" of performance'):
        results.cells("run.speed")
    shares = results.holding("group.0.share").runs["group.0.share"].to_list()
    assert shares == results.groups.filter(pl.col("group") == 0)["share"].to_list()


def test_values_with_labels_and_bars(tmp_path):
    queue = Axis.parse(
        "network.bottleneck.queue",
        [{"kind": "drop-tail", "limit": "60 packets"}, {"kind": "codel"}],
        name="queue",
        labels=["deep", "CoDel"],
    )
    sweep = Sweep(name="a", scenario=PLAIN, axes=(queue,))
    assert Sweep.from_dict(sweep.to_dict()) == sweep
    results, _ = run_sweep(sweep, tmp_path, Threads(1))
    assert results.runs["queue"].to_list() == ["deep", "CoDel"]
    (figure,) = figures.figures(results, metric="p95_rtt_s", kinds=["bars"])
    deep, codel = (1000 * v for v in results.runs["p95_rtt_s"])
    assert figure.title == f"95th percentile of RTT: CoDel {codel:.3g}, deep {deep:.3g} ms"
    assert figure.render()["png"]
    with pytest.raises(Exception, match=r"labels\.network\.bottleneck\.queue: .*a list of 2 different names"):
        Axis.parse("network.bottleneck.queue", [{"kind": "codel"}, {"kind": "pie"}], labels=["one", "one"])


def test_panels_have_axes_of_their_own_where_one_would_be_flat(tmp_path):
    loss = {"network.bottleneck.loss": {"kind": "bernoulli", "p": "1 %"}}
    axes = (
        Axis(key="network.bottleneck.queue.limit", values=("0.5 BDP", "1 BDP"), name="buffer"),
        Axis(key="flows.0.congestion_control", values=("reno", "cubic"), name="controller"),
        Axis(key="network.bottleneck.rate", values=("1 Mbit/s", "20 Mbit/s"), name="rate"),
    )
    results, _ = run_sweep(Sweep(name="a", scenario=PLAIN.set_all(loss), axes=axes), tmp_path, Threads(2))

    def tops(scale: str) -> list[float]:
        (figure,) = figures.figures(results, kinds=["lines"], x="buffer", by="controller", normalise=False, scale=scale)
        with styled():
            axes = [ax for ax in figure.draw().axes if ax.get_visible()]
        return [ax.get_ylim()[1] for ax in axes]

    assert len(set(tops("shared"))) == 1
    assert tops("auto") == tops("free")
    assert max(tops("free")) > 4 * min(tops("free"))
    with pytest.raises(InputError, match='--scale: found "other"'):
        tops("other")


def test_seeds_that_do_not_matter(tmp_path, monkeypatch, capsys):
    """One run repeated twenty times is a single observation: it has no interval, and the figure says so."""
    monkeypatch.chdir(tmp_path)
    with pytest.warns(SameRunWarning, match="all 3 seeds gave one and the same run: nothing in it is random"):
        run_batch(PLAIN, range(3))
    random = PLAIN.set("flows.1.start", {"kind": "uniform", "low": "0 s", "high": "1 s"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_batch(random, range(3))
        run_batch(PLAIN, [1])
    Path("plain.toml").write_text(PLAIN.to_toml(), encoding="utf-8")
    Path("vegas.toml").write_text(PLAIN.set("flows.0.congestion_control", "vegas").to_toml(), encoding="utf-8")
    assert main(["compare", "plain.toml", "vegas.toml", "--seeds", "4", "--json", "--until-width", "1%"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["all_seeds_gave_one_run"], found["seeds"]) == (True, 4)
    goodput, shares = found["metrics"]["goodput_bps"], found["metrics"]["group.0.share"]
    assert goodput["difference"]["low"] is goodput["difference"]["high"] is None
    assert shares["outcome"] == "plain is larger"
    assert (
        shares["second"]["value"]
        == run(PLAIN.set("flows.0.congestion_control", "vegas").measured()).performance["share"][0]
    )
    assert main(["compare", "plain.toml", "vegas.toml", "--seeds", "4"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "All 4 seeds gave one and the same run of each: nothing in it is random" in text

    axes = (Axis(key="flows.0.congestion_control", values=("reno", "vegas"), name="first"),)
    wanted = Precision(metric="goodput_bps", width=0.001)
    sweep = Sweep(name="a", scenario=PLAIN, axes=axes, seeds=(1, 2, 3))
    results, status = run_sweep(sweep, tmp_path / "s", Threads(1), precision=wanted)
    assert status.total == 6, "no seeds are added to what does not depend on them"
    assert results.same == [0, 1]
    cells = results.cells("goodput_bps")
    assert cells["n"].to_list() == [1, 1]
    assert not any(math.isfinite(v) for v in (*cells["low"], *cells["high"]))
    Path("grid.toml").write_text('scenario = "plain.toml"\nseeds = 3\n', encoding="utf-8")
    assert main(["sweep", "run", "grid.toml"]) == 0
    assert "all seeds of the cell gave one and the same run" in capsys.readouterr().out
    Path("grid.toml").write_text('scenario = "plain.toml"\nseeds = 1\n', encoding="utf-8")
    assert main(["sweep", "run", "grid.toml"]) == 0
    assert "one and the same" not in capsys.readouterr().out
