"""Tests that cheaters lose if they act before their first run, while they are loaded, or if their connections communicate; each wins with its trap off."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ackclock import _files
from ackclock.arena import Entry, Plan, Standing, Task, _seal, _sealed, drawn, files, play, read
from ackclock.errors import InputError
from ackclock.own import described

HERE = Path(__file__).parent
SALT = "s"

pytestmark = pytest.mark.skipif(not _seal.can(), reason="no filter of system calls")

HEAD = """
title = "Small"
[score]
delay = "20 ms"
loss = "2 %"
starves = 0.5
weights = { throughput = 1, delay = 1, loss = 1, fairness = 2 }
[draws]
quick = 1
medium = 2
full = 3
[[families]]
"""
ALONE = """
id = "alone"
counts = ["throughput", "delay", "loss"]
[families.scenario]
duration = "3 s"
network.bottleneck = { rate = { from = "8 Mbit/s", to = "16 Mbit/s" }, delay = { from = "20 ms", to = "40 ms" } }
flows = [{ congestion_control = "@" }]
"""
ALIKE = """
id = "alike"
counts = ["throughput", "delay", "fairness"]
[families.scenario]
duration = "8 s"
network.bottleneck = { rate = "8 Mbit/s", delay = "30 ms", queue = { kind = "drop-tail", limit = "1 BDP" } }
flows = [{ congestion_control = "@" }, { congestion_control = "@", start = "2 s" }]
"""


def task(family: str) -> Task:
    return read(HEAD + family, "small")


def entry(name: str, place: Path) -> Entry:
    file = shutil.copy(HERE / "cheaters" / name, place)
    _files.give_leave()
    return Entry(controller=f"{file}:Cheater" if name.endswith(".py") else str(file))


def table(family: str, one: Entry, out: Path, *off: str) -> dict[str, Standing]:
    made = play(Plan(task=task(family), entries=[one], salt=SALT, draws=1, off=frozenset(off)), out, 1)
    return {"cheater" if s.entry.is_own else s.entry.name: s for s in made.standings}


@pytest.mark.promise("P53")
def test_who_knows_the_draws_of_a_table_beside_is_refused(tmp_path: Path) -> None:
    before = tmp_path / "before"
    (before / "draws").mkdir(parents=True)
    (before / "arena.json").write_text("{}", encoding="utf-8")
    for draw in drawn(task(ALONE), SALT, 1):
        (before / "draws" / f"{draw.id}.toml").write_text(draw.scenario("cubic", {}).to_toml(), encoding="utf-8")
    one = entry("oldhand.py", tmp_path)
    with pytest.raises(InputError, match=r"found that it reads .*; allowed: no file of a table of the arena"):
        table(ALONE, one, tmp_path / "out")
    found = table(ALONE, one, tmp_path / "off", "fence")
    assert found["cheater"].rank < found["reno"].rank


@pytest.mark.promise("P53")
def test_who_changes_the_store_of_the_judge_finds_it_shut(tmp_path: Path) -> None:
    one = entry("saboteur.py", tmp_path)
    for place, off in (("out", ()), ("off", ("fence",))):
        table(ALONE, one, tmp_path / place, *off)
        found = table(ALONE, one, tmp_path / place, *off)  # the same command again resumes in this folder
        assert found["cheater"].why == ""
        assert found["cheater"].rank == (1 if off else 3), "behind CUBIC and Reno where its trap is on"
        shutil.rmtree(tmp_path / place)


@pytest.mark.parametrize("name", [pytest.param("conspirator.c", marks=pytest.mark.deep), "conspirator.py"])
def test_connections_that_talk_to_each_other_do_not_repeat(name: str, tmp_path: Path) -> None:
    one = entry(name, tmp_path)
    found = table(ALIKE, one, tmp_path / "out")
    assert "do not repeat" in found["cheater"].why
    assert "it looks at a clock, at other runs" in found["cheater"].why, "nothing failed"
    assert found["reno"].why == ""
    found = table(ALIKE, one, tmp_path / "off", "apart")
    assert found["cheater"].why == ""
    assert found["cheater"].rank < found["reno"].rank


@pytest.mark.promise("P54")
@pytest.mark.deep
def test_a_second_process_cannot_be_had(tmp_path: Path) -> None:
    one = entry("accomplice.c", tmp_path)
    with pytest.raises(
        InputError, match=r"loading .*accomplice\.c: found a call of the system, which ended the process"
    ):
        table(ALONE, one, tmp_path / "out")
    found = table(ALONE, one, tmp_path / "off", "fence")
    assert found["cheater"].why == ""
    assert found["cheater"].rank < found["reno"].rank


@pytest.mark.deep
def test_connections_in_rust_have_no_variables_to_share(tmp_path: Path) -> None:
    one = entry("conspirator.rs", tmp_path)
    with pytest.raises(InputError, match=r"conspirator\.rs: found SHARED, which all connections share"):
        table(ALIKE, one, tmp_path / "out")
    found = table(ALIKE, one, tmp_path / "off", "apart")
    assert found["cheater"].why == ""
    assert found["cheater"].rank < found["reno"].rank


RUST = """
use ackclock_controller::{Controller, Options, Random, Window};
%s
struct Mine { asked: usize }
impl Controller for Mine {
    fn new(_: &Options, _: Random) -> Mine { Mine { asked: 0 } }
    fn ssthresh(&mut self, window: &Window, _: u32) -> u32 {
        self.asked += 1;
        if self.asked > 1_000_000 { panic!("asked {} times", self.asked) }
        (%s).max(2)
    }
}
ackclock_controller::export!(Mine);
"""


@pytest.mark.deep
@pytest.mark.parametrize(
    ("declared", "used", "found"),
    [
        ("static STEPS: [u32; 64] = [7; 64]; static WORD: &str = \"word\";", "window.cwnd / STEPS[self.asked % 64] + WORD.len() as u32", ""),
        ("static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);", "COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + window.cwnd / 2", "COUNT"),
        ("thread_local! { static SEEN: std::cell::Cell<u32> = const { std::cell::Cell::new(0) } }", "{ SEEN.set(SEEN.get() + window.cwnd); SEEN.get() }", "SEEN"),
        ("static mut LAST: u32 = 0;", "unsafe { LAST += window.cwnd; LAST }", "LAST"),
        ("std::arch::global_asm!(\".data\", \"of_all: .long 0\", \".text\");", "window.cwnd / 2", "assembler"),
    ],
)  # fmt: skip
def test_a_variable_in_rust_is_found_and_a_constant_is_none(
    declared: str, used: str, found: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.rs"
    file.write_text(RUST % (declared, used), encoding="utf-8")
    _files.give_leave()
    one = described(str(file), {})
    if not found:
        one.prepare(tmp_path, apart=True)
        return
    with pytest.raises(InputError, match=rf"found {found}, which all connections share"):
        one.prepare(tmp_path, apart=True)


PLAIN = """
class Cheater:
    def on_control(self, window, ack):
        window.cwnd = 3

    def on_congestion_event(self, window, in_flight):
        return 3
"""
PROBE = """
import os, signal, socket, subprocess, sys

class Probe:
    def on_control(self, window, ack):
        window.cwnd = 20

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd, 2)

def generator():
    yield sys._getframe()

def refused(way):
    try:
        way()
    except OSError:
        return
    raise RuntimeError(f"{way.__name__} is open")

def parent(): open(f"/proc/{os.getppid()}/cmdline").read()
def written(): open(__file__ + ".new", "w")
def removed(): os.unlink(__file__)
def forked(): os.fork()
def program(): subprocess.run(["true"])
def heard():
    told = []
    signal.signal(signal.SIGURG, lambda *given: told.append(given))
    signal.raise_signal(signal.SIGURG)
    if told:
        raise RuntimeError("a handler of a signal is handed a frame")
    raise OSError
def connected(): socket.socket()
def killed(): os.kill(os.getppid(), 0)
def told():
    if "ackclock" in " ".join([*sys.argv, *sys.orig_argv]):
        raise RuntimeError("argv tells which process this is")
    raise OSError

for way in (written, removed, forked, program, heard, connected, killed, told):
    refused(way)
if LANDLOCK:
    refused(parent)
"""


@pytest.mark.promise("P53")
def test_nothing_but_memory_and_threads_is_open_while_loading(tmp_path: Path) -> None:
    has = "Landlock" not in _seal.missing()
    (tmp_path / "probe.py").write_text(PROBE.replace("LANDLOCK", str(has)), encoding="utf-8")
    _files.give_leave()
    found = table(ALONE, Entry(controller=f"{tmp_path / 'probe.py'}:Probe"), tmp_path / "out")
    assert found["cheater"].why == ""


def test_a_wall_that_the_machine_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain.py").write_text(PLAIN, encoding="utf-8")
    _files.give_leave()
    entries = [Entry(controller=f"{tmp_path / 'plain.py'}:Cheater")]
    made = play(Plan(task=task(ALONE), entries=entries, salt=SALT, draws=1), tmp_path / "out", 1)
    assert ("Made without" in files.conclusion(made)) == bool(_seal.missing())
    monkeypatch.setattr(_seal, "missing", lambda: "without Landlock")
    assert files.conclusion(made).endswith(" Made without Landlock.")


@pytest.mark.promise("P53")
def test_no_process_of_own_code_makes_runs_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "first.py").write_text(PLAIN, encoding="utf-8")
    (tmp_path / "second.py").write_text(f"{PLAIN}# another\n", encoding="utf-8")
    _files.give_leave()
    entries = [Entry(controller=f"{tmp_path / name}.py:Cheater") for name in ("first", "second")]
    tasks: list[tuple[int, set[int]]] = []
    make = _sealed._made

    def made(task: Any, **more: Any) -> Any:
        tasks.append((len(task.own), {sum(one.key in text for one in task.own) for text in task.texts}))
        return make(task, **more)

    monkeypatch.setattr(_sealed, "_made", made)
    play(Plan(task=task(ALONE), entries=[*entries, Entry(controller="vegas")], salt=SALT, draws=2), tmp_path / "out", 1)
    assert {*map(str, tasks)} == {"(0, {0})", "(1, {1})"}
