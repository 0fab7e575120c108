"""Throughput against buffer size, under every host and queue model.

Length: one experiment with the sixteen claims that read its one table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, mean_over_runs, minus, quotient, ratio
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block, Table, TableCell
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
    at_least,
    at_most,
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.pcc import prototype, testbed
from ackclock_studies.pcc.testbed import (
    BARE,
    COARSE,
    CORE,
    CUBIC,
    CUT,
    ENVIRONMENTS,
    FEW,
    FINE_8_0,
    IDEAL,
    LABEL,
    LATE,
    MININET,
    MODELS,
    NEAR,
    NEWER,
    PACKET_BYTES,
    PAYLOAD,
    PCC,
    PRINTED,
    RATE_BPS,
    SENDER,
    SHALLOW,
    SIZES,
    STALLED,
    TICK_8_0,
    TICK_8_1,
    TWINS,
    Model,
)

PIPE = Reading(
    name="pipe",
    question="What was between the testbed's hosts?",
    options={
        TICK_8_0: "dummynet of FreeBSD up to 8.0, at the 1000 Hz that its manual asks for",
        TICK_8_1: "dummynet since FreeBSD 8.1: what a tick leaves over is kept",
        FINE_8_0: "a clock of 10,000 Hz",
        SENDER: "a router, and a sender that wakes at a clock of 1000 Hz",
    },
    why="the older one lets no more through in a tick than the queue has slots, as figure 7's buffers of a few packets suggest; the bridges' release is not known",
)
CARD = Reading(
    name="card",
    question="Are TCP's packets of several segments cut at the testbed's card?",
    options={"cuts": "single packets reach the bridge", "passes": "they cross the bridge whole"},
    why="a wire carries single packets",
)
MACHINE = Reading(
    name="machine",
    question="What was it in virtual machines that took throughput from PCC?",
    options={
        "Mininet's link": "netem's limit counts the packets in its delay line, too",
        "late pacing": "the publication's own words: the sender's pacing wakes late, here every 10 ms, and sends a batch; bare metal's link",
    },
    why="it needs no constant of ours; the other is as sufficient, and leaves CUBIC alone as the publication saw it",
    crossed=False,
)
ENVIRONMENT = {"Mininet's link": MININET, "late pacing": testbed.PACED}
FORM = Reading(
    name="form",
    question="Which PCC?",
    options={
        "authors'": "the constants of the code that the publications ran, and its receiver: a report every 20 packets",
        "each packet": "the same with a report for each packet, as in the paper's experiments here",
        "printed": "the constants of the paper",
    },
    why="both publications ran the code",
)


ASKED = (NEAR, STALLED, LATE, CORE, testbed.PACED)
"""Models used by claims, in addition to the links."""
SEVERAL = (*ENVIRONMENTS, *ASKED, NEWER)
"""Models that run with several seeds."""
CAUSED = (10, 20, 50)
"""Buffer sizes for the cause of C2, the only ones at which its link is run."""
NEEDED = {PCC: (4, 6, 8), CUBIC: (30, 40, 50)}
"""Sizes for the cause of F1: around the smallest size at which each protocol reaches 90 % of the link."""
FEWEST, FEWER = (20, 275), (6, 10, 20, 50, 100, 275)
"""Buffer sizes for the other models, at quick scale and at paper scale."""
BETWEEN = (6, 10, 20, 50, 100, 275)
"""Buffer sizes for `ASKED` at quick scale."""


def run(plan: Plan) -> Data:
    """One flow alone, 60 s with start-up. Models not used by any claim are run once at each size. A deterministic run
    represents all seeds. Where two models are identical for a protocol (`testbed.TWINS`), only one of them is run.
    Readings other than the main one omit models not used by any claim.

    Returns
    -------
    Data
        `flows`: model, cc, buffer (packets), seed, share (goodput over what the link can carry), goodput_mbps,
        sent_mbps (packets on the wire, retransmissions included), rtt_ms.
    """
    paper = plan.scale == "paper"
    seeds = plan.count(quick=2, paper=3, readings=2)
    known = sorted((*SHALLOW, *SIZES)) if paper else FEW
    some = COARSE if paper else BETWEEN
    beside = FEWER if paper else FEWEST
    duration_s = 60.0
    models: dict[str, Model] = dict(MODELS)
    if plan.reading:
        models = {name: MODELS[name] for name in (BARE, MININET, STALLED, LATE, CORE, testbed.PACED)}
    models[BARE] = testbed.bare(PIPE.of(plan), whole=CARD.of(plan) == "passes")
    sent = PRINTED if FORM.of(plan) == "printed" else PCC
    every = 1 if FORM.of(plan) == "each packet" else testbed.EVERY
    cells = [
        Cell(
            scenario=testbed.shallow(found, sent if controller == PCC else CUBIC, packets, duration_s, every),
            keys={"model": name, "cc": controller, "buffer": packets},
            stream=f"shallow {packets}",
            seeds=seeds if (controller == PCC or found.draws) and name in SEVERAL else 1,
            needs={"flows": ("goodput_bps", "sent_packets", "mean_rtt_s")},
            keep={"flows": partial(shares, payload=PAYLOAD[controller], duration_s=duration_s)},
        )
        for name, found in models.items()
        for controller in (PCC, CUBIC)
        if (name, controller) not in TWINS
        for packets in _sizes(
            name, controller, known, some if controller == PCC or paper or name in ENVIRONMENTS else beside, beside
        )
        if name != NEAR or controller == PCC
    ]
    data = collect("sweep", cells, plan)
    return replace(data, tables={"sweep.flows": spread(data.tables["sweep.flows"], seeds)})


def _sizes(
    model: str, controller: str, known: Sequence[int], some: Sequence[int], beside: Sequence[int]
) -> Sequence[int]:
    if model == NEAR:
        return CAUSED
    if model == NEWER:
        return NEEDED[controller]
    if model in (BARE, MININET):
        return known
    return some if model in (*ENVIRONMENTS, *ASKED) else beside


def shares(batch: Batch, *, payload: int, duration_s: float) -> pl.DataFrame:
    """Columns stored from a cell's runs."""
    return batch.flows.select(
        "seed",
        (pl.col("goodput_bps") / (RATE_BPS * payload / PACKET_BYTES)).alias("share"),
        (pl.col("goodput_bps") / 1e6).alias("goodput_mbps"),
        (pl.col("sent_packets") * PACKET_BYTES * 8 / duration_s / 1e6).alias("sent_mbps"),
        (pl.col("mean_rtt_s").cast(pl.Float64) * 1e3).alias("rtt_ms"),
    )


def spread(rows: pl.DataFrame, seeds: int) -> pl.DataFrame:
    """Rows, with a deterministic run repeated for every seed and twin models' runs listed under both names."""
    exact = [name for name, model in MODELS.items() if not model.draws]
    few = (pl.col("cc") == CUBIC) & pl.col("model").is_in(exact)
    once = rows.filter(few)
    numbers = pl.DataFrame({"n": range(seeds)}, schema={"n": rows.schema["seed"]})
    many = once.join(numbers, how="cross").with_columns(seed=pl.col("seed") + pl.col("n")).drop("n")
    rows = pl.concat([rows.filter(~few), many])
    twins = [
        rows.filter((pl.col("model") == run) & (pl.col("cc") == controller)).with_columns(pl.lit(model).alias("model"))
        for (model, controller), run in TWINS.items()
        if (rows["model"] == run).any()
    ]
    order = pl.col("model").replace_strict({model: i for i, model in enumerate(MODELS)}, return_dtype=pl.Int64)
    return pl.concat([rows, *twins]).sort(order, pl.col("cc") == CUBIC, "buffer", "seed")


def pick(tables: Tables, model: str, controller: str, packets: int, column: str = "share") -> Array:
    """A column, one value per seed."""
    t = tables["sweep.flows"].filter(
        (pl.col("model") == model) & (pl.col("cc") == controller) & (pl.col("buffer") == packets)
    )
    return t.sort("seed")[column].to_numpy().astype(np.float64)


def sizes(tables: Tables, model: str = BARE) -> list[int]:
    """Sizes at which a model was run."""
    return sorted(tables["sweep.flows"].filter(pl.col("model") == model)["buffer"].unique().to_list())


def models(tables: Tables) -> list[str]:
    """Models that were run, in order."""
    return tables["sweep.flows"]["model"].unique(maintain_order=True).to_list()


def gap(tables: Tables, model: str, controller: str, packets: int, *, base: str = BARE) -> Estimate:
    """Difference between bare metal and a model, percentage points of link capacity; positive if the model is lower."""
    here, there = (pick(tables, name, controller, packets) for name in (base, model))
    runs = min(here.size, there.size)
    return mean_over_runs(
        100 * (here[:runs] - there[:runs]), chance=chance(base, controller) or chance(model, controller)
    )


def chance(model: str, controller: str) -> bool:
    """Whether a controller's runs in a model differ between seeds: PCC draws random numbers, and so do hosts that stall."""
    return controller == PCC or MODELS[TWINS.get((model, controller), model)].draws


def means(tables: Tables) -> pl.DataFrame:
    """Mean, minimum and maximum share over seeds."""
    share = pl.col("share")
    return (
        tables["sweep.flows"]
        .group_by("model", "cc", "buffer", maintain_order=True)
        .agg(
            share.mean().alias("share"),
            share.min().alias("least"),
            share.max().alias("greatest"),
            pl.col("sent_mbps").mean(),
            pl.col("goodput_mbps").mean(),
            pl.col("rtt_ms").mean(),
        )
    )


PUBLISHED = {PCC: ((1, 0.25), (6, 0.9)), CUBIC: ((6, 0.02),)}
"""Points of the paper's Figure 7 as (packets, fraction of the link), from memory."""

PANELS = ((BARE, "bare metal (dummynet, exact hosts)"), (MININET, "virtual machine (Mininet's link)"))
LOOKS: dict[str, dict[str, Any]] = {
    PCC: {"color": OKABE_ITO["vermilion"], "marker": "o"},
    CUBIC: {"color": OKABE_ITO["blue"], "marker": "s"},
}


SPOKEN_OF = 20
"""Buffer in the headline, packets."""
TICKS = (1, 2, 6, 20, 50, 100, 200)
"""Axis ticks, packets; the axis shows kB."""


def figure(tables: Tables) -> Figure:
    """Goodput against the buffer, as in the publication: one panel per environment, with PCC and CUBIC."""
    table = means(tables)

    def draw() -> Any:
        figure, axes = new(8.2, 4.2, ncols=2, sharey=True)
        beside = {
            BARE: (),
            MININET: (
                (testbed.PACED, PCC, f"{LABEL[PCC]},\nlate pacing\non bare metal", ":"),
                (CUT, CUBIC, "CUBIC, no offload", "--"),
            ),
        }
        for ax, (model, title) in zip(axes, PANELS, strict=True):
            lines = [(model, PCC, LABEL[PCC], "-"), (model, CUBIC, "CUBIC", "-"), *beside[model]]
            for name, controller, label, dash in lines:
                own = table.filter((pl.col("model") == name) & (pl.col("cc") == controller)).sort("buffer")
                look = LOOKS[controller] | ({"mfc": "none"} if dash != "-" else {})
                ax.plot(1.5 * own["buffer"], own["goodput_mbps"], label=label, ls=dash, ms=3.5, lw=1.2, **look)
            if model == BARE:
                for controller, points in PUBLISHED.items():
                    at, share = np.array(points).T
                    most = RATE_BPS * PAYLOAD[controller] / PACKET_BYTES / 1e6
                    colour = LOOKS[controller]["color"]
                    ax.plot(
                        1.5 * at,
                        share * most,
                        "*",
                        mfc="none",
                        color=colour,
                        ms=11,
                        label=f"{'PCC' if controller == PCC else LABEL[controller]}, as published",
                    )
            ax.set_xscale("log")
            ax.axvline(1.5 * SPOKEN_OF, color="#888888", lw=1.2, zorder=1.6)
            ax.set_xticks([1.5 * n for n in TICKS], [f"{1.5 * n:g}" for n in TICKS])
            ax.set_xticks([], minor=True)
            ax.set_xlabel("buffer (kB)")
            ax.set_title(title)
            ax.set_ylim(0, 103)
            ax.legend(loc="lower right" if model == BARE else "upper left", fontsize=7)
        axes[0].set_ylabel("goodput (Mb/s)")
        return figure

    return Figure(
        name="sweep",
        title="Throughput against the buffer, as the publication draws it",
        caption=f"One flow, 100 Mb/s, 30 ms, start-up included; 1.5 kB a packet. Means over seeds. Stars: figure 7 of the paper, from memory. Grey upright: {SPOKEN_OF} packets.",
        draw=draw,
        data={"sweep": table},
    )


def _mean(tables: Tables, model: str, controller: str, q: int) -> Estimate:
    return mean_over_runs(100 * pick(tables, model, controller, q), chance=chance(model, controller))


def _ratio(tables: Tables, q: int, model: str = BARE) -> Estimate:
    """Ratio of PCC's goodput to CUBIC's."""
    p, c = (mean_over_runs(pick(tables, model, cc, q, "goodput_mbps"), chance=chance(model, cc)) for cc in (PCC, CUBIC))
    return quotient(p, c)


def needed(tables: Tables, controller: str, model: str = BARE, share: float = 0.9) -> Array:
    """Smallest buffer, packets, from which on a protocol gets this fraction of the link; one value per seed, infinite if none."""
    known = [q for q in sizes(tables, model) if pick(tables, model, controller, q).size]
    table = np.array([pick(tables, model, controller, q) for q in known])
    enough = np.logical_and.accumulate((table >= share)[::-1], axis=0)[::-1]
    return np.array([known[int(np.argmax(column))] if column.any() else np.inf for column in enough.T])


def f1(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """PCC needs less buffer."""
    return [_times_less(tables, bound, key="times")]


def f1_much(tables: Tables) -> Sequence[Evidence]:
    """Ratio of the two protocols' required buffers."""
    p, c = needed(tables, PCC), needed(tables, CUBIC)
    whole = sizes(tables)[-1]
    return [
        _times_less(tables, between(6.5, 26)),
        Evidence.reached(p, whole, "PCC: buffer for 90 %", at_most(9), unit="packets", weighs=False, key="pcc"),
        Evidence.reached(c, whole, "CUBIC: buffer for 90 %", at_least(50), unit="packets", weighs=False, key="cubic"),
    ]


def newer(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Link shares if a tick's unused credit is kept."""
    found = [_times_less(tables, bound, model=NEWER, key="newer")]
    for controller in (PCC, CUBIC):
        values = needed(tables, controller, NEWER)
        label = f"{LABEL[controller]}, {NEWER}: buffer for 90 %"
        found.append(
            Evidence(
                label=label,
                value=float(np.median(values)),
                bound=Bound(),
                unit="packets",
                weighs=False,
                key=f"newer_{KEYS[controller]}",
            )
        )
    return found


def _times_less(tables: Tables, bound: Any, *, model: str = BARE, key: str = "") -> Evidence:
    p, c = (float(np.median(needed(tables, controller, model))) for controller in (PCC, CUBIC))
    reached = np.isfinite(p) and np.isfinite(c)
    ratio = c / p if reached else float("nan")
    return Evidence(label="CUBIC's buffer for 90 % over PCC's", value=ratio, bound=bound, unit="times", key=key)


def f2(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Link share with a six-packet buffer."""
    p, c = pick(tables, BARE, PCC, 6), pick(tables, BARE, CUBIC, 6)
    return [Evidence.of(mean_over_runs(100 * (p - c)), "6 packets: PCC less CUBIC", bound, unit="points", key="lead")]


def f2_much(tables: Tables) -> Sequence[Evidence]:
    """Link shares of 2 % and 90 %."""
    return [
        Evidence.of(_mean(tables, BARE, CUBIC, 6), "6 packets: CUBIC", at_most(5), unit="%", key="cubic"),
        Evidence.of(_mean(tables, BARE, PCC, 6), "6 packets: PCC", at_least(80), unit="%", key="pcc"),
    ]


def f3(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Link share with a one-packet buffer."""
    return [Evidence.of(_ratio(tables, 1), "1 packet: PCC over CUBIC", bound, unit="times", key="times")]


def f3_much(tables: Tables) -> Sequence[Evidence]:
    """Check for 25 % of the link and 35 times CUBIC's goodput."""
    return [
        Evidence.of(_mean(tables, BARE, PCC, 1), "1 packet: PCC", between(12.5, 50), unit="%", key="pcc"),
        Evidence.of(_ratio(tables, 1), "1 packet: PCC over CUBIC", between(17.5, 70), unit="times"),
    ]


def f4(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """The advantage is largest with shallow buffers."""
    known = [q for q in sizes(tables) if q >= 20]
    least = min((_ratio(tables, q) for q in sizes(tables) if q <= 10), key=lambda e: e.value)
    most = max((_ratio(tables, q) for q in known), key=lambda e: e.value)
    return [
        Evidence.of(
            quotient(least, most),
            "PCC over CUBIC: least up to 10 packets, over greatest from 20 on",
            bound,
            unit="times",
            key="shallow",
        ),
        *(
            Evidence.of(_ratio(tables, q, MININET), f"Mininet, {q} packets: PCC over CUBIC", bound, unit="times", weighs=False)
            for q in (6, 10, 20, 50)
        ),
    ]  # fmt: skip


def f4_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Largest ratio of PCC's goodput to CUBIC's."""
    most = max((_ratio(tables, q) for q in sizes(tables)), key=lambda e: e.value)
    return [Evidence.of(most, "greatest PCC over CUBIC", bound, unit="times", key="most")]


def c1(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Agreement with the expectation on bare metal."""
    known = [q for q in sizes(tables) if q >= 10]
    return [Evidence.of(_mean(tables, BARE, PCC, q), f"{q} packets", bound, unit="%") for q in known]


def c1_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Check for 90 % of the link with six packets."""
    return [
        Evidence.of(_mean(tables, model, PCC, 6), f"{model}, 6 packets", bound, unit="%", weighs=model == BARE)
        for model in (BARE, IDEAL, testbed.TESTBED)
    ]


def _machine(tables: Tables) -> str:
    return ENVIRONMENT[MACHINE.of(tables)]


def _shallow(tables: Tables) -> list[int]:
    return [q for q in sizes(tables) if 5 <= q <= 50]


def c2(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Deficit in a virtual machine."""
    return [
        Evidence.of(
            gap(tables, _machine(tables), PCC, q),
            f"{q} packets: below bare metal",
            bound,
            unit="points",
            key=f"at_{q}" if q in (10, 20, 50) else "",
        )
        for q in _shallow(tables)
    ]


def c2_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Check for a ten-point deficit."""
    return [
        Evidence.of(gap(tables, _machine(tables), PCC, q), f"{q} packets: below bare metal", bound, unit="points")
        for q in _shallow(tables)
    ]


def without_delay_line(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of the deficit in Mininet that remains without packets in flight behind netem."""
    return [
        Evidence.of(
            ratio(*(pick(tables, BARE, PCC, q) - pick(tables, model, PCC, q) for model in (NEAR, MININET))),
            f"{q} packets: still missing, of what is missing in Mininet",
            bound,
            factor=100,
            unit="%",
        )
        for q in (10, 20, 50)
    ]


def without_offload(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Percentage points that CUBIC loses in Mininet without offload."""
    return [
        Evidence.of(
            gap(tables, CUT, CUBIC, 50, base=MININET),
            "50 packets: CUBIC without offload below CUBIC with it",
            bound,
            unit="points",
            key="cut",
        )
    ]


def left(tables: Tables, q: int) -> Estimate:
    """Ratio of PCC's goodput in a virtual machine to that on bare metal."""
    return quotient(*(mean_over_runs(pick(tables, model, PCC, q)) for model in (_machine(tables), BARE)))


def c3(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of the expected throughput, growing with the buffer."""
    found = []
    for small, large in pairwise((6, 10, 20, 50, 275)):
        a, b = left(tables, small), left(tables, large)
        more = minus(b, a)
        label = f"share of the expected: at {large} less at {small} packets"
        found.append(Evidence.of(more, label, bound, factor=100, unit="points"))
    return found


def c4(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Deficit at the deepest buffer."""
    return [Evidence.of(gap(tables, _machine(tables), PCC, 275), "275 packets", bound, unit="points", key="deep")]


def c5(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """CUBIC's deficit against bare metal."""
    return [
        Evidence.of(
            gap(tables, _machine(tables), CUBIC, q),
            f"{q} packets: CUBIC below bare metal",
            bound,
            unit="points",
            key=f"at_{q}" if q in (10, 20, 50, 275) else "",
        )
        for q in sizes(tables)
        if q >= 5
    ]


def c5_mean(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Mean over the script's sizes."""
    known = [q for q in sizes(tables) if q in SIZES]
    return [
        Evidence(
            label=f"{model}: mean difference over the sizes",
            value=float(
                np.mean([abs(e.value) for q in known if (e := gap(tables, _machine(tables), CUBIC, q, base=model)).n])
            ),
            bound=bound,
            unit="points",
            weighs=model == BARE,
            key={BARE: "bare", IDEAL: "router"}[model],
        )
        for model in (BARE, IDEAL)
    ]


def c6(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Deficit on one core, also with large buffers."""
    return [
        Evidence.of(
            gap(tables, CORE, PCC, q, base=MININET),
            f"{q} packets: one core below Mininet with processors enough",
            bound,
            unit="points",
            key=f"at_{q}",
        )
        for q in (50, 100, 275)
    ]


def c6_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Deficit of more than ten points with the deepest buffer."""
    return [
        Evidence.of(gap(tables, CORE, PCC, 275, base=MININET), "275 packets", bound, unit="points"),
        *(
            Evidence.of(gap(tables, model, PCC, 275), f"{model}: below bare metal", bound, unit="points", weighs=False)
            for model in (testbed.COSTLY, testbed.ONE_CORE, testbed.NO_CATCH_UP)
        ),
    ]  # fmt: skip


def c17(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Deficit remaining in Mininet with exact pacing, percentage points."""
    return [
        Evidence.of(
            gap(tables, model, PCC, q),
            f"{model}, {q} packets: below bare metal",
            bound,
            unit="points",
            weighs=model == MININET,
            key={MININET: f"exact_{q}", STALLED: f"stalls_{q}"}.get(model, ""),
        )
        for model in (MININET, STALLED, LATE)
        for q in (10, 20, 50)
    ]


def c17_some(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Loss due to stalls with exact pacing, percentage points."""
    return [
        Evidence.of(
            gap(tables, STALLED, PCC, q, base=MININET),
            f"{q} packets: stalls cost, on top of Mininet",
            bound,
            unit="points",
            key=f"cost_{q}",
        )
        for q in (10, 20, 50)
    ]


def c15(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio of PCC to CUBIC on bare metal, for context."""
    return [Evidence.of(_ratio(tables, 10), "10 packets: PCC over CUBIC", bound, unit="times", weighs=False)]


def c19(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """RTT added on bare metal by the buffer each needs for 90 %."""
    found = {}
    for controller in (PCC, CUBIC):
        size = float(np.median(needed(tables, controller)))
        rtt = pick(tables, BARE, controller, int(size), "rtt_ms") if np.isfinite(size) else np.array([np.nan])
        found[controller] = rtt - PATH_MS
    return [
        Evidence.of(
            minus(*(mean_over_runs(found[cc], chance=chance(BARE, cc)) for cc in (CUBIC, PCC))),
            "mean queueing delay behind the buffer that it needs for 90 %, CUBIC less PCC",
            bound,
            unit="ms",
            key="less",
        ),
        *(
            Evidence.of(
                mean_over_runs(found[cc], chance=chance(BARE, cc)),
                f"{LABEL[cc]}: mean queueing delay there",
                Bound(),
                unit="ms",
                weighs=False,
                key=KEYS[cc],
            )
            for cc in (PCC, CUBIC)
        ),
    ]


PATH_MS = 30
"""Round trip without a queue."""


KEYS = {PCC: "pcc", CUBIC: "cubic"}


def c20(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """PCC's gain in a virtual machine with a shallow buffer."""
    return [
        Evidence.of(
            _ratio(tables, q, _machine(tables)),
            f"{q} packets: PCC over CUBIC",
            bound,
            unit="times",
            key=f"at_{q}",
        )
        for q in (6, 10, 20)
    ]


def sweep_table(tables: Tables) -> Table:
    """Goodput and sent data."""
    rows: list[tuple[TableCell | str, ...]] = []
    table = means(tables).filter(pl.col("buffer").is_in([6, 20, 50, 275]))
    for r in table.sort("buffer", maintain_order=True).iter_rows(named=True):
        rows.append(
            (
                TableCell(text=f"{r['buffer']} packets, {LABEL[r['cc']]}, {r['model']}", kind="head"),
                f"{r['goodput_mbps']:.1f}",
                f"{r['sent_mbps']:.1f}",
                f"{100 * r['share']:.0f} ({100 * r['least']:.0f} to {100 * r['greatest']:.0f})",
                f"{r['rtt_ms']:.1f}",
            )
        )
    return Table(
        caption="Means over seeds (least and greatest). Sent: 1500-byte packets on the wire, those lost included.",
        header=("run", "goodput (Mb/s)", "sent (Mb/s)", "of the link (%)", "mean RTT (ms)"),
        rows=tuple(rows),
        dense=True,
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(t), sweep_table(t), prototype.table(t))


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "PCC on bare metal, 6 packets": testbed.shallow(BARE, PCC, 6, 60),
        "CUBIC on bare metal, 6 packets": testbed.shallow(BARE, CUBIC, 6, 60),
        "PCC in Mininet, 20 packets": testbed.shallow(MININET, PCC, 20, 60),
        "PCC in Mininet, hosts that stall, 20 packets": testbed.shallow(STALLED, PCC, 20, 60),
    }


CHAPTER = Chapter(
    experiments=(
        Experiment(
            name="sweep",
            title="throughput against the buffer, every model",
            run=run,
            weight=60,
            reads=(PIPE, CARD, FORM),
        ),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
