"""Careful Resume's rules, packet by packet, and its effect on a flow already using the path (S12 to S15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import median
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    at_least,
    at_most,
    below,
    between,
    exactly,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.slow_start.paths import CLASSIC, HYSTART, Place, of
from ackclock_studies.slow_start.resume import KNOWN, PATH, RESUME, RTT, SAVED, SHRUNK, SIZES, THIRD

ALONE = "no transfer"
BEFORE_S, LASTS_S = 15, 26
"""Head start of the competing flow over the transfer, and end of the run."""
AFTER = 10
"""Round trips after the transfer's start over which the competing flow's throughput is measured."""

WIDE = {"initial_receive_window": 2000}


def beside(place: Place, arm: str, size: str) -> Scenario:
    """A long CUBIC flow, and a transfer that starts once that flow has filled the path."""
    rule = SAVED if arm == RESUME else {"kind": arm}
    first = {"congestion_control": "cubic", "name": "neighbour", "workload": {"kind": "bulk"}}
    flows: list[dict[str, Any]] = [first]
    if arm != ALONE:
        start = {"kind": "uniform", "low": f"{BEFORE_S} s", "high": f"{BEFORE_S + 2} s"}
        work = {"kind": "transfer", "bytes": size}
        flows.append(
            {"congestion_control": "cubic", "stack": {"slow_start": rule, **WIDE}, "start": start, "workload": work}
        )
    return Scenario.from_dict(
        {
            "name": f"{arm} beside a long flow, {size}, {place.name}",
            "duration": f"{LASTS_S} s",
            "network": place.network(),
            "flows": [*flows, place.others()],
            "record": {"goodput_interval": f"{RTT} ms"},
        }
    )


def _neighbour(batch: Batch) -> pl.DataFrame:
    """Retransmissions of the competing flow, and its throughput in the ten round trips after the start of the transfer."""
    flows = batch.flows.filter(pl.col("flow") == 0).select("seed", "retransmissions", "rtos")
    transfer = batch.flows.filter(pl.col("flow") == 1).select("seed", "start_s")
    own = batch.goodput.filter(pl.col("flow") == 0).join(transfer, on="seed")
    within = (pl.col("t_s") > pl.col("start_s")) & (pl.col("t_s") <= pl.col("start_s") + AFTER * RTT / 1e3)
    after = own.filter(within).group_by("seed").agg(pl.col("goodput_bps").mean())
    return flows.join(after, on="seed", how="left").sort("seed")


def run(plan: Plan) -> Data:
    """Effect of a transfer on the flow already using the path.

    Returns
    -------
    Data
        `beside.runs`: case, size, arm, seed, retransmissions, rtos and goodput_bps (after the transfer's start) of the competing flow.
    """
    cells = [
        Cell(
            scenario=beside(place, arm, size),
            keys={"case": case, "size": size, "arm": arm},
            stream=f"beside {case} {size}",
            seeds=plan.count(quick=10, paper=60),
            needs={
                "flows": ("flow", "start_s", "retransmissions", "rtos"),
                "goodput": ("t_s", "flow", "goodput_bps"),
            },
            keep={"runs": _neighbour},
        )
        for case, place in ((KNOWN, PATH), (SHRUNK, THIRD))
        for size in SIZES[:2]
        for arm in (CLASSIC, HYSTART, RESUME)
    ]
    return collect("beside", cells, plan)


def s12(tables: Tables) -> Sequence[Evidence]:
    """Ratio of the competing flow's throughput and losses with a resumed transfer to those with a classic one."""
    found = []
    for case in (SHRUNK, KNOWN):
        for size in SIZES[:2]:
            for column, what, bound, key in (
                ("goodput_bps", f"throughput in the {AFTER} round trips after it starts", at_least(0.9), "rate"),
                ("retransmissions", "retransmissions", at_most(1.5), "again"),
            ):
                own, base = (
                    of(tables, "beside.runs", column, case=case, size=size, arm=arm) for arm in (RESUME, CLASSIC)
                )
                found.append(
                    Evidence.of(
                        median(own / np.maximum(base, 1.0)),
                        f"path {case}, {size}: the neighbour's {what}, beside Careful Resume over beside classic",
                        bound,
                        weighs=case == SHRUNK,
                        key=f"{key}_{'shrunk' if case == SHRUNK else 'known'}_{size.split()[0]}",
                    )
                )
    return found


CASES: Mapping[str, tuple[int, int]] = {
    "as saved": (RTT, RTT),
    "half as long again": (150, RTT),
    "below half": (40, RTT),
    "above ten times": (RTT, 9),
}
"""RTT of the path, and saved RTT, ms."""


def alone(rtt: int, saved: int, arm: str) -> Scenario:
    """Return one transfer, traced, on a path without other flows."""
    rule = (
        {"kind": RESUME, "saved_cwnd": SAVED["saved_cwnd"], "saved_rtt": f"{saved} ms"}
        if arm == RESUME
        else {"kind": arm}
    )
    place = Place(rate=200, rtt=rtt, queue=1.0)
    return Scenario.from_dict(
        {
            "name": f"{arm}, {rtt} ms, {saved} ms saved",
            "duration": "20 s",
            "network": place.network(),
            "flows": [
                {
                    "congestion_control": "cubic",
                    "stack": {"slow_start": rule, **WIDE},
                    "workload": {"kind": "transfer", "bytes": "1 MB"},
                }
            ],
            "record": {"trace": "flow"},
        }
    )


def run_rules(plan: Plan) -> Data:
    """Transfers on paths with the saved RTT, and with others; nothing is random.

    Returns
    -------
    Data
        `rules.sends`: case, arm, t_s, cwnd, pipe and srtt_s of each transmission; `rules.flows`: completion_s.
    """
    cells = [
        Cell(
            scenario=alone(*CASES[case], arm),
            keys={"case": case, "arm": arm},
            stream="rules",
            seeds=1,
            needs={"acks": ("event", "t_s", "cwnd", "pipe", "min_rtt_s"), "flows": ("completion_s",)},
            keep={
                "sends": lambda batch: batch.acks.filter(pl.col("event") == "send").select(
                    "t_s", "cwnd", "pipe", "min_rtt_s"
                ),
                "flows": lambda batch: batch.flows.select("completion_s"),
            },
        )
        for case in CASES
        for arm in (CLASSIC, RESUME)
    ]
    return collect("rules", cells, plan)


def sends(tables: Tables, case: str) -> pl.DataFrame:
    """Transmissions of the resumed transfer."""
    return tables["rules.sends"].filter(case=case, arm=RESUME)


def jump(tables: Tables, case: str) -> pl.DataFrame:
    """Segments sent between cwnd's jump and the ACKs for earlier segments, nearly one RTT later."""
    rows = sends(tables, case).with_columns(grew=pl.col("cwnd").cast(pl.Int64).diff().fill_null(0))
    at = rows.filter(pl.col("grew") > 20)
    if not at.height:
        return rows.head(0)
    start = float(at["t_s"][0])
    return rows.filter((pl.col("t_s") >= start) & (pl.col("t_s") < start + 0.99 * CASES[case][0] / 1e3))


def s13(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Window immediately after the jump."""
    rows = jump(tables, "as saved")
    return [
        Evidence(
            label=f"cwnd after the jump, {SAVED['saved_cwnd']} segments saved",
            value=float(rows["cwnd"][0]) if rows.height else float("nan"),
            bound=bound,
            unit="segments",
            key="cwnd",
        ),
        Evidence(
            label="in flight until answers come back, at most",
            value=float(rows["pipe"].max()) if rows.height else float("nan"),  # type: ignore[arg-type]
            bound=bound,
            unit="segments",
            key="pipe",
        ),
    ]


def s14(tables: Tables) -> Sequence[Evidence]:
    """Fraction of the path's round trip over which the unvalidated segments are spread, and the largest burst among them."""
    found = []
    for case, key in (("as saved", "same"), ("half as long again", "longer")):
        rows = jump(tables, case)
        t = np.sort(rows["t_s"].to_numpy())
        found.append(
            Evidence(
                label=f"round-trip time {case}: the segments after the jump are spread over, of the path's round trip",
                value=float((t[-1] - t[0]) / (CASES[case][0] / 1e3)) if t.size else float("nan"),
                bound=between(0.8, 1.0),
                key=key,
            )
        )
        gaps, counts = np.unique(np.round(t, 7), return_counts=True)
        found.append(
            Evidence(
                label=f"round-trip time {case}: most segments that leave at once",
                value=float(counts.max()) if gaps.size else float("nan"),
                bound=at_most(10),
                unit="segments",
                key=f"burst_{key}",
            )
        )
    return found


def s15(tables: Tables) -> Sequence[Evidence]:
    """Transfers with an RTT different from the saved one: identical to the classic start."""
    found = []
    for case, key in (("below half", "short"), ("above ten times", "long"), ("as saved", "same")):
        own, base = (
            float(tables["rules.flows"].filter(case=case, arm=arm)["completion_s"][0]) for arm in (RESUME, CLASSIC)
        )
        found.append(
            Evidence(
                label=f"round-trip time {case}: completion, Careful Resume less classic",
                value=1e3 * (own - base),
                bound=exactly(0) if case != "as saved" else below(0),
                unit="ms",
                key=key,
            )
        )
    return found


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"beside: Careful Resume on a third of the rate": beside(THIRD, RESUME, "1 MB")}


CHAPTER = Chapter(
    experiments=(
        Experiment(name="beside", title="a resumed transfer beside a long flow", run=run, weight=3),
        Experiment(name="rules", title="the jump, packet by packet", run=run_rules, weight=0.2),
    ),
    **declared(__name__),
    scenarios=scenarios,
)
