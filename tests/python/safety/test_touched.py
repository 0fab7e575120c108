"""Compares the files that each command opens, executes and removes in someone else's folder, according to its system calls, with a list."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from test_folder import COMMAND, SCENARIO, canary, folder  # noqa: F401 - a fixture

from ackclock.cli import main
from ackclock.cli._app import app

STRACE = shutil.which("strace")
CALLS = "execve,execveat,open,openat,openat2,creat,unlink,unlinkat,rmdir,rename,renameat,renameat2,link,linkat,symlink,symlinkat,mkdir,mkdirat"
PYTHON = os.path.basename(sys.executable)
COMPILES = frozenset({"cc", "gcc", "cc1", "as", "collect2", "ld", "sh"})


@dataclass(frozen=True)
class Touches:
    """Accesses that a command may make.

    Parameters
    ----------
    argv
        The command.
    reads, writes
        Names in the folder, each including everything below it.
    executes
        Names of programs, all outside of the folder.
    code
        Exit code that is also accepted.
    """

    argv: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    executes: frozenset[str] = frozenset()
    code: int = 0


LIST = {
    "run": Touches("run s.toml --out o --report r.html --plot cwnd.png --pcap p.pcapng", ("s.toml",), ("o", "r.html", "cwnd.png", "p.pcapng")),
    "run own": Touches("run s.toml --controller c.py:Mine --trace all", ("s.toml", "c.py", "w.json"), ("__pycache__",)),
    "run own C": Touches("run s.toml --controller c.c", ("s.toml", "c.c"), (), COMPILES),
    "report": Touches("report ran --report r.html --plot cwnd.svg", ("ran",), ("r.html", "cwnd.svg")),
    "export": Touches("export ran --as ss --out ss.txt", ("ran",), ("ss.txt",)),
    "read": Touches("read x.pcapng --csv x.csv", ("x.pcapng",), ("x.csv",)),
    "diagnose": Touches("diagnose x.pcapng --report d.html --csv d.csv --plot d.png", ("x.pcapng",), ("d.html", "d.csv", "d.png")),
    "lab": Touches("lab s.toml --save lab.html", ("s.toml",), ("lab.html",), code=2),
    "list": Touches("list"),
    "tables": Touches("tables"),
    "check": Touches("check s.toml", ("s.toml",)),
    "schema": Touches("schema"),
    "script": Touches("script x.pkt", ("x.pkt",), code=2),
    "doctor": Touches("doctor", executes=frozenset({"cc", "gcc", "rustc", "cargo", "git", "make", "rustup", PYTHON}), code=3),
    "compare": Touches("compare s.toml t.toml --seeds 2", ("s.toml", "t.toml")),
    "attack": Touches("attack reno --evaluations 2 --reference cubic --budget loss --jobs 1 --out at", (), ("at",)),
    "arena list": Touches("arena list"),
    "arena run": Touches("arena run task.toml --entry reno --draws 1 --jobs 1 --out ar", ("task.toml",), ("ar",)),
    "arena rerun": Touches("arena rerun none.json reno", ("none.json",), code=2),
    "arena serve": Touches("arena serve --jobs 1"),
    "arena scenarios": Touches("arena scenarios internet --draws 1 --out pub", (), ("pub",)),
    "evaluate": Touches("evaluate reno --quick --rows 5 --jobs 1 --out ev", (), ("ev",)),
    "conform": Touches("conform c.py:Mine --junit j.xml", ("c.py", "w.json"), ("j.xml", "__pycache__")),
    "import": Touches("import tc tc.sh --out i.toml", ("tc.sh",), ("i.toml",)),
    "import own": Touches("import path log.json --fit --out i.toml", ("log.json",), ("i.toml",)),
    "prove": Touches("prove short-response --first 3 --out pr", (), ("pr",)),
    "cite": Touches("cite"),
    "study list": Touches("study list"),
    "study show": Touches("study show prr"),
    "study new": Touches("study new mine", (), ("mine",)),
    "study register": Touches("study register ./own --out reg.json", ("own",), ("reg.json", "own/__pycache__")),
    "study run": Touches("study run ./own --jobs 1 --out so", ("own",), ("so", "own/__pycache__")),
    "lesson list": Touches("lesson list"),
    "lesson check": Touches("lesson check l.toml", ("l.toml",)),
    "lesson notebook": Touches("lesson notebook l.toml --student --out l.ipynb", ("l.toml",), ("l.ipynb",)),
    "lesson grade": Touches("lesson grade handed --lesson l.toml --csv marks.csv", ("l.toml", "handed"), ("marks.csv",)),
    "stack check": Touches("stack check ./lib.so", ("lib.so",), (), frozenset({PYTHON}), code=2),
    "sweep run": Touches("sweep run sweep.toml --jobs 1 --out new", ("sweep.toml", "s.toml"), ("new",)),
    "sweep resume": Touches("sweep resume apart --jobs 1", ("apart",), ("apart",), frozenset({PYTHON})),
    "sweep status": Touches("sweep status swept", ("swept",), ("swept",)),
    "sweep rerun": Touches("sweep rerun swept --cell 1 --seed 1", ("swept",), ("swept",)),
    "sweep check": Touches("sweep check swept", ("swept",), ("swept",)),
    "sweep export": Touches("sweep export swept --csv x.csv", ("swept",), ("x.csv", "swept")),
    "sweep plot": Touches("sweep plot swept --out figs", ("swept",), ("figs", "swept")),
}  # fmt: skip
"""Command -> accesses permitted."""

ELSEWHERE = {
    "bench": "`test_bench` (it runs for minutes)", "fidelity": "reads no file of anybody's", "linux build": "`tests/python/linux/test_tree.py`",
    "linux list": "`tests/python/linux/test_kept.py`", "linux remove": "`tests/python/linux/test_kept.py`",
    "diff": "starts a kernel", "live": "`tests/python/linux/test_linux_live.py`", "mcp": "`tests/python/cli/test_mcp.py`", "study artefact": "as `study run`", "study edges": "as `study run`",
}  # fmt: skip
"""Commands that are tested elsewhere -> the reason."""

OWN = """
import json
class Mine:
    def __init__(self):
        self.share = json.load(open("w.json"))
    def on_ack(self, window, ack):
        window.cwnd += self.share if ack.cwnd_limited else 0
    def on_congestion_event(self, window, in_flight):
        return window.cwnd / 2
"""
LESSON = Path(__file__).parents[3] / "python" / "ackclock" / "_lessons" / "bufferbloat.toml"
IN_C = """
#include <net/tcp.h>
static u32 half(struct sock *sk) { return 4; }
static void avoid(struct sock *sk, u32 ack, u32 acked) { }
static struct tcp_congestion_ops ops = { .ssthresh = half, .cong_avoid = avoid, .undo_cwnd = tcp_reno_undo_cwnd, .name = "mine", .owner = THIS_MODULE };
static int __init start(void) { return tcp_register_congestion_control(&ops); }
module_init(start);
MODULE_LICENSE("GPL");
"""


@pytest.fixture
def prepared(folder: Path) -> Path:  # noqa: F811 - the fixture
    """Return the hostile folder with the listed commands' inputs."""
    (folder / "c.py").write_text(OWN, encoding="utf-8")
    (folder / "w.json").write_text("0.5", encoding="utf-8")
    (folder / "c.c").write_text(IN_C, encoding="utf-8")
    (folder / "x.pkt").write_text("", encoding="utf-8")
    shutil.copy(LESSON, folder / "l.toml")
    (folder / "handed").mkdir()
    (folder / "handed" / "ada.txt").write_text("#s=AAAA\n", encoding="utf-8")
    (folder / "tc.sh").write_text(
        "tc qdisc add dev eth0 root netem delay 10ms rate 10mbit limit 100\n", encoding="utf-8"
    )
    shutil.copy(sys.modules["ackclock._engine"].__file__ or "", folder / "lib.so")
    (folder / "s.toml").write_text(
        SCENARIO.replace("0.2 s", "100 ms") + '[record]\nsample_interval = "10 ms"\ngoodput_interval = "10 ms"\n',
        encoding="utf-8",
    )
    shutil.copy(folder / "s.toml", folder / "t.toml")
    shutil.copy(Path(__file__).parents[1] / "arena" / "small.toml", folder / "task.toml")
    shutil.copy(Path(__file__).parents[1] / "formats" / "samples" / "iperf3-netem.json", folder / "log.json")
    return folder


def commands() -> set[str]:
    """Return the names of all commands."""
    found = set()

    def walk(command: object, name: str) -> None:
        if not hasattr(command, "list_commands"):
            found.add(name)
            return
        context = typer.Context(command)  # type: ignore[arg-type]
        for one in command.list_commands(context):
            walk(command.get_command(context, one), f"{name} {one}".strip())  # type: ignore[attr-defined]

    walk(app, "")
    return found


def test_every_command_is_in_the_list() -> None:
    assert {name.removesuffix(" C").removesuffix(" own") for name in LIST} | set(ELSEWHERE) == commands()


def needs(place: Path, words: list[str]) -> None:
    """Make the command's inputs."""
    if "ran" in words:
        assert main(["run", "s.toml", "--out", "ran"]) == 0
    if "x.pcapng" in words:
        assert main(["run", "s.toml", "--pcap", "x.pcapng"]) == 0
    for store in ("swept", "apart"):
        if store in words:
            assert main(["sweep", "run", "sweep.toml", "--jobs", "1", "--out", store]) == 0
    if "apart" in words:
        with sqlite3.connect("apart/state.sqlite") as db:
            db.execute("UPDATE runs SET state = 'pending', attempts = 2, part = NULL WHERE id = 1")
    if "./own" in words:
        assert main(["study", "new", "own"]) == 0
    assert not canary(place)


@pytest.mark.promise("P30")
@pytest.mark.deep
@pytest.mark.skipif(STRACE is None, reason="no strace")
@pytest.mark.parametrize("which", LIST)
def test_what_a_command_touches(prepared: Path, tmp_path: Path, which: str) -> None:
    """A command reads only files it names, starts only programs it needs and none from the folder, and removes only its own files."""
    touches = LIST[which]
    words = touches.argv.split()
    needs(prepared, words)
    log = tmp_path / "log"
    trace = [STRACE or "", "-f", "-y", "-qq", "-s", "4096", "-e", f"trace={CALLS}", "-e", "signal=none", "-o", str(log)]
    env = {**os.environ, "PATH": f".:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    done = subprocess.run([*trace, str(COMMAND), *words], capture_output=True, text=True, check=False, env=env)
    assert done.returncode in (0, 1, touches.code), done.stderr
    assert not canary(prepared)
    wrong = [line for line in judged(log, prepared, tmp_path, touches) if line]
    assert not wrong, "\n".join(sorted(set(wrong))[:20])


CALL = re.compile(r"^\d+ +(?:<\.\.\. )?(\w+)\((.*)\) += (-?\d+)")
NAME = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')


def judged(log: Path, place: Path, tmp_path: Path, touches: Touches) -> list[str]:
    """Return the calls missing from the list."""
    found = []
    first = True
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        call = CALL.match(line)
        if call is None or (call[1] == "execve" and int(call[3]) < 0):
            continue
        name, arguments = call[1], call[2]
        paths = [os.path.normpath(os.path.join(base or place, path)) for base, path in NAME.findall(arguments)]
        if name == "execve":
            if not first and (inside(paths[0], place) or os.path.basename(paths[0]) not in touches.executes):
                found.append(f"executed: {paths[0]}")
            first = False
            continue
        writes = name not in ("open", "openat", "openat2") or bool(re.search("O_WRONLY|O_RDWR|O_CREAT", arguments))
        for path in paths[: 2 if name.startswith(("rename", "link")) else 1]:
            if not inside(path, place):
                if ".cpython-" in path:  # our bytecode
                    continue
                if (
                    name.startswith(("unlink", "rmdir", "rename"))
                    and not inside(path, tmp_path)
                    and not path.startswith(("/dev/shm/", "/tmp/"))
                ):
                    found.append(f"removed: {path}")
                continue
            relative = os.path.relpath(path, place)
            if relative == "." or "O_DIRECTORY" in arguments:
                continue
            scratch = any(part.startswith(".ackclock-") for part in Path(relative).parts)
            allowed = touches.writes if writes else touches.reads + touches.writes
            if not scratch and not any(relative == one or relative.startswith(f"{one}/") for one in allowed):
                found.append(f"{'written, made or removed' if writes else 'opened'}: {relative} ({name})")
    return found


def inside(path: str, place: Path) -> bool:
    return path == str(place) or path.startswith(f"{place}/")
