"""Tests for `ackclock live`: checks before anything runs, and this machine's programs in the kernel, if built."""

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

from ackclock import linux, run
from ackclock.cli import main
from ackclock.errors import InputError, UnavailableError
from ackclock.linux import _programs, _watch
from ackclock.scenario import Scenario


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
"""Kernel patch without which iperf3's server never sleeps, because it polls the clock in a loop."""


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
@pytest.mark.deep
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


NGINX = """
daemon off;
pid /tmp/nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/fcgi;
  uwsgi_temp_path /tmp/uwsgi; scgi_temp_path /tmp/scgi;
  server { listen 80; root %s; }
}
"""


@real
@pytest.mark.deep
@pytest.mark.skipif(not (shutil.which("nginx") and shutil.which("curl")), reason="nginx and curl are not installed")
def test_curl_is_served_by_nginx_when_the_workload_says(tmp_path, capsys, monkeypatch):
    """A `fetch` with requests and responses of the same length takes as long as curl to within a tick, here to within a microsecond."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "response").write_bytes(bytes(14_000))
    (tmp_path / "nginx.conf").write_text(NGINX % tmp_path)
    (tmp_path / "nginx.conf").chmod(0o644)
    link = ("--rate", "20 Mbit/s", "--delay", "20 ms", "--queue", "1 BDP")
    client = "curl -sS -o /dev/null -w %{time_total} http://server/response"
    assert live(*link, "--server", f"nginx -c {tmp_path}/nginx.conf", "--client", client, "--out", "out") == 0
    capsys.readouterr()
    total = float((tmp_path / "out/client/client.stdout").read_text())
    assert main(["read", "out/client/client.pcapng", "--json"]) == 0
    ways = json.loads(capsys.readouterr().out)["connections"]
    sent = {way["way"]: way["bytes"] for way in ways}
    fetch = {"kind": "fetch", "bytes": f"{sent['server']} bytes", "request": f"{sent['client']} bytes", "count": 1}
    scenario = Scenario.from_dict({
        "duration": "2 s",
        "network": {"bottleneck": {"rate": "20 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}},
        "flows": [{"profile": "linux-6", "congestion_control": "cubic", "workload": fetch}],
    })  # fmt: skip
    (told,) = run(scenario).rows("fetches")
    assert abs(told["total_s"] - total) < 2e-6


@real
def test_another_folder_and_files_that_were_touched_make_the_same_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    digests = []
    for folder, when in (("one", 1e9), ("two", 1.7e9), ("two", 1.1e9)):
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        (place / "file").write_text("text\n")
        os.utime(place / "file", (when, when))
        monkeypatch.chdir(place)
        program = (
            "sh -c 'ls -l --full-time file; cat file; date; env | sort | grep -v PWD; head -c 8 /dev/urandom | od -x'"
        )
        assert live("--client", program, "--json") == 0
        digests.append(json.loads(capsys.readouterr().out)["digest"])
    assert len(set(digests)) == 1


SPINNER = """
import json, threading, time

def readings():
    at, count = time.monotonic_ns(), 0
    while time.monotonic_ns() == at:
        count += 1
    return count, time.monotonic_ns() - at

time.sleep(1)
found = [readings(), readings()]
threads = [threading.Thread(target=lambda: found.append(readings())) for _ in range(3)]
[one.start() for one in threads]
[one.join() for one in threads]
print(json.dumps({"found": found, "page": "[clock]" in open("/proc/self/maps").read()}))
"""


@real
def test_a_thousand_readings_of_the_clock_let_time_pass(tmp_path, capsys, monkeypatch):
    """Readings from the page of the clock (patch 0008) count as calls do: each thread sleeps at the 1,001st of an instant."""
    about = linux.installed().about.get("patches", {})
    if SPINS not in about:
        pytest.skip(f"the kernel is without {SPINS}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spin.py").write_text(SPINNER)
    assert live("--client", "python3 spin.py", "--out", "out") == 0
    told = json.loads((tmp_path / "out/client/client.stdout").read_text())
    first, again, *threads = told["found"]
    assert again[0] < 10  # the next reading sleeps at once
    assert all(900 < count <= 1000 for count, _ in (first, *threads))
    assert all(passed >= 1000 for _, passed in told["found"])
    assert told["page"] == ("0008-clock-without-a-call.patch" in about)


READER = """
import json, socket, sys, time

if sys.argv[1] == "serve":
    peer, _ = socket.create_server(("", 8000)).accept()
    for size in range(1, 21):
        peer.sendall(b"x" * size)
        time.sleep(0.01)
else:
    peer = socket.create_connection(("server", 8000))
    peer.setblocking(False)
    got, told = 0, []
    while got < 210:
        empty = 0
        while True:
            try:
                got += len(peer.recv(4096))
                break
            except BlockingIOError:
                empty += 1
        told.append([got, empty])
    peer.setblocking(True)
    print(json.dumps([*told, peer.recv(100).decode()]))
"""


@real
def test_a_read_of_nothing_is_answered_without_a_call_and_counts_like_one(tmp_path, capsys, monkeypatch):
    """Data that arrives later is read, the end of the connection is detected, and 1,000 empty reads let time advance (patch 0009)."""
    if SPINS not in linux.installed().about.get("patches", {}):
        pytest.skip(f"the kernel is without {SPINS}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reads.py").write_text(READER)
    words = (
        "--server",
        "/usr/bin/python3 -IS reads.py serve",
        "--client",
        "/usr/bin/python3 -IS reads.py get",
        "--out",
        "out",
    )
    assert live(*words) == 0
    *told, end = json.loads((tmp_path / "out/client/client.stdout").read_text())
    assert end == ""
    assert [got for got, _ in told] == sorted({got for got, _ in told})
    assert told[-1][0] == 210
    assert 1000 < told[0][1] < 2000, "1,000 of the first instant, then one a sleep"
    assert all(times > 100 for _, times in told)
