"""Tests for the output guard: it never replaces a file that a command reads, or a file in another owner's folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ackclock import _files
from ackclock.cli import main
from ackclock.cli._terminal import writable_file, writable_folder
from ackclock.errors import InputError

SCENARIO = """
duration = "1 s"
network = { bottleneck = { rate = "2 Mbit/s", delay = "5 ms" } }
[[flows]]
[record]
sample_interval = "100 ms"
goodput_interval = "100 ms"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a scenario, a run, another tool's measurement, and a sweep."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "x.toml").write_text(SCENARIO)
    (folder / "trace.txt").write_text("1\n2\n10\n")
    (folder / "x.sh").write_text("tc qdisc add dev eth0 root netem delay 10ms rate 10mbit\n")
    link = 'bottleneck = { capacity = { kind = "mahimahi", file = "trace.txt" }, delay = "5 ms" }'
    (folder / "m.toml").write_text(SCENARIO.replace('bottleneck = { rate = "2 Mbit/s", delay = "5 ms" }', link))
    (folder / "k.toml").write_text(
        'scenario = "x.toml"\nmetrics = ["goodput_bps"]\nseeds = 1\n[axes]\n"flows.0.count" = [1, 2]\n'
    )
    lesson = Path(__file__).parents[3] / "python" / "ackclock" / "_lessons" / "bufferbloat.toml"
    shutil.copy(lesson, folder / "own-lesson.toml")
    (folder / "tc.sh").write_text("tc qdisc add dev eth0 root netem delay 10ms rate 10mbit limit 100\n")
    (folder / "own.py").write_text(
        "class Own:\n    def on_ack(self, window, ack): pass\n    def on_congestion_event(self, window, in_flight): return 2\n"
    )
    assert main(["run", str(folder / "x.toml"), "--out", str(folder / "run")]) == 0
    assert main(["run", str(folder / "x.toml"), "--pcap", str(folder / "x.pcap")]) == 0
    assert main(["export", str(folder / "run"), "--as", "ss", "--out", str(folder / "ss.txt")]) == 0
    assert main(["sweep", "run", str(folder / "k.toml"), "--jobs", "1", "--out", str(folder / "k.sweep")]) == 0
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "sqlite" not in path.name
    }


OVER_INPUTS = [
    "run x.toml --report x.toml",
    "run x.toml --plot x.svg=x.toml",
    "run x.toml --pcap x.toml",
    "run x.toml --pcap ./link.toml",
    "run x.toml --pcap hard.toml",
    "run m.toml --report trace.txt",
    "run m.toml --pcap trace.txt",
    "run x.toml --controller own.py:Own --pcap own.py",
    "run x.toml --beside ss.txt --report ss.txt",
    "run x.toml --beside run --report run/flows.parquet",
    "run x.toml --out run --report run/flows.parquet",
    "run x.toml --out new --pcap new/run.json",
    "report run --report run/run.json",
    "report run --report run/flows.parquet",
    "report run --report page.html --beside ss.txt --plot samples.cwnd=ss.txt",
    "report run --beside run2/../run --report run/links.parquet",
    "export run --as iperf3 --out run/flows.parquet",
    "export run --as ss --out run/run.json",
    "export run --as qlog --out run/samples.parquet",
    "export x.toml --as tc --out x.toml",
    "export m.toml --as tc --out trace.txt",
    "import tc x.sh --out x.sh",
    "lesson notebook ./own-lesson.toml --out own-lesson.toml",
    "lesson grade ss.txt --csv ss.txt",
    "lesson grade run --lesson ./own-lesson.toml --csv own-lesson.toml",
    "import tc x.sh --out hard.sh",
    "sweep export k.sweep --csv k.sweep/state.sqlite",
    "sweep export k.sweep --csv hard.sqlite",
    "report run --report hard.parquet",
    "sweep export k.toml --csv k.toml",
    "lab x.toml --save x.toml",
    "lab x.toml --save link.toml",
    "lab x.toml --save hard.toml",
    "diagnose x.pcap --report x.pcap",
    "diagnose x.pcap --mirror x.pcap",
    "diagnose x.pcap --csv x.pcap",
    "diagnose x.pcap --plot x.svg=x.pcap",
    "read x.pcap --csv x.pcap",
    "read x.pcap --plot x.svg=x.pcap",
    "report run --plot cwnd=run/flows.parquet",
    "conform own.py:Own --junit own.py",
    "diff x.toml --figure x.toml",
    "import tc tc.sh --out tc.sh",
    "sweep export k.sweep --parquet k.sweep/sweeps/k/table.parquet",
]


@pytest.mark.promise("P13", "P39")
@pytest.mark.parametrize("command", OVER_INPUTS)
def test_what_is_read_is_not_written(command: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "link.toml").symlink_to("x.toml")
    os.link(here / "x.toml", here / "hard.toml")
    os.link(here / "x.sh", here / "hard.sh")
    os.link(here / "k.sweep/state.sqlite", here / "hard.sqlite")
    os.link(here / "run/flows.parquet", here / "hard.parquet")
    (here / "run2").mkdir()
    before = contents(here)
    capsys.readouterr()
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert contents(here) == before


FOREIGN = {
    "run x.toml --out there": ["flows.parquet", "run.json"],
    "evaluate own.py:Own --quick --jobs 1 --out there": ["report.html", "evaluate.json", "junit.xml", "cells.parquet"],
    "study run prr --out there": ["report.html", "claims.json"],
    "live --client true --out there": ["flows.parquet", "run.json", "client", "server"],
}


@pytest.mark.promise("P40")
@pytest.mark.parametrize("command", FOREIGN)
def test_a_foreign_folder_is_refused_before_anything_runs(
    command: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in FOREIGN[command]:
        shutil.rmtree(here / "there", ignore_errors=True)
        (here / "there").mkdir()
        (here / "there" / name).write_text("mine")
        capsys.readouterr()
        assert main(command.split()) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        whose = {"evaluate": "evaluation"}.get(command.split()[0], command.split()[0])
        whose = "live run" if name in ("client", "server") else whose.replace("live", "run")
        assert f"found {name}, which no {whose} has written; allowed: " in err
        assert [path.name for path in (here / "there").iterdir()] == [name]
        assert (here / "there" / name).read_text() == "mine"


def test_a_file_that_is_named_is_replaced(here: Path) -> None:
    for name, command in (
        ("page.html", "report run --report page.html"),
        ("x.sh", "export x.toml --as tc --out x.sh"),
        ("x.csv", "sweep export k.sweep --csv x.csv"),
        ("x.pcapng", "run x.toml --pcap x.pcapng"),
    ):
        (here / name).write_text("mine")
        assert main(command.split()) == 0
        assert b"mine" not in (here / name).read_bytes()[:100]
    assert main(["run", "x.toml", "--out", "run"]) == 0  # the next run replaces the older run's folder
    assert main(["report", "run", "--report", "run/report.html"]) == 0


def test_files_come_between_the_check_and_the_end(here: Path) -> None:
    """A file created in the folder while the command runs is not replaced either."""
    folder = here / "late"

    def write() -> None:
        with _files.staged(folder, marks=("report.html",)) as part:
            (part / "report.html").write_text("ours")
            (folder / "report.html").write_text("mine")

    with pytest.raises(InputError, match="not ours to replace"):
        write()
    assert [path.name for path in folder.iterdir()] == ["report.html"]
    assert (folder / "report.html").read_text() == "mine"


@pytest.mark.promise("P42")
@pytest.mark.parametrize(
    "command",
    ["run x.toml --pcap pipe", "run x.toml --report pipe", "report run --report pipe", "export run --as ss --out pipe",
     "export x.toml --as tc --out pipe", "sweep export k.sweep --csv pipe"],
)  # fmt: skip
def test_a_pipe_that_nobody_reads(
    command: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files, "PATIENCE_S", 0.1)
    os.mkfifo(here / "pipe")
    capsys.readouterr()
    assert main(command.split()) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "found a pipe without a reader; allowed: a file, or a pipe with a reader" in err


@pytest.mark.parametrize(
    ("command", "begin"), [("run x.toml --pcap pipe", b"\n\r\r\n"), ("export x.toml --as tc --out pipe", b"#!")]
)
def test_a_pipe_whose_reader_comes_a_little_later(command: str, begin: bytes, here: Path) -> None:
    os.mkfifo(here / "pipe")
    got: list[bytes] = []

    def read() -> None:
        with (here / "pipe").open("rb") as pipe:
            got.append(pipe.read())

    reader = threading.Timer(0.3, read)
    reader.start()
    assert main(command.split()) == 0
    for held in _files._held:
        os.close(held)
    _files._held.clear()
    reader.join(20)
    assert got[0].startswith(begin)


@pytest.mark.parametrize(
    "command",
    ["run x.toml --report /dev/full", "export run --as ss --out /dev/full", "export x.toml --as tc --out /dev/full",
     "sweep export k.sweep --csv /dev/full", "run x.toml --pcap /dev/full"],
)  # fmt: skip
def test_a_full_device_is_named(command: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(command.split()) == 3
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "standard output" not in err
    assert "/dev/full" in err
    assert "no space left" in err


DIE = """
import os, sys
from pathlib import Path
from ackclock import _files
moves, folder, text = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
replace = Path.replace
def counted(self, place):
    global moves
    if moves == 0:
        os.kill(os.getpid(), 9)
    moves -= 1
    return replace(self, place)
Path.replace = counted
with _files.staged(folder, marks=("about.json",)) as part:
    (part / "cells").mkdir()
    for name in ("about.json", "cells/1", "cells/2", "rows"):
        (part / name).write_text('{"schema": "ackclock.x/1", "is": "' + text + '"}')
"""


def test_a_writer_killed_between_its_moves_leaves_a_folder_that_is_ours(tmp_path: Path) -> None:
    """Whichever file was moved, no mark claims that the folder is complete, and the next writer may proceed."""
    names = ("about.json", "cells", "rows")
    for moves in range(5):
        folder = tmp_path / str(moves)
        for text in ("first", "second"):
            killed = subprocess.run([sys.executable, "-c", DIE, str(moves), folder, text], check=False).returncode
            assert killed == (-9 if moves < 4 else 0)
            assert (folder / "about.json").exists() == (moves == 4)
            _files.check_folder(folder, names, ("about.json",), whose="run")
        subprocess.run([sys.executable, "-c", DIE, "9", folder, "last"], check=True)
        left = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
        assert left == ["about.json", "cells", "cells/1", "cells/2", "rows"]
        assert all('"last"' in path.read_text() for path in folder.rglob("*") if path.is_file())


def test_two_that_look_whether_a_folder_can_be_written_do_not_meet(tmp_path: Path) -> None:
    """Neither check creates a file that the other finds, or removes one that the other needs."""
    folder = tmp_path / "a" / "b"
    wrong: list[Exception] = []

    def look() -> None:
        try:
            for _ in range(200):
                writable_folder(folder)
        except Exception as error:
            wrong.append(error)

    both = [threading.Thread(target=look) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert not wrong
    assert not list(tmp_path.iterdir())


def test_a_command_that_is_over_guards_nothing(made):
    """A program that calls `main` may afterwards write files that the command read, like any other program."""
    assert main(["check", str(made / "x.toml")]) == 0
    _files.check_file(made / "x.toml", "x.toml")


def test_looking_whether_a_file_can_be_written_makes_none_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check never creates a file, not even briefly, because the command may be killed then; nor does it create a dangling link's target."""
    seen: list[set[str]] = []
    touch = Path.touch
    monkeypatch.setattr(
        Path, "touch", lambda self: touch(self) or seen.append({path.name for path in tmp_path.iterdir()})
    )
    (tmp_path / "link").symlink_to("target")
    for name in ("page.html", "link"):
        writable_file(tmp_path / name, "--report")
    assert len(seen) == 2
    assert not [names for names in seen if names & {"page.html", "target"}]
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


READING = """
import json
{first}
class Own:
    def __init__(self):
        {second}
    def on_ack(self, window, ack):
        {third}
    def on_congestion_event(self, window, in_flight): return 2
"""


@pytest.mark.parametrize("option", ["--pcap", "--report", "--plot"])
@pytest.mark.parametrize("where", ["first", "second", "third"])
def test_what_own_code_reads_is_not_written(
    where: str, option: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The guard covers reads during import, during construction and later, under any name."""
    parts = {"first": "", "second": "pass", "third": "pass", where: "json.load(open('weights.json'))"}
    (here / "reading.py").write_text(READING.format(**parts))
    (here / "weights.json").write_text("{}")
    for ending in ("svg", "html"):
        os.link(here / "weights.json", here / f"w.{ending}")
    place = {"--plot": "cwnd=w.svg", "--report": "w.html"}.get(option, "weights.json")
    capsys.readouterr()
    assert main(["run", "x.toml", "--controller", "reading.py:Own", option, place]) == 2
    assert "found what is read" in capsys.readouterr().err
    assert (here / "weights.json").read_text() == "{}"
