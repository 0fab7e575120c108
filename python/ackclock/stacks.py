"""Foreign transport stacks, in libraries behind the C header `ackclock_stack.h`.

A library is a program, and no scenario loads one by itself. Either a command names the file (`--stack ./libmine.so`), or a user's
program calls `load`. From then on flows in this process may use `congestion_control = "stack:NAME:CONTROLLER"`.

Examples
--------
>>> from ackclock import stacks
>>> stacks.load("./libsmoltcp_stack.so").name  # doctest: +SKIP
'smoltcp'
"""

from __future__ import annotations

import hashlib
import json
import re
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ackclock import _child, _engine, _wall
from ackclock._files import regular
from ackclock.errors import InputError, UnavailableError, shown

__all__ = ["Finding", "Stack", "bring", "check", "identity", "load", "loaded"]

LARGEST = 2**30
"""Maximum size of a library, bytes."""

PATIENCE_S = 120.0
"""Wall time allowed for one check, s; the longest one takes about a second of CPU time."""

SHORT_S = 10.0
"""Wall time allowed for the remaining checks once one check has failed to return, s."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stack:
    """A loaded library.

    Parameters
    ----------
    name
        Name of the stack in flows: `stack:NAME:CONTROLLER`.
    version
        Version of the stack, as reported by the library.
    controllers
        Names of its controllers.
    digest
        SHA-256 of the file, hexadecimal.
    file
        Path of the library.
    """

    name: str
    version: str
    controllers: Sequence[str]
    digest: str
    file: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Result of one check.

    Parameters
    ----------
    controller
        Controller of the stack that was run.
    check
        Name of the check.
    about
        Requirement that the check tests.
    holds
        Whether the stack meets the requirement.
    text
        The measured value, or the value found and the values allowed.
    """

    controller: str
    check: str
    about: str
    holds: bool
    text: str


_loaded: dict[str, Stack] = {}
_bringing = threading.Lock()


def load(file: str | Path) -> Stack:
    """Load a library into this process, where it stays. Its code is executed.

    Parameters
    ----------
    file
        The shared library.

    Returns
    -------
    Stack
        Name, version and controllers of the library.

    Raises
    ------
    InputError
        If the file does not implement the header, or a stack of this name is already loaded.
    """
    path = Path(file).resolve()
    for known, stack in _loaded.items():
        if known == str(path):
            return stack
    digest = hashlib.sha256(regular(path, LARGEST)).hexdigest()
    _wall.note(path.name)
    try:
        with _wall.doing(f"loading {path}"):
            name, version, controllers = _engine.load_stack(str(path))
    except ValueError as error:
        raise InputError(f"{shown(str(file))}: {shown(str(error))}") from None
    stack = Stack(name=name, version=version, controllers=tuple(controllers), digest=digest, file=str(path))
    _loaded[str(path)] = stack
    return stack


def loaded() -> list[Stack]:
    """Return the stacks loaded in this process.

    Returns
    -------
    list of Stack
        Stacks, sorted by name.
    """
    return sorted(_loaded.values(), key=lambda stack: stack.name)


def identity(of: Sequence[Stack] | None = None) -> str:
    """Return the identity of the stacks, besides the engine, that runs depend on, for run keys; empty if no library
    is loaded.

    Parameters
    ----------
    of
        Stacks to identify; None: those of this process.

    Returns
    -------
    str
        For each stack `+NAME-VERSION@` and the beginning of its file's hash.
    """
    return "".join(f"+{stack.name}-{stack.version}@{stack.digest[:16]}" for stack in (loaded() if of is None else of))


def missing(texts: Iterable[str]) -> str | None:
    """Return the first controller in these compiled scenarios with a stack not loaded in this process; None if there is none."""
    there = {stack.name for stack in loaded()}
    for text in texts:
        for found in re.finditer(r'"(stack:([^":]+)[^"]*)"', text):
            if found[2] not in there:
                return found[1]
    return None


def bring(wanted: Sequence[Stack]) -> None:
    """Load another process's libraries into this one: a worker uses the same files at the same paths.

    Parameters
    ----------
    wanted
        Stacks of the process that hands out the work.

    Raises
    ------
    UnavailableError
        If the file is missing or differs.
    """
    with _bringing:
        for stack in wanted:
            if any(have.digest == stack.digest for have in _loaded.values()):
                continue
            needed = f"needed: {shown(stack.file)} as the command loaded it (--stack), at that place on every machine"
            try:
                same = hashlib.sha256(regular(Path(stack.file), LARGEST)).hexdigest() == stack.digest
                if same:
                    load(stack.file)
            except InputError as error:
                raise UnavailableError(f"this worker has no stack {stack.name}: {error}; {needed}") from None
            if not same:
                raise UnavailableError(f"this worker has another library of the stack {stack.name}; {needed}")


def check(file: str | Path, *, controllers: Sequence[str] = (), checks: Sequence[str] = ()) -> Iterator[Finding]:
    """Test a library against the contract of the header. Each check runs in its own process, so the library may crash
    it.

    Parameters
    ----------
    file
        The library.
    controllers
        Controllers to check; none given: all of them.
    checks
        Names of the checks to run; none given: all.

    Yields
    ------
    Finding
        One for each controller and check.

    Raises
    ------
    InputError
        If the file does not implement the header, or has no such controller.
    """
    path = Path(file).resolve()
    stack = _described(path, file)
    for wanted in controllers:
        if wanted not in stack:
            raise InputError(f"--controller: found {shown(wanted)}; allowed: {', '.join(stack)}")
    patience_s = PATIENCE_S
    for controller in controllers or stack:
        for what, about in _engine.stack_checks():
            if checks and what not in checks:
                continue
            holds, text = _apart(path, controller, what, patience_s=patience_s)
            if holds and what == "repeats":
                again, second = _apart(path, controller, what, pauses=True, patience_s=patience_s)
                holds, text = again and second == text, _compared(text, second, holds=again)
            if not holds and text.startswith(NO_END):
                patience_s = min(patience_s, SHORT_S)
            yield Finding(controller=controller, check=what, about=about, holds=holds, text=text)


def _compared(first: str, second: str, *, holds: bool) -> str:
    if not holds:
        return second
    if first == second:
        return f"digest {first} in both"
    return f"found the digests {first} and {second}; allowed: one (a clock or random numbers of its own)"


def _described(path: Path, file: str | Path) -> Sequence[str]:
    """Return the library's controllers, read in another process because loading may do anything."""
    regular(path, LARGEST)
    holds, said = _told([str(path)], PATIENCE_S)
    if not holds:
        raise InputError(f"{shown(str(file))}: {shown(said)}")
    return said.split(",")


NO_END = "found no end after "


def _apart(path: Path, controller: str, what: str, *, patience_s: float, pauses: bool = False) -> tuple[bool, str]:
    return _told([str(path), controller, what, "pauses" if pauses else ""], patience_s)


def _told(arguments: Sequence[str], patience_s: float) -> tuple[bool, str]:
    """Return the JSON line printed by a process, or a description of its exit if it prints none."""
    try:
        done = _child.run(_child.python("ackclock.stacks:answer", *arguments), timeout=patience_s)
    except _child.TimeoutExpired:
        return False, f"{NO_END}{patience_s:.0f} s; allowed: a result"
    try:
        holds, text = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        said = (done.stderr.strip().splitlines() or [""])[0][:200]
        by = signal.Signals(-done.returncode).name if done.returncode < 0 else f"exit code {done.returncode}"
        return (
            False,
            f"found a process that ended by {by}{': ' + shown(said) if said else ''}; allowed: one that survives",
        )
    return bool(holds), str(text)


def _answer(arguments: Sequence[str]) -> tuple[bool, str]:
    try:
        stack = load(arguments[0])
    except InputError as error:
        return False, str(error).removeprefix(f"{shown(arguments[0])}: ")
    if len(arguments) == 1:
        return True, ",".join(stack.controllers)
    _, controller, what, pauses = arguments
    return _engine.check_stack(stack.name, controller, what, pauses == "pauses")


def answer(*arguments: str) -> None:
    """Entry point of a child process of `check`; prints one JSON line."""
    _engine.end_with_parent()
    sys.stdout.write(json.dumps(_answer(arguments)) + "\n")
