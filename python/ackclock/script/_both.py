"""Plays many scripts, on one backend or on both."""

from __future__ import annotations

import os
import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ackclock.errors import InputError
from ackclock.script._packets import different_packet
from ackclock.script._play import Backend, Played, linux_differs, play

__all__ = ["Compared", "play_each"]

Agreement = Literal["same", "differs", "known", "stale"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """One script on both backends.

    Parameters
    ----------
    sim, linux
        Results of the backends.
    reason
        Text after `// linux-differs:` in the script; None if there is none.
    """

    sim: Played
    linux: Played
    reason: str | None = None

    @property
    def agreement(self) -> Agreement:
        """Agreement of verdicts, packets and printed text: "same" or "differs". If the script says that the kernel
        differs, "known" if it does differ and "stale" if it does not.
        """
        same = self.difference is None
        if self.reason is None:
            return "same" if same else "differs"
        return "stale" if same else "known"

    @property
    def difference(self) -> str | None:
        """First difference, in words: verdict, packets, output of the code blocks."""
        verdicts = [(played.verdict, played.line) for played in (self.sim, self.linux)]
        if verdicts[0] != verdicts[1]:
            said = [f"{verdict}{f' at line {line}' if line else ''}" for verdict, line in verdicts]
            return f"{said[0]}, kernel {said[1]}"
        if self.sim.verdict == "unsupported":
            return None  # each backend stops where it detects this
        if (packets := different_packet(self.sim.trace, self.linux.trace)) is not None:
            return packets
        for mine, its in zip(self.sim.printed, self.linux.printed, strict=False):
            if mine != its:
                return f"prints {mine}, kernel {its}"
        return None

    def to_json(self) -> dict[str, Any]:
        """Return plain values for `ackclock script --backend both --json`."""
        return {
            "path": self.sim.path,
            "agreement": self.agreement,
            "difference": self.difference,
            "linux_differs": self.reason,
            "sim": self.sim.to_json(),
            "linux": self.linux.to_json(),
        }


def play_each(
    paths: Sequence[Path], *, backend: Backend | Literal["both"] = "sim", **options: Any
) -> Iterator[Played | Compared | InputError]:
    """Play scripts one at a time in the simulator, and one per CPU in the kernel.

    Parameters
    ----------
    paths
        The files.
    backend
        "sim", "linux" or "both".
    options
        As for `play`.

    Yields
    ------
    Played, Compared or InputError
        In file order; an error for a file that is not a script.
    """
    if backend == "sim":
        yield from (_one(path, "sim", None, options) for path in paths)
        return
    cpus: queue.SimpleQueue[int] = queue.SimpleQueue()
    available = sorted(os.sched_getaffinity(0))
    for cpu in available:
        cpus.put(cpu)

    def guest(path: Path) -> Played | InputError:
        cpu = cpus.get()
        try:
            return _one(path, "linux", cpu, options)
        finally:
            cpus.put(cpu)

    with ThreadPoolExecutor(len(available)) as pool:
        try:
            for path, told in zip(paths, pool.map(guest, paths), strict=True):
                if backend == "linux" or isinstance(told, InputError):
                    yield told
                    continue
                sim = _one(path, "sim", None, options)
                yield sim if isinstance(sim, InputError) else Compared(sim=sim, linux=told, reason=linux_differs(path))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _one(path: Path, backend: Backend, cpu: int | None, options: dict[str, Any]) -> Played | InputError:
    try:
        return play(path, backend=backend, cpu=cpu, **options)
    except InputError as error:
        return error
