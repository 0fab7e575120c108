"""The mirror, a second and more detailed model of a capture: every lost transmission is lost again, and the application
writes at the captured times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError

if TYPE_CHECKING:
    from ackclock.diagnose import Diagnosis
    from ackclock.diagnose._replay import Replay
    from ackclock.scenario import Scenario

__all__ = ["CUT", "mirrored", "with_window"]

CUT: dict[str, Any] = {
    "flows.0.stack.tso": True,
    "hosts": [{"name": "sender", "cuts_packets": True}],
    "flows.0.host": "sender",
}
"""Settings of a sender with a NIC that splits multi-segment packets, so that single segments cross the path, as from
a real host.
"""

SYN_BYTES = 60
"""Size of a SYN with its options, bytes."""

MOST_WRITES = 20_000

MOMENT = 0.05
"""Fraction of the RTT below which waits for the application are ignored."""


def mirrored(
    found: Diagnosis, *, controller: str = "cubic", slack: float = 1.0, most_bytes: int | None = None
) -> Scenario:
    """Return the model of a diagnosis with exactly the capture's losses and with an application that writes at
    the captured times.

    Parameters
    ----------
    found
        Diagnosis with conclusions.
    controller
        Sender's controller.
    slack
        Ratio of its queue to the longest queue seen; a sender that fills it beyond that loses packets there.
    most_bytes
        Amount of data to send, from the beginning, bytes; None: all.

    Raises
    ------
    InputError
        If the capture allows no model.
    """
    from ackclock import units
    from ackclock.diagnose._fit import OWN_PACE, model

    scenario = model(found, controller=controller, own_pace=1.0 if most_bytes is None else OWN_PACE)
    path, shown = found.path, found.sent
    assert path is not None
    assert shown is not None
    assert found.replay is not None
    assert path.base_rtt_s is not None
    assert path.queued_rtt_s is not None
    assert path.wire_bps is not None
    size = found.mss * path.wire_bps / path.rate_bps if path.rate_bps else found.mss
    stood = (path.queued_rtt_s - path.base_rtt_s) * path.wire_bps / 8 / size
    whole = int(found.connection["bytes"])
    writes = _writes(found.replay, path.base_rtt_s, whole if most_bytes is None else min(whole, most_bytes))
    lost = shown.lost if len(writes) == 1 else shown.lost_in_order
    work = (
        {"kind": "transfer", "bytes": writes[0]["bytes"]} if len(writes) == 1 else {"kind": "writes", "writes": writes}
    )
    values: dict[str, Any] = {
        "network.bottleneck.queue": {"kind": "drop-tail", "limit": f"{round(stood * (1 + slack)) + 20} packets"},
        "network.bottleneck.loss": {"kind": "scripted", "drops": _drops(lost)} if lost else {"kind": "none"},
        "flows.0.workload": work,
    }
    if shown.ecn != "off":
        values["flows.0.stack.ecn"] = "accecn" if shown.ecn == "accecn" else "ask"
    if shown.large > 0.1:
        values |= CUT
    link = scenario.network.bottleneck
    hand = found.connection["handshake_rtt_s"]
    assert link is not None
    # the small handshake packets do not queue behind others of their connection
    if hand is not None and hand == hand:
        delay = int((hand - 16 * SYN_BYTES / units.whole(link.rate, units.RATE)) / 2 * 1e9)
        if 0 < delay < units.whole(link.delay, units.DURATION):
            values["network.bottleneck.delay"] = f"{delay} ns"
    if found.replay.paced:
        values["flows.0.stack.pacing"] = True
    return with_window(scenario.set_all(values), found.connection["most_window"])


def with_window(scenario: Scenario, most: float | None) -> Scenario:
    """Set the receive buffer that results in this window. A buffer advertises slightly less than its size; a trial
    run measures how much.

    Parameters
    ----------
    scenario
        Scenario with or without a receive buffer.
    most
        The largest window of the capture, bytes.
    """
    import ackclock
    from ackclock import units

    buffer = scenario.flows[0].stack.receive_buffer
    if buffer is None or not most:
        return scenario
    offered = float(ackclock.run(scenario.set("record.trace", "flow")).acks["rwnd"].to_numpy().max())
    wanted = units.whole(buffer, units.SIZE) + round(most - offered)
    return scenario.set("flows.0.stack.receive_buffer", f"{max(wanted, 1)} B")


def _drops(lost: Sequence[tuple[int, int]]) -> list[dict[str, int]]:
    """Join adjacent segments into ranges."""
    made: list[dict[str, int]] = []
    for which, n in sorted((which, n) for n, which in lost):
        last = made[-1] if made else None
        if last is not None and last["transmission"] == which and last["last"] == n - 1:
            last["last"] = n
        else:
            made.append({"first": n, "last": n, "transmission": which})
    return made


def _writes(played: Replay, base_rtt_s: float, left: int) -> list[dict[str, Any]]:
    """Return write times and sizes. A write ends when the sender has had nothing to send for longer than `MOMENT`."""
    begins, start, made, waited = 0.0, 1, [], 0.0
    origin = played.instants[0].t
    for before, now, cause in zip(played.instants, played.instants[1:], played.causes, strict=False):
        waited = waited + now.t - before.t if cause in ("application", "idle") else 0.0
        if now.new and waited > MOMENT * base_rtt_s and before.nxt > start:
            made.append((begins, before.nxt - start))
            begins, start = now.t - origin, before.nxt
        waited = 0.0 if now.new else waited
    made.append((begins, played.instants[-1].nxt - start))
    if len(made) > MOST_WRITES:
        raise InputError(f"found {len(made):,} writes of the application; allowed: at most {MOST_WRITES:,}")
    writes = []
    for at, size in made:
        if (part := min(size, left)) > 0:
            writes.append({"at": f"{round(at * 1e9)} ns", "bytes": f"{part} B"})
            left -= part
    return writes
