"""Run tables for the terminal, one for each kind of result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ackclock._results.summary import (
    dropped,
    failures,
    largest_queue,
    messages,
    players,
    quantile,
    warmed_up,
    without_limit,
)
from ackclock.cli import _terminal
from ackclock.cli._sheet import SHOWN, Sheet
from ackclock.errors import shown
from ackclock.text import NONE, count, rate, seconds, share

if TYPE_CHECKING:
    from ackclock._results.result import Run

TOLD = 4
"""Maximum number of flows for which limits are described in a sentence."""

ROOMY = 100
"""Minimum terminal width, in columns, for one-line headings and full link names."""


def tables(result: Run) -> list[Sheet]:
    """Return a run's tables for the terminal."""
    # plain rows, because importing polars takes longer than a short run
    found = [_flows(result)]
    for name, make in (
        ("performance", _performance),
        ("fetches", _fetches),
        ("transaction_summary", _transactions),
        ("conversations", _conversations),
        ("chunks", _video),
        ("datagrams", _datagrams),
    ):
        rows = result.rows(name)
        if rows:
            found.append(make(result, rows))
    found.append(_links(result))
    if result.rows("fetches") and len(result.rows("flows")) > TOLD:
        found.sort(key=lambda sheet: sheet.title != "fetches")  # with many flows, fetches come first
    return found


def _flows(result: Run) -> Sheet:
    flows = result.rows("flows")
    labels = [group.label for group in result.scenario.flows]
    table = _table("flows", ["flow", "goodput", "packets", "retransmitted", "timeouts", "mean RTT", "completed in"])
    for row in flows[:SHOWN]:
        table.add_row(
            f"{row['flow']} {labels[row['group']]}",
            rate(row["goodput_bps"]),
            count(row["sent_packets"]),
            count(row["retransmissions"]),
            count(row["rtos"]),
            seconds(row["mean_rtt_s"]),
            "failed" if row["failed"] and row["completion_s"] is None else seconds(row["completion_s"]),
        )
    table = _more(table, flows)
    for what in failures(flows, [f"flow {row['flow']} {labels[row['group']]}" for row in flows]):
        table.say(what)
    for what in _limits(flows, labels):
        table.say(what)
    if any(row["mean_rtt_s"] is None and row["sent_packets"] for row in flows):
        table.say("no mean RTT: no sample fell into the flow's time")
    if warmed_up(result):
        table.say(
            f"the whole run, the warm-up of {result.scenario.record.warm_up} included; goodput while a flow was open",
        )
    return table


def _limits(flows: list[dict[str, Any]], labels: Sequence[str]) -> list[str]:
    """Return a sentence per flow about the causes that limited it; empty if there are many flows."""
    from ackclock._results.limits import held, sentence

    said = []
    for row in flows[:TOLD]:
        found = held(row)
        what = sentence(found) if found is not None else ""
        if what:
            said.append(what if len(flows) == 1 else f"flow {row['flow']} {labels[row['group']]}: {what}")
    return said


def _performance(result: Run, rows: list[dict[str, Any]]) -> Sheet:
    head = ["after the warm-up", "goodput", "share", "95 % RTT", "95 % delay", "dropped", "time to share"]
    table = _table("performance", head)
    told = [row for row in rows if row["of"] != "flow"] if len(rows) > SHOWN else rows
    labels = [group.label for group in result.scenario.flows]
    for row in told[-SHOWN:]:
        name = "all" if row["group"] is None else labels[row["group"]]
        table.add_row(
            f"{row['number']} {name}" if row["of"] == "flow" else name,
            rate(row["goodput_bps"]),
            share(None if row["goodput_bps"] is None else row["share"]),
            seconds(row["p95_rtt_s"]),
            seconds(row["p95_delay_s"]),
            count(row["dropped_packets"]),
            seconds(row["time_to_share_s"]),
        )
    table.say(
        "goodput while a flow was open; of groups and of all, from their first start to their last end; shares of the bytes"
    )
    return table


def _fetches(_: Run, rows: list[dict[str, Any]]) -> Sheet:
    table = _table("fetches", ["quantile", "connected", "first byte", "total"])
    done = [row for row in rows if row["done"]]
    columns = [
        sorted(row[name] for row in done if row[name] is not None) for name in ("connect_s", "first_byte_s", "total_s")
    ]
    for part in (0.25, 0.5, 0.75, 0.95):
        table.add_row(f"{part:.0%}", *(seconds(quantile(column, part)) for column in columns))
    table.say(f"{len(done):,} of {len(rows):,} fetches done")
    return table


def _transactions(result: Run, rows: list[dict[str, Any]]) -> Sheet:
    head = ["transactions", "window", "done", "of", "mean", "median", "95 %", "99 %", "most"]
    table = _table("transactions", head)
    labels = [group.label for group in result.scenario.flows]
    for row in rows[:SHOWN]:
        times = (seconds(row[name]) for name in ("mean_s", "p50_s", "p95_s", "p99_s", "max_s"))
        table.add_row(
            labels[row["group"]], f"{row['initial_window']}", count(row["completed"]), count(row["started"]), *times
        )
    left = (
        sum(row["incomplete"] for row in rows),
        sum(row["failed"] for row in rows),
        sum(row["refused"] for row in rows),
    )
    more = [
        f"{n:,} {what}" for n, what in zip(left, ("incomplete at the end", "failed", "turned away"), strict=True) if n
    ]
    table = _more(table, rows)
    table.say(", ".join(more))
    return table


def _conversations(_: Run, rows: list[dict[str, Any]]) -> Sheet:
    made = messages(rows)
    table = _table("conversations", ["flow", "step", "from", "messages", "arrived", "median", "95 %", "99 %"])
    for row in made[:SHOWN]:
        times = (seconds(row[f"latency_p{part}_s"]) for part in (50, 95, 99))
        counts = (count(row["messages"]), count(row["arrived"]))
        table.add_row(f"{row['flow']}", f"{row['step']}", row["writer"], *counts, *times)
    table = _more(table, made)
    table.say("from the first write to the last byte read at the other end")
    return table


def _video(result: Run, rows: list[dict[str, Any]]) -> Sheet:
    made = players(rows)
    groups = {row["flow"]: row["group"] for row in result.rows("flows")}
    table = _table("video", ["player", "chunks", "bitrate", "switches", "first picture", "stalls", "stalled"])
    for row in made[:SHOWN]:
        workload = result.scenario.flows[groups[row["flow"]]].workload
        kind = getattr(getattr(workload, "adaptation", None), "kind", "video")
        table.add_row(
            f"{row['flow']} {kind}",
            count(row["chunks"]),
            rate(row["bitrate_bps"]),
            count(row["switches"]),
            seconds(row["first_picture_s"]),
            count(row["stalls"]),
            seconds(row["stall_s"]),
        )
    return _more(table, made)


def _datagrams(result: Run, rows: list[dict[str, Any]]) -> Sheet:
    groups = {row["flow"]: row["group"] for row in result.rows("flows")}
    table = _table("datagrams", ["flow", "sent", "lost", "mean delay", "95 % delay", "jitter"])
    for row in rows[:SHOWN]:
        table.add_row(
            f"{row['flow']} {result.scenario.flows[groups[row['flow']]].label}",
            count(row["sent"]),
            count(row["lost"]),
            seconds(row["mean_delay_s"]),
            seconds(row["p95_delay_s"]),
            seconds(row["jitter_s"]),
        )
    return _more(table, rows)


def _links(result: Run) -> Sheet:
    links = result.rows("links")
    busy = [row for row in links if row["arrivals"] > 0]
    table = _of_links(busy, short=_terminal.width() < ROOMY)
    if table.width > _terminal.width():
        table = _of_links(busy, short=True)
    table = _more(table, busy)
    if warmed_up(result):
        before = dropped(links)[1]
        table.say(f"after the warm-up of {result.scenario.record.warm_up}; before, {before:,} packets were dropped")
    if any(row["mean_packets"] is None for row in busy):
        table.say("no queue lengths: the kernel's own queues do not tell them")
    if wait := without_limit(result):
        table.say(
            f"the bottleneck's queue has no limit, as the scenario names none: packets waited up to {seconds(wait)}",
        )
    return table


def _of_links(busy: Sequence[dict[str, Any]], *, short: bool) -> Sheet:
    table = _table(
        "links", ["link", "delivered", "dropped: loss", "dropped: queue", "marked", "mean queue", "largest queue"]
    )
    for row in busy[:SHOWN]:
        name = shown(row["name"])
        if short:
            name = name.replace(".forward", " →").replace(".backward", " ←")
        table.add_row(
            name,
            count(row["delivered"]),
            count(row["dropped_loss"]),
            count(row["dropped_queue"]),
            count(row["marked"]),
            NONE if row["mean_packets"] is None else f"{row['mean_packets']:.1f}",
            NONE if (largest := largest_queue(row)) is None else count(largest),
        )
    return table


def _table(title: str, columns: Sequence[str]) -> Sheet:
    return Sheet(title, columns, narrow=_terminal.width() < ROOMY)


def _more(table: Sheet, rows: Sequence[dict[str, Any]]) -> Sheet:
    if len(rows) > SHOWN:
        table.say(f"and {len(rows) - SHOWN:,} more (--json or --out show all)")
    return table
