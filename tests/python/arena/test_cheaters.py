"""Tests that cheating entries lose: each is caught or scores below Reno, and would win with its trap switched off. No honest entry is accused.
Each file in `cheaters/` is one cheater; `test_loading.py` covers the four that act while being loaded or communicate
with each other, and `test_sealed.py` two more, in C.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import ackclock
from ackclock import _files
from ackclock.arena import Entry, Plan, Standing, Task, _seal, drawn, play, read
from ackclock.arena.task import PUBLIC

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
EXAMPLES = ROOT / "examples"
DRAWS = 3
SALT = "s"

pytestmark = pytest.mark.skipif(not _seal.can(), reason="no filter of system calls")

CHEATERS = {
    # cheater: (families in cheats.toml, trap, the trap's message; empty if the cheater merely scores below Reno)
    "by_rate": ("alone", "held-out", ""),
    "memoriser": ("alone", "held-out", ""),
    "clock": ("alone", "twice", "do not repeat"),
    "carrier": ("alone", "twice", "do not repeat"),
    "starver": ("beside", "others", ""),
    "deaf": ("shallow", "loss", ""),
    "sprinter": ("alone", "start", ""),
    "sleeper": ("alone", "geometric", ""),
    "chooser": ("short", "unfinished", ""),
    "quitter": ("alone", "failures", ""),
    "flooder": ("alone", "memory", "MemoryError"),
    "diary": ("alone", "seal fence", ""),
    "peeker": ("alone", "reach", ""),
    "keepsake": ("alone", "reach", ""),
    "understudy": ("alone", "reach", ""),
    "forger": ("alone", "reach", ""),
    "asker": ("alone", "reach", ""),
    "unsealer": ("alone", "reach seal fence", "found a call of the system"),
}


def cut(family: str) -> Task:
    """Return the cheaters' task restricted to one family."""
    head, *parts = (HERE / "cheats.toml").read_text("utf-8").split("[[families]]")
    return read("[[families]]".join([head, *(part for part in parts if f'id = "{family}"' in part)]), "cheats")


class Listener:
    """Controller that records the seed it receives."""

    told = 0

    def seed(self, seed: int) -> None:
        Listener.told = seed

    def on_control(self, window: Any, ack: Any) -> None:
        window.cwnd = 4

    def on_congestion_event(self, window: Any, in_flight: int) -> int:
        return 4


def known(task: Task) -> dict[str, Any]:
    """Return the facts about the public draws that an entry can know: the best window for each, by rate and by
    connection seed.
    """
    seeds, rates = {}, []
    for draw in drawn(task, PUBLIC, DRAWS):
        keys = {**draw.keys, "duration": "0.3 s"}
        scenario = type(draw)(family=draw.family, number=draw.number, seed=draw.seed, keys=keys).scenario(
            "custom:listener", {}
        )
        ackclock.run(scenario, seed=draw.seed, controllers={"listener": Listener})
        rate = draw.rate_bps / 8 / 1514
        window = rate * 2 * draw.delay_s * 1.05 + 3
        seeds[str(Listener.told)] = window
        rates.append((rate, window))
    return {"seeds": seeds, "rates": rates}


def table(name: str, place: Path, off: str = "") -> dict[str, Standing]:
    """Return the table of three entries: the cheater (named "cheater"), CUBIC and Reno."""
    family = CHEATERS[name][0]
    task = cut(family)
    file = shutil.copy(HERE / "cheaters" / f"{name}.py", place)
    (place / "known.json").write_text(json.dumps(known(task)), encoding="utf-8")
    _files.give_leave()
    plan = Plan(
        task=task, entries=[Entry(controller=f"{file}:Cheater")], salt=SALT, draws=DRAWS, off=frozenset(off.split())
    )
    made = play(plan, place / f"out {off}", 1)
    return {"cheater" if s.entry.is_own else s.entry.name: s for s in made.standings}


@pytest.mark.parametrize("name", CHEATERS)
def test_it_loses_and_wins_where_its_trap_is_off(name: str, tmp_path: Path) -> None:
    _, trap, said = CHEATERS[name]
    found = table(name, tmp_path)
    cheater, reno = found["cheater"], found["reno"]
    if said:
        assert cheater.rank is None
        assert said in cheater.why
    else:
        assert cheater.rank == 3, "behind CUBIC and Reno"
    assert reno.why == found["cubic"].why == ""
    without = table(name, tmp_path, trap)
    assert without["cheater"].why == ""
    assert without["cheater"].rank < without["reno"].rank  # type: ignore[operator]


def test_who_takes_the_lock_out_of_the_door_is_seen_from_outside(tmp_path: Path) -> None:
    """The kernel reports the number of the process's filters to the judge, so the process cannot hide that one is missing."""
    assert "found a filter less around its process" in table("unsealer", tmp_path, "reach")["cheater"].why


PROBE = """
import gc, os, subprocess, sys

def generator():
    yield

class Probe:
    asked = False

    def on_control(self, window, ack):
        window.cwnd = 20
        if not self.asked:
            self.asked = True
            self.ask()

    def ask(self):
        try:
            sys._getframe()
            return  # not in the arena
        except PermissionError:
            pass
        made = generator()
        next(made)
        for name, way in {
            "objects": gc.get_objects, "referrers": lambda: gc.get_referrers(made), "referents": lambda: gc.get_referents(made), "frames": sys._current_frames,
            "exceptions": sys._current_exceptions, "generator": lambda: made.gi_frame, "profile": lambda: sys.setprofile(None),
            "trace": lambda: sys.settrace(None), "fork": os.fork, "process": lambda: subprocess.run(["true"]),
        }.items():
            try:
                way()
            except PermissionError:
                continue
            raise RuntimeError(f"{name} is open")
        heard = []
        sys.addaudithook(lambda *event: heard.append(event))  # says nothing where it is refused
        sys.audit("probe")
        if heard:
            raise RuntimeError("the hook is open")
        try:
            raise KeyError
        except KeyError as error:
            try:
                error.__traceback__.tb_frame
            except PermissionError:
                return
        raise RuntimeError("traceback is open")

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd, 2)
"""
THREAD = """
import threading, time
threading.Thread(target=time.sleep, args=(100,), daemon=True).start()

class Probe:
    def on_control(self, window, ack):
        window.cwnd = 20

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd, 2)
"""


def probed(text: str, place: Path) -> Standing:
    (place / "probe.py").write_text(text, encoding="utf-8")
    _files.give_leave()
    plan = Plan(task=cut("alone"), entries=[Entry(controller=f"{place / 'probe.py'}:Probe")], salt=SALT, draws=1)
    return next(s for s in play(plan, place / "out", 1).standings if s.entry.is_own)


def test_no_way_leads_from_a_controller_to_its_judge(tmp_path: Path) -> None:
    """Checks frames, objects, interpreter hooks and other processes."""
    assert probed(PROBE, tmp_path).why == ""


def test_threads_that_outlive_loading_are_refused(tmp_path: Path) -> None:
    assert "found 1 of its threads" in probed(THREAD, tmp_path).why


@pytest.mark.parametrize("family", ["alone", "beside"])
def test_none_of_the_honest_is_accused(family: str, tmp_path: Path) -> None:
    """The entries are the Python controllers of two examples, and built-in ones."""
    own = [f"{EXAMPLES / 'ci' / 'controller.py'}:Mine", f"{EXAMPLES / 'agent' / 'controller.py'}:Learned"]
    assert accused([*own, "vegas", "bbr3"], family, tmp_path) == []


@pytest.mark.deep
def test_no_compiled_one_is_accused(tmp_path: Path) -> None:
    """The entries are the controllers in C and Rust of the examples and the pages, and one in Python."""
    sys.path.append(str(ROOT / "tools"))
    from arena import entries

    own = [name for name in entries(tmp_path) if "/" in name]
    assert [Path(name).name for name in own] == ["cubic.c", "controller.py:Mine", "tcp_wary.c", "wary.rs"]
    assert accused(own, "alone", tmp_path) == []


def accused(names: list[str], family: str, place: Path) -> list[str]:
    """Return the entries that the table accuses, or that starve others although they are not known to do so."""
    _files.give_leave()
    plan = Plan(task=cut(family), entries=[Entry(controller=name) for name in names], salt=SALT, draws=1)
    standings = play(plan, place / "out", 1).standings
    known = ("vegas", "bbr3", "controller.py:Learned")
    return [
        f"{s.entry.name}: {s.why or 'starves others'}"
        for s in standings
        if s.why or (s.starves and s.entry.name not in known)
    ]


def test_those_who_cheat_are_twenty_two() -> None:
    of_loading = {"accomplice", "conspirator", "oldhand", "saboteur"}
    assert len(CHEATERS) == 18
    assert {file.stem for file in (HERE / "cheaters").iterdir() if file.is_file()} == set(CHEATERS) | of_loading
