"""The two paths of the slides as scenarios, their hosts, and the readings A1 to A12 of what the slides leave open.

Each reading is a default of one function here, and its alternatives are values of the same argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ackclock.scenario import Scenario

MTU, SEGMENT = 1500, 1448


@dataclass(frozen=True, kw_only=True, slots=True)
class Path:
    """A bottleneck and what surrounds it.

    Parameters
    ----------
    name
        In reports.
    rate_bps
        At the IP layer (A1).
    rtt_s
        Without queueing (A5).
    queue
        Of the bottleneck, packets (A6).
    """

    name: str
    rate_bps: int
    rtt_s: float
    queue: int

    @property
    def payload_bps(self) -> float:
        """Goodput of the full bottleneck, bit/s."""
        return self.rate_bps * SEGMENT / MTU

    @property
    def bdp(self) -> float:
        """Packets that fill the path without queueing."""
        return self.rate_bps * self.rtt_s / 8 / MTU


ALABAMA = Path(name="155 Mb/s, 64 ms", rate_bps=155_000_000, rtt_s=0.064, queue=400)
"""Path 1, as PathRate measured it: 155 Mb/s at IP. 5.8 s for 100 MB fit no other reading (A1)."""

ALABAMA_ATM = Path(name="ATM, 132.45 Mb/s at IP, 64 ms", rate_bps=132_450_000, rtt_s=0.064, queue=400)
"""Path 1 as a true OC-3c ATM link carries 1500-byte packets: 149.76 Mb/s of SONET payload, 48 of 53 bytes, 32 cells each."""

CALTECH = Path(name="1 Gb/s, 4 ms", rate_bps=1_000_000_000, rtt_s=0.004, queue=333)
"""Path 2."""

BUFFERS = (50, 100, 200, 400, 827)
"""A6: what the queue of path 1 may have held, packets."""

TCPW, FAST, HSTCP, NEWRENO = "TCPW", "FAST", "HSTCP", "NewReno"
PROTOCOLS = (TCPW, FAST, HSTCP, NEWRENO)

LINUX_WINDOW, FREEBSD_WINDOW = "1536 KiB", "2 MiB"
"""A4: what a socket buffer of 2 MB makes of the window: Linux keeps a quarter for overhead."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Protocol:
    """A sender.

    Parameters
    ----------
    name
        In reports.
    controller
        Registry name.
    options
        Of the controller.
    freebsd
        Host of the study: FreeBSD 4 for TCPW, Linux 2.6 for the others.
    sack
        A7.
    """

    name: str
    controller: str
    options: Mapping[str, Any] = field(default_factory=dict)
    freebsd: bool = False
    sack: bool = True

    def host(self, **stack: Any) -> dict[str, Any]:
        """Keys of a flow group.

        Parameters
        ----------
        **stack
            Stack settings that differ.
        """
        settings: dict[str, Any] = {
            "initial_window": 2,  # A12
            "sack": self.sack,
            "receive_buffer": FREEBSD_WINDOW if self.freebsd else LINUX_WINDOW,
            **stack,
        }
        made: dict[str, Any] = {
            "profile": "freebsd-4" if self.freebsd else "linux-2.6",
            "congestion_control": self.controller,
            "stack": settings,
        }
        if self.options:
            made["congestion_control_options"] = dict(self.options)
        return made


def westwood(name: str = TCPW, *, sack: bool = False, **options: Any) -> Protocol:
    """TCP Westwood with options of the controller; ABSE, Astart and a host without SACK (A7) unless said otherwise."""
    return Protocol(name=name, controller="westwood", options={"estimator": "abse", **options}, freebsd=True, sack=sack)


SENDERS: dict[str, Protocol] = {
    TCPW: westwood(),
    FAST: Protocol(name=FAST, controller="fast"),
    HSTCP: Protocol(name=HSTCP, controller="highspeed"),
    NEWRENO: Protocol(name=NEWRENO, controller="reno"),
}

PER_PACKET: dict[str, Any] = {"receive_cost": "1500 ns"}
"""A card that interrupts for each packet; a packet costs the host 1.5 µs, the gap between two of a batch."""

COALESCING: dict[str, Any] = {"receive_interval": "125 us", **PER_PACKET}
"""Interrupt throttling at 8000 per second, the setting of the time for the card used."""


def network(path: Path, *, queue: int | None = None, loss: float = 0.0, back_jitter_us: int = 0) -> dict[str, Any]:
    """The path; delay equal both ways, random loss of data packets alone (A8)."""
    forward: dict[str, Any] = {
        "rate": f"{path.rate_bps} bit/s",
        "delay": f"{1e6 * path.rtt_s / 2:.0f} us",
        "queue": {"kind": "drop-tail", "limit": f"{path.queue if queue is None else queue} packets"},
    }
    backward = {"rate": f"{path.rate_bps} bit/s", "delay": forward["delay"]}
    if back_jitter_us:
        backward["jitter"] = f"{back_jitter_us} us"
    if loss:
        forward["loss"] = {"kind": "bernoulli", "p": loss}
    return {"topology": "chain", "bottleneck": forward, "reverse": {"bottleneck": backward}}


def background(path: Path, share: float) -> dict[str, Any]:
    """Other users: on-off traffic that makes runs differ, as on the Internet at night.

    Parameters
    ----------
    path
        Bottleneck.
    share
        Mean load as a share of it.
    """
    return {
        "workload": {
            "kind": "on-off",
            "rate": f"{round(4 * share * path.rate_bps)} bit/s",
            "on": "100 ms",
            "off": "300 ms",
        }
    }


def scenario(
    path: Path,
    flows: Sequence[tuple[Protocol, int]],
    *,
    duration_s: float,
    workload: Mapping[str, Any] | None = None,
    queue: int | None = None,
    loss: float = 0.0,
    users: float = 0.02,
    stagger_s: float = 0.0,
    card: Mapping[str, Any] | None = None,
    back_jitter_us: int = 0,
    record: Mapping[str, Any] | None = None,
    **stack: Any,
) -> Scenario:
    """Flows over a path.

    Parameters
    ----------
    path
        Which one.
    flows
        Senders and how many of each.
    duration_s
        Simulated time.
    workload
        Of the flows; bulk unless given.
    queue
        Instead of the path's own (A6).
    loss
        Random loss of data packets, probability.
    users
        Load of other users, as a share of the bottleneck.
    stagger_s
        Between the starts of two flows.
    card
        The senders' host: its network card and what a packet costs it.
    back_jitter_us
        Random delay of ACKs, uniform from 0; order is kept.
    record
        What to record.
    **stack
        Stack settings for every sender.
    """
    groups: list[dict[str, Any]] = []
    begun = 0
    for protocol, count in flows:
        group = {**protocol.host(**stack), "count": count, "workload": dict(workload or {"kind": "bulk"})}
        if stagger_s:
            group |= {"start": f"{begun * stagger_s:g} s", "stagger": f"{stagger_s:g} s"}
        begun += count
        if card:
            group["host"] = "sender"
        groups.append(group)
    if users:
        groups.append(background(path, users))
    made: dict[str, Any] = {
        "name": f"{path.name}, {', '.join(f'{n} x {p.name}' for p, n in flows)}",
        "duration": f"{duration_s:g} s",
        "network": network(path, queue=queue, loss=loss, back_jitter_us=back_jitter_us),
        "flows": groups,
        "record": dict(record or {}),
    }
    if card:
        made["hosts"] = [{"name": "sender", **card}]
    return Scenario.from_dict(made)


def unequal(
    path: Path, protocol: Protocol, ratio: int, *, duration_s: float, queue: int, record: Mapping[str, Any]
) -> Scenario:
    """Two flows of one kind, the second with `ratio` times the round-trip time of the first, which is the path's over `ratio`."""
    short = path.rtt_s / max(ratio, 1)
    delays = [short / 2, path.rtt_s / 2]
    limited = {"rate": f"{path.rate_bps} bit/s", "queue": {"kind": "drop-tail", "limit": f"{queue} packets"}}
    return Scenario.from_dict(
        {
            "name": f"{path.name}, 2 x {protocol.name}, round-trip times 1 to {ratio}",
            "duration": f"{duration_s:g} s",
            "network": {
                "topology": "wishbone",
                "access_list": [{"delay": f"{1e6 * d:.0f} us"} for d in delays],
                "bottleneck": limited,
                "reverse": {"bottleneck": {"rate": f"{path.rate_bps} bit/s"}},
            },
            "flows": [{**protocol.host(), "count": 2, "workload": {"kind": "bulk"}}],
            "record": dict(record),
        }
    )
