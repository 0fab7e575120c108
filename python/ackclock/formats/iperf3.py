"""Reads and writes `iperf3 -J`: a JSON object with `start`, `intervals` and `end`; since iperf3 3.17 (`--json-stream`)
also with one line for each.

A stream's interval has `bytes`, `bits_per_second` and, at a sender over TCP, `retransmits`, `snd_cwnd` (bytes), `rtt` and `rttvar`
(microseconds) of the socket at its end. The congestion window is converted to segments of `start.tcp_mss_default`.

Differs: iperf3 counts what the application wrote into the socket, so its first intervals include a full send buffer; the
files written here count acknowledged bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError, quote
from ackclock.formats.measured import DECODER, Measured, frames

if TYPE_CHECKING:
    from ackclock._results.result import Run

__all__ = ["read", "result", "whole"]

MSS = 1448
"""Default payload of a segment, bytes: Ethernet, with timestamps."""

BLOCK = 131_072
"""iperf3's write size over TCP, bytes."""


def read(text: str, *, name: str) -> Measured:
    """Read a result, complete or as a stream of lines."""
    told = whole(text)
    if "error" in told and not told.get("intervals"):
        raise InputError(f"found iperf3's error {quote(str(told['error']))}; allowed: a test that ran")
    start = told.get("start", {})
    mss = int(start.get("tcp_mss_default") or start.get("tcp_mss") or MSS)
    control = (
        told.get("end", {}).get("sender_tcp_congestion") or start.get("test_start", {}).get("protocol") or "iperf3"
    )
    numbers: dict[int, int] = {}
    samples: list[dict[str, Any]] = []
    goodput: list[dict[str, Any]] = []
    sent_again: dict[int, int] = {}
    for interval in told.get("intervals", []):
        for stream in interval["streams"]:
            if stream.get("omitted"):
                continue
            flow = numbers.setdefault(int(stream["socket"]), len(numbers))
            end = float(stream["end"])
            if not float(stream.get("start", 0.0)) <= end:
                raise InputError(
                    f"found an interval from {quote(stream['start'])} to {quote(stream['end'])}; allowed: one that ends after it began"
                )
            goodput.append({"t_s": end, "flow": flow, "goodput_bps": float(stream["bits_per_second"])})
            if "snd_cwnd" in stream or "rtt" in stream:
                sent_again[flow] = sent_again.get(flow, 0) + int(stream.get("retransmits", 0))
                samples.append({"t_s": end, "flow": flow, "retransmissions": sent_again[flow], **_socket(stream, mss)})
    if not goodput:
        raise InputError(
            "found no intervals; allowed: a result of iperf3 -J with an interval (-i) shorter than the test"
        )
    made = frames(samples, goodput)
    flows = tuple(control if len(numbers) == 1 else f"{i} {control}" for i in range(len(numbers)))
    return Measured(name=name, kind="iperf3", flows=flows, samples=made[0], goodput=made[1])


def _socket(stream: Mapping[str, Any], mss: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if stream.get("snd_cwnd"):
        found["cwnd"] = float(stream["snd_cwnd"]) / mss
    if stream.get("rtt"):
        found["srtt_s"] = float(stream["rtt"]) * 1e-6
    return found


def whole(text: str) -> dict[str, Any]:
    """Return the complete result, assembled from events if there is one per line."""
    try:
        told = DECODER.decode(text)
    except InputError:
        raise
    except ValueError:
        told = None
    if isinstance(told, dict) and "event" not in told:
        return told
    whole: dict[str, Any] = {"intervals": []}
    for line in text.splitlines():
        if not line.strip():
            continue
        event = DECODER.decode(line)
        if event["event"] == "interval":
            whole["intervals"].append(event["data"])
        else:
            whole[event["event"]] = event["data"]
    return whole


def result(run: Run, group: int, *, mss: int) -> dict[str, Any]:
    """Return a group of TCP flows as an iperf3 result, one stream per flow.

    Parameters
    ----------
    run
        Run that has recorded goodput; RTT and window are included if it has recorded samples as well.
    group
        Number of the group.
    mss
        Payload of a full segment, bytes.
    """
    spec = run.scenario.flows[group]
    flows = [row for row in run.rows("flows") if row["group"] == group]
    streams = {row["flow"]: _intervals(run, row, mss) for row in flows}
    sockets = {row["flow"]: 5 + 2 * i for i, row in enumerate(flows)}
    rounds = max((len(rows) for rows in streams.values()), default=0)
    intervals = []
    for i in range(rounds):
        there = [{"socket": sockets[flow], **rows[i]} for flow, rows in streams.items() if i < len(rows)]
        intervals.append({"streams": there, "sum": _sum(there)})
    ends = [_end(sockets[row["flow"]], row, streams[row["flow"]]) for row in flows]
    longest = max((end["sender"]["end"] for end in ends), default=0.0)
    total = {"start": 0, "end": longest, "seconds": longest, "bytes": sum(end["sender"]["bytes"] for end in ends)}
    total["bits_per_second"] = total["bytes"] * 8 / longest if longest else 0.0
    again = sum(end["sender"]["retransmits"] for end in ends)
    connected = [
        {
            "socket": sockets[row["flow"]],
            "local_host": f"10.0.{row['flow'] // 256}.{row['flow'] % 256 + 1}",
            "local_port": 5001,
        }
        | {"remote_host": f"10.1.{row['flow'] // 256}.{row['flow'] % 256 + 1}", "remote_port": 5201}
        for row in flows
    ]
    return {
        "start": {
            "connected": connected,
            "version": f"ackclock {run.engine}",
            "system_info": f"simulated: {run.scenario.name or 'scenario'}, seed {run.seed}, digest {run.digest}",
            "timestamp": {"time": "Thu, 01 Jan 1970 00:00:00 GMT", "timesecs": 0},
            "tcp_mss_default": mss,
            "test_start": {
                "protocol": "TCP", "num_streams": len(flows), "blksize": BLOCK, "omit": 0, "duration": longest, "bytes": 0,
                "blocks": 0, "reverse": 0, "tos": 0, "target_bitrate": 0,
            },
        },
        "intervals": intervals,
        "end": {
            "streams": ends,
            "sum_sent": {**total, "retransmits": again, "sender": True},
            "sum_received": {**total, "sender": True},
            "sender_tcp_congestion": spec.label,
        },
    }  # fmt: skip


def _intervals(run: Run, flow: Mapping[str, Any], mss: int) -> list[dict[str, Any]]:
    """Return one flow's values in each interval, from its start. Null values are omitted, as iperf3 omits unknown
    ones.
    """
    number, begin = flow["flow"], flow["start_s"]
    samples = [row for row in run.rows("samples") if row["flow"] == number]
    times = [row["t_s"] for row in samples]
    made: list[dict[str, Any]] = []
    last, sent_again = begin, 0
    for row in run.rows("goodput"):
        if row["flow"] != number or row["t_s"] <= begin:
            continue
        seconds = row["t_s"] - last
        at = bisect_right(times, row["t_s"] + 1e-9) - 1
        now = samples[at] if at >= 0 else None
        told: dict[str, Any] = {
            "start": last - begin,
            "end": row["t_s"] - begin,
            "seconds": seconds,
            "bytes": round(row["goodput_bps"] * seconds / 8),
            "bits_per_second": row["goodput_bps"],
        }
        if now is not None:
            told |= {"retransmits": now["retransmissions"] - sent_again, "snd_cwnd": now["cwnd"] * mss}
            if now["srtt_s"] is not None:
                told["rtt"] = round(now["srtt_s"] * 1e6)
            sent_again = now["retransmissions"]
        made.append({**told, "omitted": False, "sender": True})
        last = row["t_s"]
    return made


def _sum(streams: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first = streams[0]
    total: dict[str, Any] = {key: first[key] for key in ("start", "end", "seconds")}
    total["bytes"] = sum(stream["bytes"] for stream in streams)
    total["bits_per_second"] = sum(stream["bits_per_second"] for stream in streams)
    total["retransmits"] = sum(stream.get("retransmits", 0) for stream in streams)
    return {**total, "omitted": False, "sender": True}


def _end(socket: int, flow: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    seconds = flow["stop_s"] - flow["start_s"]
    both = {
        "socket": socket,
        "start": 0,
        "end": seconds,
        "seconds": seconds,
        "bytes": flow["bytes_acked"],
        "bits_per_second": flow["goodput_bps"] or 0.0,
    }
    sender = {**both, "retransmits": flow["retransmissions"]}
    windows = [row["snd_cwnd"] for row in rows if "snd_cwnd" in row]
    if windows:
        sender["max_snd_cwnd"] = max(windows)
    # as in iperf3 all three are of the smoothed RTTs of the intervals, not of all samples
    if rtts := [row["rtt"] for row in rows if "rtt" in row]:
        sender |= {"max_rtt": max(rtts), "min_rtt": min(rtts), "mean_rtt": sum(rtts) // len(rtts)}
    return {"sender": {**sender, "sender": True}, "receiver": {**both, "sender": True}}
