"""A flow's share of a bottleneck is at most 1, and its interval lies between 0 and 1, in drawn scenarios whose flows start and stop at any time."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from typing import Any

import pytest
from printed import Page, joint, terminal_tables

import ackclock
from ackclock import Scenario, metrics, report
from ackclock.cli import main
from ackclock.errors import InputError
from ackclock.judge.intervals import mean_interval
from ackclock.report.run import page
from ackclock.sweep import Sweep, Threads, run
from ackclock.sweep.axes import Axis
from ackclock.sweep.compare import compare
from ackclock.sweep.figures import figures
from ackclock.sweep.look import by_group, view

SHARES = ("jain", "retransmission_share", "group.ours.share", "group.theirs.share")


def drawn(seed: int) -> dict[str, Any]:
    """Two groups of flows; each starts independently, and ends by a stop, by running out of data, or with the run."""
    draw = random.Random(seed)

    def group(name: str) -> dict[str, Any]:
        made: dict[str, Any] = {"name": name, "congestion_control": draw.choice(["reno", "cubic", "bbr"])}
        made["count"] = draw.randint(1, 3)
        start = draw.choice([0, draw.randint(1, 900)])
        made["start"] = {"kind": "uniform", "low": f"{start} ms", "high": f"{start + draw.randint(1, 300)} ms"}
        ends = draw.choice(["run", "stop", "bytes"])
        if ends == "stop":
            made["stop"] = f"{draw.randint(1300, 1900)} ms"
        elif ends == "bytes":
            made["workload"] = {"kind": "transfer", "bytes": f"{draw.randint(20, 400)} KB"}
        made["stack"] = draw.choice([{}, {"timestamps": False}, {"smss": "8960 bytes"}])
        return made

    queue = {"kind": "drop-tail", "limit": f"{draw.choice([1, 4])} BDP"}
    network = {"bottleneck": {"rate": f"{draw.choice([2, 5, 9])} Mbit/s", "delay": "5 ms", "queue": queue}}
    record = {"warm_up": draw.choice(["0 s", "700 ms"]), "performance": True}
    return {"duration": "2 s", "network": network, "flows": [group("ours"), group("theirs")], "record": record}


def rate(text: str) -> float:
    number, _, unit = text.partition(" ")
    return float(number) * {"Mbit/s": 1e6, "kbit/s": 1e3, "bit/s": 1.0}[unit]


def percent(text: str) -> float:
    return 0.0 if text == "< 0.01 %" else float(text.removesuffix(" %")) / 100


@pytest.mark.parametrize("seed", range(10))
def test_no_table_gives_flows_more_than_the_link(seed, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "160")
    scenario = Scenario.from_dict(drawn(seed))
    file = tmp_path / "drawn.toml"
    file.write_text(scenario.to_toml(), encoding="utf-8")
    carries = metrics.capacity_bps(scenario)
    warm = scenario.record.warm_up != "0 s"  # data that arrived earlier may be acknowledged after it
    assert main(["run", str(file)]) == 0
    table = next(t for t in terminal_tables(capsys.readouterr().out)[1] if t[0][0] == "after the warm-up")
    rows = {row[0]: row for row in table[1:]}
    for name in ("ours", "theirs", "all"):
        assert rate(rows[name][1]) <= (1.03 if warm else 1.0005) * carries, name
    assert sum(percent(rows[name][2]) for name in ("ours", "theirs")) == pytest.approx(1, abs=0.011)
    made = ackclock.run(scenario)
    said = "".join(Page(report.render(page(made))).text)
    told = [
        rate(found)
        for found in re.findall(r"(?:ours|theirs|and) ([\d.]+ [Mk]?bit/s)|: ([\d.]+ [Mk]?bit/s) together", said)
        for found in found
        if found
    ]
    assert len(told) == 3
    assert max(told) <= 1.0005 * carries
    assert re.search(r"([\d.]+) % of what the bottleneck can carry", said)
    assert metrics.utilisation(made.flows, scenario) <= 1
    assert max(made.performance["goodput_bps"].drop_nulls()) > 0


@pytest.mark.parametrize("seed", range(10))
def test_goodput_of_several_flows_is_bytes_over_one_window(seed, tmp_path):
    """Rows of the table and metrics of a sweep, against the flows' own bytes and times."""
    scenario = Scenario.from_dict(drawn(seed))
    made = ackclock.run(scenario, seed=seed)
    warm_s = scenario.record.engine()["warm_up_ns"] / 1e9
    for row in made.rows("performance"):
        if row["of"] != "flow":
            bits, span = joint(made, row["group"], since_s=warm_s)
            assert row["goodput_bps"] == (pytest.approx(bits / span, rel=1e-9) if span else None)
    bits, span = joint(made)
    axis = Axis(key="network.bottleneck.delay", values=("5 ms",))
    swept, _ = run(Sweep(name="one", scenario=scenario, axes=(axis,), seeds=(seed,)), tmp_path / "s", Threads(1))
    found = swept.runs["goodput_bps"][0]
    assert found == pytest.approx(bits / span, rel=1e-9)
    assert found <= 1.0005 * metrics.capacity_bps(scenario)
    whole = next(row for row in made.rows("performance") if row["of"] == "run")
    assert view(swept, "run.goodput_bps").runs["run.goodput_bps"][0] == whole["goodput_bps"]


@pytest.mark.parametrize("seed", range(6))
def test_no_share_of_a_sweep_or_a_comparison_leaves_its_bounds(seed, tmp_path):
    base = Scenario.from_dict(drawn(seed))
    axis = Axis(key="network.bottleneck.rate", values=("2 Mbit/s", "7 Mbit/s"))
    executor = Threads(1)
    found, _ = run(Sweep(name="drawn", scenario=base, axes=(axis,), seeds=(1, 2, 3)), tmp_path / "s", executor)
    for metric in ("goodput_bps", "run.goodput_bps", "group.ours.goodput_bps"):
        shares = view(found, metric).normalised([metric]).runs[metric].drop_nulls()
        assert shares.max() <= 1, metric
        assert shares.min() >= 0, metric
        for figure in figures(found, metric=metric, kinds=["lines"], normalise=True):
            table = figure.data["lines"]
            assert table["low"].min() >= 0, metric
            assert table["high"].max() <= 1, metric
    groups = by_group(found)
    assert groups is not None
    assert groups.normalised(["goodput_bps"]).runs["goodput_bps"].max() <= 1
    for metric in SHARES:
        told = found.cells(metric).drop_nulls("mean")
        ends = [*told["low"], *told["high"]]
        assert all(math.isinf(end) or 0 <= end <= 1 for end in ends), metric
    other = base.set("flows.0.congestion_control", "cubic").set("flows.1.congestion_control", "reno")
    compared = compare(base, other, executor, seeds=3, metrics=SHARES)
    for metric, one in compared.metrics.items():
        if one.difference.n > 1:
            assert 0 <= one.first.low <= one.first.high <= 1, metric
            assert 0 <= one.second.low <= one.second.high <= 1, metric
            assert -1 <= one.difference.low <= one.difference.high <= 1, metric


@pytest.mark.parametrize(
    ("flow", "payload", "packet"),
    [
        ({}, 1448, 1500), ({"stack": {"timestamps": False}}, 1460, 1500), ({"stack": {"smss": "8960 bytes"}}, 8960, 9012),
        ({"stack": {"smss": "536 bytes", "timestamps": False}}, 536, 576),
        ({"transport": "udp", "workload": {"kind": "constant-rate", "rate": "6 Mbit/s"}}, 1472, 1500),
        ({"transport": "udp", "workload": {"kind": "constant-rate", "rate": "6 Mbit/s", "payload": "100 bytes"}}, 100, 128),
    ],
)  # fmt: skip
def test_a_full_bottleneck_carries_the_payload_of_its_own_packets(flow, payload, packet):
    """The flow fills the bottleneck: its goodput is 95 to 100 % of the payload rate, whatever its packet size."""
    bottleneck = {"rate": "4 Mbit/s", "delay": "2 ms", "queue": {"kind": "drop-tail", "limit": "100 packets"}}
    scenario = Scenario.from_dict({"duration": "6 s", "network": {"bottleneck": bottleneck}, "flows": [flow]})
    assert metrics.capacity_bps(scenario) == pytest.approx(4e6 * payload / packet)
    assert 0.95 < metrics.utilisation(ackclock.run(scenario).flows, scenario) <= 1


def test_a_share_of_what_changes_is_refused_and_drawn_as_measured(tmp_path):
    """A bottleneck that becomes faster than its first rate would give shares above 1."""
    faster = {"kind": "schedule", "steps": [{"at": "500 ms", "rate": "8 Mbit/s"}]}
    network = {"bottleneck": {"rate": "2 Mbit/s", "delay": "5 ms", "capacity": faster}}
    base = Scenario.from_dict({"duration": "2 s", "network": network, "flows": [{}]})
    axis = Axis(key="network.bottleneck.rate", values=("2 Mbit/s", "3 Mbit/s"))
    found, _ = run(Sweep(name="faster", scenario=base, axes=(axis,), seeds=(1,)), tmp_path / "s", Threads(1))
    with pytest.raises(InputError, match=r"--normalise: found [\d.]+ times what the bottleneck of goodput_bps carries"):
        view(found, "goodput_bps").normalised(["goodput_bps"])
    assert "share of the bottleneck" not in figures(found)[0].caption


def test_an_interval_within_bounds_keeps_its_value():
    wide = mean_interval([0.1, 0.9, 1.0])
    assert wide.high > 1
    cut = wide.within(0, 1)
    assert (cut.value, cut.low, cut.high) == (wide.value, max(wide.low, 0.0), 1.0)
    assert replace(cut, low=wide.low, high=wide.high) == wide
