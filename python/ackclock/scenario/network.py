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
    """A link of a graph."""

    name: str
    """Name that paths use."""


class Reverse(Table):
    """The way back, link by link; an absent entry mirrors the forward link."""

    access: Link | None = None
    """From the network to the sender."""
    bottleneck: Link | None = None
    """The bottleneck's other direction."""
    egress: Link | None = None
    """From the receiver to the network."""


class Path(Table):
    """A path of a graph."""

    name: str
    """Name that flows use."""
    forward: tuple[str, ...]
    """Names of the links from sender to receiver, in order."""
    backward: tuple[str, ...] = ()
    """Names of the links from receiver to sender, in order; absent: those forward, mirrored. Paths that share a link forward then
    share its mirror, NAME.backward."""


class Network(Table):
    """The network.

    `chain`: sender, access, bottleneck, egress, receiver; all flows share every link. `dumbbell`: every flow has its
    own access and egress link. `wishbone`: as dumbbell, with the access links given one by one. `graph`: links and
    paths listed freely.
    """

    topology: Literal["chain", "dumbbell", "wishbone", "graph"] = "chain"
    """Shape."""
    framing: Framing = "0 bytes"
    """What links charge on top of the IP packet (14 bytes for Ethernet without FCS)."""
    access: Link | None = None
    """Sender's link; absent: the sender sits on the bottleneck."""
    access_list: tuple[Link, ...] = ()
    """Wishbone: the senders' links, taken in turn."""
    bottleneck: Link | None = None
    """The shared link."""
    egress: Link | None = None
    """Receiver's link; absent: the receiver sits on the bottleneck."""
    reverse: Reverse = Reverse.constant()
    """Links of the way back where they differ."""
    links: tuple[NamedLink, ...] = ()
    """Graph: links, one direction each."""
    paths: tuple[Path, ...] = ()
    """Graph: paths over these links."""

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
