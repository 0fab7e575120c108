"""Runs the command without the start-up cost of an interpreter: it forks a process that has imported the commands' modules and started no thread."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SERVER = """
import contextlib, json, os, resource, signal, sys, tempfile, traceback
import ackclock.scenario, ackclock.sweep
from ackclock.cli import main

def child(asked, files):
    os.chdir(asked["folder"])
    for stream, place in enumerate([os.open(os.devnull, os.O_RDONLY), *(file.fileno() for file in files)]):
        os.dup2(place, stream)
    signal.alarm(120)
    for name, most in asked["limits"].items():
        resource.setrlimit(getattr(resource, name), (most, most))
    sys.argv = ["ackclock", *asked["argv"]]
    try:
        return main() if asked["whole"] else main(asked["argv"])
    except BaseException:
        traceback.print_exc()
        return 70
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):  # own code has taken it away
                stream.flush()

for line in sys.stdin:
    asked, files = json.loads(line), [tempfile.TemporaryFile() for _ in range(2)]
    pid = os.fork()
    if not pid:
        os._exit(child(asked, files))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    for file in files:
        file.seek(0)
    said = [file.read().decode(errors="replace") for file in files]
    print(json.dumps([sum(os.times()[:4]), code, *said]), flush=True)
"""


spent: dict[int, float] = {}
"""CPU time of each running server, including its children."""


class Commands:
    """Runs commands one after another; `limits` are names and values for `resource.setrlimit`. A `whole` command is
    started as from a shell, with a parent process if it runs user code.
    """

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server

    def __call__(
        self, folder: Path, *argv: str, limits: Mapping[str, int] | None = None, whole: bool = False
    ) -> subprocess.CompletedProcess[str]:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(
            json.dumps({"folder": str(folder), "argv": argv, "limits": dict(limits or {}), "whole": whole}) + "\n"
        )
        self._server.stdin.flush()
        spent_s, code, out, err = json.loads(self._server.stdout.readline())
        spent[self._server.pid] = spent_s
        return subprocess.CompletedProcess(argv, code, out, err)


@contextmanager
def commands() -> Iterator[Commands]:
    """Start a server that runs until the end of the block."""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        yield Commands(server)
        assert server.stdin is not None
        server.stdin.close()
    spent.pop(server.pid, None)
