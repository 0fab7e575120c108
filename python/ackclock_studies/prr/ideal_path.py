"""PRR on the ideal path: bursts, growth back to ssthresh, exit windows (T2, P7, P8, P14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from ackclock.plot import Figure, new
from ackclock.report import Block, Table, TableCell, paragraph
from ackclock.study import (
    Bound,
    Chapter,
    Evidence,
    Tables,
    at_most,
    exactly,
)
from ackclock.study.table import declared
from ackclock_studies.prr.published import PATTERNS
from ackclock_studies.prr.rules import CRB, PRR, RATE_HALVING, RFC6675, RFC9937, SERIES, SSRB, UB, label


def t2(tables: Tables) -> Sequence[Evidence]:
    """Segments in flight at the end of recovery on the ideal path with 15 of 20 segments lost."""
    acks = tables["tables.acks"].filter((pl.col("losses") == 15) & (pl.col("state") == "Recovery"))

    def reached(rule: str) -> float:
        last = acks.filter(pl.col("rule") == rule).tail(1)
        return float(last["pipe"][0] + last["sent_segments"][0])

    return [
        *(
            Evidence(
                label=f"in flight at the end of recovery, {label(rule)} (ssthresh 10)",
                value=reached(rule),
                bound=exactly(10),
                unit="segments",
            )
            for rule in (PRR, SSRB, RFC9937)
        ),
        Evidence(
            label="long flow: recoveries that PRR ends below ssthresh",
            value=float(_ends_below(tables, "with PRR")),
            bound=exactly(0),
            unit="recoveries",
        ),
        Evidence(
            label="for contrast, long flow: recoveries that rate halving ends below ssthresh",
            value=float(_ends_below(tables, "without PRR")),
            bound=exactly(0),
            unit="recoveries",
            weighs=False,
        ),
        *(
            Evidence(
                label=f"for contrast: {label(rule)}",
                value=reached(rule),
                bound=exactly(10),
                unit="segments",
                weighs=False,
            )
            for rule in (CRB, RATE_HALVING)
        ),
    ]


def _ends_below(tables: Tables, arm: str) -> int:
    """The long flow's recoveries with cwnd below ssthresh just before the end."""
    r = tables["traces.long_recoveries"].filter(pl.col("arm") == arm)
    return r.filter(pl.col("cwnd_before_exit") < pl.col("ssthresh")).height


def _episode(tables: Tables, pattern: str, rule: str, quantity: str) -> float:
    """A value for an entire episode; `pattern` is the start of the episode's name."""
    row = tables["tables.episodes"].filter(
        pl.col("pattern").str.starts_with(pattern) & (pl.col("rule") == rule) & (pl.col("quantity") == quantity)
    )
    return float(row["computed"][0])


def p7(tables: Tables) -> Sequence[Evidence]:
    """Golden numbers for entire episodes that the computation does not reproduce."""
    e = tables["tables.episodes"]
    bulk = e.filter(pl.col("golden").is_not_null())
    missed = bulk.filter(pl.col("golden") != pl.col("computed")).height

    return [
        Evidence(label=f"golden numbers missed, of {bulk.height}", value=missed, bound=exactly(0)),
        Evidence(
            label="burst of RFC 6675 on the entering ACK, 90 of 100 lost",
            value=_episode(tables, "W 100", RFC6675, "burst_at_entry"),
            bound=exactly(41),
            unit="segments",
        ),
        Evidence(
            label="recovery time of rate halving, 15 of 20 lost",
            value=_episode(tables, "W 20, segments", RATE_HALVING, "rtts"),
            bound=exactly(4),
            unit="RTTs",
        ),
        Evidence(
            label="recovery time of PRR-SSRB, 15 of 20 lost",
            value=_episode(tables, "W 20, segments", SSRB, "rtts"),
            bound=exactly(2),
            unit="RTTs",
        ),
        Evidence(
            label="burst of PRR-SSRB on the entering ACK, 90 of 100 lost",
            value=_episode(tables, "W 100", SSRB, "burst_at_entry"),
            bound=at_most(2),
            unit="segments",
        ),
    ]


def p14(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """PRR-UB against RFC 6675 under heavy loss."""
    asked = (
        ("W 100", "burst_at_entry", "burst on the entering ACK, 90 of 100 lost", "segments"),
        ("W 20, segments", "max_burst", "largest burst, 15 of 20 lost", "segments"),
        ("W 20, segments", "rtts", "recovery time, 15 of 20 lost", "RTTs"),
        ("W 20, segments", "pipe_at_exit", "pipe at the end, 15 of 20 lost", "segments"),
    )
    return [
        Evidence(
            label=f"{text}: PRR-UB less RFC 6675",
            value=_episode(tables, pattern, UB, quantity) - _episode(tables, pattern, RFC6675, quantity),
            bound=bound,
            unit=unit,
        )
        for pattern, quantity, text, unit in asked
    ]


def p8(tables: Tables) -> Sequence[Evidence]:
    """Segments left in cwnd at the end of recovery when no new data is available."""
    e = tables["tables.episodes"].filter(
        pl.col("pattern").str.contains("nothing new") & (pl.col("quantity") == "cwnd_before_exit")
    )
    found = []
    for rule in (RATE_HALVING, RFC6675, CRB, SSRB, PRR, RFC9937):
        value = float(e.filter(pl.col("rule") == rule)["computed"][0])
        bound = at_most(3) if rule == RATE_HALVING else exactly(10)
        found.append(
            Evidence(label=f"cwnd at the end, {label(rule)} (ssthresh 10)", value=value, bound=bound, unit="segments")
        )
    return found


IDEAL = (RATE_HALVING, RFC6675, CRB, SSRB, RFC9937)


def ideal_path(tables: Tables) -> Figure:
    """Segments in flight after the response to each ACK."""
    acks = tables["tables.acks"].with_columns((pl.col("pipe") + pl.col("sent_segments")).alias("in_flight"))

    def draw() -> Any:
        figure, axes = new(7.6, 3.7, ncols=2, sharey=True)
        for ax, losses, title in zip(axes, (1, 15), ("1 of 20 segments lost", "15 of 20 segments lost"), strict=True):
            for i, rule in enumerate(IDEAL):
                rows = acks.filter((pl.col("rule") == rule) & (pl.col("losses") == losses))
                s = SERIES[rule]
                # coinciding lines are offset by a tenth of a segment
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


def episodes_table(tables: Tables) -> Table:
    """Whole episodes: recovery time, bursts, exit windows."""
    names = {
        "rtts": "recovery (RTTs)",
        "max_burst": "largest burst",
        "burst_at_entry": "burst at entry",
        "pipe_at_exit": "pipe at exit",
        "cwnd_before_exit": "cwnd before exit",
        "cwnd_after_exit": "cwnd after exit",
    }
    e = tables["tables.episodes"]
    rows: list[tuple[TableCell | str, ...]] = []
    for pattern in PATTERNS:
        for i, episode in enumerate(pattern.episodes):
            own = e.filter((pl.col("pattern") == pattern.name) & (pl.col("rule") == episode.rule))
            value = {r["quantity"]: r for r in own.iter_rows(named=True)}
            head = (TableCell(text=pattern.name, kind="head", span=len(pattern.episodes)),) if i == 0 else ()
            cells = []
            for key in names:
                v = value[key]
                same = v["golden"] is None or v["computed"] == v["golden"]
                text = f"{v['exact']:g}" + ("" if same else f" (expected {v['golden']:g})")
                cells.append(TableCell(text=text, kind="" if same else "differs"))
            rows.append((*head, TableCell(text=label(episode.rule), kind="head"), *cells))
    return Table(
        caption="Whole episodes on the ideal path (ssthresh W/2, three duplicate ACKs). Windows and bursts in segments; RFC 6937's rules set no window at the end.",
        header=("losses", "rule", *names.values()),
        rows=tuple(rows),
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        paragraph(
            "When a loss is noticed, the sender has to come down to a new target, ssthresh, within one round trip. RFC 6675 "
            "stops sending until enough ACKs have come in. Rate halving sends one segment for every second ACK, whatever the "
            "target. PRR sends ssthresh / RecoverFS segments per segment delivered, so that it arrives at the target just "
            "when recovery ends. If losses push what is in flight below the target, a reduction bound says how fast to "
            "climb back: one per delivered segment (CRB), one more on each ACK (SSRB), or that only on ACKs that show "
            "good progress (RFC 9937, Linux 6)."
        ),
        ideal_path(tables),
        episodes_table(tables),
    )


CHAPTER = Chapter(**declared(__name__), blocks=blocks)
