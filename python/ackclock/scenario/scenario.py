"""The whole scenario: reading, changing, compiling."""

from __future__ import annotations

import json
import re
import stat
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ackclock import _html, own, units
from ackclock.errors import InputError, ScenarioError, one_of, quote
from ackclock.own import OwnClass
from ackclock.scenario import _shipped
from ackclock.scenario._base import PositiveDuration, Table, byte_count, nanoseconds
from ackclock.scenario._described import schema
from ackclock.scenario._keys import mutable, put
from ackclock.scenario._mahimahi import read
from ackclock.scenario._tables import DropTail, Host, Link, Mahimahi, Population, Scripted
from ackclock.scenario._toml import check_keys, to_toml
from ackclock.scenario.flow import Flows
from ackclock.scenario.network import MTU, Network
from ackclock.scenario.record import Record

CapturePoint = Literal["sender", "receiver"]
"""Side whose packets are captured."""

MODERN: Literal["modern"] = "modern"
"""Preset of a host of today, and name of the sending ones where all are."""
MODERN_PEER = "modern-peer"
"""Name of the receiving ones."""

LARGEST_FILE = 2**20
"""Bytes of the largest scenario file that is read."""

MOST_FLOWS = 1_000_000
"""Flows, and clients of populations, of one run."""

MOST_MEASURED = 100
"""Flows whose performance a sweep measures unless the scenario says so."""

MOST_INTERVALS = 10**9
"""Samples of one kind over a run."""

HEADERS = 52
"""Bytes of the headers of IPv4 and TCP, timestamps included."""

SMALLEST_ACK = 40
"""Bytes of an ACK without options."""


SCHEMA_ABOUT = (
    "A network, its hosts and flows, and what to record. The schema has every key and the form of its value. `ackclock run` "
    "also checks what a schema cannot express: the exact range and unit of each quantity (smss, for instance, is 64 to "
    "65000 bytes), and rules that involve several keys."
)


class Scenario(Table):
    """A network, its hosts and flows, and what to record: a value that equals a TOML file.

    Examples
    --------
    >>> scenario = Scenario.from_dict({
    ...     "duration": "10 s",
    ...     "network": {"bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms"}},
    ...     "flows": [{"congestion_control": "reno"}],
    ... })
    >>> scenario.set("flows.0.count", 2).flows[0].count
    2
    """

    name: str = ""
    """A name for the reader; it does not affect the result."""
    duration: PositiveDuration
    """Simulated time."""
    network: Network
    """The links and how flows cross them."""
    flows: Annotated[tuple[Flows, ...], Field(min_length=1)]
    """Groups of flows. Flows are numbered from 0, group after group."""
    hosts: tuple[Host, ...] | Literal["modern"] = ()
    """Imperfect hosts, which flows refer to by name. "modern" gives each end of each flow a host of its own with the
    preset "modern", and TCP sends packets of several segments (`stack.tso`) unless a group says otherwise."""
    record: Record = Record.constant()
    """What to record."""

    @model_validator(mode="after")
    def _times_and_paths(self) -> Scenario:
        end = nanoseconds(self.duration)
        paths = [path.name for path in self.network.paths]
        for i, group in enumerate(self.flows):
            # drawn times may be too long for the run: then fewer flows take place
            stagger = nanoseconds(group.stagger) if isinstance(group.stagger, str) else 0
            start = nanoseconds(group.start) if isinstance(group.start, str) else 0
            last = start + stagger * (group.count - 1)
            late = last >= end
            if late and start < end:
                raise ScenarioError(
                    key=f"flows.{i}.stagger",
                    found=f"{quote(group.stagger)}, which starts the last of {group.count} flows after the end",
                    allowed=f"starts below the duration of {quote(self.duration)}",
                )
            if late:
                raise ScenarioError(
                    key=f"flows.{i}.start",
                    found=quote(group.start),
                    allowed=f"a time below the duration of {quote(self.duration)}",
                )
            if group.stop is not None and nanoseconds(group.stop) <= last:
                raise ScenarioError(
                    key=f"flows.{i}.stop",
                    found=quote(group.stop),
                    allowed="a time after the start of the group's last flow",
                )
            if group.path is not None and group.path not in paths:
                raise ScenarioError(
                    key=f"flows.{i}.path",
                    found=quote(group.path),
                    allowed=one_of(group.path, paths) if paths else 'no path unless the topology is "graph"',
                )
        self._check_hosts()
        self._check_destinations()
        self._check_size(end)
        self._check_scripts()
        self._check_byte_limits()
        self.to_engine()  # what can only be judged when all is known, such as a queue in multiples of the BDP
        return self

    def _check_destinations(self) -> None:
        """Groups that share what is remembered cannot begin with different memories."""
        first: dict[str, tuple[int | None, int | None]] = {}
        for i, group in enumerate(self.flows):
            cache = group.stack.metrics_cache
            if cache is None:
                continue
            held = (cache.ssthresh, cache.cwnd)
            if first.setdefault(cache.destination, held) != held:
                raise ScenarioError(
                    key=f"flows.{i}.stack.metrics_cache",
                    found=f"another ssthresh or cwnd for {quote(cache.destination)} than in an earlier group",
                    allowed="the same, or another destination",
                )

    def _check_hosts(self) -> None:
        if self.hosts == MODERN:
            self._check_host_names([])
            return
        names = [host.name for host in self.hosts]
        for i, name in enumerate(names):
            if name in names[:i]:
                raise ScenarioError(key=f"hosts.{i}.name", found=f"{quote(name)} twice", allowed="a name of its own")
        emulators = [i for i, host in enumerate(self.hosts) if host.emulates_links]
        if len(emulators) > 1:
            raise ScenarioError(
                key=f"hosts.{emulators[1]}.emulates_links", found="true for a second host", allowed="one such host"
            )
        self._check_host_names(names)

    def _check_host_names(self, names: Sequence[str]) -> None:
        for i, group in enumerate(self.flows):
            for key in ("host", "peer_host"):
                name = getattr(group, key)
                if name is not None and name not in names:
                    allowed = one_of(name, names) if names else "no host; the scenario lists none"
                    raise ScenarioError(key=f"flows.{i}.{key}", found=quote(name), allowed=allowed)

    def _check_size(self, end: int) -> None:
        """Bounds that hold whatever the memory limit: what they let through can be estimated quickly and exactly."""
        if self.flow_count > MOST_FLOWS:
            raise ScenarioError(
                key="flows", found=f"{self.flow_count} flows in all", allowed=f"at most {MOST_FLOWS}, clients included"
            )
        for key in ("sample_interval", "queue_interval", "goodput_interval"):
            text = getattr(self.record, key)
            interval = nanoseconds(text)
            if interval and end // interval > MOST_INTERVALS:
                raise ScenarioError(
                    key=f"record.{key}",
                    found=f"{quote(text)}, {end // interval} times in {quote(self.duration)}",
                    allowed=f"an interval that fits at most {MOST_INTERVALS} times into the duration",
                )

    def _links(self) -> list[tuple[str, Link, bool]]:
        """Every link with its key, and whether it is known to carry data rather than ACKs."""
        net = self.network
        out = [
            ("access", net.access),
            *((f"access_list.{i}", x) for i, x in enumerate(net.access_list)),
            ("bottleneck", net.bottleneck),
            ("egress", net.egress),
        ]
        data = {name for path in net.paths for name in path.forward}
        back = [(f"reverse.{key}", link) for key, link in net.reverse]
        return [
            *((f"network.{key}", link, True) for key, link in out if link is not None),
            *((f"network.{key}", link, False) for key, link in back if link is not None),
            *((f"network.links.{i}", link, link.name in data) for i, link in enumerate(net.links)),
        ]

    def _check_scripts(self) -> None:
        """A scripted loss of a flow that does not exist would drop nothing, silently."""
        flows = self.flow_count
        for key, link, _ in self._links():
            if not isinstance(link.loss, Scripted):
                continue
            for i, drop in enumerate(link.loss.drops):
                if drop.flow >= flows:
                    raise ScenarioError(
                        key=f"{key}.loss.drops.{i}.flow",
                        found=str(drop.flow),
                        allowed=f"0 to {flows - 1}, the numbers of the flows" if flows > 1 else "0, the only flow",
                    )

    def _check_byte_limits(self) -> None:
        """A queue that cannot hold one packet would be no queue, silently."""
        full = min(MTU if group.stack.smss is None else byte_count(group.stack.smss) + HEADERS for group in self.flows)
        for key, link, data in self._links():
            queue = link.queue
            if not isinstance(queue, DropTail) or queue.limit is None:
                continue
            limit, dimension = units.parse(queue.limit, units.PACKETS, units.SIZE, units.BDP)
            least = full if data else SMALLEST_ACK
            if dimension is units.SIZE and limit < least:
                packet = "one full packet" if data else "one ACK"
                raise ScenarioError(
                    key=f"{key}.queue.limit", found=quote(queue.limit), allowed=f"at least {least} bytes ({packet})"
                )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Scenario:
        """Make a scenario of plain values.

        Parameters
        ----------
        values
            As read from TOML.

        Raises
        ------
        ScenarioError
            One line: the key, what was found, what is allowed.
        """
        if not isinstance(values, Mapping):
            raise ScenarioError(found=quote(values), allowed="a table with the keys of a scenario file")
        return cls(**{str(key): value for key, value in values.items()})

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """JSON Schema of a scenario file (2020-12).

        Parameters
        ----------
        *args, **kwargs
            As pydantic's.
        """
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "urn:ackclock:scenario",
            **super().model_json_schema(*args, **kwargs),
            "description": SCHEMA_ABOUT,
        }

    def to_dict(self) -> dict[str, Any]:
        """The keys that were given, as plain values."""
        return self.written()

    def to_toml(self) -> str:
        """The scenario as a file."""
        return to_toml(self.to_dict())

    def _repr_html_(self) -> str:
        """For notebooks: the file."""
        return _html.heading(f"Scenario {self.name}".strip()) + _html.text(self.to_toml())

    def inputs(self) -> dict[str, str]:
        """Files that the scenario reads, such as traces, with their SHA-256."""
        found: dict[str, str] = {}
        for _, link, _ in self._links():
            if isinstance(link.capacity, Mahimahi):
                found[link.capacity.file] = read(link.capacity.file).sha256
        return found

    def controllers(self) -> list[tuple[str, str]]:
        """Key and name of each group's controller."""
        return [(f"flows.{i}.congestion_control", group.congestion_control) for i, group in enumerate(self.flows)]

    @property
    def flow_count(self) -> int:
        """Flows of the run; each client of a population is one."""
        return sum(
            group.count * (group.workload.clients if isinstance(group.workload, Population) else 1)
            for group in self.flows
        )

    def own(self) -> tuple[OwnClass, ...]:
        """The users' own classes that control its flows, each once."""
        found = (group.own for group in self.flows)
        return tuple(dict.fromkeys(one for one in found if one is not None))

    def to_engine_json(self, *, capture: CapturePoint | None = None) -> str:
        """Compile to what the engine reads: JSON in whole nanoseconds, bits per second and bytes.

        Parameters
        ----------
        capture
            Side whose packets will be captured.
        """
        compiled = self.to_engine()
        if capture is not None:
            compiled["record"]["capture"] = capture
        return json.dumps({"name": self.name, **compiled})

    def to_engine(self) -> dict[str, Any]:
        """What `to_engine_json` writes, as plain values and without the name, which is no part of the result."""
        flows = [group.engine() for group in self.flows]
        if self.hosts == MODERN:
            hosts = tuple(Host(name=name, shared=False, preset=MODERN) for name in (MODERN, MODERN_PEER))
            flows = [_on_modern_hosts(group) for group in flows]
        else:
            hosts = self.hosts
        return {
            "duration_ns": nanoseconds(self.duration),
            "network": self.network.engine(self.flows[0].path),
            "flows": flows,
            **({"hosts": [host.engine() for host in hosts]} if hosts else {}),
            "record": self.record.engine(),
        }

    def measured(self) -> Scenario:
        """The scenario with `record.performance`, unless it says otherwise or has over 100 flows."""
        if self.record.performance is not None or self.flow_count > MOST_MEASURED:
            return self
        return self.set("record.performance", True)

    def set(self, key: str, value: Any) -> Scenario:
        """A copy with one value changed.

        Parameters
        ----------
        key
            Dotted path; lists by position: "flows.0.congestion_control".
        value
            As in TOML.

        Raises
        ------
        ScenarioError
            If there is no such key, or the value is not allowed there.
        """
        return self.set_all({key: value})

    def set_all(self, changes: Mapping[str, Any]) -> Scenario:
        """A copy with several values changed at once, so that only the whole has to be possible.

        Parameters
        ----------
        changes
            Dotted path -> value, as for `set`.

        Raises
        ------
        ScenarioError
            As `set`.
        """
        values = mutable(self.to_dict())
        for key, value in changes.items():
            put(values, key, value)
        return Scenario.from_dict(values)


def load(path: str | Path, *, own_code: bool = False) -> Scenario:
    """Read a scenario file.

    Parameters
    ----------
    path
        A TOML file of at most 1 MiB; or the name of a scenario that comes with ackclock, such as "first", where there is no file
        of that name. `ackclock list` names them.
    own_code
        Whether controllers may be named by a file of Python, which a run would execute.

    Raises
    ------
    ScenarioError
        One line: the file, the key, what was found, what is allowed.
    """
    source = str(path)
    allowed = "a readable TOML file in UTF-8 of at most 1 MiB"
    path = _shipped.find(path, allowed)
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            raise ScenarioError(
                source=source, found="a folder" if stat.S_ISDIR(status.st_mode) else "no regular file", allowed=allowed
            )
        if status.st_size > LARGEST_FILE:
            raise ScenarioError(source=source, found=f"{status.st_size} bytes", allowed=allowed)
        if status.st_size == 0:  # so are the files of /proc, some of which would keep a reader waiting for ever
            raise ScenarioError(source=source, found="an empty file", allowed=allowed)
        # Editors on Windows begin UTF-8 with a byte order mark.
        text = Path(path).read_bytes().decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ScenarioError(
            source=source, found=f"a byte that is not UTF-8 at offset {error.start}", allowed=allowed
        ) from None
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ScenarioError(source=source, found=f"an unreadable file ({reason.lower()})", allowed=allowed) from None
    try:
        check_keys(text)
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise ScenarioError(
            source=source, found=f"no valid TOML ({_why_invalid(error, text)})", allowed=allowed
        ) from None
    try:
        scenario = Scenario.from_dict(_anchored(values, Path(path).parent))
        if not own_code:
            own.refuse(scenario.controllers())
        return scenario
    except ScenarioError as error:
        raise error.read_from(source) from None


def _on_modern_hosts(group: dict[str, Any]) -> dict[str, Any]:
    """A compiled group of flows where `hosts = "modern"`."""
    datagrams = group["workload"]["kind"] in schema()["datagrams"] or (
        group["congestion_control"] in schema()["pcc"]["controllers"]
    )
    stack = group["stack"] if datagrams else {"tso": True, **group["stack"]}
    return {**group, "host": MODERN, "peer_host": MODERN_PEER, "stack": stack}


def _anchored(value: Any, folder: Path) -> Any:
    """Names of files that a scenario reads, relative to its own folder."""
    if isinstance(value, list):
        return [_anchored(entry, folder) for entry in value]
    if not isinstance(value, dict):
        return value
    control = value.get("congestion_control")
    if isinstance(control, str):
        value = {**value, "congestion_control": own.anchored(control, folder)}
    name = value.get("file")
    if value.get("kind") == "mahimahi" and isinstance(name, str) and name:
        return {**value, "file": str(folder / name)}
    return {key: _anchored(entry, folder) for key, entry in value.items()}


def _why_invalid(error: Exception, text: str) -> str:
    """What the reader of TOML complains about, in words that help to find it."""
    if isinstance(error, RecursionError):
        return "too many nested values"
    if not isinstance(error, tomllib.TOMLDecodeError):
        return str(error) if "dotted key" in str(error) else "a number with too many digits"
    said = str(error)
    line = re.search(r"at line (\d+)", said)
    if line is None or not said.startswith(("Cannot overwrite a value", "Cannot declare")):
        return said
    # The reader stops behind what is there twice; its key is the nearest one above.
    above = text.splitlines()[: int(line[1])]
    header = re.match(r"\s*\[+([^\[\]]+)\]", above[-1]) if above else None
    keys = re.findall(r"""^\s*([\w.\-"']+)\s*=|[{,]\s*([\w.\-"']+)\s*=""", "\n".join(above), re.MULTILINE)
    if header is None and not keys:
        return said
    key = header[1] if header else next(filter(None, keys[-1]))
    return f'the key "{key}" is given twice, again at line {line[1]}'
