"""A sweep, in memory and as a file: a scenario, axes, seeds, and the data stored for each run."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ackclock import _engine, units
from ackclock._files import reads
from ackclock._results.run import engine_call
from ackclock.errors import ScenarioError, one_of, quote
from ackclock.own import OwnClass, anchored, named, refuse
from ackclock.scenario import Scenario
from ackclock.scenario import load as load_scenario
from ackclock.scenario._shipped import shipped
from ackclock.scenario._toml import read_toml
from ackclock.scenario.scenario import with_files_of
from ackclock.sweep.axes import FILE, RUN, Axis, combinations, label, taken
from ackclock.sweep.measures import TABLE

MOST_RUNS = 2_000_000
"""Maximum number of runs in a sweep: each takes about 400 bytes of memory during planning."""

LARGEST_FILE = 2**20
"""Maximum size of a sweep file, bytes."""

_KEYS = ("name", "scenario", "seeds", "metrics", "tables", "trace", "time_limit", "zip", "axes", "names", "labels")
_TRACES = ("none", "flow", "all")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Metrics and tables stored for each run.

    Parameters
    ----------
    metrics
        Names of numbers, one value per run.
    tables
        Name of a table and its columns (None: all), kept row by row.
    """

    metrics: tuple[str, ...]
    tables: tuple[tuple[str, tuple[str, ...] | None], ...] = ()

    @property
    def text(self) -> str:
        """The recipe as text; identical recipes yield identical texts."""
        return json.dumps([list(self.metrics), [[n, None if c is None else list(c)] for n, c in self.tables]])


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A scenario run under many seeds, and the axis values that identify it in results.

    Parameters
    ----------
    scenario
        Scenario to run.
    keys
        Column -> value.
    seeds
        Seeds, each of which gives a run.
    """

    scenario: Scenario = field(repr=False)
    keys: Mapping[str, Any]
    seeds: Sequence[int]

    @cached_property
    def text(self) -> str:
        """Text of the compiled scenario without its name, which does not affect the result."""
        return json.dumps(self.scenario.to_engine(), separators=(",", ":"))

    @cached_property
    def own(self) -> tuple[OwnClass, ...]:
        """User controller classes named in the scenario."""
        return self.scenario.own()

    @cached_property
    def hash(self) -> str:
        """Hash of the compiled scenario."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A grid of scenarios under many seeds.

    Parameters
    ----------
    name
        Letters, digits, dots, hyphens and underscores.
    scenario
        Scenario that the axes vary.
    axes
        The last one varies fastest.
    zip
        Groups of keys of axes that step together.
    seeds
        Seeds of each cell. All cells have the same seeds, so differences can be taken pair by pair.
    metrics
        Numbers kept in addition to the standard ones: "flows.rtos.max", a table, a column and a reduction (count, sum,
        mean, std, min, max, median, p0 to p99).
    tables
        Tables that are kept in full, such as "flows" or "fetches"; `performance` is kept with up to 100 flows.
    trace
        "none", "flow" or "all": record every ACK of no flow, of flow 0 or of all flows, and keep the table `acks`.
    time_limit
        CPU time that a run may take, such as "10 min"; a run that takes more fails. None for no limit.

    Examples
    --------
    >>> scenario = Scenario.from_dict({
    ...     "duration": "1 s", "network": {"bottleneck": {"rate": "10 Mbit/s", "delay": "5 ms"}}, "flows": [{}],
    ... })
    >>> sweep = Sweep(
    ...     name="small",
    ...     scenario=scenario,
    ...     axes=(Axis(key="flows.0.congestion_control", values=("reno", "cubic")),),
    ...     seeds=(1, 2, 3),
    ... )
    >>> [cell.keys for cell in sweep.cells]
    [{'flows.0.congestion_control': 'reno'}, {'flows.0.congestion_control': 'cubic'}]
    """

    name: str
    scenario: Scenario = field(repr=False)
    axes: tuple[Axis, ...] = ()
    zip: tuple[tuple[str, ...], ...] = ()
    seeds: tuple[int, ...] = (1,)
    metrics: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    trace: str = "none"
    time_limit: str | None = None

    def __post_init__(self) -> None:
        if (
            not self.name
            or self.name[0] == "."
            or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in self.name)
        ):
            raise ScenarioError(
                key="name", found=quote(self.name), allowed="letters, digits, hyphens, underscores, dots (not first)"
            )
        if self.trace not in _TRACES:
            raise ScenarioError(key="trace", found=quote(self.trace), allowed=one_of(str(self.trace), _TRACES))
        _ = self.time_limit_s
        names, columns = [axis.name or axis.key for axis in self.axes], [axis.column for axis in self.axes]
        for name, axis in zip(names, self.axes, strict=True):
            twice = names.count(name) > 1 or columns.count(axis.column) > 1
            if twice or axis.column in {*RUN, *taken(), *self.recipe.metrics}:
                raise ScenarioError(
                    key=f"names.{axis.key}", found=f"{quote(name)}, which is taken", allowed="another name"
                )
        points = len(self.points)
        if points * len(self.seeds) > MOST_RUNS:
            raise ScenarioError(
                key="axes",
                found=f"{points} cells of {len(self.seeds)} seeds",
                allowed=f"at most {MOST_RUNS} runs in all",
            )
        try:
            engine_call(lambda: _engine.run_each([], [], self.recipe.metrics, self.recipe.tables, 0.0))
        except ScenarioError as error:
            if error.key not in ("metrics", "tables"):
                raise
            raise ScenarioError(key=error.key, found=error.found, allowed=error.allowed) from None

    @property
    def time_limit_s(self) -> float | None:
        """Maximum CPU time of a run, s.

        Raises
        ------
        ScenarioError
            If `time_limit` is not a duration.
        """
        if self.time_limit is None:
            return None
        try:
            return float(units.parse(self.time_limit, units.DURATION)[0] / 10**9)
        except ScenarioError as error:
            raise error.within("time_limit") from None

    @cached_property
    def points(self) -> list[dict[str, Any]]:
        """Key -> value for every cell, in order."""
        return combinations(self.axes, self.zip)

    @cached_property
    def recipe(self) -> Recipe:
        """Metrics and tables stored for each run."""
        standard = standard_metrics()
        extra = [m for m in dict.fromkeys(self.metrics) if m not in standard]
        tables = list(dict.fromkeys((TABLE, *self.tables, *(("acks",) if self.trace != "none" else ()))))
        return Recipe(metrics=(*standard, *extra), tables=tuple((name, None) for name in tables))

    @cached_property
    def cells(self) -> list[Cell]:
        """Return every scenario of the grid.

        Raises
        ------
        ScenarioError
            If one of them is not possible.
        """
        by_key = {axis.key: axis for axis in self.axes}
        base = self.scenario if self.trace == "none" else self.scenario.set("record.trace", self.trace)
        cells = []
        for point in self.points:
            try:
                scenario = base.set_all(point).measured()
            except ScenarioError as error:
                told = ", ".join(f"{k} = {quote(v)}" for k, v in point.items())
                raise ScenarioError(
                    key=error.key, found=f"{error.found} in the cell {told}", allowed=error.allowed
                ) from None
            keys = {by_key[key].column: by_key[key].show(value) for key, value in point.items()}
            cells.append(Cell(scenario=scenario, keys=keys, seeds=self.seeds))
        return cells

    def told(self, cell: int) -> str:
        """Return a cell in words by its number: "rate 10 Mbit/s, buffer 2 BDP"."""
        point = self.points[cell]
        parts = (f"{axis.name or axis.key} {label(axis.show(point[axis.key]))}" for axis in self.axes)
        return ", ".join(parts) or "the only cell"

    def controllers(self) -> list[tuple[str, str]]:
        """Key and name of each controller in the scenario and in the axes."""
        own = [(f"scenario.{key}", name) for key, name in self.scenario.controllers()]
        return [*own, *((f"axes.{axis.key}", value) for axis in self.axes for value in axis.values)]

    def to_dict(self) -> dict[str, Any]:
        """Return the sweep as plain values, including the scenario; `Sweep.from_dict` reads them."""
        return {
            "name": self.name,
            "scenario": self.scenario.to_dict(),
            "seeds": list(self.seeds),
            "metrics": list(self.metrics),
            "tables": list(self.tables),
            "trace": self.trace,
            **({} if self.time_limit is None else {"time_limit": self.time_limit}),
            "zip": [list(group) for group in self.zip],
            "axes": {axis.key: list(axis.values) for axis in self.axes},
            "names": {axis.key: axis.name for axis in self.axes if axis.name},
            "labels": {axis.key: list(axis.labels) for axis in self.axes if axis.labels},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, folder: Path | None = None) -> Sweep:
        """Make a sweep from plain values.

        Parameters
        ----------
        values
            As read from TOML.
        folder
            Folder to which the scenario's path is relative.

        Raises
        ------
        ScenarioError
            One line: the key, what was found, what is allowed.
        """
        for key in values:
            if key not in _KEYS:
                raise ScenarioError(key=str(key), found="an unknown key", allowed=one_of(str(key), _KEYS))
        if "scenario" not in values:
            raise ScenarioError(
                key="scenario", found="nothing", allowed="the path of a scenario file; this key is required"
            )
        groups = values.get("zip", [])
        if not isinstance(groups, list) or not all(isinstance(g, list) and len(g) > 1 for g in groups):
            raise ScenarioError(key="zip", found=quote(groups), allowed="a list of lists of two keys of axes or more")
        names, labels = _table(values, "names"), _table(values, "labels")
        folder = folder or Path()
        axes = tuple(
            Axis.parse(
                key,
                _anchored(key, value, folder),
                name=_text("names." + key, names.get(key, "")),
                labels=labels.get(key, ()),
                repeats=any(key in group for group in groups),
            )
            for key, value in _table(values, "axes").items()
        )
        for table, keys in (("names", names), ("labels", labels)):
            for key in keys:
                if key not in {axis.key for axis in axes}:
                    raise ScenarioError(
                        key=f"{table}.{key}",
                        found="no such axis",
                        allowed=one_of(key, [a.key for a in axes]) or "an axis",
                    )
        return cls(
            name=_text("name", values.get("name", "sweep")),
            scenario=_scenario(values["scenario"], folder),
            axes=axes,
            zip=tuple(tuple(_text("zip", key) for key in group) for group in groups),
            seeds=_seeds(values.get("seeds", 1)),
            metrics=_texts(values, "metrics"),
            tables=_texts(values, "tables"),
            trace=_text("trace", values.get("trace", "none")),
            time_limit=_text("time_limit", values["time_limit"]) if "time_limit" in values else None,
        )


def standard_metrics() -> tuple[str, ...]:
    """Return the names of the metrics stored for every run."""
    return tuple(name for name, _ in _engine.registry()["metrics"])


def load(path: str | Path, *, own_code: bool = False) -> Sweep:
    """Read a sweep file.

    Parameters
    ----------
    path
        A TOML file of at most 1 MiB. The path of its scenario is relative to the file's folder.
    own_code
        Whether controllers may be given as Python files, which a run would execute.

    Raises
    ------
    ScenarioError
        One line: the file, the key, what was found, what is allowed.
    """
    path = Path(path)
    allowed = "a readable TOML file in UTF-8 of at most 1 MiB"
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ScenarioError(source=str(path), found="no regular file", allowed=allowed)
        if status.st_size > LARGEST_FILE:
            raise ScenarioError(source=str(path), found=f"{status.st_size} bytes", allowed=allowed)
        reads(path)
        text = path.read_bytes().decode().removeprefix("\ufeff")
        values, _ = read_toml(text)
    except ScenarioError as error:
        if error.place is None:
            raise
        found = f"no valid TOML ({error.found})"
        raise ScenarioError(source=str(path), found=found, allowed=allowed, place=error.place) from None
    except UnicodeDecodeError as error:
        found = f"a byte that is not UTF-8 at offset {error.start}"
        raise ScenarioError(source=str(path), found=found, allowed=allowed) from None
    except OSError as error:
        if isinstance(error, FileNotFoundError) and str(path) in dict(shipped()):
            raise ScenarioError(
                source=str(path), found="a scenario of the package", allowed="a grid (TOML) over it"
            ) from None
        found = f"an unreadable file ({(error.strerror or str(error)).lower()})"
        raise ScenarioError(source=str(path), found=found, allowed=allowed) from None
    except ValueError as error:  # the name contains a null byte
        raise ScenarioError(source=str(path), found=f"an unreadable file ({error})", allowed=allowed) from None
    try:
        sweep = Sweep.from_dict({"name": _stem(path), **values}, folder=path.parent)
        if not own_code:
            refuse(sweep.controllers())
        return sweep
    except ScenarioError as error:
        raise error if error.source else error.read_from(str(path)) from None


def _anchored(key: str, values: Any, folder: Path) -> Any:
    """Return an axis's values, with file names (controllers, traces) relative to the sweep's folder."""
    if not isinstance(values, list | tuple):
        return values
    if key.endswith(FILE):
        return [str((folder / value).resolve()) if isinstance(value, str) and value else value for value in values]
    return [anchored(value, folder) if named(value) else with_files_of(value, folder) for value in values]


def _stem(path: Path) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in path.stem).lstrip(".") or "sweep"


def _scenario(written: Any, folder: Path) -> Scenario:
    if isinstance(written, Scenario):
        return written
    if isinstance(written, Mapping):
        try:
            return Scenario.from_dict(written)
        except ScenarioError as error:
            raise error.within("scenario") from None
    if not isinstance(written, str) or not written:
        raise ScenarioError(
            key="scenario", found=quote(written), allowed="the path of a scenario file, or its keys as a table"
        )
    return load_scenario(folder / written, own_code=True)  # the sweep is checked as a whole later


def _seeds(written: Any) -> tuple[int, ...]:
    allowed = "how many (1 to 1000000), or a list of whole numbers, each once, 0 to 2**63 - 1"
    if isinstance(written, int) and not isinstance(written, bool) and 1 <= written <= 1_000_000:
        return tuple(range(1, written + 1))
    if isinstance(written, list | tuple) and written:
        whole = all(isinstance(s, int) and not isinstance(s, bool) and 0 <= s < 2**63 for s in written)
        if whole and len(set(written)) == len(written):
            return tuple(written)
    raise ScenarioError(key="seeds", found=quote(written), allowed=allowed)


def _table(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = values.get(key, {})
    if not isinstance(found, Mapping):
        raise ScenarioError(key=key, found=quote(found), allowed="a table of dotted keys")
    return found


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ScenarioError(key=key, found=quote(value), allowed="text in quotes")
    return value


def _texts(values: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = values.get(key, [])
    if not isinstance(found, list | tuple):
        raise ScenarioError(key=key, found=quote(found), allowed="a list of names")
    return tuple(_text(key, value) for value in found)
