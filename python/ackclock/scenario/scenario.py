"""The whole scenario: reading, changing, compiling."""

from __future__ import annotations

import json
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ackclock.errors import InputError, ScenarioError, one_of, quote
from ackclock.scenario._base import PositiveDuration, Table, nanoseconds
from ackclock.scenario._toml import to_toml
from ackclock.scenario.flow import Flows
from ackclock.scenario.network import Network
from ackclock.scenario.record import Record
from ackclock.scenario.workload import Population

CapturePoint = Literal["sender", "receiver"]
"""Side whose packets are captured."""

LARGEST_FILE = 2**20
"""Bytes of the largest scenario file that is read."""

MOST_FLOWS = 1_000_000
"""Flows, and clients of populations, of one run."""

MOST_INTERVALS = 10**9
"""Samples of one kind over a run."""


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
    """For people; no part of the result."""
    duration: PositiveDuration
    """Simulated time."""
    network: Network
    """The network."""
    flows: Annotated[tuple[Flows, ...], Field(min_length=1)]
    """Groups of flows; flows are numbered through them in order."""
    record: Record = Record()
    """What to record."""

    @model_validator(mode="after")
    def _times_and_paths(self) -> Scenario:
        end = nanoseconds(self.duration)
        paths = [path.name for path in self.network.paths]
        for i, group in enumerate(self.flows):
            last = nanoseconds(group.start) + nanoseconds(group.stagger) * (group.count - 1)
            late = last >= end
            if late and nanoseconds(group.start) < end:
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
        self._check_size(end)
        self.to_engine_json()  # what can only be judged when all is known, such as a queue in multiples of the BDP
        return self

    def _check_size(self, end: int) -> None:
        """Bounds that hold whatever the memory limit: what they let through can be estimated quickly and exactly."""
        connections = [
            group.count * (group.workload.clients if isinstance(group.workload, Population) else 1)
            for group in self.flows
        ]
        if sum(connections) > MOST_FLOWS:
            raise ScenarioError(
                key="flows", found=f"{sum(connections)} flows in all", allowed=f"at most {MOST_FLOWS}, clients included"
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
        return cls(**{str(key): value for key, value in values.items()})

    def to_dict(self) -> dict[str, Any]:
        """The keys that were given, as plain values."""
        return self.written()

    def to_toml(self) -> str:
        """The scenario as a file."""
        return to_toml(self.to_dict())

    def to_engine_json(self, *, capture: CapturePoint | None = None) -> str:
        """Compile to what the engine reads: JSON in whole nanoseconds, bits per second and bytes.

        Parameters
        ----------
        capture
            Side whose packets will be captured.
        """
        record = self.record.engine()
        if capture is not None:
            record["capture"] = capture
        return json.dumps(
            {
                "name": self.name,
                "duration_ns": nanoseconds(self.duration),
                "network": self.network.engine(self.flows[0].path),
                "flows": [group.engine() for group in self.flows],
                "record": record,
            }
        )

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
        values = _mutable(self.to_dict())
        here: Any = values
        parts = key.split(".")
        for depth, part in enumerate(parts):
            place = ".".join(parts[: depth + 1])
            if isinstance(here, list):
                if not (part.isascii() and part.isdecimal() and int(part) < len(here)):
                    raise ScenarioError(
                        key=place,
                        found=quote(part),
                        allowed=f"0 to {len(here) - 1}" if here else "nothing; the list is empty",
                    )
                index: Any = int(part)
            elif isinstance(here, dict):
                index = part
            else:
                raise ScenarioError(key=place, found=f"a key below {quote(here)}", allowed="keys of tables and lists")
            if depth == len(parts) - 1:
                here[index] = _mutable(value)
            else:
                here = here.setdefault(index, {}) if isinstance(here, dict) else here[index]
        return Scenario.from_dict(values)


def load(path: str | Path) -> Scenario:
    """Read a scenario file.

    Parameters
    ----------
    path
        A TOML file of at most 1 MiB.

    Raises
    ------
    ScenarioError
        One line: the file, the key, what was found, what is allowed.
    """
    source = str(path)
    allowed = "a readable TOML file in UTF-8 of at most 1 MiB"
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            raise ScenarioError(
                source=source, found="a folder" if stat.S_ISDIR(status.st_mode) else "no regular file", allowed=allowed
            )
        if status.st_size > LARGEST_FILE:
            raise ScenarioError(source=source, found=f"{status.st_size} bytes", allowed=allowed)
        text = Path(path).read_bytes().decode()
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
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        reason = "too many nested values" if isinstance(error, RecursionError) else str(error)
        raise ScenarioError(source=source, found=f"no valid TOML ({reason})", allowed=allowed) from None
    try:
        return Scenario.from_dict(values)
    except ScenarioError as error:
        raise error.read_from(source) from None


def _mutable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _mutable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_mutable(v) for v in value]
    return value
