"""A transfer logged by a sender's `iperf3 -J`: the intervals, and the final totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ackclock.errors import InputError, quote

__all__ = ["Interval", "Transfer", "transfer"]

MSS = 1448
"""Payload of a full segment on Ethernet, bytes, used if the log does not state it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """One interval, over all streams: bytes, RTTs (none if the log is the receiver's), windows, retransmitted segments."""

    seconds: float
    bytes: int
    rtts: tuple[float, ...]
    cwnd: int
    again: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Transfer:
    """A complete test, including initial intervals that its totals omit (`-O`); `begins` is in s since 1970."""

    intervals: tuple[Interval, ...]
    mss: int
    flows: int
    control: str
    bytes: int
    seconds: float
    again: int | None
    least_rtt: float | None
    begins: float | None


def transfer(text: str) -> Transfer:
    """Read a result of `iperf3 -J` over TCP.

    Raises
    ------
    InputError
        If it is not such a result, or the test was bidirectional or rate-limited.
    """
    from ackclock.formats import iperf3

    try:
        return _read(iperf3.whole(text))
    except InputError:
        raise
    except (LookupError, TypeError, AttributeError, ArithmeticError, ValueError) as error:
        raise InputError(f"found no result of iperf3 ({type(error).__name__}); allowed: a whole one") from None


def _read(told: Mapping[str, Any]) -> Transfer:
    if "error" in told:
        raise InputError(f"found iperf3's error {quote(str(told['error']))}; allowed: a test that ran")
    start, end = told["start"], told["end"]
    test = start.get("test_start", {})
    if (protocol := str(test.get("protocol", "TCP")).upper()) != "TCP":
        raise InputError(f"found a test over {quote(protocol)}; allowed: one over TCP")
    if test.get("target_bitrate"):
        raise InputError("found a test at a rate of its own (-b); allowed: one as fast as the path allows")
    if test.get("bidir") or "sum_bidir_reverse" in end:
        raise InputError("found a test of both ways at once; allowed: one way")
    sent, received = end["sum_sent"], end.get("sum_received") or end["sum_sent"]
    made, before = [], 0  # with -O the totals omit the first intervals, which the model has to include
    for one in told["intervals"]:
        streams = one["streams"]
        if streams:
            before += bool(streams[0].get("omitted"))
            made.append(
                Interval(
                    seconds=_in(streams[0]["seconds"], "seconds", 1e-6, 1e6),
                    bytes=int(sum(_in(of["bytes"], "bytes", 0, 1e15) for of in streams)),
                    rtts=tuple(_in(of["rtt"], "rtt", 0, 3.6e9) / 1e6 for of in streams if of.get("rtt")),
                    cwnd=int(sum(_in(of.get("snd_cwnd", 0), "snd_cwnd", 0, 1e12) for of in streams)),
                    again=int(sum(_in(of.get("retransmits", 0), "retransmits", 0, 1e12) for of in streams)),
                )
            )
    carried, took = int(_in(received["bytes"], "bytes", 0, 1e16)), _in(received["seconds"], "seconds", 0, 1e6)
    if not made or not took or carried < MSS:
        raise InputError("found a test that carried nothing; allowed: one with intervals and bytes")
    left = made[:before]
    carried, took = carried + sum(one.bytes for one in left), took + sum(one.seconds for one in left)
    again = (
        None
        if sent.get("retransmits") is None
        else int(_in(sent["retransmits"], "retransmits", 0, 1e12)) + sum(one.again for one in left)
    )
    least = [
        _in(of["sender"]["min_rtt"], "min_rtt", 0, 3.6e9) / 1e6
        for of in end.get("streams", ())
        if of["sender"].get("min_rtt")
    ]
    return Transfer(
        intervals=tuple(made),
        mss=int(_in(start.get("tcp_mss_default") or start.get("tcp_mss") or MSS, "tcp_mss_default", 88, 65483)),
        flows=int(_in(test.get("num_streams") or len(end.get("streams", ())) or 1, "num_streams", 1, 1000)),
        control=str(end.get("sender_tcp_congestion") or ""),
        bytes=carried,
        seconds=took,
        again=again,
        least_rtt=min(least, default=None),
        begins=None if "timesecs" not in start.get("timestamp", {}) else float(start["timestamp"]["timesecs"]),
    )


def _in(value: Any, name: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InputError(f"found {quote(value)} as {name}; allowed: a number from {least:g} to {most:g}")
    return float(value)
