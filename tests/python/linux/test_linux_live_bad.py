"""Tests for `ackclock live` with programs that misbehave: each is reported in one line, and no process or file
remains on the machine.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from ackclock import linux
from ackclock.cli import main
from ackclock.errors import UnavailableError
from ackclock.linux import _watch


def built() -> bool:
    try:
        linux.installed()
        from ackclock.linux import _cache

        _cache.guest_path()
    except UnavailableError:
        return False
    return True


pytestmark = pytest.mark.skipif(not built(), reason="the kernel or the guest program is not built")


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put the guests' folders into this test's own folder, because other tests run at the same time, and check that it is empty afterwards."""
    guests = tmp_path_factory.mktemp("guests")
    monkeypatch.setattr(tempfile, "tempdir", str(guests))
    yield
    assert list(guests.iterdir()) == []
    assert str(guests) not in Path("/proc/self/mounts").read_text()
    assert processes_in(guests) == []


def told(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> list[dict[str, Any]]:
    assert main(["live", *words, "--json"]) == code
    programs = json.loads(capsys.readouterr().out)["programs"]
    assert isinstance(programs, list)
    return programs


def test_ends_of_programs_are_told(capsys):
    """One program exits at once, one is killed by a signal, one cannot be executed, one outlives the run."""
    words = ["--client", "true", "--client", "sh -c 'kill -SEGV $$'", "--server", "sleep 1000"]
    exits, killed, outlives = sorted(told(capsys, 1, *words), key=lambda one: one["name"])
    assert (exits["code"], exits["signal"]) == (0, None)
    assert killed["signal"] == signal.SIGSEGV
    assert outlives["ended_with_the_run"]


def test_a_port_that_is_taken_is_the_programs_own_line(tmp_path, capsys, monkeypatch):
    """The program's script is in the current folder, inside a folder otherwise hidden from the programs."""
    (tmp_path / "listen.py").write_text(
        "import socket, sys, time\ns = socket.create_server(('', 80))\ntime.sleep(float(sys.argv[1]))\n"
    )
    monkeypatch.chdir(tmp_path)
    server = f"{sys.executable} listen.py"
    words = ["--server", f"{server} 5", "--client", "sleep 2", "--server", f"{server} 6", "--out", "out"]
    ends = {one["command"]: one for one in told(capsys, 0, *words)}
    assert ends[f"{server} 6"]["code"] == 1
    assert "Address already in use" in Path("out/server/server-2.stderr").read_text()


@pytest.mark.promise("P52")
def test_a_program_where_programs_have_folders_of_their_own_is_refused(tmp_path, capsys, monkeypatch):
    (tmp_path / "mine").write_text("#!/bin/sh\ncat /proc/mounts\n")
    (tmp_path / "mine").chmod(0o755)
    monkeypatch.chdir("/")
    assert main(["live", "--client", str(tmp_path / "mine")]) == 2
    assert "which programs do not see" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    assert main(["live", "--client", "./mine"]) == 0
    assert f" {tmp_path} hostfs ro" in capsys.readouterr().out


@pytest.mark.deep
def test_ten_thousand_children_and_ten_gigabytes_have_bounds(tmp_path, capsys):
    forks = "sh -c 'i=0; while [ $i -lt 10000 ]; do sleep 100 & i=$((i+1)); done'"
    writes = "head -c 10G /dev/zero"
    fills = "sh -c 'for i in 1 2 3 4 5; do head -c 200M /dev/zero > /tmp/$i; done; exit 7'"
    words = ["--client", writes, "--client", fills, "--client", forks, "--wall-limit", "900"]  # 25 s of CPU
    ends = {one["command"]: one for one in told(capsys, 1, *words)}
    assert ends[writes]["signal"] == signal.SIGXFSZ
    assert ends[fills]["code"] == 7
    assert ends[forks]["code"] != 0


@pytest.mark.deep
def test_a_program_that_computes_for_ever_is_named(monkeypatch, capsys):
    monkeypatch.setattr(_watch, "ALONE_S", 1.0)
    assert main(["live", "--client", "sh -c 'while :; do :; done'"]) == 2
    err = capsys.readouterr().err
    assert "client (sh -c 'while :; do :; done'): found a program that never sleeps" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_kill_leave_nothing(tmp_path, how):
    """Run the command in a separate process, and send it a signal while its programs run."""
    command = [sys.executable, "-m", "ackclock", "live", "--client", "sh -c 'while :; do date; done'"]
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path)}, stderr=subprocess.PIPE) as process:
        until = time.monotonic() + 60
        while not list(tmp_path.glob("ackclock-guest-*/guest")):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(how)
        process.communicate()
    until = time.monotonic() + 20
    while list(tmp_path.glob("ackclock-guest-*")) or processes_in(tmp_path):
        assert time.monotonic() < until
        time.sleep(0.05)


def processes_in(folder: Path) -> list[str]:
    """Return the processes whose working directory is below `folder`."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            where = os.readlink(place / "cwd")
        except OSError:
            continue
        if where.startswith(str(folder)):
            found.append(where)
    return found
