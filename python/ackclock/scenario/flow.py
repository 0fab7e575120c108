"""Flows: host profile, congestion controller, recovery rule, workload."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ackclock import units
from ackclock.errors import ScenarioError, quote
from ackclock.scenario._base import (
    Count,
    Duration,
    Flag,
    Number,
    Options,
    PositiveDuration,
    Registered,
    SegmentSize,
    Size,
    Table,
    byte_count,
    nanoseconds,
    without_none,
)
from ackclock.scenario.datagrams import ConstantRate, OnOff, Voice
from ackclock.scenario.distribution import Distribution, drawn
from ackclock.scenario.video import Video
from ackclock.scenario.workload import Bulk, Throttled, Transfer, Workload


class MetricsCache(Table):
    """What the hosts remember of earlier connections to a destination (Linux tcp_metrics), and start the next with.

    Without ssthresh the first connection is a cold start; those after it are warm.
    """

    destination: str = "peer"
    """Name; groups that give the same one share what is remembered."""
    ssthresh: Annotated[int, Number(2, 1_000_000_000)] | None = None
    """Slow-start threshold remembered at the start, segments; absent: none."""
    cwnd: Annotated[int, Number(1, 1_000_000_000)] | None = None
    """Window remembered at the start, segments; no connection starts with it."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it; 0 = none."""
        return {"destination": self.destination, "ssthresh": self.ssthresh or 0, "cwnd": self.cwnd or 0}


class Stack(Table):
    """Settings of a host that override its profile; every one absent: as in the profile."""

    smss: SegmentSize | None = None
    """Payload of a full segment, options taken off: 64 to 65000 bytes."""
    initial_window: Annotated[int, Number(1, 65535)] | None = None
    """Segments."""
    initial_receive_window: Annotated[int, Number(1, 65535)] | None = None
    """First window that a receiver advertises, full segments; absent: the profile's 65160 bytes."""
    first_burst_cap: Annotated[int, Number(1, 65535)] | None = None
    """Segments that leave before the first ACK of data at most, whatever the initial window; absent: no such bound."""
    fin_ignores_cwnd: Literal["off", "alone", "with-data"] | None = None
    """Whether a FIN leaves though the congestion window is full: never, if it carries no data, or even with the last data
    (an initial window of 10 is then really one of 11)."""
    sack: Flag | None = None
    """Selective acknowledgements."""
    timestamps: Flag | None = None
    """TCP timestamps."""
    detection: Literal["dupthresh", "fack", "rack"] | None = None
    """How losses are detected; "fack" and "rack" need SACK."""
    initial_rto: PositiveDuration | None = None
    """Retransmission timeout before the first RTT sample."""
    min_rto: PositiveDuration | None = None
    """Least retransmission timeout."""
    delayed_ack: Flag | None = None
    """Delayed ACKs."""
    quick_acks: Flag | None = None
    """Of delayed ACKs: the first segments of a connection are acknowledged at once, as Linux does."""
    response_carries_ack: Flag | None = None
    """The end that is connected to delays its ACKs whatever `delayed_ack` says, so that its response carries the ACK of the
    request."""
    count_acks: Flag | None = None
    """In slow start the window grows by one segment per ACK, not by the segments acknowledged (as Linux did until 2015)."""
    reordering: Annotated[int, Number(1, 300)] | None = None
    """Reordering degree that a connection begins with, segments (a Linux route's `reordering`)."""
    tlp: Flag | None = None
    """Tail loss probes."""
    frto: Flag | None = None
    """F-RTO."""
    undo: Flag | None = None
    """Undo of needless window reductions."""
    limited_transmit: Flag | None = None
    """Limited transmit (RFC 3042)."""
    early_retransmit: Literal["off", "rfc5827", "delayed"] | None = None
    """Early retransmit: RFC 5827's or Linux's delayed form."""
    idle_restart: Flag | None = None
    """Small window after an idle time."""
    sack_compression: Flag | None = None
    """The receiver joins SACKs that follow each other closely."""
    receive_buffer: Size | None = None
    """Greatest receive window."""
    socket_buffer: Size | None = None
    """Receive buffer set by the application; how much of it the window may fill is the profile's."""
    metrics_cache: MetricsCache | None = None
    """The hosts remember ssthresh from one connection to the next; absent: they do not."""
    beta: Annotated[float, Number(0.001, 0.999, whole=False)] | None = None
    """Multiplicative decrease, where the controller has a choice (cubic: 0.7)."""
    hystart: Flag | None = None
    """HyStart, where the controller has a choice."""
    ecn: Literal["off", "accept", "ask"] | None = None
    """Explicit congestion notification: never, if the peer asks, or ask for it."""
    hz: Annotated[int, Number(1, 1_000_000)] | None = None
    """Ticks of the kernel's clock per second."""
    pacing: Flag | None = None
    """Departures wait for the pacing rate, from the eleventh segment on: 200 % of cwnd per SRTT in slow start, 120 % later."""
    pace_initial_window: Flag | None = None
    """The initial window is spread over the RTT of the handshake."""
    tso: Flag | None = None
    """Data leaves in packets of several segments, sized and deferred as Linux does for segmentation offload, and arrives in them, as between virtual machines."""
    send_buffer: Size | None = None
    """What written data may take in memory before the application waits, as Linux counts it: payload and 896 bytes a packet."""

    @model_validator(mode="after")
    def _one_buffer(self) -> Stack:
        if self.socket_buffer is not None and self.receive_buffer is not None:
            raise ScenarioError(
                key="socket_buffer",
                found=f"{quote(self.socket_buffer)} beside receive_buffer",
                allowed="one of the two",
            )
        return self

    @model_validator(mode="after")
    def _detection_has_what_it_needs(self) -> Stack:
        if self.sack is False and self.detection in ("fack", "rack"):
            raise ScenarioError(
                key="detection",
                found=f"{quote(self.detection)} with sack = false",
                allowed='"dupthresh", no detection, or sack = true',
            )
        return self

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return without_none(
            smss=None if self.smss is None else byte_count(self.smss),
            initial_window=self.initial_window,
            initial_receive_window=self.initial_receive_window,
            first_burst_cap=self.first_burst_cap,
            fin_ignores_cwnd=self.fin_ignores_cwnd,
            sack=self.sack,
            timestamps=self.timestamps,
            detection=self.detection,
            initial_rto_ns=None if self.initial_rto is None else nanoseconds(self.initial_rto),
            min_rto_ns=None if self.min_rto is None else nanoseconds(self.min_rto),
            delayed_ack=self.delayed_ack,
            quick_acks=self.quick_acks,
            response_carries_ack=self.response_carries_ack,
            count_acks=self.count_acks,
            reordering=self.reordering,
            tlp=self.tlp,
            frto=self.frto,
            undo=self.undo,
            limited_transmit=self.limited_transmit,
            early_retransmit=self.early_retransmit,
            idle_restart=self.idle_restart,
            sack_compression=self.sack_compression,
            receive_buffer=None if self.receive_buffer is None else byte_count(self.receive_buffer),
            socket_buffer=None if self.socket_buffer is None else byte_count(self.socket_buffer),
            metrics_cache=None if self.metrics_cache is None else self.metrics_cache.engine(),
            beta_permille=None if self.beta is None else round(self.beta * 1000),
            hystart=self.hystart,
            ecn=self.ecn,
            hz=self.hz,
            pacing=self.pacing,
            pace_initial_window=self.pace_initial_window,
            tso=self.tso,
            send_buffer=None if self.send_buffer is None else byte_count(self.send_buffer),
        )


PCC = "pcc-"
"""What the names of PCC's controllers begin with."""

PCC_PAYLOAD = 1456
"""Payload of PCC's full datagrams, bytes."""

OWN = "custom:"
"""What the name of a user's own controller begins with."""

KERNEL = "kernel:"
"""What the name of a controller begins with that only a Linux kernel has."""


class Flows(Table):
    """A group of flows that are alike."""

    count: Count = 1
    """How many."""
    transport: Literal["tcp", "udp", "pcc"] | None = None
    """Transport protocol; absent: as controller and workload need."""
    profile: Annotated[str, Registered("profiles")] = "linux-6"
    """Host profile."""
    congestion_control: Annotated[str, Registered("controllers", own=(OWN, KERNEL))] = "cubic"
    """Congestion controller; "custom:NAME" is one that is given to the run, "kernel:NAME" one of the kernel
    for the linux backend."""
    congestion_control_options: Annotated[dict[str, bool | float | str], Options()] = Field(default_factory=dict)
    """Options of the controller, by name; see `ackclock list`."""
    recovery: Annotated[str, Registered("recovery")] | None = None
    """Recovery rule; absent: the profile's."""
    stack: Stack = Stack()
    """Single settings that differ from the profile."""
    workload: Workload = Bulk(kind="bulk")
    """What the application does."""
    start: Duration = "0 s"
    """Start of the first flow."""
    stagger: Duration | Distribution = "0 s"
    """Start of each further flow after the one before it: a duration, or a distribution of durations (exponential: a
    Poisson process). Flows whose start comes after the end do not take place."""
    stop: PositiveDuration | None = None
    """The application stops writing here; absent: at the end."""
    path: str | None = None
    """Graph: name of the path; absent: the first."""
    host: str | None = None
    """Host of the sending ends, one of `hosts`; absent: perfect ones."""
    peer_host: str | None = None
    """Host of the receiving ends; the same one puts both ends on one machine."""

    @model_validator(mode="after")
    def _options_are_the_controllers(self) -> Flows:
        if self.congestion_control_options and self.congestion_control.startswith((OWN, KERNEL)):
            raise ScenarioError(
                key="congestion_control_options",
                found=f"options of {quote(self.congestion_control)}",
                allowed="none for a controller of one's own; give them to its class",
            )
        from ackclock import _engine

        refused = _engine.check_controller(self.congestion_control, dict(self.congestion_control_options))
        if refused is not None and not self.congestion_control.startswith((OWN, KERNEL)):
            option, found, allowed = refused
            raise ScenarioError(key=f"congestion_control_options.{option}", found=found, allowed=allowed)
        return self

    @model_validator(mode="after")
    def _transport_fits(self) -> Flows:
        plain = isinstance(self.workload, ConstantRate | OnOff | Voice)
        pcc = self.congestion_control.startswith(PCC) and not plain
        needed = "udp" if plain else "pcc" if pcc else "tcp"
        if self.transport not in (None, needed):
            beside = f"a workload of kind {quote(self.workload.kind)}"
            if pcc or self.transport == "pcc":
                beside = f"the controller {quote(self.congestion_control)}"
            raise ScenarioError(
                key="transport",
                found=f"{quote(self.transport)} with {beside}",
                allowed=f'"{needed}", or no transport',
            )
        if pcc:
            self._check_pcc()
        if plain:
            for key in ("congestion_control", "recovery", "stack", "profile"):
                if key in self.model_fields_set:
                    raise ScenarioError(
                        key=key,
                        found=f"a setting of TCP with a workload of kind {quote(self.workload.kind)}",
                        allowed=f"no {key}: plain datagrams know none",
                    )
        return self

    @model_validator(mode="after")
    def _starts_can_be_drawn(self) -> Flows:
        if not isinstance(self.stagger, str):
            drawn(self.stagger, units.DURATION, "stagger")
        return self

    def _check_pcc(self) -> None:
        """PCC is a transport of its own: what belongs to TCP would be ignored, silently."""
        for key in ("recovery", "stack", "profile"):
            if key in self.model_fields_set:
                raise ScenarioError(
                    key=key,
                    found=f"a setting of TCP with the controller {quote(self.congestion_control)}",
                    allowed=f"no {key}: PCC is a transport of its own, over datagrams",
                )
        if not isinstance(self.workload, Bulk | Transfer | Throttled | Video):
            raise ScenarioError(
                key="workload.kind",
                found=f"{quote(self.workload.kind)} with the controller {quote(self.congestion_control)}",
                allowed="bulk, transfer, throttled, video",
            )
        if isinstance(self.workload, Video) and byte_count(self.workload.request) > PCC_PAYLOAD:
            raise ScenarioError(
                key="workload.request",
                found=f"{quote(self.workload.request)} with the controller {quote(self.congestion_control)}",
                allowed=f"at most {PCC_PAYLOAD} bytes, a datagram's payload",
            )

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return without_none(
            count=self.count,
            profile=self.profile,
            congestion_control=self.congestion_control,
            congestion_control_options=dict(self.congestion_control_options),
            recovery=self.recovery,
            stack=self.stack.engine(),
            workload=self.workload.engine(),
            start_ns=nanoseconds(self.start),
            stagger_ns=nanoseconds(self.stagger) if isinstance(self.stagger, str) else None,
            stagger_s=None if isinstance(self.stagger, str) else drawn(self.stagger, units.DURATION, "stagger"),
            stop_ns=None if self.stop is None else nanoseconds(self.stop),
            path=self.path,
            host=self.host,
            peer_host=self.peer_host,
        )
