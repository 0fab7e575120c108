"""Tests for mistakes and malicious content in files and options: one line, exit code 2, promptly, in little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from forked import Commands

from ackclock.cli import main

SCENARIO = 'duration = "1 s"\n[network]\nbottleneck = { rate = "10 Mbit/s", delay = "5 ms" }\n[[flows]]\n'
SWEEP = 'metrics = ["goodput_bps"]\nscenario = "s.toml"\n[axes]\n'
RATE = '"network.bottleneck.rate" = '
STEPS = '{ from = "1 Mbit/s", to = "100 Mbit/s", steps = %d }'

SWEEPS = {
    "three long axes": SWEEP
    + RATE
    + STEPS % 1000
    + '\n"network.bottleneck.delay" = { from = "1 ms", to = "999 ms", steps = 1000 }'
    + '\n"flows.0.count" = { from = 1, to = 1000, steps = 1000 }',
    "forty axes": SWEEP + "\n".join(f'"flows.{i}.count" = [1, 2]' for i in range(40)),
    "nan": SWEEP + '"flows.0.count" = { from = nan, to = 3.0, steps = 3 }',
    "inf": SWEEP + '"flows.0.count" = { from = 1.0, to = inf, steps = 3 }',
    "tiny": SWEEP + '"flows.0.count" = { from = 5e-324, to = 1.0, steps = 3, spacing = "log" }',
    "huge": SWEEP + '"flows.0.count" = { from = 1, to = 1%s, steps = 3, spacing = "log" }' % ("0" * 400),
    "five thousand digits": SWEEP + '"flows.0.count" = [1, %s]' % ("9" * 5000),
    "dotted keys": SWEEP + "x" + ".x" * 20_000 + " = 1",
    "sixty thousand values twice": SWEEP + '"flows.0.count" = [{}, 1]'.format(", ".join(map(str, range(1, 60_000)))),
}

SCENARIOS = {
    "dotted keys": SCENARIO + "\n[record]\nx" + ".x" * 3000 + " = 1",
    "half a million dots": "x" + ".x" * 500_000 + " = 1",
    "transactions without bytes": SCENARIO
    + 'workload = { kind = "transactions", arrivals = { kind = "poisson", rate = 3 } }',
    "no time": 'duration = "1 us"\n[network]\nbottleneck = { rate = "100 Tbit/s" }\n[[flows]]\n',
    "datagrams pile up": 'duration = "600 s"\n[network]\nbottleneck = { rate = "1 Mbit/s", delay = "1 ms" }\n[[flows]]\n'
    'workload = { kind = "constant-rate", rate = "10 Gbit/s" }\n',
    "trace turns back": SCENARIO.replace('delay = "5 ms"', 'capacity = { kind = "mahimahi", file = "back.trace" }'),
}

OPTIONS = {
    "capture over the scenario": ["run", "s.toml", "--pcap", "s.toml"],
    "five thousand digits": ["run", "s.toml", "--set", "flows.0.count=" + "9" * 5000],
    "sixty thousand parts": ["run", "s.toml", "--set", "a" + ".a" * 60_000 + "=1"],
    "escape in a name": ["run", "s.toml", "--out", "a\x1b]0;x\x07"],
}


LIMITS = {"RLIMIT_AS": 4 * 2**30, "RLIMIT_CPU": 30}


def _refused(done: subprocess.CompletedProcess[str]) -> None:
    code, out, err = done.returncode, done.stdout, done.stderr
    assert (code, out) == (2, ""), err[-500:]
    assert err.count("\n") == 1
    assert len(err) < 1200
    assert "internal error" not in err
    assert "\x1b" not in err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a valid scenario and a file that is not a trace."""
    (tmp_path / "s.toml").write_text(SCENARIO)
    (tmp_path / "back.trace").write_text("5\n3\n")
    return tmp_path


@pytest.mark.promise("P3")
@pytest.mark.parametrize("name", SWEEPS)
def test_sweeps(name: str, folder: Path, command: Commands) -> None:
    """Grids are counted before they are expanded; values that are not numbers are refused."""
    (folder / "k.toml").write_text(SWEEPS[name])
    _refused(command(folder, "sweep", "run", "k.toml", limits=LIMITS))
    assert not (folder / "k.sweep").exists()


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios(name: str, folder: Path, command: Commands) -> None:
    """Time and memory before the first check are proportional to the file."""
    (folder / "x.toml").write_text(SCENARIOS[name])
    _refused(command(folder, "run", "x.toml", "--memory-limit", "500 MB", limits=LIMITS))


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str, folder: Path, command: Commands) -> None:
    """Inputs are never overwritten, and names are shown as plain text."""
    _refused(command(folder, *OPTIONS[name], limits=LIMITS))
    assert (folder / "s.toml").read_text() == SCENARIO


def test_names_are_no_markup(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Names are not treated as markup, neither by rich nor by matplotlib."""
    monkeypatch.chdir(folder)
    assert main(["run", "s.toml", "--out", "res[a][/x]"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "written: res[a][/x]" in out
    (folder / "d.toml").write_text(
        'name = "d"\nmetrics = ["goodput_bps"]\nscenario = "s.toml"\n[axes]\n"name" = ["$\\\\frac$", "$x^"]\n[names]\n"name" = "$case"\n'
    )
    assert main(["sweep", "run", "d.toml"]) == 0
    assert main(["sweep", "plot", "d.toml"]) == 0
    assert "rror" not in capsys.readouterr().err


@pytest.mark.promise("P2")
def test_a_large_trace_is_read_in_little_memory(folder: Path) -> None:
    """Regression: a 32 MiB trace took 2.9 GB."""
    (folder / "large.trace").write_bytes(b"0\n" * (16 * 2**20 - 2) + b"1000\n")
    text = SCENARIO.replace('delay = "5 ms"', 'capacity = { kind = "mahimahi", file = "large.trace" }')
    (folder / "x.toml").write_text(text.replace('rate = "10 Mbit/s", ', ""))
    # VmHWM covers this program alone; ru_maxrss would include the peak of the test run that forked it
    program = (
        "import re, sys; from ackclock.scenario import _mahimahi; print(_mahimahi.read(sys.argv[1]).counts[0], "
        "int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder / "large.trace")], capture_output=True, text=True, check=True
    )
    count, mib = map(int, done.stdout.split())
    assert count == 16 * 2**20 - 2
    assert mib < 300
