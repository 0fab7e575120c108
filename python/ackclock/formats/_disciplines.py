"""A queueing discipline of the linux backend as commands of `tc` (iproute2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ackclock import _engine
from ackclock.linux import _qdiscs

__all__ = ["disciplines", "red_burst"]

BURST_S = 100e-6
"""Of a shaper: a real machine's timers are no finer than that."""


def disciplines(tc: str, device: str, qdisc: Mapping[str, Any]) -> Iterator[str]:
    """The commands that put a discipline on a device.

    Parameters
    ----------
    tc
        How the command begins: its name, and the namespace.
    device
        Its name.
    qdisc
        As `_qdiscs` describes it for the guest.
    """
    if qdisc["kind"] == "netem":
        yield f"{tc} qdisc add dev {device} root netem {_netem(qdisc)}"
        return
    if qdisc["kind"] == "alone":
        yield f"{tc} qdisc add dev {device} root handle 1: {_leaf(qdisc['leaf'], 8 * qdisc['leaf']['rate'])}"
        return
    bits = 8 * qdisc["rate"]
    burst = qdisc["burst"] or max(1600, round(qdisc["rate"] * BURST_S))
    table = f" stab overhead {qdisc['overhead']} linklayer ethernet" if qdisc["overhead"] else ""
    yield f"{tc} qdisc add dev {device} root handle 1:{table} htb default 1"
    yield f"{tc} class add dev {device} parent 1: classid 1:1 htb rate {bits}bit ceil {bits}bit burst {burst}b cburst {max(burst, 1600)}b quantum 1514"
    yield f"{tc} qdisc add dev {device} parent 1:1 handle 2: {_leaf(qdisc['leaf'], bits)}"


def _netem(qdisc: Mapping[str, Any]) -> str:
    words = [f"limit {qdisc['limit']}"]
    if qdisc["delay_ns"]:
        words.append(f"delay {_time(qdisc['delay_ns'])}")
    if qdisc.get("loss"):
        words.append(f"loss random {_percent(qdisc['loss'])}")
    if qdisc.get("gemodel"):
        # as tc wants it: p, r, loss in the bad state (1-h), loss in the good one (1-k)
        p, r, h, k = qdisc["gemodel"]
        words.append(f"loss gemodel {_percent(p)} {_percent(r)} {_percent(2**32 - 1 - h)} {_percent(k)}")
    if qdisc.get("rate"):
        words.append(f"rate {8 * qdisc['rate']}bit {qdisc['overhead']}")
    return " ".join(words)


def _leaf(leaf: Mapping[str, Any], bits: int) -> str:
    kind = leaf["kind"]
    ecn = {True: " ecn", False: " noecn", None: ""}[leaf.get("ecn")]
    if leaf.get("ce_threshold"):
        ecn += f" ce_threshold {leaf['ce_threshold']}us" + " ce_threshold_selector 0x1/0x3" * leaf.get("ce_ect1", False)
    if kind == "netem":
        return f"netem limit {leaf['limit']} delay {_time(leaf['delay_ns'])}"
    if kind == "bfifo":
        return f"bfifo limit {leaf['limit']}"
    if kind == "codel":
        return f"codel limit {leaf['limit']} target {leaf['target']}us interval {leaf['interval']}us{ecn}"
    if kind == "fq-codel":
        return (
            f"fq_codel limit {leaf['limit']} flows {leaf['flows']} quantum {leaf['quantum']} target {leaf['target']}us "
            f"interval {leaf['interval']}us{ecn}"
        )
    if kind == "pie":
        limit = leaf.get("limit", _qdiscs.ENOUGH)
        return f"pie limit {limit} target {_time(leaf['target'])} tupdate {_time(leaf['update'])}{ecn}"
    if kind == "cake":
        return _cake(leaf)
    if kind == "dualpi2":
        return _dualpi2(leaf)
    red = f"red limit {leaf['limit']} min {leaf['min']} max {leaf['max']} probability {leaf['max_p'] / 2**32:.6g}"
    return f"{red} avpkt {AVERAGE} burst {red_burst(leaf)} bandwidth {bits}bit" + "".join(
        f" {word}" for word in ("ecn", "harddrop", "adaptive") if leaf[word]
    )


def _dualpi2(leaf: Mapping[str, Any]) -> str:
    return " ".join(
        (
            f"dualpi2 limit {leaf['limit']} coupling_factor {leaf['coupling']} step_thresh {leaf['step']}us",
            f"min_qlen_step {leaf['step_from']} {'drop_on_overload' if leaf['drops'] else 'overflow'} drop_dequeue",
            f"{'any_ect' if leaf['any_ect'] else 'l4s_ect'} classic_protection {leaf['classic_share']}%",
            f"target {leaf['target']}us tupdate {leaf['update']}us alpha {leaf['alpha'] / 256:.6g} beta {leaf['beta'] / 256:.6g}",
        )
    )


def _cake(leaf: Mapping[str, Any]) -> str:
    words = [f"cake bandwidth {8 * leaf['rate']}bit" if leaf["rate"] else "cake unlimited", "besteffort"]
    words.append({4: "flows", 5: "dual-srchost", 6: "dual-dsthost", 7: "triple-isolate"}[leaf["flow_mode"]])
    words.append(f"rtt {leaf['rtt']}us no-split-gso")
    if leaf["overhead"] is not None:
        words.append(f"overhead {leaf['overhead']} {('noatm', 'atm', 'ptm')[leaf['atm']]}")
    if leaf["mpu"]:
        words.append(f"mpu {leaf['mpu']}")
    if leaf["memory"]:
        words.append(f"memlimit {leaf['memory']}b")
    return " ".join(words)


AVERAGE = 1514
"""Bytes of a packet, for tc's reckoning of RED's weight."""


def red_burst(leaf: Mapping[str, Any]) -> int:
    """The burst from which tc comes to the weight that is wanted."""
    return _engine.red_burst(leaf["wlog"], leaf["min"] / AVERAGE)


def _time(ns: int) -> str:
    return f"{ns // 1000}us" if ns % 1000 == 0 else f"{ns}ns"


def _percent(share: int) -> str:
    return f"{100 * share / 2**32:.7g}%"
