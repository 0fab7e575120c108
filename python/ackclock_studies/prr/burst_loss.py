"""Burst losses and short queues: differences between the rules that vanish with a deep queue and single losses (T12,
P4, P12).

Length: three ways to lose in bursts, and the claims that are judged with each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import NOTHING, Array, bootstrap, mean_over_runs, percent_more, quotient, remaining
from ackclock.judge.evidence import wider
from ackclock.plot import Figure, new
from ackclock.report import Block, paragraph
from ackclock.scenario import Scenario
from ackclock.stats import Estimate
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Reading,
    Tables,
    above,
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.prr import path, paths
from ackclock_studies.prr.path import LARGE, PAGE_LABELS
from ackclock_studies.prr.rules import CRB, PRR, RATE_HALVING, RFC6675, SSRB, label, prr

RULES = (RATE_HALVING, RFC6675, CRB, SSRB, PRR)
LOSS = 0.02
LENGTHS = (1, 3, 8)
"""Mean length of a loss burst, packets; 1: single, independent losses."""
DEPTHS = (6, 10, 25, 100)
"""Queue limit at the bottleneck, packets; the path itself holds 10."""
COLUMNS = ("total_s", "data_retransmissions", "data_rtos", "lost_retransmits")

QUICK: Mapping[tuple[int, int], Mapping[str, int]] = {
    (1, 10): dict.fromkeys((RFC6675, SSRB, PRR), 400),
    (1, 100): dict.fromkeys((RATE_HALVING, RFC6675, CRB, SSRB, PRR), 500),
    (3, 10): dict.fromkeys((RFC6675, PRR), 300),
}
"""(Length, depth) -> rule -> fetches at quick scale, for the cells in which claims are judged. The other cells, shown in the figure, have 120."""

DEPTH = Reading(
    name="depth",
    question="How many packets does the queue of the bottleneck hold?",
    options={"10 packets": "what the path holds", **{f"{n} packets": "" for n in DEPTHS if n != 10}},
    why="a bandwidth-delay product is the rule by which routers were sized when the servers were measured",
)
LENGTH = Reading(
    name="burst",
    question="How many packets are lost at a time?",
    options={"1 packet": "single losses", **{f"{n} packets": "on average" for n in LENGTHS[1:]}},
    why="the loss of the publications' paths is given as a rate alone",
)


def scenario(rule: str, length: int, depth: int, **stack: Any) -> Scenario:
    """Return one 750 KB fetch over the bottleneck alone, with bursts of data losses (two-state Gilbert-Elliott model)."""
    leave = 1 / length
    loss = {"kind": "gilbert-elliott", "p": LOSS * leave / (1 - LOSS), "r": leave, "applies_to": "data"}
    single = {"kind": "bernoulli", "p": LOSS, "applies_to": "data"}
    return Scenario.from_dict(
        {
            "name": f"{rule}, bursts of {length}, queue of {depth}",
            "duration": "1 h",
            "network": {
                "topology": "chain",
                "bottleneck": {
                    "rate": "1.2 Mbit/s",
                    "delay": "50 ms",
                    "queue": {"kind": "drop-tail", "limit": f"{depth} packets"},
                    "loss": single if length == 1 else loss,
                },
                "reverse": {"bottleneck": {"rate": "1.2 Mbit/s", "delay": "50 ms"}},
            },
            "flows": [{**path.host(recovery=rule, **stack), "workload": {"kind": "fetch", "bytes": f"{LARGE} bytes"}}],
        }
    )


def run(plan: Plan) -> Data:
    """Every rule with every burst length and every queue, paired by common random numbers.

    Returns
    -------
    Data
        `bursts.fetches`: rule, length, depth, seed and the columns of a fetch.
    """
    cells = [
        Cell(
            scenario=scenario(rule, length, depth),
            keys={"rule": rule, "length": length, "depth": depth},
            stream=f"bursts {length} {depth}",
            seeds=plan.count(quick=QUICK.get((length, depth), {}).get(rule, 120), paper=1500),
            needs={"fetches": COLUMNS},
        )
        for length in LENGTHS
        for depth in DEPTHS
        for rule in RULES
    ]
    return collect("bursts", cells, plan)


PACKET_MS = 10
"""Serialisation time of a packet at the bottleneck, ms: a burst of n packets lasts n times as long."""


def passing(rule: str, length: int, depth: int) -> Scenario:
    """One fetch over a bottleneck that loses everything for short periods, 2 % of the time. As on a real link, a burst can end while the sender waits."""
    made = scenario(rule, length, depth).to_dict()
    made["name"] = f"{rule}, bursts of {length} that pass, queue of {depth}"
    bottleneck = made["network"]["bottleneck"]
    del bottleneck["loss"]
    lost = round(1 / LOSS)
    bottleneck["capacity"] = {
        "kind": "random",
        "every": f"{PACKET_MS * length} ms",
        "loss": {"kind": "choice", "values": [0.0] * (lost - 1) + [1.0]},
    }
    return Scenario.from_dict(made)


def _quick(rule: str, depth: int) -> int:
    """Fetches at quick scale under bursts that end with time: few where no claim reads them."""
    if rule in (RATE_HALVING, RFC6675, PRR):
        return 800
    return 200 if (rule, depth) == (CRB, 10) else 60


def run_passing(plan: Plan) -> Data:
    """Every rule with time-limited loss bursts, for every queue, paired by common random numbers.

    Returns
    -------
    Data
        `passing.fetches`: rule, length, depth, seed and the columns of a fetch.
    """
    cells = [
        Cell(
            scenario=passing(rule, length, depth),
            keys={"rule": rule, "length": length, "depth": depth},
            stream=f"passing {length} {depth}",
            seeds=plan.count(quick=_quick(rule, depth), paper=3000),
            needs={"fetches": COLUMNS},
        )
        for length in LENGTHS[1:]
        for depth in DEPTHS
        for rule in RULES
    ]
    return collect("passing", cells, plan)


NO_OVERSHOOT = 14
"""Initial ssthresh in the arm without overshoot, segments: above the 10 held by the path, below the 20 with its queue."""


def run_calm(plan: Plan) -> Data:
    """The cell with single losses and a queue of one bandwidth-delay product, repeated without slow-start overshoot.

    Returns
    -------
    Data
        `calm.fetches`: rule, seed and the columns of a fetch; the losses are those of `bursts`.
    """
    cells = [
        Cell(
            scenario=scenario(rule, 1, 10, initial_ssthresh=NO_OVERSHOOT),
            keys={"rule": rule},
            stream="bursts 1 10",
            seeds=plan.count(quick=400, paper=1500),
            needs={"fetches": COLUMNS},
        )
        for rule in (RFC6675, SSRB, PRR)
    ]
    return collect("calm", cells, plan)


SPARED = 400
"""Number of fetches at quick scale with retransmissions that are never lost."""
AS_DRAWN, HARMLESS = "as drawn", "harmless"
ROW, LAST = 3, 20
"""Limits on harmless losses: at most `ROW` in a row, and none among the last `LAST` segments."""


@cache
def _of_three(rule: str) -> dict[str, Any]:
    """The scenario with bursts of 3, as a table."""
    return scenario(rule, 3, 10).to_dict()


def spared(rule: str, draw: int, losses: str = AS_DRAWN) -> Scenario:
    """Bursts of 3 with a 10-packet queue, as in `scenario`, but for first transmissions only: retransmissions are not
    lost at random. Harmless losses are as many, in more bursts, and never include the end of the response or
    everything in flight.
    """
    rng = np.random.Generator(np.random.PCG64((2011, draw)))
    segments = math.ceil(LARGE / 1448)
    leave = 1 / 3
    longest = ROW if losses == HARMLESS else segments
    mean = (1 - (1 - leave) ** longest) / leave
    row, drops = 0, []
    for i, u in enumerate(rng.random(segments)):
        row = (row + 1 if u >= leave and row < longest else 0) if row else int(u < LOSS / mean / (1 - LOSS))
        if row and not (losses == HARMLESS and i >= segments - LAST):
            drops.append({"first": i + 1})
    made = deepcopy(_of_three(rule))
    made["name"] = f"{rule}, bursts of 3, retransmissions spared, {losses}"
    made["network"]["bottleneck"]["loss"] = {"kind": "scripted", "drops": drops} if drops else {"kind": "none"}
    return Scenario.from_dict(made)


def run_spared(plan: Plan) -> Data:
    """Loss bursts that spare retransmissions, drawn in advance so that both rules face identical ones.

    Returns
    -------
    Data
        `spared.fetches`: rule, draw, losses (as drawn, or harmless), seed and the columns of a fetch.
    """
    cells = [
        Cell(
            scenario=spared(rule, draw, losses),
            keys={"rule": rule, "draw": draw, "losses": losses},
            stream="spared",
            seeds=1,
            needs={"fetches": COLUMNS},
        )
        for draw in range(plan.count(quick=SPARED, paper=1500))
        for losses in (AS_DRAWN, HARMLESS)
        for rule in (RFC6675, PRR)
    ]
    return collect("spared", cells, plan)


def _percent_left(with_it: Array, without: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(100 * without.mean(axis=1) / with_it.mean(axis=1))


def harmless(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of the timeouts after bursts that remains under each rule if no burst removes everything in flight;
    for context, the fraction if only retransmissions are spared.
    """
    found = []
    for rule, key in ((RFC6675, "rfc6675"), (PRR, "prr")):
        as_is = tables["bursts.fetches"].filter(length=3, depth=10, rule=rule)["data_rtos"].to_numpy()
        rows = tables["spared.fetches"].filter(rule=rule)
        drawn, short = (
            rows.filter(losses=losses)["data_rtos"].to_numpy().astype(np.float64) for losses in (AS_DRAWN, HARMLESS)
        )
        text = f"{name(3, 10)}, {label(rule)}: of the timeouts, what is left if"
        found += [
            Evidence.of(
                bootstrap(_percent_left, drawn, short) if drawn.any() else NOTHING,
                f"{text} no burst takes the end or all that is in flight; retransmissions spared in both",
                bound,
                unit="%",
                key=f"harmless_{key}",
            ),
            Evidence.of(
                quotient(mean_over_runs(100 * drawn), mean_over_runs(as_is.astype(np.float64))),
                f"{text} retransmissions are spared",
                Bound(),
                unit="%",
                weighs=False,
                key=f"spared_{key}",
            ),
        ]
    rows = tables["spared.fetches"].filter(losses=AS_DRAWN).sort("draw")
    text = f"{name(3, 10)}, retransmissions spared: more timeouts with RFC 6675"
    left = _both(rows, "data_rtos", RFC6675, PRR)
    return [*found, Evidence.of(percent_more(*left), text, Bound(), unit="%", weighs=False, key="spared_more")]


def pairs(
    tables: Tables, column: str, first: str, second: str, length: int, depth: int, *, per_packet: bool = False
) -> tuple[Array, Array]:
    """Two rules' values for the same seeds (the first ones, if one has fewer); for times, only fetches completed
    under both. Bursts end with time unless `per_packet` is set: then a burst lasts until enough packets have arrived,
    however long the sender waits.
    """
    table = "bursts.fetches" if length == 1 or per_packet else "passing.fetches"
    own = tables[table].filter((pl.col("length") == length) & (pl.col("depth") == depth)).sort("seed")
    return _both(own, column, first, second)


def _both(own: pl.DataFrame, column: str, first: str, second: str) -> tuple[Array, Array]:
    x, y = (own.filter(pl.col("rule") == rule)[column].to_numpy().astype(np.float64) for rule in (first, second))
    x, y = x[: y.size], y[: x.size]
    ended = np.isfinite(x) & np.isfinite(y)
    return (x[ended], y[ended]) if column == "total_s" else (x, y)


def endless(tables: Tables, length: int, depth: int, key: str) -> list[Evidence]:
    """Fetches not completed after an hour. Their time is unknown, and no mean includes them."""
    own = tables["bursts.fetches"].filter((pl.col("length") == length) & (pl.col("depth") == depth))
    return [
        Evidence(
            label=f"{name(length, depth)}: fetches that did not end within the hour, {label(rule)}",
            value=float((~rows["total_s"].cast(pl.Float64).fill_null(float("nan")).is_finite()).sum()),
            bound=Bound(),
            unit=f"of {rows.height}",
            weighs=False,
            key=f"{key}_{'halving' if rule == RATE_HALVING else 'prr'}",
        )
        for rule in (RATE_HALVING, prr(tables))
        for rows in (own.filter(pl.col("rule") == rule),)
    ]


def more(
    tables: Tables, column: str, rule: str, other: str, length: int, depth: int, *, per_packet: bool = False
) -> Estimate:
    """Percentage by which one rule exceeds another."""
    x, y = pairs(tables, column, rule, other, length, depth, per_packet=per_packet)
    return percent_more(x, y, runs=f"bursts {length} {depth} {per_packet}")


def name(length: int, depth: int) -> str:
    """Cell name."""
    return f"{'single losses' if length == 1 else f'bursts of {length}'}, queue of {depth}"


def chosen(tables: Tables) -> tuple[int, int]:
    """Burst length and queue depth for this reading."""
    return int(LENGTH.of(tables).split()[0]), int(DEPTH.of(tables).split()[0])


def _of_6675(tables: Tables, column: str, what: str, bound: Bound, cell: tuple[int, int], key: str) -> list[Evidence]:
    """RFC 6675 against PRR in the decisive cell, and in all others."""
    cells = [cell, *((n, d) for n in LENGTHS for d in DEPTHS if (n, d) != cell)]
    return [
        Evidence.of(
            more(tables, column, RFC6675, prr(tables), n, d),
            f"{name(n, d)}: more {what}",
            bound,
            unit="%",
            weighs=(n, d) == cell,
            key=key if (n, d) == cell else f"{key}_{n}_{d}",
        )
        for n, d in cells
    ]


def p4(tables: Tables) -> Sequence[Evidence]:
    """RFC 6675's retransmissions, and lost retransmissions, minus PRR's: over the path population, and cell by cell."""
    cell = chosen(tables)
    return [
        *paths.on_paths(tables, "retransmissions", above(0, margin=0.5), weighs=True),
        *paths.on_paths(tables, "lost", above(0, margin=1), weighs=True),
        *_beside(_of_6675(tables, "data_retransmissions", "retransmissions", above(0, margin=0.5), cell, "all")),
        *_beside(_of_6675(tables, "lost_retransmits", "lost retransmissions", above(0, margin=1), cell, "lost")),
    ]


def p4_much(tables: Tables) -> Sequence[Evidence]:
    """Size of the excess."""
    return [
        *paths.on_paths(tables, "retransmissions", between(1.5, 6), weighs=True),
        *paths.on_paths(tables, "lost", between(14.5, 58), weighs=True),
    ]


def _beside(found: Sequence[Evidence]) -> list[Evidence]:
    return [replace(e, weighs=False) for e in found]


def overshoot(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Difference in the cell without overshoot, and the fraction that remains."""
    other, base = pairs(tables, "data_retransmissions", RFC6675, prr(tables), 1, 10)
    without = _both(tables["calm.fetches"].sort("seed"), "data_retransmissions", RFC6675, prr(tables))
    text = f"{name(1, 10)}: more retransmissions"
    return [
        Evidence.of(percent_more(*without), f"{text}, without the overshoot", bound, unit="%", key="calm"),
        Evidence.of(percent_more(other, base), f"{text}, with it", Bound(), unit="%", weighs=False, key="with"),
        Evidence.of(
            remaining((other, base), without),
            f"{text}: what is left without the overshoot",
            Bound(),
            unit="%",
            weighs=False,
            key="left",
        ),
    ]


BURSTS = tuple((n, d) for n in LENGTHS[1:] for d in DEPTHS)
"""Burst cells: mean burst length and queue depth, packets."""


def _cell(length: int, depth: int) -> dict[str, object]:
    return {"burst": f"{length} packets", "queue": f"{depth} packets"}


def _over_bursts(
    tables: Tables, column: str, first: str, second: str, what: str, bound: Bound, key: str
) -> list[Evidence]:
    """Excess of one rule over another under bursts: all cells with bursts that end with time count; cells with bursts
    counted in packets are shown for context.
    """
    return [
        Evidence.of(
            more(tables, column, first, second, n, d, per_packet=per_packet),
            f"{name(n, d)}{', per packet' if per_packet else ''}: {what}",
            bound,
            unit="%",
            weighs=not per_packet,
            key=f"{key}{'_packet' if per_packet else ''}_{n}_{d}",
            cell=_cell(n, d),
        )
        for per_packet in (False, True)
        for n, d in BURSTS
    ]


def p12(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """RFC 6675's timeouts after loss bursts."""
    text = "more timeouts with RFC 6675"
    return _over_bursts(tables, "data_rtos", RFC6675, prr(tables), text, bound, "timeouts")


def t12(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Completion time of rate halving in excess of PRR's under loss bursts."""
    text = f"more time with rate halving than with {label(prr(tables))}"
    return [
        *_over_bursts(tables, "total_s", RATE_HALVING, prr(tables), text, bound, "gain"),
        *(e for n in LENGTHS[1:] for e in endless(tables, n, 100, f"ended_{n}")),
    ]


def p27(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Retransmissions saved, compared with PRR, by rules that do not grow below ssthresh, with a queue of one
    bandwidth-delay product, under single losses and bursts.
    """
    return [
        Evidence.of(
            more(tables, "data_retransmissions", rule, prr(tables), n, 10),
            f"{name(n, 10)}: more retransmissions with {label(rule)}",
            bound,
            unit="%",
            key=f"again_{'crb' if rule == CRB else 'halving'}_{n}",
            cell={"rule": label(rule), "burst": f"{n} packets"},
        )
        for rule in (RATE_HALVING, CRB)
        for n in LENGTHS
    ]


def _corrected(e: Estimate, among: int) -> Estimate:
    """Widen an interval so that several such intervals simultaneously hold at 95 %."""
    factor = wider(among, e.n)
    return Estimate(
        value=e.value, low=e.value - factor * (e.value - e.low), high=e.value + factor * (e.high - e.value), level=e.level, n=e.n
    )  # fmt: skip


def figure(tables: Tables) -> Figure:
    """Latency, timeouts and retransmissions of each rule relative to PRR, by burst length and queue depth."""
    shown = tuple(rule for rule in RULES if rule not in (PRR, SSRB))
    columns = {
        "total_s": "mean latency",
        "data_rtos": "timeouts",
        "data_retransmissions": "retransmissions",
        "lost_retransmits": "lost retransmissions",
    }
    table = pl.DataFrame(
        [
            {"rule": rule, "what": what, "length": n, "depth": d, "more_percent": e.value, "low": e.low, "high": e.high}
            for column, what in columns.items()
            for rule in shown
            for n in LENGTHS
            for d in DEPTHS
            for e in (
                _corrected(
                    more(tables, column, rule, PRR, n, d), len(columns) * len(shown) * len(LENGTHS) * len(DEPTHS)
                ),
            )
        ]
    )

    def draw() -> Any:
        made, axes = new(7.6, 8.0, nrows=len(columns), ncols=len(shown), sharex=True, sharey=True)
        for row, what in zip(axes, columns.values(), strict=True):
            proven = table.filter((pl.col("what") == what) & ((pl.col("low") > 0) | (pl.col("high") < 0)))
            most = float(proven["more_percent"].abs().max() or 1.0)  # type: ignore[arg-type]
            for ax, rule in zip(row, shown, strict=True):
                own = table.filter((pl.col("rule") == rule) & (pl.col("what") == what))
                sure = ((own["low"] > 0) | (own["high"] < 0)).to_numpy()
                value = own["more_percent"].to_numpy()
                shape = (len(LENGTHS), len(DEPTHS))
                ax.imshow(
                    np.where(sure, value, 0.0).reshape(shape), cmap="PuOr_r", vmin=-most, vmax=most, aspect="auto"
                )
                for k, (x, is_sure) in enumerate(zip(value, sure, strict=True)):
                    text = f"{x:+.1f}".replace("-", "−")
                    dark = abs(x) > 0.55 * most
                    look = (
                        {"weight": "bold", "color": "white" if dark else "black"} if is_sure else {"color": "#777777"}
                    )
                    ax.text(k % len(DEPTHS), k // len(DEPTHS), text, ha="center", va="center", fontsize=8, **look)
                ax.set_title(label(rule) if row[0] is axes[0, 0] else "")
                ax.grid(visible=False)
            row[0].set_ylabel(f"{what}\npackets per burst")
        for ax in axes[-1]:
            ax.set_xticks(range(len(DEPTHS)), [str(d) for d in DEPTHS])
            ax.set_xlabel("queue (packets)")
        for ax in axes[:, 0]:
            ax.set_yticks(range(len(LENGTHS)), [str(n) for n in LENGTHS])
        return made

    return Figure(
        name="burst-loss",
        title=f"Fetches of {PAGE_LABELS[LARGE]}: what bursts of losses and short queues do to each rule",
        caption=(
            "Mean latency, timeouts, retransmissions and those that were lost again, percent more than with PRR of Linux 3.2 under the same losses, 2 % of the data packets in all; bold and coloured where the "
            "95 % interval excludes zero, corrected for the number of cells. Bursts pass in time. The path holds 10 packets."
        ),
        draw=draw,
        data={"burst-loss": table},
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        paragraph(
            "Behind a queue of 100 packets no burst of a sender overflows anything, and losses come one by one. Here the bottleneck is alone, its queue "
            "is as short as 6 packets, and the same 2 % is lost singly or in bursts. A burst lasts as long as so many packets take, and then is over, while the sender waits or "
            "sends. Beside it stands a burst that goes on until so many packets have come (Gilbert and Elliott, per packet): there a retransmission meets the same burst however "
            "long the sender has waited, most backoffs double the wait for nothing, and the mean time has no finite value."
        ),
        figure(tables),
    )


CHAPTER = Chapter(
    experiments=(
        Experiment(name="bursts", title="bursts of losses behind queues of 6 to 100 packets", run=run, weight=15),
        Experiment(name="passing", title="bursts of losses that pass in time", run=run_passing, weight=20),
        Experiment(name="calm", title="the same without an overshoot of slow start", run=run_calm, weight=1),
        Experiment(name="spared", title="bursts of losses that spare what is sent again", run=run_spared, weight=1),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=lambda: {"bursts of 3 losses, queue of 10 packets, PRR": scenario(PRR, 3, 10)},
)
