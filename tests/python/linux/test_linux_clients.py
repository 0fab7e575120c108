"""Tests for clients that arrive and leave, for populations and for the kernel part of studies: the guest's input, and
runs in the real kernel, if built.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ackclock
from ackclock import linux, studies
from ackclock.errors import InputError, ScenarioError
from ackclock.linux import _translate
from ackclock.linux._facts import Has
from ackclock.study import Claim, Criterion, Data, Evidence, Experiment, Plan, Tables, at_least
from ackclock.study.cells import Cell, collect
from ackclock.study.kernel import KernelPart
from ackclock_studies.iw10 import testbed

CONTROLLERS = ["cubic", "reno", "westwood"]
ROOT = Path(__file__).resolve().parents[3]


def job(scenario: ackclock.Scenario, network: Any = "auto") -> dict[str, Any]:
    return _translate.job(
        json.loads(scenario.to_engine_json()), 1, network, Has(release="7.3.4", controllers=tuple(CONTROLLERS))
    )


def clients(duration_s: float = 5, load: float = 0.5, **more: Any) -> ackclock.Scenario:
    return testbed.loaded(
        testbed.FAST, testbed.SINGLE, load, "mix", duration_s=duration_s, **testbed.KERNEL_HOSTS, **more
    )


def test_clients_over_one_path_meet_the_kernels_disciplines_and_others_the_relay() -> None:
    plain = job(clients())
    assert plain["network"]["kind"] == "qdisc"
    assert ["net/ipv4/tcp_max_syn_backlog", "4096"] in [list(pair) for pair in plain["hosts"][0]["sysctl"]]
    assert job(clients(rtts_s=(0.1, 0.2)))["network"]["kind"] == "relay"


def test_populations_need_the_relay_and_a_thread_for_each_client() -> None:
    scenario = ackclock.load(ROOT / "scenarios" / "population.toml")
    assert job(scenario)["network"]["kind"] == "relay"
    with pytest.raises(ScenarioError, match=r'workload\.kind: found "population"; .*--network relay'):
        job(scenario, "qdisc")
    with pytest.raises(ScenarioError, match=r"flows\.0\.workload\.clients: found 1001; allowed: at most 1000, with"):
        job(scenario.set("flows.0.workload.clients", 1001))


def test_westwood_of_ucla_is_not_what_the_kernel_calls_so() -> None:
    scenario = clients(congestion_control="westwood-plus")
    assert job(scenario)["hosts"][0]["congestion_control"] == "westwood"
    with pytest.raises(
        ScenarioError, match='found "westwood"; allowed: westwood-plus, which the kernel calls westwood'
    ):
        job(scenario.set("flows.0.congestion_control", "westwood"))
    named = scenario.set("flows.0.congestion_control", "kernel:westwood")
    assert job(named)["hosts"][0]["congestion_control"] == "westwood"


@pytest.mark.parametrize("name", ["prr", "iw10", "large-pipes"])
def test_every_claim_is_asked_of_the_kernel_or_told_why_not(name: str) -> None:
    study = studies.get(name)
    assert study.kernel is not None
    part = study.kernel()
    asked, left_out = [claim.id for claim in part.claims], list(part.left_out)
    assert sorted(asked + left_out) == sorted(claim.id for claim in study.claims)
    for scenario in part.scenarios().values():
        flow = scenario.flows[0]
        assert flow.recovery is None or name == "prr"  # the kernel has more rules than those tested here
        if flow.recovery is None:
            job(scenario.set("flows.0.congestion_control", "cubic"))


def test_a_study_without_a_part_for_the_kernel_is_refused_with_those_that_have_one() -> None:
    from ackclock.cli import _study

    with pytest.raises(InputError, match=r'--backend linux: found "golf"; allowed: .*\biw10\b.*'):
        _study.run_in_linux(["golf"], seeds=None, jobs=1, out=None, as_json=True)
    with pytest.raises(InputError, match="backend is 'ns3'; allowed: linux, sim"):
        Plan(backend="ns3")


def test_claims_stand_side_by_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def run(plan: Plan) -> Data:
        asked.append((plan.backend, plan.scale))
        value = 3.0 if plan.backend == "linux" else 1.0
        return Data(tables={"x": pl.DataFrame({"value": [value]})}, digests=[plan.backend], runs=1)

    def measure(tables: Tables) -> Sequence[Evidence]:
        return [Evidence(label="value", value=float(tables["x"]["value"][0]), bound=at_least(2), seeds=1)]

    monkeypatch.setattr(
        linux, "installed", lambda: linux.Kernel(path=Path("x"), about={"release": "0.0", "controllers": []})
    )
    study = studies.get("iw10")
    claim = Claim(id="I1", place="p", statement="s", direction=Criterion(measure=measure))
    part = KernelPart(
        summary="what differs",
        experiments=(Experiment(name="x", title="x", run=run),),
        claims=(claim,),
        left_out={"I2": "cannot be carried out"},
        sections=lambda tables: (),
        scenarios=dict,
    )
    result = part.run(study, jobs=1)
    assert asked == [("linux", "kernel"), ("sim", "kernel")]
    (row,) = result.to_json()["claims"]
    assert (row["linux"]["direction"]["verdict"], row["sim"]["direction"]["verdict"], row["recorded"]) == (
        "holds",
        "fails",
        "holds",
    )
    text = result.write(tmp_path / "out").read_text()
    assert "cannot be carried out" in text
    assert "✓ holds: 3" in text
    assert "✗ fails: 1" in text
    assert pl.read_parquet(tmp_path / "out" / "tables" / "sim" / "x.parquet")["value"][0] == 1.0


SAME = ("flow", "idx", "batch", "request", "initial_window", "bytes", "done", "segments_sent", "retransmissions")


@pytest.mark.parametrize("network", ["qdisc", "relay"])
def test_the_same_clients_come_to_both_backends(kernel: linux.Kernel, network: Any) -> None:
    scenario = clients(duration_s=4, load=0.3)
    real = linux.run(scenario, seed=3, network=network)
    ours = ackclock.run(scenario, seed=3)
    assert real.transactions.height == ours.transactions.height > 100
    assert real.transactions["arrival_s"].to_list() == ours.transactions["arrival_s"].to_list()
    assert real.transactions.select(SAME).equals(ours.transactions.select(SAME))
    assert set(real.transactions["initial_window"]) == {3, 10}
    for column in ("connect_s", "first_byte_s", "total_s"):
        apart = (real.transactions[column] - ours.transactions[column]).abs()
        assert apart.max() < 200e-6, column  # the kernel's clock continues while its sockets are read
    told, wanted = real.transaction_summary, ours.transaction_summary
    assert told.select("started", "completed").equals(wanted.select("started", "completed"))
    # a simulated connection ends when its application has seen both ends close, a kernel connection when the last FIN
    # is acknowledged
    assert ((told["max_open"] / wanted["max_open"]).is_between(0.7, 1.0)).all()
    if network == "relay":
        counted = ("arrivals", "arrivals_syn_fin", "dropped_queue", "max_packets")
        forward = [r.links.filter(pl.col("link") == testbed.BOTTLENECK).select(counted) for r in (real, ours)]
        assert forward[0].equals(forward[1])


def test_clients_repeat_bit_by_bit_under_loss_and_whatever_they_do(kernel: linux.Kernel) -> None:
    scenario = ackclock.load(ROOT / "scenarios" / "web-pages.toml").set("duration", "8 s").set("record.warm_up", "2 s")
    scenario = scenario.set("network.bottleneck.loss", {"kind": "bernoulli", "p": "1 %"})
    first, second = (linux.run(scenario, seed=4, network="relay") for _ in range(2))
    assert first.digest == second.digest
    ours = ackclock.run(scenario, seed=4)
    drawn = ("flow", "batch", "bytes")
    key = [*drawn, "arrival_s"]
    arrived = [r.transactions.filter(pl.col("request") == 0).select(key).unique().sort(key) for r in (first, ours)]
    assert arrived[0].select("flow", "batch", "arrival_s").equals(arrived[1].select("flow", "batch", "arrival_s"))
    done = [r.transactions["done"].sum() for r in (first, ours)]
    assert done[0] > 20
    assert abs(done[0] - done[1]) < 0.2 * done[1]
    assert first.transactions["retransmissions"].sum() > 0
    assert first.links["held_before"].sum() > 0  # counted from the end of the warm-up


def test_a_population_is_drawn_alike(kernel: linux.Kernel) -> None:
    scenario = ackclock.load(ROOT / "scenarios" / "population.toml").set("flows.0.workload.clients", 20)
    scenario = scenario.set("duration", "60 s")
    real, ours = linux.run(scenario, seed=2), ackclock.run(scenario, seed=2)
    assert real.clients.equals(ours.clients)
    assert real.fetches.height == ours.fetches.height == 60
    assert real.fetches["done"].all()
    clean = ours.fetches["data_retransmissions"] + real.fetches["data_retransmissions"] == 0
    apart = (real.fetches["total_s"] / ours.fetches["total_s"]).filter(clean)
    assert apart.is_between(0.98, 1.02).mean() > 0.9


def test_cells_run_on_the_kernel(kernel: linux.Kernel) -> None:
    cell = Cell(
        scenario=clients(duration_s=2, load=0.1),
        keys={"cell": "a"},
        stream="test",
        seeds=2,
        needs={"transactions": ("arrival_s", "done")},
    )
    real, ours = (collect("x", [cell], Plan(scale="kernel", backend=b, jobs=2)) for b in ("linux", "sim"))
    assert real.tables["x.transactions"].equals(ours.tables["x.transactions"])
    assert real.digests != ours.digests
