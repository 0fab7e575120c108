"""The report of one run: the results of each flow, everything over time, each recovery.

Length: all sections of the page in order, with their sentences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from ackclock import units
from ackclock._results import metrics
from ackclock._results.columns import of_senders
from ackclock._results.limits import held, sentence
from ackclock._results.summary import dropped, failures, gave_up, largest_queue, together, warmed_up, without_limit
from ackclock.plot import interactive, panels
from ackclock.report.limits import limits_section
from ackclock.report.page import Block, Live, Page, Section, Table, TableCell, items, paragraph
from ackclock.text import rate, seconds, share

if TYPE_CHECKING:
    from ackclock._results.result import Run
    from ackclock.formats import Measured
    from ackclock.scenario import Scenario

__all__ = ["page", "watched"]

SHOWN = 100
"""Maximum number of flows and links in a table."""

TOLD = 6
"""Maximum number of flows described in a sentence each."""

EPISODES = 60
"""Maximum number of recoveries in the table."""

TRACED = 3
"""Maximum number of flows with a time-sequence graph."""

SEQUENCE_POINTS = 1500
"""Maximum number of points of each kind in a time-sequence graph."""

STEPS = 1200
"""Number of samples over the run, unless the scenario sets an interval."""

ENDS = {"full_ack": "ACK of all", "rto": "timeout", "undo": "undo", "run_end": "end of run"}
"""Reason for the end of a recovery in table `recoveries` -> wording on the page."""

IN_THE_SIMULATOR = "Recording does not change a run: with and without this report it has the same digest."
ON_THE_KERNEL = "Recording does not change the packets of a run. Its digest covers what was recorded, so a run without this report has another one."
"""Sentence about the changes caused by recording for the report."""

TRACE_BYTES = 2**29
"""Memory use above which no trace is recorded for the report, bytes."""


def watched(scenario: Scenario, *, trace: bool = True, drops: bool = True) -> Scenario:
    """Return a scenario that records the data for its report; recording does not change the run.

    Parameters
    ----------
    scenario
        Scenario to record; its own records are kept.
    trace
        Whether to record ACKs as well.
    drops
        Whether to record dropped packets as well, which the kernel's queueing disciplines cannot.

    Returns
    -------
    Scenario
        Scenario with samples, goodput, queues, limits and drops, and with the trace of three flows, or of the first,
        where memory allows.
    """
    from ackclock import _engine

    record = scenario.record
    whole = units.whole(scenario.duration, units.DURATION)
    step = max(whole // STEPS, 1_000_000)
    # equal parts, so that the last interval is as long as the others
    part = -(-whole // max(whole // (8 * step), 1))
    for key, every in (
        ("sample_interval", step),
        ("queue_interval", step),
        ("goodput_interval", part),
        ("limits_interval", part),
    ):
        if units.whole(getattr(record, key), units.DURATION) == 0:
            scenario = scenario.set(f"record.{key}", f"{every} ns")
    if drops:
        scenario = scenario.set("record.drops", True)
    if not trace or record.trace != "none":
        return scenario
    flows = sum(group.count for group in scenario.flows)
    for extent in ("all", "flow") if flows <= TRACED else ("flow",):
        traced = scenario.set("record.trace", extent)
        if _engine.estimate_memory(traced.compiled) <= TRACE_BYTES:
            return traced
    return scenario


def page(run: Run, *, command: str = "", name: str = "", beside: Sequence[Measured] = ()) -> Page:
    """Return the report of a run.

    Parameters
    ----------
    run
        Run whose records are drawn; see `watched`.
    command
        Command that reproduces the page.
    name
        File from which the scenario was read.
    beside
        External measurements for the same figures.

    Returns
    -------
    Page
        Page for `ackclock.report.write`.
    """
    flows = run.rows("flows")
    names = panels.flow_names(run)
    sections = [
        Section(title="Flows", blocks=_flows(run, flows, names)),
        Section(title="Over time", blocks=_over_time(run, beside)),
        *_beside(beside),
        *limits_section(run, names),
        *_sequences(run, names),
        *_recoveries(run, names),
        Section(title="Links", blocks=(_links(run),)),
        *_application(run),
    ]
    title = run.scenario.name or name or "A run"
    return Page(
        title=title,
        summary=_summary(run, flows),
        conclusion=_conclusion(run, flows, names),
        sections=tuple(section for section in sections if section.blocks),
        scenarios={name or f"{title}.toml": run.scenario.to_toml()},
        facts={
            "seed": str(run.seed),
            "digest": run.digest,
            "engine": run.engine,
            **{
                key: str(value)
                for key, value in run.provenance.items()
                if key in ("build", "backend", "kernel", "network")
            },
        },
        command=command or "ackclock run SCENARIO --report FILE",
        beside=ON_THE_KERNEL if run.provenance.get("backend") == "linux" else IN_THE_SIMULATOR,
    )


def _summary(run: Run, flows: Sequence[Mapping[str, Any]]) -> str:
    capacity = metrics.capacity_bps(run.scenario)
    link = f" over a bottleneck that carries at most {rate(capacity)} of payload" if math.isfinite(capacity) else ""
    drops, before = dropped(run.rows("links"))
    many = "One flow" if len(flows) == 1 else f"{len(flows):,} flows"
    return f"{many}{link}, {run.scenario.duration} of network time, seed {run.seed}. {_dropped(run, drops, before)}{_unlimited(run)}"


def _dropped(run: Run, drops: int, before: int) -> str:
    after = f", {drops - before:,} of them after the warm-up of {run.scenario.record.warm_up}" if warmed_up(run) else ""
    return f"The network dropped {drops:,} packets{after}."


def _unlimited(run: Run) -> str:
    wait = without_limit(run)
    if not wait:
        return ""
    return (
        f" The bottleneck's queue has no limit, as the scenario names none: packets waited up to {seconds(wait)} in it."
    )


def _conclusion(run: Run, flows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    failed = failures(flows, [f"flow {name}" for name in names])
    said = _outcome(run, flows, names)
    return f"{said} {_sentences(failed)}" if failed else said


def _sentences(parts: Sequence[str]) -> str:
    return " ".join(f"{part[0].upper()}{part[1:]}." for part in parts)


def _outcome(run: Run, flows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    got = [row["goodput_bps"] or 0.0 for row in flows]
    capacity, total = metrics.capacity_bps(run.scenario), together(flows)
    used = f", {share(total / capacity)} of what the bottleneck can carry" if 0 < total <= capacity < math.inf else ""
    for table, what in (("transactions", "transactions"), ("fetches", "fetches")):
        frame: pl.DataFrame = getattr(run, table)
        if frame.height and "total_s" in frame.columns:
            took = frame["total_s"].drop_nulls()
            middle, late = took.quantile(0.5, "linear"), took.quantile(0.95, "linear")
            return f"{took.len():,} of {frame.height:,} {what} were done; the median took {seconds(middle)}, one in twenty over {seconds(late)}."
    if len(flows) == 1:
        limits = held(flows[0])
        why = sentence(limits) if limits is not None else ""
        return f"{names[0].split(' ', 1)[1]} carried {rate(total)}{used}{why and f'; {why}'}."
    groups = _by_group(run, flows)
    bytes_all = sum(row["bytes_acked"] for row in flows)
    if len(groups) > 1 and total > 0:
        spans = {label: _open(rows) for label, rows in groups.items()}
        apart = max(spans.values()) > 1.01 * min(spans.values())
        parts = [
            f"{label} {rate(together(rows))}"
            + (f" in the {seconds(spans[label])} that it was open" if apart else "")
            + f" ({share(sum(row['bytes_acked'] for row in rows) / bytes_all)} of the bytes)"
            for label, rows in groups.items()
        ]
        over = f" over the {seconds(_open(flows))} from the first start to the last end" if apart else ""
        return f"{_listed(parts)}: {rate(total)} together{over}{used}. Jain's index over the flows is {metrics.jain(got):.3f}."
    return f"{len(flows):,} flows carried {rate(total)}{used}. Jain's index over them is {metrics.jain(got):.3f}."


def _open(flows: Sequence[Mapping[str, Any]]) -> float:
    """Time from the first start to the last end, s."""
    return float(max(row["stop_s"] for row in flows) - min(row["start_s"] for row in flows))


def _by_group(run: Run, flows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in flows:
        group = run.scenario.flows[row["group"]]
        label = (
            group.label
            if sum(g.label == group.label for g in run.scenario.flows) == 1
            else f"group {row['group']} {group.label}"
        )
        groups.setdefault(label, []).append(row)
    return groups


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _flows(run: Run, flows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[Block, ...]:
    header: tuple[str, ...] = (
        "flow",
        "goodput",
        "share",
        "packets",
        "retransmitted",
        "timeouts",
        "recoveries",
        "mean RTT",
        "least RTT",
        "completed in",
    )
    if all(row["completion_s"] is None and not row.get("failed") for row in flows):
        header = header[:-1]
    table = Table(
        caption=f"Of the whole run{', the warm-up included' if warmed_up(run) else ''}. Goodput is what was acknowledged, divided by the time that the "
        "flow was open; the share is that of the bytes of all flows.",
        header=header,
        rows=tuple(_flow_row(row, name, flows)[: len(header)] for row, name in zip(flows[:SHOWN], names, strict=False)),
    )
    told = [_sentence(row, name) for row, name in zip(flows, names, strict=True)] if len(flows) <= TOLD else []
    more = [paragraph(f"{len(flows) - SHOWN:,} more flows are in the tables of the run.")] if len(flows) > SHOWN else []
    return (*([items(told)] if told else []), table, *more)


def _flow_row(row: Mapping[str, Any], name: str, flows: Sequence[Mapping[str, Any]]) -> tuple[TableCell | str, ...]:
    total = sum(other["bytes_acked"] for other in flows)
    return (
        TableCell(text=name, kind="head"),
        rate(row["goodput_bps"]),
        share(row["bytes_acked"] / total) if total else "–",
        f"{row['sent_packets']:,}",
        f"{row['retransmissions']:,}",
        f"{row['rtos']:,}",
        f"{row['recoveries']:,}",
        seconds(row["mean_rtt_s"]),
        seconds(row["min_rtt_s"]),
        "failed" if row.get("failed") and row["completion_s"] is None else seconds(row["completion_s"]),
    )


def _sentence(row: Mapping[str, Any], name: str) -> str:
    number, label = name.split(" ", 1)
    sent, again = row["sent_packets"], row["retransmissions"]
    said = f"Flow {number} ({label}) carried {rate(row['goodput_bps'])}"
    limits = held(row)
    if row.get("failed"):
        said += f"; {gave_up(row)}"
    if row["completion_s"] is not None:
        said += f" and was done after {seconds(row['completion_s'])}"
    if row["mean_rtt_s"] is not None:
        said += f"; its RTT was {seconds(row['mean_rtt_s'])} on average and {seconds(row['min_rtt_s'])} at least"
    if sent and again:
        said += f"; it sent {again:,} of {sent:,} packets again ({share(again / sent)})"
        said += f", in {_count(row['recoveries'], 'recovery', 'recoveries')} and after {_count(row['rtos'], 'timeout', 'timeouts')}"
    if limits is not None and (what := sentence(limits)):
        said += f"; {what}"
    return said + "."


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}" if number else f"no {many}"


def _beside(beside: Sequence[Measured]) -> list[Section]:
    """Return the section with the numbers from external measurements."""
    rows: list[tuple[TableCell | str, ...]] = []
    for other in beside:
        for flow, name in enumerate(other.flows):
            goodput = other.goodput.filter(pl.col("flow") == flow)["goodput_bps"]
            samples = other.samples.filter(pl.col("flow") == flow)
            means = samples.select(pl.col("srtt_s", "cwnd").mean(), pl.col("retransmissions").max()).row(0)
            srtt_s, window, again = means
            got = goodput.mean()
            if other.run is not None:  # ackclock runs have exact values, not only samples
                row = other.run.rows("flows")[flow]
                got, again = row["goodput_bps"], row["retransmissions"]
            rows.append(
                (
                    TableCell(text=f"{other.name}: {name}", kind="head"),
                    other.kind,
                    rate(got),  # type: ignore[arg-type]
                    seconds(srtt_s),
                    "–" if window is None else f"{window:.1f}",
                    "–" if again is None else f"{again:,.0f}",
                )
            )
    if not rows:
        return []
    table = Table(
        caption="Values measured elsewhere, as the files give them; means over the intervals of each file.",
        header=("flow", "format", "mean goodput", "mean smoothed RTT", "mean cwnd (segments)", "retransmitted or lost"),
        rows=tuple(rows[:SHOWN]),
    )
    runs = [other for other in beside if other.run is not None]
    said = [f"{other.name}: {_told(other.run)}" for other in runs if other.run is not None]
    links = [_links(other.run, name=other.name) for other in runs if other.run is not None]
    return [Section(title="Measured elsewhere", blocks=(*([items(said)] if said else []), table, *links))]


def _told(run: Run) -> str:
    """Return the first sentences of another run's own page."""
    flows = run.rows("flows")
    drops, before = dropped(run.rows("links"))
    return f"{_conclusion(run, flows, panels.flow_names(run))} {_dropped(run, drops, before)}"


def _over_time(run: Run, beside: Sequence[Measured]) -> tuple[Block, ...]:
    flows = len(run.rows("flows"))
    crowd = " Of each group: the median flow, and the band of the middle four fifths." if flows > panels.CROWD else ""
    drawn = panels.panels(run, beside)
    end = panels.busy_until(drawn)
    return tuple(
        Live(
            name=panel.name,
            title=panel.title,
            caption=" ".join(
                filter(None, (panel.caption, "Shaded: the sender's state is not Open." if panel.spans else ""))
            )
            + crowd,
            figure=lambda panel=panel: _timed(panels.live(panel), end),  # type: ignore[misc]
        )
        for panel in drawn
    )


def _timed(figure: dict[str, Any], end: float | None = None) -> dict[str, Any]:
    """Link a figure to the other time figures; all end at the last time with data."""
    figure["layout"]["meta"] = {"axis": "time"}
    if end is not None:
        figure["layout"]["xaxis"]["range"] = [0, end]
    return figure


def _sequences(run: Run, names: Sequence[str]) -> list[Section]:
    if not run.acks.height:
        return []
    sections = []
    senders = of_senders(run.acks)
    for flow in senders["flow"].unique(maintain_order=True).to_list()[:TRACED]:
        trace = senders.filter(pl.col("flow") == flow)
        drops = run.drops.filter((pl.col("flow") == flow) & pl.col("forward")) if run.drops.height else None
        sent = trace.filter(pl.col("event") == "send").height
        thinned = (
            f" Of {sent:,} originals {SEQUENCE_POINTS:,} are drawn, those of the first recoveries all; retransmissions and drops are complete."
            if sent > SEQUENCE_POINTS
            else ""
        )
        sections.append(
            Section(
                title=f"Time-sequence of flow {names[flow]}",
                blocks=(
                    Live(
                        name=f"sequence-{flow}",
                        title="Segments sent, acknowledged, lost",
                        caption=(
                            "Opens at the first recovery; a double click shows the whole run. "
                            if _first_recovery(run, flow)
                            else ""
                        )
                        + "Drag over a loss to see its recovery: the other figures follow."
                        + thinned,
                        figure=lambda trace=trace, drops=drops, near=_first_recovery(run, flow): _sequence(  # type: ignore[misc]
                            trace, drops, near
                        ),
                    ),
                ),
            )
        )
    return sections


def _first_recovery(run: Run, flow: int) -> tuple[float, float] | None:
    """Return a time interval around the first recovery, with equal margins before and after it."""
    found = run.recoveries
    if not found.height:
        return None
    mine = of_senders(found).filter(pl.col("flow") == flow).sort("t_enter_s").head(1)
    if not mine.height:
        return None
    row = mine.row(0, named=True)
    begin = row["t_enter_s"]
    end = row["t_exit_s"] if row["t_exit_s"] is not None else begin
    room = max(end - begin, 4 * (row["srtt_s"] or 0.0), 1e-3)
    return begin - room, end + room


def _sequence(trace: pl.DataFrame, drops: pl.DataFrame | None, near: tuple[float, float] | None) -> dict[str, Any]:
    lines = interactive.sequence_lines(trace, drops, most=SEQUENCE_POINTS)
    figure: dict[str, Any] = {"data": lines, "layout": interactive.layout(x="time (s)", y="sequence (kB)", height=520)}
    figure["layout"]["shapes"] = interactive.bands(trace)[:400]
    if near is not None:
        begin, end = near
        seen = trace.filter(pl.col("t_s").is_between(begin, end) & pl.col("event").is_in(["ack", "send", "rtx"]))["seq"]
        if seen.len():
            low, high = (float(edge) / 1000 for edge in (seen.min(), seen.max()))  # type: ignore[arg-type]
            figure["layout"]["xaxis"]["range"] = [round(begin, 6), round(end, 6)]
            figure["layout"]["yaxis"]["range"] = [low - 0.05 * (high - low), high + 0.05 * (high - low)]
    return _timed(figure)


def _recoveries(run: Run, names: Sequence[str]) -> list[Section]:
    found = run.recoveries
    if not found.height:
        return []
    rows = found.head(EPISODES).to_dicts()
    rules = sorted({group.recovery or f"the rule of profile {group.profile}" for group in run.scenario.flows})
    more = f" The first {EPISODES} of {found.height:,} are shown." if found.height > EPISODES else ""
    table = Table(
        caption=f"Each episode of Recovery or CWR, in segments; windows by {', '.join(rules)}.{more}",
        header=(
            "flow",
            "from",
            "for",
            "ended by",
            "pipe at entry",
            "ssthresh",
            "cwnd at entry",
            "lost",
            "sent again",
            "lost again",
            "largest burst",
            "cwnd at the end",
            "pipe at the end",
        ),
        rows=tuple(
            (
                TableCell(text=names[row["flow"]], kind="head"),
                f"{row['t_enter_s']:.3f} s",
                "not over" if row["t_exit_s"] is None else seconds(row["t_exit_s"] - row["t_enter_s"]),
                ENDS.get(str(row["cause"]), str(row["cause"])),
                *(
                    f"{row[key]:,}" if row[key] is not None else "–"
                    for key in (
                        "pipe_enter",
                        "ssthresh",
                        "cwnd_enter",
                        "losses",
                        "retransmits",
                        "lost_retransmits",
                        "max_burst",
                        "cwnd_after_exit",
                        "pipe_exit",
                    )
                ),
            )
            for row in rows
        ),
    )
    return [Section(title="Recoveries", blocks=(table,))]


def _links(run: Run, *, name: str = "") -> Table:
    links = run.rows("links")
    busy = [row for row in links if row["arrivals"]]
    before = dropped(links)[1]
    span = (
        f" Counts, queues and waits begin at the end of the warm-up, {run.scenario.record.warm_up}; {before:,} packets were dropped before."
        if warmed_up(run)
        else " Of the whole run."
    )
    return Table(
        caption=f"{f'Links of {name}. ' if name else ''}Queues in packets; waiting is the time in the queue.{span}",
        header=(
            "link",
            "arrived",
            "delivered",
            "dropped: loss",
            "dropped: queue",
            "marked",
            "mean queue",
            "largest queue",
            "mean wait",
            "longest wait",
        ),
        rows=tuple(
            (
                TableCell(text=row["name"], kind="head"),
                *(f"{row[key]:,}" for key in ("arrivals", "delivered", "dropped_loss", "dropped_queue", "marked")),
                "–" if row["mean_packets"] is None else f"{row['mean_packets']:.1f}",
                "–" if (largest := largest_queue(row)) is None else f"{largest:,}",
                seconds(row["mean_wait_s"]),
                seconds(row["max_wait_s"]),
            )
            for row in busy[:SHOWN]
        ),
    )


def _application(run: Run) -> list[Section]:
    """Return the sections on requests, fetches, datagrams and video."""
    made = []
    for name, title, keys in (
        ("fetches", "Fetches", ("connect_s", "first_byte_s", "total_s")),
        ("transactions", "Transactions", ("connect_s", "first_byte_s", "total_s")),
        ("conversations", "Conversations", ("first_byte_s", "latency_s")),
        ("chunks", "Video", ("bitrate_bps", "buffer_s", "stall_s")),
        ("datagrams", "Datagrams", ("mean_delay_s", "p95_delay_s", "jitter_s")),
    ):
        frame: pl.DataFrame = getattr(run, name)
        known = [key for key in keys if key in frame.columns]
        if frame.height and known:
            made.append(Section(title=title, blocks=(_quantiles(frame, known),)))
    return made


def _quantiles(frame: pl.DataFrame, keys: Sequence[str]) -> Table:
    shares = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
    rows: list[tuple[TableCell | str, ...]] = []
    for key in keys:
        values = frame[key].drop_nulls()
        shown = rate if key.endswith("_bps") else seconds
        cells = [shown(values.quantile(q, "linear")) if values.len() else "–" for q in shares]
        rows.append(
            (
                TableCell(text=key.removesuffix("_s").removesuffix("_bps").replace("_", " "), kind="head"),
                f"{values.len():,}",
                *cells,
            )
        )
    return Table(
        caption="Quantiles over all rows.", header=("", "values", *(f"{q:.0%}" for q in shares)), rows=tuple(rows)
    )
