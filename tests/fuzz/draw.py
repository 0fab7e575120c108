"""Values out of an input's bytes. After the last one come zeros, so that every input has a meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """The bytes that are left."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        value = self._data[self._at] if self._at < len(self._data) else 0
        self._at += 1
        return value

    def number(self, size: int) -> int:
        value = int.from_bytes(self._data[self._at : self._at + size], "little")
        self._at += size
        return value

    def one(self, of: Sequence[T]) -> T:
        return of[(self.byte() if len(of) <= 256 else self.number(2)) % len(of)]

    def rest(self) -> bytes:
        return self._data[self._at :]

    @property
    def empty(self) -> bool:
        return self._at >= len(self._data)


def one_line(message: str) -> None:
    """What every refusal must be."""
    assert message, "an empty message"
    assert "\n" not in message, message
    assert "\x1b" not in message, message
    assert len(message) < 1200, f"{len(message)} characters: {message[:200]}"
