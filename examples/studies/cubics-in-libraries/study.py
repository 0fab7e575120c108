"""CUBIC of our Linux profile beside the CUBIC of ngtcp2 and that of smoltcp, whose libraries are given with --stack."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ackclock import Scenario, stacks
from ackclock.errors import InputError
from ackclock.plot import Figure, new
from ackclock.stats import mean_interval, paired_difference
from ackclock.study import Data, Experiment, Plan, Quantity, Tables
from ackclock.study.cells import Cell, collect

NEEDS = {"ngtcp2": "1.11.0", "smoltcp": "0.14.0"}
SECONDS = 60


def linux(controller: str = "cubic", options: dict[str, Any] | None = None, **stack: Any) -> dict[str, Any]:
    given = {"congestion_control_options": options} if options else {}
    return {"name": "linux", "congestion_control": controller, **given, **({"stack": stack} if stack else {})}


def other(stack: str, controller: str = "cubic", **options: Any) -> dict[str, Any]:
    usual = {"receive_window": 20_000_000} if stack == "ngtcp2" else {"buffer": 1_000_000}
    return {
        "name": stack,
        "congestion_control": f"stack:{stack}:{controller}",
        "congestion_control_options": {**usual, **options},
    }


def scenario(*flows: dict[str, Any], jitter: bool = True) -> Scenario:
    start = {"kind": "uniform", "low": "0 s", "high": "0.5 s"}
    return Scenario.from_dict(
        {
            "duration": f"{SECONDS} s",
            "network": {
                "access": {"delay": "0.01 ms", **({"jitter": "1 ms"} if jitter else {})},
                "bottleneck": {
                    "rate": "20 Mbit/s",
                    "delay": "20 ms",
                    "queue": {"kind": "drop-tail", "limit": "1 BDP"},
                },
                "reverse": {"bottleneck": {"delay": "20 ms"}},
            },
            "flows": [{"start": start, **flow} for flow in flows],
        }
    )


PAIRS: dict[str, Scenario] = {
    "ngtcp2": scenario(linux(), other("ngtcp2")),
    "ngtcp2 in step": scenario(linux(), other("ngtcp2"), jitter=False),
    "ngtcp2, an ACK for ten packets": scenario(linux(), other("ngtcp2", ack_threshold=10)),
    "ngtcp2 beside Linux without TCP friendliness": scenario(
        linux(options={"tcp_friendliness": False}), other("ngtcp2")
    ),
    "Reno of ngtcp2 beside Reno": scenario(linux("reno"), other("ngtcp2", "reno")),
    "smoltcp": scenario(linux(), other("smoltcp")),
    "smoltcp in step": scenario(linux(), other("smoltcp"), jitter=False),
    "smoltcp, ACKs at once": scenario(linux(), other("smoltcp", ack_delay_ms=0)),
    "smoltcp beside Linux without SACK": scenario(linux(sack=False), other("smoltcp")),
    "Reno of smoltcp beside Reno": scenario(linux("reno"), other("smoltcp", "reno")),
}


def run(plan: Plan) -> Data:
    there = {stack.name: stack.version for stack in stacks.loaded()}
    for name, version in NEEDS.items():
        if there.get(name) != version:
            found = f"{name} {there[name]}" if name in there else f"no {name}"
            raise InputError(f"cubics-in-libraries: found {found}; allowed: {name} {version}, by --stack LIB")
    cells = [
        Cell(
            scenario=cell,
            keys={"arm": arm},
            stream="all",  # identical start times in every arm
            seeds=plan.count(quick=8, paper=40),
            needs={"flows": ("flow", "goodput_bps", "recoveries")},
            keep={"flows": lambda batch: batch.flows},
        )
        for arm, cell in PAIRS.items()
    ]
    return collect("pairs", cells, plan)


EXPERIMENTS = (Experiment(name="pairs", title="two flows", run=run),)


def share(tables: Tables, arm: str) -> NDArray[np.float64]:
    """Return the second flow's share of the goodput, percent, by seed."""
    first, second = (
        tables["pairs.flows"].filter(arm=arm, flow=flow).sort("seed")["goodput_bps"].cast(pl.Float64).to_numpy()
        for flow in (0, 1)
    )
    return 100 * second / (first + second)


def alone(tables: Tables, arm: str, key: str) -> Quantity:
    return Quantity(label=arm, estimate=mean_interval(share(tables, arm)), unit="%", key=key)


def less(tables: Tables, arm: str, than: str, key: str) -> Quantity:
    difference = paired_difference(share(tables, arm), share(tables, than))
    return Quantity(label=f"{arm} less {than}", estimate=difference, unit="points", key=key)


def share_of_ngtcp2(tables: Tables) -> Quantity:
    return alone(tables, "ngtcp2", "ngtcp2")


def share_of_smoltcp(tables: Tables) -> Quantity:
    return alone(tables, "smoltcp", "smoltcp")


def ngtcp2_rule(tables: Tables) -> Quantity:
    return less(tables, "ngtcp2", "Reno of ngtcp2 beside Reno", "rule")


def ngtcp2_acks(tables: Tables) -> Quantity:
    return less(tables, "ngtcp2", "ngtcp2, an ACK for ten packets", "nacks")


def ngtcp2_friendliness(tables: Tables) -> Quantity:
    return less(tables, "ngtcp2", "ngtcp2 beside Linux without TCP friendliness", "friendly")


def smoltcp_acks(tables: Tables) -> Quantity:
    return less(tables, "smoltcp, ACKs at once", "smoltcp", "sacks")


def smoltcp_sack(tables: Tables) -> Quantity:
    return less(tables, "smoltcp beside Linux without SACK", "smoltcp", "sack")


def smoltcp_rule(tables: Tables) -> Quantity:
    return less(tables, "Reno of smoltcp beside Reno", "smoltcp", "srule")


MEASURES = {
    f.__name__: f
    for f in (
        share_of_ngtcp2,
        share_of_smoltcp,
        ngtcp2_rule,
        ngtcp2_acks,
        ngtcp2_friendliness,
        smoltcp_acks,
        smoltcp_sack,
        smoltcp_rule,
    )
}


def scenarios() -> dict[str, Scenario]:
    return {"CUBIC of ngtcp2 beside CUBIC of Linux": PAIRS["ngtcp2"]}


def blocks(tables: Tables) -> list[Figure]:
    def draw():
        made, axis = new(7.2, 3.6)
        found = {arm: mean_interval(share(tables, arm)) for arm in PAIRS}
        for at, estimate in enumerate(reversed(list(found.values()))):
            axis.plot([estimate.low, estimate.high], [at, at], color="#4c78a8", lw=3, solid_capstyle="butt")
            axis.plot([estimate.value], [at], "o", color="#1f3b5c")
        axis.axvline(50, color="#8a8a8a", lw=1)
        axis.set_yticks(range(len(found)), list(reversed(found)))
        axis.set_xlabel("share of the second flow, %")
        return made

    return [
        Figure(
            name="shares",
            title="What the flow beside Linux gets",
            caption="Mean and 95 % interval over seeds.",
            draw=draw,
            data={"pairs": tables["pairs.flows"]},
        )
    ]
