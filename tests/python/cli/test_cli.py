from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from types import ModuleType
from typing import Annotated

import pytest
import typer
from conftest import ROOT, cpu_s, running
from typer.main import get_command

import ackclock
from ackclock import _engine
from ackclock.cli import _lazy, main
from ackclock.study.plan import MOST_SEEDS
from ackclock.video import players


def call(capsys, *argv):
    code = main([str(a) for a in argv])
    out, err = capsys.readouterr()
    return code, out, err


def refused(capsys, *argv):
    """Check that bad input causes exit code 2, one line on standard error and nothing on standard output."""
    code, out, err = call(capsys, *argv)
    assert code == 2
    assert out == ""
    assert err.startswith("ackclock: ")
    assert err.count("\n") == 1
    return err


def test_version(capsys):
    code, out, _ = call(capsys, "--version")
    assert code == 0
    first, second = out.splitlines()
    assert first.startswith("ackclock 0.")
    assert second == f"build {_engine.build()}, profile {_engine.profile()}"
    assert re.fullmatch(r"build [0-9a-f]{16}, profile [a-z, -]+", second)


def test_without_arguments_help(capsys):
    code, out, _ = call(capsys)
    assert code == 0
    for command in ("run", "study", "list", "schema", "bench"):
        assert command in out


def test_options_are_read_of_the_command_that_is_asked_for_once(monkeypatch):
    """typer reads the annotation of every option, and doing so for all commands takes longer than many commands run."""
    read = []
    monkeypatch.setattr(_lazy, "get_command", lambda one: read.append(one) or get_command(one))
    module = ModuleType("ackclock.cli.two")
    module.first, module.second = lambda: 0, lambda times=1: times
    module.second.__annotations__ = {"times": Annotated[int, typer.Option()]}
    monkeypatch.setitem(sys.modules, module.__name__, module)
    branch = _lazy.Branch({"first": "two:first", "2nd": "two:second"})
    whole = _lazy.root(lambda: None, branch, help="Two.")
    read.clear()
    assert list(branch) == ["first", "2nd"]
    for _ in range(2):
        assert whole(["2nd", "--times", "3"], standalone_mode=False) == 3
    assert len(read) == 1


def test_run_prints_tables(capsys, scenario_file, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    code, out, _ = call(capsys, "run", scenario_file)
    assert code == 0
    assert "goodput" in out
    assert "bottleneck.forward" in out
    monkeypatch.setenv("COLUMNS", "80")
    _, narrow, _ = call(capsys, "run", scenario_file, "--set", "record.performance=true")
    assert "bottleneck →" in narrow
    assert "bottleneck ←" in narrow
    assert max(map(len, narrow.splitlines())) <= 80
    assert "Mbit/s" in re.search(r"^ 0 .*$", narrow, re.MULTILINE)[0], "a value stands in one line"


def test_run_tells_of_transactions_video_and_datagrams(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    code, out, _ = call(capsys, "run", ROOT / "scenarios" / "transactions.toml", "--set", "duration=10 s")
    assert code == 0
    assert "transactions" in out
    _, out, _ = call(capsys, "run", ROOT / "scenarios" / "transactions.toml", "--set", "duration=10 s", "--json")
    (three, ten) = json.loads(out)["transactions"]
    assert (three["initial_window"], ten["initial_window"]) == (3, 10)
    assert three["mean_s"] > ten["mean_s"]

    scenario = ackclock.load(ROOT / "scenarios" / "video.toml").set("duration", "40 s")
    run = ackclock.run(scenario)
    told = run.summary()["video"]
    assert [(row["flow"], row["chunks"], row["stalls"]) for row in told] == [
        (row["flow"], row["chunks"], row["stalls"]) for row in players(run.chunks).to_dicts()
    ]
    assert [row["bitrate_bps"] for row in told] == pytest.approx(players(run.chunks)["bitrate_bps"].to_list())
    code, out, _ = call(capsys, "run", ROOT / "scenarios" / "voice-beside-bulk.toml", "--set", "duration=10 s")
    assert "0 voice" in out
    assert "jitter" in out


def test_values_show_themselves_in_notebooks():
    run = ackclock.run(ackclock.load(ROOT / "scenarios" / "first.toml").set_all({"duration": "2 s", "name": "<b>"}))
    html = run._repr_html_()
    assert '<td style="text-align:left">0 cubic</td>' in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html + run.scenario._repr_html_()
    assert "drop-tail" in run.scenario._repr_html_()


def test_run_json_has_the_documented_shape(capsys, scenario_file):
    code, out, err = call(capsys, "run", scenario_file, "--seed", 7, "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert list(result) == ["digest", "seed", "engine", "flows", "queues"]
    assert result["seed"] == 7
    wanted = {"id", "goodput_bps", "sent_packets", "retransmissions", "rtos", "mean_rtt_s", "completion_s"}
    assert wanted <= set(result["flows"][0])
    assert {"id", "drops", "mean_packets"} <= set(result["queues"][0])


def test_run_set_and_out(capsys, scenario_file, tmp_path):
    out = tmp_path / "deep" / "out"
    argv = [
        "run",
        scenario_file,
        "--out",
        out,
        "--trace",
        "all",
        "--set",
        "flows.0.count=2",
        "--set",
        "network.bottleneck.rate=5 Mbit/s",
    ]
    assert call(capsys, *argv)[0] == 0
    about = json.loads((out / "run.json").read_text())
    assert len(about["flows"]) == 2
    assert about["scenario"]["network"]["bottleneck"]["rate"] == "5 Mbit/s"
    assert {"flows.parquet", "links.parquet", "acks.parquet"} <= {p.name for p in out.iterdir()}


def test_run_pcap(capsys, scenario_file, tmp_path):
    capture = tmp_path / "run.pcapng"
    assert call(capsys, "run", scenario_file, "--pcap", capture)[0] == 0
    assert capture.read_bytes()[:4] == bytes.fromhex("0a0d0d0a")


@pytest.mark.parametrize(
    ("argv", "parts"),
    [
        (
            ["--set", "flows.0.congestion_control=cubik"],
            ["--set: flows.0.congestion_control", '"cubik"', 'did you mean "cubic"'],
        ),
        (["--set", "network.bottleneck.rate=5"], ["--set: network.bottleneck.rate", "5 without a unit"]),
        (["--set", "nothing"], ["--set", '"nothing"', "KEY=VALUE"]),
        (["--set", "flows.7.start=1 s"], ["flows.7", "found 7"]),
        (["--trace", "some"], ["--trace", '"some"', "none, flow, all"]),
        (["--seed", "-1"], ["--seed: found", '"-1"', "0 to 9223372036854775807"]),
        (["--seed", "1_000"], ["--seed: found", '"1_000"', "a whole number"]),
        (["--seed", "\u0661"], ["--seed: found", "a whole number"]),
        (["--seed", "x"], ["--seed", '"x"', "a whole number"]),
        (["--seed", "9223372036854775808"], ["--seed: found", "9223372036854775808", "0 to 9223372036854775807"]),
        (["--sede", "1"], ['option: found "--sede"', 'did you mean "--seed"']),
        (["--rate", "20"], ['option: found "--rate"', 'did you mean --set network.bottleneck.rate="10 Mbit/s"?']),
        (["--cc", "bbr"], ['option: found "--cc"', "did you mean --controller?"]),
        (["--controller", "quinn:a.py:A"], ["quinn:a.py", 'FILE.py:CLASS without "quinn:", in flows of TCP only']),
        (["--seed"], ["--seed: found nothing"]),
        (["second"], ['argument: found "second"', "allowed: ackclock run [OPTIONS] FILE"]),
        (["--set", "flows.00.count=1"], ["--set", '"00"', "leading zeros"]),
        (["--pcap-at", "receiver"], ["--pcap-at", "--pcap FILE"]),
        (["--out", ""], ["--out", 'found ""']),
        (["--pcap", ""], ["--pcap", 'found ""']),
        (["--pcap", "-"], ["--pcap", "./-"]),
        (["--memory-limit", "4"], ["--memory-limit", '"4" without a unit', "GiB"]),
        (["--memory-limit", "1 byte"], ["--memory-limit: found", "may need", "allowed: 1 byte "]),
    ],
)
def test_bad_options(capsys, scenario_file, argv, parts):
    err = refused(capsys, "run", scenario_file, *argv)
    for part in parts:
        assert part in err


def test_unwritable_out_is_refused_before_anything_runs(capsys, monkeypatch, scenario_file, tmp_path):

    monkeypatch.setattr("ackclock._results.run.run", lambda *a, **k: pytest.fail("ran"))
    file = tmp_path / "file"
    file.write_text("")
    for out in (file, file / "below", "/proc/ackclock-out", "bad\0name"):
        assert "--out" in refused(capsys, "run", scenario_file, "--out", out)
    assert "--pcap" in refused(capsys, "run", scenario_file, "--pcap", tmp_path)
    assert "--out" in refused(capsys, "study", "run", "prr", "--out", file)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", scenario_file.name]


def test_refused_runs_leave_nothing(capsys, scenario_file, tmp_path):
    before = sorted(tmp_path.iterdir())
    out, capture = tmp_path / "a" / "b", tmp_path / "x.pcapng"
    refused(capsys, "run", scenario_file, "--out", out, "--pcap", capture, "--memory-limit", "1 byte")
    assert sorted(tmp_path.iterdir()) == before


def test_missing_file(capsys):
    assert "absent.toml" in refused(capsys, "run", "absent.toml")
    assert "FILE: found nothing; allowed: ackclock run" in refused(capsys, "run")


def test_a_missing_option_goes_by_its_own_name(capsys):
    assert "--out: found nothing; allowed: FILE; this option is required" in refused(
        capsys, "export", "x.toml", "--as", "tc"
    )
    assert "--as: found nothing; allowed: tc, iperf3, ss, qlog, tcp-probe, curl; this" in refused(
        capsys, "export", "x.toml", "--out", "x.sh"
    )


def test_unknown_command_and_study(capsys):
    assert re.search(r'command: found "rnu"; did you mean "run"\?; allowed: one of \d+ names', refused(capsys, "rnu"))
    assert "command: found nothing; allowed: list, show, new, register, artefact, run" in refused(capsys, "study")
    assert 'argument: found "x"; allowed: ackclock schema' in refused(capsys, "schema", "x")
    assert "nearest: prr" in refused(capsys, "study", "run", "pr")
    assert "nearest: prr" in refused(capsys, "study", "show", "prrr")
    assert "nearest: quick" in refused(capsys, "study", "run", "prr", "--scale", "quik")
    assert '"1"; allowed: a whole number, 2 to 500' in refused(capsys, "study", "run", "prr", "--seeds", "1")
    for number in ("0", "257", "9" * 20):
        assert "1 to 256" in refused(capsys, "study", "run", "prr", "--jobs", number)
        assert "1 to 256" in refused(capsys, "fidelity", "--jobs", number)
    for number in ("501", "1" + 30 * "0", "9" * 9999):
        assert f"2 to {MOST_SEEDS}" in refused(capsys, "study", "run", "prr", "--seeds", number)
    assert "2 to 1000" in refused(capsys, "fidelity", "--seeds", "9" * 20)


def test_list_and_schema(capsys):
    code, out, _ = call(capsys, "list")
    assert code == 0
    for name in ("cubic", "prr-rfc9937", "codel", "gilbert-elliott", "linux-6", "fetch", "wishbone"):
        assert f"  {name} " in out
    code, out, _ = call(capsys, "schema")
    assert json.loads(out)["title"] == "Scenario"
    code, out, _ = call(capsys, "list", "--json")
    assert "reno" in json.loads(out)["controllers"]


def test_list_of_one_kind(capsys):
    code, out, _ = call(capsys, "list", "metrics")
    assert code == 0
    assert out.startswith("metrics:\n  goodput_bps ")
    assert "cubic" not in out
    code, out, _ = call(capsys, "list", "controllers", "--json")
    assert list(json.loads(out)) == ["controllers"]
    code, out, _ = call(capsys, "list", "options")
    assert out.startswith("options of controllers")
    code, _, err = call(capsys, "list", "controler")
    assert (code, 'did you mean "controllers"' in err) == (2, True)


def test_study_list_and_show(capsys):
    code, out, _ = call(capsys, "study", "list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["iw10", "large-pipes", "pcc", "prr", "slow-start"]
    code, out, _ = call(capsys, "study", "show", "prr")
    assert code == 0
    assert "T1" in out


def test_a_verdict_that_differs_gives_one(capsys, monkeypatch):
    from ackclock import studies

    class Result:
        unexpected = ("T1: fails, recorded holds",)
        undecided = ()
        drifted = ("T3: gain: 2 %, recorded 6 % (5 to 7)",)
        curves = ()

        def to_json(self):
            return {"study": "prr", "scale": "quick", "claims": []}

    class Study:
        def run(self, **options):
            return Result()

    monkeypatch.setattr(studies, "get", lambda name: Study())
    code, out, err = call(capsys, "study", "run", "prr", "--json")
    assert code == 1
    assert json.loads(out)["study"] == "prr"
    assert err.endswith(
        "ackclock: not as recorded: T1: fails, recorded holds\n"
        "ackclock: drifted: T3: gain: 2 %, recorded 6 % (5 to 7)\n"
    )


def test_our_own_bugs_give_one_line(capsys, monkeypatch, scenario_file):

    def bug(*args, **options):
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr("ackclock._results.run.run", bug)
    code, _, err = call(capsys, "run", scenario_file)
    assert code == 70
    assert err.count("\n") == 1
    assert "please report" in err
    monkeypatch.setenv("ACKCLOCK_DEBUG", "1")
    with pytest.raises(RuntimeError):
        main(["run", str(scenario_file)])


def test_interrupt_is_quiet(capsys, monkeypatch, scenario_file):

    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("ackclock._results.run.run", interrupt)
    # the command ends its process while threads are still running, and earlier tests may have started some in this
    # one
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.main_thread()])
    code, out, err = call(capsys, "run", scenario_file)
    assert (code, out, err.strip()) == (130, "", "")


def test_interrupt_while_the_engine_is_busy(scenario_file):
    # 1000 hours of simulated time, far longer than the test waits.
    argv = [sys.executable, "-m", "ackclock", "run", str(scenario_file), "--set", "duration=1000 h"]
    with running(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while process.poll() is None and cpu_s(process.pid) < 0.8:  # starting takes less than 0.5 s
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err.strip()) == (130, "", "")


def test_environment_that_cannot(capsys, monkeypatch, scenario_file):

    monkeypatch.setattr(
        "ackclock._results.run.run", lambda *a, **k: (_ for _ in ()).throw(ModuleNotFoundError(name="polars"))
    )
    code, _, err = call(capsys, "run", scenario_file)
    assert code == 3
    assert err == "ackclock: polars is not installed; run `make setup`\n"


def python(*argv, **options):
    return subprocess.run([sys.executable, *argv], cwd=ROOT, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("code", ["import ackclock", "from ackclock.cli import main; main(['--help'])"])
def test_start_is_light(code):
    heavy = ["matplotlib", "numpy", "polars", "pydantic", "rich.table", "scipy", "ackclock._engine"]
    done = python("-c", f"{code}\nimport sys\nsys.exit(' '.join(m for m in {heavy} if m in sys.modules) or None)")
    assert done.returncode == 0, done.stderr


def test_a_run_is_light():
    """A plain run is printed without data frames, and typer builds no models."""
    heavy = ["matplotlib", "numpy", "polars", "pydantic", "scipy", "urllib.request"]
    code = f"from ackclock.cli import main; main(['run', 'first'])\nimport sys\nsys.exit(' '.join(m for m in {heavy} if m in sys.modules) or None)"
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


def test_closed_pipe_is_no_error():
    script = f"{sys.executable} -m ackclock list | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert (done.returncode, done.stderr) == (0, "")
