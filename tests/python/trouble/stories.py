"""Trouble stories drawn from a seed: commands that are killed or encounter a failing disk, a second writer, jumping
clocks or damaged bytes, followed by one undisturbed command. The final files are compared with an undisturbed
command's, bit for bit.

    python tools/trouble.py --seed 1 --steps 300         # this many troubles
    python tools/trouble.py --seed 1 --story 17          # one story again

A story depends neither on other stories nor on the clock, except for ends drawn in CPU time (`end`).

| after each trouble | |
| --- | --- |
| exit code | 0 only if the result is complete, as undisturbed; 2, 3, 130 with one line, no traceback, no internal error |
| files | each complete or absent |
| stores | intact; no run lost, none that was not requested, unless bytes were damaged |
| processes | none outlives its command, none hangs |

Length: a story, its troubles and its reference are read together.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from troubled import (
    CREATE,
    FAIL,
    FAIL_ALWAYS,
    LOCK,
    MKDIR,
    NAMES,
    READ,
    RENAME,
    SHORT,
    SIGNAL,
    SYNC,
    TRUNCATE,
    UNLINK,
    WRITE,
    WRITES,
    Machine,
    Process,
    last_line,
    may_mount,
)  # fmt: skip

SCENARIO = """
duration = "150 ms"
[network.bottleneck]
rate = "20 Mbit/s"
delay = "5 ms"
loss = { kind = "bernoulli", p = "1 %" }
[[flows]]
[record]
sample_interval = "10 ms"
goodput_interval = "50 ms"
"""
SWEEP = """
scenario = "s.toml"
seeds = 3
tables = ["flows"]
metrics = ["goodput_bps"]
[axes]
"network.bottleneck.delay" = ["5 ms", "10 ms"]
"flows.0.congestion_control" = [%s]
"""
OWN = """
class Mine:
    def on_ack(self, window, ack):
        window.cwnd += 0.5
    def on_congestion_event(self, window, in_flight):
        return window.cwnd / 2
"""
WALL = re.compile(rb"<dt>wall time</dt>.*")
"""Parts of a study's files that differ from run to run."""
VARIES = ("wall_s", "cpu_s")
"""Columns that contain times."""


@dataclass(frozen=True)
class Kind:
    """A command, and where it stores runs."""

    argv: str
    store: str = ""
    often: int = 10


KINDS = {
    "run": Kind("run s.toml --seed 3 --out O/o --trace all --report O/o.html --pcap O/o.pcapng", often=20),
    "plain": Kind("run s.toml --seed 3 --out O/o --pcap O/o.pcapng", often=15),
    "own": Kind("run s.toml --seed 3 --out O/o --controller c.py:Mine --report O/o.html"),
    "sweep": Kind("sweep run sweep.toml --out O/st --jobs 1", store="st", often=25),
    "own sweep": Kind("sweep run own.toml --out O/st --jobs 1 --own-code", store="st", often=8),
    "study": Kind("study run victim/ --jobs 1 --out O --store O/store", store="store", often=15),
    "evaluate": Kind("evaluate reno --quick --rows 5 --jobs 1 --out O", store="store", often=6),
    "attack": Kind("attack reno --evaluations 4 --reference cubic --budget loss --jobs 1 --out O", often=5),
    "diagnose": Kind("diagnose o.pcapng --report O/d.html --csv O/d.csv --plot O/d.svg", often=15),
}  # fmt: skip

ERRORS = {
    CREATE: (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EMFILE),
    WRITE: (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG),
    SYNC: (errno.EIO, errno.ENOSPC),
    TRUNCATE: (errno.EIO, errno.EFBIG),
    RENAME: (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS),
    MKDIR: (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMLINK),
    UNLINK: (errno.EIO, errno.EACCES, errno.EROFS),
    LOCK: (errno.ENOLCK, errno.EIO),
    READ: (errno.EIO,),
}
"""Errors that a system call may return."""


@dataclass
class Facts:
    """Files and runs of an undisturbed command."""

    files: dict[str, str]
    keys: set[str]
    rows: dict[str, str]
    calls: dict[int, int]
    cpu_s: float


@dataclass
class Told:
    """Outcome of one story."""

    steps: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    damaged: bool = False
    unmarked: set[str] = field(default_factory=set)
    """Parts with a damaged mark. They can no longer be identified as ours, so they are kept."""
    keys: set[str] = field(default_factory=set)


def stored(store: Path) -> dict[str, Any]:
    """Return the runs listed as done in a store, its tables' rows, and whether it is intact. A separate process reads
    them, because Polars starts threads.
    """
    import polars as pl

    from ackclock.sweep.database import quick_check

    if not (store / "state.sqlite").exists():
        return {"keys": [], "sound": True, "rows": {}}
    # a database whose writer was killed is repaired by its next reader, so use a copy
    with tempfile.TemporaryDirectory() as aside:
        for file in store.glob("state.sqlite*"):
            if not file.name.endswith("-shm"):
                shutil.copy(file, aside)
        with closing(sqlite3.connect(f"{aside}/state.sqlite")) as db:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
                return {"keys": [], "sound": True, "rows": {}}
            keys = [key for (key,) in db.execute("SELECT lower(hex(key)) FROM runs WHERE state = 'done'")]
        sound = quick_check(Path(aside))
    rows: dict[str, str] = {}
    for folder in sorted((store / "data").glob("*/*")):
        parts = sorted(folder.glob("part-*.parquet"))
        if not parts:
            continue
        table = pl.concat([pl.read_parquet(part, glob=False) for part in parts], how="diagonal")
        if folder.name == "runs" and table["key"].n_unique() != table.height:
            rows["twice"] = folder.name
        plain = table.drop([name for name in table.columns if name.endswith(VARIES)])
        text = "\n".join(sorted(map(repr, plain.iter_rows())))
        rows[f"{folder.parent.name}/{folder.name}"] = hashlib.sha256(text.encode()).hexdigest()
    return {"keys": keys, "sound": sound, "rows": rows}


def files(folder: Path, store: str) -> dict[str, str]:
    """Return every file written by a command, by name; for a store, only its output. `stored` checks a store's parts."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        inside = bool(store) and name.parts[0] == store and "sweeps" not in name.parts
        if path.is_file() and not inside:
            found[str(name)] = hashlib.sha256(WALL.sub(b"", path.read_bytes())).hexdigest()
    return found


def left_over(name: str) -> bool:
    """Return whether a file was left by a killed command; the next command removes it."""
    return any(part.startswith(".ackclock-") for part in Path(name).parts) or name.endswith(".tmp")


class Driver:
    """Runs stories, and checks their outcome.

    Parameters
    ----------
    place
        Folder for all files.
    seed
        Seed of the draws.
    """

    def __init__(self, place: Path, seed: int) -> None:
        from kill_command import PROGRAM, STUDY

        self.seed = seed
        self.inputs, self.disk = place / "inputs", place / "disk"
        for folder in (self.inputs / "victim", self.disk):
            folder.mkdir(parents=True)
        for name, text in {
            "s.toml": SCENARIO, "c.py": OWN, "sweep.toml": SWEEP % '"reno", "cubic"', "own.toml": SWEEP % '"reno", "c.py:Mine"',
            "victim/study.toml": STUDY, "victim/study.py": PROGRAM.replace("range(1, 21)", "range(1, 3)"),
        }.items():  # fmt: skip
            (self.inputs / name).write_text(text, encoding="utf-8")
        self.full = may_mount() and bool(os.environ.get("ACKCLOCK_TROUBLE"))
        if self.full:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(self.disk)], check=True)
        self.kinds, self.troubles = [*KINDS], [name for name in TROUBLES if name != "full disk" or self.full]
        self.out = self.disk / "out"
        self.out.mkdir()
        self.machine = Machine(place, self.out)
        self.counts: Counter[str] = Counter()
        self._facts: dict[str, Facts] = {}
        made = self.machine.begin(["run", "s.toml", "--pcap", str(self.inputs / "o.pcapng")], self.inputs)
        made.end()
        assert made.code == 0, made.err

    # What is known

    def command(self, kind: str) -> list[str]:
        return [
            word.replace("O", str(self.out), 1) if word.startswith("O") else word for word in KINDS[kind].argv.split()
        ]

    def facts(self, kind: str) -> Facts:
        if kind not in self._facts:
            self._clear()
            made = self.machine.begin(self.command(kind), self.inputs)
            made.end()
            assert made.code == 0, (kind, made.code, made.err)
            calls = {1 << at: int(count) for at, count in enumerate(made.plan.each)}
            calls[WRITES] = int(made.plan.counted)
            state = self.state(kind)
            self._facts[kind] = Facts(
                files=files(self.out, KINDS[kind].store),
                keys=set(state["keys"]),
                rows=state["rows"],
                calls=calls,
                cpu_s=made.cpu_s,
            )
            orphans = self.machine.orphans()
            assert not orphans, orphans
            print(f"{kind}: {made.cpu_s:.1f} s, {calls[WRITES]} calls", file=sys.stderr, flush=True)
        return self._facts[kind]

    def state(self, kind: str) -> dict[str, Any]:
        store = KINDS[kind].store
        if not store:
            return {"keys": [], "sound": True, "rows": {}}
        answer: dict[str, Any] = self.machine.asked(lambda: stored(self.out / store))
        return answer

    def _clear(self) -> None:
        for path in self.disk.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        self.out.mkdir()

    # A story

    def story(self, number: int, most: int = 3) -> Told:
        """Disturb one command with some troubles, then run an undisturbed one."""
        draw = random.Random(f"{self.seed}/{number}")
        kind = draw.choices(self.kinds, [KINDS[name].often for name in self.kinds])[0]
        facts = self.facts(kind)
        self._clear()
        told = Told()
        for _ in range(min(draw.randint(1, 3), most)):
            name = draw.choices(self.troubles, [TROUBLES[name][1] for name in self.troubles])[0]
            self.counts[name] += 1
            try:
                TROUBLES[name][0](self, kind, facts, draw, told)
            except AssertionError as error:
                told.wrong.append(f"{told.steps[-1] if told.steps else name}: {error}")
            if told.wrong:
                break
        if not told.wrong:
            self._epilogue(kind, facts, told)
        self.counts[f"of {kind}"] += 1
        return told

    def _epilogue(self, kind: str, facts: Facts, told: Told) -> None:
        """Run the command undisturbed. It may refuse damaged bytes in a line that names the file; then the file is removed, as a user would."""
        for attempt in range(3):
            made = self.machine.begin(self.command(kind), self.inputs)
            made.end()
            if made.code == 0:
                break
            line = last_line(made.err)
            if not told.damaged or attempt == 2 or self._untold(made) or str(self.disk) not in line:
                told.wrong.append(f"undisturbed: exit code {made.code}: {made.err[-600:]}")
                return
            self.counts["damage refused"] += 1
            told.steps.append(f"refused: {line}")
            if "--repair" in line or "sweep check" in line:
                mended = self.machine.begin(
                    ["sweep", "check", str(self.out / KINDS[kind].store), "--repair"], self.inputs
                )
                mended.end()
                told.steps.append(f"repair: {mended.code}")
            else:
                self._clear()
        self._as_undisturbed(kind, facts, told, "in the end")
        there = [str(path.relative_to(self.out)) for path in self.out.rglob("*")]
        found = [
            name
            for name in there
            if left_over(name) and told.unmarked.isdisjoint([name, *map(str, Path(name).parents)])
        ]
        if found:
            told.wrong.append(f"left over: {found[:5]}")

    def _as_undisturbed(self, kind: str, facts: Facts, told: Told, when: str) -> None:
        found = {name: what for name, what in files(self.out, KINDS[kind].store).items() if not left_over(name)}
        other = sorted(name for name in found.keys() | facts.files.keys() if found.get(name) != facts.files.get(name))
        extra = [name for name in other if name not in facts.files]
        if [name for name in other if name not in extra or not told.damaged]:
            told.wrong.append(f"{when}: other files than undisturbed: {other[:6]}")
        state = self.state(kind)
        if told.damaged:  # if a key was damaged, its run is repeated, and the table contains it once
            return
        if set(state["keys"]) != facts.keys or state["rows"] != facts.rows or not state["sound"]:
            rows = [
                name for name in state["rows"].keys() | facts.rows if state["rows"].get(name) != facts.rows.get(name)
            ]
            told.wrong.append(
                f"{when}: another store: {len(state['keys'])} of {len(facts.keys)} runs, sound {state['sound']}, rows {rows}"
            )

    def _after(self, kind: str, facts: Facts, told: Told, process: Process, *, killed: bool = False) -> None:
        """Check the invariants after a trouble."""
        if process.killed:
            told.wrong.append(f"{told.steps[-1]}: it waits for ever; {process.err[-300:]}")
            return
        if process.code == 0:
            self._as_undisturbed(kind, facts, told, f"{told.steps[-1]}: exit code 0")
        elif not killed and (why := self._untold(process)):
            told.wrong.append(f"{told.steps[-1]}: {why}")
        if orphans := self.machine.orphans():
            told.wrong.append(f"{told.steps[-1]}: outlived by {orphans}")
        if not told.damaged:
            for name, what in files(self.out, KINDS[kind].store).items():
                if (
                    not left_over(name)
                    and "sweeps" not in Path(name).parts
                    and what != facts.files.get(name)
                    and name != "journal.jsonl"
                ):
                    told.wrong.append(f"{told.steps[-1]}: {name} is not what it is in the end")
            state = self.state(kind)
            keys = set(state["keys"])
            if not (told.keys <= keys <= facts.keys and state["sound"]):
                lost = len(told.keys - keys)
                told.wrong.append(
                    f"{told.steps[-1]}: {lost} runs lost, {len(keys - facts.keys)} made anew, sound {state['sound']}"
                )
            told.keys = keys

    def _untold(self, process: Process) -> str:
        """Return what is wrong with a command's exit."""
        line = last_line(process.err)
        if process.code not in (1, 2, 3, 130):
            return f"exit code {process.code}: {process.err[-600:]}"
        if process.code == 130:
            return ""
        if "Traceback" in process.err or "internal error" in process.err or not line.startswith("ackclock: "):
            return f"exit code {process.code}: {process.err[-600:]}"
        if process.code == 1:
            return f"exit code 1: {process.err[-300:]}"
        return ""


Trouble = Callable[[Driver, str, Facts, random.Random, Told], None]


def killed(driver: Driver, kind: str, facts: Facts, draw: random.Random, told: Told) -> None:
    """Kill the command with SIGKILL in the middle of its writes."""
    at = draw.randint(1, facts.calls[WRITES])
    told.steps.append(f"{kind}: SIGKILL at call {at} of {facts.calls[WRITES]}")
    process = driver.machine.begin(driver.command(kind), driver.inputs, at=at, act=SIGNAL, value=signal.SIGKILL)
    process.end()
    driver.counts["kills"] += process.code == -signal.SIGKILL
    # the signal may have hit a worker, whose command continues or reports it
    driver._after(kind, facts, told, process, killed=process.code == -signal.SIGKILL)


def ended(driver: Driver, kind: str, facts: Facts, draw: random.Random, told: Told) -> None:
    """Send a signal once a given CPU time has been used."""
    instant, number = draw.uniform(0, 1.1 * facts.cpu_s), draw.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    told.steps.append(f"{kind}: {number.name} after {instant:.3f} s")
    process = driver.machine.begin(driver.command(kind), driver.inputs)
    from troubled import cpu_s

    while not process.look() and cpu_s(process.pid) < instant:
        time.sleep(0.002)
    hit = not process.look()
    process.signal(number)
    process.end()
    driver.counts["kills" if number == signal.SIGKILL else "ends"] += hit
    driver._after(kind, facts, told, process, killed=hit and process.code in (-number, 130))


def told_to_end(driver: Driver, kind: str, facts: Facts, draw: random.Random, told: Told) -> None:
    """Send SIGTERM or Ctrl-C in the middle of the command's writes."""
    at, number = draw.randint(1, facts.calls[WRITES]), draw.choice([signal.SIGTERM, signal.SIGINT])
    told.steps.append(f"{kind}: {number.name} at call {at} of {facts.calls[WRITES]}")
    process = driver.machine.begin(driver.command(kind), driver.inputs, at=at, act=SIGNAL, value=number)
    process.end()
    driver.counts["ends"] += process.code == 130
    driver._after(kind, facts, told, process, killed=process.code in (130, -number))


def failing(driver: Driver, kind: str, facts: Facts, draw: random.Random, told: Told) -> None:
    """Make one system call fail, or all calls from one on."""
    mask = draw.choice([kind_ for kind_ in ERRORS if facts.calls[kind_]])
    error, act = draw.choice(ERRORS[mask]), draw.choice([FAIL, FAIL, FAIL_ALWAYS])
    at = draw.randint(1, facts.calls[mask])
    if mask == WRITE and draw.random() < 0.1:
        act = SHORT
    word = {FAIL: "fails", FAIL_ALWAYS: "and all later ones fail", SHORT: "takes half"}[act]
    told.steps.append(
        f"{kind}: {NAMES[mask.bit_length() - 1]} {at} of {facts.calls[mask]} {word} ({errno.errorcode[error]})"
    )
    process = driver.machine.begin(driver.command(kind), driver.inputs, mask=mask, at=at, act=act, value=error)
    process.end()
    driver.counts["failed calls"] += bool(process.plan.acted)
    driver._after(kind, facts, told, process)


def full_disk(driver: Driver, kind: str, facts: Facts, draw: random.Random, told: Told) -> None:
    """Leave little space on the disk, and free some afterwards."""
    needed = sum(path.stat().st_size for path in driver.out.rglob("*") if path.is_file())
    room = int(2 ** draw.uniform(12, 20.5))
    told.steps.append(f"{kind}: a disk with {room:,} bytes left, {needed:,} there")
    space = os.statvfs(driver.disk)
    with (driver.disk / "ballast").open("wb") as ballast:
        os.posix_fallocate(ballast.fileno(), 0, max(space.f_bavail * space.f_bsize - room, 1))
    process = driver.machine.begin(driver.command(kind), driver.inputs)
    process.end()
    (driver.disk / "ballast").unlink()
    driver.counts["disks full"] += process.code == 3
    driver._after(kind, facts, told, process)


def second_writer(driver: Driver, kind: str, facts: Facts, draw: random.Random, told: Told) -> None:
    """Start the same command in the same place while the first one is stopped in the middle of its writes."""
    at = draw.randint(1, facts.calls[WRITES])
    told.steps.append(f"{kind}: a second writer at call {at} of {facts.calls[WRITES]}")
    first = driver.machine.begin(driver.command(kind), driver.inputs, at=at, act=SIGNAL, value=signal.SIGSTOP)
    while not first.plan.acted and not first.look():
        time.sleep(0.002)
    driver.counts["second writers"] += bool(first.plan.acted)
    second = driver.machine.begin(driver.command(kind), driver.inputs)
    until = time.monotonic() + 10
    while not second.look() and time.monotonic() < until:  # it may wait for a lock held by the first
        time.sleep(0.005)
    first.signal(signal.SIGCONT, all_of_it=True)
    first.end()
    second.end()
    codes = (first.code, second.code)
    for process in (first, second):
        if process.code != 0 and (why := driver._untold(process)):
            told.wrong.append(f"{told.steps[-1]}: {codes}: {why}")
        if (
            process.code == 3
            and not told.damaged
            and not re.search("another session|writing here|locked", last_line(process.err))
        ):
            told.wrong.append(f"{told.steps[-1]}: {codes}: {last_line(process.err)}")
    if 0 not in codes and not told.damaged:
        told.wrong.append(f"{told.steps[-1]}: neither is done: {codes}: {last_line(first.err)} {last_line(second.err)}")
    if not told.wrong:
        driver._after(kind, facts, told, first if first.code == 0 else second)


def clocks(driver: Driver, kind: str, facts: Facts, draw: random.Random, told: Told) -> None:
    """Let the time of day jump by years, in either direction, at any reading."""
    seed = draw.randint(1, 2**31)
    told.steps.append(f"{kind}: clocks jump, seed {seed}")
    process = driver.machine.begin(driver.command(kind), driver.inputs, clock_seed=seed)
    process.end()
    driver.counts["looks at a clock"] += int(process.plan.clock_reads)
    if process.code != 0 and not told.damaged:
        told.wrong.append(f"{told.steps[-1]}: exit code {process.code}: {process.err[-300:]}")
    driver._after(kind, facts, told, process)


def damaged(driver: Driver, kind: str, facts: Facts, draw: random.Random, told: Told) -> None:
    """Flip, zero, truncate or remove bytes of a file. If there is no file yet, an undisturbed command runs first."""
    there = sorted(path for path in driver.out.rglob("*") if path.is_file())
    if len(there) < 3 or draw.random() < 0.5:
        made = driver.machine.begin(driver.command(kind), driver.inputs)
        made.end()
        if made.code != 0 and not told.damaged:
            told.wrong.append(f"{kind}: exit code {made.code}: {made.err[-300:]}")
            return
        there = sorted(path for path in driver.out.rglob("*") if path.is_file())
    if not there:
        return
    path, how = draw.choice(there), draw.choice(["flip", "flip", "zeros", "cut", "grown", "gone"])
    data = bytearray(path.read_bytes())
    told.steps.append(f"{kind}: {path.relative_to(driver.out)}: {how}")
    told.damaged = True
    if path.name == ".ackclock":
        told.unmarked.add(str(path.parent.relative_to(driver.out)))
    at = draw.randrange(len(data)) if data else 0
    if how == "gone":
        path.unlink()
        return
    if how == "flip" and data:
        for place in [at, *(draw.randrange(len(data)) for _ in range(draw.randint(0, 5)))]:
            data[place] ^= 1 << draw.randrange(8)
    elif how == "zeros":
        data[at : at + 512] = bytes(min(512, len(data) - at))
    elif how == "cut":
        del data[at:]
    else:
        data += draw.randbytes(draw.randint(1, 600))
    path.write_bytes(data)


TROUBLES: dict[str, tuple[Trouble, int]] = {
    "kill": (killed, 28), "end": (ended, 8), "told to end": (told_to_end, 8), "failing call": (failing, 24), "full disk": (full_disk, 10),
    "second writer": (second_writer, 9), "clocks": (clocks, 4), "damage": (damaged, 14),
}  # fmt: skip
"""Troubles and their weights."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("place", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--story", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", choices=[*KINDS], help="of this command alone")
    parser.add_argument("--only", choices=[*TROUBLES], help="of this trouble alone")
    given = parser.parse_args()
    driver = Driver(given.place, given.seed)
    driver.kinds = [given.kind] if given.kind else driver.kinds
    driver.troubles = [given.only] if given.only else driver.troubles
    steps, wrong, number = 0, [], given.first if given.story is None else given.story
    started = time.monotonic()
    while steps < given.steps:
        told = driver.story(number, given.steps - steps)
        steps += len(told.steps)
        if told.wrong:
            wrong.append({"story": number, "steps": told.steps, "wrong": told.wrong})
            print(json.dumps(wrong[-1], indent=1), file=sys.stderr, flush=True)
        if given.story is not None:
            print(json.dumps(told.steps), file=sys.stderr)
            break
        number += 1
        if number % 20 == 0:
            print(f"{number - given.first} stories, {steps} steps, {len(wrong)} wrong", file=sys.stderr, flush=True)
    spent_s = sum(os.times()[:4])
    told_all = {
        "seed": given.seed, "stories": number - given.first, "steps": steps, "wrong": wrong, "counts": dict(sorted(driver.counts.items())),
        "left out": [] if driver.full else ["full disks: no mount namespace"], "cpu_s": round(spent_s), "wall_s": round(time.monotonic() - started),
    }  # fmt: skip
    print(json.dumps(told_all))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
