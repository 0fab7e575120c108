"""Fetch latency by rule with everything else equal: PRR's gain (T3, T6, P5, P6, P10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import gain, minus
from ackclock.plot import Figure, new
from ackclock.report import Block, Table, TableCell, paragraph
from ackclock.scenario import Scenario
from ackclock.stats import Estimate
from ackclock.study import (
    Bound,
    Chapter,
    Evidence,
    Experiment,
    Tables,
)
from ackclock.study.table import declared
from ackclock_studies.prr import path, paths, why
from ackclock_studies.prr.fetches import QUEUE, WAY_BACK, compared, paired, run, summary
from ackclock_studies.prr.path import HIGH, LARGE, LOSSES, LOW, MIDDLE, PAGE_LABELS, PAGES, percent, where
from ackclock_studies.prr.rules import (
    CRB,
    PRR,
    RATE_HALVING,
    RFC6675,
    RULES,
    SERIES,
    label,
    others,
    prr,
    share_text,
)


def rule_gain(tables: Tables, page: int, loss: float, other: str) -> Estimate:
    """Reduction in mean latency relative to rate halving, percent."""
    return gain(*compared(tables, page, loss, RATE_HALVING, other))


def gained(
    tables: Tables, page: int, loss: float, first: str, other: str, label_: str, bound: Bound, **more: Any
) -> Evidence:
    """Reduction in mean latency by one rule relative to another. For a one-segment page it is exact: a single segment
    causes no duplicate ACK and no recovery, so the rules never act.
    """
    x, y = compared(tables, page, loss, first, other)
    cell = {"page": PAGE_LABELS[page], "loss": f"{100 * loss:g} %"}
    if page == PAGES[0] and bool((x == y).all()):
        return Evidence(label=label_, value=0.0, bound=bound, unit="%", cell=cell, **more)
    return Evidence.of(gain(x, y, runs=f"{page} {loss}"), label_, bound, unit="%", cell=cell, **more)


def _gains(tables: Tables, cells: Sequence[tuple[int, float]], bound: Bound, *, keyed: bool = False) -> list[Evidence]:
    """PRR's gains, and its other variant's for comparison."""
    found = []
    for rule in (prr(tables), *others(tables)):
        weighs = rule == prr(tables)
        for page, loss in cells:
            found.append(
                gained(
                    tables,
                    page,
                    loss,
                    RATE_HALVING,
                    rule,
                    f"{where(page, loss)}: gain of {label(rule)}",
                    bound,
                    weighs=weighs,
                    key=_key(page, loss) if keyed and weighs else "",
                )
            )
    return found


def _key(page: int, loss: float) -> str:
    """Name of a cell in notes: `kb75_1` for 75 KB at 1 %."""
    return f"kb{PAGE_LABELS[page].split()[0].replace('.', '_')}_{100 * loss:g}"


def t3(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """PRR's gain at 1 % loss, page by page."""
    return _gains(tables, [(page, LOW) for page in PAGES], bound, keyed=True)


def t6(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Gain at 3 % loss minus gain at 1 %, for every page in the figure."""
    found = []
    for rule in (prr(tables), *others(tables)):
        for page in PAGES:
            text = f"{PAGE_LABELS[page]}: gain of {label(rule)} at 3 % less gain at 1 %"
            weighs, cell = rule == prr(tables), {"page": PAGE_LABELS[page]}
            both = [gained(tables, page, loss, RATE_HALVING, rule, "", bound) for loss in (HIGH, LOW)]
            if all(e.interval is None for e in both):  # one segment: no rule acts
                apart = both[0].value - both[1].value
                found.append(Evidence(label=text, value=apart, bound=bound, unit="points", weighs=weighs, cell=cell))
                continue
            e = minus(*(rule_gain(tables, page, loss, rule) for loss in (HIGH, LOW)))
            found.append(Evidence.of(e, text, bound, unit="points", weighs=weighs, cell=cell))
    return found


def p5(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Gain over rate halving in every cell; its growth with loss and size for context."""
    found = _gains(tables, [(page, loss) for page in PAGES for loss in LOSSES], bound, keyed=True)
    rule = prr(tables)
    gains = {(page, loss): rule_gain(tables, page, loss, rule) for page in PAGES[1:] for loss in LOSSES}
    for page in (MIDDLE, LARGE):
        grows = minus(gains[page, HIGH], gains[page, LOW])
        found.append(Evidence.of(grows, f"{PAGE_LABELS[page]}: grows with loss", bound, unit="points", weighs=False))
    for loss in LOSSES:
        grows = minus(gains[LARGE, loss], gains[PAGES[1], loss])
        label_ = f"{percent(loss)}: 750 KB less 7.5 KB, grows with size"
        found.append(Evidence.of(grows, label_, bound, unit="points", weighs=False))
    return [*found, *paths.on_paths(tables, "longer")]


def p5_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """The abstract's bound: at most 10 %."""
    return _gains(tables, [(page, loss) for page in PAGES for loss in LOSSES], bound)


def p6(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """RFC 6675's latency against PRR's in every cell."""
    return [
        gained(
            tables,
            page,
            loss,
            RFC6675,
            prr(tables),
            f"{where(page, loss)}: {label(prr(tables))} below RFC 6675",
            bound,
        )
        for page in reversed(PAGES)
        for loss in reversed(LOSSES)
    ] + paths.on_paths(tables, "similar")


def p10(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """PRR-CRB's latency against RFC 6675's."""
    return [
        gained(
            tables,
            page,
            loss,
            CRB,
            RFC6675,
            f"{where(page, loss)}: RFC 6675 below PRR-CRB",
            bound,
            key=_key(page, loss),
        )
        for page in PAGES
        for loss in LOSSES
    ] + paths.on_paths(tables, "crb")


def gains_table(tables: Tables) -> pl.DataFrame:
    """Each rule's gain over rate halving, with interval, cell by cell."""
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

    own = table.filter((pl.col("rule") == PRR) & pl.col("gain_percent").is_not_nan()).sort("gain_percent")
    title = "With everything else equal: gain of each rule over rate halving"
    if own.height:
        most = own.row(-1, named=True)
        small = own.filter(pl.col("page_bytes") < PAGES[2])["gain_percent"]
        title = (
            f"With everything else equal, PRR gains {share_text(most['gain_percent'])} at most "
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
    """Mean latencies of loss-hit fetches by cell and rule."""
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


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
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
    """Scenarios in this chapter, by name."""
    return {
        "fetch of 75 KB at 1 %, PRR": path.fetch(MIDDLE, LOW, path.host(recovery=PRR), name="fetch"),
    }


CHAPTER = Chapter(
    experiments=(
        Experiment(
            name="latency",
            title="fetch latency per rule, everything else equal",
            run=run,
            weight=60,
            reads=(QUEUE, WAY_BACK),
        ),
        Experiment(name="six", title="six segments that do not fit into the first window", run=why.run_six, weight=3),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
