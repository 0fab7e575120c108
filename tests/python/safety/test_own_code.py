"""Tests for user code that ends its process, never returns, or takes over the streams: one line and exit code 2 in every command."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ackclock import _wall

ACKCLOCK = [sys.executable, "-m", "ackclock"]
SCENARIO = """
duration = "1 s"
[network.bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "drop-tail", limit = "20 packets" }
[[flows]]
congestion_control = "FILE"
"""
PYTHON = """
import os, signal, sys, time
class Mine:
    def on_ack(self, window, ack):
        if ack.now > 0.1:
            ACT
        if ack.cwnd_limited:
            window.cwnd += ack.acked / window.cwnd
    def on_congestion_event(self, window, in_flight):
        return window.cwnd / 2
"""
C = """
#include <linux/module.h>
#include <net/tcp.h>
void exit(int); void _exit(int); void quick_exit(int); unsigned sleep(unsigned);
static u32 mine_ssthresh(struct sock *sk) { HOOK; return max(tcp_snd_cwnd(tcp_sk(sk)) / 2, 2U); }
static struct tcp_congestion_ops mine = {
	.name = "mine", .owner = THIS_MODULE, .ssthresh = mine_ssthresh, .cong_avoid = tcp_reno_cong_avoid, .undo_cwnd = tcp_reno_undo_cwnd,
};
static void __attribute__((constructor)) first(void) { FIRST; }
static int __init mine_register(void) { INIT; return tcp_register_congestion_control(&mine); }
module_init(mine_register);
"""
IN_PYTHON = {
    "os._exit(0)": "seed 1, Mine, on_ack at 0.10",
    "os._exit(3)": "found an end of the process (exit code 3)",
    "os.kill(os.getpid(), signal.SIGKILL)": "found an end of the process (SIGKILL)",
    "import ctypes; ctypes.string_at(0)": "seed 1, Mine, on_ack at 0.10",
    "sys.exit(0)": "controller Mine, on_ack at 0.10",
    "sys.stdout.close()": "found a command that fails after this code has run",
    "sys.stdout = None": "found a command that fails after this code has run",
    "sys.modules.clear()": "found a command that fails after this code has run",
    "os.closerange(3, 200)": "found an end of the process",
    "time.sleep(1000)": "seed 1, Mine, on_ack at 0.10",
}
IN_C = {
    "HOOK=exit(0)": "seed 1, mine, ssthresh at ",
    "HOOK=_exit(0)": "seed 1, mine, ssthresh at ",
    "HOOK=quick_exit(0)": "seed 1, mine, ssthresh at ",
    "HOOK=sleep(1000)": "seed 1, mine, ssthresh at ",
    "INIT=exit(0)": "loading ",
    "FIRST=_exit(0)": "loading ",
    "FIRST=for(;;)": "loading ",
}
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C")


def called(*words: object, folder: Path, **variables: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*ACKCLOCK, *map(str, words)], capture_output=True, text=True, cwd=folder, timeout=100, check=False,
        env={**os.environ, "ACKCLOCK_CALL_LIMIT": "1", **variables},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def refused(answer: tuple[int, str, str], said: str) -> None:
    code, out, err = answer
    assert (code, err.count("ackclock: "), err.count("\n")) == (2, 1, 1), (code, out, err)
    assert said in err
    assert "written" not in out


def python(folder: Path, act: str) -> str:
    (folder / "mine.py").write_text(PYTHON.replace("ACT", act))
    (folder / "s.toml").write_text(SCENARIO.replace("FILE", "mine.py:Mine"))
    return "mine.py:Mine"


def c(folder: Path, case: str) -> str:
    text = C
    for place in ("HOOK", "INIT", "FIRST"):
        text = text.replace(place, case.partition("=")[2] if case.startswith(place) else "")
    (folder / "mine.c").write_text(text)
    (folder / "s.toml").write_text(SCENARIO.replace("FILE", "mine.c"))
    return "mine.c"


@pytest.mark.promise("P16", "P31")
@pytest.mark.parametrize("act", IN_PYTHON)
def test_what_python_does_to_the_process_is_a_line(tmp_path, act):
    python(tmp_path, act)
    refused(called("run", "s.toml", "--own-code", folder=tmp_path), IN_PYTHON[act])


@pytest.mark.promise("P17", "P31")
@needs_cc
@pytest.mark.parametrize("case", IN_C)
def test_what_c_does_to_the_process_is_a_line(tmp_path, case):
    c(tmp_path, case)
    refused(called("run", "s.toml", "--own-code", folder=tmp_path), IN_C[case])


@pytest.mark.promise("P31")
@pytest.mark.parametrize(
    "command", ["conform {}", "evaluate {} --quick --rows 5 --out ev", "attack {} --evaluations 4 --out at --jobs 1"]
)
def test_the_other_commands_say_so_too(tmp_path, command):
    own = python(tmp_path, "os._exit(0)")
    refused(called(*command.format(own).split(), folder=tmp_path), "found an end of the process (exit code 0)")


@pytest.mark.promise("P32")
def test_a_constructor_that_never_ends_is_a_line(tmp_path):
    python(tmp_path, "pass")
    (tmp_path / "mine.py").write_text(
        PYTHON.replace("ACT", "pass") + "    def __init__(self):\n        time.sleep(1000)\n"
    )
    for command in ("run s.toml --own-code", "evaluate mine.py:Mine --quick --rows 5 --out ev"):
        refused(called(*command.split(), folder=tmp_path), "found no end after 1 s")


@pytest.mark.promise("P34")
def test_a_sweep_goes_on_after_a_death(tmp_path):
    own = python(tmp_path, "os._exit(0)")
    (tmp_path / "k.toml").write_text(
        f'name = "k"\nseeds = 2\nmetrics = ["goodput_bps"]\nscenario = "s.toml"\n[axes]\n"flows.0.congestion_control" = ["cubic", "{own}"]\n'
    )
    code, out, _ = called("sweep", "run", "k.toml", "--own-code", "--out", "st", "--jobs", 2, folder=tmp_path)
    assert code == 1
    assert "2 of 4 runs done, 2 failed" in out
    _, out, _ = called("sweep", "status", "st", folder=tmp_path)
    assert "seed 2, Mine, on_ack at 0.10" in out
    assert "found an end of the process (exit code 0)" in out


@pytest.mark.promise("P21", "P31")
@pytest.mark.parametrize("act", ["sys.exit(0)", "os._exit(0)", "raise GeneratorExit"])
def test_a_study_that_ends_the_process_is_no_success(tmp_path, act):
    assert called("study", "new", "mine", "--out", ".", folder=tmp_path)[0] == 0
    file = tmp_path / "mine/study.py"
    file.write_text(
        file.read_text().replace(
            "def run(plan: Plan) -> Data:\n", f"def run(plan: Plan) -> Data:\n    import os, sys; {act}\n"
        )
    )
    code, _, err = called("study", "run", "./mine", "--out", "o", folder=tmp_path)
    assert (code, err.count("ackclock: ")) == (2, 1), err
    assert not (tmp_path / "o").exists()


def test_a_command_that_is_well_behaved_is_as_before(tmp_path):
    python(tmp_path, "print('hello')")
    code, out, err = called("run", "s.toml", "--own-code", "--json", folder=tmp_path)
    assert (code, err) == (0, "")
    assert "hello" in out
    assert "digest" in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_command_once(tmp_path, number):
    python(tmp_path, "time.sleep(0.01)")
    (tmp_path / "s.toml").write_text((tmp_path / "s.toml").read_text().replace('"1 s"', '"1000 s"'))
    with subprocess.Popen(
        [*ACKCLOCK, "run", "s.toml", "--own-code"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        time.sleep(1.5)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "")


def children(of: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{of}/task/{of}/children").read_text().split()]


def alive(process: int) -> bool:
    """Return whether the process is alive; a zombie may remain until it is reaped."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.promise("P33")
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc")
def test_no_child_outlives_its_parent(tmp_path):
    python(tmp_path, "time.sleep(1000)")
    with subprocess.Popen(
        [*ACKCLOCK, "run", "s.toml", "--own-code"],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "ACKCLOCK_CALL_LIMIT": "500"},
    ) as process:
        until = time.monotonic() + 20
        while not (found := children(process.pid)) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1)
        process.kill()
    time.sleep(0.3)
    assert found
    assert not [one for one in found if alive(one)]


def test_commands_without_own_code_have_no_parent():
    for words in (["run", "a.toml"], ["list"], ["sweep", "status", "st"], ["--help"], []):
        assert not _wall.needed(words)
    for words in (
        ["run", "a.toml", "--set", "flows.0.congestion_control=m.c"],
        ["study", "run", "./x"],
        ["stack", "check", "l.so"],
    ):
        assert _wall.needed(words)


@pytest.mark.promise("P35")
@needs_cc
def test_a_compiler_has_a_bound_of_memory():
    from ackclock import _child

    done = _child.run(["cc", "-x", "c", "-", "-S", "-o", "/dev/null"], input="int x;", memory=10 * 2**20)
    assert done.returncode != 0
    assert _child.run(["cc", "-x", "c", "-", "-S", "-o", "/dev/null"], input="int x;", memory=2**32).returncode == 0
