"""Tests for changes that require a new live run (files opened by programs, kernel sources, the flows' write size), and for IPv6."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ackclock import linux
from ackclock.cli import main
from ackclock.errors import UnavailableError
from ackclock.formats.capture import read_capture
from ackclock.linux import _cache, _opened

ASKS = """
import socket, sys
print(sorted(a[4][0] for a in socket.getaddrinfo("server", 8000, type=socket.SOCK_STREAM)))
with socket.create_connection(("server", 8000)) as peer:
    peer.sendall(bytes(50_000))
    print(peer.getpeername()[0])
"""
ANSWERS = """
import socket
with socket.create_server(("::", 8000), family=socket.AF_INET6) as listener:
    peer, _ = listener.accept()
    while peer.recv(1 << 16):
        pass
"""


def test_what_a_process_opens_is_told(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.write_text("1")
    opened = _opened.Opened()
    with _opened.filtered(["/bin/sh", "-c", f"cat {one} no-such-file /dev/null; exit 3"], opened) as (command, passed):
        process = subprocess.Popen(command, pass_fds=passed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.communicate()[0] == b"1"
    opened.end()
    assert process.returncode == 3
    if opened.paths is None:
        pytest.skip("this machine has no filter with a listener")
    told = opened.hashes(but=tmp_path / "other", folders_but=())
    assert told is not None
    assert told[str(one)] == _cache.sha256(one)
    assert "/dev/null" not in told
    assert opened.hashes(but=tmp_path, folders_but=()) == {k: v for k, v in told.items() if k != str(one)}
    assert _opened.unchanged(told)
    one.write_text("2")
    assert not _opened.unchanged(told)


def test_an_old_machine_runs_without_the_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_opened, "_release", lambda: (5, 8))
    opened = _opened.Opened()
    with _opened.filtered(["/bin/true", "x"], opened) as (command, passed):
        assert (command, passed) == (["/bin/true", "x"], ())
    opened.end()
    assert opened.hashes(but=Path("/nowhere"), folders_but=()) is None


def test_a_folder_counts_by_its_names(tmp_path: Path) -> None:
    opened = _opened.Opened()
    opened.paths = {str(tmp_path)}
    before = opened.hashes(but=Path("/nowhere"), folders_but=())
    assert before is not None
    (tmp_path / "new").touch()
    assert not _opened.unchanged(before)
    assert opened.hashes(but=Path("/nowhere"), folders_but=(str(tmp_path.parent),)) == {}


def test_a_kernel_of_other_sources_is_refused(tmp_path: Path) -> None:
    own = {file.name: _cache.hash_of([file.read_bytes()]) for file in (_cache.repository() / "modules").glob("*.c")}
    about: dict[str, Any] = {"files": {**own, "mine.c": "0"}, "patches": {"0001-x.patch": "0"}}
    kernel = _cache.Kernel(path=tmp_path / "linux", about=about)
    _cache.check_sources(kernel)
    with pytest.raises(UnavailableError, match=r"another 0001-tick-of-1-ms.patch and 0002"):
        _cache.check_sources(kernel, patches=True)
    about["files"]["ackclock_relay.c"] = "0"
    with pytest.raises(
        UnavailableError, match=r"another ackclock_relay\.c than the guest program of this version works"
    ):
        _cache.check_sources(kernel)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["live", *words, "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def test_the_key_holds_what_programs_open(
    kernel: linux.Kernel, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "read"
    place.write_text("1")

    def keys(text: str, *words: str) -> tuple[str, bool]:
        place.write_text(text)
        run(capsys, "--client", f"cat {place}", *words, "--out", "out")
        about = json.loads(Path("out/run.json").read_text())["provenance"]
        assert about["files"] is None or about["files"][str(place)] == _cache.sha256(place)
        return about["key"], about["files"] is None

    first, nothing = keys("1")
    if nothing:
        pytest.skip("this machine has no filter with a listener")
    assert keys("1")[0] == first
    assert keys("2")[0] != first
    assert keys("1", "--sysctl", "net.ipv4.tcp_ecn=1")[0] != first


def test_writes_of_own_flows_are_as_long_as_asked(
    kernel: linux.Kernel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        'duration = "1 s"\n[network.bottleneck]\nrate = "10 Mbit/s"\ndelay = "5 ms"\n'
        '[[flows]]\nworkload = { kind = "transfer", bytes = "20 kB" }\n'
    )

    def sent(*words: str) -> int:
        flow = run(capsys, str(file), "--client", "sleep 1", *words)["flows"][0]
        return int(flow["sent_packets"])

    usual = sent()
    assert sent("--write", "256 KiB") == usual
    assert sent("--write", "100 bytes") > usual, "the first write is a segment of its own"


@pytest.mark.parametrize("text", ["0 bytes", "17 MiB", "many"])
def test_a_size_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["live", "--client", "true", "--write", text]) == 2
    assert f'--write: found "{text}"; allowed: a size of 1 byte to 16 MiB' in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("python3") is None, reason="no python3")
def test_names_lead_to_both_kinds_of_addresses(
    kernel: linux.Kernel, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("asks.py", ASKS), ("answers.py", ANSWERS)):
        (tmp_path / name).write_text(text)
    words = ["--server", "python3 answers.py", "--client-start", "1 s", "--client", "python3 asks.py"]
    digests = []
    for at in "ab":
        out = tmp_path / at
        digests.append(run(capsys, *words, "--ipv6", "--out", str(out))["digest"])
        assert (out / "client/client.stdout").read_text() == "['10.0.0.1', 'fd0a::1']\nfd0a::1\n"
    assert digests[0] == digests[1]
    seen = read_capture(tmp_path / "a/server/server.pcapng")
    row = seen.with_data().row(0, named=True)
    assert (row["from_address"], row["bytes"]) == ("fd0a:1::1", 50_000)
    assert seen.facts["frames"] == seen.facts["segments"], "hosts send nothing by themselves"
