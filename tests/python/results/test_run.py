from __future__ import annotations

import itertools
import json
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Mapping

import numpy as np
import polars as pl
import pytest
from conftest import MINIMAL, ROOT

from ackclock import InputError, Scenario, ScenarioError, load, run, run_batch, run_many
from ackclock._files import OWN, staged
from ackclock._results import run as _run
from ackclock._results.result import TABLES
from ackclock._results.run import check_memory
from ackclock._results.summary import quantile
from ackclock.metrics import capacity_bps, goodput_bps, jain, sample_mean, utilisation

SCENARIOS = sorted((ROOT / "scenarios").glob("*.toml"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda p: p.stem)
def test_every_scenario_runs(path):
    scenario = load(path).set("duration", "8 s")
    first, again = run(scenario), run(scenario)
    assert first.digest == again.digest
    assert first.flows.height == sum(group.count for group in scenario.flows) or first.fetches.height > 0
    assert first.links["arrivals"].sum() >= 0


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda p: p.stem)
def test_recording_changes_nothing(path):
    scenario = load(path).set_all({"record": {}, "duration": "4 s"})
    silent = scenario
    loud = scenario.set(
        "record",
        {
            "trace": "all",
            "drops": True,
            "sample_interval": "10 ms",
            "queue_interval": "7 ms",
            "goodput_interval": "1 s",
        },
    )
    assert run(silent).digest == run(loud).digest


def test_seeds_and_threads(minimal):
    minimal["network"]["bottleneck"]["loss"] = {"kind": "bernoulli", "p": "1 %"}
    scenario = Scenario.from_dict(minimal)
    done: list[int] = []
    one = run_batch(scenario, [3, 1, 2], jobs=1)
    two = run_batch(scenario, [3, 1, 2], jobs=2, progress=done.append)
    assert list(one.digests) == list(two.digests) == [run(scenario, seed=s).digest for s in (3, 1, 2)]
    assert len(set(one.digests)) == 3
    assert one.flows["seed"].to_list() == [3, 1, 2]
    assert one.flows.equals(two.flows)
    assert done == sorted(done)


def test_different_scenarios_in_one_call_are_the_runs_alone(minimal):
    base = Scenario.from_dict(minimal).set("network.bottleneck.loss", {"kind": "bernoulli", "p": "1 %"})
    scenarios = [base, base.set("network.bottleneck.rate", "2 Mbit/s"), base.set("record.trace", "all"), base]
    alone = [run(scenario, seed=seed) for scenario, seed in zip(scenarios, (1, 2, 3, 4), strict=True)]
    done: list[int] = []
    one = run_many(iter(scenarios), seeds=range(1, 5))
    two = run_many(scenarios, seeds=[1, 2, 3, 4], jobs=3, progress=done.append)
    for left, right, expected in zip(one, two, alone, strict=True):
        assert left.digest == right.digest == expected.digest
        assert left.scenario is expected.scenario
        assert left.seed == expected.seed
        assert left.provenance == right.provenance == expected.provenance
        assert left.flows.equals(expected.flows)
        assert right.acks.equals(expected.acks)
    assert one[0].digest != one[3].digest
    assert done == sorted(done)
    assert [each.seed for each in run_many([base, base])] == [1, 1]


@pytest.mark.parametrize(
    ("scenarios", "seeds", "message"),
    [
        ([], None, "scenarios: found an empty list; allowed: 1 to 1,000,000 scenarios"),
        ("first", None, 'scenarios: found "first"; allowed: a list of scenarios'),
        (3, None, "scenarios: found 3; allowed: a list of scenarios"),
        ([MINIMAL, 3], None, "scenarios.1: scenario: found 3; allowed: a Scenario"),
        ([MINIMAL], [1, 2], "seeds: found more than 1; allowed: one for each of the 1 scenarios"),
        ([MINIMAL, MINIMAL], [1], "seeds: found 1; allowed: one for each of the 2 scenarios"),
        ([MINIMAL], [-1], "seed: found -1"),
        ([MINIMAL], 7, "seeds: found 7; allowed: a list"),
    ],
)
def test_many_runs_that_are_refused(scenarios, seeds, message):
    if isinstance(scenarios, list):
        scenarios = [Scenario.from_dict(one) if isinstance(one, dict) else one for one in scenarios]
    with pytest.raises(InputError, match=re.escape(message)):
        run_many(scenarios, seeds=seeds)


def test_what_is_too_large_among_many_is_named(minimal):
    small = Scenario.from_dict(minimal)
    long = small.set("duration", "300000 s")
    with pytest.raises(ScenarioError, match=r"scenarios\.1: cpu_limit: found a scenario that may need"):
        run_many([small, long, small], cpu_limit_s=1)


def test_frames_have_the_documented_columns(minimal):
    minimal["record"] = {
        "trace": "all",
        "drops": True,
        "sample_interval": "10 ms",
        "queue_interval": "10 ms",
        "goodput_interval": "500 ms",
    }
    result = run(Scenario.from_dict(minimal))
    assert {
        "flow",
        "start_s",
        "completion_s",
        "goodput_bps",
        "sent_packets",
        "retransmissions",
        "rtos",
        "mean_rtt_s",
    } <= set(result.flows.columns)
    assert {
        "link",
        "name",
        "arrivals",
        "dropped_loss",
        "dropped_queue",
        "delivered",
        "mean_packets",
        "max_packets",
    } <= set(result.queues.columns)
    assert {"t_s", "flow", "event", "cwnd", "ssthresh", "pipe", "ca_state"} <= set(result.acks.columns)
    assert result.samples.height > 100
    assert result.goodput.height == 4
    assert result.flows["completion_s"].to_list() == [None]
    assert result.acks["flow"].dtype == pl.UInt32
    assert {"link", "reason"} <= set(result.drops.columns)


def test_goodput_fills_the_bottleneck(minimal):
    minimal["duration"] = "20 s"
    minimal["record"] = {"goodput_interval": "1 s", "sample_interval": "100 ms"}
    scenario = Scenario.from_dict(minimal)
    result = run(scenario)
    assert capacity_bps(scenario) == 10e6 * 1448 / 1500
    assert 0.8 < utilisation(result.flows, scenario) <= 1.0
    late = goodput_bps(result.goodput, start_s=10)
    assert late["goodput_bps"][0] <= capacity_bps(scenario) * 1.01
    assert sample_mean(result.samples, "cwnd") > 10


def test_jain():
    assert jain([5, 5]) == 1
    assert jain([1, 0]) == 0.5
    assert jain([]) != jain([])


def test_written_folder(minimal, tmp_path):
    result = run(Scenario.from_dict(minimal), seed=5)
    folder = result.write(tmp_path / "run")
    about = json.loads((folder / "run.json").read_text())
    assert (about["seed"], about["digest"]) == (5, result.digest)
    assert about["scenario"]["duration"] == "2 s"
    assert pl.read_parquet(folder / "flows.parquet").equals(result.flows)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        result.write(tmp_path / "file")


def test_bounds(minimal):
    scenario = Scenario.from_dict(minimal)
    with pytest.raises(ScenarioError, match=r"may need .* allowed: 1 byte "):
        run(scenario, memory_limit=1)
    for seed in (-1, 2**63):
        with pytest.raises(InputError, match=f"seed: found {seed}; allowed: a whole number, 0 to {2**63 - 1}"):
            run(scenario, seed=seed)
    with pytest.raises(InputError, match="jobs"):
        run_batch(scenario, [1], jobs=0)


def test_sizes_in_messages_differ(minimal, monkeypatch):
    text = Scenario.from_dict(minimal).to_engine_json()
    for needed, limit, says in (
        (2**32 + 1, 2**32, "4294967297 bytes of memory; allowed: 4294967296 bytes"),
        (2**32 + 2**24, 2**32, "4.016 GiB of memory; allowed: 4.000 GiB"),
        (3 * 2**40, 2**10, "3.0 TiB of memory; allowed: 1.0 KiB"),
    ):
        monkeypatch.setattr(_run._engine, "estimate_memory", lambda text, needed=needed: needed)
        with pytest.raises(ScenarioError, match=f"may need {says} "):
            check_memory(text, limit)
    with pytest.raises(ScenarioError, match=r"for 2 runs at a time; .*run fewer at a time"):
        check_memory(text, 2**40, runs=2)


def test_more_threads_than_seeds(minimal):
    assert len(run_batch(Scenario.from_dict(minimal), [1, 2], jobs=10**30).digests) == 2


def test_a_second_run_in_the_same_folder_replaces_the_first(minimal, tmp_path):
    loud = Scenario.from_dict(minimal | {"record": {"trace": "all", "drops": True}})
    run(loud).write(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    assert (tmp_path / "acks.parquet").exists()
    run(Scenario.from_dict(minimal)).write(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert "notes.txt" in left
    assert not {"acks.parquet", "drops.parquet"} & left


@pytest.mark.parametrize("name", ["drops.parquet", "run.json"])
def test_files_of_others_are_not_touched(minimal, tmp_path, name):
    (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match=f"found {name}, which no run has written"):
        run(Scenario.from_dict(minimal)).write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_all_files_or_none(tmp_path):
    def fill(folder):
        with staged(folder, marks=OWN) as part:
            (part / "deep").mkdir()
            (part / "deep" / "a").write_text("new")
            if folder.name == "bad":
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "x" / "bad")
    assert list(tmp_path.iterdir()) == []
    fill(tmp_path / "good")
    assert sorted(p.name for p in (tmp_path / "good").rglob("*")) == ["a", "deep"]


def test_every_table_is_known(minimal):
    assert set(run(Scenario.from_dict(minimal)).tables) <= set(TABLES)


def test_a_trace_that_cannot_fit_is_refused(minimal):
    minimal |= {"duration": "100 h", "record": {"trace": "all"}}
    minimal["network"]["bottleneck"] = {"rate": "10 Gbit/s", "delay": "1 ms"}
    with pytest.raises(ScenarioError, match=r"of memory; allowed: 4\.0 GiB"):
        run(Scenario.from_dict(minimal))


def test_the_state_of_a_sender_is_written_alike_in_every_table(minimal):
    scenario = Scenario.from_dict({**minimal, "record": {"sample_interval": "50 ms", "trace": "all"}})
    result = run(scenario, seed=1)
    states = {"Open", "Disorder", "CWR", "Recovery", "Loss"}
    assert set(result.samples["ca_state"]) <= states
    assert set(result.acks["ca_state"]) <= states


def test_what_the_engine_refuses_comes_with_its_whole_key(minimal):
    """A value that is valid in Python is changed, bypassing the class's checks."""
    compiled = json.loads(Scenario.from_dict(minimal).to_engine_json())
    compiled["flows"][0]["workload"] = {"kind": "transfer", "bytes": 0}
    with pytest.raises(
        ScenarioError, match=r"^flows\.0\.workload\.bytes: found 0; allowed: bytes from 1 to "
    ) as caught:
        _run.engine_call(lambda: _run._engine.run(json.dumps(compiled), 1, None))
    assert caught.value.key == "flows.0.workload.bytes"


def test_a_run_that_may_take_too_long_is_refused_before_it_starts(minimal):
    fast = {"bottleneck": {**minimal["network"]["bottleneck"], "rate": "100 Mbit/s"}}
    scenario = Scenario.from_dict(minimal | {"duration": "1000 h", "network": fast})
    with pytest.raises(
        ScenarioError, match=r"^cpu_limit: found a scenario that may need .* h of CPU time; allowed: 1.0 h \("
    ):
        run(scenario, memory_limit=2**50)
    minimal["network"]["bottleneck"]["capacity"] = {
        "kind": "random", "every": "1 ns", "rate": {"kind": "uniform", "low": "1 Mbit/s", "high": "2 Mbit/s"},
    }  # fmt: skip
    redrawn = Scenario.from_dict(minimal | {"duration": "1 s"})
    with pytest.raises(ScenarioError, match=r"may need .* min of CPU time; allowed: 10 s \("):
        run_batch(redrawn, [1], cpu_limit_s=10)
    short = Scenario.from_dict(MINIMAL | {"duration": "10 ms"})
    assert run(short, cpu_limit_s=10).digest == run(short).digest
    for limit in (0, -1, float("nan"), True, "1 h"):
        with pytest.raises(InputError, match=r"^cpu_limit_s: found .*; allowed: seconds, above 0$"):
            run(short, cpu_limit_s=limit)


def test_seeds_without_an_end_are_refused(minimal):
    """The iterator is read up to one item past the allowed number, and no further."""
    scenario = Scenario.from_dict(minimal)
    asked = itertools.count()
    with pytest.raises(InputError, match=r"^seeds: found more than 1,000,000; allowed: at most that many$"):
        run_batch(scenario, asked)
    assert next(asked) == 1_000_001
    with pytest.raises(InputError, match=r"^seeds: found more than 1,000,000"):
        run_batch(scenario, range(10**15))


def test_large_seeds(minimal):
    """A seed may be far larger than the allowed number of seeds."""
    minimal["network"]["bottleneck"]["loss"] = {"kind": "bernoulli", "p": "5 %"}
    scenario = Scenario.from_dict(minimal | {"duration": "500 ms"})
    seeds = [1_000_000, 1_000_001, 2**32, 2**32 + 1, 2**63 - 1]
    batch = run_batch(scenario, seeds)
    assert list(batch.digests) == [run(scenario, seed=seed).digest for seed in seeds]
    assert len(set(batch.digests)) == len(seeds)
    assert batch.flows["seed"].to_list() == seeds


def test_what_a_killed_writer_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    code = "import os, signal, sys; from ackclock._files import *; from ackclock._files import staged\n"
    code += "with staged(__import__('pathlib').Path(sys.argv[1]), marks=OWN) as part:\n"
    code += "    (part / 'x').write_text('half'); os.kill(os.getpid(), signal.SIGKILL)\n"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".ackclock-")
    with staged(tmp_path, marks=OWN) as living:
        (living / "x").write_text("mine")
        assert not left.exists()
        with staged(tmp_path, marks=OWN) as other:
            (other / "y").write_text("mine")
        assert living.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "y"]


def test_quantiles_are_linear_between_two_values():
    for values in ([3.0], [1.0, 2.0], [1.0, 2.0, 4.0, 8.0, 16.0]):
        for share in (0.0, 0.1, 0.5, 0.75, 0.99, 1.0):
            assert quantile(values, share) == pytest.approx(float(np.quantile(values, share)))
    assert quantile([], 0.5) is None


def test_the_tables_of_a_run_are_a_mapping_that_can_be_kept() -> None:
    found = run(load("first").set("duration", "1 s")).tables
    assert isinstance(found, Mapping)
    assert "flows" in found
    assert "no-such" not in found
    assert found.get("no-such") is None
    assert found.get("no-such", {}) == {}
    with pytest.raises(KeyError, match="no-such"):
        found["no-such"]
    assert list(found) == list(found.keys()) == [name for name, _ in found.items()]
    assert len(found) == len(list(found.values()))
    assert found["flows"] is found["flows"], "made once"
    kept = pickle.loads(pickle.dumps(found))
    assert type(kept) is dict
    assert found == kept
    assert kept["flows"] == found["flows"]
    assert found == run(load("first").set("duration", "1 s")).tables != run(load("first").set("duration", "2 s")).tables
