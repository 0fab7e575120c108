"""Properties of flow groups and networks in addition to their keys."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ackclock import _engine
from ackclock.errors import shown
from ackclock.own import OwnClass, described, named, short
from ackclock.scenario._base import Files, Table, schema

OWN = "custom:"
"""Name prefix of user-defined controllers."""


MTU = 1500
"""Size of a full IP packet, bytes: the unit of bandwidth-delay products."""


class FlowsBase(Table):
    """A group of identical flows."""

    __slots__ = ()
    name: str | None
    congestion_control: str
    congestion_control_options: dict[str, bool | float | str]
    workload: Any

    @property
    def label(self) -> str:
        """Group name, in printable characters only."""
        if self.name is not None:
            return shown(self.name)
        return self.workload.kind if self.is_plain else shown(short(self.congestion_control))

    @property
    def is_plain(self) -> bool:
        """Whether the group sends datagrams without a controller."""
        return self.workload.kind in schema()["datagrams"]

    @property
    def own(self) -> OwnClass | None:
        """The user-defined controller class, with the current content of its file."""
        if not named(self.congestion_control):
            return None
        return described(self.congestion_control, self.congestion_control_options)


class NetworkBase(Table):
    """The links, and the paths of flows over them."""

    __slots__ = ()

    def _facts(self, path: str | None) -> tuple[int, int | None, int, int]:
        return _engine.path_facts(self._given, path, Files)

    def base_rtt_ns(self, path: str | None = None) -> int:
        """Return the round-trip propagation delay of a path, ns; `path` names a path in a graph; None means the first."""
        return self._facts(path)[0]

    def bottleneck_bps(self, path: str | None = None) -> int | None:
        """Return the bottleneck rate: that of the link with this name, or of the slowest link on a graph's path;
        None if all are infinite.
        """
        return self._facts(path)[1]

    def bdp_packets(self, path: str | None = None) -> Fraction:
        """Return the bandwidth-delay product in full packets, as charged by links (0 if no link has a rate)."""
        return Fraction(*self._facts(path)[2:])


def mean_bps(link: Table) -> int | None:
    """Return the rate of a link (for a trace its mean); None if it is infinite."""
    return _engine.mean_bps(link, Files)
