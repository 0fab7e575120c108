"""Writes a queueing discipline of the linux backend as `tc` commands (iproute2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ackclock.linux import _qdiscs

__all__ = ["disciplines"]

BURST_S = 100e-6
"""Shaper burst, s: real machines' timers are no finer."""


def disciplines(tc: str, device: str, qdisc: Mapping[str, Any]) -> Iterator[str]:
    """Return the commands that put a discipline on a device.

    Parameters
    ----------
    tc
        Beginning of the command: its name, and the namespace.
    device
        Name of the device.
    qdisc
        Discipline from `_qdiscs.stages_of`.
    """
    made = _qdiscs.finished(qdisc)
    leaf, shaper = made["leaf"], made["shaper"]
    if shaper is None:
        handle = "" if leaf["kind"] == "netem" else " handle 1:"
        yield f"{tc} qdisc add dev {device} root{handle} {leaf['words']}"
        return
    bits = 8 * shaper["rate"]
    burst = shaper["burst"] or max(1600, round(shaper["rate"] * BURST_S))
    table = f" stab overhead {shaper['overhead']} linklayer ethernet" if shaper["overhead"] else ""
    if shaper["bucket"]:
        yield f"{tc} qdisc add dev {device} root handle 1:{table} tbf rate {bits}bit burst {shaper['burst']}b limit 1gb"
        yield f"{tc} qdisc add dev {device} parent 1:1 handle 2: {leaf['words']}"
        return
    yield f"{tc} qdisc add dev {device} root handle 1:{table} htb default 1"
    yield f"{tc} class add dev {device} parent 1: classid 1:1 htb rate {bits}bit ceil {bits}bit burst {burst}b cburst {max(burst, 1600)}b quantum 1514"
    yield f"{tc} qdisc add dev {device} parent 1:1 handle 2: {leaf['words'].replace('{bits}', str(bits))}"
