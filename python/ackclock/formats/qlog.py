"""qlog: events of a transport as JSON, which can be drawn with qvis (https://qvis.quictools.info).

Files are written as qlog 0.3, defined by draft-ietf-quic-qlog-main-schema-02 and draft-ietf-quic-qlog-quic-events-02, because qvis
reads that version; the keys of later drafts (`file_schema`, `serialization_format`) are added. A file whose name ends in `.sqlog`
contains one flow as JSON-SEQ (RFC 7464: a record separator before each object); any other contains all flows as traces of one JSON
object.

| event | source |
|---|---|
| `transport:packet_sent` | a segment sent; packets are numbered as they are sent, as in QUIC, so a retransmission has a new number |
| `transport:packet_received` | an ACK: `acked_ranges` has the numbers that it and its SACK blocks acknowledge for the first time |
| `recovery:metrics_updated` | after every ACK: changed values of window, data in flight and ssthresh (bytes), RTTs (ms) |
| `recovery:congestion_state_updated` | TCP's states by their kernel names: Open, Disorder, CWR, Recovery, Loss |
| `recovery:packet_lost` | reported when the segment is retransmitted, for its previous transmission |
| `recovery:parameters_set` | the segment's payload, the initial window |

Event names and fields follow the drafts, but have not been checked against their text.

A flow of a foreign transport (quinn, a library) has fewer events: packets with the bytes and numbers of their datagrams, ACKs without ranges,
lost packets without numbers, and metrics. These stacks report no more to the simulator.

Differs: TCP has no packet types; "1RTT" is written where qvis requires one.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ackclock._results.columns import of_senders
from ackclock.errors import InputError, quote
from ackclock.formats.measured import DECODER, Measured, frames

if TYPE_CHECKING:
    from ackclock._results.result import Run

__all__ = ["contained", "read", "sequence"]

SEPARATOR = "\x1e"

DATAGRAM = 1200
"""Default QUIC packet size, bytes (RFC 9000 §14)."""

FOREIGN = {"quinn": "QUIC"}
"""Prefix of a foreign stack's controllers -> its protocol. Libraries do not report theirs."""

_METRICS = ("min_rtt", "smoothed_rtt", "rtt_variance", "congestion_window", "bytes_in_flight", "ssthresh")


def contained(run: Run, *, mss: Callable[[int], int]) -> dict[str, Any]:
    """Return all flows as the traces of one qlog object.

    Parameters
    ----------
    run
        Run that has recorded traces (every event), or samples (metrics alone).
    mss
        Group number -> payload of a full segment, bytes.
    """
    return {
        "qlog_version": "0.3",
        "qlog_format": "JSON",
        "file_schema": "urn:ietf:params:qlog:file:contained",
        "serialization_format": "application/qlog+json",
        **_about(run),
        "traces": [
            {**_trace(run, flow), "events": list(_events(run, flow, mss(flow["group"])))} for flow in _flows(run)
        ],
    }


def sequence(run: Run, *, mss: Callable[[int], int]) -> list[str]:
    """Return the only flow of a run as records of JSON-SEQ: a trace header, then one event each."""
    flows = _flows(run)
    if len(flows) != 1:
        raise InputError(f"found {len(flows)} flows; allowed: one in JSON-SEQ (.sqlog), or a name that ends in .qlog")
    head = {
        "qlog_version": "0.3",
        "qlog_format": "JSON-SEQ",
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        **_about(run),
        "trace": _trace(run, flows[0]),
    }
    return [SEPARATOR + json.dumps(record) + "\n" for record in (head, *_events(run, flows[0], mss(flows[0]["group"])))]


def _about(run: Run) -> dict[str, Any]:
    title = run.scenario.name or "ackclock"
    return {"title": title, "description": f"seed {run.seed}, digest {run.digest}, engine {run.engine}"}


def _flows(run: Run) -> list[dict[str, Any]]:
    table = run.acks if run.acks.height else run.samples
    if not table.height:
        raise InputError(
            "found neither a trace nor samples; allowed: a run with --trace flow or all, or record.sample_interval"
        )
    there = set(table["flow"].unique().to_list())
    return [row for row in run.rows("flows") if row["flow"] in there]


def _trace(run: Run, flow: Mapping[str, Any]) -> dict[str, Any]:
    group = run.scenario.flows[flow["group"]]
    speaks = _foreign(group.congestion_control)
    opens = speaks is not None and group.workload.kind in ("bulk", "transfer")
    return {
        "title": f"{flow['flow']} {group.label}",
        "vantage_point": {"name": "sender", "type": "client" if opens else "server"},
        "common_fields": {
            "group_id": f"flow-{flow['flow']}",
            **({} if speaks == "" else {"protocol_type": [speaks or "TCP"]}),
            "time_format": "relative",
            "reference_time": 0,
        },
    }


def _foreign(controller: str) -> str | None:
    """Return the protocol of the flow's foreign stack; "" for a library, None for a TCP flow."""
    stack, apart, _ = controller.partition(":")
    if not apart or stack not in (*FOREIGN, "stack"):
        return None
    return FOREIGN.get(stack, "")


def _event(t_s: float, name: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {"time": round(t_s * 1e3, 6), "name": name, "data": dict(data)}


def _events(run: Run, flow: Mapping[str, Any], mss: int) -> Iterator[dict[str, Any]]:
    import polars as pl

    number = flow["flow"]
    begin = flow["start_s"]
    group = run.scenario.flows[flow["group"]]
    if _foreign(group.congestion_control) is not None:
        yield from _of_foreign(run, flow, mss)
        return
    first = group.stack.initial_window or 10
    parameters = {"max_datagram_size": mss, "initial_congestion_window": first * mss}
    yield _event(begin, "recovery:parameters_set", parameters)
    if run.acks.height:
        mine = of_senders(run.acks).filter(pl.col("flow") == number)
        yield from _Sender(mss).events(mine.iter_rows(named=True))
        return
    metrics = _Metrics()
    for row in run.samples.filter(pl.col("flow") == number).iter_rows(named=True):
        yield from metrics.changed(row["t_s"], _sampled(row, mss))
        yield from metrics.state(row["t_s"], row["ca_state"])


def _of_foreign(run: Run, flow: Mapping[str, Any], size: int) -> Iterator[dict[str, Any]]:
    """Return the events of a foreign stack, whose tables count in full datagrams of `size` bytes."""
    import polars as pl

    yield _event(flow["start_s"], "recovery:parameters_set", {"max_datagram_size": size})
    metrics = _Metrics()
    if not run.acks.height:
        for row in run.samples.filter(pl.col("flow") == flow["flow"]).iter_rows(named=True):
            yield from metrics.changed(row["t_s"], _sampled(row, size))
        return
    for row in run.acks.filter(pl.col("flow") == flow["flow"]).iter_rows(named=True):
        for _ in range(row["newly_lost"]):  # in the row of a packet: losses that a timer declared before it
            yield _event(row["t_s"], "recovery:packet_lost", {})
        if row["event"] == "send":
            data = {"header": _header(row["seq"] - 1), "raw": {"length": row["len"]}}
            yield _event(row["t_s"], "transport:packet_sent", data)
            continue
        frame = {"frame_type": "ack"}
        yield _event(row["t_s"], "transport:packet_received", {"header": _header(row["ack_no"]), "frames": [frame]})
        rtts = {"min_rtt": row["min_rtt_s"], "smoothed_rtt": row["srtt_s"]}
        values = {key: None if value is None else value * 1e3 for key, value in rtts.items()}
        values |= _windows(row, "pipe", size)
        yield from metrics.changed(row["t_s"], values)


def _windows(row: Mapping[str, Any], in_flight: str, segment: float) -> dict[str, Any]:
    """Return windows in bytes; values that a kernel does not report in this row are None."""
    named = {"congestion_window": "cwnd", "bytes_in_flight": in_flight, "ssthresh": "ssthresh"}
    return {name: None if row[column] is None else row[column] * segment for name, column in named.items()}


def _sampled(row: Mapping[str, Any], mss: int) -> dict[str, Any]:
    return {
        "smoothed_rtt": None if row["srtt_s"] is None else row["srtt_s"] * 1e3,
        **_windows(row, "in_flight", mss),
    }


class _Metrics:
    """Values reported last. Only changes are reported, as the drafts require."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}
        self.now = "Open"

    def changed(self, t_s: float, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        news = {
            key: round(value, 6) for key, value in values.items() if value is not None and self.told.get(key) != value
        }
        if news:
            self.told |= {key: values[key] for key in news}
            yield _event(t_s, "recovery:metrics_updated", news)

    def state(self, t_s: float, state: str) -> Iterator[dict[str, Any]]:
        if state != self.now:
            yield _event(t_s, "recovery:congestion_state_updated", {"old": self.now, "new": state})
            self.now = state


class _Sender:
    """Numbers a sender's packets along its trace, and derives the events."""

    def __init__(self, mss: int) -> None:
        self.mss = mss
        self.metrics = _Metrics()
        self.next = 0
        self.latest: dict[int, tuple[int, int]] = {}
        """Outstanding segments: start offset -> end offset, number of the latest transmission."""
        self.sacked: dict[int, int] = {}
        """SACKed segments: start offset -> end offset."""
        self.reached: dict[int, int] = {}
        """Left edge of a SACK block -> end of the part already processed."""

    def events(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        for row in rows:
            if row["event"] in ("send", "rtx"):
                yield from self._sent(row)
            elif row["event"] == "ack":
                yield from self._acked(row)
            yield from self.metrics.state(row["t_s"], row["ca_state"])

    def _sent(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        before = self.latest.get(row["seq"])
        if row["event"] == "rtx" and before is not None:
            why = "pto_expired" if row["ca_state"] == "Loss" else "reordering_threshold"
            yield _event(row["t_s"], "recovery:packet_lost", {"header": _header(before[1]), "trigger": why})
        raw = {"length": row["len"] + 40, "payload_length": row["len"]}
        frame = {"frame_type": "stream", "stream_id": 0, "offset": row["seq"], "length": row["len"]}
        yield _event(row["t_s"], "transport:packet_sent", {"header": _header(self.next), "raw": raw, "frames": [frame]})
        self.latest[row["seq"]] = (row["seq"] + row["len"], self.next)
        self.next += 1

    def _acked(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        numbers = sorted(self._newly(row))
        if numbers:
            frame = {"frame_type": "ack", "ack_delay": 0, "acked_ranges": _ranges(numbers)}
            data = {"header": _header(row["ack_no"]), "raw": {"length": 40}, "frames": [frame]}
            yield _event(row["t_s"], "transport:packet_received", data)
        mss = self.mss
        rtts = {"min_rtt": row["min_rtt_s"], "smoothed_rtt": row["srtt_s"], "rtt_variance": row["rttvar_s"]}
        values = {key: None if value is None else value * 1e3 for key, value in rtts.items()}
        values |= _windows(row, "pipe", mss)
        yield from self.metrics.changed(row["t_s"], values)

    def _newly(self, row: Mapping[str, Any]) -> Iterator[int]:
        """Yield the numbers of the packets that this ACK is the first to acknowledge. Segments are sent in order, so
        the oldest come first.
        """
        done = []
        for start, (end, _) in self.latest.items():
            if end > row["seq"]:
                break
            done.append(start)
        for i in range(min(row["sack_blocks"], 3)):
            low, high = row[f"sack{i}_start"], row[f"sack{i}_end"]
            if high > row["seq"]:
                done += self._within(low, high)
        for start in done:
            yield self.latest.pop(start)[1]

    def _within(self, low: int, high: int) -> list[int]:
        found = []
        start = self.reached.get(low, low)
        while start < high and (start in self.latest or start in self.sacked):
            if start in self.latest:
                found.append(start)
                self.sacked[start] = self.latest[start][0]
            start = self.sacked[start]
        self.reached[low] = start
        return found


def _header(number: int) -> dict[str, Any]:
    return {"packet_type": "1RTT", "packet_number": number}


def _ranges(numbers: list[int]) -> list[list[int]]:
    """Return the ranges of consecutive numbers as [first, last]."""
    made: list[list[int]] = []
    for number in numbers:
        if made and number == made[-1][1] + 1:
            made[-1][1] = number
        else:
            made.append([number, number])
    return made


def read(text: str, *, name: str) -> Measured:
    """Read the recovery metrics of every trace in a file. Windows are converted from bytes to packets of `max_datagram_size`."""
    traces = list(_traces(text))
    labels: list[str] = []
    samples: list[dict[str, Any]] = []
    goodput: list[dict[str, Any]] = []
    for trace in traces:
        rows, rates = _metrics_of(trace, len(labels))
        if rows:
            labels.append(str(trace.get("title") or trace.get("vantage_point", {}).get("name") or "flow"))
            samples += rows
            goodput += rates
    if not samples:
        raise InputError(
            f"found {len(traces)} traces without recovery:metrics_updated; allowed: a qlog of a sender that has them"
        )
    made = frames(samples, goodput)
    flows = (
        labels
        if len(labels) == 1
        else [label if label[:1].isdigit() else f"{i} {label}" for i, label in enumerate(labels)]
    )
    return Measured(name=name, kind="qlog", flows=tuple(flows), samples=made[0], goodput=made[1])


def _traces(text: str) -> Iterator[Mapping[str, Any]]:
    if text.startswith(SEPARATOR):
        yield from _sequence([DECODER.decode(record.strip()) for record in text.split(SEPARATOR)[1:]])
        return
    whole, ends = DECODER.raw_decode(text.strip())
    if text.strip()[ends:].strip():  # one object per line (NDJSON), as in drafts, or JSON-SEQ without its separators
        yield from _sequence([DECODER.decode(line) for line in text.splitlines() if line.strip()])
        return
    if isinstance(whole, list):
        whole = {"traces": whole}
    if "traces" not in whole:
        raise InputError(
            f"found {', '.join(map(quote, list(whole)[:4]))}; allowed: an object with traces (qlog), or intervals (iperf3)"
        )
    yield from (_named(trace) for trace in whole["traces"] if "events" in trace)


def _sequence(records: list[Any]) -> Iterator[Mapping[str, Any]]:
    """Read a file with a header and one event per record."""
    head, *events = records
    yield _named({**head.get("trace", {}), "events": events})


RENAMED = {"cwnd": "congestion_window", "metric_update": "metrics_updated", "latest_rtt": "latest_rtt"}
"""Names in drafts 00 and 01 -> current names."""

UNITS_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def _named(trace: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a trace with named events and times in ms: in drafts 00 and 01, events are arrays described by
    `event_fields`.
    """
    events = trace["events"]
    fields = [str(one).lower() for one in trace.get("event_fields", ())]
    if not any(isinstance(event, list) for event in events):
        return trace
    if not fields:
        raise InputError(
            "found events as arrays without event_fields; allowed: both (qlog draft 00 and 01), or events as objects"
        )
    unit = UNITS_MS.get(str(trace.get("configuration", {}).get("time_units", "ms")), 1.0)
    common = trace.get("common_fields", {})
    made: list[dict[str, Any]] = []
    at = 0.0
    for event in events:
        told = {**common, **dict(zip(fields, event, strict=False))}
        if "delta_time" in fields:
            at += float(told["delta_time"])
        else:
            at = float(told.get("relative_time", told.get("time", 0.0)))
        kind = str(told.get("event", told.get("event_type", ""))).lower()
        data = told.get("data", {})
        data = {RENAMED.get(key, key): value for key, value in data.items()} if isinstance(data, Mapping) else {}
        for key in ("min_rtt", "smoothed_rtt", "rtt_variance"):
            if key in data:
                data[key] = float(data[key]) * unit
        category = str(told.get("category", "")).lower()
        made.append({"time": at * unit, "name": f"{category}:{RENAMED.get(kind, kind)}", "data": data})
    return {**trace, "events": made}


def _metrics_of(trace: Mapping[str, Any], flow: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    size = DATAGRAM
    zero: float | None = None
    last: dict[str, Any] = {}
    lost = 0
    rows: list[dict[str, Any]] = []
    for event in trace["events"]:
        kind = str(event["name"]).rpartition(":")[2].removeprefix("recovery_")
        data = event.get("data", {})
        zero = float(event["time"]) if zero is None else zero
        if kind == "parameters_set":
            size = int(data.get("max_datagram_size") or data.get("max_udp_payload_size") or size)
        lost += kind == "packet_lost"
        if kind == "metrics_updated":
            last |= {key: data[key] for key in _METRICS if data.get(key) is not None}
            row = {"t_s": (float(event["time"]) - zero) * 1e-3, "flow": flow, "retransmissions": float(lost)}
            for ours, theirs, unit in (
                ("cwnd", "congestion_window", 1 / size),
                ("ssthresh", "ssthresh", 1 / size),
                ("in_flight", "bytes_in_flight", 1 / size),
                ("srtt_s", "smoothed_rtt", 1e-3),
            ):
                if theirs in last:
                    row[ours] = float(last[theirs]) * unit
            rows.append(row)
    return rows, _rates(trace, flow, zero or 0.0)


PART_S = 0.1
"""Interval over which acknowledged bytes are counted, s."""

MOST_PARTS = 1_000_000


def _rates(trace: Mapping[str, Any], flow: int, zero: float) -> list[dict[str, Any]]:
    """Return goodput from packets sent and acknowledged, if the trace has both."""
    sent: dict[str, dict[int, int]] = {}
    for event in trace["events"]:
        data = event.get("data", {})
        if _kind(event) == "packet_sent" and "header" in data:
            raw = data.get("raw", {})
            length = raw.get("payload_length", raw.get("length", data["header"].get("packet_size", 0)))
            sent.setdefault(_space(data["header"]), {})[int(data["header"].get("packet_number", -1))] = int(length)
    spaces = {space: _Unacknowledged(payload) for space, payload in sent.items()}
    parts: dict[int, int] = {}
    for event in trace["events"]:
        data = event.get("data", {})
        if _kind(event) != "packet_received" or (space := spaces.get(_space(data.get("header", {})))) is None:
            continue
        at = int((float(event["time"]) - zero) * 1e-3 / PART_S)
        for frame in data.get("frames", []):
            for given in frame.get("acked_ranges", []) if frame.get("frame_type") == "ack" else []:
                parts[at] = parts.get(at, 0) + space.take(int(given[0]), int(given[-1]))
    whole = range(min(max(parts, default=-1) + 1, MOST_PARTS))
    return [{"t_s": (i + 1) * PART_S, "flow": flow, "goodput_bps": parts.get(i, 0) * 8 / PART_S} for i in whole]


def _kind(event: Mapping[str, Any]) -> str:
    return str(event["name"]).rpartition(":")[2]


def _space(header: Mapping[str, Any]) -> str:
    """Return the packet number space: Initial, handshake and application packets are numbered separately (RFC 9000
    §12.3).
    """
    space = str(header.get("packet_type", "1RTT"))
    return "1RTT" if space == "0RTT" else space


class _Unacknowledged:
    """Packets of one number space. Each is counted once, so that the time for all ACKs is proportional to packets and
    ranges.
    """

    def __init__(self, payload: Mapping[int, int]) -> None:
        self._numbers = sorted(payload)
        self._payload = [payload[number] for number in self._numbers]
        self._next = list(range(len(self._numbers) + 1))
        """Position -> next packet that was not acknowledged, or a position closer to it."""

    def take(self, first: int, last: int) -> int:
        """Return the number of bytes in the packets from `first` to `last` that had not been acknowledged before."""
        total = 0
        end = bisect_right(self._numbers, last)
        at = self._from(bisect_left(self._numbers, first))
        while at < end:
            total += self._payload[at]
            self._next[at] = at + 1
            at = self._from(at)
        return total

    def _from(self, at: int) -> int:
        ahead = self._next
        while ahead[at] != at:
            ahead[at] = ahead[ahead[at]]
            at = ahead[at]
        return at
