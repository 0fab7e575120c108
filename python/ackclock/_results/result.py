"""Results of a run: tables, converted to polars frames on first use.

Length: one property with a description for each table.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import _files, _html
from ackclock._files import staged
from ackclock._results import summary as _summary
from ackclock._results.columns import Columns, Missing, columns, plain, series
from ackclock.errors import InputError, ScenarioError, UnavailableError
from ackclock.text import NONE, rate, seconds

if TYPE_CHECKING:
    import polars as pl

    from ackclock.plot import Figure
    from ackclock.scenario import Scenario

__all__ = ["Batch", "Run"]

TABLES = (
    "flows",
    "performance",
    "fetches",
    "recoveries",
    "links",
    "hosts",
    "destinations",
    "goodput",
    "samples",
    "limits",
    "queue_samples",
    "drops",
    "acks",
    "clients",
    "controllers",
    "datagrams",
    "intervals",
    "chunks",
    "transactions",
    "transaction_summary",
    "transaction_times",
    "conversations",
    "messages",
)
"""Names of all tables of a run."""

MESSAGES = "messages.txt"
"""File with the lines of table `messages`, in the form of the kernel's log."""

NAMED = ("flows", "performance")
"""Tables whose frames contain group names."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Result:
    """Tables that runs and batches share. Times are seconds from the start of the run, windows segments, sizes bytes;
    null means that the event did not occur.
    """

    scenario: Scenario
    tables: Mapping[str, Columns] = field(repr=False)
    provenance: Mapping[str, Any] = field(repr=False)

    @property
    def engine(self) -> str:
        """Version of the engine."""
        return str(self.provenance["engine"])

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per flow: group number and name, controller, goodput, packets, retransmissions, timeouts, RTT, completion."""
        return controlled(named_groups(self._frame("flows"), self.scenario, after="group"), self.scenario)

    @cached_property
    def performance(self) -> pl.DataFrame:
        """Performance of each flow, each group and the run after the warm-up (`record.performance`).

        Returns
        -------
        polars.DataFrame
            `of` is "flow", "group" or "run", `number` the flow or group number, `name` the group name. Goodput in
            bit/s and its `share` of the total; packets sent, retransmitted and dropped; mean and quantiles of RTT and
            of one-way delay, with an error of at most 0.4 %; `time_to_share_s`, the time from a flow's start until its
            goodput, averaged over 1/32 of the run, first reached 90 % of an equal share (null if it never did, or the
            flow ran alone).
        """
        return named_groups(self._frame("performance"), self.scenario)

    @cached_property
    def fetches(self) -> pl.DataFrame:
        """One row per fetch, burst or video frame: latencies split into handshake and transfer, retransmissions, timeouts."""
        return self._frame("fetches")

    @cached_property
    def recoveries(self) -> pl.DataFrame:
        """One row per episode of fast recovery."""
        return self._frame("recoveries")

    @cached_property
    def links(self) -> pl.DataFrame:
        """One row per link: arrivals, drops, mean and maximum queue."""
        return self._frame("links")

    @cached_property
    def hosts(self) -> pl.DataFrame:
        """One row per imperfect host: stall time, core waits, interrupts, batches."""
        return self._frame("hosts")

    @cached_property
    def destinations(self) -> pl.DataFrame:
        """One row per destination in a host's cache: ssthresh and cwnd, in segments, at the end of the run."""
        return self._frame("destinations")

    @property
    def queues(self) -> pl.DataFrame:
        """Alias of table `links`: each link has one queue."""
        return self.links

    @cached_property
    def goodput(self) -> pl.DataFrame:
        """Goodput per flow and interval (`record.goodput_interval`)."""
        return self._frame("goodput")

    @cached_property
    def samples(self) -> pl.DataFrame:
        """State of each open flow per interval (`record.sample_interval`)."""
        return self._frame("samples")

    @cached_property
    def limits(self) -> pl.DataFrame:
        """Time for which each cause limited each TCP flow, s, per interval (`record.limits_interval`)."""
        return self._frame("limits")

    @cached_property
    def queue_samples(self) -> pl.DataFrame:
        """Queue occupancy per interval (`record.queue_interval`)."""
        return self._frame("queue_samples")

    @cached_property
    def drops(self) -> pl.DataFrame:
        """One row per dropped packet (`record.drops`)."""
        return self._frame("drops")

    @cached_property
    def acks(self) -> pl.DataFrame:
        """One row per ACK, transmission and timer event at a sender (`record.trace`)."""
        return self._frame("acks")

    @cached_property
    def clients(self) -> pl.DataFrame:
        """One row per client of a population, with the values it drew."""
        return self._frame("clients")

    @cached_property
    def controllers(self) -> pl.DataFrame:
        """The controllers' own variables, one row per ACK (`record.controller`); null where a controller lacks a
        variable.
        """
        return self._frame("controllers")

    @cached_property
    def intervals(self) -> pl.DataFrame:
        """PCC's monitor intervals (`record.controller`): rate, packets sent and lost, utility, controller state."""
        return self._frame("intervals")

    @cached_property
    def datagrams(self) -> pl.DataFrame:
        """One row per flow of plain datagrams: sent, lost, one-way delay, jitter.

        `lost` counts missing numbers below the largest one received, `jitter_s` is RFC 3550's estimator at the end
        of the run; delay quantiles are exact to 1/64.
        """
        return self._frame("datagrams")

    @cached_property
    def chunks(self) -> pl.DataFrame:
        """One row per chunk of a video player: when it was requested and when it arrived, bitrate, size, buffer, stall.

        `estimate_bps` is the rate on which the player based its choice; `buffer_s` the buffer including the chunk;
        `stall_s` how long playback stalled waiting for the chunk; `playing` whether playback had begun by
        then.
        """
        return self._frame("chunks")

    @cached_property
    def transactions(self) -> pl.DataFrame:
        """One row per transaction (unless `record.transactions` is "summary"): times since the client arrived."""
        return self._frame("transactions")

    @cached_property
    def conversations(self) -> pl.DataFrame:
        """One row per message of a conversation: sender, step and round, size, and delivery time."""
        return self._frame("conversations")

    @cached_property
    def transaction_summary(self) -> pl.DataFrame:
        """One row per flow group and initial window: transactions started, completed, failed, incomplete at the end,
        and rejected; completion times, whose quantiles have an error of at most 0.4 %.
        """
        return self._frame("transaction_summary")

    @cached_property
    def transaction_times(self) -> pl.DataFrame:
        """Histogram of completion times per flow group and initial window: non-empty bins."""
        return self._frame("transaction_times")

    @cached_property
    def messages(self) -> pl.DataFrame:
        """Messages printed by C controllers with `printk`, in order; only for single runs."""
        return self._frame("messages")

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a table as plain values, NaN as None, without polars, which is slow to import.

        Parameters
        ----------
        name
            Name of the table, see `tables`.

        Returns
        -------
        list of dict
            Column name -> value; empty if the run has no such table.
        """
        columns = self.tables.get(name, {})
        values = [plain(kind, buffer) for kind, buffer in columns.values()]
        return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]

    def _frame(self, name: str) -> pl.DataFrame:
        import polars as pl

        columns = self.tables.get(name)
        if columns is None:
            return pl.DataFrame()
        return pl.DataFrame([series(column, kind, buffer) for column, (kind, buffer) in columns.items()])

    def _write_tables(self, folder: Path) -> None:
        for name in self.tables:
            frame: pl.DataFrame = getattr(self, name) if name in NAMED else self._frame(name)
            if frame.height:
                _files.parquet(frame, folder / f"{name}.parquet")


@dataclass(frozen=True, kw_only=True, eq=False)
class Run(_Result):
    """A finished run.

    Parameters
    ----------
    scenario, seed
        Scenario and seed of the run.
    digest
        Fingerprint of everything that happened; identical for identical runs, with or without recording.
    provenance
        Versions, and the content hash of scenario, seed and engine.
    """

    seed: int
    digest: str

    def summary(self) -> dict[str, Any]:
        """Return plain values, as `ackclock run --json` prints them."""
        return {
            "digest": self.digest,
            "seed": self.seed,
            "engine": self.engine,
            **_summary.tables(self.scenario, self.rows),
        }

    def plot(self, what: str = "cwnd", *, width: str = "double") -> Figure:
        """Draw one column from the run's tables.

        Parameters
        ----------
        what
            "cwnd", "rtt", "goodput", "queue", "in_flight", "rwnd" or "ssthresh", or "TABLE.COLUMN".
        width
            "single" or "double" column of a paper.

        Returns
        -------
        Figure
            Figure that a notebook shows, and that `write` saves to files.

        Raises
        ------
        InputError
            If the run has recorded no such column.
        UnavailableError
            If matplotlib is not installed.
        """
        from ackclock.plot import columns

        return columns.figure(self, what, width=width)

    def report(self, path: str | Path) -> Path:
        """Write the page of `ackclock run --report`, from everything that this run has recorded.

        Parameters
        ----------
        path
            File, ".html".

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        from ackclock import report
        from ackclock.report.run import page

        return report.write(page(self), Path(path), what=f"report {path}")

    def __repr__(self) -> str:
        name = f"{self.scenario.name}, " if self.scenario.name else ""
        return f"<Run {name}seed {self.seed}, digest {self.digest}: {len(self.rows('flows'))} flows>"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: flows, links, and a picture of the samples."""
        groups = self.scenario.flows
        flows = [
            (
                f"{row['flow']} {groups[row['group']].label}",
                rate(row["goodput_bps"]),
                f"{row['sent_packets']:,}",
                f"{row['retransmissions']:,}",
                seconds(row["mean_rtt_s"]),
                seconds(row["completion_s"]),
            )
            for row in self.rows("flows")
        ]
        links = [
            (
                row["name"],
                f"{row['delivered']:,}",
                f"{row['dropped_loss'] + row['dropped_queue']:,}",
                NONE if row["mean_packets"] is None else f"{row['mean_packets']:.1f}",
            )
            for row in self.rows("links")
            if row["arrivals"]
        ]
        tables = ", ".join(name for name in self.tables if self._has_rows(name))
        return (
            _html.heading(f"Run {self.scenario.name}".strip(), f"seed {self.seed}, digest {self.digest}")
            + _html.table(("flow", "goodput", "packets", "retransmitted", "mean RTT", "completed in"), flows)
            + _html.table(("link", "delivered", "dropped", "mean queue"), links)
            + self._picture()
            + f"<p>tables: {tables}</p>"
        )

    def _picture(self) -> str:
        """Return a picture of the first of these quantities that was sampled and has values, or the extra needed to draw it."""
        for what, table in (("cwnd", "samples"), ("goodput", "goodput"), ("queue", "queue_samples")):
            if table in self.tables and self._has_rows(table):
                try:
                    return str(self.plot(what)._repr_html_())
                except UnavailableError as error:
                    return f"<p>{_html.escape(str(error))}</p>"
                except InputError:
                    continue
        return ""

    def _has_rows(self, name: str) -> bool:
        return any(len(buffer) for _, buffer in self.tables[name].values())

    def remembered(self, scenario: Scenario | None = None) -> Scenario:
        """Return a scenario for a subsequent run, with hosts that start with the destination caches left by this run.

        Parameters
        ----------
        scenario
            The scenario to change; None for this run's own.

        Examples
        --------
        >>> from ackclock import Scenario, run
        >>> cold = Scenario.from_dict({
        ...     "duration": "10 s",
        ...     "network": {
        ...         "bottleneck": {
        ...             "rate": "10 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "20 packets"}
        ...         }
        ...     },
        ...     "flows": [{"congestion_control": "reno", "stack": {"metrics_cache": {}}}],
        ... })
        >>> warm = run(cold).remembered()
        >>> warm.flows[0].stack.metrics_cache.ssthresh > 2
        True
        """
        scenario = self.scenario if scenario is None else scenario
        known = {row["destination"]: row for row in self.destinations.to_dicts()}
        flows = [dict(group) for group in scenario.to_dict()["flows"]]
        for i, group in enumerate(scenario.flows):
            cache = group.stack.metrics_cache
            row = None if cache is None else known.get(cache.destination)
            if cache is None or row is None:
                continue
            held: dict[str, Any] = {"destination": cache.destination}
            for key in ("ssthresh", "cwnd"):
                if row[f"{key}_segments"] is not None:
                    held[key] = max(int(row[f"{key}_segments"]), 2)
            flows[i]["stack"] = {**flows[i]["stack"], "metrics_cache": held}
        return type(scenario).from_dict({**scenario.to_dict(), "flows": flows})

    @classmethod
    def read(cls, folder: str | Path) -> Run:
        """Read a run written by `write`.

        Parameters
        ----------
        folder
            Folder of one run.

        Returns
        -------
        Run
            Run with the same tables; tables without rows are missing.

        Raises
        ------
        InputError
            If the folder does not contain a run, or one of its files cannot be read.

        Examples
        --------
        >>> import tempfile
        >>> from ackclock import Scenario, run
        >>> done = run(Scenario.from_dict({"duration": "1 s", "network": {"bottleneck": {"rate": "1 Mbit/s"}}, "flows": [{}]}))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Run.read(done.write(folder)).flows.equals(done.flows)
        True
        """
        import polars as pl

        folder = Path(folder)
        if not _files.is_ours(folder / "run.json"):
            raise InputError(f"{folder}: found no run; allowed: a folder that `ackclock run --out` has written")
        about = json.loads(_files.regular(folder / "run.json", _files.LARGEST_ABOUT))

        def frames() -> Iterator[tuple[str, pl.DataFrame]]:
            for name in TABLES:
                place = folder / f"{name}.parquet"
                if os.path.lexists(place):
                    # polars' reader would block on a pipe
                    data = _files.regular(place, LARGEST)
                    with _readable(place):
                        _check_size(place, data)
                        frame = pl.read_parquet(io.BytesIO(data))
                    yield name, frame

        return cls._of(folder, about, frames())

    @classmethod
    def _of(cls, folder: Path, about: Mapping[str, Any], frames: Iterable[tuple[str, pl.DataFrame]]) -> Run:
        """Return a run from its files; `folder` is used in messages."""
        from ackclock.scenario import Scenario

        try:
            scenario = Scenario.from_dict(about["scenario"])
            seed, digest, provenance = int(about["seed"]), str(about["digest"]), dict(about["provenance"])
            provenance["engine"]
        except ScenarioError as error:
            raise error.read_from(str(folder / "run.json")) from None
        except (KeyError, TypeError, ValueError, ArithmeticError):
            raise InputError(
                f"{folder / 'run.json'}: found no run; allowed: as `ackclock run --out` has written it"
            ) from None
        tables: dict[str, Columns] = {}
        for name, frame in frames:
            with _readable(folder / f"{name}.parquet"):
                tables[name] = columns(frame)
        for name in ("flows", "links"):
            if name not in tables:
                raise InputError(f"{folder}: found no {name}.parquet; allowed: the folder as it was written")
        whole = "kernel" not in provenance  # the kernel does not report all columns
        check_tables(folder, tables, whole=whole, groups=len(scenario.flows))
        return cls(scenario=scenario, seed=seed, digest=digest, tables=tables, provenance=provenance)

    def write(self, folder: str | Path) -> Path:
        """Write every table that has rows as Parquet, and `run.json` with summary, provenance and scenario.

        If any file cannot be written, none is. An earlier run in the same folder is replaced, including tables that
        this run lacks. Files with other names are kept.

        Parameters
        ----------
        folder
            Created if absent.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        InputError
            If the folder is not writable, or contains files that have the names of tables but were not written by a
            run.
        UnavailableError
            If the disk is full.
        """
        folder = Path(folder)
        _files.check_folder(folder, sorted(names()), MARKS, whose="run")
        about = {**self.summary(), "provenance": dict(self.provenance), "scenario": self.scenario.to_dict()}
        with staged(folder, marks=MARKS) as part:
            self._write_tables(part)
            (part / "run.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
            if said := self.rows("messages"):
                lines = [f"[{row['t_s']:12.6f}] {row['text']}\n" for row in said]
                (part / MESSAGES).write_text("".join(lines), encoding="utf-8")
            written = {path.name for path in part.iterdir()}
        _files.remove((folder / name for name in sorted(names() - written)), str(folder))
        return folder


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch(_Result):
    """Finished runs of one scenario under several seeds; every table starts with a column `seed`.

    Parameters
    ----------
    scenario, seeds
        Scenario and seeds of the runs.
    digests
        Digest of each run.
    """

    seeds: Sequence[int]
    digests: Sequence[str]

    def __repr__(self) -> str:
        name = f" {self.scenario.name}" if self.scenario.name else ""
        return f"<Batch{name}: {len(self.seeds)} seeds, tables {', '.join(self.tables)}>"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: means over the seeds for each flow."""
        import polars as pl

        if "flows" not in self.tables:
            return _html.heading(f"Batch {self.scenario.name}".strip(), f"{len(self.seeds)} seeds")
        means = self.flows.group_by("flow", maintain_order=True).agg(
            pl.col("name").first(), pl.col("goodput_bps", "retransmissions", "mean_rtt_s").mean()
        )
        rows = [
            (
                f"{row['flow']} {row['name']}",
                NONE if row["goodput_bps"] is None else rate(row["goodput_bps"]),
                NONE if row["retransmissions"] is None else f"{row['retransmissions']:,.1f}",
                seconds(row["mean_rtt_s"]),
            )
            for row in means.head(20).iter_rows(named=True)
        ]
        return _html.heading(
            f"Batch {self.scenario.name}".strip(), f"means over {len(self.seeds)} seeds"
        ) + _html.table(("flow", "goodput", "retransmitted", "mean RTT"), rows)


def named_groups(table: pl.DataFrame, scenario: Scenario, *, after: str = "number") -> pl.DataFrame:
    """Return the table with a column `name` (the group's) inserted after another column."""
    import polars as pl

    if not {"group", after} <= set(table.columns) or "name" in table.columns:  # a study stores few columns
        return table
    labels = {i: group.label for i, group in enumerate(scenario.flows)}
    name = pl.col("group").replace_strict(labels, default=None, return_dtype=pl.String).alias("name")
    at = table.columns.index(after) + 1
    return table.select(*table.columns[:at], name, *table.columns[at:])


def controlled(flows: pl.DataFrame, scenario: Scenario) -> pl.DataFrame:
    """Return the flows with a column `congestion_control` inserted after their names; null for flows without a controller (UDP)."""
    import polars as pl

    if "name" not in flows.columns or "congestion_control" in flows.columns:
        return flows
    controllers = {i: None if g.is_plain else g.congestion_control for i, g in enumerate(scenario.flows)}
    column = (
        pl.col("group").replace_strict(controllers, default=None, return_dtype=pl.String).alias("congestion_control")
    )
    at = flows.columns.index("name") + 1
    return flows.select(*flows.columns[:at], column, *flows.columns[at:])


def names() -> set[str]:
    """Return the names of all files that a run can write to its folder."""
    return {"run.json", MESSAGES, *(f"{table}.parquet" for table in TABLES)}


@contextmanager
def _readable(place: Path) -> Iterator[None]:
    """Context manager that reports a polars error about an unreadable table in one line."""
    import polars as pl

    try:
        yield
    except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException, KeyError) as error:
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{place}: found no table that can be read ({what}); allowed: as it was written") from None


def _check_size(place: Path, data: bytes) -> None:
    """Refuse a table by the size in its footer, before decoding: repeated rows take almost no space in the file."""
    import polars as pl

    scanned = pl.scan_parquet(io.BytesIO(data))
    rows, wide = scanned.select(pl.len()).collect().item(), len(scanned.collect_schema())
    if rows * wide > MOST_VALUES:
        raise InputError(f"{place}: found {rows:,} rows of {wide} columns; allowed: at most {MOST_VALUES:,} values")


def check_tables(folder: Path, tables: Mapping[str, Columns], *, whole: bool, groups: int) -> None:
    """Refuse tables with column types that differ from a run's, or with a flow group that the scenario lacks. With
    `whole`, also refuse tables that lack a column or a mandatory value.

    Raises
    ------
    InputError
        If a table differs.
    """
    import numpy as np

    from ackclock._results.tables import TYPES
    from ackclock._results.tables import tables as described

    known = described()
    for name, columns_ in tables.items():
        place = folder / f"{name}.parquet"
        for column, (kind, buffer) in columns_.items():
            about = known[name].columns.get(column)
            if about is None:
                continue
            if about.type != TYPES.get(kind):
                raise InputError(f"{place}: found {TYPES.get(kind, kind)} as {column}; allowed: {about.type}")
            missing = kind == "n4" or isinstance(buffer, Missing) or (kind == "str" and None in buffer)
            if kind == "f8" and not isinstance(buffer, Missing):
                values = np.frombuffer(buffer, dtype="<f8")
                missing = bool(np.isnan(values).any())
                if np.isinf(values).any():
                    raise InputError(f"{place}: found an infinite number as {column}; allowed: numbers, or none")
            if missing and not about.null and (whole or column in ("group", "t_s")):
                what = "a text" if kind == "str" else "a number"
                raise InputError(f"{place}: found rows without {column}; allowed: {what} in each")
            if column == "group":
                last = int(np.nan_to_num(series(column, kind, buffer).to_numpy()).max(initial=0))  # nulls are NaN
                if last >= groups:
                    raise InputError(
                        f"{place}: found group {last}; allowed: 0 to {groups - 1}, as the scenario has them"
                    )
        lacks = [column for column in known[name].columns if column not in columns_]
        if lacks and whole:
            raise InputError(f"{place}: found no column {lacks[0]}; allowed: table {name} of a run as it was written")


MARKS = ("run.json",)
"""Files that identify a run folder."""

LARGEST = 2**31
"""Maximum size of a table that is read, bytes."""

MOST_VALUES = 2**28
"""Maximum number of values (rows times columns) in a table that is read."""
