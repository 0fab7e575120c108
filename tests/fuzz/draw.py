"""Draws values from an input's bytes. Zeros follow the last byte, so that every input is valid."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Remaining bytes of the input."""

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


def drawn(seed: int, examples: Sequence[bytes], longest: int) -> Iterator[bytes]:
    """Yield an endless sequence of inputs: random bytes, or examples with some bytes changed."""
    rng = random.Random(seed)
    while True:
        if not examples or rng.random() < 0.1:
            yield rng.randbytes(rng.randint(1, min(longest, 64)))
            continue
        data = bytearray(rng.choice(examples))
        for _ in range(rng.randint(1, 6)):
            at, end = rng.randint(0, len(data)), rng.randint(0, 8)
            other = rng.choice(examples)
            start = rng.randint(0, len(other))
            data[at : at + rng.choice((0, 0, 1, end))] = rng.choice(
                (b"", rng.randbytes(1), data[at : at + end], other[start : start + rng.randint(1, 16)])
            )
        yield bytes(data[:longest])


def one_line(message: str) -> None:
    """Check the form of a refusal: one non-empty line of bounded length, without escape sequences."""
    assert message, "an empty message"
    assert "\n" not in message, message
    assert "\x1b" not in message, message
    assert len(message) < 1200, f"{len(message)} characters: {message[:200]}"
