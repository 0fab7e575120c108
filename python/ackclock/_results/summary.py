"""Summary of a run as plain values: results for each flow and its application."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ackclock._results.result import Run
    from ackclock.scenario import Scenario

__all__ = [
    "dropped",
    "failures",
    "fetches",
    "gave_up",
    "players",
    "quantile",
    "tables",
    "warmed_up",
    "without_limit",
]

Row = Mapping[str, Any]

FETCHING = ("fetch", "population", "bursts")
"""Workloads with fetch counts in the summary, even if there are none."""

FEW = 4
"""Maximum number of failed flows that are described in a sentence each."""


def tables(scenario: Scenario, rows: Callable[[str], list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the parts of `ackclock run --json` that come from tables; `rows` returns a table's rows.

    The keys `fetches`, `transactions`, `datagrams`, `video` and `performance` are present if the run has such tables.
    """
    groups = scenario.flows
    flows = []
    for row in map(nanoseconds, rows("flows")):
        group = groups[row["group"]]
        control = None if group.is_plain else group.congestion_control
        flows.append({"id": row.pop("flow"), "name": group.label, "congestion_control": control, **row})
    queues = [
        {
            "id": row.pop("link"),
            "drops": row["dropped_queue"] + row["dropped_loss"],
            **row,
            "max_packets": largest_queue(row),
        }
        for row in map(nanoseconds, rows("links"))
    ]
    made: dict[str, Any] = {"flows": flows}
    if any(group.workload.kind in FETCHING for group in groups):
        made["fetches"] = fetches(rows("fetches"))
    for name, found in (
        ("conversations", messages(rows("conversations"))),
        ("transactions", rows("transaction_summary")),
        ("datagrams", rows("datagrams")),
        ("video", players(rows("chunks"))),
        ("performance", rows("performance")),
    ):
        if found:
            made[name] = [nanoseconds(row) for row in found]
    for row in made.get("performance", ()):
        row["name"] = None if row["group"] is None else groups[row["group"]].label
    return {**made, "queues": queues}


def fetches(rows: Sequence[Row]) -> dict[str, Any]:
    """Return fetches started and completed, and the latency of the completed ones; null if there are none."""
    took = sorted(row["total_s"] for row in rows if row["done"])
    shares = {"p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
    total: dict[str, Any] = {name: quantile(took, share) for name, share in shares.items()}
    total["mean"] = math.fsum(took) / len(took) if took else None
    return {"started": len(rows), "done": len(took), "total_s": nanoseconds(total, every=True)}


def messages(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return messages started and delivered, and their latency, by flow and conversation step."""
    steps: dict[tuple[int, int, str], list[Row]] = {}
    for row in rows:
        steps.setdefault((row["flow"], row["step"], row["writer"]), []).append(row)
    made = []
    for (flow, step, writer), of_step in sorted(steps.items()):
        took = sorted(row["latency_s"] for row in of_step if row["done"])
        shares = {f"latency_p{100 * share:.0f}_s": quantile(took, share) for share in (0.5, 0.95, 0.99)}
        counts = {"messages": len(of_step), "arrived": len(took), "bytes": sum(row["bytes"] for row in of_step)}
        made.append({"flow": flow, "step": step, "writer": writer, **counts, **shares})
    return made


def players(chunks: Sequence[Row]) -> list[dict[str, Any]]:
    """Return each video player's outcome, as `ackclock.video.players` does."""
    by_flow: dict[int, list[Row]] = {}
    for row in sorted(chunks, key=lambda row: (row["flow"], row["idx"])):
        by_flow.setdefault(row["flow"], []).append(row)
    made = []
    for flow, own in by_flow.items():
        there = [row for row in own if row["finish_s"] is not None]
        levels = [row["level"] for row in own]
        made.append(
            {
                "flow": flow,
                "chunks": len(there),
                "bitrate_bps": math.fsum(row["bitrate_bps"] for row in there) / len(there) if there else None,
                "switches": sum(a != b for a, b in pairwise(levels)),
                "first_picture_s": min((row["finish_s"] for row in there if row["playing"]), default=None),
                "stalls": sum((row["stall_s"] or 0.0) > 0 for row in own),
                "stall_s": math.fsum(row["stall_s"] or 0.0 for row in own),
            }
        )
    return made


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return a quantile of values in ascending order, by linear interpolation; None without values.

    Examples
    --------
    >>> quantile([1.0, 2.0, 4.0], 0.75)
    3.0
    """
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def nanoseconds(row: Row, *, every: bool = False) -> dict[str, Any]:
    """Return times rounded to the engine's nanoseconds: 60.0, not 60.00000000000001."""
    return {
        key: round(value * 1e9) / 1e9
        if isinstance(value, float) and (every or key.endswith("_s")) and abs(value) < 1e12
        else value
        for key, value in row.items()
    }


def gave_up(row: Row) -> str:
    """Return, in a few words, why the connection in a row of `flows` failed; empty if it did not.

    Examples
    --------
    >>> gave_up({"failed": True, "failure": "too many gaps"})
    'the connection failed: too many gaps'
    >>> gave_up({"failed": True, "failure": ""})
    'a connection gave up'
    >>> gave_up({"failed": False, "failure": ""})
    ''
    """
    if not row.get("failed"):
        return ""
    why = row.get("failure")
    return f"the connection failed: {why}" if why else "a connection gave up"


def failures(flows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Return the flows whose connection failed, with reasons: one sentence each if there are few, one in total if
    there are many.

    Parameters
    ----------
    flows
        Rows of `flows`.
    names
        Names of the flows.
    """
    failed = [(name, gave_up(row)) for row, name in zip(flows, names, strict=True) if row.get("failed")]
    if len(flows) == 1:
        return [why for _, why in failed]
    if len(failed) <= FEW:
        return [f"{name}: {why}" for name, why in failed]
    kinds: dict[str, int] = {}
    for _, why in failed:
        kinds[why] = kinds.get(why, 0) + 1
    return [
        f"{len(failed):,} of {len(flows):,} flows failed: {', '.join(f'{n:,} × {why}' for why, n in kinds.items())}"
    ]


def largest_queue(row: Mapping[str, Any]) -> int | None:
    """Return the largest queue in a link's row; None if the backend could not measure it. The column has no missing
    values: if a kernel queue was not monitored, it contains 0, as for a queue that was always empty. The mean, which
    is then missing, distinguishes the two.
    """
    return None if row["mean_packets"] is None and not row["max_packets"] else row["max_packets"]


def dropped(links: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Return how many packets the network dropped in the whole run, and how many of these during the warm-up."""
    before = sum(row.get("dropped_before") or 0 for row in links)
    return before + sum(row["dropped_queue"] + row["dropped_loss"] for row in links), before


def together(flows: Sequence[Row], *, since_s: float = 0.0) -> float:
    """Return the joint goodput of flows, bit/s, from their first start (or `since_s`, if later) to their last end.

    Examples
    --------
    >>> together([{"start_s": 0, "stop_s": 1, "goodput_bps": 8e6}, {"start_s": 1, "stop_s": 2, "goodput_bps": 4e6}])
    6000000.0
    """
    if not flows:
        return 0.0
    first = max(since_s, min(flow["start_s"] for flow in flows))
    open_s = max(flow["stop_s"] for flow in flows) - first
    bits = math.fsum((flow["goodput_bps"] or 0.0) * (flow["stop_s"] - max(since_s, flow["start_s"])) for flow in flows)
    return bits / open_s if open_s > 0 else 0.0


def warmed_up(run: Run) -> bool:
    """Return whether the run has a warm-up, which link tables exclude."""
    from ackclock import units

    return units.whole(run.scenario.record.warm_up, units.DURATION) > 0


def without_limit(run: Run) -> float | None:
    """Return the longest wait in a bottleneck queue that the scenario leaves unlimited, if it exceeds the base RTT."""
    link = run.scenario.network.bottleneck
    if link is None or link.queue is not None:
        return None
    rows = [row for row in run.rows("links") if str(row["name"]).startswith("bottleneck.") and row["max_packets"]]
    waits = [row["max_wait_s"] for row in rows if row.get("max_wait_s") is not None]
    longest = max(waits, default=0.0)
    return longest if longest > run.scenario.network.base_rtt_ns(run.scenario.flows[0].path) / 1e9 else None
