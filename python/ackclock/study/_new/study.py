"""Computations for `study.toml`: cells of scenarios, measures of their tables, a figure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ackclock import Scenario
from ackclock.judge.estimates import ratio
from ackclock.plot import Figure, new
from ackclock.stats import mean_interval
from ackclock.study import Data, Experiment, Plan, Quantity, Tables
from ackclock.study.cells import Cell, collect

RATE_BPS, WARM_UP = 20e6, "20 s"
PAYLOAD = 1448 / 1500  # fraction of payload in a packet on the link
QUEUES = {"1/8 BDP": 0.125, "1/4 BDP": 0.25, "1/2 BDP": 0.5, "1 BDP": 1.0, "2 BDP": 2.0}


def scenario(controller: str, bdp: float) -> Scenario:
    return Scenario.from_dict(
        {
            "duration": "60 s",
            "network": {
                "bottleneck": {
                    "rate": "20 Mbit/s",
                    "delay": "20 ms",
                    "queue": {"kind": "drop-tail", "limit": f"{bdp} BDP"},
                }
            },
            "record": {"warm_up": WARM_UP, "performance": True},
            "flows": [
                {
                    "congestion_control": controller,
                    "start": {"kind": "uniform", "low": "0 s", "high": "1 s"},
                    "workload": {"kind": "bulk"},
                }
            ],
        }
    )


def run(plan: Plan) -> Data:
    cells = [
        Cell(
            scenario=scenario(controller, bdp),
            keys={"controller": controller, "queue": queue},
            stream=queue,  # both controllers start at the same time, seed by seed
            seeds=plan.count(quick=6, paper=20),
            needs={"performance": ("of", "goodput_bps")},  # without the warm-up, unlike the table `flows`
        )
        for controller in ("reno", "cubic")
        for queue, bdp in QUEUES.items()
    ]
    return collect("buffer", cells, plan)


EXPERIMENTS = (Experiment(name="buffer", title="one flow behind queues of five lengths", run=run),)


def used(tables: Tables, controller: str, queue: str) -> NDArray[np.float64]:
    """Link utilisation: share of the payload capacity in percent, one value per seed."""
    rows = tables["buffer.performance"].filter(controller=controller, queue=queue, of="run").sort("seed")
    return 100 * rows["goodput_bps"].to_numpy() / (RATE_BPS * PAYLOAD)


def used_behind_one(tables: Tables) -> Quantity:
    return Quantity(
        label="utilisation behind 1 BDP",
        estimate=mean_interval(used(tables, "reno", "1 BDP")),
        unit="%",
        key="used",
    )


def lost_behind_an_eighth(tables: Tables) -> Quantity:
    return Quantity(
        label="unused behind 1/8 BDP",
        estimate=mean_interval(100 - used(tables, "reno", "1/8 BDP")),
        unit="%",
        key="lost",
    )


def left_with_cubic(tables: Tables) -> Quantity:
    without, before = (100 - used(tables, c, "1/8 BDP") for c in ("cubic", "reno"))
    found = ratio(without, before)
    return Quantity(
        label="unused with CUBIC, of what Reno leaves unused",
        estimate=type(found)(
            value=100 * found.value, low=100 * found.low, high=100 * found.high, level=found.level, n=found.n
        ),
        unit="%",
    )


MEASURES = {
    "used_behind_one": used_behind_one,
    "lost_behind_an_eighth": lost_behind_an_eighth,
    "left_with_cubic": left_with_cubic,
}


def scenarios() -> dict[str, Scenario]:
    return {"one flow behind 1 BDP": scenario("reno", 1.0)}


def blocks(tables: Tables) -> list[Figure]:
    def draw():  # type: ignore[no-untyped-def]
        made, ax = new()
        for controller, marker in (("reno", "o"), ("cubic", "s")):
            means = [used(tables, controller, queue).mean() for queue in QUEUES]
            ax.plot(range(len(QUEUES)), means, marker=marker, label=controller)
        ax.set(xticks=range(len(QUEUES)), xticklabels=list(QUEUES), xlabel="queue", ylabel="utilisation, %")
        ax.legend()
        return made

    return [
        Figure(
            name="utilisation",
            title="Utilisation by length of the queue",
            caption="Mean over seeds of the share of the link's payload that one flow used, from 20 s to 60 s.",
            draw=draw,
            data={"utilisation": tables["buffer.performance"]},
        )
    ]
