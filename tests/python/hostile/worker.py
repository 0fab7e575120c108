"""Passes the inputs of one kind to the command or to Python, one after another in one process: `worker.py KIND FOLDER
PART PARTS`. Prints a JSON line for each unexpected outcome, and finally their number.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import resource
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from inputs import KINDS, SWEEP, TEXT, Input

import ackclock
from ackclock.cli import main as command

PATIENCE_S = 20
"""CPU time allowed for one input, s."""
WAIT_S = 150
"""Wall time allowed for one input, s; loose, because wall time means little on a busy machine."""
MEMORY = 4 * 2**30
MOST_GROWTH = 700 * 2**20
"""Memory limit for one input, bytes above the process's size before it."""


class Hang(BaseException):
    """Raised if an input takes longer than PATIENCE_S or WAIT_S."""


def main() -> None:
    kind, folder = sys.argv[1], Path(sys.argv[2])
    part, parts = map(int, sys.argv[3:])
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")  # the command closes its stream if it cannot be written to
    for which in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(which, lambda *_: (_ for _ in ()).throw(Hang()))
    place = folder / "work"
    whole = folder / "whole"
    whole.mkdir()
    os.chdir(whole)
    if kind in ("stores", "sweeps"):
        (whole / "x.toml").write_text(TEXT)
        (whole / "k.toml").write_text(SWEEP.replace("seeds = 1", 'seeds = 2\ntables = ["flows"]'))
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            assert command(["sweep", "run", "k.toml", "--jobs", "1"]) == 0
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    count = refused = 0
    for given in itertools.islice(KINDS[kind](), part, None, parts):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        os.chdir(place)
        outcome = one(given, place, whole)
        count += 1
        refused += outcome["refused"]
        wrong = [line for line in judge(given, outcome) if line]
        if wrong or list(folder.rglob("pwned")):
            print(
                json.dumps({"input": given.name, "wrong": wrong or ["it wrote"], "said": outcome["err"][-300:]}),
                file=report,
            )
    print(json.dumps({"count": count, "refused": refused}), file=report, flush=True)


def one(given: Input, place: Path, whole: Path) -> dict[str, Any]:
    for name, content in given.files.items():
        (place / name).write_bytes(content.encode() if isinstance(content, str) else content)
    store = place / "k.sweep"
    if "{store}" in given.argv:
        shutil.copytree(whole / "k.sweep", store)
    if given.damage:
        with contextlib.suppress(OSError):
            exec(given.damage, {"store": store, "remove": remove, "write": write})
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    out, err = io.StringIO(), io.StringIO()
    code, trouble = 0, ""
    started = time.monotonic()
    signal.alarm(WAIT_S)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE_S)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            if given.code:
                code = call(given.code, err)
            else:
                code = command([part.replace("{store}", str(store)) for part in given.argv])
    except Hang:
        trouble = "a hang"
    except BaseException as error:
        trouble = f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
    if (place / "nowhere").exists():
        trouble = trouble or "wrote through a link"
    grown = resident("VmHWM") - before
    took = time.monotonic() - started
    return {
        "code": code, "trouble": trouble, "out": out.getvalue(), "err": err.getvalue(), "grown": grown, "took": took,
        "refused": code in (2, 3, 4),
    }  # fmt: skip


def call(code: str, err: io.StringIO) -> int:
    try:
        exec(code, {"ackclock": ackclock, "__name__": "hostile"})
    except ackclock.AckclockError as error:
        err.write(f"{error}\n")
        return error.exit_code
    return 0


def judge(given: Input, outcome: dict[str, Any]) -> list[str]:
    code, err = outcome["code"], outcome["err"]
    last = err.strip().splitlines()[-1] if err.strip() else ""
    return [
        outcome["trouble"],
        f"exit code {code}" if code not in (0, 1, 2, 3, 4) else "",
        "internal error" if "internal error" in err else "",
        "a traceback" if "Traceback" in err + outcome["out"] else "",
        "an escape sequence" if "\x1b" in err + outcome["out"] else "",
        f"{len(last)} characters" if len(last) > 1200 else "",
        f"{err.count(chr(10))} lines" if code == 2 and err.count("\n") != 1 else "",
        "the wrong file named" if "standard output" in err else "",
        "out of memory" if "out of memory" in err else "",
        f"{outcome['grown'] >> 20} MiB" if outcome["grown"] > MOST_GROWTH else "",
        "taken" if given.taken is False and code == 0 else "",
        f"refused with {code}" if given.taken and code != 0 else "",
    ]


def remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()


def write(place: Path, data: bytes) -> None:
    remove(place)
    place.write_bytes(data)


def resident(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
