"""The slides' sentences about the packets sent by a rule in a recovery, measured packet by packet, and about the cases in which it helps (P17 to P26).

Length: ten sentences, each with a few lines; a second file would separate the runs from their evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, bootstrap, gain, percent_more
from ackclock.plot import Figure, new
from ackclock.report import Block, paragraph
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    above,
    at_most,
    below,
    same,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.prr import fetches, path
from ackclock_studies.prr.path import HIGH, LARGE, LOSSES, MIDDLE, PAGE_LABELS, where
from ackclock_studies.prr.rfc_tables import ideal
from ackclock_studies.prr.rules import CRB, PRR, RATE_HALVING, RFC6675, RFC9937, SERIES, SSRB, label, prr

QUEUED = (RATE_HALVING, CRB, SSRB, PRR, RFC9937, RFC6675)
SIXTHS = 6
BETAS = (0.5, 0.7, 0.85)
SHAPED = (RATE_HALVING, PRR, SSRB, RFC6675)
NEAR = {f"segment {n}": n for n in (1, 10, 16, 17, 18, 19, 20)}
"""Number of the lost segment among a response's twenty."""
LATE = {"in order": None, "40 ms late": "40 ms", "100 ms late": "100 ms"}
"""Additional delay for 2 % of the packets."""


def _one(name: str, link: Mapping[str, Any], flow: Mapping[str, Any], lasts: str = "1 h", **record: Any) -> Scenario:
    back = {key: link[key] for key in ("rate", "delay")}
    return Scenario.from_dict(
        {
            "name": name,
            "duration": lasts,
            "network": {"topology": "chain", "bottleneck": dict(link), "reverse": {"bottleneck": back}},
            "flows": [dict(flow)],
            "record": record,
        }
    )


def standing(rule: str) -> Scenario:
    """Return two hundred segments sent at once, the first hundred of which are lost: most of the others wait in a queue."""
    link = {
        "rate": "12 Mbit/s",
        "delay": "10 ms",
        "queue": {"kind": "drop-tail", "limit": "1000 packets"},
        "loss": {"kind": "scripted", "drops": [{"first": 1, "last": 100}]},
    }
    host = path.host(recovery=rule, initial_window=200, initial_receive_window=4000, receive_buffer="16 MB", beta=0.7)
    flow = {**host, "workload": {"kind": "transfer", "bytes": "2 MB"}}
    # Queues are sampled to the end of the scenario, but the transfer lasts 2 s.
    return _one(f"standing queue, {rule}", link, flow, "10 s", trace="flow", queue_interval="1 ms")


def shaped(rule: str, beta: float) -> Scenario:
    """One lost segment out of two hundred in flight, with an ACK per segment."""
    link = {
        "rate": "12 Mbit/s",
        "delay": "50 ms",
        "queue": {"kind": "drop-tail", "limit": "1000 packets"},
        "loss": {"kind": "scripted", "drops": [{"first": 1, "last": 1}]},
    }
    host = path.host(
        recovery=rule,
        initial_window=200,
        initial_receive_window=4000,
        receive_buffer="16 MB",
        beta=beta,
        delayed_ack=False,
    )
    return _one(
        f"{rule}, beta {beta:g}", link, {**host, "workload": {"kind": "transfer", "bytes": "2 MB"}}, trace="flow"
    )


def near_end(rule: str, segment: float) -> Scenario:
    """A response of twenty segments that loses one of them, and the next response on the same connection."""
    link = {
        "rate": "10 Mbit/s",
        "delay": "50 ms",
        "queue": {"kind": "drop-tail", "limit": "100 packets"},
        "loss": {"kind": "scripted", "drops": [{"first": int(segment), "last": int(segment)}]},
    }
    work = {"kind": "bursts", "bytes": "28960 bytes", "pause": "50 ms", "count": 2}
    return _one(
        f"{rule}, {segment:g} lost",
        link,
        {**path.host(recovery=rule, initial_window=20), "workload": work},
        trace="flow",
    )


_EVENTS = ("event", "t_s", "seg_no", "rexmit", "delivered", "ca_state", "ack_no")


def _recovery(batch: Batch) -> pl.DataFrame:
    return batch.recoveries.select("t_enter_s", "t_exit_s").head(1)


def run(plan: Plan) -> Data:
    """Each rule once in each case, without randomness.

    Returns
    -------
    Data
        `exact.queue`, `exact.acks`, `exact.recoveries`; keys case, rule, at.
    """
    trace = {"acks": _EVENTS, "recoveries": ("t_enter_s", "t_exit_s")}
    keep = {"acks": lambda batch: batch.acks.select(*_EVENTS), "recoveries": _recovery}
    queue = {
        "queue": lambda batch: batch.queue_samples.filter(pl.col("link") == batch.queue_samples["link"].min()).select(
            "t_s", "packets"
        )
    }
    cells = [
        Cell(
            scenario=standing(rule),
            keys={"case": "standing", "rule": rule, "at": 0.0},
            stream="exact",
            seeds=1,
            needs={**trace, "queue_samples": ("link", "t_s", "packets")},
            keep={**keep, **queue},
        )
        for rule in QUEUED
    ]
    for case, rules, each, made in (
        ("shaped", SHAPED, BETAS, shaped),
        ("near", (RATE_HALVING, PRR, RFC6675, SSRB, CRB), tuple(map(float, NEAR.values())), near_end),
    ):
        cells += [
            Cell(
                scenario=made(rule, at),
                keys={"case": case, "rule": rule, "at": float(at)},
                stream="exact",
                seeds=1,
                needs=trace,
                keep=keep,
            )
            for rule in rules
            for at in each
        ]
    return collect("exact", cells, plan)


def _rows(tables: Tables, name: str, case: str, rule: str, at: float) -> pl.DataFrame:
    return tables[f"exact.{name}"].filter(case=case, rule=rule, at=float(at))


def _span(tables: Tables, case: str, rule: str, at: float) -> tuple[float, float]:
    row = _rows(tables, "recoveries", case, rule, at)
    return float(row["t_enter_s"][0]), float(row["t_exit_s"][0])


STANDING_S = 0.2
"""Length of the interval examined after the start of recovery; at its end, all rules are still repairing losses."""


def sixths(tables: Tables, rule: str) -> Array:
    """Mean queue in each sixth of the interval, packets."""
    start, _ = _span(tables, "standing", rule, 0)
    rows = _rows(tables, "queue", "standing", rule, 0)
    t, packets = rows["t_s"].to_numpy(), rows["packets"].to_numpy().astype(np.float64)
    first = start + 0.01
    edges = np.linspace(first, first + STANDING_S, SIXTHS + 1)
    return np.array([packets[(t >= a) & (t < b)].mean() for a, b in pairwise(edges)])


def p17(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Change of the queue while CRB recovers."""
    found = []
    for rule in QUEUED:
        mean = sixths(tables, rule)
        text = f"{label(rule)}: mean queue by sixths of {STANDING_S:g} s of recovery, most less least"
        key = {CRB: "crb", RATE_HALVING: "halving"}.get(rule, "")
        found.append(
            Evidence(
                label=text,
                value=float(mean.max() - mean.min()),
                bound=bound,
                unit="packets",
                weighs=rule == CRB,
                key=key,
            )
        )
    return found


def p18(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Queue in excess of CRB's at the end of the interval."""
    base = sixths(tables, CRB)[-1]
    return [
        Evidence(
            label=f"{label(rule)}: queue in the last sixth beyond CRB's",
            value=float(sixths(tables, rule)[-1] - base),
            bound=bound,
            unit="packets",
            key={SSRB: "ssrb", RFC6675: "rfc6675", PRR: "prr", RFC9937: "rfc9937"}[rule],
        )
        for rule in (SSRB, PRR, RFC9937, RFC6675)
    ]


def sent_per_ack(tables: Tables, rule: str, beta: float) -> tuple[float, float]:
    """Segments sent per segment delivered, in the first half of recovery and in all of it."""
    start, end = _span(tables, "shaped", rule, beta)
    rows = _rows(tables, "acks", "shaped", rule, beta)
    found = []
    for until in (start + (end - start) / 2, end):
        within = rows.filter((pl.col("t_s") > start) & (pl.col("t_s") < until))
        sent = within.filter(pl.col("event") == "send").height
        found.append(sent / max(within.filter(pl.col("event") == "ack").height, 1))
    return found[0], found[1]


def p19(tables: Tables) -> Sequence[Evidence]:
    """Segments sent per segment delivered in the first half of recovery, minus the reduction factor."""
    found = []
    for rule in SHAPED:
        for beta in BETAS:
            half, whole = sent_per_ack(tables, rule, beta)
            key = {PRR: "prr", RFC6675: "rfc6675", RATE_HALVING: "halving"}.get(rule, "ssrb")
            text = f"{label(rule)}, factor {beta:g}: sent per segment delivered"
            found.append(
                Evidence(
                    label=f"{text}, first half of recovery",
                    value=half,
                    bound=same(0.02, of=beta),
                    weighs=rule in (PRR, SSRB),
                    key=f"{key}_{100 * beta:.0f}",
                )
            )
            found.append(Evidence(label=f"{text}, all of it", value=whole, bound=Bound(), weighs=False))
    return found


def silence(tables: Tables, rule: str) -> float:
    """Longest time without a transmission in recovery, as a percentage of its duration, with a factor of 0.5."""
    start, end = _span(tables, "shaped", rule, 0.5)
    rows = _rows(tables, "acks", "shaped", rule, 0.5).filter(
        (pl.col("event") == "send") & (pl.col("t_s") >= start) & (pl.col("t_s") <= end)
    )
    at = np.unique(np.concatenate([[start], rows["t_s"].to_numpy(), [end]]))
    return 100 * float(np.diff(at).max()) / (end - start)


def p20(tables: Tables) -> Sequence[Evidence]:
    """Each rule's longest silence: zero with PRR, half the ACKs with RFC 6675."""
    asked = {PRR: at_most(5), RFC6675: same(5, of=50)}
    return [
        Evidence(
            label=f"{label(rule)}: longest silence, of the time in recovery",
            value=silence(tables, rule),
            bound=asked.get(rule, Bound()),
            unit="%",
            weighs=rule in asked,
            key={PRR: "prr", RFC6675: "rfc6675", RATE_HALVING: "halving"}.get(rule, ""),
        )
        for rule in SHAPED
    ]


def response_ms(tables: Tables, rule: str, segment: int, number: int) -> float:
    """Time from a response's first segment to the ACK of its last one, for the connection's first or second response."""
    rows = _rows(tables, "acks", "near", rule, segment)
    first = rows.filter((pl.col("event") == "send") & (pl.col("rexmit") == 0)).sort("t_s", maintain_order=True)["t_s"][
        20 * (number - 1)
    ]
    acks = rows.filter(pl.col("event") == "ack").with_columns(all=pl.col("delivered").cum_sum())
    return 1e3 * (float(acks.filter(pl.col("all") >= 20 * number)["t_s"][0]) - float(first))


END = 16
"""First segment of a response's last quarter, which ends with the twentieth."""


def p21(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Time saved by PRR over rate halving for either response: the one with the loss, and the next."""
    found = []
    for name, segment in NEAR.items():
        for number, response in ((1, "the response itself"), (2, "the next response")):
            base = response_ms(tables, RATE_HALVING, segment, number)
            for rule in (PRR, RFC6675, SSRB, CRB):
                key = f"{'first_' if number == 1 else ''}{rule.replace('-', '_').replace('.', '')}_{segment}"
                found.append(
                    Evidence(
                        label=f"{name} of 20 lost: {response} with rate halving, less with {label(rule)}",
                        value=base - response_ms(tables, rule, segment, number),
                        bound=bound,
                        unit="ms",
                        weighs=rule == PRR and segment >= END,
                        key=key if rule == PRR else "",
                        cell={"segment": segment, "response": response},
                    )
                )
            found.append(
                Evidence(
                    label=f"{name} of 20 lost: {response} with rate halving",
                    value=base,
                    bound=Bound(),
                    unit="ms",
                    weighs=False,
                    key=f"{'first_' if number == 1 else ''}halving_{segment}",
                )
            )
    return found


def p22(_: Tables, bound: Bound) -> Sequence[Evidence]:
    """ACKs to which PRR-SSRB responds with one segment more than was delivered, with 90 of 100 segments lost."""
    found = []
    for rule, key in ((SSRB, "ssrb"), (PRR, "prr"), (CRB, "crb")):
        rows, _ = ideal(rule, window=100, lost=tuple(range(90)))
        sent = pl.col("sent_new") + pl.col("sent_retransmissions")
        more = rows.filter((pl.col("state") == "Recovery") & (sent >= 2)).height
        found.append(
            Evidence(
                label=f"{label(rule)}: ACKs in recovery for which two segments are sent",
                value=float(more),
                bound=bound,
                unit="ACKs",
                weighs=rule != CRB,
                key=key,
            )
        )
    return found


def run_more(plan: Plan) -> Data:
    """Fetches with reordering and without SACK, and a competing flow on the same path.

    Returns
    -------
    Data
        `slides.fetches`: case, arm, page, loss, seed and what a fetch met; `slides.flows`: rule, seed, retransmissions of the competing flow.
    """
    count = plan.count(quick=600, paper=4000)
    beside = plan.count(quick=300, paper=4000)
    cells = []
    for late, by in LATE.items():
        for rule in (PRR, RFC6675):
            link: dict[str, Any] = {
                "rate": "1.2 Mbit/s",
                "delay": "50 ms",
                "queue": {"kind": "drop-tail", "limit": "100 packets"},
                "loss": {"kind": "bernoulli", "p": 0.02, "applies_to": "data"},
            }
            if by is not None:
                link["reorder"] = {"probability": 0.02, "extra_delay": by}
            flow = {**path.host(recovery=rule), "workload": {"kind": "fetch", "bytes": f"{LARGE} bytes"}}
            cells.append(
                Cell(
                    scenario=_one(f"{rule}, {late}", link, flow),
                    keys={"case": late, "arm": rule, "page": LARGE, "loss": 0.02},
                    stream=f"reorder {late}",
                    seeds=count if by else beside,
                    needs=fetches.FETCHES,
                )
            )
    for loss in LOSSES:
        for rule in (RATE_HALVING, PRR):
            cells.append(
                Cell(
                    scenario=path.fetch(LARGE, loss, path.host(recovery=rule, sack=False), name=f"{rule}, no SACK"),
                    keys={"case": "no SACK", "arm": rule, "page": LARGE, "loss": loss},
                    stream=f"no SACK {loss}",
                    seeds=beside,
                    needs=fetches.FETCHES,
                )
            )
    return collect("slides", cells, plan)


def neighbour(rule: str) -> Scenario:
    """A flow with single losses that recovers by a rule, and a competing flow that shares a two-BDP queue."""
    return Scenario.from_dict(
        {
            "name": f"beside {rule}",
            "duration": "60 s",
            "network": {
                "topology": "wishbone",
                "bottleneck": {
                    "rate": "5 Mbit/s",
                    "delay": "25 ms",
                    "queue": {"kind": "drop-tail", "limit": "40 packets"},
                },
                "access_list": [{"loss": {"kind": "bernoulli", "p": 0.01, "applies_to": "data"}}, {}],
            },
            "flows": [
                {**path.host(recovery=rule), "workload": {"kind": "bulk"}},
                {
                    **path.host(recovery=PRR),
                    "start": {"kind": "uniform", "low": "0 s", "high": "1 s"},
                    "workload": {"kind": "bulk"},
                },
            ],
        }
    )


def run_neighbour(plan: Plan) -> Data:
    """The competing flow's retransmissions.

    Returns
    -------
    Data
        `neighbour.flows`: rule, seed, retransmissions, bytes_acked.
    """
    cells = [
        Cell(
            scenario=neighbour(rule),
            keys={"rule": rule},
            stream="neighbour",
            seeds=plan.count(quick=100, paper=500),
            needs={"flows": ("flow", "retransmissions", "bytes_acked")},
            keep={
                "flows": lambda batch: batch.flows.filter(pl.col("flow") == 1).select(
                    "seed", "retransmissions", "bytes_acked"
                )
            },
        )
        for rule in (PRR, RFC6675)
    ]
    return collect("neighbour", cells, plan)


def _pair(tables: Tables, case: str, first: str, second: str, column: str, loss: float = 0.02) -> tuple[Array, Array]:
    own = tables["slides.fetches"].filter((pl.col("case") == case) & (pl.col("loss") == loss)).sort("seed")
    x, y = (own.filter(pl.col("arm") == arm)[column].to_numpy().astype(np.float64) for arm in (first, second))
    ended = np.isfinite(x) & np.isfinite(y)
    return x[ended], y[ended]


def p23(tables: Tables) -> Sequence[Evidence]:
    """RFC 6675's excess over PRR for delayed packets and for packets in order."""
    found = []
    for case in LATE:
        for column, what, margin, key in (
            ("data_retransmissions", "retransmissions", 0.5, "again"),
            ("total_s", "time", 0.3, "time"),
            ("data_rtos", "timeouts", 1.0, "timeouts"),
        ):
            found.append(
                Evidence.of(
                    percent_more(*_pair(tables, case, RFC6675, PRR, column)),
                    f"2 % {case}: more {what} with RFC 6675",
                    above(0, margin=margin),
                    unit="%",
                    weighs=case != "in order" and key != "timeouts",
                    key=f"{key}_{case.split()[0]}",
                )
            )
    return found


def p24(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Gain over rate halving with and without SACK."""
    found = []
    for loss in LOSSES:
        without = gain(*_pair(tables, "no SACK", RATE_HALVING, PRR, "total_s", loss))
        found.append(
            Evidence.of(
                without,
                f"{where(LARGE, loss)}, no SACK: gain of {label(PRR)}",
                bound,
                unit="%",
                key=f"without_{100 * loss:g}",
                cell={"loss": f"{100 * loss:g} %"},
            )
        )
        with_it = gain(*fetches.paired(tables["latency.fetches"], LARGE, loss, RATE_HALVING, PRR, hit=None))
        found.append(
            Evidence.of(
                with_it,
                f"{where(LARGE, loss)}, SACK: gain of {label(PRR)}",
                Bound(),
                unit="%",
                weighs=False,
                key=f"with_{100 * loss:g}",
            )
        )
    return found


def p25(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Reduction in latency quantiles by PRR relative to rate halving."""
    found = []
    for page in (MIDDLE, LARGE):
        base, other = fetches.paired(tables["latency.fetches"], page, HIGH, RATE_HALVING, prr(tables))
        for q in (0.5, 0.95, 0.99):

            def lower(x: Array, y: Array, q: float = q) -> Array:
                return np.asarray(100 * (1 - np.quantile(y, q, axis=1) / np.quantile(x, q, axis=1)))

            found.append(
                Evidence.of(
                    bootstrap(lower, base, other, draws=400),
                    f"{where(page, HIGH)}: {100 * q:g} % quantile lower by",
                    bound,
                    unit="%",
                    weighs=q > 0.9,
                    key=f"kb{PAGE_LABELS[page].split()[0]}_q{100 * q:g}",
                    cell={"page": PAGE_LABELS[page], "quantile": q},
                )
            )
    return found


def p26(tables: Tables) -> Sequence[Evidence]:
    """Effect on the competing flow: more retransmissions and less data delivered against PRR than against RFC 6675."""
    t = tables["neighbour.flows"].sort("seed")
    found = []
    for column, what, bound, weighs, key in (
        ("retransmissions", "retransmits more", above(0, margin=1), True, "again"),
        ("bytes_acked", "gets more", below(0, margin=1), False, "bytes"),
    ):
        x, y = (t.filter(rule=rule)[column].to_numpy().astype(np.float64) for rule in (PRR, RFC6675))
        text = f"beside PRR instead of RFC 6675 a neighbour {what}"
        found.append(Evidence.of(percent_more(x, y), text, bound, unit="%", weighs=weighs, key=key))
    return found


def figure(tables: Tables) -> Figure:
    """The queue during each rule's recovery."""
    rows = []
    for rule in QUEUED:
        start, _ = _span(tables, "standing", rule, 0)
        own = _rows(tables, "queue", "standing", rule, 0).with_columns(t_ms=1e3 * (pl.col("t_s") - start))
        rows.append(
            own.filter((pl.col("t_ms") > -20) & (pl.col("t_ms") < 1e3 * STANDING_S)).select("rule", "t_ms", "packets")
        )
    data = pl.concat(rows)

    def draw() -> Any:
        made, ax = new(6.4, 3.2)
        for rule in QUEUED:
            own, s = data.filter(rule=rule), SERIES[rule]
            ax.plot(own["t_ms"], own["packets"], color=s.colour, ls=s.dash, lw=1.4, label=s.label)
        ax.set(xlabel="time since recovery began (ms)", ylabel="queue (packets)")
        ax.legend(loc="center right")
        return made

    last = {rule: sixths(tables, rule)[-1] for rule in (CRB, RFC6675)}
    return Figure(
        name="standing-queue",
        title=f"Packet conservation keeps the queue at {last[CRB]:.0f} packets; RFC 6675 makes it {last[RFC6675]:.0f}",
        caption=(
            "Two hundred segments at once over 12 Mbit/s and 20 ms, of which the first hundred are lost: the queue of the bottleneck while each rule repairs "
            "them. With the conservative bound as much is sent as is delivered."
        ),
        draw=draw,
        data={"queue": data},
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        paragraph(
            "Sentences of the slides that one recovery settles, without chance, and some that take many fetches."
        ),
        figure(tables),
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "standing queue, PRR-CRB": standing(CRB),
        "loss of segment 17 of 20, PRR": near_end(PRR, 17),
        "a neighbour beside RFC 6675": neighbour(RFC6675),
    }


CHAPTER = Chapter(
    experiments=(
        Experiment(name="exact", title="single recoveries, packet by packet", run=run, weight=0.5),
        Experiment(name="slides", title="reordering, and no SACK", run=run_more, weight=8),
        Experiment(name="neighbour", title="what a neighbour loses", run=run_neighbour, weight=2),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
