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
    idx = farthest_below(tables)
    shown = {arm: _recovery(tables, arm, idx) for arm in arms}
    start = min(r["t_enter_s"] for r in shown.values()) - 0.4
    stop = max(r["t_exit_s"] for r in shown.values()) + 1.6

    def draw() -> Any:
        figure, axes = new(7.6, 5.0, nrows=2, ncols=2, sharey="col", width_ratios=(1.6, 1))
        for row, arm in zip(axes, arms, strict=True):
            acks = t.filter(pl.col("arm") == arm)
            traces.draw_windows(row[0], acks)
            row[0].set(title=f"Reno, {arm}: 200 s", ylabel="segments")
            traces.draw_windows(row[1], acks, start_s=start, stop_s=stop)
            end = shown[arm]
            row[1].annotate(
                f"{end['cwnd_before_exit']}",
                (end["t_exit_s"], end["cwnd_before_exit"]),
                (-3, -4),
                textcoords="offset points",
                ha="right",
                va="top",
                fontsize=8,
            )
            row[1].set(title=f"{arm}: recovery {idx + 1}", xlim=(start, stop))
        for ax in axes[-1]:
            ax.set_xlabel("time (s)")
        for ax in axes[0]:
            ax.set_ylim(bottom=0)
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
        title=(
            f"Of a window of {shown[arms[0]]['cwnd_enter']} (ssthresh {shown[arms[0]]['ssthresh']}) rate halving leaves "
            f"{shown[arms[0]]['cwnd_before_exit']} segments at the end of recovery {idx + 1}, PRR "
            f"{shown[arms[1]]['cwnd_before_exit']}"
        ),
        caption=(
            "cwnd, pipe and ssthresh of one Reno flow, 1.2 Mbit/s, RTT 100 ms, queue 100 packets, no random loss; one sender, "
            f"only the recovery rule differs. Shaded: recovery. Right: recovery {idx + 1} of {_recoveries(tables, arms[0]).height}, the one that rate "
            f"halving ends farthest below ssthresh ({shown[arms[0]]['losses']} losses); the number is cwnd at its end. "
            f"{_others(tables, arms[0], idx)} Rate halving goes on reducing, one segment for every second ACK, for as long as "
            "recovery lasts; its lower bound with Reno is half of ssthresh. PRR has ssthresh as its target. The study saw only "
            "cwnd, from tcp_probe; pipe and ssthresh show why it moves."
        ),
        draw=draw,
        data={"trace": t.select(columns)},
        interactive=look_closer,
    )


def farthest_below(tables: Tables) -> int:
    """Index of the recovery that rate halving ends farthest below ssthresh."""
    r = _recoveries(tables, "without PRR")
    below = r["ssthresh"].cast(pl.Int64) - r["cwnd_before_exit"].cast(pl.Int64)
    return int(below.arg_max() or 0)


def _recoveries(tables: Tables, arm: str) -> pl.DataFrame:
    return tables["traces.long_recoveries"].filter(pl.col("arm") == arm).sort("t_enter_s")


def _recovery(tables: Tables, arm: str, idx: int) -> dict[str, Any]:
    r = _recoveries(tables, arm)
    return r.row(min(idx, r.height - 1), named=True)


def _others(tables: Tables, arm: str, idx: int) -> str:
    """One sentence on how the other recoveries of an arm end."""
    r = _recoveries(tables, arm).with_row_index("k").filter(pl.col("k") != idx)
    at = r.filter(pl.col("cwnd_before_exit") == pl.col("ssthresh")).height
    return f"Of its {r.height} other recoveries {at} end at ssthresh."


SHOWN = (RATE_HALVING, RFC6675, SSRB, RFC9937)
"""Rules of the time-sequence figures; the interactive ones have all."""


def next_write(tables: Tables, pattern: str) -> dict[str, int]:
    """Segments that leave at once when the next 10 kB are written, by rule."""
    t = tables["traces.sequence"].filter(pl.col("pattern") == pattern)
    late = t.filter((pl.col("event") == "send") & (pl.col("len") > 1) & (pl.col("t_s") > 0.45))
    return {
        rule: own.filter(pl.col("t_s") == own["t_s"].min()).height
        for rule in RULES
        for own in (late.filter(pl.col("rule") == rule),)
    }


def last_repair(tables: Tables, pattern: str) -> dict[str, float]:
    """When the last of the lost segments is retransmitted, seconds after the first one, by rule."""
    t = tables["traces.sequence"].filter((pl.col("pattern") == pattern) & (pl.col("event") == "rtx"))
    return {
        rule: float(own.max() - own.min())  # type: ignore[operator,arg-type]
        for rule in RULES
        for own in (t.filter((pl.col("rule") == rule) & (pl.col("rexmit") == 1))["t_s"],)
    }


def sequences(tables: Tables, pattern: str, name: str, title: str, caption: str) -> Figure:
    """Time-sequence of one loss pattern for the four families of rules."""
    t = tables["traces.sequence"].filter(pl.col("pattern") == pattern)
    drops = tables["traces.drops"].filter(pl.col("pattern") == pattern)

    def draw() -> Any:
        figure, axes = new(7.6, 5.6, nrows=2, ncols=2, sharex=True, sharey=True)
        end = max(_finished(t.filter(pl.col("rule") == rule)) for rule in SHOWN)
        for ax, rule in zip(axes.flat, SHOWN, strict=True):
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
