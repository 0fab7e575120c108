"""TCP captures (pcap, pcapng): their connections, losses and spurious retransmissions of each, and the packets of one
connection.

A retransmission counts as a loss unless a DSACK (RFC 2883), the echo of an older timestamp (RFC 3522), or an earlier ACK shows that it
was spurious. No time threshold is involved.
"""

from __future__ import annotations

import gzip
import ipaddress
import os
import stat
import tempfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock._files import reason
from ackclock._results.columns import series
from ackclock.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from ackclock.formats.measured import Measured

__all__ = ["Capture", "end", "is_capture", "measured", "no_data", "read_capture"]

MAGICS = tuple(bytes.fromhex(magic) for magic in ("0a0d0d0a", "a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1"))
"""Magic bytes of a capture, by format."""

GZIP, ZSTD = bytes.fromhex("1f8b"), bytes.fromhex("28b52ffd")

MOST_UNPACKED = 1 << 33
"""Maximum decompressed size of a compressed capture, bytes. It is unpacked into the temporary folder while being
read.
"""

MOST_MISSED = 0.01
"""Maximum fraction of a connection's data that may be missing from a capture; beyond it, losses are not reliable."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Capture:
    """Contents of a capture.

    Parameters
    ----------
    name
        Name of the file without its suffix.
    connections
        A row for each direction of each connection, in the order of their first packets. `connection` is the number,
        `way` is `client` or `server`: the end that sends. Segments are counted as captured packets: a capture above the
        network card shows several as one. `lost` is `retransmitted` without `spurious`; `reordered` were overtaken on
        the way; `unseen_bytes` were acknowledged but are not in the capture. Times are seconds from the first packet,
        sizes bytes; null if unknown.
    packets
        Packets of the requested connection, and their SACK blocks as separate rows (`kind` `sack` or `dsack`). `seq`
        and `ack` are offsets: 0 is the SYN, 1 the first byte of data.
    facts
        Counts for the file: frames, TCP segments, and what was left out.
    """

    name: str
    connections: pl.DataFrame = field(repr=False)
    packets: pl.DataFrame | None = field(default=None, repr=False)
    facts: dict[str, int] = field(default_factory=dict)

    def with_data(self) -> pl.DataFrame:
        """Directions that carry data, the one with the most data first."""
        return self.connections.filter(self.connections["bytes"] > 0).sort(
            ["bytes", "connection"], descending=[True, False]
        )

    def missed(self, row: dict[str, Any]) -> float:
        """Return the fraction of a direction's data missing from the capture."""
        return int(row["unseen_bytes"]) / max(1, int(row["bytes"]) + int(row["unseen_bytes"]))


def end(address: str, port: int) -> str:
    """Return address and port as one word; IPv6 addresses are in brackets (RFC 3986)."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def is_capture(path: Path) -> bool:
    """Return whether a regular file starts like a capture."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        with path.open("rb") as file:
            begins = file.read(4)
        return begins in MAGICS or (begins[:2] == GZIP and _opened(path))
    except OSError:
        return False


def read_capture(
    path: str | Path,
    *,
    connection: int | None = None,
    anonymise: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Capture:
    """Read a capture of TCP.

    The file is read as a stream. Memory grows with the number of connections and of requested packets, not with the size of
    the file.

    Parameters
    ----------
    path
        A regular file, pcap or pcapng, optionally compressed with gzip. Links may be Ethernet, Linux cooked, PPP, Cisco
        HDLC, 802.11, netfilter's log, loopback or raw IP, with VLANs, PPPoE, MPLS, and tunnels of GRE, IP, VXLAN,
        Geneve or GTP-U.
    connection
        Number of the connection whose packets are returned as well, at most 10 million rows.
    anonymise
        Whether to replace addresses by 10.0.0.1, 10.0.0.2, ... (or fd00::1, ...) in order of appearance, and
        ports of clients as 1, 2, ...
    progress
        Called with the fraction of the file read so far.

    Returns
    -------
    Capture
        Contents of the capture.

    Raises
    ------
    InputError
        If the file is not a capture, is damaged, or has no such connection.
    """
    path = Path(path)
    size = max(1, _size(path))
    with path.open("rb") as file:
        begins = file.read(4)
    if begins == ZSTD or begins[:2] == GZIP:
        with tempfile.TemporaryDirectory(prefix="ackclock-") as folder:
            plain = Path(folder) / path.stem
            _unpack(path, plain, zstd=begins == ZSTD)
            return _read(plain, path, max(1, _size(plain)), connection, anonymise, progress)
    return _read(path, path, size, connection, anonymise, progress)


def no_data(facts: Mapping[str, int]) -> str:
    """Return what was found instead of TCP data, and what is allowed."""
    if facts["short"] and not facts["segments"]:
        return (
            f"found {facts['short']:,} packets without their whole TCP header; allowed: a capture with the headers "
            "(`tcpdump -s 128`)"
        )
    return "found a capture without data of TCP; allowed: one with some"


def _begins_with_json(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip()[:1] in (b"{", b"[", b"\x1e")
    except OSError:
        return False  # the reader says why


def _opened(path: Path) -> bool:
    """Return whether a gzip file contains a capture."""
    try:
        with gzip.open(path) as file:
            return file.read(4) in MAGICS
    except (OSError, EOFError, zlib.error):
        return False


def _unpack(path: Path, to: Path, *, zstd: bool) -> None:
    whole, kind = 0, "zstd" if zstd else "gzip"
    opened: Any = gzip.open
    broken: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error)
    if zstd:
        try:
            library = import_module("compression.zstd")
        except ImportError:  # before Python 3.14
            raise InputError(
                f"{path}: found a file packed with zstd, which Python opens from 3.14 on; allowed: a capture, plain or packed with gzip (`zstd -d` unpacks it)"
            ) from None
        opened, broken = library.open, (*broken, library.ZstdError)
    try:
        with opened(path) as file, to.open("wb") as out:
            while part := file.read(1 << 20):
                whole += len(part)
                if whole > MOST_UNPACKED:
                    raise InputError(
                        f"{path}: found more than {MOST_UNPACKED:,} bytes in it; allowed: at most that many"
                    )
                out.write(part)
    except broken as error:
        raise InputError(
            f"{path}: found a {kind} file that cannot be unpacked ({error}); allowed: a whole one"
        ) from None


def _read(
    path: Path,
    shown: Path,
    size: int,
    connection: int | None,
    anonymise: bool,
    progress: Callable[[float], None] | None,
) -> Capture:
    import polars as pl

    from ackclock import _engine

    tell = None if progress is None else lambda read: progress(min(1.0, read / size))
    if _begins_with_json(path):
        raise InputError(
            f"{shown}: found JSON, as iperf3, qlog and flent write it; allowed: a capture, pcap or pcapng "
            "(`ackclock run --beside FILE` draws such logs beside a run)"
        )
    try:
        made = _engine.read_capture(os.fspath(path), connection, progress=tell)
    except ValueError as error:
        raise InputError(f"{shown}: {error}") from None
    except OSError as error:
        raise InputError(f"{shown}: cannot be read ({reason(error)}); allowed: a capture, pcap or pcapng") from None
    tables: dict[str, pl.DataFrame] = {
        name: pl.DataFrame([series(column, *values) for column, values in columns.items()])
        for name, columns in made.pop("tables").items()
    }
    made.pop("begins_ns")
    connections = tables["connections"]
    count = connections.height // 2
    if connection is not None and not 0 <= connection < count:
        allowed = "0" if count == 1 else f"0 to {count - 1}" if count else "none, the capture holds no TCP"
        raise InputError(f"{shown}: found connection {connection}; allowed: {allowed}")
    if anonymise:
        connections = _without_addresses(connections)
    packets = None if connection is None else tables["packets"]
    return Capture(
        name=shown.stem, connections=connections, packets=packets, facts={k: int(v) for k, v in made.items()}
    )


def _size(path: Path) -> int:
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({reason(error)}); allowed: a capture, pcap or pcapng") from None
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path}: found no plain file; allowed: a capture, pcap or pcapng")
    return found.st_size


def _without_addresses(connections: pl.DataFrame) -> pl.DataFrame:
    """Return the connections with anonymous addresses and client ports, numbered in order of appearance."""
    import polars as pl

    known: dict[str, str] = {}
    for pair in connections.select("from_address", "to_address").rows():
        for address in pair:
            if address not in known:
                six = ":" in address
                base = ipaddress.ip_address("fd00::" if six else "10.0.0.0")
                known[address] = str(base + len(known) + 1)
    number = pl.col("connection") + 1
    client = pl.col("way") == "client"
    return connections.with_columns(
        pl.col("from_address", "to_address").replace(known),
        from_port=pl.when(client).then(number).otherwise("from_port").cast(pl.Int64),
        to_port=pl.when(client).then("to_port").otherwise(number).cast(pl.Int64),
    )


INTERVALS = 200
"""Number of intervals over which a capture's goodput is averaged."""

MOST_SAMPLES = 20_000


def measured(path: Path) -> Measured:
    """Return the direction of a capture that carries the most data, to be drawn beside a run.

    Raises
    ------
    InputError
        If it is not a capture, or has no data.
    """
    import numpy as np
    import polars as pl

    from ackclock.formats.measured import Measured, frames

    first = read_capture(path)
    rows = first.with_data()
    if rows.is_empty():
        raise InputError(no_data(first.facts))
    row = rows.row(0, named=True)
    found = read_capture(path, connection=row["connection"]).packets
    assert found is not None
    server = row["way"] == "server"
    packets = found.filter(~pl.col("kind").is_in(["sack", "dsack"])).with_columns(own=pl.col("from_server") == server)
    sent = pl.when("own").then(pl.col("seq") + pl.col("length")).otherwise(0).cum_max()
    acked = pl.when(~pl.col("own")).then("ack").otherwise(0.0).fill_null(0.0).cum_max()
    again = pl.col("own") & pl.col("kind").is_in(["retransmission", "needless"])
    mss = row["bytes"] / max(1, row["segments"] - row["retransmitted"])
    begin = row["first_data_s"]
    packets = packets.with_columns(
        t_s=pl.col("t_s") - begin,
        acked=acked,
        in_flight=((sent - acked) / mss).clip(lower_bound=0.0),
        retransmissions=again.cum_sum().cast(pl.Float64),
    ).filter(pl.col("t_s") >= 0)
    thin = packets.gather_every(-(-packets.height // MOST_SAMPLES)).select("t_s", "in_flight", "retransmissions")
    edges = np.linspace(0.0, max(float(packets["t_s"][-1]), 1e-6), INTERVALS + 1)
    at = np.searchsorted(packets["t_s"].to_numpy(), edges, side="right") - 1
    reached = packets["acked"].to_numpy()[at]
    rate = np.diff(reached) * 8 / (edges[1] - edges[0])
    samples, goodput = frames(
        [{"flow": 0, **one} for one in thin.to_dicts()],
        [{"t_s": float(t), "flow": 0, "goodput_bps": float(bps)} for t, bps in zip(edges[1:], rate, strict=True)],
    )
    name = f"{row['way']} {row['connection']}"
    return Measured(name=path.stem, kind="capture", flows=(name,), samples=samples, goodput=goodput)
