"""Figures of fetch latency: gain per rule, the publication's bars, the initial RTO, the noise of 100 samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.stats import mean_interval
from ackclock.studies.prr import latency as lat
from ackclock.studies.prr.claims_blog import group_sizes, reruns
from ackclock.studies.prr.path import LOSSES, PAGE_LABELS, PAGES, percent
from ackclock.studies.prr.rules import RATE_HALVING, RFC6675, RULES, SERIES, SSRB
from ackclock.studies.prr.split import group_b_mean, two_sigma
from ackclock.study import Tables
from ackclock.study.estimates import bootstrap, gain, percent_more

LOW, HIGH = LOSSES


def gains_table(tables: Tables) -> pl.DataFrame:
    """Gain of each rule over rate halving, with interval, cell by cell."""
    rows = []
    for page in PAGES:
        for loss in LOSSES:
            for rule in RULES:
                if rule == RATE_HALVING:
                    continue
                e = gain(*lat.paired(tables["latency.fetches"], page, loss, RATE_HALVING, rule))
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
            f"With everything else equal, PRR-SSRB gains {_percent(most['gain_percent'])} at most "
            f"({cell_name(most['page_bytes'], most['loss_per_link'])})"
        )
        if small.len():
            title += f", and {_percent(small.max())} at most on pages below 75 KB"
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


def cell_name(page: int, loss: float) -> str:
    """Name of a cell in titles: page and loss on each link."""
    return f"{PAGE_LABELS[page]}, {percent(loss)}"


def _percent(value: Any) -> str:
    """Percent as titles give them: two significant digits, and 0 below half a hundredth."""
    value = float(value)
    if not math.isfinite(value):
        return "an unknown part"
    return f"{value:.2g} %" if abs(value) >= 0.005 else "0 %"


def bars_table(tables: Tables) -> pl.DataFrame:
    """The publication's bars: mean of group B per kernel, page and loss."""
    rows = []
    for loss in LOSSES:
        for page in PAGES:
            for arm in lat.KERNELS:
                total = lat.latencies(tables["kernels.fetches"], arm, page, loss)
                mask = two_sigma(total)
                e = bootstrap(group_b_mean, total, draws=500)
                a = mean_interval(total[~mask])
                rows.append(
                    {
                        "page_bytes": page,
                        "loss_per_link": loss,
                        "kernel": arm,
                        "fetches": total.size,
                        "in_group_b": int(mask.sum()),
                        "mean_b_s": e.value,
                        "low": e.low,
                        "high": e.high,
                        "mean_a_s": a.value,
                    }
                )
    return pl.DataFrame(rows)


KERNEL_STYLE = {
    lat.WITHOUT_PRR: (OKABE_ITO["vermilion"], ""),
    lat.WITH_PRR_RTO_3: (OKABE_ITO["orange"], "///"),
    lat.WITHOUT_PRR_RTO_1: (OKABE_ITO["sky"], "..."),
    lat.WITH_PRR: (OKABE_ITO["blue"], ""),
}
KERNEL_LABEL = {
    lat.WITHOUT_PRR: "3.0: rate halving, initial RTO 3 s (published arm)",
    lat.WITH_PRR_RTO_3: "PRR, initial RTO 3 s",
    lat.WITHOUT_PRR_RTO_1: "rate halving, initial RTO 1 s",
    lat.WITH_PRR: "3.2: PRR, initial RTO 1 s (published arm)",
}


def bars(tables: Tables) -> Figure:
    """The publication's latency figure, with the two arms between its arms."""
    table = bars_table(tables)

    def draw() -> Any:
        figure, axes = new(7.6, 4.2, ncols=2)
        for ax, loss in zip(axes, LOSSES, strict=True):
            for i, arm in enumerate(KERNEL_STYLE):
                colour, hatch = KERNEL_STYLE[arm]
                rows = table.filter((pl.col("kernel") == arm) & (pl.col("loss_per_link") == loss))
                x = np.arange(len(PAGES)) + 0.2 * (i - 1.5)
                value = rows["mean_b_s"].to_numpy()
                error = np.abs(rows.select("low", "high").to_numpy().T - value)
                ax.bar(x, value, 0.18, color=colour, hatch=hatch, edgecolor="white", lw=0, label=KERNEL_LABEL[arm])
                ax.errorbar(x, value, yerr=error, fmt="none", ecolor="#222222", lw=1)
            ax.set_xticks(range(len(PAGES)), [PAGE_LABELS[p] for p in PAGES])
            ax.set(title=f"{percent(loss)} loss on each link", xlabel="page")
            ax.grid(axis="x", visible=False)
        axes[0].set_ylabel('mean latency of the group\n"with retransmission" (s)')
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    def fall(before: str, after: str) -> str:
        """By how much the bars up to 75 KB at the lower loss fall from one arm to another."""
        found = []
        for page in PAGES[:3]:
            rows = table.filter((pl.col("page_bytes") == page) & (pl.col("loss_per_link") == LOW))
            mean = dict(zip(rows["kernel"], rows["mean_b_s"], strict=True))
            found.append(100 * (1 - mean[after] / mean[before]))
        low, high = _percent(min(found)), _percent(max(found))
        return high if low == high else f"{low.removesuffix(' %')} to {high}"

    return Figure(
        name="kernel-bars",
        title=(
            f"Up to 75 KB at 1 % the initial RTO alone lowers the published bars by {fall(lat.WITH_PRR_RTO_3, lat.WITH_PRR)}, "
            f"the rule alone by {fall(lat.WITHOUT_PRR, lat.WITH_PRR_RTO_3)}"
        ),
        caption=(
            'The publication\'s figure: mean of its 2-sigma group "with retransmission". Its two arms are the outer bars: kernel 3.0 '
            "(rate halving, initial RTO 3 s) and 3.2 (PRR, initial RTO 1 s). The inner bars change one thing at a time: "
            "compare bars with the same initial RTO for what the rule does, bars with the same rule for what the initial RTO does. Lines: 95 % "
            "bootstrap intervals of the whole procedure, split included."
        ),
        draw=draw,
        data={"bars": table},
    )


def initial_rto(tables: Tables) -> Figure:
    """Where group B lies in the distribution of latencies, for both initial RTOs."""
    page = PAGES[1]
    k = tables["kernels.fetches"]
    arms = {lat.WITH_PRR_RTO_3: "initial RTO 3 s", lat.WITH_PRR: "initial RTO 1 s"}
    table = pl.concat(
        lat.cell(k, arm, page, LOW)
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


def noise(tables: Tables) -> Figure:
    """How the publication's bars vary between independent repetitions with 100 and with 1000 fetches."""
    rows = []
    for page in PAGES:
        for n in (100, 1000):
            bars = reruns(tables, lat.WITHOUT_PRR, page, LOW, n)
            rows += [
                {"page_bytes": page, "fetches": n, "repetition": i, "bar_s": b}
                for i, b in enumerate(bars)
                if np.isfinite(b)
            ]
    schema = {"page_bytes": pl.Int64, "fetches": pl.Int64, "repetition": pl.Int64, "bar_s": pl.Float64}
    table = pl.DataFrame(rows, schema=schema)
    title = "The publication's bars in independent repetitions with 100 and with 1000 fetches"
    behind = group_sizes(tables, lat.WITHOUT_PRR, PAGES[2], LOW, 100)
    seen = table.filter((pl.col("page_bytes") == PAGES[2]) & (pl.col("fetches") == 100))["bar_s"].to_numpy()
    if seen.size:
        title = (
            f"Of 100 fetches of 75 KB {behind.min():.0f} to {behind.max():.0f} are behind the bar, which lies between "
            f"{seen.min():.1f} and {seen.max():.1f} s in {seen.size} repetitions"
        )

    def draw() -> Any:
        figure, ax = new(7.0, 3.4)
        rng = np.random.Generator(np.random.PCG64(5))
        for i, (n, colour, marker) in enumerate(((100, OKABE_ITO["vermilion"], "s"), (1000, OKABE_ITO["blue"], "o"))):
            r = table.filter(pl.col("fetches") == n)
            y = (
                np.array([PAGES.index(p) for p in r["page_bytes"]])
                + 0.36 * (i - 0.5)
                + rng.uniform(-0.12, 0.12, r.height)
            )
            ax.plot(
                r["bar_s"],
                y,
                marker,
                color=colour,
                ms=4,
                mew=0,
                alpha=0.55,
                rasterized=True,
                label=f"{n} fetches per bar",
            )
        ax.set_yticks(range(len(PAGES)), [PAGE_LABELS[p] for p in PAGES])
        ax.invert_yaxis()
        ax.set(
            xlabel='mean latency of the group "with retransmission", kernel 3.0, 1 % loss (s)',
            ylabel="page",
            xscale="log",
            xlim=(1.9, 16),
        )
        ticks = [2, 3, 4, 5, 7, 10, 15]
        ax.set_xticks(ticks, [str(t) for t in ticks], minor=False)
        ax.set_xticks([], minor=True)
        ax.grid(axis="y", visible=False)
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
        return figure

    return Figure(
        name="noise",
        title=title,
        caption=(
            "Each mark is one bar of the publication (kernel 3.0, 1 % loss) in one independent repetition of the experiment, with 100 or "
            "with 1000 fetches. Height within a row is scatter only; logarithmic axis."
        ),
        draw=draw,
        data={"repetitions": table},
    )


def events(tables: Tables) -> Figure:
    """Timeouts and retransmissions of each rule, relative to PRR-SSRB."""
    cells = [(p, loss) for p in PAGES[2:] for loss in LOSSES]
    rows = []
    for page, loss in cells:
        for rule in RULES:
            for column, name in _EVENTS.items():
                x, y = lat.paired(tables["latency.fetches"], page, loss, rule, SSRB, column, hit=None)
                e = percent_more(x, y)
                rows.append(
                    {
                        "page_bytes": page,
                        "loss_per_link": loss,
                        "rule": rule,
                        "event": name,
                        "number": int(x.sum()),
                        "fetches": x.size,
                        "more_percent": e.value,
                        "low": e.low,
                        "high": e.high,
                    }
                )
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, axes = new(7.6, 4.2, ncols=3, sharey=True)
        for ax, name in zip(axes, _EVENTS.values(), strict=True):
            for i, rule in enumerate(r for r in RULES if r != SSRB):
                s = SERIES[rule]
                own = table.filter((pl.col("rule") == rule) & (pl.col("event") == name))
                value = own["more_percent"].to_numpy()
                error = np.abs(own.select("low", "high").to_numpy().T - value)
                y = np.arange(len(cells)) + 0.14 * (i - 2)
                ax.errorbar(value, y, xerr=error, fmt=s.marker, color=s.colour, lw=1.3, label=s.label)
            ax.axvline(0, color="#555555", lw=1)
            ax.set(title=name, xlabel="more than PRR-SSRB (%)")
            ax.grid(axis="y", visible=False)
        axes[0].set_yticks(range(len(cells)), [f"{PAGE_LABELS[p]}, {percent(q)}" for p, q in cells])
        axes[0].invert_yaxis()
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, columnspacing=1.2)
        return figure

    def more(rule: str, name: str) -> str:
        r = table.filter(
            (pl.col("page_bytes") == PAGES[3])
            & (pl.col("loss_per_link") == HIGH)
            & (pl.col("rule") == rule)
            & (pl.col("event") == name)
        ).row(0, named=True)
        return compared(r["more_percent"], r["low"], r["high"], name)

    return Figure(
        name="events",
        title=(
            f"{cell_name(PAGES[3], HIGH)}, against PRR-SSRB: rate halving has {more(RATE_HALVING, 'timeouts')} and "
            f"{more(RATE_HALVING, 'retransmissions')}, RFC 6675 {more(RFC6675, 'timeouts')} and "
            f"{more(RFC6675, 'retransmissions')}"
        ),
        caption=(
            "How many more of each a rule has than PRR-SSRB, over all fetches of a cell under the same losses, with 95 % intervals "
            "(heading: a difference whose interval contains zero counts as none; the axes differ). Losses here are random, so no rule "
            "causes any: what bursts cost where they overflow a queue does not show."
        ),
        draw=draw,
        data={"events": table},
    )


def compared(more: float, low: float, high: float, name: str) -> str:
    """A difference in words: "29 % more timeouts", "2 % fewer timeouts", "about as many timeouts"."""
    if not (low > 0 or high < 0):
        return f"about as many {name}"
    return f"{_percent(abs(more))} {'more' if more > 0 else 'fewer'} {name}"


_EVENTS = {
    "data_rtos": "timeouts",
    "data_retransmissions": "retransmissions",
    "lost_retransmits": "lost retransmissions",
}
