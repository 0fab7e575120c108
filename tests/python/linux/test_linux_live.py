"""`ackclock live`: what is judged before anything runs, and, where the kernel is built, programs of this machine in it."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ackclock import linux
from ackclock.cli import main
from ackclock.errors import InputError, UnavailableError
from ackclock.linux import _programs, _watch


def built() -> bool:
    try:
        linux.installed()
        from ackclock.linux import _cache

        _cache.guest_path()
    except UnavailableError:
        return False
    return True


real = pytest.mark.skipif(not built(), reason="the kernel or the guest program is not built")
iperf3 = pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
SPINS = "0006-time-for-programs.patch"
"""Without it the server of iperf3, which asks for the time until it has passed, never sleeps."""


def live(*words: str) -> int:
    return main(["live", *words])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "live: found no program; allowed: --server COMMAND, --client COMMAND, or both"),
        (("--client", "''"), "--client: found \"''\"; allowed: a command"),
        (("--client", "sh 'open"), "no closing quotation"),
        (("--client", "no-such-program -x"), '--client: found "no-such-program", which is not there'),
        (("--client", "/etc/passwd"), "which may not be executed"),
        (("--client", "true", "--sysctl", "kernel.core_pattern=x"), "--sysctl: found"),
        (("--client", "true", "--parameter", "init=/bin/sh"), "--parameter: found"),
        (("--client", "true", "--parameter", "tcp_cubic.hystart=0 quiet"), "--parameter: found"),
        (("--client", "true", "--rate", "fast"), "--rate: found"),
        (("--client", "true", "--env", "x"), "--env: found"),
    ],
)
def test_what_cannot_run_is_said_in_one_line(words, said, capsys, monkeypatch):
    monkeypatch.setattr("ackclock.linux._live._cache.installed", _kernel)
    assert live(*words) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def _kernel() -> Any:
    return SimpleNamespace(about={"release": "7.3.4", "controllers": ["cubic", "reno"]})


@pytest.mark.parametrize(
    ("machine", "width", "said"),
    [(183, 2, "a program for ARM 64"), (3, 1, "a program for x86, 32 bits"), (62, 1, "32-bit addresses")],
)
def test_a_program_of_another_machine_is_named(tmp_path, machine, width, said):
    place = tmp_path / "other"
    place.write_bytes(b"\x7fELF" + bytes([width]) + bytes(11) + struct.pack("<HH", 2, machine) + bytes(64))
    place.chmod(0o755)
    with pytest.raises(InputError, match=said):
        _programs.resolved([str(place)], "--client", root=Path("/"), folder="/", own={})


def test_a_script_is_followed_to_its_interpreter(tmp_path):
    place = tmp_path / "script"
    place.write_text("#!/no/such/interpreter\n")
    place.chmod(0o755)
    with pytest.raises(InputError, match=r"a script for .*/no/such/interpreter"):
        _programs.resolved([str(place)], "--server", root=Path("/"), folder="/", own={})
    place.write_text("#!/bin/sh\n")
    assert _programs.resolved(["./script"], "--server", root=Path("/"), folder=str(tmp_path), own={}) == str(place)


def test_a_folder_of_path_that_nobody_may_look_into_is_passed_over(monkeypatch):
    def refuse(place):
        if str(place).startswith("/secret"):
            raise PermissionError(13, "Permission denied", str(place))
        return stat(place)

    stat = os.stat
    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setenv("PATH", "/secret:/bin")
    with pytest.raises(InputError, match="not there"):
        _programs.resolved(["no-such-program"], "--client", root=Path("/"), folder="/", own={})


def test_a_link_below_another_root_stays_below_it(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "usr").mkdir()
    (tmp_path / "bin/sh").symlink_to("/usr/dash")
    shutil.copy("/bin/true", tmp_path / "usr/dash")
    assert _programs.resolved(["sh"], "--client", root=tmp_path, folder="/", own={}) == "/bin/sh"
    with pytest.raises(InputError, match="not there"):
        _programs.resolved(["ls"], "--client", root=tmp_path, folder="/", own={})


def test_the_end_of_a_stack_names_a_program():
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        try:
            until = time.monotonic() + 10
            while _watch._name(process.pid) != "/bin/sleep":
                assert time.monotonic() < until
        finally:
            process.kill()


@real
@pytest.mark.promise("P52")
def test_both_hosts_know_each_other_and_what_they_write_is_kept(tmp_path, capsys):
    program = "sh -c 'cat /etc/hosts; hostname; echo kept > /tmp/file; echo no > /etc/file; exit 3'"
    assert live("--client", program, "--out", str(tmp_path / "out"), "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["programs"][0]["code"] == 3
    printed = (tmp_path / "out/client/client.stdout").read_text()
    assert "10.0.0.1 server\n10.1.0.1 client\n" in printed
    assert printed.endswith("client\n")
    assert "Read-only" in (tmp_path / "out/client/client.stderr").read_text()
    assert (tmp_path / "out/client/files/tmp/file").read_text() == "kept\n"
    assert not Path("/etc/file").exists()


@real
@iperf3
def test_a_program_of_this_machine_fills_the_link_and_repeats(tmp_path, capsys):
    if SPINS not in linux.installed().about.get("patches", {}):
        pytest.skip(f"the kernel is without {SPINS}")
    words = (
        "--rate",
        "20 Mbit/s",
        "--delay",
        "20 ms",
        "--server",
        "iperf3 -s -1",
        "--client",
        "iperf3 -J -c server -t 1",
    )
    digests = []
    for _ in range(2):
        assert live(*words, "--out", str(tmp_path / "out"), "--json") == 0
        digests.append(json.loads(capsys.readouterr().out)["digest"])
    assert digests[0] == digests[1]
    told = json.loads((tmp_path / "out/client/client.stdout").read_text())
    assert 14e6 < told["end"]["sum_received"]["bits_per_second"] < 20e6
    assert main(["read", str(tmp_path / "out/client/client.pcapng")]) == 0
