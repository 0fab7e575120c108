"""Figures of single connections: the ideal path, the long flow, the two scripted loss patterns."""

from __future__ import annotations

from typing import Any

import polars as pl

from ackclock.plot import Figure, interactive, new, traces
from ackclock.studies.prr.rules import CRB, RATE_HALVING, RFC6675, RFC9937, RULES, SERIES, SSRB, label
from ackclock.study import Tables

IDEAL = (RATE_HALVING, RFC6675, CRB, SSRB, RFC9937)


def ideal_path(tables: Tables) -> Figure:
    """In flight after sending, ACK by ACK."""
    acks = tables["tables.acks"].with_columns((pl.col("pipe") + pl.col("sent_segments")).alias("in_flight"))

    def draw() -> Any:
        figure, axes = new(7.6, 3.7, ncols=2, sharey=True)
        for ax, losses, title in zip(axes, (1, 15), ("1 of 20 segments lost", "15 of 20 segments lost"), strict=True):
            for i, rule in enumerate(IDEAL):
                rows = acks.filter((pl.col("rule") == rule) & (pl.col("losses") == losses))
                s = SERIES[rule]
                # Lines that coincide are moved apart by a tenth of a segment.
                y = rows["in_flight"].to_numpy() + 0.1 * (i - 2)
                ax.step(rows["time_rtts"], y, where="post", color=s.colour, ls=s.dash, label=s.label)
            ax.axhline(10, color="#888888", lw=0.8, zorder=1)
            ax.text(0.01, 9.8, "ssthresh", color="#555555", fontsize=8, va="top", transform=ax.get_yaxis_transform())
            ax.set(title=title, xlabel="time (RTTs since the first segment)", ylim=(0, 21.5), yticks=range(0, 21, 5))
        axes[0].set_ylabel("in flight after sending (segments)")
        axes[1].legend(loc="upper right")
        return figure

    return Figure(
        name="ideal-path",
        title="Under heavy loss rate halving and PRR-CRB stay at the bottom; PRR-SSRB climbs back to ssthresh without a burst",
        caption=(
            "Segments in flight after each ACK on the ideal path (window 20, ssthresh 10). Left, one loss: RFC 6675 falls silent "
            "for half an RTT, the others spread the reduction. Right, 15 losses: RFC 6675 refills at once with a burst of six, "
            "SSRB adds one per ACK, RFC 9937 does so from the first ACK that makes good progress. Lines that coincide are "
            "drawn a tenth of a segment apart."
        ),
        draw=draw,
        data={"acks": acks},
    )


def long_flow(tables: Tables) -> Figure:
    """Window of the 200 s Reno flow with and without PRR, whole and around one recovery."""
    t = tables["traces.long"]
    arms = ("without PRR", "with PRR")
    windows = {arm: _zoom(tables, arm) for arm in arms}

    def draw() -> Any:
        figure, axes = new(7.6, 5.0, nrows=2, ncols=2, sharey="col", width_ratios=(1.6, 1))
        for row, arm in zip(axes, arms, strict=True):
            acks = t.filter(pl.col("arm") == arm)
            start, stop = windows[arm]
            traces.draw_windows(row[0], acks)
            row[0].set(title=f"Reno, {arm}: 200 s", ylabel="segments")
            traces.draw_windows(row[1], acks, start_s=start, stop_s=stop)
            row[1].set(title="one recovery", xlim=(start, stop))
        for ax in axes[-1]:
            ax.set_xlabel("time (s)")
        axes[0][0].set_ylim(bottom=0)
        axes[0][1].legend(loc="upper right")
        return figure

    def look_closer() -> dict[str, Any]:
        choices = {}
        for arm in (*arms, "RFC 6675"):
            acks = t.filter(pl.col("arm") == arm)
            choices[arm] = (interactive.window_lines(acks, most=6000), interactive.bands(acks))
        return interactive.switch(choices, x="time (s)", y="segments")

    columns = ["arm", "t_s", "event", "cwnd", "pipe", "ssthresh", "ca_state"]
    return Figure(
        name="long-flow",
        title="Rate halving overshoots: it takes Reno to a quarter of the window and slow-starts back; PRR stops at ssthresh",
        caption=(
            "cwnd, pipe and ssthresh of one Reno flow, 1.2 Mbit/s, RTT 100 ms, queue 100 packets, no random loss; one sender, "
            "only the recovery rule differs. Shaded: recovery. Right: one recovery from congestion avoidance. Rate halving goes on "
            "reducing, one segment for every second ACK, for as long as recovery lasts; its lower bound with Reno is half of "
            "ssthresh. The study saw only cwnd, from tcp_probe; pipe and ssthresh show why it moves."
        ),
        draw=draw,
        data={"trace": t.select(columns)},
        interactive=look_closer,
    )


def _zoom(tables: Tables, arm: str) -> tuple[float, float]:
    """Span around a recovery from congestion avoidance: the third of the flow, or the last."""
    r = tables["traces.long_recoveries"].filter(pl.col("arm") == arm)
    if not r.height:
        return (0.0, 10.0)
    row = r.row(min(2, r.height - 1), named=True)
    margin = 0.35 * (row["t_exit_s"] - row["t_enter_s"])
    return (row["t_enter_s"] - margin, row["t_exit_s"] + margin)


def sequences(tables: Tables, pattern: str, name: str, title: str, caption: str) -> Figure:
    """Time-sequence of one loss pattern for the four families of rules."""
    t = tables["traces.sequence"].filter(pl.col("pattern") == pattern)
    drops = tables["traces.drops"].filter(pl.col("pattern") == pattern)
    shown = (RATE_HALVING, RFC6675, SSRB, RFC9937)

    def draw() -> Any:
        figure, axes = new(7.6, 5.6, nrows=2, ncols=2, sharex=True, sharey=True)
        end = max(_finished(t.filter(pl.col("rule") == rule)) for rule in shown)
        for ax, rule in zip(axes.flat, shown, strict=True):
            acks = t.filter(pl.col("rule") == rule)
            traces.draw_sequence(ax, acks, drops=drops.filter(pl.col("rule") == rule))
            done = _finished(acks)
            ax.axvline(done, color="#555555", lw=0.8, ls=(0, (2, 2)))
            ax.text(done, 1, f"{done:.2f} s ", ha="right", va="bottom", fontsize=8, color="#333333")
            ax.set(title=label(rule), xlim=(0, 1.06 * end), ylim=(-1, 32))
        for ax in axes[-1]:
            ax.set_xlabel("time (s)")
        for ax in axes[:, 0]:
            ax.set_ylabel("sequence (kB)")
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5, columnspacing=1.2)
        return figure

    def look_closer() -> dict[str, Any]:
        choices = {}
        for rule in RULES:
            acks = t.filter(pl.col("rule") == rule)
            lines = interactive.sequence_lines(acks, drops.filter(pl.col("rule") == rule))
            choices[label(rule)] = (lines, interactive.bands(acks))
        return interactive.switch(choices, x="time (s)", y="sequence (kB)", height=520)

    return Figure(
        name=name,
        title=title,
        caption=caption,
        draw=draw,
        data={"trace": t, "drops": drops},
        interactive=look_closer,
    )


def _finished(acks: pl.DataFrame) -> float:
    """When the last new byte was acknowledged."""
    rows = acks.filter(pl.col("event") == "ack")
    last = rows.filter(pl.col("seq") == rows["seq"].max())
    return float(last["t_s"][0])
