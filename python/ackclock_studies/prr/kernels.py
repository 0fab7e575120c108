"""The publication's comparison: two kernels that differ in the rule and in the initial RTO, in all pairings (T10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, bootstrap, mean_over_runs, ratio, ratios_apart
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block, items, paragraph
from ackclock.scenario import Scenario
from ackclock.stats import Estimate
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
)
from ackclock.study.cells import collect
from ackclock.study.table import declared
from ackclock_studies.prr import fetches, path
from ackclock_studies.prr.path import HIGH, LOSSES, LOW, MIDDLE, PAGE_LABELS, PAGES, percent, where
from ackclock_studies.prr.rules import (
    share_text,
)
from ackclock_studies.prr.split import group_b_mean, two_sigma

KERNELS: dict[str, dict[str, Any]] = {
    "3.0": {"profile": "linux-3.0"},
    "3.2": {"profile": "linux-3.2", "recovery": "prr-linux-3.2"},
    "3.0, initial RTO 1 s": {"profile": "linux-3.0", "initial_rto": "1 s"},
    "3.2, initial RTO 3 s": {"profile": "linux-3.2", "recovery": "prr-linux-3.2", "initial_rto": "3 s"},
}
"""The publication's two arms, and each of them with the other's initial RTO."""

WITHOUT_PRR, WITH_PRR = "3.0", "3.2"
WITH_PRR_RTO_3 = "3.2, initial RTO 3 s"
WITHOUT_PRR_RTO_1 = "3.0, initial RTO 1 s"


def run(plan: Plan) -> Data:
    """The publication's comparison: two kernels that differ in the rule and in the initial RTO, in all pairings.

    Returns
    -------
    Data
        `kernels.fetches`, keys arm, page, loss, seed; `kernels.bars`: the publication's bars (`bars_of`).
    """
    cells = []
    for page in path.PAGES:
        for loss in path.LOSSES:
            large = page == path.PAGES[-1]
            seeds = plan.count(quick=800 if large else 2500, paper=20_000)
            for arm, settings in KERNELS.items():
                cells.append(
                    fetches.fetch_cell(arm, page, loss, path.host(**settings), f"kernels {page} {loss}", seeds)
                )
    data = collect("kernels", cells, plan)
    return replace(data, tables={**data.tables, "kernels.bars": bars_of(data.tables)})


_NO_BOUND = Bound()


def group_bar(tables: Tables, page: int, first: str, second: str) -> Estimate:
    """Reduction in the publication's bar for a page at 1 % by the second arm, percent."""
    x, y = (fetches.latencies(tables["kernels.fetches"], arm, page, LOW) for arm in (first, second))
    return bootstrap(lambda x, y: 100 * (1 - group_b_mean(y) / group_b_mean(x)), x, y)


def t10(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Reduction in the bar if only the initial RTO changes from 3 s to 1 s, and if only the rule changes."""
    found = []
    for page in PAGES[:3]:
        fall = group_bar(tables, page, WITH_PRR_RTO_3, WITH_PRR)
        text = f"{where(page, LOW)}: fall of the bar, initial RTO 3 s to 1 s"
        found.append(Evidence.of(fall, text, bound, unit="%", key=f"rto{page}"))
    for page in PAGES[:3]:
        fall = group_bar(tables, page, WITHOUT_PRR, WITH_PRR_RTO_3)
        text = f"{where(page, LOW)}: fall of the bar, only the rule changed"
        found.append(Evidence.of(fall, text, bound, unit="%", weighs=False, key=f"rule{page}"))
    lost = fetches.cell(tables["kernels.fetches"], WITH_PRR, PAGES[0], LOW)
    syn = ((lost["syn_retransmissions"] + lost["synack_retransmissions"]) > 0).to_numpy().astype(np.float64)
    text = "fetches that lost a SYN or SYN-ACK (expected 3.9 %)"
    found.append(Evidence.of(mean_over_runs(syn), text, _NO_BOUND, unit="%", factor=100, weighs=False, key="syn"))
    return found


def _means(tables: Tables, page: int, *arms: str) -> list[tuple[Array, Array]]:
    """Latencies of all fetches in each arm at 3 % and at 1 %, one per seed present in all of them."""
    cells = [fetches.cell(tables["kernels.fetches"], arm, page, loss) for arm in arms for loss in (HIGH, LOW)]
    seconds = [c["total_s"].to_numpy().astype(np.float64) for c in cells]
    done = np.all([np.isfinite(x) for x in seconds], axis=0)
    kept = [x[done] for x in seconds]
    return list(zip(kept[::2], kept[1::2], strict=True))


def rise(high: Array, low: Array) -> Array:
    """Ratio of the mean at 3 % to the mean at 1 %, along the last axis."""
    found: Array = high.mean(axis=-1) / low.mean(axis=-1)
    return found


def t5(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Rise from 1 % to 3 % without PRR, minus the rise with PRR: for the published kernels, and for the rule alone."""
    found = []
    for page in PAGES:
        old, new = _means(tables, page, WITHOUT_PRR, WITH_PRR)
        more = ratios_apart(old, new)
        text = f"{PAGE_LABELS[page]}: 3 % over 1 %, kernel 3.0 less kernel 3.2"
        found.append(Evidence.of(more, text, bound, key=f"more{page}"))
    for page in PAGES:
        old, new = _means(tables, page, WITHOUT_PRR, WITH_PRR_RTO_3)
        more = ratios_apart(old, new)
        text = f"{PAGE_LABELS[page]}: 3 % over 1 %, rate halving less PRR, initial RTO 3 s with both"
        found.append(Evidence.of(more, text, bound, weighs=False, key=f"rule{page}"))
    return found


def t5_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Rise without PRR."""
    found = []
    for page in PAGES:
        ((high, low),) = _means(tables, page, WITHOUT_PRR)
        text = f"{PAGE_LABELS[page]}: 3 % over 1 %, kernel 3.0"
        found.append(Evidence.of(ratio(high, low), text, bound, key=f"rise{page}"))
    return found


def t11(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of the difference between the kernels due to the initial RTO alone."""
    found = []
    for page in PAGES:
        old, new, fast = _means(tables, page, WITHOUT_PRR, WITH_PRR, WITHOUT_PRR_RTO_1)

        def part(a: Array, b: Array, c: Array, d: Array, e: Array, f: Array) -> Array:
            whole = rise(a, b) - rise(c, d)
            share: Array = 100 * (rise(a, b) - rise(e, f)) / np.where(whole == 0, np.nan, whole)
            return share

        text = f"{PAGE_LABELS[page]}: of the difference, what the initial RTO alone makes"
        share = bootstrap(part, *old, *new, *fast)
        found.append(Evidence.of(share, text, bound, unit="%", weighs=page in PAGES[:3], key=f"part{page}"))
    return found


def bars_of(tables: Tables) -> pl.DataFrame:
    """The publication's bars: mean of each group by kernel, page and loss rate."""
    rows = []
    for loss in LOSSES:
        for page in PAGES:
            for arm in KERNELS:
                total = fetches.latencies(tables["kernels.fetches"], arm, page, loss)
                mask = two_sigma(total)
                e = bootstrap(group_b_mean, total, draws=500)
                a = mean_over_runs(total[~mask])
                rows.append(
                    {
                        "page_bytes": page,
                        "loss_per_link": loss,
                        "kernel": arm,
                        "fetches": total.size,
                        "in_group_b": int(mask.sum()),
                        "mean_b_s": e.value,
                        "low_b": e.low,
                        "high_b": e.high,
                        "mean_a_s": a.value,
                        "low_a": a.low,
                        "high_a": a.high,
                    }
                )
    return pl.DataFrame(rows)


KERNEL_STYLE = {
    WITHOUT_PRR: (OKABE_ITO["vermilion"], ""),
    WITH_PRR_RTO_3: (OKABE_ITO["orange"], "///"),
    WITHOUT_PRR_RTO_1: (OKABE_ITO["sky"], "..."),
    WITH_PRR: (OKABE_ITO["blue"], ""),
}

KERNEL_LABEL = {
    WITHOUT_PRR: "3.0: rate halving, initial RTO 3 s (published arm)",
    WITH_PRR_RTO_3: "PRR, initial RTO 3 s",
    WITHOUT_PRR_RTO_1: "rate halving, initial RTO 1 s",
    WITH_PRR: "3.2: PRR, initial RTO 1 s (published arm)",
}


def bars(tables: Tables) -> Figure:
    """The publication's latency figure, with the two mixed arms inserted between its arms."""
    table = tables["kernels.bars"]

    groups = (("mean_b_s", '"with retransmission" (s)'), ("mean_a_s", '"almost none" (s)'))

    def draw() -> Any:
        figure, axes = new(7.6, 5.6, nrows=2, ncols=2, sharey="row", sharex=True)
        for row, (column, group) in enumerate(groups):
            for ax, loss in zip(axes[row], LOSSES, strict=True):
                for i, arm in enumerate(KERNEL_STYLE):
                    colour, hatch = KERNEL_STYLE[arm]
                    rows = table.filter((pl.col("kernel") == arm) & (pl.col("loss_per_link") == loss))
                    x = np.arange(len(PAGES)) + 0.2 * (i - 1.5)
                    value = rows[column].to_numpy()
                    ends = rows.select(*(f"{end}{column[4:-2]}" for end in ("low", "high"))).to_numpy().T
                    label = KERNEL_LABEL[arm]
                    ax.bar(x, value, 0.18, color=colour, hatch=hatch, edgecolor="white", lw=0, label=label)
                    ax.errorbar(x, value, yerr=np.abs(ends - value), fmt="none", ecolor="#222222", lw=1)
                ax.set_xticks(range(len(PAGES)), [PAGE_LABELS[p] for p in PAGES])
                ax.grid(axis="x", visible=False)
            axes[row][0].set_ylabel(f"mean latency of the group\n{group}")
        for ax, loss in zip(axes[0], LOSSES, strict=True):
            ax.set_title(f"{percent(loss)} loss on each link")
        for ax in axes[1]:
            ax.set_xlabel("page")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    def fall(before: str, after: str) -> str:
        """Reduction in the bars up to 75 KB at the lower loss rate, from one arm to another."""
        found = []
        for page in PAGES[:3]:
            rows = table.filter((pl.col("page_bytes") == page) & (pl.col("loss_per_link") == LOW))
            mean = dict(zip(rows["kernel"], rows["mean_b_s"], strict=True))
            found.append(100 * (1 - mean[after] / mean[before]))
        low, high = share_text(min(found)), share_text(max(found))
        return high if low == high else f"{low.removesuffix(' %')} to {high}"

    return Figure(
        name="kernel-bars",
        title=(
            f"Up to 75 KB at 1 % the initial RTO alone lowers the published bars by {fall(WITH_PRR_RTO_3, WITH_PRR)}, "
            f"the rule alone by {fall(WITHOUT_PRR, WITH_PRR_RTO_3)}"
        ),
        caption=(
            'The publication\'s second figure: mean of its 2-sigma groups "with retransmission" (above) and "almost none" (below). Its two arms are the outer bars: kernel 3.0 '
            "(rate halving, initial RTO 3 s) and 3.2 (PRR, initial RTO 1 s). The inner bars change one thing at a time: "
            "compare bars with the same initial RTO for what the rule does, bars with the same rule for what the initial RTO does. Lines: 95 % "
            "bootstrap intervals of the whole procedure, split included."
        ),
        draw=draw,
        data={"bars": table},
    )


def rises(tables: Tables) -> Figure:
    """Figure 3 in the paper: growth of latency with loss, and the part due to the initial RTO."""
    shown = (WITHOUT_PRR, WITHOUT_PRR_RTO_1, WITH_PRR)
    rows = []
    for page in PAGES:
        for arm in shown:
            ((high, low),) = _means(tables, page, arm)
            e = ratio(high, low)
            rows.append({"page_bytes": page, "kernel": arm, "rise": e.value, "low": e.low, "high": e.high})
    table = pl.DataFrame(rows)

    def draw() -> Any:
        made, ax = new(7.0, 3.4)
        for i, arm in enumerate(shown):
            own = table.filter(pl.col("kernel") == arm)
            colour, hatch = KERNEL_STYLE[arm]
            x = np.arange(len(PAGES)) + 0.26 * (i - 1)
            value = own["rise"].to_numpy()
            error = np.abs(own.select("low", "high").to_numpy().T - value)
            label = KERNEL_LABEL[arm]
            ax.bar(x, value, 0.24, color=colour, hatch=hatch, edgecolor="white", lw=0, label=label)
            ax.errorbar(x, value, yerr=error, fmt="none", ecolor="#222222", lw=1)
        ax.axhline(1.0, color="#555555", lw=0.8)
        ax.set_xticks(range(len(PAGES)), [PAGE_LABELS[p] for p in PAGES])
        ax.set(xlabel="page", ylabel="mean latency of all fetches,\n3 % over 1 % loss")
        ax.grid(axis="x", visible=False)
        made.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=1)
        return made

    def of(arm: str) -> str:
        own = table.filter(pl.col("kernel") == arm)["rise"].to_numpy()
        return f"{own.min():.2f} to {own.max():.2f}"

    return Figure(
        name="kernel-rises",
        title=f"From 1 to 3 % loss latency rises {of(WITHOUT_PRR)} times without PRR and {of(WITH_PRR)} times with it",
        caption=(
            "The publication's third figure, over all fetches. The middle bar has the rule of the left one and the initial RTO of the right one: from left to "
            "middle is what the initial RTO does, from middle to right what the rule does. Lines: 95 % intervals."
        ),
        draw=draw,
        data={"rises": table},
    )


def initial_rto(tables: Tables) -> Figure:
    """Position of group B in the latency distribution, for both initial RTOs."""
    page = PAGES[1]
    k = tables["kernels.fetches"]
    arms = {WITH_PRR_RTO_3: "initial RTO 3 s", WITH_PRR: "initial RTO 1 s"}
    table = pl.concat(
        fetches.cell(k, arm, page, LOW)
        .filter(pl.col("total_s").is_not_null())
        .with_columns((pl.col("syn_retransmissions") + pl.col("synack_retransmissions") > 0).alias("syn_lost"))
        for arm in arms
    )

    def draw() -> Any:
        figure, axes = new(7.6, 3.9, nrows=2, sharex=True)
        rng = np.random.Generator(np.random.PCG64(3))
        for ax, (arm, name) in zip(axes, arms.items(), strict=True):
            rows = table.filter(pl.col("arm") == arm)
            total = rows["total_s"].to_numpy()
            syn = rows["syn_lost"].to_numpy()
            hit = rows["data_retransmissions"].to_numpy() > 0
            height = rng.uniform(0.1, 0.9, total.size)
            for mask, marker, colour, what in (
                (~syn & ~hit, ".", "#9a9a9a", "neither SYN nor data lost"),
                (~syn & hit, "^", OKABE_ITO["blue"], "data retransmitted"),
                (syn, "s", OKABE_ITO["vermilion"], "SYN or SYN-ACK lost"),
            ):
                ax.plot(
                    total[mask], height[mask], marker, color=colour, ms=4, mew=0, alpha=0.8, label=what, rasterized=True
                )
            threshold = total.min() + 2 * total.std()
            ax.axvspan(threshold, 1.05 * total.max(), color="#f7ead9", lw=0, zorder=0)
            group = two_sigma(total)
            about = f"{group.sum()} of {total.size}"
            if group.any():
                about += f", {100 * syn[group].mean():.0f} % of them SYN losses, mean {total[group].mean():.2f} s"
            ax.text(
                threshold + 0.08,
                1.02,
                f'"with retransmission": {about}',
                fontsize=8,
                va="bottom",
            )
            ax.set(ylabel=name, yticks=[], ylim=(0, 1), xlim=(0, 5))
            ax.grid(axis="y", visible=False)
        axes[-1].set_xlabel(f"latency of a {PAGE_LABELS[page]} page at 1 % loss on each link (s)")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    syns, inside = [], []
    for arm in arms:
        rows = table.filter(pl.col("arm") == arm)
        group = two_sigma(rows["total_s"].to_numpy())
        syn = rows["syn_lost"].to_numpy()
        hit = (rows["data_retransmissions"].to_numpy() > 0) & ~syn
        syns.append(_share(syn[group]))
        inside.append(_share(group[hit]))
    three, one = syns
    return Figure(
        name="initial-rto",
        title=f'Of the group "with retransmission", {three} (initial RTO 3 s) and {one} (1 s) lost a SYN or SYN-ACK',
        caption=(
            "Each mark is one fetch; height is scatter only. Shaded: what the publication's 2-sigma split calls \"with "
            f'retransmission". Of the fetches that retransmitted data and lost no SYN, {inside[0]} (initial RTO 3 s) and '
            f"{inside[1]} (1 s) lie inside it. A lost SYN or SYN-ACK waits for the initial RTO; the axis ends at 5 s, where "
            "fetches that lost several may lie beyond."
        ),
        draw=draw,
        data={"fetches": table},
    )


def _share(mask: Any) -> str:
    return f"{100 * mask.mean():.0f} %" if mask.size else "none"


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        paragraph(
            "The publication compared two kernels, 3.0 without and 3.2 with PRR, and sorted fetches by latency: those at least two "
            'standard deviations above the fastest count as "with retransmission". Between these kernels the initial '
            "retransmission timeout changed too, from 3 s to 1 s. A lost SYN or SYN-ACK waits for exactly this timeout, "
            "and at 1 % per link and direction 1 − 0.9801² = 3.9 % of all fetches lose one. A repaired data loss "
            "costs a fraction of a second, a lost SYN 3 s or 1 s: how many of the fetches that the 2-sigma split picks out "
            "lost a SYN, and what the bars do when only this number or only the rule changes, the figures show and T10 tests."
        ),
        bars(tables),
        initial_rto(tables),
        rises(tables),
        items(
            [
                "The split measures from the minimum (the text says from the average), and with the standard deviation of all "
                "fetches, which the lost SYNs themselves make large.",
                'The error bars of the published group "with retransmission" use the standard deviation of the other group; an '
                "empty group divides by zero.",
                'The published plot of 1 % against 3 % shows only the group "with retransmission"; the text says all fetches.',
                "The cwnd experiment ran with a queue of 50 packets in the script; the text says 100, and so do we.",
                "Fetches here know nothing of those before, and a loss takes one segment. T9 tests hosts with a destination cache, "
                "and with segmentation offload.",
            ]
        ),
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"fetch as published, kernel 3.0": path.fetch(MIDDLE, LOW, path.host(**KERNELS["3.0"]), name="kernel 3.0")}


CHAPTER = Chapter(
    experiments=(
        Experiment(name="kernels", title="fetch latency as published: kernels 3.0 and 3.2", run=run, weight=20),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
