"""Adaptive video: players that fetch chunks at bitrates of their choice."""

from __future__ import annotations

import itertools
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ackclock.errors import ScenarioError, quote
from ackclock.scenario._base import (
    Count,
    Flag,
    Number,
    Positive,
    PositiveDuration,
    Rate,
    Size,
    Table,
    bits_per_second,
    byte_count,
    nanoseconds,
    tagged,
    without_none,
)


class Festive(Table):
    """FESTIVE (CoNEXT 2012): harmonic mean, one level at a time, delayed updates, requests at random times."""

    kind: Literal["festive"]
    window: Annotated[int, Number(1, 10_000)] = 20
    """Chunks in the harmonic mean of the throughput."""
    safety: Positive = 0.85
    """Share of the estimate that a bitrate may have (p)."""
    alpha: Annotated[float, Number(0, 1e6, whole=False)] = 12.0
    """Weight of efficiency against stability."""
    horizon: Annotated[int, Number(0, 10_000)] = 5
    """Chunks over which switches are counted: the 20 s of the authors' slides with chunks of 4 s."""
    randomised: Flag = True
    """The buffer at which the next chunk is asked for is drawn around the target; else it is the target."""
    gradual: Flag = True
    """One level at a time, up from the k-th only after k chunks there; else straight to the highest that `safety` allows."""
    delayed: Flag = True
    """A switch waits until the efficiency that it wins outweighs the instability that it adds."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return dict(self)


class RateBased(Table):
    """The highest bitrate below the throughput of the last chunk, or below its moving average."""

    kind: Literal["rate-based"]
    weight: Annotated[float, Number(0, 1, whole=False, above=True)] = 1.0
    """Weight of the last chunk in the moving average; 1: the last chunk alone."""
    safety: Positive = 1.0
    """Share of the estimate that a bitrate may have."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return dict(self)


Adaptation = Annotated[Festive | RateBased, Field(discriminator="kind"), tagged(Festive, RateBased)]


class Video(Table):
    """A player at the receiving end: fetches chunks over one connection, at bitrates of its choice, and plays them.

    It asks for the next chunk at once until the buffer has reached its target, then each time that it has run down to it. A
    chunk's size, relative to its bitrate, depends on the seed, the flow and its number only: arms of a comparison watch the
    same video. Over PCC the request is a datagram on the way back.
    """

    kind: Literal["video"]
    ladder: Annotated[tuple[Rate, ...], Field(min_length=1)]
    """Bitrates, ascending."""
    chunk: PositiveDuration = "4 s"
    """Length of a chunk."""
    chunks: Count | None = None
    """Chunks of the video; absent: until the flow's stop."""
    buffer: PositiveDuration = "30 s"
    """Buffer that the player aims at."""
    buffer_max: PositiveDuration | None = None
    """Buffer that it never exceeds, at least one chunk above `buffer`; absent: two chunks above."""
    startup: PositiveDuration | None = None
    """Buffer with which playback begins, and goes on after a stall; absent: one chunk, or `buffer` if that is less."""
    request: Size = "200 bytes"
    """Request; over PCC at most a datagram's payload, 1456 bytes."""
    size_variation: Annotated[float, Number(0, 0.99, whole=False)] = 0.0
    """A chunk's size is uniform within this share of its bitrate's."""
    adaptation: Adaptation = Festive.constant(kind="festive")
    """How the player chooses."""

    @model_validator(mode="after")
    def _fits(self) -> Video:
        for i, (lower, upper) in enumerate(itertools.pairwise(self.ladder), start=1):
            if bits_per_second(upper) <= bits_per_second(lower):
                raise ScenarioError(
                    key=f"ladder.{i}", found=f"{quote(upper)} after {quote(lower)}", allowed="bitrates that ascend"
                )
        chunk, buffer = nanoseconds(self.chunk), nanoseconds(self.buffer)
        if self.buffer_max is not None and nanoseconds(self.buffer_max) < buffer + chunk:
            raise ScenarioError(
                key="buffer_max",
                found=f"{quote(self.buffer_max)} with a buffer of {quote(self.buffer)} and chunks of {quote(self.chunk)}",
                allowed="at least the buffer and a chunk",
            )
        if self.startup is not None and nanoseconds(self.startup) > buffer:
            raise ScenarioError(
                key="startup",
                found=f"{quote(self.startup)} with a buffer of {quote(self.buffer)}",
                allowed="at most the buffer",
            )
        return self

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        chunk, buffer = nanoseconds(self.chunk), nanoseconds(self.buffer)
        return without_none(
            kind=self.kind,
            ladder_bps=[bits_per_second(rate) for rate in self.ladder],
            chunk_ns=chunk,
            chunks=self.chunks,
            buffer_ns=buffer,
            buffer_max_ns=buffer + 2 * chunk if self.buffer_max is None else nanoseconds(self.buffer_max),
            startup_ns=min(chunk, buffer) if self.startup is None else nanoseconds(self.startup),
            request_bytes=byte_count(self.request),
            size_variation=self.size_variation,
            adaptation=self.adaptation.engine(),
        )
