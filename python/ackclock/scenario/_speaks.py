"""Rule about who speaks first in a conversation over QUIC."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

Refusal = tuple[str, str, str]
"""Key, what was found, what is allowed."""


def silent(scenario: Mapping[str, Any]) -> Iterator[Refusal]:
    """Yield the refusal of each conversation over QUIC in which the server writes first. A server learns of a stream of its
    client from the client's first bytes (RFC 9000, section 2.1), so both would wait until the idle timeout.

    Libraries of the user (`stack:`) decide themselves.
    """
    for place, group in enumerate(scenario["flows"]):
        over = group.get("transport"), group.get("congestion_control", "").partition(":")[0]
        workload = group.get("workload")
        if "quinn" not in over or not isinstance(workload, Mapping) or workload["kind"] != "conversation":
            continue
        first, *others = workload["steps"]
        at_once = [first, *takewhile(lambda step: step.get("together"), others)]
        if not any("client" in step for step in at_once):
            yield (
                f"flows.{place}.workload.steps.0.server",
                "a server that speaks first over QUIC",
                "a first step of the client, which opens the stream, or a step of the client together with this one",
            )
