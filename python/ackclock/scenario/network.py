"""The network: three named links for the usual shapes, or a list of links and paths."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from pydantic import model_validator

from ackclock.errors import ScenarioError, one_of, quote
from ackclock.scenario._base import Framing, Table, byte_count, nanoseconds, without_none
from ackclock.scenario._tables import Link

MTU = 1500
"""Bytes of a full IP packet, the unit in which a bandwidth-delay product is counted."""


class NamedLink(Link):
    """A link of the topology `graph`."""

    name: str
    """Name by which paths refer to this link."""


class Reverse(Table):
    """The reverse direction, link by link. A link that is not given is the same as the forward link."""

    access: Link | None = None
    """Link from the bottleneck to the sender."""
    bottleneck: Link | None = None
    """The reverse direction of the bottleneck."""
    egress: Link | None = None
    """Link from the receiver to the bottleneck."""


class Path(Table):
    """A path of the topology `graph`."""

    name: str
    """Name by which flows refer to this path."""
    forward: tuple[str, ...]
    """Names of the links from sender to receiver, in order."""
    backward: tuple[str, ...] = ()
    """Names of the links from receiver to sender, in order. Default: for each link of `forward` a copy named
    NAME.backward, in reverse order. Paths that share the link also share the copy."""


class Network(Table):
    """The links and how flows cross them.

    `chain`: sender, access, bottleneck, egress, receiver; all flows share every link. `dumbbell`: each flow has its own
    access and egress link, and all share the bottleneck. `wishbone`: like `dumbbell`, but `access_list` gives the
    access links one by one. `graph`: you list links and paths yourself.
    """

    topology: Literal["chain", "dumbbell", "wishbone", "graph"] = "chain"
    """Shape of the network."""
    framing: Framing = "0 bytes"
    """Bytes that a link transmits in addition to each IP packet (Ethernet without FCS: 14 bytes)."""
    access: Link | None = None
    """Link from the sender to the bottleneck. Default: the sender is attached to the bottleneck directly."""
    access_list: tuple[Link, ...] = ()
    """Wishbone: the access links. Flow 0 uses the first, flow 1 the second, and so on, starting over after the last."""
    bottleneck: Link | None = None
    """The link that all flows share. Every topology but `graph` needs it."""
    egress: Link | None = None
    """Link from the bottleneck to the receiver. Default: the receiver is attached to the bottleneck directly."""
    reverse: Reverse = Reverse.constant()
    """Links of the reverse direction that differ from the forward direction."""
    links: tuple[NamedLink, ...] = ()
    """Graph: the links, each in one direction."""
    paths: tuple[Path, ...] = ()
    """Graph: the paths over these links."""

    @model_validator(mode="after")
    def _shape(self) -> Network:
        graph = self.topology == "graph"
        usual = ("access", "access_list", "bottleneck", "egress")
        for key in usual if graph else ("links", "paths"):
            if getattr(self, key):
                others = "links and paths" if graph else "access, bottleneck, egress and reverse"
                raise ScenarioError(key=key, found=f"a value with topology {quote(self.topology)}", allowed=others)
        if graph:
            self._check_graph()
            return self
        if self.bottleneck is None:
            raise ScenarioError(
                key="bottleneck", found="nothing", allowed=f"a link; topology {quote(self.topology)} needs it"
            )
        if self.bottleneck.mean_bps() is None:
            raise ScenarioError(
                key="bottleneck.rate", found="nothing", allowed='a rate with its unit, e.g. "1.2 Mbit/s"'
            )
        wishbone = self.topology == "wishbone"
        if wishbone and not self.access_list:
            raise ScenarioError(
                key="access_list", found="nothing", allowed='one or more links; topology "wishbone" needs them'
            )
        if wishbone and self.access is not None:
            raise ScenarioError(key="access", found='a value with topology "wishbone"', allowed="access_list instead")
        if not wishbone and self.access_list:
            raise ScenarioError(
                key="access_list", found=f"a value with topology {quote(self.topology)}", allowed='topology "wishbone"'
            )
        return self

    def _check_graph(self) -> None:
        for key in ("links", "paths"):
            if not getattr(self, key):
                raise ScenarioError(key=key, found="nothing", allowed='one or more; topology "graph" needs them')
        for key, names in (
            ("links", [link.name for link in self.links]),
            ("paths", [path.name for path in self.paths]),
        ):
            for i, name in enumerate(names):
                if name in names[:i]:
                    raise ScenarioError(
                        key=f"{key}.{i}.name", found=quote(name) + " twice", allowed="a name of its own"
                    )
        known = [link.name for link in self.links]
        for i, path in enumerate(self.paths):
            for way in ("forward", "backward"):
                listed: tuple[str, ...] = getattr(path, way)
                if not listed and way == "forward":
                    raise ScenarioError(key=f"paths.{i}.{way}", found="no links", allowed="names of one or more links")
                for j, name in enumerate(listed):
                    if name not in known:
                        raise ScenarioError(key=f"paths.{i}.{way}.{j}", found=quote(name), allowed=one_of(name, known))
                    if name in listed[:j]:
                        raise ScenarioError(
                            key=f"paths.{i}.{way}.{j}", found=f"{quote(name)} twice", allowed="each link once"
                        )

    def _whole(self) -> tuple[list[NamedLink], list[Path]]:
        """Links and paths of a graph, with the mirrors of links whose paths name no way back."""
        links, paths = list(self.links), []
        named = {link.name: link for link in links}
        for path in self.paths:
            if path.backward:
                paths.append(path)
                continue
            back = [f"{name}.backward" for name in reversed(path.forward)]
            for name, mirror in zip(reversed(path.forward), back, strict=True):
                if mirror not in named:
                    named[mirror] = named[name].model_copy(update={"name": mirror})
                    links.append(named[mirror])
            paths.append(path.model_copy(update={"backward": tuple(back)}))
        return links, paths

    def path(self, name: str | None) -> tuple[list[Link], list[Link]]:
        """Links of the first flow's way out and back.

        Parameters
        ----------
        name
            Path of a graph; None for its first.
        """
        if self.topology == "graph":
            links, paths = self._whole()
            named = {link.name: link for link in links}
            path = next((p for p in paths if p.name == name), paths[0])
            return [named[x] for x in path.forward], [named[x] for x in path.backward]
        access = self.access_list[0] if self.access_list else self.access
        out = [access, self.bottleneck, self.egress]
        back = [
            self.reverse.access or access,
            self.reverse.bottleneck or self.bottleneck,
            self.reverse.egress or self.egress,
        ]
        return [link for link in out if link is not None], [link for link in back if link is not None]

    def base_rtt_ns(self, path: str | None = None) -> int:
        """Round-trip propagation delay of a path, ns."""
        out, back = self.path(path)
        return sum(nanoseconds(link.delay) for link in out + back)

    def bottleneck_bps(self, path: str | None = None) -> int | None:
        """Rate of the bottleneck: the one so named, or the slowest link of a graph's path; None if all are infinite."""
        if self.bottleneck is not None and (rate := self.bottleneck.mean_bps()) is not None:
            return rate
        rates = [link.mean_bps() for link in self.path(path)[0]]
        return min((rate for rate in rates if rate is not None), default=None)

    def bdp_packets(self, path: str | None = None) -> Fraction:
        """Bandwidth-delay product in full packets as the links charge them (0 if no link has a rate)."""
        bits = Fraction((self.bottleneck_bps(path) or 0) * self.base_rtt_ns(path), 10**9)
        return bits / (8 * (MTU + byte_count(self.framing)))

    def engine(self, path: str | None) -> dict[str, Any]:
        """As the engine reads it; `path` is that of flow 0, whose bandwidth-delay product sizes the queues."""
        bdp = self.bdp_packets(path)

        def link(key: str, value: Link | None) -> dict[str, Any] | None:
            try:
                return None if value is None else value.engine(bdp)
            except ScenarioError as error:
                raise error.within(f"network.{key}") from None

        links, paths = self._whole()
        return without_none(
            topology=self.topology,
            framing_bytes=byte_count(self.framing),
            access=link("access", self.access),
            access_list=[link(f"access_list.{i}", x) for i, x in enumerate(self.access_list)],
            bottleneck=link("bottleneck", self.bottleneck),
            egress=link("egress", self.egress),
            reverse=without_none(
                access=link("reverse.access", self.reverse.access),
                bottleneck=link("reverse.bottleneck", self.reverse.bottleneck),
                egress=link("reverse.egress", self.reverse.egress),
            ),
            links=[{"name": x.name, "link": link(f"links.{i}", x)} for i, x in enumerate(links)],
            paths=[{"name": p.name, "forward": p.forward, "backward": p.backward} for p in paths],
        )
