"""What a run leaves: tables, made into polars frames when they are first asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from ackclock.scenario import Scenario

__all__ = ["Batch", "Run"]

Columns = Mapping[str, tuple[str, Any]]
"""Column name -> (type, buffer), as the engine hands tables over."""

_NUMPY = {"f8": "<f8", "i8": "<i8", "u4": "<u4", "u1": "u1", "bool": "?"}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Result:
    """The tables that runs and batches share.

    Times are seconds from the start of the run, windows segments, sizes bytes; null stands for what did not happen.
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
        """One row per flow: goodput, packets, retransmissions, timeouts, RTT, completion."""
        return self._frame("flows")

    @cached_property
    def fetches(self) -> pl.DataFrame:
        """One row per fetch: latencies split into handshake and transfer, and what went wrong on the way."""
        return self._frame("fetches")

    @cached_property
    def recoveries(self) -> pl.DataFrame:
        """One row per episode of fast recovery."""
        return self._frame("recoveries")

    @cached_property
    def links(self) -> pl.DataFrame:
        """One row per link: arrivals, drops, mean and greatest queue."""
        return self._frame("links")

    @property
    def queues(self) -> pl.DataFrame:
        """The same as `links`: each link has one queue."""
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
        """One row per client of a population: what it drew."""
        return self._frame("clients")

    def _frame(self, name: str) -> pl.DataFrame:
        import polars as pl

        columns = self.tables.get(name)
        if columns is None:
            return pl.DataFrame()
        return pl.DataFrame([_series(column, kind, buffer) for column, (kind, buffer) in columns.items()])

    def _write_tables(self, folder: Path) -> None:
        for name in self.tables:
            frame = self._frame(name)
            if frame.height:
                frame.write_parquet(folder / f"{name}.parquet")


@dataclass(frozen=True, kw_only=True, eq=False)
class Run(_Result):
    """A finished run.

    Parameters
    ----------
    scenario, seed
        What was run.
    digest
        Fingerprint of everything that happened; equal for equal runs, with or without recording.
    provenance
        Versions, and the content hash of scenario, seed and engine.
    """

    seed: int
    digest: str

    def summary(self) -> dict[str, Any]:
        """Plain values, as `ackclock run --json` prints them."""
        flows = [{"id": row.pop("flow"), **row} for row in self.flows.to_dicts()]
        queues = [
            {"id": row.pop("link"), "drops": row["dropped_queue"] + row["dropped_loss"], **row}
            for row in self.links.to_dicts()
        ]
        return {"digest": self.digest, "seed": self.seed, "engine": self.engine, "flows": flows, "queues": queues}

    def write(self, folder: str | Path) -> Path:
        """Write every table that has rows as Parquet, and `run.json` with summary, provenance and scenario.

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
            If it cannot be written.
        """
        folder = Path(folder)
        about = {**self.summary(), "provenance": dict(self.provenance), "scenario": self.scenario.to_dict()}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._write_tables(folder)
            (folder / "run.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{folder}: cannot be written ({(error.strerror or str(error)).lower()})") from None
        return folder


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch(_Result):
    """Finished runs of one scenario under several seeds; every table begins with a column `seed`.

    Parameters
    ----------
    scenario, seeds
        What was run.
    digests
        One per seed.
    """

    seeds: Sequence[int]
    digests: Sequence[str]


def _series(name: str, kind: str, buffer: Any) -> pl.Series:
    import numpy as np
    import polars as pl

    if kind == "str":
        return pl.Series(name, buffer, dtype=pl.String)
    series = pl.Series(name, np.frombuffer(buffer, dtype=_NUMPY[kind]))
    return series.fill_nan(None) if kind == "f8" else series
