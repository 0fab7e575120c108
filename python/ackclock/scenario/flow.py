"""Flows: host profile, congestion controller, recovery rule, workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from ackclock import units
from ackclock.errors import ScenarioError, quote
from ackclock.own import OwnClass, described, named, short
from ackclock.scenario._base import (
    Count,
    Duration,
    Options,
    PositiveDuration,
    Registered,
    Table,
    byte_count,
    nanoseconds,
    without_none,
)
from ackclock.scenario._described import schema
from ackclock.scenario._tables import Bulk, Stack, Video, Workload
from ackclock.scenario.distribution import Distribution, drawable, drawn

OWN = "custom:"
"""What the name of a user's own controller begins with."""

KERNEL = "kernel:"
"""What the name of a controller begins with that only a Linux kernel has."""


_ACCESS = 'network.access_list with topology "wishbone": the senders\' links, which the flows take in turn'


class Flows(Table):
    """A group of identical flows."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("access", "rtt", "delay", "rate", "loss"), _ACCESS),
        "duration": "start and stop",
        "bytes": "workload, of kind transfer or fetch",
        "controller": "congestion_control",
        "initial_window": "stack.initial_window",
    }

    count: Count = 1
    """Number of flows."""
    name: Annotated[str, Field(min_length=1, max_length=60)] | None = None
    """Name of the group in tables and figures. Default: the name of its controller; for a group without a controller,
    of its workload."""
    transport: Literal["tcp", "udp", "pcc"] | None = None
    """Transport protocol. Default: the one that the controller and the workload need."""
    profile: Annotated[str, Registered("profiles")] = "linux-6"
    """The operating system whose TCP the hosts follow, or the RFCs."""
    congestion_control: Annotated[str, Registered("controllers", own=(OWN, KERNEL), files=True)] = "cubic"
    """Congestion controller. "FILE.py:CLASS" is your own class, "custom:NAME" a class that you pass to the run under
    this name, "kernel:NAME" a controller that only the kernel of the linux backend has."""
    congestion_control_options: Annotated[dict[str, bool | float | str], Options()] = Field(default_factory=dict)
    """Options of the controller, by name; `ackclock list` shows them. For a controller of your own: keyword arguments
    of its class."""
    recovery: Annotated[str, Registered("recovery")] | None = None
    """Recovery rule. Default: the profile's."""
    stack: Stack = Stack.constant()
    """Settings of TCP that differ from the profile."""
    workload: Workload = Bulk.constant(kind="bulk")
    """What the application sends, and when."""
    start: Annotated[Duration | Distribution, drawable(units.DURATION, zero=True)] = "0 s"
    """Start of the first flow: a duration or a distribution. From a distribution each flow of the group draws its own
    offset, which is added to the staggered start; averages over seeds then do not depend on how the flows' phases
    happen to align."""
    stagger: Annotated[Duration | Distribution, drawable(units.DURATION, zero=True)] = "0 s"
    """Time from the start of one flow of the group to that of the next: a duration, or a distribution of durations
    (`exponential` makes a Poisson process). With drawn times, flows that would start after the end of the run do not
    run."""
    stop: PositiveDuration | None = None
    """Time at which the application stops writing, from the start of the run. Default: the end of the run."""
    path: str | None = None
    """Graph: name of the path. Default: the first one."""
    host: str | None = None
    """Host on which the senders run, by its name in `hosts`. Default: perfect hosts."""
    peer_host: str | None = None
    """Host on which the receivers run. The same name in `host` and `peer_host` puts both ends on one machine. Default:
    perfect hosts."""

    @model_validator(mode="after")
    def _options_are_the_controllers(self) -> Flows:
        if self.congestion_control_options and self.congestion_control.startswith((OWN, KERNEL)):
            raise ScenarioError(
                key="congestion_control_options",
                found=f"options of {quote(self.congestion_control)}",
                allowed="none for a controller of one's own; give them to its class",
            )
        if named(self.congestion_control):
            return self
        from ackclock import _engine

        refused = _engine.check_controller(self.congestion_control, dict(self.congestion_control_options))
        if refused is not None and not self.congestion_control.startswith((OWN, KERNEL)):
            option, found, allowed = refused
            raise ScenarioError(key=f"congestion_control_options.{option}", found=found, allowed=allowed)
        return self

    @model_validator(mode="after")
    def _transport_fits(self) -> Flows:
        plain = self.is_plain
        pcc = self.congestion_control in schema()["pcc"]["controllers"] and not plain
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

    def _check_pcc(self) -> None:
        """PCC is a transport of its own: what belongs to TCP would be ignored, silently."""
        for key in ("recovery", "stack", "profile"):
            if key in self.model_fields_set:
                raise ScenarioError(
                    key=key,
                    found=f"a setting of TCP with the controller {quote(self.congestion_control)}",
                    allowed=f"no {key}: PCC is a transport of its own, over datagrams",
                )
        pcc = schema()["pcc"]
        if self.workload.kind not in pcc["workloads"]:
            raise ScenarioError(
                key="workload.kind",
                found=f"{quote(self.workload.kind)} with the controller {quote(self.congestion_control)}",
                allowed=", ".join(pcc["workloads"]),
            )
        if isinstance(self.workload, Video) and byte_count(self.workload.request) > pcc["payload"]:
            raise ScenarioError(
                key="workload.request",
                found=f"{quote(self.workload.request)} with the controller {quote(self.congestion_control)}",
                allowed=f"at most {pcc['payload']} bytes, a datagram's payload",
            )

    @property
    def label(self) -> str:
        """What the group is called."""
        if self.name is not None:
            return self.name
        return self.workload.kind if self.is_plain else short(self.congestion_control)

    @property
    def is_plain(self) -> bool:
        """Whether it sends datagrams that no controller governs."""
        return self.workload.kind in schema()["datagrams"]

    @property
    def own(self) -> OwnClass | None:
        """The user's own class that controls it, with its file as it is now."""
        if not named(self.congestion_control):
            return None
        return described(self.congestion_control, self.congestion_control_options)

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        own = self.own
        return without_none(
            count=self.count,
            profile=self.profile,
            congestion_control=self.congestion_control if own is None else f"{OWN}{own.key}",
            congestion_control_options=dict(self.congestion_control_options) if own is None else {},
            recovery=self.recovery,
            stack=self.stack.engine(),
            workload=self.workload.engine(),
            start_ns=nanoseconds(self.start) if isinstance(self.start, str) else None,
            start_s=None if isinstance(self.start, str) else drawn(self.start, units.DURATION, zero=True),
            stagger_ns=nanoseconds(self.stagger) if isinstance(self.stagger, str) else None,
            stagger_s=None if isinstance(self.stagger, str) else drawn(self.stagger, units.DURATION, zero=True),
            stop_ns=None if self.stop is None else nanoseconds(self.stop),
            path=self.path,
            host=self.host,
            peer_host=self.peer_host,
        )
