"""Scenarios of the slides' two paths and their hosts. The plan (`readings`) settles questions that the slides leave open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from ackclock.scenario import Scenario
from ackclock_studies.large_pipes.readings import ACKS, ALPHA, FILTER, FILTERS, PEAK, PEAKS, QUEUE, SACK, WINDOW

if TYPE_CHECKING:
    import polars as pl

    from ackclock.study import Plan

Where: TypeAlias = "Plan | Mapping[str, pl.DataFrame]"
"""Source of the reading: a plan in an experiment, tables in a claim."""

MTU, SEGMENT = 1500, 1448


@dataclass(frozen=True, kw_only=True, slots=True)
class Bottleneck:
    """A bottleneck and its surroundings.

    Parameters
    ----------
    name
        Name in reports.
    rate_bps
        Rate at the IP layer (A1).
    rtt_s
        Round-trip time without queueing (A5).
    queue
        Queue of the bottleneck, packets (A6).
    """

    name: str
    rate_bps: int
    rtt_s: float
    queue: int

    @property
    def payload_bps(self) -> float:
        """Goodput with a full bottleneck, bit/s."""
        return self.rate_bps * SEGMENT / MTU

    @property
    def bdp(self) -> float:
        """Number of packets that fill the path without queueing."""
        return self.rate_bps * self.rtt_s / 8 / MTU


ALABAMA = Bottleneck(name="155 Mb/s, 64 ms", rate_bps=155_000_000, rtt_s=0.064, queue=400)
"""Path 1, as PathRate measured it: 155 Mb/s at IP. 5.8 s for 100 MB is consistent with no other reading (A1)."""

ALABAMA_ATM = Bottleneck(name="ATM, 132.45 Mb/s at IP, 64 ms", rate_bps=132_450_000, rtt_s=0.064, queue=400)
"""Path 1 as a true OC-3c ATM link carrying 1500-byte packets: 149.76 Mb/s of SONET payload, 48 of 53 bytes, 32 cells per packet."""

CALTECH = Bottleneck(name="1 Gb/s, 4 ms", rate_bps=1_000_000_000, rtt_s=0.004, queue=333)
"""Path 2."""

BUFFERS = (50, 100, 200, 240, 400, 827)
"""A6: queue sizes considered for path 1, packets."""

MAIN: Mapping[str, Any] = {}
"""Main reading for every question."""

TCPW, FAST, HSTCP, NEWRENO = "TCPW", "FAST", "HSTCP", "NewReno"
PROTOCOLS = (TCPW, FAST, HSTCP, NEWRENO)

LINUX_INITIAL_WINDOW = 2
"""Initial window of the FAST, HSTCP and NewReno hosts (A12)."""

FREEBSD_INITIAL_WINDOW = 2
"""Initial window of the TCPW host (A12)."""

LINUX_WINDOW = "1536 KiB"
"""Window derived by Linux from a 2 MB socket buffer."""

_WINDOWS = {"1.5 MiB": 3 << 19, "2 MiB": 2 << 20}
"""Reading of the window -> bytes."""


def receiver(where: Where, *, freebsd: bool) -> dict[str, Any]:
    """Receiver stack settings, the same for all senders (slide 5).

    Parameters
    ----------
    where
        The reading.
    freebsd
        Profile of the flow: from a buffer set by the application, FreeBSD derives a window of the same size, Linux three quarters of it.
    """
    window = _WINDOWS[WINDOW.of(where)]
    made: dict[str, Any] = {"socket_buffer": f"{window if freebsd else window * 4 // 3} bytes"}
    return made | ({"quick_acks": True} if ACKS.of(where) == ACKS.main else {"delayed_ack": False})


@dataclass(frozen=True, kw_only=True, slots=True)
class Protocol:
    """A sender.

    Parameters
    ----------
    name
        Name in reports.
    controller
        Registry name.
    options
        Options of the controller.
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

    def host(self, where: Where, **stack: Any) -> dict[str, Any]:
        """Flow group keys.

        Parameters
        ----------
        where
            The reading of window and ACKs.
        **stack
            Stack settings that differ.
        """
        settings: dict[str, Any] = {
            "initial_window": FREEBSD_INITIAL_WINDOW if self.freebsd else LINUX_INITIAL_WINDOW,
            "sack": self.sack,
            **receiver(where, freebsd=self.freebsd),
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
    """Return TCP Westwood with these controller options; the defaults are ABSE, Astart and a host without SACK."""
    return Protocol(name=name, controller="westwood", options={"estimator": "abse", **options}, freebsd=True, sack=sack)


def tcpw(where: Where = MAIN, name: str = TCPW, **options: Any) -> Protocol:
    """TCPW in a reading; controller options given here take precedence."""
    read = {"u_max": PEAKS[PEAK.of(where)], **FILTERS[FILTER.of(where)]}
    return westwood(name, sack=SACK.of(where) == "on", **{**read, **options})


def fast(where: Where = MAIN) -> Protocol:
    """FAST in a reading."""
    alpha = ALPHA.of(where)
    options = {"alpha_bands": True} if alpha == "by rate" else {"alpha": int(alpha)}
    return Protocol(name=FAST, controller="fast", options=options)


def senders(where: Where = MAIN) -> dict[str, Protocol]:
    """The slides' four protocols in a reading."""
    return {
        TCPW: tcpw(where),
        FAST: fast(where),
        HSTCP: Protocol(name=HSTCP, controller="highspeed"),
        NEWRENO: Protocol(name=NEWRENO, controller="reno"),
    }


SENDERS = senders()
"""The four protocols in the main reading."""


def queue_of(where: Where) -> int:
    """Queue limit at path 1's bottleneck in this reading, packets."""
    return int(QUEUE.of(where))


PER_PACKET: dict[str, Any] = {"receive_cost": "1500 ns"}
"""A NIC that raises an interrupt for each packet; each packet costs the host 1.5 µs, the gap between packets in a batch."""

COALESCING: dict[str, Any] = {"receive_interval": "125 us", **PER_PACKET}
"""Interrupt throttling at 8000 per second, the NIC's usual setting at that time."""


def network(
    path: Bottleneck,
    *,
    queue: int | None = None,
    loss: float | Mapping[str, Any] = 0.0,
    back_jitter_us: int = 0,
    steps: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """The path, with the same delay both ways and random loss of data packets only (A8)."""
    forward: dict[str, Any] = {
        "rate": f"{path.rate_bps} bit/s",
        "delay": f"{1e6 * path.rtt_s / 2:.0f} us",
        "queue": {"kind": "drop-tail", "limit": f"{path.queue if queue is None else queue} packets"},
    }
    backward = {"rate": f"{path.rate_bps} bit/s", "delay": forward["delay"]}
    if back_jitter_us:
        backward["jitter"] = f"{back_jitter_us} us"
    if loss:
        forward["loss"] = dict(loss) if isinstance(loss, Mapping) else {"kind": "bernoulli", "p": loss}
    if steps:
        forward["capacity"] = {"kind": "schedule", "steps": [dict(step) for step in steps]}
    return {"topology": "chain", "bottleneck": forward, "reverse": {"bottleneck": backward}}


def background(path: Bottleneck, share: float) -> dict[str, Any]:
    """Other users: on-off traffic that makes runs differ, like night-time traffic on the Internet.

    Parameters
    ----------
    path
        Bottleneck.
    share
        Mean load, as a fraction of the bottleneck rate.
    """
    return {
        "workload": {
            "kind": "on-off",
            "rate": f"{round(4 * share * path.rate_bps)} bit/s",
            "on": "100 ms",
            "off": "300 ms",
        }
    }


def in_a_row(
    path: Bottleneck, protocol: Protocol, *, runs: int, each_s: float, every_s: float, **keys: Any
) -> Scenario:
    """Bulk runs one after another, as started by a script; each one uses the metrics cached on its host by earlier runs.

    Parameters
    ----------
    path, protocol
        Path and protocol.
    runs
        Number of runs.
    each_s
        Writing time of each run.
    every_s
        Interval between starts.
    **keys
        Keys of `scenario`.
    """
    made = scenario(path, [(protocol, 1)], duration_s=runs * every_s, **keys).to_dict()
    one, *others = made["flows"]
    groups = [{**one, "start": f"{k * every_s:g} s", "stop": f"{k * every_s + each_s:g} s"} for k in range(runs)]
    return Scenario.from_dict({**made, "flows": [*groups, *others]})


def scenario(
    path: Bottleneck,
    flows: Sequence[tuple[Protocol, int]],
    *,
    duration_s: float,
    workload: Mapping[str, Any] | None = None,
    queue: int | None = None,
    loss: float | Mapping[str, Any] = 0.0,
    steps: Sequence[Mapping[str, Any]] = (),
    users: float = 0.02,
    stagger_s: float = 0.0,
    drawn_s: float = 0.0,
    card: Mapping[str, Any] | None = None,
    back_jitter_us: int = 0,
    record: Mapping[str, Any] | None = None,
    where: Where = MAIN,
    **stack: Any,
) -> Scenario:
    """Flows over a path.

    Parameters
    ----------
    path
        The path.
    flows
        Senders, with the number of each.
    duration_s
        Simulated time.
    workload
        Workload of the flows; bulk by default.
    queue
        Queue limit, packets; by default the path's (A6).
    loss
        Random loss of data packets, probability; or a loss model.
    steps
        Changes of the bottleneck over time.
    users
        Load of other users, as a fraction of the bottleneck rate.
    stagger_s
        Interval between the starts of two flows.
    drawn_s
        Alternative: interval from which each start is drawn, so that runs differ without other randomness.
    card
        The senders' host: its network card, and its cost per packet.
    back_jitter_us
        Random delay of ACKs, uniform from 0, without reordering.
    record
        What to record.
    where
        The reading of window and ACKs.
    **stack
        Stack settings for every sender.
    """
    groups: list[dict[str, Any]] = []
    begun = 0
    for protocol, count in flows:
        group = {**protocol.host(where, **stack), "count": count, "workload": dict(workload or {"kind": "bulk"})}
        if stagger_s:
            group |= {"start": f"{begun * stagger_s:g} s", "stagger": f"{stagger_s:g} s"}
        if drawn_s:
            group |= {"start": {"kind": "uniform", "low": "0 s", "high": f"{drawn_s:g} s"}}
        begun += count
        if card:
            group["host"] = "sender"
        groups.append(group)
    if users:
        groups.append(background(path, users))
    made: dict[str, Any] = {
        "name": f"{path.name}, {', '.join(f'{n} x {p.name}' for p, n in flows)}",
        "duration": f"{duration_s:g} s",
        "network": network(path, queue=queue, loss=loss, back_jitter_us=back_jitter_us, steps=steps),
        "flows": groups,
        "record": dict(record or {}),
    }
    if card:
        made["hosts"] = [{"name": "sender", **card}]
    return Scenario.from_dict(made)


def unequal(
    path: Bottleneck, protocol: Protocol, ratio: int, *, duration_s: float, queue: int, record: Mapping[str, Any]
) -> Scenario:
    """Two flows of one kind. The first has 1/`ratio` of the path's RTT, the second the full RTT."""
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
            "flows": [{**protocol.host(MAIN), "count": 2, "workload": {"kind": "bulk"}}],
            "record": dict(record),
        }
    )
