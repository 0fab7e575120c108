"""Tests for controllers named by file and class, in a run, a comparison and a sweep."""

from __future__ import annotations

import os

import polars as pl
import pytest

import ackclock
from ackclock import Scenario, own
from ackclock import sweep as sweeps
from ackclock.cli import main
from ackclock.errors import InputError, ScenarioError, UnavailableError
from ackclock.linux import _run

HALF = """
class Half:
    def __init__(self, factor=0.5):
        self.factor = factor

    def on_ack(self, window, ack):
        if ack.cwnd_limited:
            window.cwnd += ack.acked if window.in_slow_start else ack.acked / window.cwnd

    def on_congestion_event(self, window, in_flight):
        return window.cwnd * self.factor


class Bad(Half):
    def on_ack(self, window, ack):
        raise RuntimeError("out of ideas")
"""

SCENARIO = """
duration = "4 s"
[network]
bottleneck = { rate = "10 Mbit/s", delay = "10 ms", queue = { kind = "drop-tail", limit = "1 BDP" }, loss = { kind = "bernoulli", p = "1 %" } }
[[flows]]
name = "ours"
congestion_control = "half.py:Half"
[[flows]]
congestion_control = "reno"
"""

SWEEP = """
scenario = "s.toml"
seeds = 2
tables = ["flows"]
[axes]
"flows.0.congestion_control" = ["half.py:Half", "reno"]
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "half.py").write_text(HALF)
    (tmp_path / "s.toml").write_text(SCENARIO)
    (tmp_path / "sw.toml").write_text(SWEEP)


def scenario(**changes: object) -> Scenario:
    made = ackclock.load("s.toml", own_code=True)
    return made.set_all({key.replace("__", "."): value for key, value in changes.items()})


def test_a_class_in_a_file_runs_as_the_same_class_given_by_hand():
    import sys

    by_name = ackclock.run(scenario())
    half = sys.modules[f"_ackclock_own_{scenario().own()[0].digest}"].Half
    by_hand = ackclock.run(scenario(flows__0__congestion_control="custom:half"), controllers={"half": half})
    assert by_name.digest == by_hand.digest
    assert by_name.scenario.flows[0].label == "ours"


def test_options_are_arguments_of_the_class():
    gentle = scenario(flows__0__congestion_control_options={"factor": 0.9})
    assert ackclock.run(gentle).digest != ackclock.run(scenario()).digest
    same = scenario(flows__0__congestion_control_options={"factor": 0.5})
    assert ackclock.run(same).digest == ackclock.run(scenario()).digest


@pytest.mark.promise("P16")
def test_a_file_is_run_only_if_its_reader_says_so():
    with pytest.raises(ScenarioError, match="a program that the run would execute; allowed: with --own-code"):
        ackclock.load("s.toml")
    with pytest.raises(ScenarioError, match=r"half\.py:Half"):
        sweeps.load("sw.toml")
    assert main(["run", "s.toml"]) == 2
    assert main(["sweep", "run", "sw.toml"]) == 2
    assert main(["compare", "s.toml", "s.toml"]) == 2


def test_reading_a_scenario_runs_nothing(tmp_path):
    (tmp_path / "half.py").write_text("raise SystemExit('ran')")
    read = ackclock.load("s.toml", own_code=True)
    assert read.to_engine_json()


def test_the_compiled_scenario_follows_the_code_and_not_its_place(tmp_path):
    before = scenario().to_engine_json()
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "half.py").write_text(HALF)
    moved = scenario(flows__0__congestion_control=str(tmp_path / "else" / "half.py") + ":Half")
    assert moved.to_engine_json() == before
    (tmp_path / "half.py").write_text(HALF + "# changed\n")
    assert scenario().to_engine_json() != before


def test_a_worker_refuses_other_code_than_was_planned(tmp_path):
    planned = scenario().own()[0]
    (tmp_path / "half.py").write_text(HALF + "# changed\n")
    with pytest.raises(UnavailableError, match="other code than when the runs were planned"):
        planned.load()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("half.py:Nothing", "found nothing of this name"),
        ("none.py:Half", "cannot be read"),
        ("broken.py:Half", r"cannot be imported \(SyntaxError"),
    ],
)
def test_what_cannot_be_used_is_one_line(tmp_path, name, said):
    (tmp_path / "broken.py").write_text("class Half(:\n")
    with pytest.raises(InputError, match=said):
        ackclock.run(scenario(flows__0__congestion_control=name))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_sweep_makes_keeps_and_makes_again(tmp_path, jobs):
    arguments = ["sweep", "run", "sw.toml", "--own-code", f"--jobs={jobs}"]
    assert main(arguments) == 0
    ours = pl.col("flows.0.congestion_control") == "half.py:Half"
    first = sweeps.read("sw.sweep").runs.filter(ours).sort("seed")
    assert first["digest"].to_list() == [ackclock.run(scenario(), seed=seed).digest for seed in (1, 2)]
    assert main(["sweep", "resume", "sw.sweep"]) == 2
    assert main(["sweep", "resume", "sw.sweep", "--own-code"]) == 0
    assert main(["sweep", "plot", "sw.toml"]) == 0
    told = (tmp_path / "sw.sweep" / "sweeps" / "sw" / "report.html").read_text(encoding="utf-8")
    assert "ackclock sweep resume sw.sweep --own-code" in told
    assert str(tmp_path) not in told, "no path of this machine"
    (tmp_path / "half.py").write_text(HALF.replace("0.5", "0.8"))
    assert main(arguments) == 0
    changed = sweeps.read("sw.sweep").runs.filter(ours)
    assert set(changed["digest"]).isdisjoint(first["digest"])


def test_a_file_changed_within_a_second_is_the_new_code(tmp_path):
    """Python considers cached bytecode current if the file's size and its modification time in whole seconds match."""
    file = tmp_path / "half.py"
    before = ackclock.run(scenario(), seed=1).digest
    times = file.stat()
    file.write_text(HALF.replace("0.5", "0.8"))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ackclock.run(scenario(), seed=1).digest != before
    assert not (tmp_path / "__pycache__").exists()


def test_a_class_that_fails_fails_its_runs_alone(tmp_path, capsys):
    (tmp_path / "sw.toml").write_text(SWEEP.replace("half.py:Half", "half.py:Bad"))
    assert main(["sweep", "run", "sw.toml", "--own-code", "--jobs=2"]) == 1
    assert sweeps.read("sw.sweep").runs.height == 2
    assert main(["sweep", "status", "sw.sweep"]) == 0
    assert "controller Bad, on_ack at " in capsys.readouterr().out


def test_the_option_puts_a_class_on_the_flows_that_ask(tmp_path, capsys):
    assert main(["run", "s.toml", "--own-code", "--json"]) == 0
    named = capsys.readouterr().out
    (tmp_path / "s.toml").write_text(SCENARIO.replace("half.py:Half", "custom:mine"))
    assert main(["run", "s.toml", "--controller", "mine=half.py:Half", "--json"]) == 0
    assert capsys.readouterr().out == named
    assert main(["run", "s.toml", "--controller", "other=half.py:Half"]) == 2
    assert main(["run", "s.toml", "--controller", "cubik"]) == 2
    assert 'did you mean "cubic"' in capsys.readouterr().err
    assert main(["run", "s.toml", "--controller", "cubic"]) == 0
    assert main(["run", "s.toml", "--controller", "half.py:Half"]) == 0
    assert "1 half.py:Half" in capsys.readouterr().out


def test_the_real_kernel_runs_no_python(tmp_path):
    with pytest.raises(InputError, match=r"^Half: found a class of Python; allowed with the linux backend"):
        _run._text(scenario(), None)  # type: ignore[arg-type]


def test_names_are_recognised():
    assert own.named("a/b.py:Class_1")
    assert not any(map(own.named, ["cubic", "custom:x", "a.py", "a.py:", "a.py:1x", "x:y", 3]))
