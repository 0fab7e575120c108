"""Tests for `ackclock live` with more than two hosts: names, paths, refusals, and programs in the kernel if it is built."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ackclock import linux
from ackclock.cli import main
from ackclock.errors import InputError, UnavailableError
from ackclock.linux import _places
from ackclock.linux._live import _label


def built() -> bool:
    try:
        linux.installed()
        from ackclock.linux import _cache

        _cache.guest_path()
    except UnavailableError:
        return False
    return True


real = pytest.mark.skipif(not built(), reason="the kernel or the guest program is not built")

PLAIN: dict[str, Any] = {"network": {"bottleneck": {}}, "flows": [{}]}
GRAPH: dict[str, Any] = {
    "network": {"topology": "graph", "paths": [{"name": "long"}, {"name": "short"}]},
    "flows": [{}],
}

ASKS = """
import socket, sys
for name in sys.argv[1:]:
    peer = socket.create_connection((name, 8000), timeout=5)
    peer.sendall(socket.gethostname().encode())
    print(name, peer.recv(100).decode(), peer.getpeername()[0])
"""
ANSWERS = """
import socket
listener = socket.create_server(("", 8000))
while True:
    peer, (where, _) = listener.accept()
    peer.sendall(f"{peer.recv(100).decode()} at {where} asked {socket.gethostname()}".encode())
    peer.close()
"""


def live(*words: str) -> int:
    return main(["live", *words])


def test_two_hosts_are_always_there_and_others_stand_beside_them() -> None:
    net = _places.hosts_of(["b", "server-2", "b"], PLAIN, False, None, {})
    assert net.names == ("server", "client", "b", "server-2")
    assert net.sides == (0, 1, 1, 0)
    assert net.pairs == ((0, 1, None), (0, 2, None), (3, 1, None), (3, 2, None))
    assert _places.hosts_of([], GRAPH, True, None, {}).pairs == ((0, 1, "long"),)
    assert _places.hosts_of(["b"], GRAPH, True, None, {"b": "short"}).pairs == ((0, 1, "long"), (0, 2, "short"))


def test_a_second_program_has_not_the_name_of_another_host() -> None:
    assert _label("client", [], ("server", "client")) == "client"
    assert _label("client", ["client"], ("server", "client")) == "client-2"
    assert _label("client", ["client"], ("server", "client", "client-2")) == "client-3"


@pytest.mark.parametrize(
    ("asked", "paths", "scenario", "said"),
    [
        (["B"], {}, PLAIN, r'--host: found "B"; allowed: up to 31 of a-z'),
        (["base"], {}, PLAIN, r'--host: found "base"'),
        ([f"h{i}" for i in range(15)], {}, PLAIN, r"--host: found 17 hosts; allowed: up to 16"),
        ([], {"c": "long"}, GRAPH, r'--path: found the host "c"; allowed: client$'),
        (["b"], {"b": "none"}, GRAPH, r'--path: found "none"; allowed: long, short$'),
        (["b"], {"b": "long"}, PLAIN, r"allowed: none: the network has no paths"),
        ([], {}, {**PLAIN, "flows": [{}] * 250}, r"--host: found 1 pairs of hosts beside 250 of flows"),
    ],
)
def test_what_no_host_or_path_can_be_is_refused(
    asked: list[str], paths: dict[str, str], scenario: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        _places.hosts_of(asked, scenario, True, None, paths)


def test_folders_of_hosts_that_are_no_more_go_and_those_of_others_stay(tmp_path: Path) -> None:
    left, out = tmp_path / "left", tmp_path / "out"
    for place in (left / "client", out / "client", out / "b", out / "mine"):
        place.mkdir(parents=True)
    for place in (left / "client", out / "client", out / "b"):
        (place / f"{place.name}.pcapng").write_text(str(place.parent.name))
    (out / "run.json").write_text("{}")
    _places.check_folder(out, ("server", "client"))
    with pytest.raises(InputError, match="found mine, which no live run has written"):
        _places.check_folder(out, ("mine",))
    _places.keep(left, out, ("server", "client"))
    assert sorted(place.name for place in out.iterdir()) == ["client", "mine", "run.json"]
    assert (out / "client/client.pcapng").read_text() == "left"


FILE = """
duration = "5 s"
[network.bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
"""


@pytest.mark.promise("P52")
@pytest.mark.parametrize(
    ("tables", "words", "said"),
    [
        ('[[programs]]\nhost = "a"\nrun = ["true"]\n', (), "found 1 programs to run; allowed: with --own-code"),
        ('[[programs]]\nhost = "a"\nrun = "true"\n', ("--own-code",), "programs.0.run: found no list of words"),
        ('[[programs]]\nhost = "a"\nrun = ["true"]\nstop = "1 s"\n', ("--own-code",), "programs.0.stop: found a key"),
        ('[[programs]]\nhost = 3\nrun = ["true"]\n', ("--own-code",), "programs.0.host: found"),
        ('[[programs]]\nhost = "a"\nrun = ["true"]\nstart = 4\n', ("--own-code",), "programs.0.start: found"),
        ('[[programs]]\nhost = "a"\nrun = ["true"]\nawaited = 1\n', ("--own-code",), "programs.0.awaited: found"),
        ("", ("--client", "true", "--path", "a", "--path", "b"), "--path: found"),
        ("", ("--host", "x"), '--host: found "x"; allowed: NAME=COMMAND'),
        ("", ("--host", "x=no-such-program"), '--host x: found "no-such-program", which is not there'),
    ],
)
def test_what_a_file_may_not_say_is_one_line(
    tables: str, words: tuple[str, ...], said: str, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    kernel = SimpleNamespace(about={"release": "7.3.4", "controllers": ["cubic", "reno"]})
    monkeypatch.setattr("ackclock.linux._live._cache.installed", lambda: kernel)
    (tmp_path / "path.toml").write_text(FILE + tables)
    assert live(str(tmp_path / "path.toml"), *words) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "check"])
def test_other_commands_refuse_a_file_with_programs(command: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "path.toml").write_text(FILE + '[[flows]]\n[[programs]]\nhost = "a"\nrun = ["true"]\n')
    file = str(tmp_path / "path.toml")
    assert main([command, file]) == 2
    told = "".join(capsys.readouterr())
    assert "found programs to run" in told
    assert "allowed: in a file for `ackclock live`, `compare` or `sweep run` alone" in told


def programs(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("asks.py").write_text(ASKS)
    Path("answers.py").write_text(ANSWERS)


def times(file: str) -> list[float]:
    """Return the times of the packets of a capture, as written."""
    data, at, made = Path(file).read_bytes(), 0, []
    while at < len(data):
        kind, size = (int.from_bytes(data[at + i : at + i + 4], "little") for i in (0, 4))
        if kind == 6:
            high, low = (int.from_bytes(data[at + i : at + i + 4], "little") for i in (12, 16))
            made.append((high << 32 | low) / 1e9)
        at += size
    return made


@real
def test_clients_reach_two_servers_and_each_other_not(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    programs(tmp_path, monkeypatch)
    ask = "/usr/bin/python3 -IS asks.py server server-2"
    words = ["--client", ask, "--host", f"b={ask}", "--host", "c=/usr/bin/python3 -IS asks.py client"]
    words += ["--server", "/usr/bin/python3 -IS answers.py", "--host", "server-2=/usr/bin/python3 -IS answers.py"]
    assert live(*words, "--out", "out", "--json") == 1, "c reaches no client"
    told = json.loads(capsys.readouterr().out)
    codes = {one["host"]: one["code"] for one in told["programs"] if one["code"] is not None}
    assert codes == {"client": 0, "b": 0, "c": 1}
    printed = Path("out/b/b.stdout").read_text()
    assert re.fullmatch(
        r"server b at 10\.1\.\d\.1 asked server 10\.0\.0\.1\nserver-2 b at 10\.1\.\d\.1 asked server-2 10\.0\.1\.1\n",
        printed,
    )
    assert "unreachable" in Path("out/c/c.stderr").read_text()
    seen = times("out/server/server.pcapng")
    assert len(seen) > 15
    assert seen == sorted(seen), "packets of all devices in the order of time"
    assert main(["read", "out/server/server.pcapng", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["connections"]) == 4, "two connections, both ways"


WISHBONE = """
duration = "20 s"
[network]
topology = "wishbone"
access_list = [{ delay = "1 ms" }, { delay = "20 ms" }]
bottleneck = { rate = "10 Mbit/s", delay = "5 ms", queue = { kind = "drop-tail", limit = "1 BDP" } }
[[programs]]
host = "server"
run = ["/usr/bin/python3", "-IS", "answers.py"]
[[programs]]
host = "client"
run = ["/usr/bin/python3", "-IS", "asks.py", "server"]
[[programs]]
host = "far"
start = "1 s"
run = ["/usr/bin/python3", "-IS", "asks.py", "server"]
"""

LOT = """
duration = "20 s"
[network]
topology = "graph"
links = [
  { name = "a", rate = "10 Mbit/s", delay = "5 ms" },
  { name = "b", rate = "10 Mbit/s", delay = "5 ms" },
]
paths = [
  { name = "long", forward = ["a", "b"] },
  { name = "short", forward = ["b"] },
]
"""


@real
@pytest.mark.parametrize("kind", ["wishbone", "graph"])
def test_hosts_stand_in_every_topology(kind: str, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    programs(tmp_path, monkeypatch)
    words: tuple[str, ...] = ("--own-code",)
    if kind == "graph":
        ask = "/usr/bin/python3 -IS asks.py server"
        words = (
            "--server",
            "/usr/bin/python3 -IS answers.py",
            "--client",
            ask,
            "--host",
            f"far={ask}",
            "--path",
            "far=short",
        )
    Path("path.toml").write_text(WISHBONE if kind == "wishbone" else LOT)
    digests = []
    for _ in range(2 if kind == "graph" else 1):
        assert live("path.toml", *words, "--out", "out", "--json") == 0
        told = json.loads(capsys.readouterr().out)
        digests.append(told["digest"])
    assert digests[0] == digests[-1]
    assert [one["name"] for one in told["programs"]] == ["server", "client", "far"]
    for host in ("client", "far"):
        assert f"{host} at" in Path(f"out/{host}/{host}.stdout").read_text()
    near, far = (times(f"out/{host}/{host}.pcapng") for host in ("client", "far"))
    rtt = [at[1] - at[0] for at in (near, far)]
    if kind == "wishbone":
        assert rtt[1] - rtt[0] == pytest.approx(0.038, abs=1e-3), "each has an access link of its own"
    else:
        assert rtt[0] - rtt[1] == pytest.approx(0.010, abs=1e-3), "one link less each way"
