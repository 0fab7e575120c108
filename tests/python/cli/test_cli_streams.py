"""Tests for the command's environment: closed, full, narrow or differently encoded streams, and Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from conftest import ROOT, running

import ackclock
from ackclock.cli import _terminal, main

COMMAND = f"'{sys.executable}' -m ackclock"


def shell(line, **environment):
    return subprocess.run(
        ["/bin/sh", "-c", line], cwd=ROOT, capture_output=True, check=False, env={**os.environ, **environment}
    )


@pytest.mark.parametrize(("stream", "reason"), [(">&-", b"closed"), (">/dev/full", b"no space left on device")])
def test_output_that_cannot_be_written(scenario_file, stream, reason):
    for command in (f"run {scenario_file}", "list", "--version", "--help"):
        done = shell(f"{COMMAND} {command} {stream}")
        assert done.returncode == 3
        assert done.stderr.startswith(b"ackclock: standard output: ")
        assert reason in done.stderr
        assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("stream", ["2>&-", "2>/dev/full"])
def test_messages_that_cannot_be_written(stream):
    done = shell(f"{COMMAND} run absent.toml {stream}")
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize(
    "environment",
    [{"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}],
)
def test_other_encodings(scenario_file, environment):
    commands = [["run", str(scenario_file)], ["study", "show", "prr"], ["list"]]
    code = f"import sys; from ackclock.cli import main; sys.exit(sum(map(main, {commands!r})))"
    done = shell(f"'{sys.executable}' -c \"{code}\"", **environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"\n") > 100


def test_piped_output_is_as_wide_as_asked_and_has_no_trailing_blanks(scenario_file):
    def widest(**environment):
        text = shell(f"{COMMAND} run {scenario_file}", PYTHONUTF8="1", **environment).stdout.decode()
        assert all(line == line.rstrip() for line in text.splitlines())
        return max(map(len, text.splitlines()))

    assert widest(COLUMNS="60") <= 60
    assert 60 < widest(COLUMNS="nonsense") <= 140


def test_no_color_means_no_escapes(scenario_file):
    def printed(environment):
        leader, follower = pty.openpty()
        argv = [sys.executable, "-m", "ackclock", "run", str(scenario_file)]
        with subprocess.Popen(argv, cwd=ROOT, stdout=follower, env={**os.environ, "TERM": "xterm", **environment}) as p:
            os.close(follower)
            text = b""
            while True:
                try:
                    more = os.read(leader, 4096)
                except OSError:
                    break
                if not more:
                    break
                text += more
        os.close(leader)
        assert p.returncode == 0
        return text

    assert b"\x1b[" in printed({"NO_COLOR": ""})
    assert b"\x1b[" not in printed({"NO_COLOR": "1"})


def test_a_long_run_says_on_a_terminal_how_far_it_is(scenario_file, monkeypatch, capsys):
    """Progress shows the elapsed fraction of the scenario and the seconds on one line, which is erased at the end. Without a terminal nothing is shown."""
    told = []
    real = ackclock.run

    def slow(*args, progress, **more):
        def noted(part):
            told.append(part)
            time.sleep(0.06 if sys.stderr.isatty() and len(told) < 6 else 0.0)
            progress(part)

        return real(*args, progress=noted, **more)

    monkeypatch.setattr("ackclock._results.run.run", slow)
    monkeypatch.setattr(_terminal, "PATIENCE_S", 1)
    monkeypatch.setattr(_terminal, "time", SimpleNamespace(monotonic=lambda: 20 * time.monotonic()))
    assert main(["run", str(scenario_file), "--set", "duration=3000 s"]) == 0
    assert told  # the number of updates depends on the machine's speed
    assert told == sorted(told)
    assert 0 < told[0] < told[-1] <= 1
    assert capsys.readouterr().err == ""
    told.clear()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["run", str(scenario_file), "--set", "duration=3000 s"]) == 0
    lines = capsys.readouterr().err.split("\r")
    parts = [int(found[1]) for line in lines if (found := re.fullmatch(r"simulating, (\d+) %, \d+ s *", line))]
    assert parts, lines
    assert parts == sorted(parts)
    assert lines[0] == lines[-1] == lines[-2].strip() == ""


@pytest.mark.parametrize(
    "argv", [["study", "run", "slow-start", "--out", "{}/out"], ["fidelity"]], ids=["study", "fidelity"]
)
def test_interrupt_stops_long_commands(tmp_path, argv):
    argv = [sys.executable, "-m", "ackclock", *(a.format(tmp_path) for a in argv)]
    with running(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        while not re.search("[1-9] %|[1-9]0 %", process.stderr.readline()):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        out, err = process.communicate(timeout=60)
    assert time.monotonic() - started < 5  # well under one second on an idle machine
    assert (process.returncode, out) == (130, "")
    assert "100 %" not in err
    assert list(tmp_path.iterdir()) == []


def test_interrupt_while_a_capture_is_made_leaves_nothing(scenario_file, tmp_path):
    out = tmp_path / "out"
    argv = ["run", scenario_file, "--set", "duration=1000 h", "--memory-limit", "900000 GB"]
    argv += ["--out", out, "--pcap", out / "x.pcapng"]
    with running([sys.executable, "-m", "ackclock", *map(str, argv)], cwd=ROOT) as process:
        while not out.exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    assert list(tmp_path.iterdir()) == [scenario_file]


def test_a_capture_that_may_not_fit_is_announced(scenario_file, tmp_path, capsys, monkeypatch):
    capture = tmp_path / "x.pcapng"
    argv = ["run", str(scenario_file), "--pcap", str(capture), "--json"]
    assert main(argv) == 0
    assert capsys.readouterr().err == ""
    size = capture.stat().st_size
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=size // 2))
    assert main(argv) == 0  # the largest size allowed; a full disk is reported only when it occurs
    (line,) = capsys.readouterr().err.splitlines()
    told = re.fullmatch(
        rf"ackclock: --pcap {re.escape(str(capture))}: may take ([0-9.]+) MiB, and ([0-9.]+) MiB are free", line
    )
    assert told is not None, line
    assert 0.9 * size < float(told[1]) * 2**20 < 1.5 * size
    assert main(["run", str(scenario_file), "--pcap", "/dev/null", "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_out_and_capture_together(scenario_file, tmp_path, capsys):
    out = tmp_path / "out"
    before = sorted(tmp_path.iterdir())
    for capture in (out, out / "run.json", out / "flows.parquet", tmp_path / "absent" / "x.pcapng"):
        assert main(["run", str(scenario_file), "--out", str(out), "--pcap", str(capture)]) == 2
        assert sorted(tmp_path.iterdir()) == before
    argv = ["run", str(scenario_file), "--out", str(out), "--pcap", str(out / "x.pcapng")]
    assert main([*argv, "--memory-limit", "1 byte"]) == 2
    assert sorted(tmp_path.iterdir()) == before
    assert main(argv) == 0
    assert {"run.json", "flows.parquet", "x.pcapng"} <= {path.name for path in out.iterdir()}
    assert main(argv) == 0
    (out / "run.json").write_text("{}")
    capsys.readouterr()
    assert main(argv) == 2
    assert "which no run has written" in capsys.readouterr().err


def test_what_is_missing_is_said_without_other_tools():
    done = shell("/bin/sh tools/toolchain.sh", PATH="/nowhere", PYTHON=sys.executable)
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.startswith(b"ackclock needs a Rust toolchain")


@pytest.mark.parametrize(("version", "code"), [("1.87.9", 3), ("1.88.0", 0), ("1.100.1", 0), ("2.0.0-nightly", 0)])
def test_toolchain_compares_versions(tmp_path, version, code):
    for name, text in (("cargo", f"echo 'cargo {version} (abc 2025-01-01)'"), ("cc", ":")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    done = shell("/bin/sh tools/toolchain.sh", PATH=str(tmp_path), PYTHON=sys.executable)
    assert done.returncode == code
