"""One packet lost on a full path, and each protocol's reaction (W27, W29); many losses without SACK (N4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, median
from ackclock.plot import GREY, Figure, new
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    at_most,
    same,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.large_pipes import paths
from ackclock_studies.large_pipes.paths import ALABAMA, HSTCP, NEWRENO, PROTOCOLS, SENDERS, TCPW
from ackclock_studies.large_pipes.runs import GOODPUT, NO_BOUND, column_of, goodput_of_first
from ackclock_studies.large_pipes.style import COLOUR, DASH

LOST = 150_000
"""Number of the lost packet: about 12 s after the start, when every protocol has filled the path."""

RUN_S = 90.0
WINDOWS = {"2 MiB": 2 << 20, "16 MiB": 16 << 20}
"""Receive windows of N4: the slides' window, and one large enough never to be the bottleneck."""


LOSSY, FOUR = "alone, 0.1 % loss", "four flows"
COMPANY = {LOSSY: (1, 0.001), FOUR: (4, 0.0)}
"""(runs, loss) for repeated losses: TCPW flows, and random loss."""
WITH_SACK, BY_SAMPLE = "alone, 0.1 % loss, SACK on", "four flows, exponential average"
CHANGED = {
    WITH_SACK: (LOSSY, replace(SENDERS[TCPW], sack=True)),
    BY_SAMPLE: (FOUR, paths.tcpw(gain="ewma")),
}
"""Arms for the causes behind W29 -> the original case, and a sender that differs in one property."""


def scenario(protocol: str) -> Scenario:
    """Return path 1 without other users. The receive window equals the path's capacity, so that no other packet is lost."""
    sender = SENDERS[protocol]
    window = round(0.98 * ALABAMA.bdp) * paths.SEGMENT
    return paths.scenario(
        ALABAMA,
        [(sender, 1)],
        duration_s=RUN_S,
        queue=1000,
        users=0.0,
        loss={"kind": "listed", "packets": [LOST], "applies_to": "data"},
        record={"goodput_interval": "64 ms"},
        socket_buffer=f"{window if sender.freebsd else window * 4 // 3} bytes",
    )


def run(plan: Plan) -> Data:
    """One loss, each protocol; and TCPW without SACK for a minute with other users, at two receive windows.

    Returns
    -------
    Data
        `one-loss.windows`: company, flows, run, ssthresh (median over the recoveries from 20 s on). `one-loss.goodput`: protocol, run, t_s, goodput_bps; `one-loss.recoveries`: protocol, run, ssthresh, max_burst,
        retransmissions; `one-loss.minutes`: window, sack, run, goodput_bps, retransmissions.
    """
    cells = []

    def recoveries(batch: Batch) -> pl.DataFrame:
        flows = batch.flows.filter(pl.col("flow") == 0).select("seed", "retransmissions")
        return (
            batch.recoveries.filter(pl.col("flow") == 0).select("seed", "ssthresh", "max_burst").join(flows, on="seed")
        )

    for protocol in PROTOCOLS:
        cells.append(
            Cell(
                scenario=scenario(protocol),
                keys={"protocol": protocol},
                stream="large-pipes one-loss",
                seeds=1,
                needs={
                    **GOODPUT,
                    "recoveries": ("flow", "ssthresh", "max_burst"),
                    "flows": ("flow", "retransmissions"),
                },
                keep={"goodput": goodput_of_first, "recoveries": recoveries},
            )
        )

    def windows(batch: Batch) -> pl.DataFrame:
        late = batch.recoveries.filter((pl.col("t_enter_s") > 20.0) & (pl.col("flow") < 4))
        return late.group_by("seed", maintain_order=True).agg(pl.col("ssthresh").median().cast(pl.Float64))

    def minutes(batch: Batch) -> pl.DataFrame:
        return batch.flows.filter(pl.col("flow") == 0).select("seed", "goodput_bps", "retransmissions")

    for window, size in WINDOWS.items():
        for sack in (False, True):
            made = paths.scenario(
                ALABAMA,
                [(replace(SENDERS[TCPW], sack=sack), 1)],
                duration_s=60.0,
                socket_buffer=f"{size} bytes",
            )
            cells.append(
                Cell(
                    scenario=made,
                    keys={"window": window, "sack": sack},
                    stream="large-pipes minutes",
                    seeds=plan.count(quick=6, paper=10),
                    needs={"flows": ("flow", "goodput_bps", "retransmissions")},
                    keep={"minutes": minutes},
                )
            )
    senders = {**{company: (company, SENDERS[TCPW]) for company in COMPANY}, **CHANGED}
    for company, (like, sender) in senders.items():
        flows, loss = COMPANY[like]
        made = paths.scenario(
            ALABAMA,
            [(sender, flows)],
            duration_s=60.0,
            loss=loss,
            stagger_s=1.0 if flows > 1 else 0.0,
            socket_buffer=f"{WINDOWS['16 MiB']} bytes",
        )
        cells.append(
            Cell(
                scenario=made,
                keys={"company": company, "flows": flows},
                stream="large-pipes company",
                seeds=plan.count(quick=6, paper=12),
                needs={"recoveries": ("flow", "t_enter_s", "ssthresh")},
                keep={"windows": windows},
            )
        )
    return collect("one-loss", cells, plan, numbered=True)


def _recovery(tables: Tables, protocol: str) -> dict[str, float]:
    own = tables["one-loss.recoveries"].filter(pl.col("protocol") == protocol)
    return own.row(0, named=True)


def back_s(tables: Tables, protocol: str) -> float:
    """Time from the loss until the goodput over ten round trips is 95 % of its former value, s."""
    own = tables["one-loss.goodput"].filter(pl.col("protocol") == protocol).sort("t_s")
    t, g = own["t_s"].to_numpy(), own["goodput_bps"].to_numpy()
    lost_at = t[np.searchsorted(np.cumsum(g) * 0.064 / 8 / paths.SEGMENT, LOST)]
    full = float(np.median(g[(t > lost_at - 3) & (t < lost_at - 0.5)]))
    smooth = np.convolve(g, np.ones(10) / 10, mode="valid")
    low = (smooth < 0.95 * full) & (t[9:] > lost_at)
    return float(t[9:][low].max() - lost_at) if low.any() else 0.0


def w27(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """NewReno's recovery on a full path, compared with the others'."""
    slow = back_s(tables, NEWRENO)
    found = [
        Evidence(
            label=f"back at 95 % after one loss, NewReno less {p}",
            value=slow - back_s(tables, p),
            bound=bound,
            unit="s",
            key=f"less_{p.lower()}",
        )
        for p in PROTOCOLS
        if p != NEWRENO
    ]
    return found + [
        Evidence(
            label=f"back at 95 % after one loss, {p}",
            value=back_s(tables, p),
            bound=NO_BOUND,
            unit="s",
            weighs=False,
            key=p.lower(),
        )
        for p in PROTOCOLS
    ]


def _pipe() -> float:
    return 0.98 * ALABAMA.bdp


WHAT_IT_CARRIES = same(0.25, of=1)


def w29(tables: Tables) -> Sequence[Evidence]:
    """TCPW's window after one loss is the pipe, and recovery ends without a burst."""
    own = _recovery(tables, TCPW)
    return [
        Evidence(
            label="ssthresh after one loss / what the path carried",
            value=own["ssthresh"] / _pipe(),
            bound=WHAT_IT_CARRIES,
            key="pipe",
        ),
        *(
            Evidence.of(
                median(_share(tables, company)),
                f"{company}: ssthresh after a loss / what the path carries for the flow",
                WHAT_IT_CARRIES,
                key=key,
            )
            for company, key in zip(COMPANY, ("lossy", "four"), strict=True)
        ),
        Evidence(
            label="greatest burst of the recovery",
            value=float(own["max_burst"]),
            bound=at_most(10),
            unit="segments",
            key="burst",
        ),
        Evidence(label="segments retransmitted", value=float(own["retransmissions"]), bound=same(0, of=1), key="again"),
        Evidence(
            label="NewReno: ssthresh / what the path carried",
            value=_recovery(tables, NEWRENO)["ssthresh"] / _pipe(),
            bound=NO_BOUND,
            weighs=False,
            key="newreno",
        ),
    ]


def _share(tables: Tables, company: str) -> Array:
    """Ratio of ssthresh after a loss to the flow's path capacity, one value per run."""
    flows, _ = COMPANY[CHANGED[company][0] if company in CHANGED else company]
    return np.asarray(column_of(tables["one-loss.windows"], "ssthresh", company=company) * flows / ALABAMA.bdp)


def nearer(tables: Tables, bound: Bound, *, company: str, key: str) -> Sequence[Evidence]:
    """Logarithmic distance from the path capacity: the fraction that remains if one mechanism is changed, run by run."""
    own = _share(tables, company)
    left = np.abs(np.log(own)) / np.abs(np.log(_share(tables, CHANGED[company][0])))
    label = f"{company}: left of the distance from what the path carries (logarithm)"
    return [
        Evidence.of(median(left), label, bound, factor=100, unit="%"),
        Evidence.of(median(own), f"{company}: ssthresh after a loss / what the path carries for the flow", NO_BOUND, weighs=False, key=key),
    ]  # fmt: skip


def _minutes(tables: Tables, window: str, sack: bool) -> Array:
    t = tables["one-loss.minutes"].filter((pl.col("window") == window) & (pl.col("sack") == sack))
    return t["goodput_bps"].to_numpy() / 1e6


def n4(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """No collapse with an unlimited receive window, and the result with the slides' window."""
    found = []
    for window in WINDOWS:
        for sack in (False, True):
            own = _minutes(tables, window, sack)
            label = f"path 1, a minute, window {window}, SACK {'on' if sack else 'off'}: the least of {own.size} runs"
            weighs = window == "16 MiB" or sack
            key = f"least_{window.split()[0]}{'_sack' * sack}"
            found.append(
                Evidence(
                    label=label,
                    value=float(own.min()),
                    bound=bound if weighs else NO_BOUND,
                    unit="Mb/s",
                    seeds=own.size,
                    weighs=weighs,
                    key=key,
                )
            )
    lost = _minutes(tables, "2 MiB", False) < 130
    return [
        *found,
        Evidence(
            label=f"window 2 MiB, SACK off: runs below 130 Mb/s of {lost.size}",
            value=float(lost.sum()),
            bound=NO_BOUND,
            weighs=False,
            key="collapsed",
        ),
    ]


def after_one_loss(tables: Tables) -> Figure:
    """Goodput around a single loss."""
    t = tables["one-loss.goodput"].filter(pl.col("t_s") > 9)

    def draw() -> Any:
        figure, ax = new(7.0, 3.2)
        for protocol in PROTOCOLS:
            own = t.filter(pl.col("protocol") == protocol).sort("t_s")
            smooth = own["goodput_bps"].rolling_mean(8).to_numpy() / 1e6
            ax.plot(own["t_s"], smooth, color=COLOUR[protocol], ls=DASH[protocol], label=protocol)
        ax.axhline(ALABAMA.payload_bps / 1e6, color=GREY, lw=0.8, ls=":")
        ax.set(xlabel="time (s)", ylabel="goodput (Mb/s)", ylim=(0, 165), xlim=(9, RUN_S))
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    return Figure(
        name="one-loss",
        title=f"One packet lost on a full path: TCPW is back at 95 % after {back_s(tables, TCPW):.1f} s, NewReno after {back_s(tables, NEWRENO):.0f} s",
        caption=f"Path 1, no other traffic, a receive window of what the path holds; packet {LOST} of the data is lost. Mean over half a second; dotted: capacity for payload. Slides 2 and 3.",
        draw=draw,
        data={"one-loss": t},
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (after_one_loss(t),)


CHAPTER = Chapter(
    experiments=(Experiment(name="one-loss", title="one packet lost; a minute of TCPW", run=run, weight=4),),
    **declared(__name__),
    blocks=blocks,
    scenarios=lambda: {f"one loss, {p}": scenario(p) for p in (TCPW, HSTCP)},
)
