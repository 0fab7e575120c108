"""Fetch latency per rule, everything else equal: what PRR gains (T3, T5, T6, P5, P6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import Figure, new
from ackclock.report import Block, Table, paragraph
from ackclock.report import Cell as TableCell
from ackclock.scenario import Scenario
from ackclock.stats import Estimate, mean_interval
from ackclock.studies.prr import path
from ackclock.studies.prr.path import HIGH, LARGE, LOSSES, LOW, MIDDLE, PAGE_LABELS, PAGES, percent, where
from ackclock.studies.prr.rules import (
    RATE_HALVING,
    RFC6675,
    RULES,
    SERIES,
    SSRB,
    label,
    share_text,
)
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    above,
    at_least,
    below,
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import Array, gain, minus, quotient

FETCH_COLUMNS = (
    "connect_s",
    "total_s",
    "syn_retransmissions",
    "synack_retransmissions",
    "data_retransmissions",
    "data_rtos",
    "rtos_open",
    "rtos_disorder",
    "rtos_recovery",
    "rtos_loss",
    "data_segments_sent",
    "lost_retransmits",
    "recoveries",
)

RECOVERY_COLUMNS = (
    "pipe_enter",
    "ssthresh",
    "cwnd_enter",
    "losses",
    "retransmits",
    "lost_retransmits",
    "max_burst",
    "cwnd_before_exit",
    "cwnd_after_exit",
    "t_enter_s",
    "t_exit_s",
    "srtt_s",
    "cause",
)

FETCHES = {"fetches": FETCH_COLUMNS}
NEEDS = {"fetches": FETCH_COLUMNS, "recoveries": RECOVERY_COLUMNS}


# As many as the small differences of claims P3 to P5 need; the publication had 100 or 1000 of each.
_QUICK = {768: 2_000, 7_680: 2_000, 76_800: 6_000, 768_000: 600}
_PAPER = {768: 20_000, 7_680: 20_000, 76_800: 40_000, 768_000: 4_000}
HALF = "β 0.5"
"""Arm with the multiplicative decrease of Reno."""


def run(plan: Plan) -> Data:
    """Each rule on the same sender, paired by common random numbers: same seed, same losses until the arms differ.

    Returns
    -------
    Data
        `latency.fetches` and `latency.recoveries`, keys arm, page (bytes), loss (per link and direction), seed.
    """
    cells = []
    for page in path.PAGES:
        for loss in path.LOSSES:
            seeds = plan.count(quick=_QUICK[page], paper=_PAPER[page])
            stream = f"latency {page} {loss}"
            for rule in RULES:
                cells.append(fetch_cell(rule, page, loss, path.host(recovery=rule), stream, seeds, NEEDS))
            if page == 76_800:
                half = path.host(recovery=SSRB, beta=0.5)
                cells.append(fetch_cell(f"{SSRB}, {HALF}", page, loss, half, stream, seeds, NEEDS))
    return collect("latency", cells, plan)


def fetch_cell(
    arm: str,
    page: int,
    loss: float,
    sender: dict[str, Any],
    stream: str,
    seeds: int,
    needs: Mapping[str, Sequence[str]] = FETCHES,
) -> Cell:
    """A cell: one page under one loss with one sender, as many fetches as seeds."""
    scenario = path.fetch(page, loss, sender, name=f"{arm}, {page} bytes, {path.percent(loss)}")
    keys = {"arm": arm, "page": page, "loss": loss}
    return Cell(scenario=scenario, keys=keys, stream=stream, seeds=seeds, needs=needs)


def cell(table: pl.DataFrame, arm: str, page: int, loss: float) -> pl.DataFrame:
    """Rows of one cell, ordered by seed."""
    kept = table.filter((pl.col("arm") == arm) & (pl.col("page") == page) & (pl.col("loss") == loss))
    return kept.sort("seed", maintain_order=True)


def paired(
    table: pl.DataFrame,
    page: int,
    loss: float,
    first: str,
    second: str,
    column: str = "total_s",
    *,
    hit: bool | None = True,
) -> tuple[Array, Array]:
    """Values of two arms for the same seeds.

    Parameters
    ----------
    table
        Fetches.
    page, loss
        Cell.
    first, second
        Arms.
    column
        What to compare.
    hit
        True: only seeds in which either arm retransmitted data; False: only those in which neither did; None: all.
    """
    a, b = cell(table, first, page, loss), cell(table, second, page, loss)
    hits = (a["data_retransmissions"] + b["data_retransmissions"]).to_numpy() > 0
    both = np.isfinite(a["total_s"].to_numpy()) & np.isfinite(b["total_s"].to_numpy())
    keep = both if hit is None else both & (hits == hit)
    x = a[column].to_numpy().astype(np.float64)
    y = b[column].to_numpy().astype(np.float64)
    return x[keep], y[keep]


def latencies(table: pl.DataFrame, arm: str, page: int, loss: float, *, hit: bool | None = None) -> Array:
    """Total latency of the fetches of one cell, s; those with, without or regardless of a data retransmission."""
    kept = cell(table, arm, page, loss).filter(pl.col("total_s").is_not_null())
    if hit is not None:
        kept = kept.filter((pl.col("data_retransmissions") > 0) == hit)
    return kept["total_s"].to_numpy().astype(np.float64)


def summary(tables: Tables) -> pl.DataFrame:
    """One row per cell and arm: shares and mean latencies by what happened to the fetch."""
    t = tables["latency.fetches"]
    syn = (pl.col("syn_retransmissions") + pl.col("synack_retransmissions")) > 0
    hit = pl.col("data_retransmissions") > 0
    return (
        t.group_by("page", "loss", "arm", maintain_order=True)
        .agg(
            pl.len().alias("fetches"),
            hit.mean().alias("share_data_retransmitted"),
            syn.mean().alias("share_syn_lost"),
            pl.col("total_s").filter(hit).mean().alias("mean_hit_s"),
            pl.col("total_s").filter(~hit & ~syn).mean().alias("mean_clean_s"),
            pl.col("total_s").filter(~hit & syn).mean().alias("mean_syn_only_s"),
            pl.col("total_s").mean().alias("mean_all_s"),
            pl.col("data_retransmissions").sum().alias("retransmissions"),
            pl.col("lost_retransmits").sum().alias("lost_retransmits"),
            pl.col("data_rtos").sum().alias("timeouts"),
            pl.col("rtos_recovery").sum().alias("timeouts_in_recovery"),
        )
        .sort("page", "loss", maintain_order=True)
    )


_BLOG = "CS244'13 blog"
_IMC = "IMC 2011 paper"
_SLIDES = "IETF-84 slides"


def rule_gain(tables: Tables, page: int, loss: float, other: str = SSRB) -> Estimate:
    """How much lower the mean latency of loss-hit fetches is than with rate halving, percent."""
    return gain(*paired(tables["latency.fetches"], page, loss, RATE_HALVING, other))


def t3(tables: Tables) -> Sequence[Evidence]:
    """Gain of PRR at 1 %, page by page."""
    return [Evidence.of(rule_gain(tables, page, LOW), where(page, LOW), above(0), unit="%") for page in PAGES]


def rise(tables: Tables, rule: str, page: int) -> Estimate:
    """Mean latency of loss-hit fetches at 3 %, over that at 1 %."""
    t = tables["latency.fetches"]
    return quotient(
        mean_interval(latencies(t, rule, page, HIGH, hit=True)),
        mean_interval(latencies(t, rule, page, LOW, hit=True)),
    )


def t5(tables: Tables) -> Sequence[Evidence]:
    """Rise from 1 % to 3 % without PRR, and how much more it is than with PRR."""
    found = []
    for page in PAGES:
        found.append(
            Evidence.of(
                rise(tables, RATE_HALVING, page), f"{PAGE_LABELS[page]}: 3 % over 1 %, rate halving", at_least(2)
            )
        )
    for page in PAGES:
        found.append(
            Evidence.of(
                rise(tables, SSRB, page), f"{PAGE_LABELS[page]}: 3 % over 1 %, PRR-SSRB", below(2), weighs=False
            )
        )
    return found


def t6(tables: Tables) -> Sequence[Evidence]:
    """Gain at 3 % minus gain at 1 %."""
    return [
        Evidence.of(
            minus(rule_gain(tables, page, HIGH), rule_gain(tables, page, LOW)),
            f"{PAGE_LABELS[page]}: gain at 3 % less gain at 1 %",
            above(0),
            unit="points",
        )
        for page in PAGES[2:]
    ]


def p5(tables: Tables) -> Sequence[Evidence]:
    """Gain over rate halving in every cell, and how it grows."""
    gains = {(page, loss): rule_gain(tables, page, loss) for page in PAGES for loss in LOSSES}
    found = [Evidence.of(g, f"{where(*cell)}: gain of PRR-SSRB", between(0, 10), unit="%") for cell, g in gains.items()]
    for page in (MIDDLE, LARGE):
        found.append(
            Evidence.of(
                minus(gains[page, HIGH], gains[page, LOW]),
                f"{PAGE_LABELS[page]}: grows with loss",
                above(0),
                unit="points",
            )
        )
    for loss in LOSSES:
        found.append(
            Evidence.of(
                minus(gains[LARGE, loss], gains[PAGES[1], loss]),
                f"{percent(loss)}: 750 KB less 7.5 KB, grows with size",
                above(0),
                unit="points",
            )
        )
    return found


def p6(tables: Tables) -> Sequence[Evidence]:
    """Latency of RFC 6675 against PRR-SSRB in every cell."""
    t = tables["latency.fetches"]
    return [
        Evidence.of(
            gain(*paired(t, page, loss, RFC6675, SSRB)),
            f"{where(page, loss)}: PRR-SSRB below RFC 6675",
            between(-3, 3),
            unit="%",
        )
        for page in reversed(PAGES)
        for loss in reversed(LOSSES)
    ]


def gains_table(tables: Tables) -> pl.DataFrame:
    """Gain of each rule over rate halving, with interval, cell by cell."""
    rows = []
    for page in PAGES:
        for loss in LOSSES:
            for rule in RULES:
                if rule == RATE_HALVING:
                    continue
                e = gain(*paired(tables["latency.fetches"], page, loss, RATE_HALVING, rule))
                rows.append(
                    {
                        "page_bytes": page,
                        "loss_per_link": loss,
                        "rule": rule,
                        "gain_percent": e.value,
                        "low": e.low,
                        "high": e.high,
                        "pairs": e.n,
                    }
                )
    return pl.DataFrame(rows)


def gains(tables: Tables) -> Figure:
    """Gain over rate halving by page size and loss."""
    table = gains_table(tables)

    def draw() -> Any:
        figure, axes = new(7.6, 4.0, ncols=2, sharex=True, sharey=True)
        rules = [r for r in RULES if r != RATE_HALVING]
        for ax, loss in zip(axes, LOSSES, strict=True):
            for i, rule in enumerate(rules):
                s = SERIES[rule]
                rows = table.filter((pl.col("rule") == rule) & (pl.col("loss_per_link") == loss))
                y = np.arange(len(PAGES)) + 0.14 * (i - (len(rules) - 1) / 2)
                value = rows["gain_percent"].to_numpy()
                error = np.abs(rows.select("low", "high").to_numpy().T - value)
                ax.errorbar(value, y, xerr=error, fmt=s.marker, color=s.colour, label=s.label, lw=1.4, capsize=0)
            ax.axvline(0, color="#555555", lw=1)
            ax.set(title=f"{percent(loss)} loss on each link", xlabel="lower mean latency than rate halving (%)")
            ax.grid(axis="y", visible=False)
        axes[0].set_yticks(range(len(PAGES)), [PAGE_LABELS[p] for p in PAGES])
        axes[0].set_ylabel("page")
        axes[0].invert_yaxis()
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
        return figure

    own = table.filter((pl.col("rule") == SSRB) & pl.col("gain_percent").is_not_nan()).sort("gain_percent")
    title = "With everything else equal: gain of each rule over rate halving"
    if own.height:
        most = own.row(-1, named=True)
        small = own.filter(pl.col("page_bytes") < PAGES[2])["gain_percent"]
        title = (
            f"With everything else equal, PRR-SSRB gains {share_text(most['gain_percent'])} at most "
            f"({where(most['page_bytes'], most['loss_per_link'])})"
        )
        if small.len():
            title += f", and {share_text(small.max())} at most on pages below 75 KB"
    return Figure(
        name="latency-gain",
        title=title,
        caption=(
            "How much lower the mean latency of fetches that retransmitted data is than with rate halving, in percent, with 95 % "
            "intervals. One sender (FACK, initial RTO 1 s, initial window 10, CUBIC); arms are paired fetch by fetch by common "
            "random numbers. A page of 0.75 KB is one segment: no recovery can begin, so nothing can differ."
        ),
        draw=draw,
        data={"gain": table},
    )


def latency_table(tables: Tables) -> Table:
    """Mean latencies of loss-hit fetches per cell and rule."""
    s = summary(tables)
    rows: list[tuple[TableCell | str, ...]] = []
    for page in PAGES:
        for loss in LOSSES:
            own = s.filter((pl.col("page") == page) & (pl.col("loss") == loss))
            by_arm = {r["arm"]: r for r in own.iter_rows(named=True)}
            base = by_arm[RATE_HALVING]
            rows.append(
                (
                    TableCell(text=f"{PAGE_LABELS[page]}, {path.percent(loss)}", kind="head"),
                    f"{base['fetches']:,}",
                    f"{100 * base['share_data_retransmitted']:.0f} %",
                    f"{100 * base['share_syn_lost']:.1f} %",
                    _seconds(base["mean_clean_s"]),
                    _seconds(base["mean_syn_only_s"]),
                    *(_seconds(by_arm[rule]["mean_hit_s"]) for rule in RULES),
                )
            )
    return Table(
        caption="Mean latency in seconds. Left of the rules: fetches without data loss, with and without a lost SYN, the same for every rule.",
        header=(
            "page, loss",
            "fetches",
            "data retransmitted",
            "SYN lost",
            "no loss",
            "only SYN lost",
            *(label(rule) for rule in RULES),
        ),
        rows=tuple(rows),
    )


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if value < 10 else f"{value:.2f}"


CLAIMS = (
    Claim(
        id="T3",
        place=f"{_BLOG}, latency at 1 % loss",
        statement="At 1 % loss on each link, fetches with retransmissions are faster with PRR, for each page size.",
        direction=Criterion(
            measure=t3,
            reading="mean latency of fetches that retransmitted data, PRR-SSRB against rate halving on one and the same sender",
        ),
        note="True for 75 KB and 750 KB, by little. A page of 0.75 KB is one segment: without a second one there is no "
        "duplicate ACK and no fast recovery, so no rule can act. A page of 7.5 KB is six segments: FACK finds its "
        "losses one by one, and every rule sends each as it is found.",
    ),
    Claim(
        id="T5",
        place=f"{_BLOG}, 1 % against 3 %",
        statement="Without PRR, latency rises dramatically from 1 % to 3 % loss.",
        direction=Criterion(
            measure=t5,
            reading="dramatically: the mean of loss-hit fetches at least doubles, for every page size",
        ),
        note="Only 750 KB more than doubles. Smaller pages rise by a quarter to a third, with PRR as without: more of them "
        "are hit, but each is hit about as hard.",
    ),
    Claim(
        id="T6",
        place=f"{_BLOG}, 1 % against 3 %",
        statement="PRR's relative gain is larger at 3 % than at 1 %.",
        direction=Criterion(
            measure=t6,
            reading="pages of 75 KB and 750 KB; the smaller ones have no gain at either",
        ),
        note="More loss brings more recoveries that start below ssthresh, where rate halving never grows.",
    ),
    Claim(
        id="P5",
        place=f"{_IMC}, abstract; {_SLIDES} (3 to 5 % longer)",
        statement="Loss-hit fetches are up to 10 % faster with PRR than with rate halving, the more so with more loss and larger pages.",
        direction=Criterion(
            measure=p5,
            reading="gain between 0 and 10 % in every cell; positive growth with loss (75 and 750 KB) and from 7.5 to 750 KB",
        ),
        note="From nothing for the smallest pages to 6 % for 750 KB at 3 %.",
    ),
    Claim(
        id="P6",
        place="RFC 6937 §5",
        statement="RFC 3517/6675 and PRR have similar latency.",
        direction=Criterion(
            measure=p6,
            reading="within ±3 % in every cell",
        ),
        note="Within one percent everywhere: both reach ssthresh; they differ in bursts, which this path absorbs.",
    ),
)


def blocks(tables: Tables) -> Sequence[Block]:
    """For the report."""
    return (
        paragraph(
            "The path of the CS244'13 experiment: 1000 Mbit/s and 1.2 Mbit/s in a row, 25 ms each per direction, queues of 100 "
            "packets, 1 % or 3 % loss on each link in each direction, so 1.99 % or 5.91 % one way, for ACKs and SYNs too. "
            "Whether a fetch counts as hit is told by counting its retransmitted segments, not by its latency."
        ),
        gains(tables),
        latency_table(tables),
    )


def scenarios() -> Mapping[str, Scenario]:
    """As written."""
    return {
        "fetch of 75 KB at 1 %, PRR-SSRB": path.fetch(MIDDLE, LOW, path.host(recovery=SSRB), name="fetch"),
    }


CHAPTER = Chapter(
    title="Fetch latency, one sender, only the rule changed",
    experiments=(
        Experiment(name="latency", title="fetch latency per rule, everything else equal", run=run, weight=60),
    ),
    claims=CLAIMS,
    blocks=blocks,
    scenarios=scenarios,
)
