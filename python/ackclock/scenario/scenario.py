"""A complete scenario: reading, modifying and compiling it."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ackclock import _engine, own
from ackclock._files import contents, reads
from ackclock.errors import START, InputError, Place, ScenarioError, quote
from ackclock.own import OwnClass
from ackclock.scenario import _shipped
from ackclock.scenario._base import Files, Table, asked, made, refused, table_keys
from ackclock.scenario._keys import put
from ackclock.scenario._mahimahi import read
from ackclock.scenario._speaks import silent
from ackclock.scenario._toml import read_toml, to_toml

if TYPE_CHECKING:
    from ackclock.scenario._tables import Flows, Host, Network, Record

CapturePoint = Literal["sender", "receiver"]
"""Side whose packets are captured."""

LARGEST_FILE = 2**20
"""Maximum size of a scenario file, bytes."""

PROGRAMS = "programs"
"""Key of the programs that `ackclock live` runs; only that command reads it."""

SET = "--set"
"""Source named, instead of a file, in errors about a changed key."""

MOST_MEASURED = 100
"""Maximum number of flows for which a sweep records performance by default."""


class Scenario(Table):
    """A network, its hosts and flows, and the data to record, equivalent to a TOML file.

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

    __slots__ = ("compiled",)
    kinds = (None, "scenario")
    keys = table_keys("scenario")

    compiled: _engine.Scenario
    """Compiled form for the engine."""

    if TYPE_CHECKING:
        name: str
        duration: str
        network: Network
        flows: tuple[Flows, ...]
        hosts: tuple[Host, ...] | Literal["modern"]
        record: Record
        format: int | None

    def __init__(self, /, **given: Any) -> None:
        made, wrong = asked(lambda: _engine.Scenario.read(given, Files), given)
        refused(wrong)
        written = made.written()
        refused(silent(written))
        object.__setattr__(self, "compiled", made)
        self._hold(written)

    def __reduce__(self) -> tuple[Any, ...]:
        return Scenario.from_dict, (self._given,)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Scenario:
        """Make a scenario from plain values.

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
    def json_schema(cls) -> dict[str, Any]:
        """JSON Schema of a scenario file (2020-12)."""
        from ackclock.scenario import _schema

        return _schema.json_schema(cls)

    def to_dict(self) -> dict[str, Any]:
        """Return the keys that were set, as plain values."""
        return self.compiled.written()

    def to_toml(self) -> str:
        """Return the scenario as TOML text."""
        return to_toml(self.to_dict())

    def _repr_html_(self) -> str:
        """Return the TOML text for notebooks."""
        from ackclock import _html

        return _html.heading(f"Scenario {self.name}".strip()) + _html.text(self.to_toml())

    def inputs(self) -> dict[str, str]:
        """Files read by the scenario, such as traces, with their SHA-256."""
        return {name: read(name).sha256 for name in sorted(set(_traces(self._given["network"])))}

    def controllers(self) -> list[tuple[str, str]]:
        """Key and name of each group's controller."""
        return [(f"flows.{i}.congestion_control", group.congestion_control) for i, group in enumerate(self.flows)]

    @property
    def flow_count(self) -> int:
        """Number of flows in the run; each client of a population counts as one."""
        return self.compiled.flow_count()

    def own(self) -> tuple[OwnClass, ...]:
        """User-defined classes controlling the scenario's flows, without duplicates."""
        found = (group.own for group in self.flows)
        return tuple(dict.fromkeys(one for one in found if one is not None))

    def to_engine_json(self, *, capture: CapturePoint | None = None) -> str:
        """Compile to the engine's form: JSON with whole nanoseconds, bits per second and bytes.

        Parameters
        ----------
        capture
            Side whose packets will be captured.
        """
        return self.compiled.text(capture)

    def to_engine(self) -> dict[str, Any]:
        """Content of `to_engine_json` as plain values, without the name, which does not affect results."""
        return self.compiled.values()

    def measured(self) -> Scenario:
        """Return the scenario with `record.performance`, unless it sets that key or has over 100 flows."""
        if self.record.performance is not None or self.flow_count > MOST_MEASURED:
            return self
        return self.set("record.performance", True)

    def set(self, key: str, value: Any) -> Scenario:
        """Return a copy with one value changed.

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
        """Return a copy with several values changed at once, so that only the result must be valid.

        Parameters
        ----------
        changes
            Dotted path -> value, as for `set`.

        Raises
        ------
        ScenarioError
            As `set`.
        """
        values = self.to_dict()
        for key, value in changes.items():
            put(values, key, value)
        return Scenario.from_dict(values)


made[Scenario.kinds] = Scenario


def load(
    path: str | Path, *, own_code: bool = False, changes: Mapping[str, Any] | None = None, apart: Sequence[str] = ()
) -> Scenario:
    """Read a scenario file.

    Parameters
    ----------
    path
        A TOML file of at most 1 MiB, or, if there is no such file, the name of a scenario shipped with ackclock, such
        as "first". `ackclock list` names them.
    own_code
        Whether controllers may be given as Python files, which a run would execute.
    changes
        Dotted path -> value, as for `Scenario.set_all`, applied before the file is checked: the file may lack some of
        these keys. An error in one of them names `--set` instead of the file.
    apart
        Keys of the file that are none of the scenario's, because the caller reads them.

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
        if status.st_size == 0:  # files in /proc also have size 0, and some would block a reader forever
            raise ScenarioError(source=source, found="an empty file", allowed=allowed, place=START)
        # Windows editors start UTF-8 files with a byte order mark.
        reads(path)
        text = Path(path).read_bytes().decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode(errors="replace").split("\n")
        raise ScenarioError(
            source=source,
            found=f"a byte that is not UTF-8 at offset {error.start}",
            allowed=allowed,
            place=Place(len(before), len(before[-1]) + 1, 1),
        ) from None
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if isinstance(error, FileNotFoundError) and (name := _shipped.meant(path)) is not None:
            allowed = f"{name}, without folder and ending, which comes with the package, or {allowed}"
        raise ScenarioError(source=source, found=f"an unreadable file ({reason.lower()})", allowed=allowed) from None
    try:
        values, places = read_toml(text)
    except ScenarioError as error:
        raise ScenarioError(
            found=f"no valid TOML ({error.found})", allowed=allowed, source=source, place=error.place
        ) from None
    if PROGRAMS in values and PROGRAMS not in apart:
        refused_here = ScenarioError(
            key=PROGRAMS,
            found="programs to run",
            allowed="in a file for `ackclock live`, `compare` or `sweep run` alone",
        )
        raise refused_here.read_from(source, places)
    values = with_files_of({key: value for key, value in values.items() if key not in apart}, Path(path).parent)
    for key, value in (changes or {}).items():
        try:
            put(values, key, value)
        except ScenarioError as error:
            raise error.read_from(SET) from None
    try:
        scenario = Scenario.from_dict(values)
        if not own_code:
            own.refuse(scenario.controllers())
        return scenario
    except ScenarioError as error:
        if any(_within(error.key, key) for key in changes or ()):
            raise error.read_from(SET) from None
        raise error.read_from(source, places) from None


def raw(file: Path) -> dict[str, Any]:
    """Return the values of a TOML file of at most 1 MiB; empty if it cannot be read, because `load` reports the error."""
    try:
        return dict(read_toml(contents(file, LARGEST_FILE).removeprefix("\ufeff"))[0])
    except InputError:
        return {}


def _within(key: str, changed: str) -> bool:
    """Return whether a key is, or is below, one of the changed keys."""
    return key == changed or key.startswith(f"{changed}.")


def _traces(value: Any) -> Iterator[str]:
    """Yield the names of the traces in plain values."""
    if isinstance(value, dict):
        if value.get("kind") == "mahimahi":
            yield value["file"]
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from _traces(entry)


def with_files_of(value: Any, folder: Path) -> Any:
    """Return plain values in which file names are relative to the scenario's own folder."""
    if isinstance(value, list):
        return [with_files_of(entry, folder) for entry in value]
    if not isinstance(value, dict):
        return value
    control = value.get("congestion_control")
    if isinstance(control, str):
        value = {**value, "congestion_control": own.anchored(control, folder)}
    name = value.get("file")
    if value.get("kind") == "mahimahi" and isinstance(name, str) and name:
        return {**value, "file": str(folder / name)}
    return {key: with_files_of(entry, folder) for key, entry in value.items()}
