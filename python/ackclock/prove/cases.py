"""A target's cases, one row each, in order, and the hash tree over them."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ackclock.errors import InputError

FIELDS = {
    "answers": "<u8",
    "answers_above": "<u8",
    "asked": "<u4",
    "took_ns": "<i8",
    "timeouts": "u1",
    "retransmissions": "u1",
    "queue_lost": "u1",
}
"""Columns of a row: answers (bit k answers question k), number of questions asked, completion time (-1: not completed),
counts (255 means 255 or more), and whether a queue dropped packets.
"""

BLOCK = 4096
"""Number of rows in a leaf of the hash tree."""

Cut = tuple[int, int]
"""(number of cases omitted at a question, sum of their times since the flow's start in ns)."""


@dataclass(frozen=True, eq=False)
class Cases:
    """Rows of cases, and the omitted ones.

    Parameters
    ----------
    columns
        Columns by the names of `FIELDS`.
    cuts
        Omitted cases, by question.
    """

    columns: Mapping[str, Any]
    cuts: tuple[Cut, ...] = ()

    def __len__(self) -> int:
        return len(self.columns["took_ns"])

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    @classmethod
    def of_engine(cls, raw: Mapping[str, Any]) -> Cases:
        """Return the cases from the engine's output."""
        columns = {}
        for name, kind in FIELDS.items():
            given, buffer = raw[name]
            dtype = {"i8": "<i8", "u4": "<u4", "n4": "<u4", "u1": "u1", "bool": "u1"}[given]
            columns[name] = np.frombuffer(buffer, dtype=dtype).view(kind)
        return cls(columns, merged(raw["cuts"]))

    @classmethod
    def joined(cls, parts: Sequence[Cases]) -> Cases:
        """Return the concatenation of several parts."""
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in FIELDS}
        return cls(columns, merged([part.cuts for part in parts]))

    @cached_property
    def yes(self) -> Any:
        """Number of "yes" answers in each case."""
        return np.bitwise_count(self["answers"]).astype("u1") + np.bitwise_count(self["answers_above"]).astype("u1")

    def answers(self, at: int) -> int:
        """Return a case's answers as a number."""
        return int(self["answers"][at]) | int(self["answers_above"][at]) << 64

    def row(self, at: int) -> tuple[int, ...]:
        """Return a case as plain numbers, without its answers."""
        return tuple(int(self[name][at]) for name in ("asked", "took_ns", "timeouts", "retransmissions", "queue_lost"))

    def packed(self) -> bytes:
        """Return the columns, compressed."""
        return zlib.compress(b"".join(np.ascontiguousarray(self[name]).tobytes() for name in FIELDS), 1)

    @classmethod
    def unpacked(cls, data: bytes, rows: int, cuts: Sequence[Sequence[int]], place: str) -> Cases:
        """Return cases from compressed columns of this many rows."""
        size = sum(np.dtype(kind).itemsize for kind in FIELDS.values())
        try:
            unpacker = zlib.decompressobj()
            raw = unpacker.decompress(data, rows * size + 1)
        except zlib.error as error:
            raise InputError(
                f"{place}: found bytes that are not compressed ({error}); allowed: what prove wrote"
            ) from None
        if len(raw) != rows * size or not unpacker.eof:
            raise InputError(f"{place}: found {len(raw)} bytes of cases; allowed: {rows * size}, those of {rows} cases")
        columns, at = {}, 0
        for name, kind in FIELDS.items():
            length = rows * np.dtype(kind).itemsize
            columns[name] = np.frombuffer(raw, dtype=kind, count=rows, offset=at)
            at += length
        return cls(columns, tuple((int(count), int(since)) for count, since in cuts))

    @cached_property
    def root(self) -> str:
        """Root of the hash tree (SHA-256), whose leaves are blocks of rows written column by column."""
        level = []
        for start in range(0, len(self), BLOCK):
            block = hashlib.sha256(b"\0")
            for name in FIELDS:
                block.update(np.ascontiguousarray(self[name][start : start + BLOCK]).tobytes())
            level.append(block.digest())
        while len(level) > 1:
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = [hashlib.sha256(b"\1" + b"".join(pair)).digest() for pair in pairs]
        return level[0].hex() if level else ""


def merged(parts: Sequence[Sequence[Sequence[int]]]) -> tuple[Cut, ...]:
    """Return the combined cuts of all parts."""
    longest = max((len(part) for part in parts), default=0)
    sums = [[0, 0] for _ in range(longest)]
    for part in parts:
        for total, (count, since) in zip(sums, part, strict=False):
            total[0] += int(count)
            total[1] += int(since)
    return tuple((count, since) for count, since in sums)


def pattern(answers: int, asked: int) -> str:
    """Return the answers as a string of digits, the first question first."""
    return "".join("1" if answers >> k & 1 else "0" for k in range(asked))


def whole(cases: Cases, first: int, *, burst: int | None) -> bool:
    """Return whether the cases are complete: none is a prefix of another, and their probabilities under fair coin
    answers, including omitted cases, add up to one.
    """
    if burst is not None:
        return len(cases) == len({(cases.answers(i)) for i in range(len(cases))}) and len(cases) <= first + 1
    asked = np.minimum(cases["asked"], first)
    counts = np.bincount(asked, minlength=1)
    total = sum(int(count) << (128 - depth) for depth, count in enumerate(counts))
    total += sum(count << (128 - question - 1) for question, (count, _) in enumerate(cases.cuts))
    return total == 1 << 128 and bool(_ordered(cases))


def _ordered(cases: Cases) -> bool:
    """Return whether the cases are in order and no case is a prefix of the next."""
    low, high = _mirrored(cases["answers"]), _mirrored(cases["answers_above"])
    after = (low[1:] > low[:-1]) | ((low[1:] == low[:-1]) & (high[1:] > high[:-1]))
    return bool(after.all())


def _mirrored(words: Any) -> Any:
    """Return each word with its bits reversed."""
    swapped = np.ascontiguousarray(words).byteswap().view("u1").reshape(len(words), 8)
    bits = np.array([int(f"{n:08b}"[::-1], 2) for n in range(256)], dtype="u1")
    return bits[swapped].view("<u8").ravel() if len(words) else words
