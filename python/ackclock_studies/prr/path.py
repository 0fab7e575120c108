"""The path of the CS244'13 experiment, as a scenario: server, 1000 Mbit/s, switch, 1.2 Mbit/s, client.

Sources: repository `gengyl08/cs244_pa3` for all parameters; `mininet/link.py` for their effect: TCLink sets rate,
delay, loss and queue on both interfaces of a link, so each applies in both directions, also to ACKs and SYNs. netem's
limit counts the packets in its delay line.
"""

from __future__ import annotations

from typing import Any

from ackclock.scenario import Scenario

PAGES = (768, 7_680, 76_800, 768_000)
"""Sizes of index1.html to index4.html, bytes."""

PAGE_LABELS = {768: "0.75 KB", 7_680: "7.5 KB", 76_800: "75 KB", 768_000: "750 KB"}
LOSSES = (0.01, 0.03)
"""Loss probability on each link in each direction."""

LOW, HIGH = LOSSES
MIDDLE, LARGE = PAGES[2:]

QUEUE = "100 packets"
DELAY = "25 ms"


def percent(loss: float) -> str:
    """Format a loss probability as text."""
    return f"{100 * loss:g} %"


def where(page: int, loss: float) -> str:
    """Cell name: page, and loss on each link."""
    return f"{PAGE_LABELS[page]}, {percent(loss)}"


def network(loss: float = 0.0, *, queue: str = QUEUE, both_ways: bool = True) -> dict[str, Any]:
    """Both links of the path, each with `loss` in each direction.

    Parameters
    ----------
    loss
        Probability per link and direction.
    queue
        Limit of each queue.
    both_ways
        Whether the reverse path also loses packets.
    """
    shared = {"queue": {"kind": "netem-limit", "limit": queue}}
    lossy = {"loss": {"kind": "bernoulli", "p": loss}} if loss else {}
    access, bottleneck = ({"rate": rate, "delay": DELAY, **shared} for rate in ("1000 Mbit/s", "1.2 Mbit/s"))
    found = {"topology": "chain", "access": {**access, **lossy}, "bottleneck": {**bottleneck, **lossy}}
    return found if both_ways else {**found, "reverse": {"access": access, "bottleneck": bottleneck}}


def host(*, profile: str = "linux-3.2", recovery: str | None = None, **stack: Any) -> dict[str, Any]:
    """Sender in the study: CUBIC, with the given recovery rule and settings.

    Parameters
    ----------
    profile
        Host profile; "linux-3.2" has initial window 10, initial RTO 1 s, FACK with detection of lost retransmissions.
    recovery
        Recovery rule, if it is not the profile's.
    **stack
        Settings that differ from the profile.
    """
    made: dict[str, Any] = {"profile": profile, "congestion_control": "cubic"}
    if recovery is not None:
        made["recovery"] = recovery
    if stack:
        made["stack"] = stack
    return made


def fetch(page: int, loss: float, sender: dict[str, Any], *, name: str = "fetch", **path: Any) -> Scenario:
    """Return one fetch of `page` bytes. The duration only bounds fetches that never end; `path` goes into `network`."""
    return Scenario.from_dict(
        {
            "name": name,
            "duration": "1 h",
            "network": network(loss, **path),
            "flows": [{**sender, "workload": {"kind": "fetch", "bytes": f"{page} bytes"}}],
        }
    )


def long_flow(sender: dict[str, Any], *, duration: str = "200 s", name: str = "long flow") -> Scenario:
    """The cwnd experiment: one bulk flow of Reno, no random loss, every ACK recorded."""
    return Scenario.from_dict(
        {
            "name": name,
            "duration": duration,
            "network": network(),
            "flows": [{**sender, "congestion_control": "reno", "workload": {"kind": "bulk"}}],
            "record": {"trace": "flow", "drops": True},
        }
    )
