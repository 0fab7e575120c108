"""Tests that only our files are removed, identified by their names and by the mark inside."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from ackclock import _files
from ackclock.cli import main
from ackclock.cli._app import app

SCENARIO = """
duration = "0.2 s"
[network.bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
[[flows]]
"""
SWEEP = 'scenario = "s.toml"\nseeds = 1\n[axes]\n"network.bottleneck.delay" = ["10 ms"]\n'
THEIRS = (".ackclock-notes", ".ackclock-0123456789abcdef", ".ackclock_x", ".ackclock-0123456789ABCDEF")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a user's thesis in folders with names resembling ours."""
    for name in THEIRS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.tex").write_text("thesis", encoding="utf-8")
    (tmp_path / "s.toml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


COMMANDS = (
    "run s.toml --report r.html", "run s.toml --out .", "run s.toml --plot cwnd.png", "run s.toml --pcap x.pcap", "export s.toml --as tc --out x.sh",
    "sweep run sweep.toml", "study new mine", "lab s.toml --save lab.html",
)  # fmt: skip


@pytest.mark.promise("P41")
@pytest.mark.parametrize("command", COMMANDS)
def test_folders_of_the_user_stay(home: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(command.split())
    assert code in ((0, 2) if command.startswith("lab") else (0,)), capsys.readouterr().err
    for name in THEIRS:
        assert (home / name / "thesis.tex").read_text(encoding="utf-8") == "thesis"
    assert not [p for p in home.glob(".ackclock*") if p.name not in THEIRS]


KILLED = """
import os, signal, sys
from pathlib import Path
from ackclock import _files
with getattr(_files, sys.argv[1])(Path(), **({"marks": _files.OWN} if sys.argv[1] == "staged" else {})) as part:
    (part / "half").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.promise("P41")
@pytest.mark.parametrize("which", ["staged", "scratch"])
def test_what_a_killed_command_left_is_removed_with_a_word(
    home: Path, which: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, which], check=False).returncode == -signal.SIGKILL
    (left,) = (p for p in home.glob(".ackclock-*") if p.name not in THEIRS)
    assert (left / ".ackclock").read_bytes() == _files.MARKED
    assert main(["run", "s.toml", "--report", "r.html"]) == 0
    assert f"{left.name}: removed; a command that was killed had left it" in capsys.readouterr().err
    assert not left.exists()


@pytest.mark.promise("P41")
@pytest.mark.parametrize("written", [None, 0, 20])
def test_a_mark_that_was_not_written_to_its_end_is_one(home: Path, written: int | None) -> None:
    """A writer was killed between creating the file and writing to it; a folder with other contents is kept."""
    left, theirs = home / ".ackclock-aaaaaaaaaaaaaaaa", home / ".ackclock-bbbbbbbbbbbbbbbb"
    for folder in (left, theirs):
        folder.mkdir()
        if written is not None:
            (folder / ".ackclock").write_bytes(_files.MARKED[:written])
    (theirs / "x").write_text("mine", encoding="utf-8")
    assert main(["run", "s.toml", "--report", "r.html"]) == 0
    assert not left.exists()
    assert (theirs / "x").exists()


def test_a_mark_that_is_a_link_is_none(home: Path) -> None:
    folder = home / ".ackclock-aaaaaaaaaaaaaaaa"
    folder.mkdir()
    (home / "marked").write_bytes(_files.MARKED)
    (folder / ".ackclock").symlink_to(home / "marked")
    (folder / "x").write_text("mine", encoding="utf-8")
    (home / ".ackclock-bbbbbbbbbbbbbbbb").symlink_to(folder)
    assert main(["run", "s.toml", "--report", "r.html"]) == 0
    assert (folder / "x").exists()
    assert (home / ".ackclock-bbbbbbbbbbbbbbbb").is_symlink()


def test_a_part_of_another_kind_in_a_store_stays(home: Path) -> None:
    assert main(["sweep", "run", "sweep.toml", "--out", "st"]) == 0
    place = home / "st/sweeps/sweep/.ackclock-notes"
    place.mkdir()
    assert main(["sweep", "run", "sweep.toml", "--out", "st"]) == 0
    assert place.is_dir()
    os.rmdir(place)


READ = {
    "--beside", "--budget", "--check", "--controller", "--entry", "--lesson", "--own-code", "--patch", "--population", "--registered", "--rival", "--root", "--scenario", "--statement", "--style", "--tree", "--wheel",
}  # fmt: skip
"""Options with a help text that mentions files read by the command."""

FOLDERS = {
    ("run", "--out"), ("attack", "--out"), ("evaluate", "--out"), ("study run", "--out"), ("study run", "--store"), ("study edges", "--store"), ("study new", "--out"),
    ("sweep run", "--out"), ("sweep resume", "--out"), ("sweep status", "--out"), ("sweep rerun", "--out"), ("sweep plot", "--out"),
    ("sweep export", "--out"), ("compare", "--out"), ("prove", "--out"), ("arena run", "--out"), ("arena serve", "--out"),
    ("arena scenarios", "--out"),
    ("live", "--out"),
}  # fmt: skip
"""Options that name a folder in which only our own files are replaced (`test_a_foreign_folder_is_refused_before_anything_runs`)."""

NAMED_BY_A_STUDY = {("study register", "--out"), ("study artefact", "--out")}
"""Options that name a study instead of a file: an output is compared with the files read by the command in the study's folder."""


def outputs() -> dict[str, set[str]]:
    """Return each command's options that name a file or folder to be written."""
    found: dict[str, set[str]] = {}

    def walk(command: object, name: str) -> None:
        if hasattr(command, "list_commands"):
            context = typer.Context(command)  # type: ignore[arg-type]
            for one in command.list_commands(context):
                walk(command.get_command(context, one), f"{name} {one}".strip())  # type: ignore[attr-defined]
            return
        for option in command.params:  # type: ignore[attr-defined]
            text = f"{option.metavar or ''} {getattr(option, 'help', '') or ''}"
            if option.opts[0].startswith("--") and any(word in text for word in ("FILE", "DIR")):
                found.setdefault(name, set()).add(option.opts[0])

    walk(app, "")
    return found


@pytest.mark.promise("P39")
def test_every_output_is_tried_over_an_input() -> None:
    """A command with a new output needs an entry in the list of attempts."""
    from hostile import test_outputs

    tried = {(name, option) for name, options in outputs().items() for option in options
             if any(f"{line} ".startswith(f"{name} ") and f" {option} " in line for line in test_outputs.OVER_INPUTS)}  # fmt: skip
    writes = {(name, option) for name, options in outputs().items() for option in options if option not in READ}
    assert writes - tried - FOLDERS - NAMED_BY_A_STUDY == set()
    assert len(tried) >= 15


@pytest.mark.promise("P41")
def test_what_the_disk_does_not_let_go_of_is_removed_by_the_next_command(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(place: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(place))

    monkeypatch.setattr(shutil, "rmtree", refuses)
    with _files.scratch(home) as part:
        (part / "half").mkdir()
    monkeypatch.undo()
    assert part.exists()
    with _files.scratch(home):
        assert not part.exists()


@pytest.mark.promise("P45")
@pytest.mark.parametrize(
    "words",
    [["--pcap", "o.pcapng"], ["--report", "r.html"], ["--out", "o"], ["--plot", "cwnd.svg"]],
    ids=lambda words: str(words[0]),
)
def test_a_move_that_the_disk_refuses_is_one_line(
    words: list[str], home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuses(place: Path, target: Path) -> Path:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(place))

    monkeypatch.setattr(Path, "replace", refuses)
    assert main(["run", "s.toml", *words]) == 3
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    assert line.startswith("ackclock: ")
    assert "input/output error" in line


def test_a_part_within_a_part_waits_for_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The inner part's writer holds the outer part's lock. A disk error while reading the mark does not make the part foreign."""
    with _files.staged(tmp_path / "o", marks=_files.OWN) as part, monkeypatch.context() as context:
        context.setattr(Path, "read_bytes", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "read")))
        with _files.staged(part, marks=_files.OWN) as inner:
            (inner / "x").write_text("x", encoding="utf-8")
    assert (tmp_path / "o/x").exists()


@pytest.mark.parametrize("refused", [".ackclock", "run.json"])
def test_a_part_that_alone_says_whose_the_folder_is_stays_while_the_disk_refuses_it(
    tmp_path: Path, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer was killed between its renames, and one command cannot read the remains; the next command can."""
    (tmp_path / "s.toml").write_text(SCENARIO, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["run", "s.toml", "--out", "o"]) == 0
    rest = tmp_path / "o/.ackclock-aaaaaaaaaaaaaaaa"
    rest.mkdir()
    (tmp_path / "o/run.json").rename(rest / "run.json")
    (rest / ".ackclock").write_bytes(_files.MARKED + b"run.json\n")
    with monkeypatch.context() as context:
        opened, read = os.open, Path.read_bytes
        no = OSError(errno.EIO, "read")

        def system(path, *a, **b):
            if os.path.basename(os.fspath(path)) == refused:
                raise no
            return opened(path, *a, **b)

        def whole(path):
            if path.name == refused:
                raise no
            return read(path)

        context.setattr(os, "open", system)
        context.setattr(Path, "read_bytes", whole)
        _files.remove_parts(tmp_path / "o")
    assert (rest / "run.json").exists()
    assert main(["run", "s.toml", "--out", "o"]) == 0
    assert (tmp_path / "o/run.json").exists()
    assert not rest.exists()
