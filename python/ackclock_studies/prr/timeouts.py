"""The rules' timeouts, compared with PRR's (P3, P11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import percent_more
from ackclock.plot import Figure, new
from ackclock.report import Block
from ackclock.stats import Estimate
from ackclock.study import Bound, Chapter, Evidence, Tables
from ackclock.study.table import declared
from ackclock_studies.prr import fetches, paths
from ackclock_studies.prr.path import HIGH, LOSSES, PAGE_LABELS, PAGES, percent, where
from ackclock_studies.prr.rules import PRR, RATE_HALVING, RFC6675, RULES, SERIES, prr, share_text

SETTINGS = ("Web", "video")
POOLED = "all cells of the testbed"


def more(tables: Tables, column: str, rule: str, other: str, place: str) -> Estimate:
    """One rule's excess of events over another's, percent, paired by fetch or by population."""
    if place == POOLED:
        return percent_more(*fetches.pooled(tables, rule, other, column))
    t = tables["population.fetches"].filter(pl.col("setting") == place)
    per_seed = t.group_by("arm", "seed").agg(pl.col(column).sum()).sort("seed")
    x, y = (per_seed.filter(pl.col("arm") == arm)[column].to_numpy().astype(np.float64) for arm in (rule, other))
    return percent_more(x, y)


def cell_more(tables: Tables, column: str, rule: str, other: str, page: int, loss: float) -> Estimate:
    """Excess in one cell, percent."""
    return percent_more(*fetches.paired(tables["latency.fetches"], page, loss, rule, other, column, hit=None))


def _timeouts(tables: Tables, rule: str, bound: Bound, decides: Sequence[str]) -> list[Evidence]:
    """A rule's timeouts relative to PRR's: pooled, in populations, and cell by cell for context."""
    other = prr(tables)
    found = []
    for place in (POOLED, *SETTINGS):
        name = place if place == POOLED else f"{place} population"
        for column, what in (("data_rtos", "timeouts"), ("rtos_recovery", "timeouts in recovery")):
            found.append(
                Evidence.of(
                    more(tables, column, rule, other, place),
                    f"{name}: more {what}",
                    bound,
                    unit="%",
                    weighs=column == "data_rtos" and place in decides,
                    key=("pooled" if place == POOLED else place.lower())
                    + ("" if column == "data_rtos" else "_recovery"),
                )
            )
    for page in PAGES[2:]:
        for loss in LOSSES:
            value = cell_more(tables, "data_rtos", rule, other, page, loss)
            found.append(Evidence.of(value, f"{where(page, loss)}: more timeouts", bound, unit="%", weighs=False))
    return found


_SERVERS = (POOLED, "Web")
"""Populations that count: the slides' servers carried "mixed services, excluding streaming video"; video has separate claims."""


def p3(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Rate halving's timeouts minus PRR's."""
    found = _timeouts(tables, RATE_HALVING, bound, _SERVERS)
    return [*found, *paths.on_paths(tables, "timeouts")]


def v3(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Rate halving's timeouts in the video population."""
    return [e for e in _timeouts(tables, RATE_HALVING, bound, ("video",)) if e.key.startswith("video")]


def v4(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """RFC 6675's timeouts in the video population."""
    return [e for e in _timeouts(tables, RFC6675, bound, ("video",)) if e.key.startswith("video")]


def p3_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Size of the excess."""
    return _timeouts(tables, RATE_HALVING, bound, ("Web",))


def p11(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """RFC 6675's timeouts minus PRR's."""
    return [*_timeouts(tables, RFC6675, bound, _SERVERS), *paths.on_paths(tables, "timeouts_6675")]


def p11_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Size of the excess."""
    return _timeouts(tables, RFC6675, bound, ("Web",))


_EVENTS = {
    "data_rtos": "timeouts",
    "data_retransmissions": "retransmissions",
    "lost_retransmits": "lost retransmissions",
}


def events(tables: Tables) -> Figure:
    """Each rule's timeouts and retransmissions, relative to Linux 3.2's PRR."""
    cells = [(p, loss) for p in PAGES[2:] for loss in LOSSES]
    rows = []
    for page, loss in cells:
        for rule in RULES:
            for column, name in _EVENTS.items():
                x, y = fetches.paired(tables["latency.fetches"], page, loss, rule, PRR, column, hit=None)
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
            for i, rule in enumerate(r for r in RULES if r != PRR):
                s = SERIES[rule]
                own = table.filter((pl.col("rule") == rule) & (pl.col("event") == name))
                value = own["more_percent"].to_numpy()
                error = np.abs(own.select("low", "high").to_numpy().T - value)
                y = np.arange(len(cells)) + 0.12 * (i - 2.5)
                ax.errorbar(value, y, xerr=error, fmt=s.marker, color=s.colour, lw=1.3, label=s.label)
            ax.axvline(0, color="#555555", lw=1)
            ax.set(title=name, xlabel="more than PRR (%)")
            ax.grid(axis="y", visible=False)
        axes[0].set_yticks(range(len(cells)), [f"{PAGE_LABELS[p]}, {percent(q)}" for p, q in cells])
        axes[0].invert_yaxis()
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, columnspacing=1.2)
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
            f"{where(PAGES[3], HIGH)}, against PRR: rate halving has {more(RATE_HALVING, 'timeouts')} and "
            f"{more(RATE_HALVING, 'retransmissions')}, RFC 6675 {more(RFC6675, 'timeouts')} and "
            f"{more(RFC6675, 'retransmissions')}"
        ),
        caption=(
            "How many more of each a rule has than PRR of Linux 3.2, over all fetches of a cell under the same losses, with 95 % intervals "
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
    return f"{share_text(abs(more))} {'more' if more > 0 else 'fewer'} {name}"


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (events(tables),)


CHAPTER = Chapter(**declared(__name__), blocks=blocks)
