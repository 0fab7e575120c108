"""Lines printed by Linux modules with `printk`. While a listener is open, each library stores those of its thread."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["listening", "remember"]

_libraries: list[ctypes.CDLL] = []
_LINE = re.compile(r"\[ *(\d+\.\d+)\] (.*)")


def remember(library: Path) -> None:
    """Open a library loaded by the engine before its file is removed."""
    opened = ctypes.CDLL(str(library))
    opened.ackclock_heard.restype = ctypes.c_void_p
    opened.ackclock_heard.argtypes = [ctypes.POINTER(ctypes.c_size_t)]
    _libraries.append(opened)


@contextmanager
def listening() -> Iterator[Callable[[], list[tuple[float, str]]]]:
    """Listen to all remembered libraries in this thread until the end of the block."""
    heard = list(_libraries)
    for library in heard:
        library.ackclock_listen(1)
    try:
        yield lambda: [line for library in heard for line in _lines(library)]
    finally:
        for library in heard:
            library.ackclock_listen(0)


def _lines(library: ctypes.CDLL) -> list[tuple[float, str]]:
    length = ctypes.c_size_t()
    text = library.ackclock_heard(ctypes.byref(length))
    if not text or not length.value:
        return []
    whole = ctypes.string_at(text, length.value).decode("utf-8", errors="replace")
    return [(float(found[1]), found[2]) for line in whole.split("\n") if (found := _LINE.match(line))]
