"""Checks the return values of a study's functions: a value of the wrong type causes a one-line error that names the function."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from ackclock.errors import AckclockError, InputError, said, shown

__all__ = ["checked", "every", "of", "one"]


@contextmanager
def of(function: Any) -> Iterator[None]:
    """Report in one line an exception or an unusable return value of a function in a user's study. Errors in our own
    studies keep their traceback.

    Parameters
    ----------
    function
        Function of a study, or an object that wraps one.
    """
    try:
        yield
    except (AckclockError, OSError, MemoryError):
        raise
    except Exception as error:
        function = _inner(function)
        if str(getattr(function, "__module__", "")).partition(".")[0] in ("ackclock", "ackclock_studies"):
            raise
        if os.environ.get("ACKCLOCK_DEBUG") == "1":
            raise
        why = " ".join(said(error).split())
        raise InputError(shown(f"{_place(function, error)}: {why} (ACKCLOCK_DEBUG=1 shows all of it)")) from error


def one(function: Any, found: Any, kind: Any, allowed: str) -> Any:
    """Return the value if it has the expected type.

    Raises
    ------
    InputError
        If it has another type.
    """
    if isinstance(found, kind):
        return found
    what = "nothing" if found is None else f"{type(found).__name__}"
    raise InputError(shown(f"{_place(_inner(function))}: found {what}; allowed: {allowed}"))


def checked(function: Any, check: Callable[[], None]) -> None:
    """Check a return value. The error message begins with the function's name."""
    try:
        check()
    except InputError as error:
        raise InputError(shown(f"{_place(_inner(function))}: {error}")) from None


def every(function: Any, found: Any, kind: Any, allowed: str) -> tuple[Any, ...]:
    """Check each of several return values as `one` does."""
    if isinstance(found, str | bytes):
        one(function, found, (), allowed)
    with of(function):
        listed = tuple(found)
    return tuple(one(function, x, kind, allowed) for x in listed)


def _inner(function: Any) -> Any:
    """Return the study's own function, without our wrappers."""
    for _ in range(10):
        held = function.func if isinstance(function, partial) else getattr(function, "of", None)
        if not callable(held):
            break
        function = held
    return function


def _place(function: Any, error: BaseException | None = None) -> str:
    """Return the file and name of a function, or the study's line in which an error was raised."""
    code = getattr(function, "__code__", None)
    file = getattr(code, "co_filename", "study")
    step = error.__traceback__ if error is not None else None
    line = 0
    while step is not None:
        if step.tb_frame.f_globals.get("__name__") == getattr(function, "__module__", ""):
            file, line = step.tb_frame.f_code.co_filename, step.tb_lineno
        step = step.tb_next
    return f"{file}, line {line}" if line else f"{file}: {getattr(function, '__name__', type(function).__name__)}"
