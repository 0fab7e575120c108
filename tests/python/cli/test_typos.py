"""Tests for 75 mistyped commands: the first 100 characters of the message contain the intended word."""

from __future__ import annotations

from pathlib import Path

import pytest

from ackclock.cli import main

RATE, DELAY = "network.bottleneck.rate", "network.bottleneck.delay"
QUEUE, LOSS, FLOW = "network.bottleneck.queue", "network.bottleneck.loss", "flows.0"

REFUSED = [
    ("run frist", 'did you mean "first"'),
    ("run First", 'did you mean "first"'),
    ("run first.toml", "allowed: first,"),
    ("rnu first", 'did you mean "run"'),
    ("run first --seeds 3", 'did you mean "--seed"'),
    ("run first --duration 10s", '--set duration="..."'),
    ("run first --set duration=10", '"10 ms" or "10 s"'),
    ("run first --set duration=10 sec", '"10 s"'),
    ("run first --set duration=10 minutes", '"10 min"'),
    (f"run first --set {RATE}=10Mbps", '"10 Mbit/s"'),
    (f"run first --set {RATE}=10 Mb/s", '"10 Mbit/s"'),
    (f"run first --set {RATE}=10 MB/s", '"80 Mbit/s"'),
    (f"run first --set {RATE}=10 mbit/s", '"10 Mbit/s"'),
    (f"run first --set {RATE}=10MBit", '"10 Mbit/s"'),
    (f"run first --set {DELAY}=20 µs", f'{QUEUE}.limit: found "1 BDP", which is less than half'),
    (f"run first --set {DELAY}=-20 ms", "negative"),
    (f"run first --set {QUEUE}.limit=100", "100 packets"),
    (f"run first --set {QUEUE}.limit=100 pkts", '"100 packets"'),
    (f"run first --set {QUEUE}.limit=1 bdp", '"1 BDP"'),
    (f"run first --set {QUEUE}.kind=droptail", 'did you mean "drop-tail"'),
    (f"run first --set {QUEUE}.kind=fq_codel", 'did you mean "fq-codel"'),
    (f"run first --set {LOSS}=0.01", '{ kind = "bernoulli", p = 0.01 }'),
    (f"run first --set {LOSS}=1%", '{ kind = "bernoulli", p = "1 %" }'),
    (f'run first --set {LOSS}={{kind="random",p="1%"}}', "bernoulli"),
    (f"run first --set {FLOW}.congestion_control=BBR", 'did you mean "bbr"'),
    (f"run first --set {FLOW}.congestion_control=bbr2", 'did you mean "bbr"'),
    (f"run first --set {FLOW}.cc=bbr", '"flows.0.congestion_control"'),
    ("run first --set flows.1.congestion_control=bbr", "allowed: a position in the list, 0"),
    ("run first --set flows[0].congestion_control=bbr", '"flows.0.congestion_control"'),
    ("run first --set congestion_control=bbr", '"flows.0.congestion_control"'),
    (f"run first --set {FLOW}.count=two", "a whole number"),
    (f"run first --set {FLOW}.start=5", '"5 ms" or "5 s"'),
    ("run first --set bottleneck.rate=10 Mbit/s", '"network.bottleneck"'),
    ("run first --set network.rate=10 Mbit/s", '"network.bottleneck.rate"'),
    (f"run first --set {FLOW}.workload=transfer", '{ kind = "transfer", bytes = "10 MB" }'),
    (f'run first --set {FLOW}.workload={{kind="transfer",size="1 MB"}}', "allowed: kind, bytes"),
    (f'run first --set {FLOW}.workload={{kind="transfer",bytes=1000000}}', '"1000000 B"'),
    (f'run first --set {FLOW}.workload={{kind="transfer",bytes="1M"}}', '"1 MB"'),
    ("run first --trace", "none, flow, all"),
    ("run first --plot", "NAME.png"),
    ("run first --plot cwmd.png", 'did you mean "cwnd.png"'),
    ("run first --plot cwnd.jpg", 'did you mean "cwnd.png"?'),
    ("run first --report", "allowed: FILE"),
    ("run first --report /nonexistent/x.html", "found no such file or directory"),
    ("run first --pcap .", "found a directory"),
    ("run first --seed -1", "a whole number, 0 to"),
    ("run first --seed abc", "a whole number, 0 to"),
    ("run first --backend kernel", "allowed: sim, linux"),
    ("run --help-me", 'did you mean "--help"'),
    ("run", "ackclock run [OPTIONS] FILE"),
    ("evaluate bbr4 --quick", 'did you mean "bbr"'),
    ("evaluate mine.py", 'did you mean "mine.py:CLASS"'),
    ("evaluate mine.py:Mine", "mine.py, which cannot be read"),
    ("attack bbr --budget step", 'did you mean "steps"'),
    ("sweep grid.toml", 'did you mean "sweep run grid.toml"'),
    ("sweep run first", "allowed: a grid (TOML)"),
    ("diagnose first", "allowed: a capture"),
    ("diagnose /etc/passwd", "allowed: a capture"),
    ("compare first", "found one scenario; allowed: two"),
    ("compare first second", "second: found no such file; allowed: "),
    ("lab first --port 99999", "a whole number, 0 to 65535"),
    ("study run prrr", "iw10, large-pipes, pcc, prr"),
    ("list controler", 'did you mean "controllers"'),
    ("-v", 'did you mean "-V"'),
]
"""Refused commands, and a word contained in the message."""

TAKEN = [
    "run first --set duration=10s",
    f"run first --set {DELAY}=20ms",
    f'run first --set {LOSS}={{kind="bernoulli",p=0.01}}',
    "run first --controller bbr",
    r"run first --out C:\Users\me\run",
    "help",
    "help run",
    "",
    "list controllers",
    "version",
    "-V",
]
"""Commands accepted as typed."""


def words_of(command: str) -> list[str]:
    """Return the words of a command line; the argument of `--set` is one word."""
    before, put, change = command.partition(" --set ")
    return [*before.split(), *(["--set", change] if put else [])]


def test_there_are_75() -> None:
    assert len(REFUSED) + len(TAKEN) == 75


@pytest.mark.parametrize(("command", "answer"), REFUSED)
def test_what_was_meant_stands_first(
    command: str, answer: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")  # messages name the user's file as typed, or by its full path
    assert main(words_of(command)) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert answer in said[:100]


@pytest.mark.parametrize("command", TAKEN)
def test_what_can_be_taken_is_taken(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words_of(command)) == 0
    assert capsys.readouterr().out


def test_a_built_in_controller_is_chosen_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", "first", "--set", "duration=1 s", "--json"]
    assert main([*asked, "--controller", "bbr"]) == 0
    chosen = capsys.readouterr().out
    assert main([*asked, "--set", "flows.0.congestion_control=bbr"]) == 0
    assert capsys.readouterr().out == chosen
    assert main([*asked, "--controller", "bbrr"]) == 2
    assert 'did you mean "bbr"' in capsys.readouterr().err[:100]


@pytest.mark.parametrize("text", ["ten.py", "mine=ten.py"])
def test_a_file_without_its_class_is_told_so_first(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "first", "--controller", text]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f'ackclock: --controller: found "{text}"; did you mean "{text}:CLASS"?; allowed: ')
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", ["page.pdf", "page", "page.html.png"])
@pytest.mark.parametrize("command", ["run first", "report kept", "diagnose kept/made.pcap"])
def test_a_page_has_the_name_of_one(
    command: str, name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "first", "--set", "duration=1 s", "--out", "kept"]) == 0
    capsys.readouterr()
    assert main([*command.split(), "--report", name]) == 2
    assert (
        capsys.readouterr().err == f'ackclock: --report: found "{name}"; allowed: a name that ends in .html or .htm\n'
    )
    assert not (tmp_path / name).exists()
    if command == "report kept":
        assert main([*command.split(), "--report", "page.HTM"]) == 0
        assert (tmp_path / "page.HTM").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("first", 'did you mean "run first"'),
        ("run bufferbloat", "one of 48 names (`ackclock list scenarios`)"),
        ("compare first --set duration=5s", "a file for each of the two scenarios"),
    ],
)
def test_what_a_stranger_types_next_is_answered_first(
    command: str, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.split(" ")) == 2
    assert answer in capsys.readouterr().err[:100]


def test_no_description_of_a_command_is_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines()[1:] if line.endswith("...")] == []
    assert max(map(len, out.splitlines())) <= 80
