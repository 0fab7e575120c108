"""Tests for malicious scripts: a clear verdict within 5 s and 500 MB, and no file touched, measured in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="resource limits are POSIX")

SECONDS = 5
BYTES = 500_000_000

PART = 4
"""Scripts of maximum length are shortened to a quarter, with a quarter of the time limit; the `deep` tests play them in full."""

OPEN = """
0   socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0  bind(3, ..., ...) = 0
+0  listen(3, 1) = 0
+0  < S 0:0(0) win 65535 <mss 100,sackOK,nop,nop,nop,wscale 14>
+0  > S. 0:0(0) ack 1 <...>
+.1 < . 1:1(0) ack 1 win 65535
+0  accept(3, ..., ...) = 4
"""

SCRIPTS = {
    "deep nesting": OPEN + "+0 write(4, " + "[" * 400_000 + "] = 0\n",
    "deep braces": OPEN + "+0 sendmsg(4, " + "{msg_iov(1)=" * 50_000 + "\n",
    "deep notes": OPEN + "+0 write(4, ..., 1) = 1 " + "(" * 500_000 + "\n",
    "deep code": OPEN + "+0 %{ assert " + "(" * 8_000 + "1" + ")" * 8_000 + " }%\n",
    "deep arithmetic": "`sysctl -q net.ipv4.tcp_rmem=$((" + "(" * 200_000 + "))`\n" + OPEN,
    "import": OPEN + "+0 %{ __import__('os').system('touch TOUCHED') }%\n",
    "import statement": OPEN + "+0 %{ import os; os.system('touch TOUCHED') }%\n",
    "open": OPEN + "+0 %{ open('TOUCHED', 'w') }%\n",
    "eval": OPEN + '+0 %{ eval(\'open("TOUCHED", "w")\') }%\n',
    "classes": OPEN + "+0 %{ ().__class__.__base__.__subclasses__() }%\n",
    "shell": OPEN + "+0 `touch TOUCHED`\n",
    "shell before": "`touch TOUCHED; $(touch TOUCHED) | touch TOUCHED`\n" + OPEN,
    "file of the script": "`dd if=/dev/zero of=TOUCHED bs=1 count=1`\n" + OPEN,
    "huge file of the script": "`dd if=/dev/zero of=/tmp/ackclock_touched bs=1000000000 count=1000000000`\n"
    + OPEN
    + '+0 open("/tmp/ackclock_touched", O_RDONLY) = 5\n+0 sendfile(4, 5, [0], 1000000000000) = 1000000000000\n',
    "loop": OPEN + "+0 %{\nwhile True:\n  pass\n}%\n",
    "range": OPEN + "+0 %{ for i in range(10**9): pass }%\n",
    "power": OPEN + "+0 %{ x = 9**9**9 }%\n",
    "power of power": OPEN + "+0 %{ x = 10**100\ny = x**x }%\n",
    "shift": OPEN + "+0 %{ x = 1 << 10**12 }%\n",
    "text": OPEN + "+0 %{ x = 'a' * 10**10 }%\n",
    "format": OPEN + "+0 %{ x = '%10000000000d' % 1 }%\n",
    "doubling text": OPEN + "".join(["+0 %{ x = 'aaaaaaaaaa' }%\n", *["+0 %{ x = x + x }%\n"] * 60]),
    "doubling tuple": OPEN + "".join(["+0 %{ x = (1, 2) }%\n", *["+0 %{ x = (x, x) }%\n"] * 60]),
    "doubling number": OPEN + "".join(["+0 %{ x = 10**9 }%\n", *["+0 %{ x = x * x }%\n"] * 60]),
    "prints": OPEN + "+0 %{ print('" + "a" * 900 + "') }%\n" * 200,
    "endless range": OPEN + "+0~+999999999999999999999 > . 1:1(0) ack 1\n",
    "far range": OPEN + "+0~+999999 > . 1:1(0) ack 1\n",
    "endless wait": OPEN + "+999999 < . 1:1(0) ack 1 win 1\n" * 20_000,
    "any time": OPEN + "* > . 1:1(0) ack 1\n",
    "giant number": OPEN + "+0 write(4, ..., " + "9" * 500_000 + ") = 1\n",
    "giant sequence number": OPEN + "+0 < . " + "9" * 500_000 + ":1(0) ack 1 win 1\n",
    "giant time": "0." + "0" * 500_000 + "1 close(3) = 0\n",
    "giant write": OPEN + "+0 write(4, ..., 999999999999) = 999999999999\n",
    "large write": OPEN + "+0 write(4, ..., 67108864) = 67108864\n" + "+1000 < . 1:1(0) ack 1 win 65535\n" * 2_000,
    "many writes": OPEN + "+0 write(4, ..., 60000000) = 60000000\n" * 15_000,
    "many records": OPEN + "+0 send(4, ..., 1, MSG_EOR) = 1\n" * 25_000,
    "many holes": OPEN + "".join(f"+0 < . {n}:{n + 1}(1) ack 1 win 1\n" for n in range(3, 60_003, 2)),
    "many SACK blocks": OPEN
    + "+0 write(4, ..., 60000000) = 60000000\n"
    + "".join(f"+0 < . 1:1(0) ack 1 win 65535 <sack {n}01:{n + 1}01,nop,nop>\n" for n in range(2, 15_000, 2)),
    "many descriptors": OPEN + "".join(f"+0 socket(..., SOCK_STREAM, 0) = {n}\n" for n in range(10, 9_010)),
    "long poll": OPEN + "+0...999999 poll([{fd=4, events=POLLIN, revents=0}], 1, 2000000000) = 0\n",
    "many events": "0 close(3) = 0\n" * 60_000,
    "no end": OPEN + "+0 %{ x = 1",
    "zeros": "\0" * 1_000_000,
    "odd bytes": "\udcff\udcfe" * 100_000,
}


def longest(part: int = 1) -> dict[str, str]:
    """Return scripts of maximum length or a fraction of it; each takes longer than all others together."""
    watches = range(10, 1_010)
    return {
        "many blocks": OPEN + "+0 %{ x = 1 }%\n" * (30_000 // part),
        "many watched writes": OPEN.replace(
            "+0  bind", "+0 setsockopt(3, SOL_SOCKET, SO_ZEROCOPY, [1], 4) = 0\n+0 bind"
        )
        + "+0 send(4, ..., 1, MSG_ZEROCOPY) = 1\n" * (25_000 // part),
        "many watches": OPEN
        + "+0 epoll_create(1) = 9\n"
        + "".join(f"+0 socket(..., SOCK_STREAM, 0) = {n}\n" for n in watches)
        + "".join(f"+0 epoll_ctl(9, EPOLL_CTL_ADD, {n}, {{events=EPOLLIN, fd={n}}}) = 0\n" for n in watches)
        + "+0 epoll_wait(9, ..., 1, 0) = 1\n" * (20_000 // part),
        "definitions": "".join(f"--define A{n}=A{n - 1}\n" for n in range(1, 20_000 // part)) + OPEN,
    }


GIGABYTE = "a gigabyte"

# Play every script and measure its time; no Python code of this process may open a file to write.
CHILD = """
import json, os, resource, sys, time
resource.setrlimit(resource.RLIMIT_CPU, (100, 100))
from ackclock.errors import InputError
from ackclock.script import play
opened = []
def watch(event, args):
    if event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        opened.append(str(args[0]))
    if event.startswith(("os.", "subprocess.", "shutil.", "socket.")) and event not in ("os.listdir", "os.scandir"):
        opened.append(event)
told = {}
names = sys.stdin.read().split()
sys.addaudithook(watch)
for path in names:
    began = time.perf_counter(), time.process_time()
    try:
        played = play(path)
        verdict, why = played.verdict, played.unsupported or played.actual
    except InputError as error:
        verdict, why = "invalid", str(error)
    told[path] = [verdict, str(why), time.process_time() - began[1]]
if sys.platform == "linux":  # ru_maxrss would count what the parent held when it started this process
    status = open("/proc/self/status").read()
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps([told, peak, opened]))
"""


@pytest.fixture(scope="module", params=[PART, pytest.param(1, marks=pytest.mark.deep)])
def outcome(request, tmp_path_factory):
    """Return the verdicts, the resources used, and whether a file was touched."""
    folder = tmp_path_factory.mktemp("hostile")
    scripts = {**SCRIPTS, **longest(request.param)} if request.param > 1 else longest()
    names = [*scripts, *([GIGABYTE] if request.param > 1 else ())]
    for n, name in enumerate(names):
        file = folder / f"{n:02}.pkt"
        file.write_text(scripts.get(name, ""), encoding="utf-8", errors="surrogateescape")
        if name == GIGABYTE:
            os.truncate(file, 1 << 30)  # sparse: takes no disk space
    paths = sorted(folder.iterdir())
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        input="\n".join(map(str, paths)),
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=200,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    told, peak, opened = json.loads(child.stdout)
    told = dict(zip(names, told.values(), strict=True))
    for name in longest(request.param):
        told[name][2] *= request.param
    return told, peak, opened, sorted(folder.iterdir()) == paths


def test_each_ends_in_time_with_a_clear_answer(outcome):
    told, _, _, _ = outcome
    assert {name: told[name] for name in told if told[name][2] >= SECONDS} == {}
    passing = {name for name, (verdict, *_) in told.items() if verdict == "pass"}
    # These scripts use a lot of resources, but are not malformed.
    assert passing <= {"definitions", "prints"} | {name for name in told if name.startswith(("many", "large"))}
    assert all(0 < len(why) <= 500 and "\n" not in why for name, (_, why, _) in told.items() if name not in passing)
    for name, said in ((GIGABYTE, "limit"), ("import", "not allowed")):
        assert name not in told or said in told[name][1]


def test_memory_stays_small(outcome):
    assert outcome[1] < BYTES


def test_no_file_is_touched(outcome):
    _, _, opened, unchanged = outcome
    assert opened == []
    assert unchanged
