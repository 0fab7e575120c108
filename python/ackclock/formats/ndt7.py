"""Reads rows of M-Lab's NDT7: the server kernel's values during a download or an upload.

JSON: the archived result, `{"Download": {"ServerMeasurements": [{"TCPInfo": {...}}, ...]}}`, a row of `ndt.ndt7` as BigQuery exports it, the
same nested in `raw`, or a client's measurements, one object per line. `ElapsedTime` is in us from the beginning of
the test; `RTT`, `BusyTime`,
`RWndLimited` and `SndBufLimited` are in us, `SndCwnd` in segments. Source: the specification of ndt7, and `TCPInfo`
of m-lab/tcp-info.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ackclock.errors import InputError
from ackclock.formats.measured import Measured, frames

__all__ = ["is_ndt7", "read"]

WAYS = ("Download", "Upload")

INFINITE = 0x7FFF_FFFF
"""Value of the kernel's ssthresh before the first reduction."""

CLOCKS = {"BusyTime": "busy_s", "RWndLimited": "rwnd_limited_s", "SndBufLimited": "sndbuf_limited_s"}


def is_ndt7(value: Mapping[str, Any]) -> bool:
    """Return whether an object is a row of measurements or a single measurement."""
    inner = value.get("raw") if isinstance(value.get("raw"), Mapping) else value
    assert inner is not None
    return any(isinstance(inner.get(way), Mapping) and "ServerMeasurements" in inner[way] for way in WAYS) or (
        isinstance(value.get("TCPInfo"), Mapping) and "ElapsedTime" in value["TCPInfo"]
    )


def read(values: Iterable[Mapping[str, Any]], *, name: str) -> Measured:
    """Return the tests in the file.

    Parameters
    ----------
    values
        Objects in the file: rows, or the measurements of one test.
    name
        Name in figures.

    Raises
    ------
    InputError
        If none contains kernel values.
    """
    tests: list[tuple[str, list[Mapping[str, Any]]]] = []
    loose: list[Mapping[str, Any]] = []
    for value in values:
        if isinstance(value.get("TCPInfo"), Mapping):
            loose.append(value)
            continue
        inner = value.get("raw") if isinstance(value.get("raw"), Mapping) else value
        assert inner is not None
        for way in WAYS:
            if isinstance(inner.get(way), Mapping):
                tests.append((way.lower(), inner[way].get("ServerMeasurements") or []))
    if loose:
        tests.append(("test", loose))
    samples: list[dict[str, Any]] = []
    goodput: list[dict[str, Any]] = []
    kept: list[str] = []
    for way, measurements in tests:
        looks = [one["TCPInfo"] for one in measurements if isinstance(one.get("TCPInfo"), Mapping)]
        looks = [look for look in looks if "ElapsedTime" in look]
        if not looks:
            continue
        flow = len(kept)
        kept.append(way)
        carried = "BytesReceived" if way == "upload" else "BytesAcked"
        before: tuple[float, float] | None = None
        for look in sorted(looks, key=lambda one: float(one["ElapsedTime"])):
            t = float(look["ElapsedTime"]) * 1e-6
            samples.append(_sample(look) | {"t_s": t, "flow": flow})
            bytes_so_far = float(look.get(carried) or 0)
            if before is not None and t > before[0]:
                bits = 8 * max(bytes_so_far - before[1], 0.0)
                goodput.append({"t_s": t, "flow": flow, "goodput_bps": bits / (t - before[0])})
            before = (t, bytes_so_far)
    if not kept:
        raise InputError("found a row of NDT7 without what the server's kernel said (TCPInfo); allowed: one with it")
    flows = tuple(kept if len(kept) == 1 else [f"{i} {way}" for i, way in enumerate(kept)])
    made = frames(samples, goodput)
    return Measured(name=name, kind="ndt7", flows=flows, samples=made[0], goodput=made[1])


def _sample(look: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, column in CLOCKS.items():
        if look.get(name) is not None:
            made[column] = float(look[name]) * 1e-6
    if look.get("SndCwnd") is not None:
        made["cwnd"] = float(look["SndCwnd"])
    if look.get("SndSsThresh") is not None and float(look["SndSsThresh"]) < INFINITE:
        made["ssthresh"] = float(look["SndSsThresh"])
    if look.get("RTT") is not None:
        made["srtt_s"] = float(look["RTT"]) * 1e-6
    if look.get("TotalRetrans") is not None:
        made["retransmissions"] = float(look["TotalRetrans"])
    if look.get("Unacked") is not None:
        gone = float(look.get("Sacked") or 0) + float(look.get("Lost") or 0) - float(look.get("Retrans") or 0)
        made["in_flight"] = max(float(look["Unacked"]) - gone, 0.0)
    if look.get("SndWnd"):
        made["rwnd"] = float(look["SndWnd"])
    return made
