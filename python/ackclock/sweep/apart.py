"""Makes runs in a process of their own, where one of them is suspected of ending it.

`answer` is that process: a task comes in on standard input, what became of it goes out on standard output.
"""

from __future__ import annotations

import pickle
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from ackclock import _child

if TYPE_CHECKING:
    from ackclock import _engine
    from ackclock.sweep.task import Done, Task

SUSPECT_AFTER = 2
"""Attempts without an outcome from which a run is made apart: the third one may end that process, and no other."""


def compute_apart(task: Task, stop: _engine.Stop | None) -> Done:
    """Make the runs of a task in another process; if that dies of one run, this run has failed.

    Of several runs only the first half is made when the process dies of them; the others are handed out again.
    """
    from ackclock.sweep.task import Done

    count = len(task.runs)
    while True:
        part = replace(task, runs=task.runs[:count], apart=False)
        done, why = _made(part, stop)
        if done is not None:
            return done
        if stop is not None and stop.is_set():
            return Done(digests=[], errors=[], metrics={}, tables={}, cpu_s=0.0)
        if count == 1:
            return Done(digests=[None], errors=[why], metrics={}, tables={}, cpu_s=0.0)
        count = (count + 1) // 2


def command() -> list[str]:
    """What is started for a task."""
    return _child.python("ackclock.sweep.apart:answer", leave=True, loads=["ackclock.sweep.task"])


def _made(task: Task, stop: _engine.Stop | None) -> tuple[Done | None, str]:
    """What came back, or what the process died of."""
    with _child.start(
        command(), leave=True, stdin=_child.PIPE, stdout=_child.PIPE, stderr=_child.DEVNULL, start_new_session=True
    ) as process:
        given: bytes | None = pickle.dumps(task)
        while True:
            try:
                out, _ = process.communicate(given, timeout=0.1)
                break
            except _child.TimeoutExpired:
                given = None
                if stop is not None and stop.is_set():
                    process.kill()
    if process.returncode == 0:
        done: Done = pickle.loads(out)  # from our own child
        return done, ""
    code = process.returncode
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"exit code {code}"
    return None, f"the process that made it died three times ({name} at last)"


def answer() -> None:
    """Make the task on standard input; what became of it goes to standard output."""
    from ackclock.sweep.task import compute

    done = compute(pickle.load(sys.stdin.buffer))
    pickle.dump(done, sys.stdout.buffer)
